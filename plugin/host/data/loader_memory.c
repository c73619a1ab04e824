/* The memory of loading images, and of Darknet's arrays: kept small from the moment that the program makes a
 * network under AMP, and one line instead of a crash where there is none. Nothing of this happens in a
 * program without such a network.
 *
 * Darknet starts 64 threads for each batch. Each decodes an image of its own at the same time as the others
 * do, and gets one of the C library's many arenas, which keep what they once held: a small detector takes
 * three times the memory that it needs (docs/results/memory.md). So only some of the threads work
 * at a time, and all of them use one arena, where freed images make room for the next ones. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "loader_memory.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "../../include/darknet_amp.h"
#include "../program/cfg_stream.h"
#include "../program/memory.h"

static struct {
    int on; /* set once and for all, before there are loaders; read by all threads */
    sem_t turns;
    pthread_mutex_t mutex;
    pthread_cond_t ended;
    int at_work, allowed; /* threads that load */
} loaders = { .mutex = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER };

int amp_loaders_processors(void)
{
    cpu_set_t processors;
    return sched_getaffinity(0, sizeof processors, &processors) ? 1 : CPU_COUNT(&processors);
}

/* While half of them wait for the disk, the others decode. */
int amp_loaders_at_once(void) { return 2 * amp_loaders_processors(); }

void amp_loaders_watch(int is_training)
{
    if (loaders.on) return;
#ifdef M_ARENA_MAX
    /* A training alone sets these: they are the whole program's, which may be another's with the library in
     * it. The C library would learn from a large block that was freed to keep blocks of that size in its
     * arenas; given a threshold it stays there. Below these, images' memory is not returned and asked for
     * again all the time, which costs as much as a third of their decoding. */
    if (is_training) {
        mallopt(M_ARENA_MAX, 1);
        mallopt(M_MMAP_THRESHOLD, 32 << 20);
        mallopt(M_TRIM_THRESHOLD, 64 << 20);
    }
#endif
    loaders.allowed = amp_loaders_at_once();
    sem_init(&loaders.turns, 0, (unsigned)amp_loaders_processors());
    loaders.on = 1;
}

/* ---- photos ---- */

/* What the kernel is asked to read before a turn: more than most photos' files have. */
enum { READ_AHEAD = 4 << 20 };

/* The disk is waited for before a turn, by the threads that are more than the processors. */
int amp_loaders_begin_turn(const char *file)
{
    if (!loaders.on) return 0;
    int descriptor = open(file, O_RDONLY | O_CLOEXEC);
    if (descriptor >= 0) posix_fadvise(descriptor, 0, READ_AHEAD, POSIX_FADV_WILLNEED);
    if (descriptor >= 0) close(descriptor);
    while (sem_wait(&loaders.turns)); /* interrupted by a signal */
    return 1;
}

void amp_loaders_end_turn(void) { sem_post(&loaders.turns); }

/* ---- threads ---- */

void amp_loaders_begin_part(void)
{
    if (!loaders.on) return;
    pthread_mutex_lock(&loaders.mutex);
    while (loaders.at_work >= loaders.allowed) pthread_cond_wait(&loaders.ended, &loaders.mutex);
    loaders.at_work++;
    pthread_mutex_unlock(&loaders.mutex);
}

void amp_loaders_end_part(void)
{
    if (!loaders.on) return;
    pthread_mutex_lock(&loaders.mutex);
    loaders.at_work--;
    pthread_cond_broadcast(&loaders.ended);
    pthread_mutex_unlock(&loaders.mutex);
}

/* ---- how many ---- */

/* A wait of this share of a step asks for more threads. A thread is given up if the others would have loaded
 * the batch within this share of the step. */
#define LONG_WAIT .02
#define SHORT_LOAD .7

int amp_loaders_needed(int threads, int most, double waited, double step, double load)
{
    if (waited > LONG_WAIT * step) return 2 * threads < most ? 2 * threads : most;
    return threads > 1 && load * threads < SHORT_LOAD * step * (threads - 1) ? threads - 1 : threads;
}

void amp_loaders_adapt(double waited, double step, double load)
{
    pthread_mutex_lock(&loaders.mutex);
    loaders.allowed = amp_loaders_needed(loaders.allowed, amp_loaders_at_once(), waited, step, load);
    pthread_cond_broadcast(&loaders.ended);
    pthread_mutex_unlock(&loaders.mutex);
}

int darknet_amp_start_loader(pthread_t *thread, void *(*run)(void *), void *job)
{
    pthread_attr_t attributes;
    if (!loaders.on) return pthread_create(thread, NULL, run, job);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, AMP_LOADER_STACK);
    int status = pthread_create(thread, &attributes, run, job);
    pthread_attr_destroy(&attributes);
    if (status) darknet_amp_refuse("darknet: no thread that loads images can be started: %s; what limits the "
                                   "program's memory or its number of threads (ulimit -v, -u) is too low",
                                   strerror(status));
    return 0;
}

/* ---- arrays ---- */

void darknet_amp_no_memory(size_t bytes)
{
    if (!loaders.on && !amp_host_parser_uses_amp()) return;
    amp_available_memory available = amp_host_available_memory();
    darknet_amp_refuse("darknet: no memory for %.1f MiB more; %.0f MiB of %s are left: use more "
                       "subdivisions, a smaller width and height, or fewer filters", (double)bytes / 0x1p20,
                       (double)available.bytes / 0x1p20, available.what);
}

void *darknet_amp_calloc(size_t count, size_t size, const char *text)
{
    void *memory = calloc(count, size);
    /* Layers' outputs and what has their size: most are freed as soon as the layer is made, and those
     * that are needed are missed in amp_own_check. */
    if (!memory && !(amp_host_parser_uses_amp() && (strstr(text, "batch") || strstr(text, "output_size"))))
        darknet_amp_no_memory(size && count > SIZE_MAX / size ? SIZE_MAX : count * size);
    return memory;
}
