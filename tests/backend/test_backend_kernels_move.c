/* Pooling, upsampling, channel copies, shortcuts, rearrangements and dropout of a backend, against loops in
 * double that follow Darknet's. */
#include "kernel_cases.h"

#include <float.h>

typedef struct pool_case { int n, h, w, c, size, stride, pad; } pool_case;

/* Darknet's default padding is size - 1. Non-overlapping, overlapping, gaps (stride > size), odd edges,
 * windows wholly in the padding (pad 6 at size 2), windows larger than the image. */
static const pool_case pools[] = { { 2, 8, 6, 16, 2, 2, 1 }, { 1, 7, 9, 17, 2, 2, 1 },
    { 1, 13, 13, 33, 2, 1, 1 }, { 2, 7, 8, 3, 3, 2, 2 }, { 1, 6, 5, 1, 3, 1, 2 }, { 1, 9, 9, 8, 5, 1, 4 },
    { 1, 5, 6, 15, 9, 1, 8 }, { 1, 9, 7, 20, 2, 3, 1 }, { 1, 6, 6, 4, 1, 2, 0 }, { 1, 6, 6, 5, 2, 2, 6 },
    { 1, 3, 3, 2, 15, 4, 14 }, { 2, 40, 40, 31, 3, 2, 0 },
    { 1, 6, 9, 18, 2, 2, 0 }, { 1, 7, 8, 3, 2, 2, 0 } /* the last column, the last row is not read */ };

static int pooled(int length, const pool_case *p) { return (length + p->pad - p->size) / p->stride + 1; }

/* The offset in x of place (r,m) of the window at output pixel o, or -1 outside the image. */
static long place(const pool_case *p, size_t o, int r, int m)
{
    int out_w = pooled(p->w, p), out_h = pooled(p->h, p), pixel = (int)(o / (size_t)p->c),
        c = (int)(o % (size_t)p->c);
    int row = pixel / out_w % out_h * p->stride - p->pad / 2 + r,
        column = pixel % out_w * p->stride - p->pad / 2 + m;
    if (row < 0 || row >= p->h || column < 0 || column >= p->w) return -1;
    return (((long)(pixel / (out_w * out_h)) * p->h + row) * p->w + column) * p->c + c;
}

TEST(maxpool_takes_the_first_greatest_of_each_window)
{
    NEEDS(maxpool_forward);
    for (size_t d = 0; d < 3; d++)
        for (size_t k = 0; k < COUNT(pools); k++) {
            const pool_case *p = &pools[k];
            amp_tensor x = filled(all_dtypes[d], p->n, p->h, p->w, p->c, 5, -3, 3);
            amp_tensor y = poisoned(all_dtypes[d], p->n, pooled(p->h, p), pooled(p->w, p), p->c);
            size_t count = amp_shape_count(x.shape), out = amp_shape_count(y.shape);
            /* Many ties. */
            for (size_t i = 0; i < count; i++) set_element(&x, i, roundf((float)element(&x, i)));
            for (size_t i = 0; i < count; i += 7) set_element(&x, i, NAN);
            for (size_t i = 1; i < count; i += 11) set_element(&x, i, -INFINITY);
            /* Channel 0: all NaN. */
            if (k & 1) for (size_t i = 0; i < count; i += (size_t)p->c) set_element(&x, i, NAN);
            uint8_t *choice = memory(out);
            memset(choice, 77, out);
            ASSERT_OK(CALL(maxpool_forward, &x, &y, choice, p->size, p->stride, p->pad, e));
            amp_tensor none = poisoned(all_dtypes[d], 1, 1, 1, 1);
            set_element(&none, 0, -FLT_MAX);
            for (size_t o = 0; o < out; o++) {
                double best = -(double)FLT_MAX;
                int which = 255;
                for (int r = 0; r < p->size; r++)
                    for (int m = 0; m < p->size; m++) {
                        long at = place(p, o, r, m);
                        if (at >= 0 && element(&x, (size_t)at) > best) {
                            best = element(&x, (size_t)at);
                            which = r * p->size + m;
                        }
                    }
                if (choice[o] != which)
                    fail_msg("choice[%zu] of pool %zu: got %d, want %d", o, k, choice[o], which);
                assert_true(element(&y, o) == (which == 255 ? element(&none, 0) : best));
            }
            release(x.data); release(y.data); release(none.data); release(choice);
        }
}

TEST(maxpool_gradient_goes_to_the_chosen_and_zero_elsewhere)
{
    NEEDS(maxpool_backward);
    NEEDS(maxpool_forward);
    for (size_t d = 0; d < 3; d++)
        for (size_t k = 0; k < COUNT(pools); k++)
            for (int accumulate = 0; accumulate < 2; accumulate++) {
                const pool_case *p = &pools[k];
                amp_tensor x = filled(all_dtypes[d], p->n, p->h, p->w, p->c, 5, -3, 3), old = copy_of(&x);
                amp_tensor y = poisoned(all_dtypes[d], p->n, pooled(p->h, p), pooled(p->w, p), p->c);
                amp_tensor dy = filled(all_dtypes[d], p->n, pooled(p->h, p), pooled(p->w, p), p->c, 6, -1, 1);
                amp_tensor dx = poisoned(all_dtypes[d], p->n, p->h, p->w, p->c);
                size_t count = amp_shape_count(x.shape), out = amp_shape_count(y.shape);
                uint8_t *choice = memory(out);
                double *want = calloc(count, sizeof *want), *size = calloc(count, sizeof *size);
                for (size_t i = 0; i < count; i += 3) set_element(&x, i, NAN);
                ASSERT_OK(CALL(maxpool_forward, &x, &y, choice, p->size, p->stride, p->pad, e));
                for (size_t o = 0; o < out; o++) {
                    if (choice[o] == 255) set_element(&dy, o, NAN); /* must not reach any element */
                    else {
                        long at = place(p, o, choice[o] / p->size, choice[o] % p->size);
                        if (o == out / 2) set_element(&dy, o, INFINITY);
                        want[at] += element(&dy, o);
                        size[at] += fabs(element(&dy, o));
                    }
                }
                if (accumulate) memcpy(dx.data, old.data, amp_tensor_bytes(&dx));
                ASSERT_OK(CALL(maxpool_backward, &dy, choice, &dx, p->size, p->stride, p->pad,
                               accumulate, e));
                for (size_t i = 0; i < count; i++) {
                    double base = accumulate ? element(&old, i) : 0, slack = 0x1p-23 * (size[i] + fabs(base));
                    if (!accumulate && size[i] == fabs(want[i]) && p->stride >= p->size) slack = 0;
                    assert_rounded(dx.dtype, element(&dx, i), base + want[i], isfinite(slack) ? slack : 0,
                                   "dx", i);
                }
                release(x.data); release(old.data); release(y.data); release(dy.data); release(dx.data);
                release(choice); free(want); free(size);
            }
}

static const int images[][4] = { { 1, 1, 1, 1 }, { 20, 7, 5, 3 }, { 3, 13, 13, 17 }, { 2, 3, 5, 24 },
    { 1, 2, 3, 130 }, { 1, 200, 210, 1 }, { 2, 26, 26, 64 } };

TEST(avgpool_averages_and_shares_out)
{
    NEEDS(avgpool_backward);
    NEEDS(avgpool_forward);
    for (size_t d = 0; d < 3; d++)
        for (size_t k = 0; k < COUNT(images); k++)
            for (int accumulate = 0; accumulate < 2; accumulate++) {
                const int *z = images[k];
                size_t channels = (size_t)z[3], pixels = (size_t)z[1] * z[2];
                amp_tensor x = filled(all_dtypes[d], z[0], z[1], z[2], z[3], 5, -1, 3);
                amp_tensor y = poisoned(all_dtypes[d], z[0], 1, 1, z[3]), dx = copy_of(&x);
                amp_tensor dy = filled(all_dtypes[d], z[0], 1, 1, z[3], 6, -1, 1);
                ASSERT_OK(CALL(avgpool_forward, &x, &y, e));
                for (size_t o = 0; o < amp_shape_count(y.shape); o++) {
                    double sum = 0, n = (double)pixels;
                    for (size_t p = 0; p < pixels; p++)
                        sum += element(&x, (o / channels * pixels + p) * channels + o % channels);
                    assert_rounded(y.dtype, element(&y, o), sum / n, 0x1p-24 * 24, "y", o);
                }
                if (!accumulate) memset(dx.data, 0xff, amp_tensor_bytes(&dx));
                ASSERT_OK(CALL(avgpool_backward, &dy, &dx, accumulate, e));
                for (size_t i = 0; i < amp_shape_count(dx.shape); i++) {
                    double share = element(&dy,
                                           i / channels / pixels * channels + i % channels) / (double)pixels;
                    double want = share + (accumulate ? element(&x, i) : 0);
                    assert_rounded(dx.dtype, element(&dx, i), want, 0x1p-23 * (fabs(share) + fabs(want)),
                                   "dx", i);
                }
                release(x.data); release(y.data); release(dx.data); release(dy.data);
            }
}

TEST(upsample_repeats_and_its_gradient_sums)
{
    NEEDS(upsample_backward);
    NEEDS(upsample_forward);
    for (size_t d = 0; d < 3; d++)
        for (size_t k = 1; k < 5; k++)
            for (int stride = 1; stride < 4; stride++)
                for (int accumulate = 0; accumulate < 2; accumulate++) {
                    const int *z = images[k];
                    int h = z[1] * stride, w = z[2] * stride, c = z[3];
                    float scale = stride == 2 ? 1 : .7f;
                    amp_tensor x = filled(all_dtypes[d], z[0], z[1], z[2], c, 5, -1, 3), dx = copy_of(&x);
                    amp_tensor y = poisoned(all_dtypes[d], z[0], h, w, c);
                    amp_tensor dy = filled(all_dtypes[d], z[0], h, w, c, 6, -1, 1);
                    double *sum = calloc(amp_shape_count(x.shape), sizeof *sum);
                    ASSERT_OK(CALL(upsample_forward, &x, &y, stride, scale, e));
                    for (size_t o = 0; o < amp_shape_count(y.shape); o++) {
                        /* Of all images: h is a multiple of the stride. */
                        size_t pixel = o / (size_t)c, row = pixel / (size_t)w;
                        size_t from = (row / (size_t)stride * (size_t)z[2] +
                                       pixel % (size_t)w / (size_t)stride) *
                            (size_t)c + o % (size_t)c;
                        sum[from] += element(&dy, o);
                        double want = (double)scale * element(&x, from);
                        assert_rounded(y.dtype, element(&y, o), want, 0x1p-24 * fabs(want), "y", o);
                    }
                    if (!accumulate) memset(dx.data, 0xff, amp_tensor_bytes(&dx));
                    ASSERT_OK(CALL(upsample_backward, &dy, &dx, stride, scale, accumulate, e));
                    for (size_t i = 0; i < amp_shape_count(dx.shape); i++)
                        assert_rounded(dx.dtype, element(&dx, i), (double)scale * sum[i] +
                            (accumulate ? element(&x, i) : 0), 0x1p-23 * (stride * stride + 4), "dx", i);
                    release(x.data); release(dx.data); release(y.data); release(dy.data); free(sum);
                }
}

/* The index of the number that multiplies element i: there is one per element, channel or pixel. */
static size_t factor_of(const amp_tensor *x, int of, size_t i)
{
    size_t c = (size_t)x->shape.c, image = amp_shape_image(x->shape);
    return of == 0 ? i : of == 1 ? i / image * c + i % c : i / c;
}

/* y = x·s, and the sums of products that are its gradient by s. */
TEST(products_with_elements_channels_and_pixels)
{
    static const int sizes[][4] = { { 1, 1, 1, 1 }, { 2, 5, 4, 16 }, { 3, 9, 7, 5 }, { 2, 3, 2, 257 },
                                    { 2, 70, 33, 24 }, { 1, 4, 4, 1024 } };
    NEEDS(multiply);
    NEEDS(multiply_sums);
    for (size_t d = 0; d < 3; d++)
        for (size_t k = 0; k < COUNT(sizes); k++)
            for (int mode = 0; mode < 6; mode++) {
                const int *z = sizes[k];
                int accumulate = mode & 1, of = mode / 2, h = of == 1 ? 1 : z[1], w = of == 1 ? 1 : z[2];
                amp_tensor x = filled(all_dtypes[d], z[0], z[1], z[2], z[3], 5, -1, 3);
                amp_tensor b = filled(all_dtypes[d], z[0], z[1], z[2], z[3], 6, -1, 1);
                amp_tensor s = filled(all_dtypes[d], z[0], h, w, of == 2 ? 1 : z[3], 7, -2, 2);
                amp_tensor y = accumulate ? copy_of(&b) : poisoned(all_dtypes[d], z[0], z[1], z[2], z[3]);
                amp_tensor ds = accumulate ? copy_of(&s)
                    : poisoned(all_dtypes[d], z[0], h, w, s.shape.c);
                size_t numbers = amp_shape_count(s.shape);
                double *sum = calloc(numbers, sizeof *sum), *size = calloc(numbers, sizeof *size);
                ASSERT_OK(CALL(multiply, &x, &s, &y, accumulate, e));
                ASSERT_OK(CALL(multiply_sums, &x, &b, &ds, accumulate, e));
                for (size_t i = 0; i < amp_shape_count(x.shape); i++) {
                    size_t f = factor_of(&x, of, i);
                    double product = element(&x, i) * element(&s, f), old = accumulate ? element(&b, i) : 0;
                    assert_rounded(y.dtype, element(&y, i), product + old, 0x1p-24 * fabs(product), "y", i);
                    sum[f] += element(&x, i) * element(&b, i);
                    size[f] += fabs(element(&x, i) * element(&b, i));
                }
                for (size_t f = 0; f < numbers; f++)
                    assert_rounded(ds.dtype, element(&ds, f), sum[f] + (accumulate ? element(&s, f) : 0),
                                   0x1p-24 * (8 * size[f] + fabs(sum[f])), "ds", f);
                release(x.data); release(b.data); release(s.data); release(y.data); release(ds.data);
                free(sum); free(size);
            }
    amp_tensor x = filled(AMP_FP16, 2, 4, 4, 6, 5, -1, 1), s = x;
    s.shape.h = 2;
    ASSERT_REFUSED(CALL(multiply, &x, &s, &x, 0, e));
    s.shape.h = s.shape.w = s.shape.c = 1;
    ASSERT_REFUSED(CALL(multiply_sums, &x, &x, &s, 0, e));
    release(x.data);
}

TEST(channels_copies_adds_and_touches_no_other)
{
    static const int cases[][5] = { /* first source channel, first target channel, number of channels */
        { 16, 0, 48, 32, 16 }, { 17, 3, 9, 2, 5 }, { 1, 0, 3, 2, 1 }, { 70, 0, 70, 0, 70 }, { 8, 1, 8, 1, 0 },
        { 16, 8, 24, 16, 5 }, { 20, 4, 12, 8, 4 }, { 600, 0, 640, 40, 600 } };
    NEEDS(channels);
    for (size_t d = 0; d < 3; d++)
        for (size_t k = 0; k < COUNT(cases); k++)
            for (int mode = 0; mode < 4; mode++) {
                const int *z = cases[k];
                int accumulate = mode & 1;
                float alpha = mode & 2 ? -.3f : 1;
                amp_tensor src = filled(all_dtypes[d], 2, 11, 23, z[0], 5, -1, 3);
                amp_tensor dst = filled(all_dtypes[d], 2, 11, 23, z[2], 6, -1, 3), old = copy_of(&dst);
                for (size_t i = 0; i < amp_shape_count(dst.shape); i++) { /* what is overwritten may be NaN */
                    int c = (int)(i % (size_t)z[2]) - z[3];
                    if (!accumulate && c >= 0 && c < z[4]) set_element(&dst, i, NAN);
                }
                ASSERT_OK(CALL(channels, &src, z[1], &dst, z[3], z[4], alpha, accumulate, e));
                for (size_t i = 0; i < amp_shape_count(dst.shape); i++) {
                    int c = (int)(i % (size_t)z[2]) - z[3];
                    double want = element(&old, i), slack = 0;
                    if (c >= 0 && c < z[4]) {
                        double moved = (double)alpha *
                            element(&src, i / (size_t)z[2] * (size_t)z[0] + (size_t)(z[1] + c));
                        want = moved + (accumulate ? element(&old, i) : 0);
                        slack = mode ? 0x1p-24 * (fabs(moved) + fabs(want)) : 0;
                    }
                    assert_rounded(dst.dtype, element(&dst, i), want, slack, "dst", i);
                }
                release(src.data); release(dst.data); release(old.data);
            }
    amp_tensor a = filled(AMP_FP16, 1, 2, 2, 4, 1, 0, 1);
    ASSERT_REFUSED(CALL(channels, &a, 2, &a, 0, 3, 1, 0, e));
    ASSERT_REFUSED(CALL(channels, &a, 0, &a, 2, 3, 1, 0, e));
    ASSERT_REFUSED(CALL(channels, &a, 0, &a, -1, 3, 1, 0, e));
    release(a.data);
}

/* h, w and channels of x, and of the added tensor: equal, down and up by 2, 3 and 6, sizes that do not divide
 * (from the first line and column on, in whole steps), only corners; more, fewer and equally many channels;
 * enough elements for threads. */
static const int joined[][6] = { { 13, 11, 5, 13, 11, 9 }, { 13, 11, 33, 13, 11, 20 },
    { 13, 11, 16, 13, 11, 24 }, { 13, 11, 16, 13, 11, 16 }, { 13, 11, 1, 13, 11, 1 },
    { 13, 11, 64, 13, 11, 3 }, { 13, 11, 32, 13, 11, 16 }, { 13, 11, 15, 13, 11, 15 },
    { 13, 11, 16, 13, 11, 40 },
    { 6, 5, 16, 12, 10, 16 }, { 6, 5, 32, 12, 10, 16 }, { 6, 5, 16, 13, 11, 40 }, { 7, 6, 9, 13, 11, 5 },
    { 3, 4, 24, 11, 12, 8 }, { 1, 3, 7, 6, 18, 3 }, { 12, 10, 16, 6, 5, 24 }, { 13, 11, 33, 6, 5, 20 },
    { 9, 12, 8, 3, 4, 8 }, { 11, 14, 3, 3, 4, 5 }, { 13, 11, 4, 7, 6, 4 }, { 7, 7, 16, 1, 1, 8 },
    { 1, 1, 64, 8, 8, 3 }, { 26, 26, 48, 52, 52, 24 }, { 52, 52, 24, 26, 26, 48 } };

/* Darknet's shortcut_cpu over whole tensors of doubles in NHWC: out = s1·out + s2·add where pixels
 * correspond. met, of the size of add, becomes 1 where add is read. */
static void darknet_shortcut(const int *add_size, const double *add, char *met, const int *out_size,
                             double *out, int images, double s1, double s2)
{
    int h1 = add_size[0], w1 = add_size[1], c1 = add_size[2], h2 = out_size[0], w2 = out_size[1],
        c2 = out_size[2];
    int stride = w1 / w2 < 1 ? 1 : w1 / w2, sample = w2 / w1 < 1 ? 1 : w2 / w1;
    for (int b = 0; b < images; b++)
        for (int k = 0; k < c1 && k < c2; k++)
            for (int j = 0; j < h1 && j < h2; j++)
                for (int i = 0; i < w1 && i < w2; i++) {
                    size_t at = (((size_t)b * h2 + j * sample) * w2 + i * sample) * c2 + k;
                    size_t from = (((size_t)b * h1 + j * stride) * w1 + i * stride) * c1 + k;
                    out[at] = s1 * out[at] + s2 * add[from];
                    met[from] = 1;
                }
}

static double *doubles_of(const amp_tensor *t)
{
    size_t count = amp_shape_count(t->shape);
    double *d = calloc(count, sizeof *d);
    assert_non_null(d);
    for (size_t i = 0; i < count; i++) d[i] = element(t, i);
    return d;
}

/* An element that is not read, but whose neighbour is, must not affect the result. */
static void spoil_unmet(const amp_tensor *t, const char *met)
{
    for (size_t i = 0; i < amp_shape_count(t->shape); i++) if (!met[i]) set_element(t, i, NAN);
}

TEST(shortcut_joins_sizes_as_darknet)
{
    NEEDS(shortcut_forward);
    for (size_t d = 0; d < 3; d++)
        for (size_t k = 0; k < COUNT(joined); k++)
            for (int linear = 0; linear < 2; linear++) {
                const int *z = joined[k];
                amp_tensor x = filled(all_dtypes[d], 2, z[0], z[1], z[2], 5, -1, 1),
                    y = poisoned(all_dtypes[d], 2, z[0], z[1], z[2]);
                amp_tensor from = filled(all_dtypes[d], 2, z[3], z[4], z[5], 6, -1, 1);
                double *want = doubles_of(&x), *add = doubles_of(&from);
                char *met = calloc(amp_shape_count(from.shape), 1);
                darknet_shortcut(z + 3, add, met, z, want, 2, .5, 2);
                spoil_unmet(&from, met);
                ASSERT_OK(CALL(shortcut_forward, &x, &from, &y, .5f, 2, linear ? AMP_LINEAR : AMP_LEAKY, e));
                for (size_t i = 0; i < amp_shape_count(y.shape); i++)
                    assert_rounded(y.dtype, element(&y, i), linear || want[i] > 0 ? want[i] : .1 * want[i],
                                   0x1p-22, "y", i);
                release(x.data); release(from.data); release(y.data); free(want); free(add); free(met);
            }
}

TEST(shortcut_gradient_goes_where_it_came_from)
{
    NEEDS(shortcut_backward);
    for (size_t d = 0; d < 3; d++)
        for (size_t k = 0; k < COUNT(joined); k++)
            for (int mode = 0; mode < 4; mode++) {
                const int *z = joined[k], accumulate = mode & 1;
                float beta = mode & 2 ? .75f : 1;
                amp_tensor dy = filled(all_dtypes[d], 2, z[0], z[1], z[2], 5, -1, 1);
                amp_tensor dfrom = filled(all_dtypes[d], 2, z[3], z[4], z[5], 6, -1, 1);
                if (!accumulate) memset(dfrom.data, 0xff, amp_tensor_bytes(&dfrom));
                double *delta = doubles_of(&dy), *want = doubles_of(&dfrom);
                for (size_t i = 0; !accumulate && i < amp_shape_count(dfrom.shape); i++) want[i] = 0;
                char *met = calloc(amp_shape_count(dy.shape), 1);
                darknet_shortcut(z, delta, met, z + 3, want, 2, 1, (double)beta);
                spoil_unmet(&dy, met);
                ASSERT_OK(CALL(shortcut_backward, &dy, &dfrom, beta, accumulate, e));
                for (size_t i = 0; i < amp_shape_count(dfrom.shape); i++)
                    assert_rounded(dfrom.dtype, element(&dfrom, i), want[i], mode ? 0x1p-22 : 0, "dfrom", i);
                release(dy.data); release(dfrom.data); free(delta); free(want); free(met);
            }
}

/* The shapes that Darknet rejects by an assertion: different ratios; larger in one dimension, smaller in the
 * other. */
TEST(shortcut_refuses_what_does_not_fit)
{
    static const int unfit[][6] = { { 2, 2, 4, 4, 2, 4 }, { 2, 2, 4, 2, 3, 4 }, { 3, 6, 4, 6, 3, 4 },
        { 4, 4, 4, 8, 12, 4 }, { 8, 12, 4, 4, 4, 4 }, { 5, 3, 4, 9, 6, 4 } };
    NEEDS(shortcut_forward);
    NEEDS(shortcut_backward);
    for (size_t k = 0; k < COUNT(unfit); k++) {
        const int *z = unfit[k];
        amp_tensor x = filled(AMP_FP32, 1, z[0], z[1], z[2], 1, 0, 1),
            from = filled(AMP_FP32, 1, z[3], z[4], z[5], 1, 0, 1);
        amp_tensor y = copy_of(&x);
        ASSERT_REFUSED(CALL(shortcut_forward, &x, &from, &y, 1, 1, AMP_LINEAR, e));
        ASSERT_REFUSED(CALL(shortcut_backward, &x, &from, 1, 0, e));
        release(x.data); release(from.data); release(y.data);
    }
    amp_tensor a = filled(AMP_FP32, 1, 4, 4, 4, 1, 0, 1), b = filled(AMP_FP32, 2, 2, 2, 4, 1, 0, 1),
        y = copy_of(&a);
    amp_tensor half = filled(AMP_BF16, 1, 2, 2, 4, 1, 0, 1);
    ASSERT_REFUSED(CALL(shortcut_forward, &a, &b, &y, 1, 1, AMP_LINEAR, e));
    ASSERT_REFUSED(CALL(shortcut_backward, &a, &b, 1, 0, e));
    ASSERT_REFUSED(CALL(shortcut_forward, &a, &half, &y, 1, 1, AMP_LINEAR, e));
    ASSERT_REFUSED(CALL(shortcut_backward, &a, &half, 1, 0, e));
    release(a.data); release(b.data); release(y.data); release(half.data);
}

TEST(gather_moves_by_the_map)
{
    enum { IN = 4 * 6 * 5, OUT = 2 * 3 * 22 }; /* larger: twelve entries in the middle are -1 */
    NEEDS(gather);
    int32_t *map = memory(OUT * sizeof *map);
    for (int i = 0, next = 0; i < OUT; i++) map[i] = i >= 50 && i < 62 ? -1 : (next++ * 7 + 3) % IN;
    for (size_t d = 0; d < 3; d++)
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            amp_tensor x = filled(all_dtypes[d], 3, 4, 6, 5, 5, -1, 1);
            amp_tensor y = filled(all_dtypes[d], 3, 2, 3, 22, 6, -1, 1), old = copy_of(&y);
            set_element(&x, 8, NAN);
            if (!accumulate) memset(y.data, 0xff, amp_tensor_bytes(&y));
            ASSERT_OK(CALL(gather, &x, &y, map, accumulate, e));
            for (size_t o = 0; o < 3 * OUT; o++) {
                int32_t at = map[o % OUT];
                double moved = at < 0 ? 0 : element(&x, o / OUT * IN + (size_t)at);
                double want = moved + (accumulate ? element(&old, o) : 0);
                if (isnan(moved)) assert_true(isnan(element(&y, o)));
                else if (!accumulate) assert_true(element(&y, o) == want);
                else assert_rounded(y.dtype, element(&y, o), want, 0x1p-24, "y", o);
            }
            release(x.data); release(y.data); release(old.data);
        }
    release(map);
}

TEST(dropout_drops_even_nan_and_scales_the_kept)
{
    NEEDS(dropout);
    for (size_t d = 0; d < 3; d++)
        for (int accumulate = 0; accumulate < 2; accumulate++)
            for (int c = 1; c < 40; c += 19) {
                amp_tensor x = filled(all_dtypes[d], 2, 31, 29, c, 5, -1, 1), y = copy_of(&x);
                size_t count = amp_shape_count(x.shape);
                uint8_t *keep = memory(count);
                for (size_t i = 0; i < count; i++) keep[i] = i % 3 ? (uint8_t)(1 + i % 255) : 0;
                for (size_t i = 0; i < count; i += 9) set_element(&x, i, NAN);
                amp_tensor old = copy_of(&y);
                if (!accumulate) memset(y.data, 0xff, amp_tensor_bytes(&y));
                ASSERT_OK(CALL(dropout, &x, &y, keep, 1.6f, accumulate, e));
                for (size_t i = 0; i < count; i++) {
                    double kept = keep[i] ? (double)1.6f * element(&x, i) : 0;
                    double want = kept + (accumulate ? element(&old, i) : 0);
                    assert_rounded(y.dtype, element(&y, i), want, 0x1p-24 * (fabs(kept) + fabs(want)),
                                   "y", i);
                }
                release(x.data); release(y.data); release(old.data); release(keep);
            }
}

int main(void) { return for_each_variant(run_listed); }
