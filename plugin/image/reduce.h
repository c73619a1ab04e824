/* Shrinks photos for the image cache: chooses the largest reduction that still leaves enough pixels for the
 * network's input, and averages blocks of pixels. */
#pragma once

#include <stddef.h>

/* A decoded photo, reduced from photo_w x photo_h pixels to (h,w,c) bytes. Each pixel is the average of a
 * block of reduction x reduction pixels of the photo; blocks at the right and lower edges may be smaller. */
typedef struct amp_pixels {
    unsigned char *bytes;
    int w, h, c;
    int photo_w, photo_h, reduction;
} amp_pixels;

static inline size_t amp_pixels_size(const amp_pixels *p)
{
    return (size_t)p->w * (size_t)p->h * (size_t)p->c;
}

/* The size to which the data loader scales photos in training. */
typedef struct amp_photo_use {
    double w, h;   /* the largest size, in pixels, of a whole photo in the network's input, before jitter */
    double jitter; /* the largest fraction by which a side of the photo changes before the photo is fitted
                      into w x h; -1: the photo is stretched to w x h */
} amp_photo_use;

/* Returns the largest reduction (1, 2, 4 or 8) that leaves enough pixels of a photo of w x h pixels: each
 * side must keep at least scale·N pixels if it can cover up to N pixels of the network's input. Returns 1 if
 * scale is 0. */
int amp_reduction(const amp_photo_use *use, double scale, int w, int h);

/* The length of a side of `length` pixels after the reduction. */
static inline int amp_reduced_length(int length, int reduction)
{
    return length / reduction + (length % reduction > 0);
}

/* Reduces a whole photo in place: replaces p->bytes by rounded averages and sets w, h and reduction. The
 * caller has set bytes (from malloc), c, photo_w and photo_h. Returns 0 if out of memory. */
int amp_pixels_reduce(amp_pixels *p, int reduction);
