/* Preloaded: the clocks named in CLOCK_BACK ("date", "date monotonic") go back a second whenever they are
 * read. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

static atomic_int reads;

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    int (*real)(struct timeval *, void *);
    *(void **)&real = dlsym(RTLD_NEXT, "gettimeofday");
    int status = real(now, zone);
    now->tv_sec -= ++reads;
    return status;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int (*real)(clockid_t, struct timespec *);
    *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(clock, now);
    if (clock == CLOCK_REALTIME || strstr(getenv("CLOCK_BACK"), "monotonic")) now->tv_sec -= ++reads;
    return status;
}
