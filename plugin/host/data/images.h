/* Which image files a network's input was filled from: for debug=1, and for the lines about spikes.
 *
 * Loader threads pick paths at random and make rows of numbers of them; a row is copied into a network's
 * input later, by another thread, while the next rows are already being loaded. So the trail follows the
 * rows' addresses: a loader notes the paths it picked (darknet_amp_paths), then the rows it made of them
 * (amp_images_loaded), and get_next_batch notes which of them it copies where (amp_images_filled), before it
 * frees them: until then no other row has the same address. Nothing is noted unless amp_images_note was
 * called. */
#pragma once

#include <stddef.h>

/* From now on all loaders of the program note what they load. Call it before any loader is started. */
void amp_images_note(void);

/* The calling thread's loader has replaced the i-th path that it picked by `path`. */
void amp_images_replaced(int i, const char *path);

/* The calling thread's loader has made these rows from the paths that it picked. */
void amp_images_loaded(float *const *row, int rows);

/* Called before these rows are freed: they are copied to a network's input, one row per image. */
void amp_images_filled(const float *input, float **rows, int count);

/* The file of image number `one` (0 to images - 1) of the `images` images in input; the caller frees it.
 * NULL: unknown. */
char *amp_images_path(const float *input, int images, int one);

/* ---- filling.c ----
 *
 * Darknet copies a batch in the thread that trains, and frees its images there after the step. Under AMP
 * several threads copy, and free each image as soon as it is copied, so that loaders can use the memory. */

/* Copies `count` rows of `floats` floats to input, one after the other, frees each row and sets it to NULL.
 * If a thread cannot be started, fewer threads copy. */
void amp_filling_copy(float *input, float **rows, int count, size_t floats);
