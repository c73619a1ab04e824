/* What is sampled from an image's bytes is what Darknet's functions make of its floats; every instruction set
 * computes the same bits. A photo is reduced as far as a network cannot tell, by averages, whose samples lie
 * in the photo's places. */
#include "testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "darknet.h"
#include "image/sample.h"

image crop_image(image im, int dx, int dy, int w, int h);
void place_image(image im, int w, int h, int dx, int dy, image canvas);
void distort_image(image im, float hue, float sat, float val);

/* Colours that change by a few levels from pixel to pixel, so that -Ofast may round a sample's place. */
static amp_pixels picture(int w, int h, int c)
{
    unsigned char *bytes = malloc((size_t)(w * h * c));
    for (int i = 0; i < w * h * c; i++) {
        int level = (i % c + 1) * (i / c % w) + 2 * (i / c / w) + 80 * (i % c);
        bytes[i] = (unsigned char)(level % 512 < 256 ? level % 256 : 255 - level % 256);
    }
    return (amp_pixels){ bytes, w, h, c, w, h, 1 };
}

static image floats_of(const amp_pixels *p)
{
    image floats = make_image(p->w, p->h, p->c);
    for (int i = 0; i < p->w * p->h; i++)
        for (int k = 0; k < p->c; k++) floats.data[k * p->w * p->h + i] = (float)p->bytes[i * p->c + k] / 255;
    return floats;
}

/* The plugin places samples as Darknet does when it is compiled with -Ofast. With sanitizers Darknet is not,
 * and divides: a place differs by up to 8e-6 of a pixel, and neighbouring pixels by up to half of the
 * range. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MOST 4e-6f
#else
#define MOST 1e-6f
#endif

static void check_equal(const float *ours, const float *darknets, int count, float most)
{
    for (int i = 0; i < count; i++)
        if (!(fabsf(ours[i] - darknets[i]) <= most))
            fail_msg("number %d is %.8g, Darknet's %.8g", i, (double)ours[i], (double)darknets[i]);
}

/* Sizes of an image, of the network, and where the image is placed, or of its crop. */
static const struct { int w, h, c, out_w, out_h, part_w, part_h, x, y; } cases[] = {
    { 37, 23, 3, 16, 16, 16, 10, 0, 3 },    { 8, 8, 3, 32, 32, 32, 32, 0, 0 },
    { 64, 48, 3, 24, 24, 30, 20, -3, 2 },   { 64, 48, 1, 24, 24, 31, 50, -7, -26 },
    { 40, 30, 4, 24, 20, 20, 12, 2, 5 },    { 1, 1, 3, 8, 8, 8, 8, 0, 0 },
    { 33, 1, 3, 8, 8, 20, 3, 5, -1 },       { 100, 80, 3, 104, 56, 90, 99, 14, -20 },
    { 50, 40, 3, 17, 17, 17, 17, 4, 4 },
};

TEST(an_image_is_placed_as_darknet_places_it)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int w = cases[i].out_w, h = cases[i].out_h, dx = cases[i].x, dy = cases[i].y;
        amp_pixels p = picture(cases[i].w, cases[i].h, cases[i].c);
        image floats = floats_of(&p), darknets = make_image(w, h, p.c), ours = make_image(w, h, p.c);
        place_image(floats, cases[i].part_w, cases[i].part_h, dx, dy, darknets);
        int left = dx > 0 ? dx : 0, top = dy > 0 ? dy : 0;
        int right = dx + cases[i].part_w < w ? dx + cases[i].part_w : w;
        int bottom = dy + cases[i].part_h < h ? dy + cases[i].part_h : h;
        amp_samples x, y;
        assert_true(amp_samples_allocate(&x, right - left) && amp_samples_allocate(&y, bottom - top));
        amp_samples_place(&x, left - dx, cases[i].part_w, p.w);
        amp_samples_place(&y, top - dy, cases[i].part_h, p.h);
        assert_true(amp_sample_image(&p, &x, &y, ours.data + top * w + left, (size_t)(w * h), (size_t)w));
        check_equal(ours.data, darknets.data, w * h * p.c, MOST);
        amp_samples_free(&x);
        amp_samples_free(&y);
        free_image(floats);
        free_image(darknets);
        free_image(ours);
        free((void *)p.bytes);
    }
}

/* But for the last row, which Darknet may make black (sample.h): of that the last pixel. */
TEST(a_crop_is_resized_as_darknet_resizes_it)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int w = cases[i].out_w, h = cases[i].out_h;
        amp_pixels p = picture(cases[i].w, cases[i].h, cases[i].c);
        image floats = floats_of(&p), ours = make_image(w, h, p.c);
        image cropped = crop_image(floats, cases[i].x, cases[i].y, cases[i].part_w, cases[i].part_h);
        image darknets = resize_image(cropped, w, h);
        amp_samples x, y;
        assert_true(amp_samples_allocate(&x, w) && amp_samples_allocate(&y, h));
        amp_samples_crop(&x, cases[i].x, cases[i].part_w, p.w);
        amp_samples_crop(&y, cases[i].y, cases[i].part_h, p.h);
        assert_true(amp_sample_image(&p, &x, &y, ours.data, (size_t)(w * h), (size_t)w));
        for (int k = 0; k < p.c; k++) {
            check_equal(ours.data + k * w * h, darknets.data + k * w * h, w * (h - 1), 1e-6f);
            assert_true(fabsf(ours.data[(k + 1) * w * h - 1] -
                              cropped.data[(k + 1) * cropped.w * cropped.h - 1]) <= 1e-6f);
        }
        amp_samples_free(&x);
        amp_samples_free(&y);
        free_image(floats);
        free_image(cropped);
        free_image(darknets);
        free_image(ours);
        free((void *)p.bytes);
    }
}

/* All corners of the colours, greys, and what lies between them. */
static image colours(void)
{
    enum { LEVELS = 9 };
    image all = make_image(LEVELS * LEVELS, LEVELS, 3);
    for (int i = 0; i < LEVELS * LEVELS * LEVELS; i++)
        for (int k = 0, rest = i; k < 3; k++, rest /= LEVELS)
            all.data[k * all.w * all.h + i] = (float)(rest % LEVELS) / (LEVELS - 1);
    return all;
}

static const float changes[][3] = { /* hue, saturation, exposure */
    { 0, 1, 1 }, { .11f, 1.5f, 1.5f }, { -.11f, .66666f, .66666f }, { .47f, 2, .5f },
    { -.93f, 1, 1 }, { .87f, .3f, 3 },
};

/* distort_image in double, in the words of its source; hue from 0 to 6. */
static void change(double pixel[3], double hue, double saturation, double exposure)
{
    double r = pixel[0], g = pixel[1], b = pixel[2], v = fmax(r, fmax(g, b)), delta = v - fmin(r, fmin(g, b));
    double s = v > 0 ? delta / v * saturation : 0, h = 0;
    if (delta > 0) h = r == v ? (g - b) / delta : g == v ? 2 + (b - r) / delta : 4 + (r - g) / delta;
    h = fmod((h < 0 ? h + 6 : h) + 6 * hue + 6, 6);
    v *= exposure;
    int sextant = (int)h;
    double f = h - sextant, p = v * (1 - s), q = v * (1 - s * f), t = v * (1 - s * (1 - f));
    const double all[6][3] = { { v, t, p }, { q, v, p }, { p, v, t }, { p, q, v }, { t, p, v }, { v, p, q } };
    for (int k = 0; k < 3; k++) pixel[k] = fmin(fmax(all[sextant][k], 0), 1);
}

/* Darknet's own rounding is as far from the exact numbers as ours. */
TEST(colours_are_changed_as_darknet_changes_them)
{
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        image ours = colours(), darknets = colours();
        distort_image(darknets, changes[i][0], changes[i][1], changes[i][2]);
        amp_distort_image(ours.data, (size_t)(ours.w * ours.h), changes[i][0], changes[i][1], changes[i][2]);
        check_equal(ours.data, darknets.data, 3 * ours.w * ours.h, 2e-6f);
        image plain = colours();
        int count = plain.w * plain.h;
        for (int j = 0; j < count; j++) {
            double exact[3];
            for (int k = 0; k < 3; k++) exact[k] = (double)plain.data[k * count + j];
            change(exact, (double)changes[i][0], (double)changes[i][1], (double)changes[i][2]);
            for (int k = 0; k < 3; k++)
                assert_true(fabs((double)ours.data[k * count + j] - exact[k]) <= 1e-6);
        }
        free_image(plain);
        free_image(ours);
        free_image(darknets);
    }
}

/* ---- reduced photos ---- */

TEST(a_photo_is_reduced_as_far_as_the_network_cannot_tell)
{
    static const struct { amp_photo_use use; double scale; int w, h, reduction; } photos[] = {
        { { 416, 416, 0 }, 2, 4000, 3000, 4 },   { { 416, 416, 0 }, 2, 3000, 4000, 4 },
        { { 416, 416, 0 }, 1, 4000, 3000, 8 },   { { 416, 416, 0 }, 0, 4000, 3000, 1 },
        { { 416, 416, 0 }, 2, 3332, 2500, 4 },   { { 416, 416, 0 }, 2, 3324, 2500, 2 },
        { { 416, 416, 0 }, 2, 640, 480, 1 },     { { 32, 32, 0 }, .5, 40, 30, 2 },
        { { 416, 416, .1 }, 2, 4000, 3000, 2 },  { { 416, 416, .1 }, 2, 4100, 2600, 4 },
        { { 416, 416, .3 }, 2, 4000, 3000, 2 },  { { 416, 416, .3 }, 2, 8000, 1600, 4 },
        { { 416, 416, 1 }, 1, 4000, 3000, 4 },   { { 608, 416, 0 }, 2, 4000, 3000, 2 },
        { { 416, 416, -1 }, 2, 4000, 3000, 2 },  { { 416 / .4, 416 / .4, -1 }, 2, 4000, 3000, 1 },
        { { 416e6, 416e6, -1 }, 2, 4000, 3000, 1 } };
    for (size_t i = 0; i < sizeof photos / sizeof *photos; i++)
        if (amp_reduction(&photos[i].use, photos[i].scale, photos[i].w, photos[i].h) != photos[i].reduction)
            fail_msg("photo %zu is not reduced by %d", i, photos[i].reduction);
}

TEST(pixels_are_averaged)
{
    static const unsigned char from[] = { 0, 9,  1, 8,  200, 7,  100, 6,  50, 255,
                                          2, 5,  4, 4,  201, 3,  101, 2,  51, 254,
                                          10, 1, 11, 0, 255, 255, 255, 254, 7, 0 };
    static const unsigned char to[] = { 2, 7,  151, 5,  51, 255,  11, 1,  255, 255,  7, 0 };
    amp_pixels p = { .bytes = malloc(sizeof from), .c = 2, .photo_w = 5, .photo_h = 3 };
    memcpy(p.bytes, from, sizeof from);
    assert_true(amp_pixels_reduce(&p, 2));
    assert_true(p.w == 3 && p.h == 2 && p.reduction == 2 && amp_pixels_size(&p) == sizeof to);
    assert_memory_equal(p.bytes, to, sizeof to);
    free(p.bytes);
}

/* Of a slope of one level a pixel, so that a sample tells its place: to the half level that an average is
 * rounded by. The outermost pixels of a reduced photo are repeated at its edges. */
TEST(a_reduced_photo_is_sampled_in_the_same_places)
{
    enum { LENGTH = 245, COUNT = 40 };
    for (int reduction = 2; reduction <= 8; reduction *= 2)
        for (int crops = 0; crops < 2; crops++) {
            float whole[COUNT], reduced[COUNT], *planes[] = { whole, reduced };
            amp_pixels p = { malloc(LENGTH), LENGTH, 1, 1, LENGTH, 1, 1 };
            for (int i = 0; i < LENGTH; i++) p.bytes[i] = (unsigned char)i;
            for (int k = 0; k < 2; k++) {
                amp_samples x, y;
                if (k) assert_true(amp_pixels_reduce(&p, reduction));
                assert_true(amp_samples_allocate(&x, COUNT) && amp_samples_allocate(&y, 1));
                if (crops) amp_samples_crop(&x, 11, 200, LENGTH);
                else amp_samples_place(&x, 0, COUNT, LENGTH);
                amp_samples_place(&y, 0, 1, 1);
                amp_samples_reduce(&x, p.reduction, p.w);
                amp_samples_reduce(&y, p.reduction, p.h);
                assert_true(amp_sample_image(&p, &x, &y, planes[k], COUNT, COUNT));
                amp_samples_free(&x);
                amp_samples_free(&y);
            }
            for (int i = crops ? 0 : 1; i < (crops ? COUNT : COUNT - 1); i++)
                if (!(fabsf(whole[i] - reduced[i]) * 255 < .51f))
                    fail_msg("1/%d, sample %d: %g, %g", reduction, i, (double)whole[i], (double)reduced[i]);
            free(p.bytes);
        }
}

TEST(every_instruction_set_computes_the_same_bits)
{
    enum { COUNT = 243 }; /* of no vector's length */
    unsigned char near[2 * COUNT], far[2 * COUNT];
    float first[COUNT], second[COUNT], base[COUNT], other[COUNT];
    for (int i = 0; i < 2 * COUNT; i++) {
        near[i] = (unsigned char)(i * 37);
        far[i] = (unsigned char)(i * 101 + 5);
    }
    for (int i = 0; i < COUNT; i++) first[i] = 1 - (second[i] = (float)(i * 7 % COUNT) / COUNT);
    image plain = colours();
    size_t count = (size_t)(plain.w * plain.h);
    amp_pixel_rows_at(0)->sample(near, far, first, second, .3f, .7f, base, COUNT);
    amp_distort_image(plain.data, count, .07f, 1.3f, .9f);
    for (int i = 0; amp_pixel_rows_at(i); i++) {
        const amp_pixel_rows *rows = amp_pixel_rows_at(i);
        image wide = colours();
        rows->sample(near, far, first, second, .3f, .7f, other, COUNT);
        assert_memory_equal(other, base, sizeof base);
        rows->distort(wide.data, wide.data + count, wide.data + 2 * count, count, .07f, 1.3f, .9f);
        assert_memory_equal(wide.data, plain.data, 3 * count * sizeof(float));
        free_image(wide);
    }
    free_image(plain);
}

int main(void) { return run_listed_tests("sample", NULL, NULL); }
