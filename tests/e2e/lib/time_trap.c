/* Preloaded into a rank with AMP_COMM_TIMEOUT=1000000: the time of the watchdog (plugin/comm/watchdog.c)
 * stands still while there is no file `stopped`, and is over at once when there is. So a busy machine is no
 * reason to be late. */
#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock, const struct timespec *until)
{
    /* No machine has been up for thirty years: what is later is a date. */
    clockid_t clock = until->tv_sec < 1000000000 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
    struct timespec soon;
    clock_gettime(clock, &soon);
    if (until->tv_sec - soon.tv_sec < 10000) return pthread_cond_clockwait(condition, lock, clock, until);
    while (access("stopped", F_OK) != 0) {
        int woken;
        clock_gettime(clock, &soon);
        soon.tv_sec++;
        woken = pthread_cond_clockwait(condition, lock, clock, &soon);
        if (woken != ETIMEDOUT) return woken;
    }
    return ETIMEDOUT;
}
