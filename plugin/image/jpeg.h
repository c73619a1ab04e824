/* Decodes JPEGs with libjpeg-turbo, twice as fast as stb_image. In a build without libjpeg-turbo,
 * amp_jpeg_decode always returns NULL. */
#pragma once

#include <stdio.h>

/* The name and version of the JPEG library, for `amp version`. */
const char *amp_jpeg_library(void);

/* Decodes a JPEG file from its start. Returns (h,w,c) bytes, which the caller frees. channels: 1 or 3; 0: as
 * many as the file has. reduction: 1, or 2, 4 or 8 for a reduced image (see reduce.h), which takes less time.
 *
 * Returns NULL and rewinds the file if it is not a JPEG, if it is a kind that libjpeg-turbo and stb_image
 * decode differently (CMYK), or if libjpeg-turbo warns, for example because the file is truncated. The caller
 * then tries stb_image. Both libraries ignore EXIF orientation. */
unsigned char *amp_jpeg_decode(FILE *file, int channels, int reduction, int *w, int *h, int *c);
