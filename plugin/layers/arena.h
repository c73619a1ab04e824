/* One block of memory for all buffers of a plan. Each buffer is requested with the times of its first and
 * last use: layer i's forward is time i, and backward follows in reverse. Buffers that are not in use at the
 * same time share bytes. */
#pragma once

#include <stddef.h>

typedef struct amp_arena_request {
    size_t bytes, offset;
    int start, end;
    int is_kept;  /* requested by amp_arena_keep_bytes */
    void **slot;
} amp_arena_request;

/* A request merged into another one: amp_arena_bind copies the other's pointer, `*as`, to `*slot`. */
typedef struct amp_arena_alias { void **slot, **as; } amp_arena_alias;

typedef struct amp_arena {
    amp_arena_request *requests;
    amp_arena_alias *aliases; /* the aliases, in the order in which they were added */
    int count, alias_count;
    size_t room, alias_room;
    size_t total; /* bytes of the block, known after amp_arena_solve */
} amp_arena;

/* Requests a buffer that is in use from time start to time end, inclusive. amp_arena_bind sets *slot. */
void amp_arena_request_bytes(amp_arena *, size_t bytes, int start, int end, void **slot);
/* Requests a buffer that forward writes and backward reads. backward_time -1: no backward follows. */
void amp_arena_keep_bytes(amp_arena *, size_t bytes, int forward_time, int backward_time, void **slot);

/* Merges two requests, if their sizes are equal, into one buffer: what is written through one slot is read
 * through the other. The buffer is in use from the earlier start to the later end. */
void amp_arena_share(amp_arena *, void **first, void **second);

/* Places all requests (largest first, each at the lowest free offset); offsets are multiples of 64. */
void amp_arena_solve(amp_arena *);

/* Points every slot into block, which has arena->total bytes. */
void amp_arena_bind(const amp_arena *, void *block);

void amp_arena_free(amp_arena *);
