/* The set of names_seen.h: the C library's balanced tree, of copies of the names. */
#include "names_seen.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b) { return strcmp(a, b); }

int amp_names_add(amp_names_seen *set, const char *name)
{
    char *copy = strdup(name), **found = copy ? tsearch(copy, &set->root, compare) : NULL;
    if (!found || *found != copy) {
        free(copy);
        return 0;
    }
    set->count++;
    return 1;
}

void amp_names_free(amp_names_seen *set)
{
    while (set->root) {
        char *name = *(char **)set->root;
        tdelete(name, &set->root, compare);
        free(name);
    }
    set->count = 0;
}
