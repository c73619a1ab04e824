/* The loops over one row of pixels, compiled for each instruction set that rows.c lists. */
#pragma once

#include <stddef.h>

typedef struct amp_pixel_rows {
    const char *name; /* "base", "avx2", "avx512" */
    /* One channel of one row of samples. near and far: bytes from the row of pixels above the samples and
     * from the one below it, (2,count): first the left pixel of each sample, then the right one. y[i] = the
     * weighted sum of the four, divided by 255. */
    void (*sample)(const unsigned char *near, const unsigned char *far, const float *first_weight,
                   const float *second_weight, float near_weight, float far_weight, float *y, size_t count);
    void (*distort)(float *r, float *g, float *b, size_t count, float hue, float saturation, float exposure);
} amp_pixel_rows;

/* best: the fastest loops that this processor can run. at: the loops of number `index`, from 0, that it can
 * run; NULL if there are no more. */
const amp_pixel_rows *amp_pixel_rows_best(void);
const amp_pixel_rows *amp_pixel_rows_at(int index);
