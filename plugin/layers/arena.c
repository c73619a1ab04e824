/* Places buffers with known lifetimes in one block: largest first, each at the lowest free offset. */
#include "arena.h"

#include "../tensor/status.h"

enum { ALIGNMENT = 64 };

void amp_arena_request_bytes(amp_arena *arena, size_t bytes, int start, int end, void **slot)
{
    arena->requests = amp_grow(arena->requests, (size_t)arena->count, &arena->room, sizeof *arena->requests);
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    arena->requests[arena->count++] = (amp_arena_request){ .bytes = bytes, .start = start, .end = end,
                                                           .slot = slot };
}

void amp_arena_keep_bytes(amp_arena *arena, size_t bytes, int forward_time, int backward_time, void **slot)
{
    int end = backward_time < 0 ? forward_time : backward_time;
    amp_arena_request_bytes(arena, bytes, forward_time, end, slot);
    arena->requests[arena->count - 1].is_kept = 1;
}

/* Returns the request whose buffer will contain the address in `*slot` after amp_arena_bind, or NULL. */
static amp_arena_request *request_of(const amp_arena *arena, void **slot)
{
    for (int i = 0; i < arena->alias_count; i++)
        if (arena->aliases[i].slot == slot) slot = arena->aliases[i].as;
    for (int i = 0; i < arena->count; i++)
        if (arena->requests[i].slot == slot) return &arena->requests[i];
    return NULL;
}

void amp_arena_share(amp_arena *arena, void **first, void **second)
{
    amp_arena_request *kept = request_of(arena, first), *dropped = request_of(arena, second);
    if (!kept || !dropped || kept == dropped || kept->bytes != dropped->bytes) return;
    arena->aliases = amp_grow(arena->aliases, (size_t)arena->alias_count, &arena->alias_room,
                              sizeof *arena->aliases);
    arena->aliases[arena->alias_count++] = (amp_arena_alias){ .slot = dropped->slot, .as = kept->slot };
    if (dropped->start < kept->start) kept->start = dropped->start;
    if (dropped->end > kept->end) kept->end = dropped->end;
    *dropped = arena->requests[--arena->count];
}

static int larger_first(const void *a, const void *b)
{
    const amp_arena_request *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return (x->start > y->start) - (x->start < y->start);
}

static int lives_with(const amp_arena_request *a, const amp_arena_request *b)
{
    return a->start <= b->end && b->start <= a->end;
}

/* Returns the lowest offset at which r overlaps none of the first `placed` requests that are in use with
 * it. */
static size_t lowest_offset(const amp_arena_request *requests, int placed, const amp_arena_request *r)
{
    size_t offset = 0;
    for (int moved = 1; moved;) {
        moved = 0;
        for (int i = 0; i < placed; i++) {
            const amp_arena_request *other = &requests[i];
            if (!lives_with(r, other) || offset >= other->offset + other->bytes
                || other->offset >= offset + r->bytes)
                continue;
            offset = other->offset + other->bytes;
            moved = 1;
        }
    }
    return offset;
}

void amp_arena_solve(amp_arena *arena)
{
    if (arena->count) qsort(arena->requests, (size_t)arena->count, sizeof *arena->requests, larger_first);
    arena->total = 0;
    for (int i = 0; i < arena->count; i++) {
        amp_arena_request *r = &arena->requests[i];
        r->offset = lowest_offset(arena->requests, i, r);
        if (r->offset + r->bytes > arena->total) arena->total = r->offset + r->bytes;
    }
}

void amp_arena_bind(const amp_arena *arena, void *block)
{
    for (int i = 0; i < arena->count; i++)
        *arena->requests[i].slot = (char *)block + arena->requests[i].offset;
    for (int i = arena->alias_count - 1; i >= 0; i--) *arena->aliases[i].slot = *arena->aliases[i].as;
}

void amp_arena_free(amp_arena *arena)
{
    free(arena->requests);
    free(arena->aliases);
    *arena = (amp_arena){ 0 };
}
