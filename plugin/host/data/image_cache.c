/* See image_cache.h. With cache=ram, the cache is a table with one slot per path, made before any loader
 * starts. A loader adds an image by setting the slot's pointer atomically, once. */
#include "image_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "../../image/jpeg.h"
#include "../../include/darknet_amp.h"
#include "../program/failure.h"
#include "cache_file.h"
#include "loader_memory.h"

/* An image kept in RAM. channels: the number that was requested; 0: as many as the file has. */
typedef struct kept { int channels; amp_pixels pixels; } kept;

typedef struct slot { const char *path; _Atomic(kept *) image; } slot;

/* The size of the black image that loaders get if no image of the list can be read. */
enum { BLACK_SIDE = 32, BLACK_CHANNELS = 4 };

static struct {
    pthread_once_t once;
    float floats[256];  /* the float to which Darknet converts each byte */
    amp_cache_kind kind;
    amp_photo_use use;
    double scale;
    char *name;
    amp_lines list;
    int is_open;
    slot *slots;        /* cache=ram: one slot per path of the list, sorted by path; NULL: nothing is kept */
    amp_cache_file *file; /* cache=disk: the open file; NULL: nothing is kept */
    atomic_llong left;  /* cache=ram: bytes that are still free */
    /* counts of this run: images that were added; their bytes; images that loaders requested; requested
     * images that the cache had */
    atomic_ulong images, bytes, asked, found;
    unsigned char black[BLACK_SIDE * BLACK_SIDE * BLACK_CHANNELS];
} cache = { .once = PTHREAD_ONCE_INIT };

/* 1: the calling thread loads for a training. */
static _Thread_local int trains;

/* The image that the calling thread loaded most recently. */
static _Thread_local struct {
    /* wanted: the image stays bytes until it is sampled. has_turn: see amp_loaders_begin_turn */
    int wanted, has_turn;
    amp_pixels image;        /* its bytes are NULL if no image is loaded, or if it was converted to floats */
    unsigned char *own;      /* the image's bytes if this thread owns them; NULL: the cache owns them */
    amp_cache_mapping mapped; /* cache=disk: the mapping that contains the image's bytes */
    uint64_t key;            /* cache=disk: the image's key */
} loaded;

/* ---- pixels ---- */

static void make_floats(void)
{
    for (int i = 0; i < 256; i++) cache.floats[i] = (float)(i / 255.);
}

/* Converts (h,w,c) bytes to (c,h,w) floats, which the caller frees. NULL: no memory. If loaded.wanted is set,
 * does not convert: keeps the bytes in `loaded`, sets *w and *h to the size of the photo before its
 * reduction, and returns a block without content. */
static float *floats_of(const amp_pixels *p, int *w, int *h, int *c)
{
    size_t count = (size_t)p->w * (size_t)p->h, channels = (size_t)p->c;
    float *floats = malloc(loaded.wanted ? 1 : count * channels * sizeof *floats);
    *w = loaded.wanted ? p->photo_w : p->w;
    *h = loaded.wanted ? p->photo_h : p->h;
    *c = p->c;
    if (!floats) darknet_amp_unreadable("not enough memory for its %d x %d pixels", p->w, p->h);
    else if (loaded.wanted) loaded.image = *p;
    if (!floats || loaded.wanted) return floats;
    pthread_once(&cache.once, make_floats);
    for (size_t k = 0; k < channels; k++) /* a single loop over all channels takes 1.4 times as long */
        for (size_t i = 0; i < count; i++) floats[k * count + i] = cache.floats[p->bytes[i * channels + k]];
    return floats;
}

/* ---- the table ---- */

static int compare_paths(const void *a, const void *b)
{
    return strcmp(((const slot *)a)->path, ((const slot *)b)->path);
}

/* Returns the slot of a path; NULL: the path is not in the list. If it is in the list twice, returns the same
 * slot each time. */
static slot *place_of(const char *path)
{
    const slot wanted = { .path = path };
    return bsearch(&wanted, cache.slots, cache.list.count, sizeof wanted, compare_paths);
}

static void open_table(size_t bytes, size_t pixels)
{
    size_t each = pixels * 3 + sizeof(kept), count = cache.list.count, table = count * sizeof *cache.slots;
    bytes = bytes > table ? bytes - table : 0;
    size_t fit = bytes / each < count ? bytes / each : count;
    cache.slots = calloc(count, sizeof *cache.slots);
    if (!cache.slots) {
        fprintf(stderr, "amp: cache=ram: not enough memory for a table of %zu images; images will not be "
                "cached\n", count);
        return;
    }
    for (size_t i = 0; i < count; i++) cache.slots[i].path = cache.list.line[i];
    qsort(cache.slots, count, sizeof *cache.slots, compare_paths);
    cache.left = (long long)bytes;
    fprintf(stderr, "amp: cache=ram: room for %zu of the %zu images of the training list, which take about "
            "%.1f MiB decoded; %.0f MiB of RAM are free for them\n",
            fit, count, (double)(fit * each) / 0x1p20, (double)bytes / 0x1p20);
}

/* Returns 1 if the table now owns the image's bytes; 0: no room, or another loader has added it first. */
static int keep(const char *path, int channels, const amp_pixels *pixels, long long bytes)
{
    slot *s = cache.slots ? place_of(path) : NULL;
    kept *image = NULL, *none = NULL;
    if (!s || atomic_load(&s->image)) return 0;
    if (atomic_fetch_sub(&cache.left, bytes) >= bytes) image = malloc(sizeof *image);
    if (image) *image = (kept){ channels, *pixels };
    if (image && atomic_compare_exchange_strong(&s->image, &none, image)) return 1;
    free(image);
    cache.left += bytes;
    return 0;
}

static int find_in_table(const char *path, int channels, amp_pixels *pixels)
{
    slot *s = cache.slots ? place_of(path) : NULL;
    const kept *image = s ? atomic_load(&s->image) : NULL;
    if (!image || image->channels != channels) return 0;
    *pixels = image->pixels;
    return 1;
}

/* ---- the cache ---- */

void amp_image_cache_ask(amp_lines *list, amp_cache_kind kind, double scale, const char *file)
{
    cache.list = *list;
    cache.kind = kind;
    cache.scale = scale;
    cache.name = amp_allocated(strdup(file));
    *list = (amp_lines){ 0 };
}

amp_status amp_image_cache_open(const amp_photo_use *use, size_t bytes, size_t pixels, amp_error *error)
{
    if (!cache.kind || cache.is_open) return AMP_OK;
    cache.is_open = 1;
    cache.use = *use;
    if (cache.kind == AMP_CACHE_DISK)
        return amp_cache_file_open(cache.name, use, cache.scale, cache.list.count, pixels * 3, &cache.file,
                                   error);
    open_table(bytes, pixels);
    return AMP_OK;
}

int amp_image_cache_reduction(int w, int h)
{
    return trains && cache.is_open ? amp_reduction(&cache.use, cache.scale, w, h) : 1;
}

int amp_image_cache_is_used(void) { return cache.slots || cache.file; }

void amp_image_cache_begin(int for_training) { trains = for_training; }

/* Frees or unmaps the loaded image's bytes and ends the thread's turn. */
static void end_loaded(void)
{
    free(loaded.own);
    amp_cache_file_unmap(&loaded.mapped);
    if (loaded.has_turn) amp_loaders_end_turn();
    memset(&loaded, 0, sizeof loaded);
}

void amp_image_cache_end(void)
{
    end_loaded();
    trains = amp_this_thread()->only_black = 0;
}

/* ---- reading images ---- */

/* Returns 1 if the file need not be read: the cache has the image, or the thread gets black images. */
static int find(const char *file, const char *decoder, int channels, int black_channels, amp_pixels *p)
{
    *p = (amp_pixels){ cache.black, BLACK_SIDE, BLACK_SIDE, black_channels, BLACK_SIDE, BLACK_SIDE, 1 };
    if (amp_this_thread()->only_black) return 1;
    if (!trains || !cache.is_open) return 0;
    amp_cache_file_unmap(&loaded.mapped);
    cache.asked++;
    if (cache.file) loaded.key = amp_cache_file_key(cache.file, file, decoder, channels);
    int found = cache.file ? amp_cache_file_find(cache.file, loaded.key, p, &loaded.mapped)
                           : find_in_table(file, channels, p);
    cache.found += (unsigned long)found;
    return found;
}

/* Offers an image to the cache. Returns 1 if the cache takes ownership of the bytes. */
static int add(const char *file, int channels, const amp_pixels *p)
{
    size_t bytes = amp_pixels_size(p) + (cache.file ? 0 : sizeof(kept));
    int is_kept = trains && (cache.file ? amp_cache_file_add(cache.file, loaded.key, p)
                                     : keep(file, channels, p, (long long)bytes));
    if (is_kept) {
        cache.images++;
        cache.bytes += bytes;
    }
    return is_kept && !cache.file;
}

float *amp_image_cache_find(const char *file, int channels, int *w, int *h, int *c)
{
    amp_pixels p;
    if (loaded.wanted && !loaded.has_turn) loaded.has_turn = amp_loaders_begin_turn(file);
    if (!find(file, amp_jpeg_library(), channels, channels ? channels : 3, &p)) return NULL;
    return floats_of(&p, w, h, c);
}

float *amp_image_cache_add(const char *file, int channels, const amp_pixels *p, int *w, int *h, int *c)
{
    float *floats = floats_of(p, w, h, c);
    if (floats && add(file, channels, p)) return floats;
    if (floats && loaded.wanted) loaded.own = p->bytes;
    else free(p->bytes);
    return floats;
}

unsigned char *darknet_amp_kept_bytes(const char *file, int how, int *w, int *h, int *c)
{
    end_loaded();
    /* how: 2 * OpenCV's flag + is_rgb (darknet_amp_opencv.hpp); flag 0 means grey */
    if (!find(file, "OpenCV", how, how == 0 || how == 1 ? 1 : 3, &loaded.image)) return NULL;
    *w = loaded.image.w;
    *h = loaded.image.h;
    *c = loaded.image.c;
    return loaded.image.bytes;
}

unsigned char *darknet_amp_keep_bytes(const char *file, int how, unsigned char *pixels, int *w, int *h, int c)
{
    amp_pixels p = { .c = c, .photo_w = *w, .photo_h = *h };
    int reduction = amp_image_cache_reduction(*w, *h);
    if (!trains || !cache.is_open) return pixels;
    p.bytes = loaded.own = amp_allocated(malloc((size_t)*w * (size_t)*h * (size_t)c));
    memcpy(p.bytes, pixels, (size_t)*w * (size_t)*h * (size_t)c);
    if (!amp_pixels_reduce(&p, reduction)) amp_allocated(NULL);
    loaded.own = add(file, how, &p) ? NULL : p.bytes;
    loaded.image = p;
    *w = p.w;
    *h = p.h;
    return p.bytes;
}

int darknet_amp_photo(int *w, int *h)
{
    if (!loaded.image.bytes || loaded.image.reduction == 1) return 1;
    *w = loaded.image.photo_w;
    *h = loaded.image.photo_h;
    return loaded.image.reduction;
}

void darknet_amp_want_pixels(void) { loaded.wanted = darknet_amp_reads(); }

static amp_samples samples_of(int count)
{
    amp_samples samples;
    if (!amp_samples_allocate(&samples, count)) amp_allocated(NULL);
    return samples;
}

static void sample(amp_samples *columns, amp_samples *rows, float *planes, size_t plane, int stride)
{
    amp_samples_reduce(columns, loaded.image.reduction, loaded.image.w);
    amp_samples_reduce(rows, loaded.image.reduction, loaded.image.h);
    if (!amp_sample_image(&loaded.image, columns, rows, planes, plane, (size_t)stride)) amp_allocated(NULL);
    amp_samples_free(columns);
    amp_samples_free(rows);
}

static int least(int a, int b) { return a < b ? a : b; }
static int most(int a, int b) { return a > b ? a : b; }

int darknet_amp_place_image(int w, int h, int dx, int dy, float *canvas, int canvas_w, int canvas_h)
{
    int left = most(dx, 0), top = most(dy, 0); /* the canvas's first pixel that the image covers */
    int columns = least(dx + w, canvas_w) - left, rows = least(dy + h, canvas_h) - top;
    if (!loaded.wanted || !loaded.image.bytes) return 0;
    if (columns > 0 && rows > 0) {
        amp_samples x = samples_of(columns), y = samples_of(rows);
        amp_samples_place(&x, left - dx, w, loaded.image.photo_w);
        amp_samples_place(&y, top - dy, h, loaded.image.photo_h);
        sample(&x, &y, canvas + (size_t)top * (size_t)canvas_w + left, (size_t)canvas_w * (size_t)canvas_h,
               canvas_w);
    }
    end_loaded();
    return 1;
}

float *darknet_amp_crop_image(int left, int top, int w, int h, int out_w, int out_h)
{
    size_t plane = (size_t)out_w * (size_t)out_h;
    if (!loaded.wanted || !loaded.image.bytes) return NULL;
    float *planes = amp_allocated(malloc(plane * (size_t)loaded.image.c * sizeof *planes));
    amp_samples x = samples_of(out_w), y = samples_of(out_h);
    amp_samples_crop(&x, left, most(w, 1), loaded.image.photo_w);
    amp_samples_crop(&y, top, most(h, 1), loaded.image.photo_h);
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
    if (!cache.slots && !cache.file) return;
    amp_host_print("amp: cache=%s: %lu of %zu images were kept, %.1f MiB; of %lu loaded images, %lu came "
                   "from the cache", cache.file ? "disk" : "ram", cache.images, cache.list.count,
                   (double)cache.bytes / 0x1p20, cache.asked, cache.found);
}
