/* The loops over one row of pixels, compiled for each instruction set that rows.c lists. */
#pragma once

#include <stddef.h>

typedef struct amp_pixel_rows {
    const char *name; /* "base", "avx2", "avx512" */
    /* One channel of one row of samples. near and far: the row of pixels above the sample and the one below,
     * as bytes of the first pixel of each sample, then of the second: (2,count). y[i] = the weighted sum of
     * the four, over 255. */
    void (*sample)(const unsigned char *near, const unsigned char *far, const float *first_weight,
                   const float *second_weight, float near_weight, float far_weight, float *y, size_t count);
    void (*distort)(float *r, float *g, float *b, size_t count, float hue, float saturation, float exposure);
} amp_pixel_rows;

/* best: the fastest loops that this processor can run. at: those of number `index`, from 0; NULL: no more. */
const amp_pixel_rows *amp_pixel_rows_best(void);
const amp_pixel_rows *amp_pixel_rows_at(int index);
