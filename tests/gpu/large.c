/* Tensors of more elements than 32 bits can count, where an index that is too short shows: every operation on
 * activations, over a tensor of zeros with a few numbers at telling places.
 *
 * Of more than 2^32 elements where the GPU has 30 GiB free, of more than 2^31 where it has 15; with less the
 * test is skipped. AMP_TEST_SMALL=1: of a few thousand, anywhere, which shows that the test is right. */
#include "kernel_cases.h"

#include "backend/cuda/state.h"

enum { CHANNELS = 32, SPOTS = 12, SKIP = 77 };

static amp_shape shape;          /* of the large tensors */
static size_t spots[SPOTS];      /* the places, ascending */
static int spot_count;

static size_t count(void) { return amp_shape_count(shape); }

/* Neighbouring spots differ in their channels, so that no window holds two of one channel. */
static float value(int spot) { return (float)(spot + 1) / 64; }

static void choose_spots(void)
{
    const size_t wanted[SPOTS] = { 0, 5, 70, count() / 3, count() / 2 + 9, ((size_t)1 << 31) - 1,
        (size_t)1 << 31, ((size_t)1 << 31) + 33, ((size_t)1 << 32) - 1, (size_t)1 << 32, count() - 34,
        count() - 1 };
    for (int i = 0; i < SPOTS; i++) {
        size_t s = wanted[i];
        int to = spot_count;
        if (s >= count()) continue;
        for (; to && spots[to - 1] > s; --to) spots[to] = spots[to - 1];
        spots[to] = s;
        spot_count++;
    }
}

/* ---- large tensors ---- */

static void *zeros(size_t bytes)
{
    void *p;
    ASSERT_OK(CALL(allocate, bytes, &p, e));
    ASSERT_OK(CALL(zero, p, bytes, e));
    return p;
}

static amp_tensor zero_tensor(amp_dtype dtype, amp_layout layout, amp_shape s)
{
    amp_tensor t = { NULL, dtype, layout, s };
    t.data = zeros(amp_tensor_bytes(&t));
    return t;
}

static void put(const amp_tensor *t, size_t at, float number)
{
    float bytes = 0;
    amp_tensor one = { &bytes, t->dtype, AMP_NHWC, { 1, 1, 1, 1 } };
    size_t size = amp_dtype_size(t->dtype);
    set_element(&one, 0, number);
    ASSERT_OK(CALL(upload, (char *)t->data + at * size, &bytes, size, e));
}

static double at(const amp_tensor *t, size_t i)
{
    float bytes = 0;
    amp_tensor one = { &bytes, t->dtype, AMP_NHWC, { 1, 1, 1, 1 } };
    size_t size = amp_dtype_size(t->dtype);
    ASSERT_OK(CALL(download, &bytes, (const char *)t->data + i * size, size, e));
    return element(&one, 0);
}

static amp_tensor spotted(amp_shape s)
{
    amp_tensor t = zero_tensor(AMP_FP16, AMP_NHWC, s);
    for (int k = 0; k < spot_count; k++) put(&t, spots[k], value(k));
    return t;
}

static void drop(const amp_tensor *t) { backend->release(backend, t->data); }

static void expect(const char *what, const amp_tensor *t, size_t i, double want)
{
    double got = at(t, i);
    if (fabs(got - want) > rounding(t->dtype, want) * 1.01)
        fail_msg("%s: element %zu is %g, not %g", what, i, got, want);
}

/* Each spot of t holds factor times its value, and what lies two behind it holds `otherwise`. */
static void expect_spots(const char *what, const amp_tensor *t, double factor, double otherwise)
{
    for (int k = 0; k < spot_count; k++) {
        expect(what, t, spots[k], factor * (double)value(k));
        if (spots[k] + 2 < count()) expect(what, t, spots[k] + 2, otherwise);
    }
}

/* The place of an element of the large tensors. */
typedef struct place { size_t n, h, w, c; } place;

static place place_of(size_t i)
{
    size_t pixel = i / CHANNELS, line = pixel / (size_t)shape.w;
    return (place){ line / (size_t)shape.h, line % (size_t)shape.h, pixel % (size_t)shape.w, i % CHANNELS };
}

/* ---- operations ---- */

TEST(activations)
{
    amp_tensor x = spotted(shape), dy = spotted(shape);
    ASSERT_OK(CALL(activation_forward, &x, &x, AMP_RAMP, e)); /* 1.1 x */
    expect_spots("activation", &x, 1.1, 0);
    ASSERT_OK(CALL(activation_backward, &x, &dy, &dy, AMP_LEAKY, 0, e));
    expect_spots("its backward", &dy, 1, 0);
    drop(&x), drop(&dy);
}

TEST(shortcuts)
{
    amp_tensor x = spotted(shape), from = spotted(shape), y = zero_tensor(AMP_FP16, AMP_NHWC, shape);
    ASSERT_OK(CALL(shortcut_forward, &x, &from, &y, 1, 2, AMP_LINEAR, e));
    expect_spots("shortcut", &y, 3, 0);
    ASSERT_OK(CALL(shortcut_backward, &y, &x, 1, 1, e));
    expect_spots("its backward", &x, 4, 0);
    drop(&x), drop(&from), drop(&y);
}

/* Eight channels on, where groups of 16 bytes are moved, and three on, where single numbers are. */
TEST(channel_copies)
{
    for (int first = 3; first <= 8; first += 5) {
        amp_tensor x = spotted(shape);
        amp_shape wider = { shape.n, CHANNELS + 8, shape.h, shape.w };
        amp_tensor y = zero_tensor(AMP_FP16, AMP_NHWC, wider);
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            ASSERT_OK(CALL(channels, &x, 0, &y, first, CHANNELS, 1, accumulate, e));
            for (int k = 0; k < spot_count; k++)
                expect("channels", &y, spots[k] / CHANNELS * (CHANNELS + 8) + (size_t)first +
                    spots[k] % CHANNELS, (1 + accumulate) * (double)value(k));
        }
        drop(&x), drop(&y);
    }
}

TEST(casts)
{
    amp_tensor x = spotted(shape), y = zero_tensor(AMP_FP32, AMP_NCHW, shape);
    ASSERT_OK(CALL(cast, &x, &y, 0, e));
    for (int k = 0; k < spot_count; k++) {
        place p = place_of(spots[k]);
        size_t to = ((p.n * CHANNELS + p.c) * (size_t)shape.h + p.h) * (size_t)shape.w + p.w;
        expect("cast", &y, to, (double)value(k));
        if (to + 2 < count()) expect("cast", &y, to + 2, 0);
    }
    ASSERT_OK(CALL(scale, y.data, count(), 4, e));
    ASSERT_OK(CALL(cast, &y, &x, 0, e));
    expect_spots("scale and cast", &x, 4, 0);
    drop(&x), drop(&y);
}

static double channel_sum(size_t c)
{
    double sum = 0;
    for (int k = 0; k < spot_count; k++) sum += spots[k] % CHANNELS == c ? (double)value(k) : 0;
    return sum;
}

static float *parameters(float number)
{
    float numbers[CHANNELS], *p = zeros(sizeof numbers);
    for (int c = 0; c < CHANNELS; c++) numbers[c] = number;
    ASSERT_OK(CALL(upload, p, numbers, sizeof numbers, e));
    return p;
}

static void expect_channels(const char *what, const float *p, size_t c, double want, double slack)
{
    float got;
    ASSERT_OK(CALL(download, &got, p + c, sizeof got, e));
    if (fabs((double)got - want) > slack + 0x1p-22 * fabs(want))
        fail_msg("%s of channel %zu is %g, not %g", what, c, got, want);
}

TEST(sums)
{
    amp_tensor dy = spotted(shape);
    float *db = parameters(1);
    ASSERT_OK(CALL(bias_gradient, &dy, db, e));
    for (size_t c = 0; c < CHANNELS; c++) expect_channels("bias gradient", db, c, 1 + channel_sum(c), 0);
    drop(&dy);
    backend->release(backend, db);
}

TEST(batch_norm)
{
    enum { SCALE, BIAS, MEAN, VARIANCE, ROLLING_MEAN, ROLLING_VARIANCE, DSCALE, DBIAS, ARRAYS };
    amp_tensor x = spotted(shape), y = zero_tensor(AMP_FP16, AMP_NHWC, shape), dy = spotted(shape);
    float *p[ARRAYS];
    double n = (double)(count() / CHANNELS);
    for (int i = 0; i < ARRAYS; i++) p[i] = parameters(i == SCALE ? 0x1p-10f : i == BIAS ? .5f : 0);
    const amp_batchnorm norm = { { 1, 0, 1e-6f, 1e-5f, 0, .01f }, AMP_LEAKY, p[SCALE], p[BIAS], p[MEAN],
        p[VARIANCE], p[ROLLING_MEAN], p[ROLLING_VARIANCE], p[DSCALE], p[DBIAS], NULL, NULL };
    ASSERT_OK(CALL(batchnorm_forward_train, &x, &y, &norm, e));
    for (int k = 0; k < spot_count; k++) {
        size_t c = spots[k] % CHANNELS;
        double mean = channel_sum(c) / n, square = 0;
        for (int j = 0; j < spot_count; j++)
            square += spots[j] % CHANNELS == c ? pow((double)value(j), 2) : 0;
        double variance = (square - mean * mean * n) / (n - 1);
        double want = ((double)value(k) - mean) * 0x1p-10 / (sqrt(variance) + 1e-6);
        expect_channels("mean", p[MEAN], c, mean, 0);
        expect_channels("variance", p[VARIANCE], c, variance, 0);
        expect("batch norm", &y, spots[k], want + .5);
    }
    ASSERT_OK(CALL(batchnorm_backward, &x, &y, &dy, &dy, &norm, e));
    for (size_t c = 0; c < CHANNELS; c++)
        expect_channels("bias gradient of batch norm", p[DBIAS], c, channel_sum(c), 0);
    for (int i = 0; i < ARRAYS; i++) backend->release(backend, p[i]);
    drop(&x), drop(&y), drop(&dy);
}

TEST(pooling)
{
    amp_shape half = { shape.n, CHANNELS, shape.h / 2, shape.w / 2 };
    amp_tensor x = spotted(shape), y = zero_tensor(AMP_FP16, AMP_NHWC, half);
    uint8_t *choice = zeros(amp_shape_count(half));
    ASSERT_OK(CALL(maxpool_forward, &x, &y, choice, 2, 2, 0, e));
    for (int k = 0; k < spot_count; k++) {
        place p = place_of(spots[k]);
        expect("max pooling", &y, ((p.n * (size_t)half.h + p.h / 2) * (size_t)half.w + p.w / 2) * CHANNELS +
               p.c, (double)value(k));
    }
    ASSERT_OK(CALL(maxpool_backward, &y, choice, &x, 2, 2, 0, 1, e));
    expect_spots("its backward", &x, 2, 0);
    backend->release(backend, choice);
    drop(&x), drop(&y);
}

TEST(upsampling)
{
    amp_shape half = { shape.n, CHANNELS, shape.h / 2, shape.w / 2 };
    amp_tensor y = spotted(shape), x = zero_tensor(AMP_FP16, AMP_NHWC, half);
    ASSERT_OK(CALL(upsample_backward, &y, &x, 2, 2, 0, e));
    ASSERT_OK(CALL(upsample_forward, &x, &y, 2, 1, e));
    expect_spots("upsampling, there and back", &y, 2, 0);
    drop(&x), drop(&y);
}

/* cuDNN may have no engine for so many; if it has one, the numbers count. */
TEST(convolutions)
{
    amp_tensor x = spotted(shape), y = zero_tensor(AMP_FP16, AMP_NHWC, shape);
    amp_conv_desc d = { shape, CHANNELS, 1, 1, 1, 0, 1, AMP_FP16, 0, 0, 0, 0, 0, 0, 0, 0 };
    float weights[CHANNELS][CHANNELS] = { { 0 } }, *masters = zeros(sizeof weights);
    amp_conv *conv = NULL;
    amp_error error = { AMP_OK, "" };
    for (int c = 0; c < CHANNELS; c++) weights[c][c] = 2;
    ASSERT_OK(CALL(upload, masters, weights, sizeof weights, e));
    amp_status status = backend->conv_create(backend, &d, &conv, &error);
    if (status == AMP_OK) {
        int failed;
        ASSERT_OK(CALL(conv_load_weights, &(amp_conv_weights){ conv, masters }, 1, &failed, e));
        status = backend->conv_forward(backend, conv, x.data, NULL, y.data, &error);
    }
    if (status == AMP_OK) expect_spots("convolution", &y, 2, 0);
    else print_message("%s\n", error.message);
    backend->conv_destroy(backend, conv);
    backend->release(backend, masters);
    drop(&x), drop(&y);
    assert_true(status == AMP_OK || status == AMP_UNSUPPORTED);
}

/* ---- */

static int run(void) { return run_listed_tests("tests", NULL, NULL); }

int main(void)
{
    size_t unused = 0, total = 0;
    if (getenv("AMP_TEST_SMALL")) {
        shape = (amp_shape){ 3, CHANNELS, 8, 6 };
    } else {
        cudaMemGetInfo(&unused, &total);
        if (unused >> 30 < 15) {
            printf("skipped: %zu MiB are free, and 15 GiB are needed\n", unused >> 20);
            return SKIP;
        }
        shape = (amp_shape){ unused >> 30 < 30 ? 65 : 129, CHANNELS, 1024, 1024 };
    }
    choose_spots();
    printf("%zu elements\n", count());
    return with_one_variant(run);
}
