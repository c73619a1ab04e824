/* Loaded images to where a network reads them.
 *
 * Darknet copies a batch in the thread that trains, and frees its images there once the step is done. Under
 * AMP several threads copy, and each frees an image as soon as it is copied, to loaders that
 * need it then. */
#pragma once

#include <stddef.h>

/* How many threads copy that many bytes: one a processor that the program may use, but none for little work
 * and no more than memory can feed. */
int amp_filling_threads(size_t bytes);

/* input[i] = rows[i] for `count` rows of `floats` floats. Each row is freed, and NULL then. Where no thread
 * can be had, fewer copy. */
void amp_filling_copy(float *input, float **rows, int count, size_t floats);
