/* Memory for one plan: every buffer says from when to when it lives on the plan's clock (forward of layer i is time i,
 * backward comes after, in reverse), and buffers whose lives do not overlap share bytes of one block. */
#ifndef AMP_LAYERS_ARENA_H
#define AMP_LAYERS_ARENA_H

#include <stddef.h>

#include "../tensor/status.h"

typedef struct amp_arena_request { size_t bytes, offset; int start, end; void **slot; } amp_arena_request;

typedef struct amp_arena {
    amp_arena_request *requests;
    int count, capacity;
    size_t total; /* bytes of the block, known after amp_arena_solve */
} amp_arena;

/* Ask for bytes alive from time start to time end, both included. *slot is set by amp_arena_bind. */
amp_status amp_arena_request_bytes(amp_arena *, size_t bytes, int start, int end, void **slot, amp_error *);

/* Place all requests (largest first, each at the lowest free offset); offsets are multiples of 64. */
void amp_arena_solve(amp_arena *);

/* Point every slot into block, which holds arena->total bytes. */
void amp_arena_bind(const amp_arena *, void *block);

void amp_arena_free(amp_arena *);

#endif
