/* Reduced photos: chooses the reduction that loses nothing the network could see, and averages pixels. */
#pragma once

#include <stddef.h>

/* A decoded image: (h,w,c) bytes, the channels of a pixel side by side. It shows a photo of photo_w x
 * photo_h pixels; each of its own pixels averages a block of reduction x reduction of them, or the part of
 * a block that is left at the right and lower edges. */
typedef struct amp_pixels {
    unsigned char *bytes;
    int w, h, c;
    int photo_w, photo_h, reduction;
} amp_pixels;

static inline size_t amp_pixels_size(const amp_pixels *p)
{
    return (size_t)p->w * (size_t)p->h * (size_t)p->c;
}

/* How large a training's loader makes photos. */
typedef struct amp_photo_use {
    double w, h;   /* pixels over which it spreads a whole photo's width and height at most */
    double jitter; /* where it is fitted into w x h, the part by which its sides change before; -1: it is
                    * stretched to w x h */
} amp_photo_use;

/* The largest of 1, 2, 4 and 8 by which a photo of w x h pixels can be reduced, so that each side still has
 * `scale` times the pixels that it is spread over. scale 0: 1. */
int amp_reduction(const amp_photo_use *use, double scale, int w, int h);

/* Pixels of a side of `length` pixels, reduced. */
static inline int amp_reduced_length(int length, int reduction)
{
    return length / reduction + (length % reduction > 0);
}

/* Replaces p->bytes by rounded averages and sets w, h and reduction. Before the call bytes (from malloc), c,
 * photo_w and photo_h are those of the whole photo. Returns 0 if there is no memory. */
int amp_pixels_reduce(amp_pixels *p, int reduction);
