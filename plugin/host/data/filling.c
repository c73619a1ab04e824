/* Copies loaded images to where a network reads them: see images.h. */
#include "images.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "loader_memory.h"

enum { MOST_THREADS = 8, LEAST_BYTES = 1 << 20 /* the least bytes for one thread */ };

typedef struct filling {
    float *input, **rows;
    size_t floats; /* number of floats per row */
    int count;
    atomic_int next; /* the first row that no thread has taken yet */
} filling;

/* Returns the number of threads: one per processor, but fewer for little data, and at most MOST_THREADS,
 * because more threads would only wait for the memory. */
static int threads_for(size_t bytes)
{
    size_t threads = (size_t)amp_loaders_processors();
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    if (threads > bytes / LEAST_BYTES) threads = bytes / LEAST_BYTES;
    return threads ? (int)threads : 1;
}

static void *copy_rows(void *argument)
{
    filling *f = argument;
    for (int i; (i = atomic_fetch_add(&f->next, 1)) < f->count;) {
        memcpy(f->input + (size_t)i * f->floats, f->rows[i], f->floats * sizeof *f->input);
        free(f->rows[i]);
        f->rows[i] = NULL;
    }
    return NULL;
}

void amp_filling_copy(float *input, float **rows, int count, size_t floats)
{
    filling f = { .input = input, .rows = rows, .floats = floats, .count = count };
    pthread_t others[MOST_THREADS];
    int started = 0, wanted = threads_for((size_t)count * floats * sizeof *input) - 1;
    while (started < wanted && !pthread_create(&others[started], NULL, copy_rows, &f)) started++;
    copy_rows(&f);
    for (int i = 0; i < started; i++) pthread_join(others[i], NULL);
}
