/* Reading image files by libjpeg-turbo, and by stb_image, which Darknet's image.c holds: the one place where
 * builds without OpenCV decode, for training, measuring and predicting. Builds with OpenCV read by
 * darknet_amp_opencv.hpp. */
#include "own.h"

#ifndef DARKNET_AMP_HANK_AI
#include <string.h>
#include <sys/stat.h>

#include "../../image/jpeg.h"
#include "../../include/darknet_amp.h"
#include "../data/image_cache.h"
#include "stb_image.h"

/* How many pixels a byte of a file can hold, for kinds of files that hold more than runs of equal pixels
 * do. */
static const struct { const char *begins; size_t length; double pixels; } kinds[] = {
    { "\x89PNG", 4, 1e9 }, /* stb_image itself refuses those that end early, before it has made much */
    { "\xff\xd8", 2, 512 }, { "GIF8", 4, 2048 }, { "S\x80\xf6\x34", 4, 16384 } };
static const double run = 128; /* of all other kinds */

/* Whether the file, of which nothing has been read yet, can hold an image of the size that its header says.
 * stb_image makes zeros of what a file lacks: without this check a few bytes could cost the memory and the
 * time of the largest image. */
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
    darknet_amp_unreadable("its header says %d x %d pixels, which cannot be in its %lld bytes", w, h,
                           (long long)status.st_size);
    return 0;
}

/* Rows of *w pixels of *c bytes each, which free() frees. NULL: darknet_amp_unreadable knows why. */
static unsigned char *decode(FILE *file, int channels, int *w, int *h, int *c)
{
    int known = stbi_info_from_file(file, w, h, c); /* which rewinds it */
    if (known && (!darknet_amp_image_fits(*w, *h, *c) || !holds(file, *w, *h))) return NULL;
    unsigned char *pixels = amp_jpeg_decode(file, channels, w, h, c);
    if (!pixels) pixels = stbi_load_from_file(file, w, h, c, channels);
    if (!pixels) darknet_amp_unreadable("%s", stbi_failure_reason());
    else if (channels) *c = channels;
    if (!pixels || darknet_amp_image_fits(*w, *h, *c)) return pixels;
    free(pixels);
    return NULL;
}

static unsigned char *decode_named(const char *name, int channels, int *w, int *h, int *c)
{
    FILE *file = fopen(name, "rb");
    unsigned char *pixels = file ? decode(file, channels, w, h, c) : NULL;
    if (file) fclose(file);
    return pixels;
}

int darknet_amp_read_image(const char *file, int channels, int *w, int *h, int *c, float **data)
{
    if (!darknet_amp_reads()) return 0;
    *data = NULL;
    if (!darknet_amp_bad_image(file, 0)) {
        *data = amp_image_cache_find(file, channels, w, h, c);
        unsigned char *pixels = *data ? NULL : decode_named(file, channels, w, h, c);
        if (pixels) *data = amp_image_cache_add(file, channels, pixels, *w, *h, *c);
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
