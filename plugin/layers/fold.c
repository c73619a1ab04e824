/* Folds batch norm into the weights and bias of a layer's convolution, for a network that only predicts:
 *
 *     gain[k] = scale[k] / (the rule's divisor of x - mean, computed from the rolling variance)
 *     gain·(w * x - mean) + bias = (gain·w) * x + (bias - gain·mean)
 *
 * The masters do not change: only the backend's copies of the weights are made from gain·w. In fp32,
 * folded and separate batch norm differ only by rounding. In half precision, folding avoids one rounding.
 *
 * Folding runs on the CPU with every backend. It need not be fast, because a network that only predicts loads
 * its weights only once. Weights pass through a staging buffer, a few filters at a time, because the CPU
 * cannot read a device's memory directly. */
#include "epilogue.h"

#include <float.h>
#include <math.h>

#include "../backend/batchnorm_rules.h"

enum { STAGE = 1 << 16 }; /* size limit of the staging buffer, in floats. The buffer is larger if one
                             filter's weights, or one float per filter, need more */

/* One filter's batch norm: gain times the filter's products, plus bias. */
typedef struct line { double gain, bias; } line;

/* Computes the line of every filter. lines and scratch: one element per filter. */
static amp_status read_lines(const amp_node *node, amp_backend *b, line *lines, float *scratch,
                             amp_error *error)
{
    const amp_layer_desc *d = &node->desc;
    const float *const arrays[] = { d->rolling_variance, d->scales, d->rolling_mean, d->biases };
    for (int a = 0; a < 4; a++) {
        AMP_TRY(b->download(b, scratch, arrays[a], (size_t)d->convolution.filters * sizeof *scratch, error));
        for (int k = 0; k < d->convolution.filters; k++) {
            double value = (double)scratch[k];
            if (a == 0) lines[k].gain = 1 / amp_batchnorm_spread(&d->batchnorm_rule, value);
            else if (a == 1) lines[k].gain *= value;
            else if (a == 2) lines[k].bias = -lines[k].gain * value;
            else lines[k].bias += value;
        }
    }
    return AMP_OK;
}

/* The folding of one node. */
typedef struct fold {
    const amp_node *node;
    amp_backend *backend;
    size_t window, rows; /* window: weights per filter; rows: filters that fit into the staging buffer */
    line *lines;
    float *stage;
    int fits;
} fold;

static void fold_free(fold *f)
{
    free(f->lines);
    free(f->stage);
}

static amp_status fold_make(const amp_node *node, amp_backend *b, fold *f, amp_error *error)
{
    size_t filters = (size_t)node->desc.convolution.filters;
    amp_products p = node->desc.kind->products(node);
    *f = (fold){ .node = node, .backend = b, .window = (size_t)p.in * p.window, .fits = 1 };
    f->rows = f->window < STAGE ? STAGE / f->window : 1;
    if (f->rows > filters) f->rows = filters;
    f->lines = amp_allocated(malloc(filters * sizeof *f->lines));
    size_t room = f->rows * f->window;
    f->stage = amp_allocated(malloc((room > filters ? room : filters) * sizeof *f->stage));
    amp_status status = read_lines(node, b, f->lines, f->stage, error);
    if (status != AMP_OK) fold_free(f);
    return status;
}

/* Folds the weights of all filters, and clears f->fits if a folded number is beyond the dtype's range. to:
 * the backend's memory for the folded weights; NULL: do not store them. */
static amp_status fold_weights(fold *f, float *to, amp_error *error)
{
    static const double largest[] = { [AMP_FP32] = FLT_MAX, [AMP_FP16] = 65504, [AMP_BF16] = 0x1.fep127 };
    amp_backend *b = f->backend;
    double most = largest[f->node->dtype];
    size_t filters = (size_t)f->node->desc.convolution.filters;
    for (size_t first = 0, rows; first < filters; first += rows) {
        rows = filters - first < f->rows ? filters - first : f->rows;
        size_t at = first * f->window, bytes = rows * f->window * sizeof *f->stage;
        AMP_TRY(b->download(b, f->stage, f->node->desc.weights + at, bytes, error));
        for (size_t k = 0; k < rows; k++) {
            const line *l = &f->lines[first + k];
            float *w = f->stage + k * f->window;
            int fits = fabs(l->bias) <= FLT_MAX;
            for (size_t i = 0; i < f->window; i++) {
                double folded = l->gain * (double)w[i];
                fits &= fabs(folded) <= most; /* false for NaN */
                w[i] = (float)folded;
            }
            f->fits &= fits;
        }
        if (to) AMP_TRY(b->upload(b, to + at, f->stage, bytes, error));
    }
    return AMP_OK;
}

amp_status amp_fold_choose(amp_node *node, amp_backend *b, amp_error *error)
{
    fold f;
    if (!node->desc.batch_normalize || !node->desc.kind->folds) return AMP_OK;
    AMP_TRY(fold_make(node, b, &f, error));
    amp_status status = fold_weights(&f, NULL, error);
    node->folded = status == AMP_OK && f.fits;
    fold_free(&f);
    return status;
}

static amp_status load(fold *f, amp_node *node, float *weights, amp_error *error)
{
    amp_backend *b = f->backend;
    size_t bytes = (size_t)node->desc.convolution.filters * sizeof *node->folded_bias;
    int failed;
    AMP_TRY(fold_weights(f, weights, error));
    if (!node->folded_bias) AMP_TRY(b->allocate(b, bytes, (void **)&node->folded_bias, error));
    for (int k = 0; k < node->desc.convolution.filters; k++) f->stage[k] = (float)f->lines[k].bias;
    AMP_TRY(b->upload(b, node->folded_bias, f->stage, bytes, error));
    return b->conv_load_weights(b, &(amp_conv_weights){ node->conv, weights }, 1, &failed, error);
}

amp_status amp_fold_load(amp_node *node, amp_backend *b, amp_error *error)
{
    fold f;
    void *weights = NULL;
    AMP_TRY(fold_make(node, b, &f, error));
    amp_status status = b->allocate(b, (size_t)node->desc.convolution.filters * f.window * sizeof(float),
                                    &weights, error);
    if (status == AMP_OK) status = load(&f, node, weights, error);
    if (weights) b->release(b, weights);
    fold_free(&f);
    return status;
}
