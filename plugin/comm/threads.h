/* Threads of one process as ranks, with arrays in its memory. */
#pragma once

#include "comm.h"

/* Fills ranks[0] to ranks[size - 1], one for each thread; each must be destroyed. After abort of one, the
 * others' calls fail. seconds, lost: as in amp_comm. */
amp_status amp_comm_threads(int size, double seconds, void (*lost)(const char *line), amp_comm **ranks,
                            amp_error *);
