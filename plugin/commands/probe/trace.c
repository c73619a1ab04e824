/* Keeps and compares the tensors of a pass. */
#include "trace.h"

#include <math.h>

#include "../../host/program/failure.h"
#include "../../tensor/half.h"

/* ---- traces ---- */

void amp_trace_make(amp_trace *t, int layers)
{
    size_t count = (size_t)layers * AMP_TRACE_KINDS;
    *t = (amp_trace){ layers, amp_allocated(calloc(count + 1, sizeof *t->tensors)) };
}

void amp_trace_free(amp_trace *t)
{
    for (int i = 0; t->tensors && i < t->layers * AMP_TRACE_KINDS; i++) free(t->tensors[i].numbers);
    free(t->tensors);
    *t = (amp_trace){ 0 };
}

amp_trace_tensor *amp_trace_at(const amp_trace *t, int layer, amp_trace_kind kind)
{
    return &t->tensors[layer * AMP_TRACE_KINDS + (int)kind];
}

void amp_trace_append(amp_trace *t, int layer, amp_trace_kind kind, const float *numbers, size_t count,
                      float factor)
{
    amp_trace_tensor *to = amp_trace_at(t, layer, kind);
    to->numbers = amp_allocated(realloc(to->numbers, (to->count + count + 1) * sizeof *to->numbers));
    for (size_t i = 0; i < count; i++) to->numbers[to->count + i] = numbers[i] * factor;
    to->count += count;
}

/* ---- differences ---- */

double amp_trace_mean_square(const amp_trace_tensor *t)
{
    double sum = 0;
    for (size_t i = 0; i < t->count; i++) sum += (double)t->numbers[i] * t->numbers[i];
    return t->count ? sum / (double)t->count : 0;
}

/* amp_difference.floor of a tensor of `count` numbers. Biases and scales: the root mean square of the
 * weights' gradient, times sqrt(count). Means: the root of the sum of the variances. Others: 0. */
static double floor_of(const amp_trace *reference, int layer, amp_trace_kind kind, size_t count)
{
    double sum = 0;
    if (kind == AMP_TRACE_BIASES || kind == AMP_TRACE_SCALES)
        return sqrt(amp_trace_mean_square(amp_trace_at(reference, layer, AMP_TRACE_WEIGHTS)) * (double)count);
    if (kind != AMP_TRACE_MEANS) return 0;
    const amp_trace_tensor *v = amp_trace_at(reference, layer, AMP_TRACE_VARIANCES);
    for (size_t i = 0; i < v->count; i++) sum += fabs((double)v->numbers[i]);
    return sqrt(sum);
}

/* Sets d->largest and d->flushed. fp16 rounds numbers of up to 2^-25, a tie, to 0. */
static void take_sizes(const amp_trace_tensor *y, double scale, amp_difference *d)
{
    size_t numbers = 0, flushed = 0;
    for (size_t i = 0; i < y->count; i++) {
        double size = scale * fabs((double)y->numbers[i]);
        if (!amp_is_finite(y->numbers[i]) || size == 0) continue;
        d->largest = fmax(d->largest, size);
        flushed += size <= 0x1p-25;
        numbers++;
    }
    d->flushed = numbers ? (double)flushed / (double)numbers : 0;
}

void amp_trace_compare(const amp_trace *reference, int layer, amp_trace_kind kind, const float *numbers,
                       size_t count, double scale, amp_difference *out)
{
    const amp_trace_tensor *y = amp_trace_at(reference, layer, kind);
    amp_difference d = { .compared = 1, .floor = floor_of(reference, layer, kind, count) };
    if (!y->numbers || y->count != count) return;
    for (size_t i = 0; i < count; i++) {
        double a = numbers[i], b = y->numbers[i];
        if (!amp_is_finite(numbers[i]) || !amp_is_finite(y->numbers[i])) a = b = NAN;
        d.xx += a * a;
        d.yy += b * b;
        d.xy += a * b;
        d.dd += (a - b) * (a - b);
    }
    take_sizes(y, scale, &d);
    *out = d;
}

double amp_difference_error(const amp_difference *d)
{
    double size = sqrt(d->yy) > d->floor ? sqrt(d->yy) : d->floor;
    if (!d->compared) return NAN;
    if (isnan(d->dd)) return INFINITY;
    return d->dd > 0 ? size > 0 ? sqrt(d->dd) / size : 1 : 0;
}

double amp_difference_cosine(const amp_difference *d)
{
    return d->compared && d->xx > 0 && d->yy > 0 ? d->xy / sqrt(d->xx) / sqrt(d->yy) : NAN;
}

/* ---- layouts ---- */

/* Returns the index of the element of image n, channel c and pixel p. */
static size_t place_of(const amp_tensor *t, size_t n, size_t c, size_t p)
{
    size_t channels = (size_t)t->shape.c, pixels = (size_t)t->shape.h * (size_t)t->shape.w;
    return t->layout == AMP_NCHW ? (n * channels + c) * pixels + p : (n * pixels + p) * channels + c;
}

static float number_at(const amp_tensor *t, const void *memory, size_t at)
{
    if (t->dtype == AMP_FP32) return ((const float *)memory)[at];
    amp_half_bits half = ((const amp_half_bits *)memory)[at];
    return t->dtype == AMP_BF16 ? amp_bf16_to_float(half) : amp_fp16_to_float(half);
}

static void set_number(const amp_tensor *t, void *memory, size_t at, float number)
{
    if (t->dtype == AMP_FP32) ((float *)memory)[at] = number;
    else ((amp_half_bits *)memory)[at] = t->dtype == AMP_BF16 ? amp_float_to_bf16(number)
                                                              : amp_float_to_fp16(number);
}

void amp_trace_convert(const amp_tensor *t, void *memory, float factor, const float *from, float *to)
{
    long channels = t->shape.c, rows = (long)t->shape.n * channels; /* a row: one channel of one image */
    size_t pixels = (size_t)t->shape.h * (size_t)t->shape.w;
    #pragma omp parallel for
    for (long row = 0; row < rows; row++)
        for (size_t p = 0; p < pixels; p++) {
            size_t place = place_of(t, (size_t)(row / channels), (size_t)(row % channels), p);
            size_t plain = (size_t)row * pixels + p;
            if (from) set_number(t, memory, place, factor * from[plain]);
            else to[plain] = factor * number_at(t, memory, place);
        }
}
