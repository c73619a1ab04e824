/* What loader threads make of a decoded image: Darknet's floats, faster than Darknet does; and, with
 * `cache=ram`, bytes that are kept, so that each image of the training list is decoded once.
 *
 * Pixels stay bytes in the cache, a quarter of their floats. An image stays until the program ends: images
 * are drawn at random, so that those that came first are as good as any. Nothing of a training's result
 * depends on what is kept: reading an image draws no random numbers. No loader waits for another one here. */
#pragma once

#include "data_files.h"

/* From now on, in the whole program; before any loader is started. */
void amp_image_cache_watch(void);

/* cache=ram was given: of the images of this list, which becomes the cache's. */
void amp_image_cache_ask(amp_path_list *list);

/* Once it is known that this many bytes of RAM are left beside the training: begins to keep images, if that
 * was asked for, and says on stderr of how many it expects to. pixels: of one of them, about. */
void amp_image_cache_open(size_t bytes, size_t pixels);

/* The end of a training: a line on stderr, none without a cache. */
void amp_image_cache_summary(void);
