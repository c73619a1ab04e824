/* Prefetches images, each in its own thread. */
#include "evaluation.h"

#include <pthread.h>
#include <unistd.h>

#include "../../host/program/failure.h"

enum { MOST_AHEAD = 4 };

/* An image that is being read, or has been read. */
typedef struct slot {
    pthread_t thread;
    int is_started;          /* 0: the image was read without a thread */
    const struct amp_image_loader *loader;
    const char *path;
    amp_loaded_image image;
} slot;

typedef struct amp_image_loader {
    const amp_lines *paths;
    int w, h, channels;
    amp_image_fit fit;
    size_t ahead;            /* the largest number of threads */
    slot slots[MOST_AHEAD];  /* image i is in slot i % ahead */
    size_t begun, given;     /* number of images whose reading was started; number of images returned */
} amp_image_loader;

static void *load(void *argument)
{
    slot *s = argument;
    const amp_image_loader *l = s->loader;
    amp_loaded_image *out = &s->image;
    const char *why;
    out->fitted = amp_fork_read_image(s->path, l->w, l->h, l->channels, l->fit, out->size, &why);
    if (!out->fitted)
        snprintf(out->failure, sizeof out->failure, "%s: cannot read the image: %s", s->path, why);
    return NULL;
}

static void begin_next(amp_image_loader *l)
{
    if (l->begun == l->paths->count) return;
    slot *s = &l->slots[l->begun % l->ahead];
    *s = (slot){ .loader = l, .path = l->paths->line[l->begun++] };
    s->is_started = !pthread_create(&s->thread, NULL, load, s);
    if (!s->is_started) load(s);
}

/* Waits for the next image, and returns its slot. */
static slot *finish_next(amp_image_loader *l)
{
    slot *s = &l->slots[l->given++ % l->ahead];
    if (s->is_started) pthread_join(s->thread, NULL);
    return s;
}

struct amp_image_loader *amp_image_loader_start(const amp_lines *paths, int w, int h, int channels,
                                                amp_image_fit fit)
{
    amp_image_loader *l = amp_allocated(calloc(1, sizeof *l));
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    *l = (amp_image_loader){ .paths = paths, .w = w, .h = h, .channels = channels, .fit = fit };
    l->ahead = processors < 1 ? 1 : processors > MOST_AHEAD ? MOST_AHEAD : (size_t)processors;
    for (size_t i = 0; i < l->ahead; i++) begin_next(l);
    return l;
}

amp_loaded_image amp_image_loader_next(amp_image_loader *l)
{
    slot *s = finish_next(l);
    amp_loaded_image loaded = s->image;
    begin_next(l);
    return loaded;
}

void amp_image_loader_stop(amp_image_loader *l)
{
    while (l->given < l->begun) free(finish_next(l)->image.fitted);
    free(l);
}
