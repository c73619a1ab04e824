/* Exchanges numbers between the ranks of several programs. Without ranks each function returns the caller's
 * own.
 *
 * Collective: all ranks call these, in the same order. what: the purpose of the call, such as "saving
 * x.weights", for a time limit's message. An error of the communicator ends the program. */
#pragma once

#include <stddef.h>

#include "../../tensor/status.h"

struct amp_comm;

/* The ranks' blocks of `bytes` bytes, concatenated in rank order. The caller frees it. */
void *amp_exchange_gather(struct amp_comm *, const void *mine, size_t bytes);
/* Broadcast: sets *value to rank 0's. */
void amp_exchange_broadcast(void *value, size_t bytes, const char *what);
/* Replaces each number by its sum over the ranks. */
void amp_exchange_sum(size_t *numbers, int count, const char *what);
/* Returns the mean over the ranks. */
float amp_exchange_mean(float number, const char *what);
/* Returns the status of the first rank that failed, with its error, or AMP_OK. */
amp_status amp_exchange_outcome(amp_status mine, const char *what, amp_error *error);
/* Replaces *rows, an array from malloc of *count rows of row_bytes each, by the rows of all ranks, in rank
 * order. */
void amp_exchange_join(void **rows, size_t *count, size_t row_bytes, const char *what);
