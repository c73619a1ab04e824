/* Decoding JPEGs by libjpeg-turbo, in half the time that stb_image takes. A build without the library decodes
 * nothing here. */
#pragma once

#include <stdio.h>

/* What `amp version` says of the library. */
const char *amp_jpeg_library(void);

/* Decodes the image of a file, of which nothing has been read yet → (h,w,c) bytes, which the caller frees.
 * channels: 1 or 3, or 0 for as many as the file has. reduction: 1, or 2, 4 or 8 for a reduced image
 * (reduce.h), which takes less time. Returns NULL, and rewinds the file, if it is not a JPEG, is of a kind
 * that the libraries read differently (CMYK), or makes libjpeg-turbo warn, as a truncated one does: stb_image
 * then decides whether the image is used, as it always did, and names what is wrong. Both ignore an EXIF
 * orientation. */
unsigned char *amp_jpeg_decode(FILE *file, int channels, int reduction, int *w, int *h, int *c);
