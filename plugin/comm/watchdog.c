#include "watchdog.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

enum { PARTS = 8, SECONDS = 300 };

typedef struct watch {
    int under_way, limits;
    int parts; /* number of wake-ups of the watchdog since the call began */
    char phase[AMP_PHASE];
} watch;

struct amp_watchdog {
    pthread_t thread;
    pthread_mutex_t lock; /* guards all fields below */
    pthread_cond_t ends;
    int stopping;
    double part; /* seconds between wake-ups */
    watch watches[AMP_WATCHED];
    void (*late)(void *context, const char *phase);
    void *context;
};

amp_status amp_comm_time_limit(double *seconds, amp_error *error)
{
    const char *text = getenv("AMP_COMM_TIMEOUT");
    char *end;
    *seconds = SECONDS;
    if (!text || !*text) return AMP_OK;
    *seconds = strtod(text, &end);
    if (!*end && *seconds >= 0 && *seconds <= 1e6) return AMP_OK;
    *seconds = 0;
    return amp_fail(error, AMP_BAD_CONFIG, "ranks: AMP_COMM_TIMEOUT=%s: expected seconds, 0 to 1000000",
                    text);
}

void amp_comm_report_timeout(void *context, const char *phase)
{
    const amp_comm *comm = context;
    char line[512];
    snprintf(line, sizeof line, "ranks: %s: rank %d got no answer from another rank within the time limit: "
             "that rank is stopped, hangs or cannot be reached; the last save is complete "
             "(AMP_COMM_TIMEOUT=SECONDS in the environment sets the limit, 0 turns it off)",
             phase, comm->rank);
    comm->lost(line);
}

static struct timespec in_seconds(double seconds)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    seconds += (double)t.tv_nsec * 1e-9;
    t.tv_sec += (time_t)seconds;
    t.tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9);
    return t;
}

/* Counts a wake-up of the watchdog's thread for each call in progress. Returns a call that has exceeded its
 * limit, or NULL. The caller must hold the lock. */
static const watch *find_late(amp_watchdog *dog)
{
    const watch *late = NULL;
    for (int i = 0; i < AMP_WATCHED; i++) {
        watch *w = &dog->watches[i];
        if (w->under_way && ++w->parts > PARTS * w->limits) late = w;
    }
    return late;
}

static void *keep_watch(void *context)
{
    amp_watchdog *dog = context;
    const watch *late = NULL;
    pthread_mutex_lock(&dog->lock);
    while (!dog->stopping && !late) {
        struct timespec until = in_seconds(dog->part);
        int woken = 0;
        while (!dog->stopping && woken != ETIMEDOUT)
            woken = pthread_cond_timedwait(&dog->ends, &dog->lock, &until);
        if (!dog->stopping) late = find_late(dog);
    }
    char phase[AMP_PHASE] = "";
    if (late) memcpy(phase, late->phase, sizeof phase);
    pthread_mutex_unlock(&dog->lock);
    if (late) dog->late(dog->context, phase);
    return NULL;
}

amp_status amp_start_helper(pthread_t *thread, void *(*run)(void *), void *context, amp_error *error)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int why = pthread_create(thread, NULL, run, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!why) return AMP_OK;
    return amp_fail(error, AMP_UNSUPPORTED, "amp: no thread could be started: %s", strerror(why));
}

amp_status amp_watchdog_start(double seconds, void (*late)(void *context, const char *phase), void *context,
                              amp_watchdog **out, amp_error *error)
{
    pthread_condattr_t monotonic;
    *out = NULL;
    if (seconds <= 0) return AMP_OK;
    amp_watchdog *dog = amp_allocated(calloc(1, sizeof *dog));
    dog->part = seconds / PARTS;
    dog->late = late;
    dog->context = context;
    pthread_mutex_init(&dog->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&dog->ends, &monotonic);
    pthread_condattr_destroy(&monotonic);
    amp_status status = amp_start_helper(&dog->thread, keep_watch, dog, error);
    if (status == AMP_OK) *out = dog;
    else free(dog);
    return status;
}

void amp_watchdog_begin(amp_watchdog *dog, int thread, int limits, const char *phase)
{
    if (!dog) return;
    pthread_mutex_lock(&dog->lock);
    watch *w = &dog->watches[thread];
    *w = (watch){ .under_way = 1, .limits = limits };
    snprintf(w->phase, sizeof w->phase, "%s", phase);
    pthread_mutex_unlock(&dog->lock);
}

void amp_watchdog_end(amp_watchdog *dog, int thread)
{
    if (!dog) return;
    pthread_mutex_lock(&dog->lock);
    dog->watches[thread].under_way = 0;
    pthread_mutex_unlock(&dog->lock);
}

void amp_watchdog_stop(amp_watchdog *dog)
{
    if (!dog) return;
    pthread_mutex_lock(&dog->lock);
    dog->stopping = 1;
    pthread_cond_signal(&dog->ends);
    pthread_mutex_unlock(&dog->lock);
    pthread_join(dog->thread, NULL);
    pthread_cond_destroy(&dog->ends);
    pthread_mutex_destroy(&dog->lock);
    free(dog);
}
