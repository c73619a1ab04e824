/* Turns an image's bytes into a network's floats: bilinear sampling, and changes of hue, saturation and
 * exposure. The results are those of the Darknet functions named below, to 1e-6, with the same bits on every
 * processor. */
#pragma once

#include "reduce.h"

/* The places of samples on one axis: sample i is first_weight[i]·pixel[first[i]] +
 * second_weight[i]·pixel[second[i]]. A pixel that does not count has weight 0, but its index is within the
 * image too. */
typedef struct amp_samples {
    int count;
    int *first, *second;
    float *first_weight, *second_weight;
} amp_samples;

/* Allocates room for `count` samples, which amp_samples_free frees. Returns 0 if there is no memory. */
int amp_samples_allocate(amp_samples *samples, int count);
void amp_samples_free(amp_samples *samples);

/* As pjreddie's place_image: of `placed` samples that cover an axis of `length` pixels, sets the samples from
 * number `first` on, samples->count of them. */
void amp_samples_place(amp_samples *samples, int first, int placed, int length);

/* As AlexeyAB's crop_image and resize_image: sets all samples of a crop of `cropped` pixels that begins at
 * pixel `begin` of an axis of `length` pixels. A pixel outside the axis is replaced by the nearest one on the
 * axis. The last sample is exactly the crop's last pixel; in resize_image the last row is black if rounding
 * puts it after the last pixel. */
void amp_samples_crop(amp_samples *samples, int begin, int cropped, int length);

/* Moves samples on an axis of a photo to the same places on that axis of the reduced photo, which has
 * `length` pixels. */
void amp_samples_reduce(amp_samples *samples, int reduction, int length);

/* Writes rows->count rows of columns->count floats from 0 to 1 into each of the image's c planes. Planes are
 * `plane` floats apart, rows `stride` floats. Returns 0 if there is no memory. */
int amp_sample_image(const amp_pixels *image, const amp_samples *columns, const amp_samples *rows,
                     float *planes, size_t plane, size_t stride);

/* As Darknet's distort_image, in place, on `count` pixels in three planes of `count` floats; the results are
 * within 1e-6 of the exact numbers. Turns the hue by `hue` (from -1 to 1; 1 is a full turn), multiplies
 * saturation and value, and clamps the results to 0 … 1. If a pixel's hue rounds to a full turn, Darknet
 * makes the pixel magenta; here it is red. */
void amp_distort_image(float *planes, size_t count, float hue, float saturation, float exposure);

/* The loops over one row of pixels, for one instruction set. */
typedef struct amp_pixel_rows {
    const char *name; /* "base", "avx2", "avx512" */
    /* Makes one channel of one row of samples. near: bytes of the row of pixels above the samples; far: of
     * the row below. Both are (2,count): the left pixels of all samples, then the right ones. y[i] = the
     * weighted sum of a sample's four pixels, divided by 255. */
    void (*sample)(const unsigned char *near, const unsigned char *far, const float *first_weight,
                   const float *second_weight, float near_weight, float far_weight, float *y, size_t count);
    void (*distort)(float *r, float *g, float *b, size_t count, float hue, float saturation, float exposure);
} amp_pixel_rows;

/* Of the loops that this processor can run, those with number `index`, counted from 0; NULL if there are no
 * more. The last ones are the fastest. */
const amp_pixel_rows *amp_pixel_rows_at(int index);
