/* Preloaded: the clock that bash's SECONDS reads is a day ahead once there is a file `later` in the working
 * folder. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    int (*real)(struct timeval *, void *);
    *(void **)&real = dlsym(RTLD_NEXT, "gettimeofday");
    int status = real(now, zone);
    if (access("later", F_OK) == 0) now->tv_sec += 86400;
    return status;
}

time_t time(time_t *now)
{
    struct timeval seconds;
    gettimeofday(&seconds, NULL);
    if (now) *now = seconds.tv_sec;
    return seconds.tv_sec;
}
