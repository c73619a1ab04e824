/* Turns the bytes of a decoded image into Darknet's floats, faster than Darknet does; and, with `cache=ram`
 * or `cache=disk`, keeps the bytes, so that each image of the training list is decoded only once.
 *
 * What is kept are photos reduced as far as the network cannot tell (../../image/reduce.h). With a cache a
 * training sees reduced photos whether they were kept or not, so that its result does not depend on that;
 * reading an image draws no random numbers. What is measured is read as without a cache.
 *
 * cache=ram: an image stays until the program ends: images are drawn at random, so none is a better choice
 * than those that came first. Loaders do not wait for each other. cache=disk: cache_file.h. */
#pragma once

#include "../../image/sample.h"
#include "../../image/reduce.h"
#include "data_files.h"
#include "text_lines.h"

/* The images of this list are to be kept, reduced by `scale` (amp_reduction); with cache=disk in `file`. The
 * list becomes the cache's. */
void amp_image_cache_ask(amp_lines *list, amp_cache_kind kind, double scale, const char *file);

/* Called once the network is known, and how many bytes of RAM the training leaves free: if a cache was asked
 * for, begins to keep images, and prints how many it expects to keep. pixels: of a typical image, reduced.
 * AMP_IO_FAILED: the file cannot be used, or there is too little space on the disk. */
amp_status amp_image_cache_open(const amp_photo_use *use, size_t bytes, size_t pixels, amp_error *error);

/* Whether images are kept. */
int amp_image_cache_is_used(void);

/* The calling thread begins to load, for a training or not, and has ended. */
void amp_image_cache_begin(int trains);
void amp_image_cache_end(void);
/* From now on the calling thread gets black images only, whatever file it asks for, until it has ended.
 * is_black: whether it does. */
void amp_image_cache_only_black(void);
int amp_image_cache_is_black(void);

/* The reduction of what the calling thread loads next, a photo of w x h pixels. */
int amp_image_cache_reduction(int w, int h);

/* find: before a file is read: its floats, if it was kept; else NULL. add: a file was decoded to these
 * pixels, which are taken over: its floats; NULL: there is no memory. Floats are the caller's, w x h x c of
 * them, which is the size of the photo, not reduced, where they are a block without meaning
 * (darknet_amp_want_pixels). channels: as many as were asked for; 0: as many as the file has. */
float *amp_image_cache_find(const char *file, int channels, int *w, int *h, int *c);
float *amp_image_cache_add(const char *file, int channels, const amp_pixels *pixels, int *w, int *h, int *c);

/* Called at a training's end: prints a line about the cache, if there is one. */
void amp_image_cache_summary(void);
