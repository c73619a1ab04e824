/* A ring of slots that some threads fill and one reader empties: see image_loader.h. */
#include "image_loader.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_THREADS = 4, SLOTS = 2 * MOST_THREADS };

typedef struct slot { amp_loaded_image image; int filled; } slot;

typedef struct amp_image_loader {
    const amp_lines *paths;
    int w, h;
    amp_image_fit fit;
    pthread_t threads[MOST_THREADS];
    int thread_count;
    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t changed;
    slot slots[SLOTS];    /* image i is in slot i % SLOTS */
    size_t begun, given;  /* images that a thread has taken up; that were handed out */
    int stopping;
} amp_image_loader;

static amp_loaded_image load(const amp_image_loader *l, const char *path)
{
    amp_loaded_image out = {0};
    const char *why;
    out.fitted = amp_fork_read_image(path, l->w, l->h, l->fit, out.size, &why);
    if (!out.fitted) snprintf(out.failure, sizeof out.failure, "%s: cannot read the image: %s", path, why);
    return out;
}

static void *run(void *argument)
{
    amp_image_loader *l = argument;
    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (!l->stopping && l->begun < l->paths->count && l->begun >= l->given + SLOTS)
            pthread_cond_wait(&l->changed, &l->lock);
        if (l->stopping || l->begun == l->paths->count) break;
        size_t i = l->begun++;
        pthread_mutex_unlock(&l->lock);
        amp_loaded_image loaded = load(l, l->paths->line[i]);
        pthread_mutex_lock(&l->lock);
        l->slots[i % SLOTS] = (slot){loaded, 1};
        pthread_cond_broadcast(&l->changed);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

amp_status amp_image_loader_start(const amp_lines *paths, int w, int h, amp_image_fit fit,
                                  amp_image_loader **out, amp_error *error)
{
    amp_image_loader *l = calloc(1, sizeof *l);
    *out = l;
    if (!l) return amp_fail(error, AMP_NO_MEMORY, "no memory to load images");
    *l = (amp_image_loader){.paths = paths, .w = w, .h = h, .fit = fit};
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, NULL);
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int wanted = processors < 1 ? 1 : processors > MOST_THREADS ? MOST_THREADS : (int)processors;
    while (l->thread_count < wanted && !pthread_create(&l->threads[l->thread_count], NULL, run, l))
        ++l->thread_count;
    if (l->thread_count > 0) return AMP_OK;
    amp_image_loader_stop(l);
    *out = NULL;
    return amp_fail(error, AMP_NO_MEMORY, "cannot start a thread to load images");
}

amp_loaded_image amp_image_loader_next(amp_image_loader *l)
{
    pthread_mutex_lock(&l->lock);
    slot *s = &l->slots[l->given % SLOTS];
    while (!s->filled) pthread_cond_wait(&l->changed, &l->lock);
    amp_loaded_image loaded = s->image;
    s->filled = 0;
    ++l->given;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    return loaded;
}

void amp_image_loader_stop(amp_image_loader *l)
{
    if (!l) return;
    pthread_mutex_lock(&l->lock);
    l->stopping = 1;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->thread_count; i++) pthread_join(l->threads[i], NULL);
    for (int i = 0; i < SLOTS; i++)
        if (l->slots[i].filled) free(l->slots[i].image.fitted);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    free(l);
}
