/* The cache of image_cache.h: a table of all paths, made before there are loaders. What a loader adds is one
 * pointer in it, which is set once and never again. */
#include "image_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "../../include/darknet_amp.h"
#include "../program/failure.h"
#include "loader_memory.h"

/* As the decoder made it: `channels` were asked for (0: as many as the file has), c are there, those of a
 * pixel side by side. */
typedef struct kept { unsigned char *pixels; int channels, w, h, c; } kept;

typedef struct slot { const char *path; _Atomic(kept *) image; } slot;

static struct {
    pthread_once_t once;
    float floats[256];  /* what Darknet makes of a byte */
    amp_lines list;
    slot *slots;        /* one for each path of the list, sorted by it; NULL: no image is kept */
    atomic_llong left;  /* bytes */
    atomic_ulong images, bytes, asked, found;
} cache = { .once = PTHREAD_ONCE_INIT };

/* The image that the calling thread has loaded to place it a plane at a time, as (count,channels) bytes. */
static _Thread_local struct {
    int wanted, has_turn;
    const unsigned char *pixels; /* NULL: no image is loaded, or it was made floats as a whole */
    unsigned char *own;          /* pixels; NULL: they are the cache's */
    size_t count, channels;
} planes;

/* ---- pixels ---- */

static void make_floats(void)
{
    for (int i = 0; i < 256; i++) cache.floats[i] = (float)(i / 255.);
}

/* Channel k of (count,channels) bytes → count floats from 0 to 1. All channels in one loop, pixel by pixel,
 * take 1.4 times as long. */
static void make_plane(float *floats, const unsigned char *pixels, size_t count, size_t channels, size_t k)
{
    for (size_t i = 0; i < count; i++) floats[i] = cache.floats[pixels[i * channels + k]];
}

/* (h,w,c) bytes → (c,h,w) floats, the caller's; where planes are wanted, room for (h,w) that are not made
 * yet. NULL: there is no memory. */
static float *floats_of(const unsigned char *pixels, int w, int h, int c)
{
    size_t count = (size_t)w * (size_t)h, channels = (size_t)c;
    float *floats = malloc(count * (planes.wanted ? 1 : channels) * sizeof *floats);
    if (!floats) {
        darknet_amp_unreadable("there is no memory for its %d x %d pixels", w, h);
        return NULL;
    }
    pthread_once(&cache.once, make_floats);
    if (planes.wanted) {
        planes.pixels = pixels;
        planes.count = count;
        planes.channels = channels;
    } else for (size_t k = 0; k < channels; k++) make_plane(floats + k * count, pixels, count, channels, k);
    return floats;
}

/* ---- the table ---- */

static int compare_paths(const void *a, const void *b)
{
    return strcmp(((const slot *)a)->path, ((const slot *)b)->path);
}

/* NULL: the list does not name it. Of one that it names twice, always the same slot. */
static slot *place_of(const char *path)
{
    const slot wanted = { .path = path };
    return bsearch(&wanted, cache.slots, cache.list.count, sizeof wanted, compare_paths);
}

void amp_image_cache_ask(amp_lines *list)
{
    cache.list = *list;
    *list = (amp_lines){ 0 };
}

void amp_image_cache_open(size_t bytes, size_t pixels)
{
    size_t each = pixels * 3 + sizeof(kept), count = cache.list.count, table = count * sizeof *cache.slots;
    if (!count || cache.slots) return;
    bytes = bytes > table ? bytes - table : 0;
    size_t fit = bytes / each < count ? bytes / each : count;
    cache.slots = calloc(count, sizeof *cache.slots);
    if (!cache.slots) {
        fprintf(stderr, "amp: cache=ram: no memory for a table of %zu images: none is kept\n", count);
        return;
    }
    for (size_t i = 0; i < count; i++) cache.slots[i].path = cache.list.line[i];
    qsort(cache.slots, count, sizeof *cache.slots, compare_paths);
    cache.left = (long long)bytes;
    fprintf(stderr, "amp: cache=ram: room for %zu of the %zu images of the training list, decoded about %.1f "
            "MiB; %.0f MiB of RAM are free for them\n", fit, count, (double)(fit * each) / 0x1p20,
            (double)bytes / 0x1p20);
}

/* Whether the image is kept, which takes its pixels over, or a copy of them where `copies` is set. A loader
 * that decoded the same image at the same time may have been first. */
static int keep(const char *path, int channels, unsigned char *pixels, int w, int h, int c, int copies)
{
    slot *s = cache.slots ? place_of(path) : NULL;
    size_t size = (size_t)w * (size_t)h * (size_t)c;
    long long bytes = (long long)(size + sizeof(kept));
    kept *image = NULL, *none = NULL;
    if (!s || atomic_load(&s->image)) return 0;
    if (atomic_fetch_sub(&cache.left, bytes) >= bytes) image = malloc(sizeof *image);
    if (image && copies) {
        unsigned char *copy = malloc(size);
        pixels = copy ? memcpy(copy, pixels, size) : NULL;
    }
    if (image) *image = (kept){ pixels, channels, w, h, c };
    if (image && pixels && atomic_compare_exchange_strong(&s->image, &none, image)) {
        cache.images++;
        cache.bytes += (unsigned long)bytes;
        return 1;
    }
    if (image && copies) free(pixels);
    free(image);
    cache.left += bytes;
    return 0;
}

/* NULL also where it was decoded to another number of channels. */
unsigned char *darknet_amp_kept_bytes(const char *file, int channels, int *w, int *h, int *c)
{
    slot *s = cache.slots ? place_of(file) : NULL;
    const kept *image = s ? atomic_load(&s->image) : NULL;
    cache.asked += s != NULL;
    if (!image || image->channels != channels) return NULL;
    cache.found++;
    *w = image->w;
    *h = image->h;
    *c = image->c;
    return image->pixels;
}

/* ---- what is read ---- */

float *amp_image_cache_find(const char *file, int channels, int *w, int *h, int *c)
{
    if (planes.wanted && !planes.has_turn) planes.has_turn = amp_loaders_begin_turn(file);
    const unsigned char *pixels = darknet_amp_kept_bytes(file, channels, w, h, c);
    return pixels ? floats_of(pixels, *w, *h, *c) : NULL;
}

float *amp_image_cache_add(const char *file, int channels, unsigned char *pixels, int w, int h, int c)
{
    float *floats = floats_of(pixels, w, h, c);
    if (floats && keep(file, channels, pixels, w, h, c, 0)) return floats;
    if (floats && planes.wanted) planes.own = pixels;
    else free(pixels);
    return floats;
}

void darknet_amp_keep_bytes(const char *file, int channels, unsigned char *pixels, int w, int h, int c)
{
    keep(file, channels, pixels, w, h, c, 1);
}

void darknet_amp_want_planes(void) { planes.wanted = darknet_amp_reads(); }

int darknet_amp_next_plane(int k, float *floats, int *channels, float **canvas, int canvas_plane)
{
    if (!planes.pixels && k == 0) return 1;
    if (k < (int)planes.channels) {
        make_plane(floats, planes.pixels, planes.count, planes.channels, (size_t)k);
        *channels = 1;
        if (k) *canvas += canvas_plane;
        return 1;
    }
    if (planes.pixels) {
        *channels = k;
        *canvas -= (k - 1) * canvas_plane;
    }
    free(planes.own);
    if (planes.has_turn) amp_loaders_end_turn();
    memset(&planes, 0, sizeof planes);
    return 0;
}

void amp_image_cache_summary(void)
{
    if (!cache.slots) return;
    amp_host_print("amp: cache=ram: %lu of %zu images were kept, %.1f MiB; of %lu that were loaded, %lu were "
                   "there already", cache.images, cache.list.count, (double)cache.bytes / 0x1p20, cache.asked,
                   cache.found);
}
