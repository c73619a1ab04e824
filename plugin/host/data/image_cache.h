/* Converts the bytes of decoded images to Darknet's floats and, with `cache=ram` or `cache=disk`, keeps the
 * bytes, so that each image of the training list is decoded only once.
 *
 * Photos are reduced to the resolution that the network can use (../../image/reduce.h), even those that are
 * not kept: the training's result must not depend on which photos are kept. Images for measuring accuracy
 * bypass the cache.
 *
 * With cache=ram, an image stays until the program ends; when the memory is full, no more images are kept.
 * (Images are drawn at random, so the first ones are as good as any.) For cache=disk see cache_file.h. */
#pragma once

#include "../../image/sample.h"
#include "../../image/reduce.h"
#include "data_files.h"
#include "text_lines.h"

/* Requests a cache of this list's images, reduced by `scale` (see amp_reduction). Takes ownership of the
 * list. file: the cache file, used with cache=disk. */
void amp_image_cache_ask(amp_lines *list, amp_cache_kind kind, double scale, const char *file);

/* Opens the requested cache, if any, and prints how many images it expects to keep. bytes: the RAM that the
 * training leaves free. pixels: the pixels in a typical reduced image. AMP_IO_FAILED: see
 * amp_cache_file_open. */
amp_status amp_image_cache_open(const amp_photo_use *use, size_t bytes, size_t pixels, amp_error *error);

/* Whether a cache is open and keeps images. */
int amp_image_cache_is_used(void);

/* A thread calls begin before it loads images, and end afterwards. trains=1: it loads for a training. */
void amp_image_cache_begin(int trains);
void amp_image_cache_end(void);

/* Returns the reduction for a photo of w x h pixels that the calling thread is about to load. */
int amp_image_cache_reduction(int w, int h);

/* Call find before a file is read: it returns the image's floats if the cache has the image, otherwise NULL.
 * Call add after the file was decoded: it takes ownership of the pixels and returns the floats; NULL: no
 * memory. The caller owns the w x h x c floats. After darknet_amp_want_pixels the image stays bytes until it
 * is sampled: the returned block has no content, and w x h is the whole photo's size. channels=0: as many as
 * the file has. */
float *amp_image_cache_find(const char *file, int channels, int *w, int *h, int *c);
float *amp_image_cache_add(const char *file, int channels, const amp_pixels *pixels, int *w, int *h, int *c);

/* Prints a line about the cache at the end of a training, if there is a cache. */
void amp_image_cache_summary(void);
