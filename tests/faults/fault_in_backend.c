/* See fault_in_backend.h: the functions in the backend's table are exchanged. */
#include "fault_in_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static amp_backend right; /* what the functions are without a fault */
static char fault[32];
static int channels;

static int is(const char *name, const amp_tensor *t)
{
    return !strcmp(fault, name) && t->shape.c == channels;
}

/* A copy of the biases, times 1.001 or -1; the caller frees it. */
static float *wrong_biases(const float *bias)
{
    float *wrong = malloc((size_t)channels * sizeof *wrong);
    for (int c = 0; c < channels; c++) wrong[c] = bias[c] * (strcmp(fault, "minus") ? 1.001f : -1);
    return wrong;
}

static amp_status add_bias(amp_backend *b, const amp_tensor *y, const float *bias, amp_error *error)
{
    if (!is("bias", y) && !is("minus", y)) return right.add_bias(b, y, bias, error);
    float *wrong = wrong_biases(bias);
    amp_status status = right.add_bias(b, y, wrong, error);
    free(wrong);
    return status;
}

/* The convolution of so many filters that was made last; whether its weights were loaded; and the bytes that
 * it writes: first what lay there before, then what it wrote. */
static const amp_conv *chosen;
static int is_loaded;
static size_t bytes;
static unsigned char *before, *written;

static amp_status conv_create(amp_backend *b, const amp_conv_desc *d, amp_conv **out, amp_error *error)
{
    amp_status status = right.conv_create(b, d, out, error);
    if (*out == chosen) chosen = NULL; /* which is gone */
    if (status != AMP_OK || d->k != channels) return status;
    chosen = *out;
    is_loaded = 0;
    bytes = amp_shape_count(amp_conv_output(d)) * amp_dtype_size(d->dtype);
    before = realloc(before, bytes);
    written = realloc(written, bytes);
    return AMP_OK;
}

static amp_status conv_load_weights(amp_backend *b, const amp_conv_weights *given, int count, int *failed,
                                    amp_error *error)
{
    amp_conv_weights *fresh = malloc(((size_t)count + 1) * sizeof *fresh);
    int kept = 0, is_among = 0;
    for (int i = 0; i < count; i++) {
        int is_it = chosen && given[i].conv == chosen;
        is_among |= is_it;
        if (!is_it || !is_loaded || strcmp(fault, "copies")) fresh[kept++] = given[i];
    }
    is_loaded |= is_among;
    amp_status status = right.conv_load_weights(b, fresh, kept, failed, error);
    free(fresh);
    return status;
}

static amp_status conv_forward(amp_backend *b, amp_conv *conv, const void *x, const float *bias, void *y,
                               amp_error *error)
{
    amp_status status;
    if (conv == chosen && bias && (!strcmp(fault, "bias") || !strcmp(fault, "minus"))) {
        float *wrong = wrong_biases(bias);
        status = right.conv_forward(b, conv, x, wrong, y, error);
        free(wrong);
        return status;
    }
    if (conv != chosen || strcmp(fault, "early")) return right.conv_forward(b, conv, x, bias, y, error);
    memcpy(before, y, bytes);
    status = right.conv_forward(b, conv, x, bias, y, error);
    memcpy(written, y, bytes);
    memcpy(y, before, bytes);
    return status;
}

static amp_status batchnorm_forward_train(amp_backend *b, const amp_tensor *x, const amp_tensor *y,
                                          const amp_batchnorm *given, amp_error *error)
{
    amp_batchnorm norm = *given;
    float *wrong = is("bias", x) || is("minus", x) ? wrong_biases(norm.bias) : NULL, old[4096];
    if (wrong) norm.bias = wrong;
    if (is("statistics", x)) memcpy(old, norm.rolling_mean, (size_t)channels * sizeof *old);
    else if (is("variance", x)) memcpy(old, norm.rolling_variance, (size_t)channels * sizeof *old);
    amp_status status = right.batchnorm_forward_train(b, x, y, &norm, error);
    if (chosen && is("early", x)) memcpy(x->data, written, bytes);
    double n = (double)x->shape.n * x->shape.h * x->shape.w, kept = 1 - (double)norm.rule.rolling_factor;
    for (int c = 0; c < channels; c++) {
        if (is("statistics", x)) norm.rolling_mean[c] = old[c];
        if (is("variance", x))
            norm.rolling_variance[c] = (float)(kept * old[c] + (norm.rolling_variance[c] - kept * old[c])
                                               * (n - 1) / n);
    }
    free(wrong);
    return status;
}

static amp_status batchnorm_backward(amp_backend *b, const amp_tensor *x, const amp_tensor *y,
                                     const amp_tensor *dy, const amp_tensor *dx, const amp_batchnorm *given,
                                     amp_error *error)
{
    amp_batchnorm norm = *given;
    float nowhere[4096] = { 0 };
    if (is("slope", x)) norm.activation = AMP_LINEAR;
    if (is("scales", x)) norm.dscale = nowhere;
    return right.batchnorm_backward(b, x, y, dy, dx, &norm, error);
}

static amp_status activation_backward(amp_backend *b, const amp_tensor *y, const amp_tensor *dy,
                                      const amp_tensor *dx, amp_activation activation, int accumulate,
                                      amp_error *error)
{
    return right.activation_backward(b, y, dy, dx, is("slope", y) ? AMP_LINEAR : activation, accumulate,
                                     error);
}

static amp_status cast(amp_backend *b, const amp_tensor *src, const amp_tensor *dst, int accumulate,
                       amp_error *error)
{
    return accumulate && is("cast", dst) ? AMP_OK : right.cast(b, src, dst, accumulate, error);
}

static amp_status upsample_backward(amp_backend *b, const amp_tensor *dy, const amp_tensor *dx, int stride,
                                    float scale, int accumulate, amp_error *error)
{
    return right.upsample_backward(b, dy, dx, stride, is("upsample", dx) ? scale / 4 : scale, accumulate,
                                   error);
}

static amp_status shortcut_forward(amp_backend *b, const amp_tensor *x, const amp_tensor *from,
                                   const amp_tensor *y, float alpha, float beta, amp_activation activation,
                                   amp_error *error)
{
    return right.shortcut_forward(b, x, from, y, alpha, is("shortcut", x) ? 2 * beta : beta, activation,
                                  error);
}

/* The first place of the window, whichever was the largest. */
static amp_status maxpool_backward(amp_backend *b, const amp_tensor *dy, const uint8_t *choice,
                                   const amp_tensor *dx, int size, int stride, int pad, int accumulate,
                                   amp_error *error)
{
    size_t count = amp_shape_count(dy->shape);
    uint8_t *wrong = is("choice", dx) ? calloc(count, 1) : NULL;
    amp_status status = right.maxpool_backward(b, dy, wrong ? wrong : choice, dx, size, stride, pad,
                                               accumulate, error);
    free(wrong);
    return status;
}

static amp_status dropout(amp_backend *b, const amp_tensor *x, const amp_tensor *y, const uint8_t *keep,
                          float scale, int accumulate, amp_error *error)
{
    return right.dropout(b, x, y, keep, is("dropout", x) ? 1 : scale, accumulate, error);
}

static amp_status yolo_loss(amp_backend *b, const amp_tensor *x, const float *labels, const amp_yolo_desc *d,
                            float loss_scale, const amp_tensor *dx, int accumulate, amp_yolo_result *result,
                            double *image_costs, amp_error *error)
{
    return right.yolo_loss(b, x, labels, d, is("yolo", x) ? 1.01f * loss_scale : loss_scale, dx, accumulate,
                           result, image_costs, error);
}

static amp_status bias_gradient(amp_backend *b, const amp_tensor *dy, float *db, amp_error *error)
{
    return is("biases", dy) ? AMP_OK : right.bias_gradient(b, dy, db, error);
}

void put_fault(amp_backend *b)
{
    const char *asked = getenv("AMP_FAULT");
    if (!asked) return;
    if (sscanf(asked, "%31s %d", fault, &channels) != 2 || channels > 4096) {
        fprintf(stderr, "AMP_FAULT=%s: not \"NAME CHANNELS\"\n", asked);
        exit(2);
    }
    right = *b;
    b->add_bias = add_bias;
    b->adds_to_batchnorm = 0;
    b->conv_create = conv_create;
    b->conv_load_weights = conv_load_weights;
    b->conv_forward = conv_forward;
    b->batchnorm_forward_train = batchnorm_forward_train;
    b->batchnorm_backward = batchnorm_backward;
    b->activation_backward = activation_backward;
    b->cast = cast;
    b->upsample_backward = upsample_backward;
    b->shortcut_forward = shortcut_forward;
    b->maxpool_backward = maxpool_backward;
    b->dropout = dropout;
    b->yolo_loss = yolo_loss;
    b->bias_gradient = bias_gradient;
}
