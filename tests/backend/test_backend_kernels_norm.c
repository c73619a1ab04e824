/* Batch norm, biases with their gradients, and activations of a backend, against the formulas in double. */
#include "backend/activate.h"
#include "kernel_cases.h"

typedef struct size_case { int n, h, w, c; } size_case;

/* One element; C = 1, below, at and above a vector; periods that are not a multiple of a vector; many blocks;
 * rows longer than a period. main reduces two of them on a slow machine. */
enum { MANY_BLOCKS = 7, LONG_ROWS = 11 };
static size_case sizes[] = { { 1, 1, 1, 1 }, { 2, 13, 11, 1 }, { 1, 1, 1, 7 }, { 1, 7, 3, 3 },
    { 2, 9, 9, 15 }, { 2, 5, 4, 16 }, { 3, 4, 5, 17 }, { 2, 130, 130, 16 }, { 4, 70, 71, 5 },
    { 1, 13, 13, 255 }, { 1, 3, 70, 67 }, { 2, 10, 10, 1024 }, { 1, 2, 2, 2049 } };

/* Darknet's activations.h, and that of AlexeyAB's fork, in double. */
static double true_activate(double x, amp_activation a)
{
    switch (a) {
    case AMP_LOGISTIC: return 1 / (1 + exp(-x));
    case AMP_LOGGY: return 2 / (1 + exp(-x)) - 1;
    case AMP_RELU: return x > 0 ? x : x * 0;
    case AMP_RELIE: return x > 0 ? x : .01 * x;
    case AMP_RAMP: return (x > 0 ? x : x * 0) + .1 * x;
    case AMP_TANH: return tanh(x);
    case AMP_PLSE: return x < -4 ? .01 * (x + 4) : x > 4 ? .01 * (x - 4) + 1 : .125 * x + .5;
    case AMP_LEAKY: return x > 0 ? x : .1 * x;
    case AMP_ELU: return x >= 0 ? x : exp(x) - 1;
    case AMP_SELU: return x >= 0 ? 1.0507 * x : 1.0507 * 1.6732 * (exp(x) - 1);
    case AMP_STAIR: return isnan(x) ? x : fmod(floor(x), 2) == 0 ? floor(x / 2) : x - floor(x) + floor(x / 2);
    case AMP_HARDTAN: return x < -1 ? -1 : x > 1 ? 1 : x;
    case AMP_LHTAN: return x < 0 ? .001 * x : x > 1 ? .001 * (x - 1) + 1 : x;
    case AMP_RELU6: return isnan(x) ? x : fmin(fmax(x, 0), 6);
    case AMP_MISH: return x * tanh(log1p(exp(x)));
    case AMP_SWISH: return x / (1 + exp(-x));
    case AMP_HARD_MISH: return isnan(x) || x > 0 ? x : x > -2 ? x * x / 2 + x : 0;
    default: return x;
    }
}

/* y is x if amp_gradient_wants_input. The slopes of mish and swish are derived by the product rule from
 * x·tanh(log(1 + exp(x))) and x·logistic(x); cosh(s)^-2 is tanh'. */
static double true_gradient(double y, amp_activation a)
{
    double s = log1p(exp(y)), logistic = 1 / (1 + exp(-y)), half = cosh(y / 2);
    switch (a) {
    case AMP_RELU6: return y > 0 && y < 6;
    case AMP_MISH: return tanh(s) + y * logistic / (cosh(s) * cosh(s));
    case AMP_SWISH: return logistic + y * logistic * (1 - logistic);
    case AMP_HARD_MISH: return isnan(y) ? y : y > 0 ? 1 : y > -2 ? y + 1 : 0;
    case AMP_LOGISTIC: return .25 / (half * half);
    case AMP_LOGGY: return .5 / (half * half);
    case AMP_RELU: return y > 0;
    case AMP_RELIE: return y > 0 ? 1 : .01;
    case AMP_RAMP: return (y > 0) + .1;
    case AMP_TANH: return 1 / (cosh(y) * cosh(y));
    case AMP_PLSE: return y < 0 || y > 1 ? .01 : .125;
    case AMP_LEAKY: return y > 0 ? 1 : .1;
    case AMP_ELU: return y >= 0 ? 1 : exp(y);
    case AMP_SELU: return y >= 0 ? 1.0507 : 1.0507 * 1.6732 * exp(y);
    case AMP_STAIR: return floor(y) != y;
    case AMP_HARDTAN: return y > -1 && y < 1;
    case AMP_LHTAN: return y > 0 && y < 1 ? 1 : .001;
    default: return 1;
    }
}

TEST(activations_follow_darknets_formulas)
{
    NEEDS(activation_forward);
    for (size_t d = 0; d < 3; d++)
        for (int a = 0; a < AMP_ACTIVATIONS; a++)
            for (int c = 1; c < 70; c += 17) {
                amp_tensor x = filled(all_dtypes[d], 1, 3, 7, c, 1u + (uint32_t)a, -6, 6), y = copy_of(&x);
                set_element(&x, 0, 0);
                set_element(&x, 5, -1);
                set_element(&x, 10, 1);
                set_element(&x, 20, NAN);
                set_element(&x, 2, 30000);
                set_element(&x, 3, -30000);
                if (all_dtypes[d] != AMP_FP16) set_element(&x, 4, -3e38f), set_element(&x, 6, 1e38f);
                memset(y.data, 0xff, amp_tensor_bytes(&y));
                ASSERT_OK(CALL(activation_forward, &x, &y, (amp_activation)a, e));
                for (size_t i = 0; i < amp_shape_count(x.shape); i++) {
                    double want = true_activate(element(&x, i), (amp_activation)a);
                    assert_rounded(x.dtype, element(&y, i), want, 0x1p-22 * fmin(1, fabs(element(&x, i))) +
                        0x1p-23 * fabs(want), "y", i);
                }
                ASSERT_OK(CALL(activation_forward, &x, &x, (amp_activation)a, e));
                assert_same(&x, &y);
                release(x.data);
                release(y.data);
            }
}

TEST(gradients_are_taken_from_the_output)
{
    NEEDS(activation_backward);
    for (size_t d = 0; d < 3; d++)
        for (int a = 0; a < AMP_ACTIVATIONS; a++)
            for (int accumulate = 0; accumulate < 2; accumulate++) {
                amp_activation act = (amp_activation)a;
                amp_tensor y = filled(all_dtypes[d], 2, 3, 5, 19, 7, -1.5f, 1.5f);
                amp_tensor dy = filled(all_dtypes[d], 2, 3, 5, 19, 8, -2, 2);
                amp_tensor dx = poisoned(all_dtypes[d], 2, 3, 5, 19),
                    old = filled(all_dtypes[d], 2, 3, 5, 19, 9, -1, 1);
                set_element(&y, 3, 0);
                set_element(&y, 4, 1);
                set_element(&y, 5, -1);
                set_element(&dy, 6, NAN);
                set_element(&dy, 7, INFINITY);
                set_element(&y, 7, .5f);
                if (amp_gradient_wants_input(act)) { /* the extremes, and about ten times the other range */
                    for (size_t i = 8; i < amp_shape_count(y.shape); i += 2)
                        set_element(&y, i, (float)element(&y, i) * 15);
                    set_element(&y, 9, 60000);
                    set_element(&y, 11, -60000);
                    if (all_dtypes[d] != AMP_FP16) set_element(&y, 13, -3e38f), set_element(&y, 15, 3e38f);
                    if (all_dtypes[d] != AMP_FP16) set_element(&y, 17, -95);
                }
                if (accumulate) memcpy(dx.data, old.data, amp_tensor_bytes(&dx));
                ASSERT_OK(CALL(activation_backward, &y, &dy, &dx, act, accumulate, e));
                for (size_t i = 0; i < amp_shape_count(y.shape); i++) {
                    double product = element(&dy, i) * true_gradient(element(&y, i), act);
                    double want = product + (accumulate ? element(&old, i) : 0);
                    double slack = 0x1p-22 * (fabs(element(&dy, i)) + fabs(want));
                    if (act == AMP_LINEAR || act == AMP_RELU) slack = accumulate ? 0x1p-24 * fabs(want) : 0;
                    assert_rounded(y.dtype, element(&dx, i), want, isfinite(slack) ? slack : 0, "dx", i);
                }
                if (!accumulate) {
                    ASSERT_OK(CALL(activation_backward, &y, &dy, &dy, act, 0, e));
                    assert_same(&dy, &dx);
                }
                release(y.data); release(dy.data); release(dx.data); release(old.data);
            }
}

TEST(a_bias_is_added_to_each_pixel)
{
    NEEDS(add_bias);
    for (size_t d = 0; d < 3; d++)
        for (size_t s = 0; s < COUNT(sizes); s++) {
            size_case z = sizes[s];
            amp_tensor y = filled(all_dtypes[d], z.n, z.h, z.w, z.c, 3, -1, 2), old = copy_of(&y);
            float *bias = filled_array((size_t)z.c, 4, -1, 1);
            bias[z.c / 2] = NAN;
            ASSERT_OK(CALL(add_bias, &y, bias, e));
            for (size_t i = 0; i < amp_shape_count(y.shape); i++)
                assert_rounded(y.dtype, element(&y, i), element(&old, i) + (double)bias[i % (size_t)z.c],
                               0x1p-23, "y", i);
            release(y.data); release(old.data); release(bias);
        }
}

TEST(bias_gradient_adds_the_sum_over_pixels)
{
    NEEDS(bias_gradient);
    for (size_t d = 0; d < 3; d++)
        for (size_t s = 0; s < COUNT(sizes); s++) {
            size_case z = sizes[s];
            amp_tensor dy = filled(all_dtypes[d], z.n, z.h, z.w, z.c, 3, -1, 2);
            size_t pixels = (size_t)z.n * z.h * z.w, channels = (size_t)z.c;
            float *db = filled_array(channels, 4, -1, 1), *old = array_copy(db, channels);
            ASSERT_OK(CALL(bias_gradient, &dy, db, e));
            for (size_t c = 0; c < channels; c++) {
                double sum = 0, size = 0;
                for (size_t p = 0; p < pixels; p++) {
                    sum += element(&dy, p * channels + c);
                    size += fabs(element(&dy, p * channels + c));
                }
                assert_rounded(AMP_FP32, (double)db[c], (double)old[c] + sum,
                               0x1p-24 * (8 * size + fabs(sum)), "db", c);
            }
            release(dy.data); release(db); release(old);
        }
}

/* The rules of Darknet's builds, and others, in which every number matters. The first is Darknet's own on the
 * CPU. */
static const amp_batchnorm_rule rules[] = { { 1, 0, 1e-6f, 1e-5f, 0, .01f },
    { 0, 1, 1e-5f, 1e-5f, 0, .01f }, /* cuDNN's, */
    { 1, 1, 1e-5f, 1e-5f, 1, .1f },  /* of AlexeyAB's fork on the CPU */
    { 1, 1, 1e-5f, 3e-5f, 0, .1f }, { 0, 0, 1e-3f, 1e-4f, 0, .25f } };

/* One batch norm and all its arrays. */
typedef struct norm {
    amp_tensor x, y, dy, dx;
    float *scale, *bias, *mean, *variance, *rolling_mean, *rolling_variance, *dscale, *dbias;
    amp_batchnorm_rule rule;
} norm;

static norm norm_make(amp_dtype dtype, size_case z, float low, float high)
{
    size_t c = (size_t)z.c;
    return (norm){ filled(dtype, z.n, z.h, z.w, z.c, 11, low, high), poisoned(dtype, z.n, z.h, z.w, z.c),
        filled(dtype, z.n, z.h, z.w, z.c, 12, -1, 1.5f), poisoned(dtype, z.n, z.h, z.w, z.c),
        filled_array(c, 13, .5f, 1.5f), filled_array(c, 14, -1, 1), filled_array(c, 15, NAN, NAN),
        filled_array(c, 16, NAN, NAN), filled_array(c, 17, -1, 1), filled_array(c, 18, 0, 1),
        filled_array(c, 19, -1, 1), filled_array(c, 20, -1, 1), rules[0] };
}

static void norm_free(norm *b)
{
    release(b->x.data); release(b->y.data); release(b->dy.data); release(b->dx.data); release(b->scale);
    release(b->bias); release(b->mean);
    release(b->variance); release(b->rolling_mean); release(b->rolling_variance); release(b->dscale);
    release(b->dbias);
}

static amp_batchnorm described(const norm *b, amp_activation a)
{
    return (amp_batchnorm){ b->rule, a, b->scale, b->bias, b->mean, b->variance, b->rolling_mean,
        b->rolling_variance, b->dscale, b->dbias, NULL, NULL };
}

static amp_status forward(norm *b, amp_activation a, amp_error *e)
{
    const amp_batchnorm all = described(b, a);
    return CALL(batchnorm_forward_train, &b->x, &b->y, &all, e);
}

static amp_status infer(norm *b, amp_activation a, amp_error *e)
{
    const amp_batchnorm all = described(b, a);
    return CALL(batchnorm_forward_infer, &b->x, &b->y, &all, e);
}

static amp_status backward(norm *b, const amp_tensor *dx, amp_activation a, amp_error *e)
{
    const amp_batchnorm all = described(b, a);
    return CALL(batchnorm_backward, &b->x, &b->y, &b->dy, dx, &all, e);
}

/* The divisor of x - mean. */
static double true_spread(const amp_batchnorm_rule *r, double variance)
{
    return r->epsilon_inside_root ? sqrt(variance + (double)r->epsilon) : sqrt(variance) + (double)r->epsilon;
}

/* The variance over N-1. */
static void true_statistics(const amp_tensor *x, size_t c, double *mean, double *variance)
{
    size_t channels = (size_t)x->shape.c, pixels = amp_shape_count(x->shape) / channels;
    *mean = *variance = 0;
    for (size_t p = 0; p < pixels; p++) *mean += element(x, p * channels + c);
    *mean /= (double)pixels;
    for (size_t p = 0; p < pixels; p++) *variance += pow(element(x, p * channels + c) - *mean, 2);
    *variance = pixels > 1 ? *variance / (double)(pixels - 1) : 0;
}

/* Values of about 1, and values so close together that the 1e-6 and 1e-5 added to the variance matter. */
static const float ranges[][2] = { { -2, 5 }, { 1e-3f, 3e-3f } };

static const amp_activation fused[] = { AMP_LINEAR, AMP_LEAKY, AMP_RELU, AMP_LOGISTIC, AMP_TANH, AMP_HARDTAN,
    AMP_ELU, AMP_MISH, AMP_SWISH, AMP_HARD_MISH, AMP_RELU6 };

static const amp_batchnorm_rule *rule_of(size_t d, size_t s) { return &rules[(s / 2 + d) % COUNT(rules)]; }

TEST(batchnorm_forward_goes_by_the_rule)
{
    NEEDS(batchnorm_forward_train);
    for (size_t d = 0; d < 3; d++)
        for (size_t s = 0; s < 2 * COUNT(sizes); s++) {
            size_case z = sizes[s / 2];
            const float *range = ranges[s % 2];
            amp_activation a = fused[s % COUNT(fused)];
            const amp_batchnorm_rule *r = rule_of(d, s);
            norm b = norm_make(all_dtypes[d], z, range[0], range[1]);
            b.rule = *r;
            size_t channels = (size_t)z.c, pixels = amp_shape_count(b.x.shape) / channels;
            double moved = (double)r->rolling_factor, spread = (double)(range[1] - range[0]) / 7;
            float *old_mean = array_copy(b.rolling_mean, channels),
                *old_var = array_copy(b.rolling_variance, channels);
            ASSERT_OK(forward(&b, a, e));
            for (size_t c = 0; c < channels; c++) {
                double mean, unbiased;
                true_statistics(&b.x, c, &mean, &unbiased);
                double variance = r->unbiased ? unbiased : unbiased * (double)(pixels - 1) / (double)pixels;
                double mean_slack = 0x1p-24 * 12 * spread, variance_slack = 0x1p-24 * 16 * unbiased;
                assert_rounded(AMP_FP32, (double)b.mean[c], mean, mean_slack, "mean", c);
                assert_rounded(AMP_FP32, (double)b.variance[c], variance, variance_slack, "variance", c);
                assert_rounded(AMP_FP32, (double)b.rolling_mean[c],
                    (1 - moved) * (double)old_mean[c] + moved * mean,
                    0x1p-22 + moved * mean_slack, "rolling mean", c);
                assert_rounded(AMP_FP32, (double)b.rolling_variance[c],
                    (1 - moved) * (double)old_var[c] + moved * unbiased,
                    0x1p-22 + moved * variance_slack, "rolling variance", c);
                double gain = (double)b.scale[c] / true_spread(r, variance), bias = (double)b.bias[c];
                for (size_t p = 0; p < pixels; p++) {
                    double x = element(&b.x, p * channels + c),
                        v = pixels > 1 ? (x - mean) * gain + bias : bias;
                    double slack = pixels > 1
                        ? 0x1p-22 * (gain * (fabs(x) + fabs(mean) + 3 * spread) + fabs(bias)) : 0x1p-22;
                    assert_rounded(b.y.dtype, element(&b.y, p * channels + c), true_activate(v, a),
                        slack, "y", p * channels + c);
                }
            }
            release(old_mean); release(old_var);
            norm_free(&b);
        }
}

TEST(batchnorm_inference_uses_the_rolling_statistics)
{
    NEEDS(batchnorm_forward_infer);
    for (size_t d = 0; d < 3; d++)
        for (size_t s = 0; s < 2 * COUNT(sizes); s++) {
            size_case z = sizes[s / 2];
            const float *range = ranges[s % 2];
            norm b = norm_make(all_dtypes[d], z, range[0], range[1]);
            size_t channels = (size_t)z.c;
            b.rule = *rule_of(d, s);
            if (s % 2) /* statistics of values in a narrow range */
                for (size_t c = 0; c < channels; c++) b.rolling_variance[c] *= 1e-6f;
            ASSERT_OK(infer(&b, AMP_LEAKY, e));
            for (size_t i = 0; i < amp_shape_count(b.x.shape); i++) {
                size_t c = i % channels;
                double gain = (double)b.scale[c] / true_spread(&b.rule, (double)b.rolling_variance[c]);
                double v = (element(&b.x, i) - (double)b.rolling_mean[c]) * gain + (double)b.bias[c];
                assert_rounded(b.y.dtype, element(&b.y, i), true_activate(v, AMP_LEAKY),
                    0x1p-22 * (gain * (fabs(element(&b.x, i)) + 1) + 1), "y", i);
            }
            norm_free(&b);
        }
}

/* A backend that adds writes exactly the result of a shortcut over a batch norm's output, and does not need
 * that output in backward. */
TEST(batchnorm_and_a_shortcut_are_one)
{
    static const amp_activation some[] = { AMP_LINEAR, AMP_LEAKY, AMP_RELU, AMP_MISH, AMP_SWISH,
                                           AMP_HARD_MISH };
    NEEDS(batchnorm_forward_train);
    NEEDS(batchnorm_forward_infer);
    NEEDS(batchnorm_backward);
    NEEDS(shortcut_forward);
    if (!machine.partial && !backend->adds_to_batchnorm) skip();
    for (size_t d = 0; d < 3; d++)
        for (size_t s = 0; s < COUNT(sizes) * 2; s++) {
            size_case z = sizes[s / 2];
            amp_activation a = some[(d + s) % COUNT(some)];
            norm b = norm_make(all_dtypes[d], z, -2, 5);
            size_t bytes = amp_tensor_bytes(&b.y);
            /* Without statistics, whose sums depend on it, an element further: not aligned to a vector. */
            int shift = s % 2;
            amp_tensor all = filled(all_dtypes[d], 1, 1, 1, z.n * z.h * z.w * z.c + shift, 21, -3, 3),
                add = b.x, sum = poisoned(all_dtypes[d], z.n, z.h, z.w, z.c);
            add.data = (char *)all.data + shift * amp_dtype_size(all_dtypes[d]);
            b.rule = *rule_of(d, s);
            amp_batchnorm n = described(&b, a);
            if (s % 2) ASSERT_OK(infer(&b, a, e));
            else ASSERT_OK(forward(&b, a, e));
            amp_tensor y = copy_of(&b.y);
            ASSERT_OK(CALL(shortcut_forward, &y, &add, &sum, 1, 1, AMP_LINEAR, e));
            n.add = add.data;
            memset(b.y.data, 0x5a, bytes);
            if (s % 2) ASSERT_OK(CALL(batchnorm_forward_infer, &b.x, &b.y, &n, e));
            else ASSERT_OK(CALL(batchnorm_forward_train, &b.x, &b.y, &n, e));
            assert_memory_equal(b.y.data, sum.data, bytes);
            if (s % 2 == 0) {
                memcpy(b.y.data, y.data, bytes);
                ASSERT_OK(backward(&b, &b.dx, a, e));
                memset(b.y.data, 0xff, bytes);
                ASSERT_OK(backward(&b, &b.dy, a, e));
                assert_memory_equal(b.dy.data, b.dx.data, bytes);
            }
            release(y.data);
            release(all.data); release(sum.data);
            norm_free(&b);
        }
}

/* Activation checkpointing (amp/recompute.h) relies on this. */
TEST(batchnorm_inference_with_a_batchs_statistics_repeats_its_forward)
{
    NEEDS(batchnorm_forward_train);
    NEEDS(batchnorm_forward_infer);
    for (size_t d = 0; d < 3; d++)
        for (size_t s = 0; s < COUNT(sizes); s++) {
            norm b = norm_make(all_dtypes[d], sizes[s], -2, 5);
            size_t bytes = amp_tensor_bytes(&b.y);
            b.rule = *rule_of(d, s);
            ASSERT_OK(forward(&b, AMP_LEAKY, e));
            amp_tensor first = copy_of(&b.y);
            memset(b.y.data, 0x5a, bytes);
            memcpy(b.rolling_mean, b.mean, (size_t)b.x.shape.c * sizeof(float));
            memcpy(b.rolling_variance, b.variance, (size_t)b.x.shape.c * sizeof(float));
            ASSERT_OK(infer(&b, AMP_LEAKY, e));
            assert_memory_equal(first.data, b.y.data, bytes);
            release(first.data);
            norm_free(&b);
        }
}

/* The formula of backend.h in double, from the stored x, y, dy and the fp32 statistics. */
TEST(batchnorm_backward_goes_by_the_rule)
{
    NEEDS(batchnorm_backward);
    NEEDS(batchnorm_forward_train);
    for (size_t d = 0; d < 3; d++)
        for (size_t s = 0; s < 2 * COUNT(sizes); s++) {
            size_case z = sizes[s / 2];
            const float *range = ranges[s % 2];
            amp_activation a = fused[s % COUNT(fused)];
            norm b = norm_make(all_dtypes[d], z, range[0], range[1]);
            b.rule = *rule_of(d, s);
            size_t channels = (size_t)z.c, pixels = amp_shape_count(b.x.shape) / channels;
            float *old_scale = array_copy(b.dscale, channels), *old_bias = array_copy(b.dbias, channels);
            ASSERT_OK(forward(&b, a, e));
            int input = amp_gradient_wants_input(a);
            if (input) memset(b.y.data, 0xff, amp_tensor_bytes(&b.y)); /* not read */
            ASSERT_OK(backward(&b, &b.dx, a, e));
            for (size_t c = 0; c < channels; c++) {
                double mean = (double)b.mean[c], variance = (double)b.variance[c];
                double back = (double)b.rule.backward_epsilon, inv = 1 / sqrt(variance + back);
                double direct = b.rule.direct_outside_root ? 1 / (sqrt(variance) + back) : inv;
                double sum = 0, product = 0, size = 0, product_size = 0, n = (double)pixels;
                double hat = 1 / true_spread(&b.rule, variance), scale = (double)b.scale[c];
                for (size_t i = c; i < pixels * channels; i += channels) {
                    double u = element(&b.x, i) - mean, v = u * hat * scale + (double)b.bias[c];
                    double delta = element(&b.dy, i) * true_gradient(input ? v : element(&b.y, i), a);
                    sum += delta;
                    size += fabs(delta);
                    product += delta * u;
                    product_size += fabs(delta * u);
                }
                assert_rounded(AMP_FP32, (double)b.dbias[c], (double)old_bias[c] + sum,
                               0x1p-24 * 8 * (size + 1), "dbias", c);
                assert_rounded(AMP_FP32, (double)b.dscale[c], (double)old_scale[c] + product * hat,
                    0x1p-24 * 8 * (product_size * hat + 1), "dscale", c);
                for (size_t i = c; i < pixels * channels; i += channels) {
                    double u = element(&b.x, i) - mean, v = u * hat * scale + (double)b.bias[c];
                    double delta = element(&b.dy, i) * true_gradient(input ? v : element(&b.y, i), a);
                    double want = scale * (direct * delta - inv * (sum / n + u * inv * inv * product / n));
                    double slack = 0x1p-22 * scale * (direct * fabs(delta) + inv * (4 * size / n +
                        fabs(u) * inv * inv * 4 * product_size / n));
                    assert_rounded(b.dx.dtype, element(&b.dx, i), want, slack, "dx", i);
                }
            }
            ASSERT_OK(backward(&b, &b.dy, a, e)); /* in place: the same bits */
            assert_memory_equal(b.dy.data, b.dx.data, amp_tensor_bytes(&b.dx));
            release(old_scale); release(old_bias);
            norm_free(&b);
        }
}

/* Backward uses the stored y, which is 0 where a half cannot represent the number, even if it recomputes
 * y. */
TEST(backward_goes_by_the_rounded_output)
{
    static const amp_activation by_sign[] = { AMP_LEAKY, AMP_RELU, AMP_RELIE };
    NEEDS(batchnorm_backward);
    NEEDS(batchnorm_forward_train);
    for (size_t d = 0; d < 3; d++)
        for (size_t k = 0; k < 3 * COUNT(by_sign); k++) {
            amp_activation a = by_sign[k % COUNT(by_sign)];
            size_case z = { 2, 9, 7, k < 3 ? 16 : k < 6 ? 5 : 320 };
            norm b = norm_make(all_dtypes[d], z, -2, 5);
            for (int c = 0; c < z.c; c++) {
                b.scale[c] = c % 2 ? -0x1p-25f : 0x1p-26f; /* half of fp16's smallest number, and a quarter */
                b.bias[c] = b.dbias[c] = 0;
            }
            ASSERT_OK(forward(&b, a, e));
            ASSERT_OK(backward(&b, &b.dx, a, e));
            for (size_t c = 0; c < (size_t)z.c; c++) {
                double sum = 0, size = 0;
                for (size_t i = c; i < amp_shape_count(b.x.shape); i += (size_t)z.c) {
                    sum += element(&b.dy, i) * true_gradient(element(&b.y, i), a);
                    size += fabs(element(&b.dy, i));
                }
                assert_rounded(AMP_FP32, (double)b.dbias[c], sum, 0x1p-24 * 8 * (size + 1), "dbias", c);
            }
            norm_free(&b);
        }
}

TEST(variance_survives_a_mean_far_above_the_spread)
{
    NEEDS(batchnorm_forward_train);
    for (size_t s = 0; s < COUNT(sizes); s++) {
        /* mean/spread = 1e5: Σx² - (Σx)² has no accurate digit. */
        norm b = norm_make(AMP_FP32, sizes[s], 10000.f, 10000.25f);
        size_t channels = (size_t)sizes[s].c;
        set_element(&b.x, 0, 9000); /* and a first element that is far from the mean */
        ASSERT_OK(forward(&b, AMP_LINEAR, e));
        for (size_t c = 0; c < channels; c++) {
            double mean, variance;
            true_statistics(&b.x, c, &mean, &variance);
            assert_rounded(AMP_FP32, (double)b.mean[c], mean, 0x1p-24 * mean, "mean", c);
            /* a pivot that is an outlier costs a chunk of 64 elements precision, here 2^-22 each */
            assert_rounded(AMP_FP32, (double)b.variance[c], variance, 64 * 0x1p-22 * variance, "variance", c);
        }
        norm_free(&b);
    }
}

/* Ranks in this one thread: each asks for its sum twice: first so that all can be added up, then to get the
 * result. */
static float summed[1 << 16];
static int adding;

static amp_status sum_of_ranks(void *context, float *values, size_t count, amp_error *error)
{
    static float mine[1 << 16];
    (void)context;
    assert_true(count <= COUNT(mine));
    if (!adding) return backend->upload(backend, values, summed, count * sizeof *mine, error);
    AMP_TRY(backend->download(backend, mine, values, count * sizeof *mine, error));
    for (size_t i = 0; i < count; i++) summed[i] += mine[i];
    return AMP_OK;
}

/* Image r of x and dy, with the arrays that all ranks have. */
static norm norm_of_rank(const norm *all, size_case z, int r)
{
    norm b = norm_make(all->x.dtype, (size_case){ 1, z.h, z.w, z.c }, 0, 1);
    size_t bytes = amp_tensor_bytes(&b.x);
    b.rule = all->rule;
    memcpy(b.x.data, (char *)all->x.data + (size_t)r * bytes, bytes);
    memcpy(b.dy.data, (char *)all->dy.data + (size_t)r * bytes, bytes);
    memset(b.dscale, 0, (size_t)z.c * sizeof(float));
    memset(b.dbias, 0, (size_t)z.c * sizeof(float));
    return b;
}

static amp_status normalize(norm *b, amp_activation a, const amp_batchnorm_ranks *ranks, int backwards,
                            amp_error *e)
{
    amp_batchnorm n = described(b, a);
    n.ranks = ranks;
    return backwards ? CALL(batchnorm_backward, &b->x, &b->y, &b->dy, &b->dx, &n, e)
                     : CALL(batchnorm_forward_train, &b->x, &b->y, &n, e);
}

enum { RANKS = 3 };

/* Runs both rounds; a rank's results of the first round are discarded. */
static void normalize_ranks(const norm *all, size_case z, norm of[RANKS], amp_activation a, int backwards)
{
    memset(summed, 0, sizeof summed);
    for (adding = 1; adding >= 0; adding--)
        for (int r = 0; r < RANKS; r++) {
            amp_batchnorm_ranks ranks = { r, RANKS, sum_of_ranks, NULL };
            norm first = norm_of_rank(all, z, r), *b = adding ? &first : &of[r];
            size_t statistics = (size_t)z.c * sizeof(float);
            if (backwards) {
                memcpy(first.mean, of[r].mean, statistics);
                memcpy(first.variance, of[r].variance, statistics);
                memcpy(first.y.data, of[r].y.data, amp_tensor_bytes(&first.y));
            }
            ASSERT_OK(normalize(b, a, &ranks, backwards, e));
            norm_free(&first);
        }
}

/* of: the size of the terms, which may cancel */
static void assert_near(const char *what, const float *got, const float *want, size_t count, double of)
{
    for (size_t i = 0; i < count; i++)
        assert_rounded(AMP_FP32, (double)got[i], (double)want[i], 0x1p-20 * (fabs((double)want[i]) + of),
                       what, i);
}

/* A gradient over all images is the sum of the ranks'; each is a sum over this many pixels, of numbers up to
 * 4. */
static void assert_adds_up(const char *what, const float *all, const float *const of[RANKS], size_t count,
                           size_t pixels)
{
    for (size_t i = 0; i < count; i++) {
        double sum = 0;
        for (int r = 0; r < RANKS; r++) sum += (double)of[r][i];
        assert_rounded(AMP_FP32, (double)all[i], sum, 0x1p-22 * (double)pixels, what, i);
    }
}

/* Three ranks of one image each compute the same as one rank with three images; in the last range the mean is
 * far above the spread. Gradients of scale and bias are each rank's part. */
TEST(batchnorm_of_ranks_is_that_of_all_their_images)
{
    static const float bounds[][2] = { { -2, 5 }, { 1e-3f, 3e-3f }, { 1000, 1000.25f } };
    NEEDS(batchnorm_forward_train);
    NEEDS(batchnorm_backward);
    for (size_t s = 0; s < COUNT(sizes); s++) {
        size_case z = sizes[s];
        size_t channels = (size_t)z.c, pixels = (size_t)(RANKS * z.h * z.w);
        const float *range = bounds[s % COUNT(bounds)];
        double spread = (double)(range[1] - range[0]);
        amp_activation a = fused[s % COUNT(fused)];
        z.n = RANKS;
        norm all = norm_make(AMP_FP32, z, range[0], range[1]), of[RANKS];
        memset(all.dscale, 0, channels * sizeof(float));
        memset(all.dbias, 0, channels * sizeof(float));
        all.rule = *rule_of(0, s);
        for (int r = 0; r < RANKS; r++) of[r] = norm_of_rank(&all, z, r);
        ASSERT_OK(normalize(&all, a, NULL, 0, e));
        normalize_ranks(&all, z, of, a, 0);
        for (int r = 0; r < RANKS; r++) {
            assert_near("mean", of[r].mean, all.mean, channels, spread);
            assert_near("variance", of[r].variance, all.variance, channels, spread * spread);
            assert_near("rolling mean", of[r].rolling_mean, all.rolling_mean, channels, 1);
            assert_near("rolling variance", of[r].rolling_variance, all.rolling_variance, channels,
                        1 + spread * spread);
            /* from here on with exactly the same statistics */
            memcpy(of[r].mean, all.mean, channels * sizeof(float));
            memcpy(of[r].variance, all.variance, channels * sizeof(float));
            memcpy(of[r].y.data, (char *)all.y.data + (size_t)r * amp_tensor_bytes(&of[r].y),
                   amp_tensor_bytes(&of[r].y));
        }
        ASSERT_OK(normalize(&all, a, NULL, 1, e));
        normalize_ranks(&all, z, of, a, 1);
        for (int r = 0; r < RANKS; r++) {
            size_t image = amp_shape_count(of[r].dx.shape);
            for (size_t i = 0; i < image; i++) {
                double inv = 1 / sqrt((double)all.variance[i % channels] + (double)all.rule.backward_epsilon);
                assert_rounded(AMP_FP32, element(&of[r].dx, i), element(&all.dx, (size_t)r * image + i),
                               0x1p-19 * inv, "dx", i);
            }
        }
        const float *scales[] = { of[0].dscale, of[1].dscale, of[2].dscale };
        const float *biases[] = { of[0].dbias, of[1].dbias, of[2].dbias };
        assert_adds_up("dscale", all.dscale, scales, channels, pixels);
        assert_adds_up("dbias", all.dbias, biases, channels, pixels);
        for (int r = 0; r < RANKS; r++) norm_free(&of[r]);
        norm_free(&all);
    }
}

TEST(a_nan_spoils_its_channel_and_no_other)
{
    NEEDS(batchnorm_forward_train);
    for (size_t d = 0; d < 3; d++)
        for (size_t s = 0; s < COUNT(sizes); s++) {
            norm b = norm_make(all_dtypes[d], sizes[s], -2, 5);
            size_t channels = (size_t)sizes[s].c, count = amp_shape_count(b.x.shape), bad = count - 1;
            set_element(&b.x, bad, NAN);
            ASSERT_OK(forward(&b, AMP_RELU, e));
            for (size_t i = 0; i < count; i++)
                assert_int_equal(!!isnan(element(&b.y, i)), i % channels == bad % channels);
            assert_true(isnan(b.mean[bad % channels]));
            norm_free(&b);
        }
}

/* As many pixels as in a detector's first layer: sums only in fp32 would be inaccurate. */
TEST(sums_over_millions_of_pixels_are_exact)
{
    NEEDS(bias_gradient);
    NEEDS(batchnorm_forward_train);
    NEEDS(batchnorm_backward);
    static int times;
    if (machine.slow && times++) skip(); /* the order of threads does not matter here */
    int side = machine.slow ? 2100 : 2950; /* backend/cuda/columns.cuh: more than AMP_COLUMN_ROWS per
                                              thread */
    norm b = norm_make(AMP_BF16, (size_case){ 1, side, side, 1 }, 3, 5);
    float *db = filled_array(1, 21, 0, 0);
    double mean, variance, sum = 0, product = 0, pixels = (double)amp_shape_count(b.x.shape);
    ASSERT_OK(forward(&b, AMP_LEAKY, e));
    true_statistics(&b.x, 0, &mean, &variance);
    assert_rounded(AMP_FP32, (double)b.mean[0], mean, 0x1p-24 * mean, "mean", 0);
    assert_rounded(AMP_FP32, (double)b.variance[0], variance, 0x1p-24 * 8 * variance, "variance", 0);
    b.dscale[0] = b.dbias[0] = 0;
    ASSERT_OK(backward(&b, &b.dx, AMP_LEAKY, e));
    for (size_t i = 0; i < amp_shape_count(b.x.shape); i++) {
        double delta = element(&b.dy, i) * true_gradient(element(&b.y, i), AMP_LEAKY);
        sum += delta;
        product += delta * (element(&b.x, i) - (double)b.mean[0]);
    }
    product /= true_spread(&b.rule, (double)b.variance[0]);
    assert_rounded(AMP_FP32, (double)b.dbias[0], sum, 0x1p-24 * .01 * pixels, "dbias", 0);
    assert_rounded(AMP_FP32, (double)b.dscale[0], product, 0x1p-24 * .01 * pixels, "dscale", 0);
    ASSERT_OK(CALL(bias_gradient, &b.x, db, e));
    assert_rounded(AMP_FP32, (double)db[0], mean * pixels, 0x1p-24 * .01 * pixels, "db", 0);
    release(db);
    norm_free(&b);
}

/* The same numbers one element further, not aligned to a vector: all tensors, or one array of channels. */
TEST(arrays_may_begin_anywhere)
{
    NEEDS(batchnorm_forward_train);
    NEEDS(batchnorm_backward);
    enum { TENSORS, SCALE, BIAS, MEAN, VARIANCE, ALL };
    for (int run = 0; run < 3 * ALL; run++) {
        amp_dtype dtype = all_dtypes[run / ALL];
        size_case z = { 2, 7, 9, 16 }, larger = { 2, 7, 9, 17 };
        norm b = norm_make(dtype, z, -2, 5), off = norm_make(dtype, larger, -2, 5), at = off;
        amp_tensor *from[] = { &b.x, &b.y, &b.dy, &b.dx }, *to[] = { &at.x, &at.y, &at.dy, &at.dx };
        for (size_t t = 0; t < COUNT(to); t++) {
            to[t]->shape = b.x.shape;
            if (run % ALL == TENSORS) to[t]->data = (char *)to[t]->data + amp_dtype_size(dtype);
            memcpy(to[t]->data, from[t]->data, amp_tensor_bytes(from[t]));
        }
        float *array = (float *[]){ NULL, b.scale, b.bias, b.mean, b.variance }[run % ALL];
        float **moved = (float **[]){ NULL, &at.scale, &at.bias, &at.mean, &at.variance }[run % ALL];
        if (moved) memcpy(++*moved, array, 16 * sizeof(float));
        ASSERT_OK(forward(&b, AMP_LEAKY, e));
        ASSERT_OK(forward(&at, AMP_LEAKY, e));
        memcpy(at.y.data, b.y.data, amp_tensor_bytes(&b.y)); /* a sign may differ where y is almost 0 */
        ASSERT_OK(backward(&b, &b.dx, AMP_LEAKY, e));
        ASSERT_OK(backward(&at, &at.dx, AMP_LEAKY, e));
        for (size_t i = 0; i < amp_shape_count(b.x.shape); i++) {
            double want = element(&b.dx, i);
            assert_rounded(dtype, element(&at.dx, i), want, rounding(dtype, want) + 0x1p-21, "dx", i);
        }
        for (size_t c = 0; c < 16; c++) {
            assert_rounded(AMP_FP32, (double)at.mean[c], (double)b.mean[c], 0x1p-21, "mean", c);
            assert_rounded(AMP_FP32, (double)at.dscale[c], (double)b.dscale[c], 0x1p-17, "dscale", c);
        }
        norm_free(&b);
        norm_free(&off);
    }
}

TEST(an_infinite_gradient_reaches_the_parameters)
{
    NEEDS(batchnorm_backward);
    NEEDS(batchnorm_forward_train);
    for (size_t d = 0; d < 3; d++) {
        norm b = norm_make(all_dtypes[d], (size_case){ 1, 9, 9, 21 }, -2, 5);
        ASSERT_OK(forward(&b, AMP_LEAKY, e));
        set_element(&b.dy, 3 * 21 + 4, INFINITY);
        ASSERT_OK(backward(&b, &b.dx, AMP_LEAKY, e));
        for (int c = 0; c < 21; c++) {
            assert_int_equal(amp_is_finite(b.dbias[c]), c != 4);
            assert_int_equal(amp_is_finite(b.dscale[c]), c != 4);
            assert_int_equal(!!isfinite(element(&b.dx, (size_t)c)), c != 4);
        }
        norm_free(&b);
    }
}

static void assert_same_bits(norm *a, norm *b)
{
    size_t statistics = (size_t)a->x.shape.c * sizeof(float);
    assert_memory_equal(a->mean, b->mean, statistics);
    assert_memory_equal(a->variance, b->variance, statistics);
    assert_memory_equal(a->rolling_mean, b->rolling_mean, statistics);
    assert_memory_equal(a->rolling_variance, b->rolling_variance, statistics);
    assert_memory_equal(a->dscale, b->dscale, statistics);
    assert_memory_equal(a->dbias, b->dbias, statistics);
    assert_memory_equal(a->y.data, b->y.data, amp_tensor_bytes(&a->y));
    assert_memory_equal(a->dx.data, b->dx.data, amp_tensor_bytes(&a->dx));
}

TEST(no_count_of_processors_changes_a_bit)
{
    NEEDS(batchnorm_forward_train);
    NEEDS(batchnorm_backward);
    for (size_t d = 0; d < 3; d++) {
        norm one = norm_make(all_dtypes[d], sizes[MANY_BLOCKS], -2, 5);
        machine.set_processors(backend, 1);
        ASSERT_OK(forward(&one, AMP_LEAKY, e));
        ASSERT_OK(backward(&one, &one.dx, AMP_LEAKY, e));
        for (int processors = 2; processors < 6; processors++) {
            norm many = norm_make(all_dtypes[d], sizes[MANY_BLOCKS], -2, 5);
            machine.set_processors(backend, processors);
            ASSERT_OK(forward(&many, AMP_LEAKY, e));
            ASSERT_OK(backward(&many, &many.dx, AMP_LEAKY, e));
            assert_same_bits(&one, &many);
            norm_free(&many);
        }
        norm_free(&one);
    }
    machine.set_processors(backend, 0);
}

/* Not for activations that use libm's exponential, which may differ between instruction sets. */
TEST(no_variant_changes_a_bit)
{
    static const amp_activation exact[] = { AMP_LINEAR, AMP_LEAKY, AMP_RELU, AMP_RAMP, AMP_HARDTAN,
                                            AMP_MISH, AMP_SWISH };
    NEEDS(batchnorm_forward_train);
    NEEDS(batchnorm_backward);
    for (size_t d = 0; d < 3; d++)
        for (size_t s = 0; s < COUNT(sizes); s++) {
            amp_activation a = exact[s % COUNT(exact)];
            norm here = norm_make(all_dtypes[d], sizes[s], -2, 5),
                base = norm_make(all_dtypes[d], sizes[s], -2, 5);
            ASSERT_OK(forward(&here, a, e));
            ASSERT_OK(backward(&here, &here.dx, a, e));
            machine.select(machine.variants[0]);
            ASSERT_OK(forward(&base, a, e));
            ASSERT_OK(backward(&base, &base.dx, a, e));
            machine.select(variant);
            assert_same_bits(&here, &base);
            norm_free(&here);
            norm_free(&base);
        }
}

TEST(mismatched_tensors_are_refused)
{
    NEEDS(activation_forward);
    NEEDS(batchnorm_forward_train);
    norm b = norm_make(AMP_FP16, (size_case){ 1, 2, 2, 3 }, -1, 1);
    amp_tensor other = b.y;
    other.dtype = AMP_BF16;
    ASSERT_REFUSED(CALL(activation_forward, &b.x, &other, AMP_LEAKY, e));
    other = b.y;
    other.layout = AMP_NCHW;
    ASSERT_REFUSED(CALL(activation_forward, &b.x, &other, AMP_LEAKY, e));
    other = b.y;
    other.shape.h = 1;
    ASSERT_REFUSED(CALL(activation_forward, &b.x, &other, AMP_LEAKY, e));
    b.y = other;
    ASSERT_REFUSED(forward(&b, AMP_LEAKY, e));
    norm_free(&b);
}

int main(void)
{
    if (machine.slow) {
        sizes[MANY_BLOCKS] = (size_case){ 2, 66, 66, 16 };
        sizes[LONG_ROWS] = (size_case){ 1, 5, 10, 1024 };
    }
    return for_each_variant(run_listed);
}
