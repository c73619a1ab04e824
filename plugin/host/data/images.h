/* Records which image files are in a network's input, for debug=1 and for the lines about spikes.
 *
 * A row, which is an image's floats, is identified by its address. A loader records the paths that it picked
 * (darknet_amp_paths), then the rows that it loaded from them (amp_images_loaded). get_next_batch records the
 * rows that it copies to an input (amp_images_filled), before it frees them, because a freed address may be
 * used again. Nothing is recorded unless amp_images_note was called. */
#pragma once

#include <stddef.h>

/* From now on all loaders of the program record what they load. Call it before any loader starts. */
void amp_images_note(void);

/* Records that the calling thread's loader uses `path` instead of the i-th path that it had picked. */
void amp_images_replaced(int i, const char *path);

/* Records that the calling thread's loader loaded these rows from the paths that it had picked. */
void amp_images_loaded(float *const *row, int rows);

/* Records that these rows, one per image, are copied to a network's input. */
void amp_images_filled(const float *input, float **rows, int count);

/* Returns the path of image number `one`, from 0, of the `images` images in `input`; the caller frees it.
 * NULL: unknown. */
char *amp_images_path(const float *input, int images, int one);

/* ---- filling.c ----
 *
 * Stock Darknet copies a batch in one thread and frees its images after the step. Under AMP several threads
 * copy, and free each image at once, so that loaders can reuse its memory. */

/* Copies `count` rows of `floats` floats to input, one after the other; frees them and sets them to NULL. */
void amp_filling_copy(float *input, float **rows, int count, size_t floats);
