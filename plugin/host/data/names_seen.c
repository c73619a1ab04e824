/* The set of names_seen.h: open addressing, at most half full. */
#include "names_seen.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 64 };

/* FNV-1a. */
static uint64_t hash(const char *name)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 0x100000001b3u;
    return h;
}

static char **find(char **slot, size_t room, const char *name)
{
    size_t i = hash(name) & (room - 1);
    while (slot[i] && strcmp(slot[i], name)) i = (i + 1) & (room - 1);
    return &slot[i];
}

static int grow(amp_names_seen *set)
{
    size_t room = set->room ? 2 * set->room : FIRST_ROOM;
    char **slot = calloc(room, sizeof *slot);
    if (!slot) return 0;
    for (size_t i = 0; i < set->room; i++) if (set->slot[i]) *find(slot, room, set->slot[i]) = set->slot[i];
    free(set->slot);
    set->slot = slot;
    set->room = room;
    return 1;
}

int amp_names_add(amp_names_seen *set, const char *name)
{
    if (2 * (size_t)set->count >= set->room && !grow(set)) return 0;
    char **place = find(set->slot, set->room, name);
    if (*place || !(*place = strdup(name))) return 0;
    set->count++;
    return 1;
}

void amp_names_free(amp_names_seen *set)
{
    for (size_t i = 0; i < set->room; i++) free(set->slot[i]);
    free(set->slot);
    *set = (amp_names_seen){ 0 };
}
