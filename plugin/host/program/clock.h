/* The clock with which a training and the commands measure durations. */
#pragma once

#include <math.h>
#include <time.h>

static inline double amp_clock_read(clockid_t which)
{
    struct timespec t;
    clock_gettime(which, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds since an arbitrary fixed moment; setting the system's date does not affect them. */
static inline double amp_clock_seconds(void) { return amp_clock_read(CLOCK_MONOTONIC); }

/* Returns `count` per second; NaN if no time has passed. */
static inline double amp_clock_rate(double count, double seconds)
{
    return seconds > 0 ? count / seconds : NAN;
}
