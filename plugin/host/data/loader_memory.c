/* Keeps the memory for loading images small. If memory runs out, ends the program with one line instead of a
 * crash. This file does both only in a program that has made a network under AMP.
 *
 * Darknet starts 64 threads for each batch. Each thread decodes images in one of the C library's many arenas.
 * Arenas return no memory to the system, so a small detector takes three times the memory that it needs
 * (docs/results/memory.md). So only some of the threads work at a time, and all use one arena. */
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
#include "../program/cfg.h"
#include "../program/memory.h"

static struct {
    int on; /* set once, before any loader starts; read by all threads */
    sem_t turns;
    pthread_mutex_t mutex;
    pthread_cond_t ended;
    int at_work, allowed; /* number of threads that load now; maximum number that may */
} loaders = { .mutex = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER };

int amp_loaders_processors(void)
{
    cpu_set_t processors;
    return sched_getaffinity(0, sizeof processors, &processors) ? 1 : CPU_COUNT(&processors);
}

/* Twice the number of processors: half of the threads decode while the others wait for the disk. */
int amp_loaders_at_once(void) { return 2 * amp_loaders_processors(); }

void amp_loaders_watch(int is_training)
{
    if (loaders.on) return;
#ifdef M_ARENA_MAX
    /* Only for a training, because the settings apply to the whole program. By default, the C library raises
     * its thresholds when a large block is freed, and then keeps blocks of that size. Setting a threshold
     * turns this off. Our thresholds are larger than an image, so that the next image reuses the memory:
     * returning it to the system and requesting it again would cost up to a third of the decoding time. */
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

/* How many bytes of a file the kernel is asked to read ahead: more than most photos have. */
enum { READ_AHEAD = 4 << 20 };

/* A thread waits here for its turn while the disk reads its file. */
int amp_loaders_begin_turn(const char *file)
{
    if (!loaders.on) return 0;
    int descriptor = open(file, O_RDONLY | O_CLOEXEC);
    if (descriptor >= 0) posix_fadvise(descriptor, 0, READ_AHEAD, POSIX_FADV_WILLNEED);
    if (descriptor >= 0) close(descriptor);
    while (sem_wait(&loaders.turns)); /* wait again if a signal interrupts */
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

/* ---- how many threads ---- */

/* Fractions of a step's time. A wait of more than LONG_WAIT doubles the number of allowed threads. If one
 * thread fewer would still have loaded the batch within SHORT_LOAD, the number is reduced by one. */
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
    /* Do not report an array that grows with the batch, such as a layer's output. Most of these arrays are
     * freed as soon as the layer is made, and amp_own_check finds any missing array that is needed. */
    if (!memory && !(amp_host_parser_uses_amp() && (strstr(text, "batch") || strstr(text, "output_size"))))
        darknet_amp_no_memory(size && count > SIZE_MAX / size ? SIZE_MAX : count * size);
    return memory;
}
