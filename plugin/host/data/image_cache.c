/* The cache of image_cache.h: a table of all paths, made before there are loaders. What a loader adds is one
 * pointer in it, which is set once and never again. */
#include "image_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "../../image/sample.h"
#include "../../include/darknet_amp.h"
#include "../program/failure.h"
#include "loader_memory.h"

/* As the decoder made it: `channels` were asked for (0: as many as the file has), c are there, those of a
 * pixel side by side. */
typedef struct kept { unsigned char *pixels; int channels, w, h, c; } kept;

typedef struct slot { const char *path; _Atomic(kept *) image; } slot;

/* The image that loaders get where no image of the list can be read. */
enum { BLACK_SIDE = 32, BLACK_CHANNELS = 4 };

static struct {
    pthread_once_t once;
    float floats[256];  /* what Darknet makes of a byte */
    amp_lines list;
    slot *slots;        /* one for each path of the list, sorted by it; NULL: no image is kept */
    atomic_llong left;  /* bytes */
    atomic_ulong images, bytes, asked, found;
    unsigned char black[BLACK_SIDE * BLACK_SIDE * BLACK_CHANNELS];
} cache = { .once = PTHREAD_ONCE_INIT };

/* Whether the calling thread gets black images only. */
static _Thread_local int only_black;

/* The image that the calling thread has loaded as bytes, until it is sampled. */
static _Thread_local struct {
    int wanted, has_turn;
    amp_pixels image;   /* bytes NULL: none is loaded, or it was made floats */
    unsigned char *own; /* its bytes; NULL: they are the cache's */
} loaded;

/* ---- pixels ---- */

static void make_floats(void)
{
    for (int i = 0; i < 256; i++) cache.floats[i] = (float)(i / 255.);
}

/* (h,w,c) bytes → (c,h,w) floats, which the caller frees; where bytes are wanted, a block without meaning
 * that the caller frees. NULL: there is no memory. */
static float *floats_of(const unsigned char *pixels, int w, int h, int c)
{
    size_t count = (size_t)w * (size_t)h, channels = (size_t)c;
    float *floats = malloc(loaded.wanted ? 1 : count * channels * sizeof *floats);
    if (!floats) darknet_amp_unreadable("there is no memory for its %d x %d pixels", w, h);
    else if (loaded.wanted) loaded.image = (amp_pixels){ pixels, w, h, c };
    if (!floats || loaded.wanted) return floats;
    pthread_once(&cache.once, make_floats);
    for (size_t k = 0; k < channels; k++) /* all channels in one loop take 1.4 times as long */
        for (size_t i = 0; i < count; i++) floats[k * count + i] = cache.floats[pixels[i * channels + k]];
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

int amp_image_cache_is_used(void) { return cache.slots != NULL; }

void amp_image_cache_only_black(int on) { only_black = on; }
int amp_image_cache_is_black(void) { return only_black; }

static unsigned char *black_bytes(int channels, int *w, int *h, int *c)
{
    *w = *h = BLACK_SIDE;
    *c = channels;
    return cache.black;
}

/* NULL also where it was decoded to another number of channels. */
unsigned char *darknet_amp_kept_bytes(const char *file, int channels, int *w, int *h, int *c)
{
    if (only_black) return black_bytes(channels == 0 || channels == 1 ? 1 : 3, w, h, c); /* OpenCV's grey */
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
    if (loaded.wanted && !loaded.has_turn) loaded.has_turn = amp_loaders_begin_turn(file);
    const unsigned char *kept = only_black ? black_bytes(channels ? channels : 3, w, h, c)
                                           : darknet_amp_kept_bytes(file, channels, w, h, c);
    return kept ? floats_of(kept, *w, *h, *c) : NULL;
}

float *amp_image_cache_add(const char *file, int channels, unsigned char *pixels, int w, int h, int c)
{
    float *floats = floats_of(pixels, w, h, c);
    if (floats && keep(file, channels, pixels, w, h, c, 0)) return floats;
    if (floats && loaded.wanted) loaded.own = pixels;
    else free(pixels);
    return floats;
}

void darknet_amp_keep_bytes(const char *file, int channels, unsigned char *pixels, int w, int h, int c)
{
    keep(file, channels, pixels, w, h, c, 1);
}

void darknet_amp_want_pixels(void) { loaded.wanted = darknet_amp_reads(); }

/* The loaded image has been sampled: gives up its bytes, and the thread's turn. */
static void end_loaded(void)
{
    free(loaded.own);
    if (loaded.has_turn) amp_loaders_end_turn();
    memset(&loaded, 0, sizeof loaded);
}

static amp_samples samples_of(int count)
{
    amp_samples samples;
    if (!amp_samples_allocate(&samples, count)) amp_allocated(NULL);
    return samples;
}

static void sample(amp_samples *columns, amp_samples *rows, float *planes, size_t plane, int stride)
{
    if (!amp_sample_image(&loaded.image, columns, rows, planes, plane, (size_t)stride)) amp_allocated(NULL);
    amp_samples_free(columns);
    amp_samples_free(rows);
}

static int least(int a, int b) { return a < b ? a : b; }
static int most(int a, int b) { return a > b ? a : b; }

int darknet_amp_place_image(int w, int h, int dx, int dy, float *canvas, int canvas_w, int canvas_h)
{
    int left = most(dx, 0), top = most(dy, 0); /* of the part that lies in the canvas */
    int columns = least(dx + w, canvas_w) - left, rows = least(dy + h, canvas_h) - top;
    if (!loaded.image.bytes) return 0;
    if (columns > 0 && rows > 0) {
        amp_samples x = samples_of(columns), y = samples_of(rows);
        amp_samples_place(&x, left - dx, w, loaded.image.w);
        amp_samples_place(&y, top - dy, h, loaded.image.h);
        sample(&x, &y, canvas + (size_t)top * (size_t)canvas_w + left, (size_t)canvas_w * (size_t)canvas_h,
               canvas_w);
    }
    end_loaded();
    return 1;
}

float *darknet_amp_crop_image(int left, int top, int w, int h, int out_w, int out_h)
{
    size_t plane = (size_t)out_w * (size_t)out_h;
    if (!loaded.image.bytes) return NULL;
    float *planes = amp_allocated(malloc(plane * (size_t)loaded.image.c * sizeof *planes));
    amp_samples x = samples_of(out_w), y = samples_of(out_h);
    amp_samples_crop(&x, left, most(w, 1), loaded.image.w);
    amp_samples_crop(&y, top, most(h, 1), loaded.image.h);
    sample(&x, &y, planes, plane, out_w);
    end_loaded();
    return planes;
}

int darknet_amp_distort_image(float *planes, int count, int channels, float hue, float saturation,
                              float exposure)
{
    if (!darknet_amp_reads() || channels != 3 || hue < -1 || hue > 1) return 0;
    amp_distort_image(planes, (size_t)count, hue, saturation, exposure);
    return 1;
}

void amp_image_cache_summary(void)
{
    if (!cache.slots) return;
    amp_host_print("amp: cache=ram: %lu of %zu images were kept, %.1f MiB; of %lu that were loaded, %lu were "
                   "there already", cache.images, cache.list.count, (double)cache.bytes / 0x1p20, cache.asked,
                   cache.found);
}
