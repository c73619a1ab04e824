/* Converts the bytes of decoded images to Darknet's floats, faster than Darknet does. With `cache=ram` or
 * `cache=disk`, it also keeps the bytes, so that each image of the training list is decoded only once.
 *
 * Kept photos are reduced to the resolution that the network can use (../../image/reduce.h). If there is a
 * cache, a training reduces every photo, even those that are not kept. So the training's result does not
 * depend on which photos are kept. Reading an image draws no random numbers. Images for measuring accuracy
 * bypass the cache.
 *
 * With cache=ram, an image stays until the program ends. When the memory is full, no more images are kept.
 * (Images are drawn at random, so the first ones are as good a choice as any.) Loaders do not wait for each
 * other. For cache=disk see cache_file.h. */
#pragma once

#include "../../image/sample.h"
#include "../../image/reduce.h"
#include "data_files.h"
#include "text_lines.h"

/* Requests a cache of this list's images, reduced by `scale` (see amp_reduction). Takes ownership of the
 * list. file: the cache file, used with cache=disk. */
void amp_image_cache_ask(amp_lines *list, amp_cache_kind kind, double scale, const char *file);

/* If a cache was requested, opens it and prints how many images it expects to keep. Call it when the network
 * is known. bytes: the RAM that the training leaves free. pixels: the number of pixels of a typical reduced
 * image. AMP_IO_FAILED: the cache file cannot be used, or the disk has too little space. */
amp_status amp_image_cache_open(const amp_photo_use *use, size_t bytes, size_t pixels, amp_error *error);

/* Whether a cache is open and keeps images. */
int amp_image_cache_is_used(void);

/* A thread calls begin before it loads images, and end when it has finished. trains=1: the thread loads for a
 * training. */
void amp_image_cache_begin(int trains);
void amp_image_cache_end(void);

/* Returns the reduction for a photo of w x h pixels that the calling thread is about to load. */
int amp_image_cache_reduction(int w, int h);

/* Call find before a file is read. It returns the image's floats if the cache has the image, otherwise NULL.
 * Call add after the file was decoded: it takes ownership of the pixels and returns the image's floats, or
 * NULL if there is no memory. The caller owns the w x h x c floats. After darknet_amp_want_pixels the
 * image stays bytes until it is sampled: the returned block then has no content, and w x h is the size of the
 * whole photo. channels: the requested number; 0: as many as the file has. */
float *amp_image_cache_find(const char *file, int channels, int *w, int *h, int *c);
float *amp_image_cache_add(const char *file, int channels, const amp_pixels *pixels, int *w, int *h, int *c);

/* Prints a line about the cache at the end of a training, if there is a cache. */
void amp_image_cache_summary(void);
