/* Reads image files with libjpeg-turbo, or with the stb_image in Darknet's image.c. Builds with OpenCV read
 * them in darknet_amp_opencv.hpp instead. */
#include "own.h"

#ifndef DARKNET_AMP_HANK_AI
#include <string.h>
#include <sys/stat.h>

#include "../../image/jpeg.h"
#include "../../include/darknet_amp.h"
#include "../data/image_cache.h"
#include "stb_image.h"

/* For each format, the most pixels that one byte of a file can encode. */
static const struct { const char *begins; size_t length; double pixels; } kinds[] = {
    { "\x89PNG", 4, 1e9 }, /* stb_image rejects a truncated PNG before it allocates much */
    { "\xff\xd8", 2, 512 }, { "GIF8", 4, 2048 }, { "S\x80\xf6\x34", 4, 16384 } };
static const double run = 128; /* the same for all other formats */

/* Whether the file is long enough for the image size in its header. The stream must be positioned at the
 * start of the file. stb_image fills missing data with zeros, so without this check, decoding a file of a few
 * bytes could take as much memory and time as the largest image. */
static int holds(FILE *file, int w, int h)
{
    char first[4] = "";
    struct stat status = { .st_size = 0 };
    double most = run;
    int read = fread(first, 1, sizeof first, file) > 0 && fstat(fileno(file), &status) == 0;
    rewind(file);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!memcmp(first, kinds[i].begins, kinds[i].length)) most = kinds[i].pixels;
    if (!read || (double)w * h <= most * (double)status.st_size) return 1;
    darknet_amp_unreadable("its header says %d x %d pixels, too many for its %lld bytes", w, h,
                           (long long)status.st_size);
    return 0;
}

static int decode_by_stb(FILE *file, int channels, amp_pixels *p)
{
    p->bytes = stbi_load_from_file(file, &p->photo_w, &p->photo_h, &p->c, channels);
    if (!p->bytes) darknet_amp_unreadable("%s", stbi_failure_reason());
    else if (channels) p->c = channels;
    if (p->bytes && darknet_amp_image_fits(p->photo_w, p->photo_h, p->c)) {
        if (amp_pixels_reduce(p, amp_image_cache_reduction(p->photo_w, p->photo_h))) return 1;
        darknet_amp_unreadable("not enough memory to scale it down");
    }
    free(p->bytes);
    return 0;
}

/* Decodes the image, and shrinks it if it will be cached. Returns 0 after a failure, whose reason
 * darknet_amp_unreadable has noted. The caller frees p->bytes. */
static int decode(FILE *file, int channels, amp_pixels *p)
{
    int w, h, known = stbi_info_from_file(file, &w, &h, &p->c); /* also rewinds the file */
    if (known && (!darknet_amp_image_fits(w, h, p->c) || !holds(file, w, h))) return 0;
    p->reduction = known ? amp_image_cache_reduction(w, h) : 1;
    p->bytes = amp_jpeg_decode(file, channels, p->reduction, &p->w, &p->h, &p->c);
    if (!p->bytes) return decode_by_stb(file, channels, p);
    p->photo_w = known ? w : p->w;
    p->photo_h = known ? h : p->h;
    if (darknet_amp_image_fits(p->w, p->h, p->c)) return 1;
    free(p->bytes);
    return 0;
}

static int decode_named(const char *name, int channels, amp_pixels *p)
{
    FILE *file = fopen(name, "rb");
    int is_decoded = file && decode(file, channels, p);
    if (file) fclose(file);
    return is_decoded;
}

int darknet_amp_read_image(const char *file, int channels, int *w, int *h, int *c, float **data)
{
    if (!darknet_amp_reads()) return 0;
    *data = NULL;
    if (!darknet_amp_bad_image(file, 0)) {
        *data = amp_image_cache_find(file, channels, w, h, c);
        amp_pixels pixels;
        if (!*data && decode_named(file, channels, &pixels))
            *data = amp_image_cache_add(file, channels, &pixels, w, h, c);
        if (!*data) darknet_amp_bad_image(file, 1);
    }
    if (!*data) *w = *h = *c = 0;
    return 1;
}

int amp_own_image_size(const char *path, int *w, int *h)
{
    int c;
    FILE *file = fopen(path, "rb");
    int known = file && stbi_info_from_file(file, w, h, &c) && darknet_amp_image_fits(*w, *h, c) &&
                holds(file, *w, *h);
    if (file) fclose(file);
    return known;
}
#endif
