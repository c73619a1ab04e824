/* Threads of one process as ranks, over arrays in its memory. */
#pragma once

#include "comm.h"

/* Fills ranks[0] to ranks[size - 1], each for a thread of its own. All of them are to be destroyed. After
 * abort of one, what the others call fails. seconds, lost: as in amp_comm. */
amp_status amp_comm_threads(int size, double seconds, void (*lost)(const char *line), amp_comm **ranks,
                            amp_error *);
