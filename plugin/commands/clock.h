/* The clock by which commands measure how long something took. */
#ifndef AMP_COMMANDS_CLOCK_H
#define AMP_COMMANDS_CLOCK_H

#include <time.h>

/* Seconds since some moment; setting the machine's date does not move it. */
static inline double amp_clock_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
