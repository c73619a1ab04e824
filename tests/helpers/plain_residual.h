/* A residual block in plain double precision, pass by pass as in a textbook, for tests that need its deltas:
 * two convolutions with batch norm and leaky, their sum, and a convolution after it.
 *
 *     image → conv → conv → + → conv
 *                 └─────────┘
 *
 * Arrays are NHWC; windows are odd and keep the size. */
#ifndef PLAIN_RESIDUAL_H
#define PLAIN_RESIDUAL_H

#include <math.h>
#include <stdlib.h>

#include "backend/backend.h"

/* A convolution: weights as in Darknet, [out][in][size][size]. scales NULL: no batch norm, and linear. delta
 * and inner are the deltas of y and of the sums. */
typedef struct plain_conv {
    int in, out, size;
    const float *weights, *biases, *scales;
    amp_batchnorm_rule rule;
    const double *x;
    double *sums, *y, *delta, *inner;
} plain_conv;

typedef struct plain_residual {
    int n, h, w;
    plain_conv conv[3];
    double *sum, *sum_delta; /* of the shortcut */
} plain_residual;

__attribute__((unused)) static double *plain_array(const plain_residual *r, int channels)
{
    double *array = calloc((size_t)(r->n * r->h * r->w * channels), sizeof *array);
    if (!array) abort();
    return array;
}

/* Σ over the window: forward adds weights · x to the sums; with dx, backward adds weights · inner to it. */
static void plain_products(const plain_residual *r, const plain_conv *c, double *dx)
{
    int half = c->size / 2;
    for (int p = 0; p < r->n * r->h * r->w; p++)
        for (int v = -half; v <= half; v++)
            for (int u = -half; u <= half; u++) {
                int row = p / r->w % r->h + v, column = p % r->w + u, q = p + v * r->w + u;
                if (row < 0 || row >= r->h || column < 0 || column >= r->w) continue;
                for (int k = 0; k < c->out; k++)
                    for (int i = 0; i < c->in; i++) {
                        int at = ((k * c->in + i) * c->size + v + half) * c->size + u + half;
                        double weight = (double)c->weights[at];
                        if (dx) dx[q * c->in + i] += weight * c->inner[p * c->out + k];
                        else c->sums[p * c->out + k] += weight * c->x[q * c->in + i];
                    }
            }
}

/* Mean and variance of channel k, by the rule. */
static void plain_moments(const plain_residual *r, const plain_conv *c, int k, double *mean, double *variance)
{
    int count = r->n * r->h * r->w;
    *mean = *variance = 0;
    for (int p = 0; p < count; p++) *mean += c->sums[p * c->out + k] / count;
    for (int p = 0; p < count; p++) *variance += pow(c->sums[p * c->out + k] - *mean, 2);
    *variance /= count - c->rule.unbiased;
}

static void plain_forward_conv(const plain_residual *r, plain_conv *c, const double *x)
{
    int count = r->n * r->h * r->w;
    c->x = x;
    c->sums = plain_array(r, c->out);
    c->y = plain_array(r, c->out);
    plain_products(r, c, NULL);
    for (int k = 0; k < c->out; k++) {
        double mean = 0, variance, scale = 1, epsilon = (double)c->rule.epsilon;
        if (c->scales) {
            plain_moments(r, c, k, &mean, &variance);
            scale = (double)c->scales[k] / (c->rule.epsilon_inside_root ? sqrt(variance + epsilon)
                                                                        : sqrt(variance) + epsilon);
        }
        for (int p = 0; p < count; p++) {
            double y = scale * (c->sums[p * c->out + k] - mean) + (double)c->biases[k];
            c->y[p * c->out + k] = c->scales && y < 0 ? .1 * y : y;
        }
    }
}

/* Computes the delta of the sums from the output's. */
static void plain_inner(const plain_residual *r, plain_conv *c)
{
    int count = r->n * r->h * r->w;
    c->inner = plain_array(r, c->out);
    for (int i = 0; i < count * c->out; i++)
        c->inner[i] = c->delta[i] * (c->scales && c->y[i] < 0 ? .1 : 1);
    for (int k = 0; c->scales && k < c->out; k++) {
        double mean, variance, sum = 0, product = 0;
        plain_moments(r, c, k, &mean, &variance);
        double inv = 1 / sqrt(variance + (double)c->rule.backward_epsilon), scale = (double)c->scales[k];
        for (int p = 0; p < count; p++) {
            sum += c->inner[p * c->out + k];
            product += c->inner[p * c->out + k] * (c->sums[p * c->out + k] - mean);
        }
        for (int p = 0; p < count; p++) {
            double centred = c->sums[p * c->out + k] - mean;
            c->inner[p * c->out + k] = inv * scale
                * (c->inner[p * c->out + k] - sum / count - inv * inv * centred * product / count);
        }
    }
}

__attribute__((unused)) static void plain_forward(plain_residual *r, const double *image)
{
    plain_conv *a = &r->conv[0], *b = &r->conv[1];
    plain_forward_conv(r, a, image);
    plain_forward_conv(r, b, a->y);
    r->sum = plain_array(r, a->out);
    for (int i = 0; i < r->n * r->h * r->w * a->out; i++) r->sum[i] = a->y[i] + b->y[i];
    plain_forward_conv(r, &r->conv[2], r->sum);
}

/* The caller sets conv[2].delta, which is taken over. */
__attribute__((unused)) static void plain_backward(plain_residual *r)
{
    plain_conv *a = &r->conv[0], *b = &r->conv[1], *head = &r->conv[2];
    size_t bytes = (size_t)(r->n * r->h * r->w * a->out) * sizeof(double);
    r->sum_delta = plain_array(r, a->out);
    a->delta = plain_array(r, a->out);
    b->delta = plain_array(r, a->out);
    plain_inner(r, head);
    plain_products(r, head, r->sum_delta);
    memcpy(a->delta, r->sum_delta, bytes);
    memcpy(b->delta, r->sum_delta, bytes);
    plain_inner(r, b);
    plain_products(r, b, a->delta);
    plain_inner(r, a);
}

__attribute__((unused)) static void plain_free(plain_residual *r)
{
    for (int i = 0; i < 3; i++) {
        plain_conv *c = &r->conv[i];
        free(c->sums), free(c->y), free(c->delta), free(c->inner);
    }
    free(r->sum), free(r->sum_delta);
}

#endif
