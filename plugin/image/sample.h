/* Turns an image's bytes into a network's floats: bilinear sampling, and changes of hue, saturation and
 * exposure. Except where a comment says otherwise, the results differ from those of the Darknet functions
 * named below by at most 1e-6. They are bit-identical on all processors. */
#pragma once

#include "reduce.h"

/* Samples along one axis. Sample i is first_weight[i]·pixel[first[i]] + second_weight[i]·pixel[second[i]]. An
 * unused pixel has weight 0, but its index is valid, so it may be read. */
typedef struct amp_samples {
    int count;
    int *first, *second;
    float *first_weight, *second_weight;
} amp_samples;

/* Allocates memory for `count` samples, which amp_samples_free frees. Returns 0 if out of memory. */
int amp_samples_allocate(amp_samples *samples, int count);
void amp_samples_free(amp_samples *samples);

/* Like pjreddie's place_image: spreads `placed` samples over an axis of `length` pixels, and stores
 * samples->count of them, beginning with number `first`. Pixels outside the axis get weight 0. */
void amp_samples_place(amp_samples *samples, int first, int placed, int length);

/* Like AlexeyAB's crop_image followed by resize_image: spreads all samples over a crop of `cropped` pixels
 * that begins at pixel `begin` of an axis of `length` pixels. A pixel outside the axis is replaced by the
 * nearest one on the axis. The last sample is exactly the crop's last pixel. (In resize_image, rounding may
 * put the last sample past this pixel; the last row is then black.) */
void amp_samples_crop(amp_samples *samples, int begin, int cropped, int length);

/* Converts samples of one axis of a photo to samples of the reduced photo at the same positions. length:
 * pixels of the reduced photo on this axis. */
void amp_samples_reduce(amp_samples *samples, int reduction, int length);

/* Samples an image into c planes, one for each channel. A plane has rows->count rows of columns->count floats
 * from 0 to 1. Planes are `plane` floats apart, rows `stride` floats. Returns 0 if out of memory. */
int amp_sample_image(const amp_pixels *image, const amp_samples *columns, const amp_samples *rows,
                     float *planes, size_t plane, size_t stride);

/* Like Darknet's distort_image, in place. planes: red, green and blue, `count` floats each. Turns the hue by
 * `hue` (from -1 to 1; 1 is a full turn), multiplies HSV's saturation and value by `saturation` and
 * `exposure`, and clamps the results to 0 … 1. The results are within 1e-6 of the exact numbers. If a pixel's
 * hue rounds to a full turn, Darknet makes the pixel magenta, and this function makes it red. */
void amp_distort_image(float *planes, size_t count, float hue, float saturation, float exposure);

/* The loops over a row of pixels, compiled for one instruction set. */
typedef struct amp_pixel_rows {
    const char *name; /* "base", "avx2", "avx512" */
    /* Computes one channel of one row of samples. near: the row of pixels above the samples; far: the row
     * below. Each is (2,count) bytes: the left pixels of all samples, then the right ones. y[i] is the
     * weighted sum of sample i's four pixels, divided by 255. */
    void (*sample)(const unsigned char *near, const unsigned char *far, const float *first_weight,
                   const float *second_weight, float near_weight, float far_weight, float *y, size_t count);
    void (*distort)(float *r, float *g, float *b, size_t count, float hue, float saturation, float exposure);
} amp_pixel_rows;

/* Returns the loops with this index, counted from 0; NULL if this processor cannot run them or if they do not
 * exist. A higher index is faster. */
const amp_pixel_rows *amp_pixel_rows_at(int index);
