/* An observer that fills all unused bytes of a plan's arena with NaN of each dtype: reading a buffer that was
 * given up, or was not recomputed yet, spoils the training. */
#ifndef POISON_ARENA_H
#define POISON_ARENA_H

#include <stdlib.h>
#include <string.h>

#include "host/network/state.h"

typedef struct poison_arena {
    const amp_engine *engine;
    char *block, *used;
    int layer;     /* the last one shown in forward */
    size_t filled; /* bytes, in all */
} poison_arena;

static amp_status poison_unused(void *context, amp_backend *b, const amp_seen *seen, amp_error *error)
{
    poison_arena *p = context;
    const amp_plan *plan = p->engine->active;
    const amp_arena *arena = &plan->arena;
    int time = seen->layer;
    char nan[1 << 12];
    memset(nan, 0xff, sizeof nan);
    if (seen->kind == AMP_SEEN_IMAGE) { /* every slot is in its first place */
        p->block = (char *)*arena->requests->slot - arena->requests->offset;
        p->layer = -1;
        time = 0;
    }
    if (seen->kind == AMP_SEEN_GRADIENT) return AMP_OK; /* of a layer whose backward is done */
    /* A loss that AMP computes shows its delta in forward. */
    if (seen->kind == AMP_SEEN_DELTA && seen->layer <= p->layer) time = 2 * plan->count - 1 - seen->layer;
    else p->layer = seen->layer;
    p->used = realloc(p->used, arena->total);
    memset(p->used, 0, arena->total);
    for (int i = 0; i < arena->count; i++) {
        const amp_arena_request *r = &arena->requests[i];
        if (r->start <= time && time <= r->end) memset(p->used + r->offset, 1, r->bytes);
    }
    for (size_t first = 0, end; first < arena->total; first = end) {
        for (end = first; end < arena->total && end - first < sizeof nan && p->used[end] == p->used[first];)
            end++;
        if (p->used[first]) continue;
        AMP_TRY(b->upload(b, p->block + first, nan, end - first, error));
        p->filled += end - first;
    }
    return AMP_OK;
}

static void poison_begin(poison_arena *p, amp_engine *engine)
{
    *p = (poison_arena){ .engine = engine };
    engine->observer = (amp_observer){ p, poison_unused };
}

/* Returns how many bytes it has filled. */
static size_t poison_end(poison_arena *p, amp_engine *engine)
{
    engine->observer = (amp_observer){ 0 };
    free(p->used);
    return p->filled;
}

#endif
