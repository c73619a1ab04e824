/* Turns the bytes of a decoded image into Darknet's floats, faster than Darknet does; and, with `cache=ram`,
 * keeps the bytes, so that each image of the training list is decoded only once.
 *
 * The cache keeps pixels as bytes, a quarter of the size of their floats. An image that is in it stays until
 * the program ends: images are drawn at random, so none is a better choice than those that came first. A
 * training's result does not depend on what is kept, because reading an image draws no random numbers.
 * Loaders do not wait for each other here. */
#pragma once

#include "text_lines.h"

/* cache=ram was given: the images of this list are to be kept. The list becomes the cache's. */
void amp_image_cache_ask(amp_lines *list);

/* Called once it is known how many bytes of RAM the training leaves free: if cache=ram was given, begins to
 * keep images in them, and prints how many it expects to keep. pixels: of a typical image. */
void amp_image_cache_open(size_t bytes, size_t pixels);

/* Whether images are kept. */
int amp_image_cache_is_used(void);

/* on: from now on the calling thread gets black images only, whatever file it asks for. is_black: whether it
 * does. */
void amp_image_cache_only_black(int on);
int amp_image_cache_is_black(void);

/* find: before a file is read: the image's floats and size, if it was kept; else NULL. add: a file was
 * decoded to w x h pixels of c bytes, which are taken over: its floats; NULL: there is no memory. Floats are
 * the caller's. channels: as many as were asked for; 0: as many as the file has. */
float *amp_image_cache_find(const char *file, int channels, int *w, int *h, int *c);
float *amp_image_cache_add(const char *file, int channels, unsigned char *pixels, int w, int h, int c);

/* Called at a training's end: prints a line about the cache, if there is one. */
void amp_image_cache_summary(void);
