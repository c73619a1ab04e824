/* Decoding image files by stb_image, which Darknet's image.c holds. hank-ai's Darknet decodes by OpenCV. */
#include "own.h"

#ifndef DARKNET_AMP_HANK_AI
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "stb_image.h"

unsigned char *amp_own_decode(const char *path, int channels, int *w, int *h, const char **why)
{
    int in_file;
    unsigned char *pixels = stbi_load(path, w, h, &in_file, channels);
    if (!pixels) *why = access(path, R_OK) ? strerror(errno) : stbi_failure_reason();
    return pixels;
}

int amp_own_image_size(const char *path, int *w, int *h)
{
    int channels;
    return stbi_info(path, w, h, &channels);
}
#endif
