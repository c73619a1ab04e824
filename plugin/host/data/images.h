/* Records which image files a network's input was filled from, for debug=1 and for the lines about spikes.
 *
 * Loader threads pick paths at random and load each image into a row of floats. Another thread copies a row
 * into a network's input later, while the next rows are already being loaded. So rows are identified by their
 * addresses. A loader records the paths that it picked (darknet_amp_paths), then the rows that it made from
 * them (amp_images_loaded). get_next_batch records which rows it copies to which input (amp_images_filled)
 * before it frees them; until then no other row has the same address. Nothing is recorded unless
 * amp_images_note was called. */
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

/* The path of image number `one` (0 to images - 1) of the `images` images in input; the caller frees it.
 * NULL: unknown. */
char *amp_images_path(const float *input, int images, int one);

/* ---- filling.c ----
 *
 * Darknet copies a batch in the thread that trains, and frees its images there after the step. Under AMP
 * several threads copy, and free each image as soon as it is copied, so that loaders can use the memory. */

/* Copies `count` rows of `floats` floats to input, one after the other, frees each row and sets it to NULL.
 * If a thread cannot be started, fewer threads copy. */
void amp_filling_copy(float *input, float **rows, int count, size_t floats);
