/* Convolutions in double precision, whatever the layout: operands are first copied to the order that makes
 * the innermost loop run over channels that lie side by side. */
#include "cudnn_convolution.h"

#include <vector>

namespace amp_double {

size_t strided::bytes() const
{
    int64_t last = 0;
    for (int i = 0; i < 4; i++) last += (dims[i] - 1) * strides[i];
    return (size_t)(last + 1) * size_of(type);
}

namespace {

float seen(number type, unsigned arithmetic, float v)
{
    if (type == number::fp32) return arithmetic & TF32_INPUTS ? tf32(v) : v;
    return arithmetic & SHORT_INPUTS ? (float)shorten(v, 5, -126) : v;
}

/* All elements, with dimension order[3] innermost. */
std::vector<float> packed(const strided &t, const int (&order)[4], unsigned arithmetic)
{
    std::vector<float> out((size_t)(t.dims[0] * t.dims[1] * t.dims[2] * t.dims[3]));
    size_t to = 0;
    const int64_t *d = t.dims, *s = t.strides;
    for (int64_t i = 0; i < d[order[0]]; i++)
        for (int64_t j = 0; j < d[order[1]]; j++)
            for (int64_t k = 0; k < d[order[2]]; k++)
                for (int64_t l = 0; l < d[order[3]]; l++)
                    out[to++] = seen(t.type, arithmetic,
                        load(t.type, t.data, i * s[order[0]] + j * s[order[1]] + k * s[order[2]] +
                             l * s[order[3]]));
    return out;
}

const int CHANNELS_LAST[4] = { 0, 2, 3, 1 }, FILTERS_LAST[4] = { 2, 3, 1, 0 };

/* t = alpha · sums + beta · t; the sums lie with channels last. */
void write(const strided &t, const std::vector<double> &sums, double alpha, double beta)
{
    size_t from = 0;
    for (int64_t n = 0; n < t.dims[0]; n++)
        for (int64_t h = 0; h < t.dims[2]; h++)
            for (int64_t w = 0; w < t.dims[3]; w++)
                for (int64_t c = 0; c < t.dims[1]; c++) {
                    int64_t at = n * t.strides[0] + c * t.strides[1] + h * t.strides[2] + w * t.strides[3];
                    double v = alpha * sums[from++];
                    store(t.type, t.data, at, beta == 0 ? v : v + beta * load(t.type, t.data, at));
                }
}

void add(double *sums, const float *row, float factor, int64_t count)
{
    for (int64_t i = 0; i < count; i++) sums[i] += (double)factor * row[i];
}

void shorten_all(std::vector<double> &sums, number type)
{
    for (double &v : sums) v = rounded(type, v);
}

/* Calls each(n, output row, output column, input row, input column, r, s) for all places where the window
 * meets the image, window positions outermost; after a position, done(). */
template <class Each, class Done> void walk(const convolution &c, Each each, Done done)
{
    for (int64_t r = 0; r < c.w.dims[2]; r++)
        for (int64_t s = 0; s < c.w.dims[3]; s++, done())
            for (int64_t n = 0; n < c.x.dims[0]; n++)
                for (int64_t p = 0; p < c.y.dims[2]; p++) {
                    int64_t i = p * c.stride[0] - c.pad[0] + r * c.dilation[0];
                    if (i < 0 || i >= c.x.dims[2]) continue;
                    for (int64_t q = 0; q < c.y.dims[3]; q++) {
                        int64_t j = q * c.stride[1] - c.pad[1] + s * c.dilation[1];
                        if (j >= 0 && j < c.x.dims[3]) each(n, p, q, i, j, r, s);
                    }
                }
}

struct sizes {
    int64_t k, c, group_c, group_k, groups;
    explicit sizes(const convolution &v)
        : k(v.w.dims[0]), c(v.x.dims[1]), group_c(v.w.dims[1]), group_k(k / (c / group_c)),
          groups(c / group_c) {}
};

int64_t row_of(const strided &t, int64_t n, int64_t h, int64_t w)
{
    return ((n * t.dims[2] + h) * t.dims[3] + w) * t.dims[1];
}

void forward(const convolution &v)
{
    sizes z(v);
    std::vector<float> x = packed(v.x, CHANNELS_LAST, v.arithmetic),
        w = packed(v.w, FILTERS_LAST, v.arithmetic);
    std::vector<double> y((size_t)(v.y.dims[0] * z.k * v.y.dims[2] * v.y.dims[3]));
    walk(v,
        [&](int64_t n, int64_t p, int64_t q, int64_t i, int64_t j, int64_t r, int64_t s) {
            const float *from = &x[row_of(v.x, n, i, j)],
                *filters = &w[(r * v.w.dims[3] + s) * z.group_c * z.k];
            double *to = &y[row_of(v.y, n, p, q)];
            for (int64_t c = 0; c < z.c; c++) {
                int64_t first = c / z.group_c * z.group_k;
                add(to + first, filters + c % z.group_c * z.k + first, from[c], z.group_k);
            }
        },
        [&] { if (v.arithmetic & SHORT_SUMS) shorten_all(y, v.y.type); });
    write(v.y, y, v.alpha, v.beta);
}

void backward_data(const convolution &v)
{
    sizes z(v);
    std::vector<float> dy = packed(v.y, CHANNELS_LAST, v.arithmetic),
        w = packed(v.w, CHANNELS_LAST, v.arithmetic);
    std::vector<double> dx((size_t)(v.x.dims[0] * z.c * v.x.dims[2] * v.x.dims[3]));
    walk(v,
        [&](int64_t n, int64_t p, int64_t q, int64_t i, int64_t j, int64_t r, int64_t s) {
            const float *from = &dy[row_of(v.y, n, p, q)];
            double *to = &dx[row_of(v.x, n, i, j)];
            for (int64_t k = 0; k < z.k; k++)
                add(to + k / z.group_k * z.group_c, &w[row_of(v.w, k, r, s)], from[k], z.group_c);
        },
        [&] { if (v.arithmetic & SHORT_SUMS) shorten_all(dx, v.x.type); });
    write(v.x, dx, v.alpha, v.beta);
}

void backward_filter(const convolution &v)
{
    sizes z(v);
    std::vector<float> x = packed(v.x, CHANNELS_LAST, v.arithmetic),
        dy = packed(v.y, CHANNELS_LAST, v.arithmetic);
    std::vector<double> dw((size_t)(z.k * z.group_c * v.w.dims[2] * v.w.dims[3]));
    int64_t image = 0;
    walk(v,
        [&](int64_t n, int64_t p, int64_t q, int64_t i, int64_t j, int64_t r, int64_t s) {
            if (n != image && v.arithmetic & SHORT_SUMS) shorten_all(dw, v.w.type);
            image = n;
            const float *from = &x[row_of(v.x, n, i, j)], *factors = &dy[row_of(v.y, n, p, q)];
            for (int64_t k = 0; k < z.k; k++)
                add(&dw[row_of(v.w, k, r, s)], from + k / z.group_k * z.group_c, factors[k], z.group_c);
        },
        [] {});
    write(v.w, dw, v.alpha, v.beta);
}

}

void convolve(const convolution &v)
{
    switch (v.which) {
    case pass::forward: forward(v); break;
    case pass::backward_data: backward_data(v); break;
    case pass::backward_filter: backward_filter(v); break;
    }
}

}
