/* Exchanges numbers between ranks that are separate programs. Without ranks, they leave all values unchanged.
 *
 * All functions are collective: all ranks call them in the same order. what: the purpose of the call, printed
 * if it times out. If communication fails, the program ends. */
#pragma once

#include <stddef.h>

#include "../../tensor/status.h"

struct amp_comm;

/* Every rank passes `bytes` bytes. Returns the bytes of all ranks, in rank order; the caller frees them. */
void *amp_exchange_gather(struct amp_comm *, const void *mine, size_t bytes);
/* Broadcast: sets *value on every rank to rank 0's value. */
void amp_exchange_broadcast(void *value, size_t bytes, const char *what);
/* Replaces each number by its sum over the ranks. */
void amp_exchange_sum(size_t *numbers, int count, const char *what);
/* Returns the mean over the ranks. */
float amp_exchange_mean(float number, const char *what);
/* Returns the status and the error of the first rank that failed; AMP_OK if no rank failed. */
amp_status amp_exchange_outcome(amp_status mine, const char *what, amp_error *error);
/* Replaces *rows by the rows of all ranks, in rank order. *rows is an array from malloc with *count rows of
 * row_bytes bytes each. */
void amp_exchange_join(void **rows, size_t *count, size_t row_bytes, const char *what);
