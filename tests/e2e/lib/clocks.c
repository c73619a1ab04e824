/* Preloaded: other clocks than the machine's, as CLOCKS says.
 *   back            the date goes back a second whenever it is read
 *   back,monotonic  so do all clocks
 *   waits N         time stands still, but N seconds go by whenever the main thread waits for another one, as
 *                   it waits for a step's images, and a thousandth of that whenever it reads the clock */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) static __typeof__(&name) real; if (!real) *(void **)&real = dlsym(RTLD_NEXT, #name)

static atomic_int reads;
static atomic_long thousandths;

static int mode(const char *name) { return strstr(getenv("CLOCKS"), name) != NULL; }

static void advance(long by)
{
    if (mode("waits") && gettid() == getpid()) thousandths += by * atol(getenv("CLOCKS") + strlen("waits "));
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    REAL(gettimeofday);
    int status = real(now, zone);
    if (mode("back")) now->tv_sec -= ++reads;
    return status;
}

int pthread_join(pthread_t thread, void **result)
{
    REAL(pthread_join);
    advance(1000);
    return real(thread, result);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    REAL(clock_gettime);
    int status = real(clock, now);
    if (mode("waits") && clock == CLOCK_MONOTONIC) {
        advance(1);
        *now = (struct timespec){ thousandths / 1000, thousandths % 1000 * 1000000 };
    } else if (mode("back") && (clock == CLOCK_REALTIME || mode("monotonic"))) now->tv_sec -= ++reads;
    return status;
}
