/* Numbers that the ranks of several programs tell each other. Without ranks each keeps its own.
 *
 * Collective: all ranks call these, in the same order. what: what the call is for, such as "saving
 * x.weights"; a time limit's message names it. An error of the communicator ends the program. */
#pragma once

#include <stddef.h>

#include "../../tensor/status.h"

struct amp_comm;

/* The ranks' blocks of `bytes` bytes one after the other, in the order of ranks. The caller frees it. */
void *amp_exchange_gather(struct amp_comm *, const void *mine, size_t bytes);
/* Broadcast: *value becomes rank 0's. */
void amp_exchange_broadcast(void *value, size_t bytes, const char *what);
/* Each of the numbers becomes its sum over the ranks. */
void amp_exchange_sum(size_t *numbers, int count, const char *what);
/* The mean over the ranks. */
float amp_exchange_mean(float number, const char *what);
/* Returns the status of the first rank that failed, with its error; AMP_OK where none did. */
amp_status amp_exchange_outcome(amp_status mine, const char *what, amp_error *error);
/* *rows, an array from malloc of *count rows of row_bytes each, is replaced by the rows of all ranks, in the
 * order of ranks. */
void amp_exchange_join(void **rows, size_t *count, size_t row_bytes, const char *what);
