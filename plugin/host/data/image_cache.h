/* Converts the bytes of a decoded image to Darknet's floats, faster than Darknet does. With `cache=ram` or
 * `cache=disk` it also keeps the bytes, so that each image of the training list is decoded only once.
 *
 * Photos are kept reduced to what the network can see of them (../../image/reduce.h). With a cache, a
 * training sees every photo reduced, also those that were not kept, so that its result does not depend on
 * which were kept. Reading an image draws no random numbers. Images for measuring accuracy are read as
 * without a cache.
 *
 * cache=ram: an image stays until the program ends. When the memory is full, no more images are kept: images
 * are drawn at random, so the first ones are as good a choice as any. Loaders do not wait for each other. For
 * cache=disk see cache_file.h. */
#pragma once

#include "../../image/sample.h"
#include "../../image/reduce.h"
#include "data_files.h"
#include "text_lines.h"

/* Requests a cache of this list's images, reduced by `scale` (amp_reduction). Takes ownership of the list.
 * file: where the cache is with cache=disk. */
void amp_image_cache_ask(amp_lines *list, amp_cache_kind kind, double scale, const char *file);

/* If a cache was requested, opens it and prints how many images it expects to keep. Called when the network
 * is known. bytes: the RAM that the training leaves free; pixels: the number of pixels of a typical reduced
 * image. AMP_IO_FAILED: the file cannot be used, or there is too little space on the disk. */
amp_status amp_image_cache_open(const amp_photo_use *use, size_t bytes, size_t pixels, amp_error *error);

/* Whether images are kept. */
int amp_image_cache_is_used(void);

/* Called when the calling thread begins to load (trains: for a training), and when it has finished. */
void amp_image_cache_begin(int trains);
void amp_image_cache_end(void);

/* The reduction for the photo of w x h pixels that the calling thread loads next. */
int amp_image_cache_reduction(int w, int h);

/* find is called before a file is read. It returns the image's floats if the cache has the image, otherwise
 * NULL. add takes ownership of the pixels that a file was decoded to and returns the image's floats; NULL: no
 * memory. The caller owns the w x h x c floats. After darknet_amp_want_pixels the returned block contains no
 * image, and w x h is the size of the whole photo. channels: the requested number; 0: as many as the file
 * has. */
float *amp_image_cache_find(const char *file, int channels, int *w, int *h, int *c);
float *amp_image_cache_add(const char *file, int channels, const amp_pixels *pixels, int *w, int *h, int *c);

/* Called at a training's end: prints a line about the cache, if there is one. */
void amp_image_cache_summary(void);
