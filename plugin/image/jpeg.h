/* Decodes JPEGs with libjpeg-turbo, in half the time that stb_image takes. A build without the library
 * decodes none: amp_jpeg_decode then returns NULL. */
#pragma once

#include <stdio.h>

/* The name and version of the library, for `amp version`. */
const char *amp_jpeg_library(void);

/* Decodes a file, from its start, into (h,w,c) bytes, which the caller frees. channels: 1 or 3; 0: as many as
 * the file has. reduction: 1, or 2, 4 or 8 for a reduced image (reduce.h), which takes less time.
 *
 * Returns NULL and rewinds the file if it is not a JPEG, if libjpeg-turbo and stb_image decode this kind of
 * JPEG differently (CMYK), or if libjpeg-turbo warns, for example because the file is truncated. The caller
 * then tries stb_image, which decodes the file or says what is wrong. Both libraries ignore an EXIF
 * orientation. */
unsigned char *amp_jpeg_decode(FILE *file, int channels, int reduction, int *w, int *h, int *c);
