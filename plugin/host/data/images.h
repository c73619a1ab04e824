/* Which image files a network's input was filled from: for debug=1, and for the lines about spikes.
 *
 * Loader threads pick paths at random and make rows of numbers of them; a row is copied into a network's
 * input later, by another thread, when the next rows are being loaded already. So the trail follows
 * the rows' addresses: a loader notes the paths it picked (darknet_amp_paths), then the rows it made
 * of them (amp_images_loaded), and get_next_batch which of them it copies where (amp_images_filled), before
 * it frees them: until then a row's address is its alone.
 * Nothing is noted unless some network asks for it. */
#pragma once

#include <stddef.h>

/* From now on all loaders of the program note what they load. Call it before any loader is started. */
void amp_images_note(void);

/* The calling thread's loader takes path for the i-th of those it picked. */
void amp_images_replaced(int i, const char *path);

/* The calling thread's loader has made these rows of the paths it picked. */
void amp_images_loaded(float *const *row, int rows);

/* These rows, which are still allocated, go to where they then lie in a network's input, one an image. */
void amp_images_filled(const float *input, float **rows, int count);

/* The file of one of the `images` images (0 to images - 1) that lie in input: the caller's; NULL where it is
 * not known. */
char *amp_images_path(const float *input, int images, int one);

/* ---- filling.c ----
 *
 * Darknet copies a batch in the thread that trains, and frees its images there once the step is done. Under
 * AMP several threads copy, and each frees an image as soon as it is copied, to loaders that need it then. */

/* How many threads copy that many bytes: one a processor that the program may use, but none for little work
 * and no more than memory can feed. */
int amp_filling_threads(size_t bytes);

/* input[i] = rows[i] for `count` rows of `floats` floats. Each row is freed, and NULL then. Where no thread
 * can be had, fewer copy. */
void amp_filling_copy(float *input, float **rows, int count, size_t floats);
