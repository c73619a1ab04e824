/* Memory for one plan: every buffer says from when to when it lives on the plan's clock (forward of layer i
 * is time i, backward comes after, in reverse), and buffers whose lives do not overlap share bytes of one
 * block. */
#ifndef AMP_LAYERS_ARENA_H
#define AMP_LAYERS_ARENA_H

#include <stddef.h>

#include "../tensor/status.h"

typedef struct amp_arena_request {
    size_t bytes, offset;
    int start, end;
    void **slot, **also; /* also: of a shared request, the second slot; otherwise NULL */
} amp_arena_request;

typedef struct amp_arena {
    amp_arena_request *requests;
    int count, capacity;
    size_t total; /* bytes of the block, known after amp_arena_solve */
} amp_arena;

/* Ask for bytes alive from time start to time end, both included. *slot is set by amp_arena_bind. */
amp_status amp_arena_request_bytes(amp_arena *, size_t bytes, int start, int end, void **slot, amp_error *);

/* One buffer for two slots of as many bytes, whose contents pass from one to the other: first and second
 * point to the same memory, which lives as long as both. Nothing where that cannot be, since one of them was
 * not asked for or is shared already. */
void amp_arena_share(amp_arena *, void **first, void **second);

/* Place all requests (largest first, each at the lowest free offset); offsets are multiples of 64. */
void amp_arena_solve(amp_arena *);

/* Point every slot into block, which holds arena->total bytes. */
void amp_arena_bind(const amp_arena *, void *block);

void amp_arena_free(amp_arena *);

#endif
