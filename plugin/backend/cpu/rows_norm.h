/* Batch norm's passes over memory, part of rows_impl.h: the sums, and the two elementwise passes that use
 * them.
 *
 * Each lane of the period has one fp32 accumulator for a chunk of CHUNK periods, which is then added to a
 * double: so the fp32 error is that of a short sum, for any batch size. Four periods are added pairwise
 * before they are added to the accumulator, which is then read and written a quarter as often. */

enum { CHUNK = 64 }; /* periods summed in fp32 before the flush to double */

AMP_INLINE void sum_body(const void *x, size_t count, size_t period, float *acc, double *sums,
                         amp_dtype dtype)
{
    while (count > 0) {
        size_t groups = count / period < CHUNK ? count / period : CHUNK,
            lanes = groups ? period : count, g = 0;
        if (!groups) groups = 1;
        memset(acc, 0, lanes * sizeof *acc);
        for (; g + 4 <= groups; g += 4)
            AMP_LANES(lanes, {
                size_t p = g * period + i;
                vf low = vload(x, p, n, dtype) + vload(x, p + period, n, dtype);
                vf high = vload(x, p + 2 * period, n, dtype) + vload(x, p + 3 * period, n, dtype);
                vput(acc, i, n, low + high, 1, AMP_FP32);
            });
        for (; g < groups; g++)
            AMP_LANES(lanes, vput(acc, i, n, vload(x, g * period + i, n, dtype), 1, AMP_FP32));
        for (size_t l = 0; l < lanes; l++) sums[l] += (double)acc[l];
        x = at(x, groups * lanes, dtype);
        count -= groups * lanes;
    }
}

static void sum(amp_dtype dtype, const void *x, size_t count, size_t period, float *scratch, double *sums)
{
    AMP_BY_DTYPE(dtype, sum_body(x, count, period, scratch, sums, dt));
}

/* Sums of x and of x². Each chunk takes its first group as pivot and sums u = x - pivot: u is small if the
 * spread is small, so that Σu² stays accurate where Σx² would lose all digits. The sums are then moved,
 * in double, to the origin that all chunks share. With n groups and s = pivot - origin:
 *   Σ(x-origin) = Σu + n·s, Σ(x-origin)² = Σu² + 2s·Σu + n·s² */
AMP_INLINE void moments_body(const void *x, size_t count, size_t period, const float *origin, float *scratch,
    double *sums, double *squares, amp_dtype dtype)
{
    float *pivot = scratch, *first = scratch + period, *second = scratch + 2 * period;
    while (count > 0) {
        size_t groups = count / period < CHUNK ? count / period : CHUNK,
            lanes = groups ? period : count, g = 0;
        if (!groups) groups = 1;
        AMP_LANES(lanes, vstore(pivot, i, n, vload(x, i, n, dtype), AMP_FP32));
        memset(first, 0, lanes * sizeof *first);
        memset(second, 0, lanes * sizeof *second);
        for (; g + 4 <= groups; g += 4)
            AMP_LANES(lanes, {
                size_t p = g * period + i;
                vf zero = vload(pivot, i, n, AMP_FP32);
                vf u0 = vload(x, p, n, dtype) - zero;
                vf u1 = vload(x, p + period, n, dtype) - zero;
                vf u2 = vload(x, p + 2 * period, n, dtype) - zero;
                vf u3 = vload(x, p + 3 * period, n, dtype) - zero;
                vput(first, i, n, (u0 + u1) + (u2 + u3), 1, AMP_FP32);
                vput(second, i, n, (u0 * u0 + u1 * u1) + (u2 * u2 + u3 * u3), 1, AMP_FP32);
            });
        for (; g < groups; g++)
            AMP_LANES(lanes, {
                vf u = vload(x, g * period + i, n, dtype) - vload(pivot, i, n, AMP_FP32);
                vput(first, i, n, u, 1, AMP_FP32);
                vput(second, i, n, u * u, 1, AMP_FP32);
            });
        for (size_t l = 0; l < lanes; l++) {
            double s = (double)pivot[l] - (double)origin[l], total = (double)groups * s;
            sums[l] += (double)first[l] + total;
            squares[l] += (double)second[l] + s * (2 * (double)first[l] + total);
        }
        x = at(x, groups * lanes, dtype);
        count -= groups * lanes;
    }
}

static void moments(amp_dtype dtype, const void *x, size_t count, size_t period, const float *origin,
    float *scratch, double *sums, double *squares)
{
    AMP_BY_DTYPE(dtype, moments_body(x, count, period, origin, scratch, sums, squares, dt));
}

AMP_INLINE void normalize_body(const void *x, void *y, size_t count, size_t period, const float *mean,
    const float *gain, const float *bias, amp_activation act, amp_dtype dtype)
{
    while (count > 0) {
        size_t lanes = count < period ? count : period;
        AMP_LANES(lanes, {
            vf centred = vload(x, i, n, dtype) - vload(mean, i, n, AMP_FP32);
            vf v = centred * vload(gain, i, n, AMP_FP32) + vload(bias, i, n, AMP_FP32);
            vstore(y, i, n, vactivate(v, act), dtype);
        });
        x = at(x, lanes, dtype);
        y = into(y, lanes, dtype);
        count -= lanes;
    }
}

static void normalize(amp_dtype dtype, amp_activation activation, const void *x, void *y, size_t count,
    size_t period, const float *mean, const float *gain, const float *bias)
{
    AMP_BY_ACTIVATION(activation,
        AMP_BY_DTYPE(dtype, normalize_body(x, y, count, period, mean, gain, bias, act, dt)));
}

/* d = dy·act' of one vector at element p, lane i, where x - mean is `centred`. */
AMP_INLINE vf delta_at(const void *y, const void *dy, size_t p, size_t i, int n, vf centred,
    const float *gain, const float *bias, amp_activation act, amp_dtype dtype)
{
    vf v;
    if (amp_cpu_repeats_forward(act, dtype))
        v = centred * vload(gain, i, n, AMP_FP32) + vload(bias, i, n, AMP_FP32);
    else v = vload(y, p, n, dtype);
    return vload(dy, p, n, dtype) * vgradient(v, act);
}

AMP_INLINE void delta_sums_body(const void *x, const void *y, const void *dy, size_t count, size_t period,
    const float *mean, const float *gain, const float *bias, float *scratch, double *sums, double *products,
    amp_activation act, amp_dtype dtype)
{
    float *first = scratch, *second = scratch + period;
    while (count > 0) {
        size_t groups = count / period < CHUNK ? count / period : CHUNK,
            lanes = groups ? period : count, g = 0;
        if (!groups) groups = 1;
        memset(first, 0, lanes * sizeof *first);
        memset(second, 0, lanes * sizeof *second);
        for (; g + 2 <= groups; g += 2)
            AMP_LANES(lanes, {
                size_t p = g * period + i;
                vf centre = vload(mean, i, n, AMP_FP32);
                vf u0 = vload(x, p, n, dtype) - centre;
                vf u1 = vload(x, p + period, n, dtype) - centre;
                vf d0 = delta_at(y, dy, p, i, n, u0, gain, bias, act, dtype);
                vf d1 = delta_at(y, dy, p + period, i, n, u1, gain, bias, act, dtype);
                vput(first, i, n, d0 + d1, 1, AMP_FP32);
                vput(second, i, n, d0 * u0 + d1 * u1, 1, AMP_FP32);
            });
        for (; g < groups; g++)
            AMP_LANES(lanes, {
                size_t p = g * period + i;
                vf u = vload(x, p, n, dtype) - vload(mean, i, n, AMP_FP32);
                vf d = delta_at(y, dy, p, i, n, u, gain, bias, act, dtype);
                vput(first, i, n, d, 1, AMP_FP32);
                vput(second, i, n, d * u, 1, AMP_FP32);
            });
        for (size_t l = 0; l < lanes; l++) {
            sums[l] += (double)first[l];
            products[l] += (double)second[l];
        }
        x = at(x, groups * lanes, dtype);
        y = at(y, groups * lanes, dtype);
        dy = at(dy, groups * lanes, dtype);
        count -= groups * lanes;
    }
}

static void delta_sums(amp_dtype dtype, amp_activation activation, const void *x, const void *y,
    const void *dy, size_t count, size_t period, const float *mean, const float *gain, const float *bias,
    float *scratch, double *sums, double *products)
{
    AMP_BY_ACTIVATION(activation, AMP_BY_DTYPE(dtype,
        delta_sums_body(x, y, dy, count, period, mean, gain, bias, scratch, sums, products, act, dt)));
}

AMP_INLINE void normalize_delta_body(const void *x, const void *y, const void *dy, void *dx, size_t count,
    size_t period, const float *mean, const float *gain, const float *bias, const float *a, const float *b,
    const float *c, amp_activation act, amp_dtype dtype)
{
    while (count > 0) {
        size_t lanes = count < period ? count : period;
        AMP_LANES(lanes, {
            vf centred = vload(x, i, n, dtype) - vload(mean, i, n, AMP_FP32);
            vf along = delta_at(y, dy, i, i, n, centred, gain, bias, act, dtype) * vload(a, i, n, AMP_FP32);
            vstore(dx, i, n, along + (centred * vload(b, i, n, AMP_FP32) + vload(c, i, n, AMP_FP32)), dtype);
        });
        x = at(x, lanes, dtype);
        y = at(y, lanes, dtype);
        dy = at(dy, lanes, dtype);
        dx = into(dx, lanes, dtype);
        count -= lanes;
    }
}

static void normalize_delta(amp_dtype dtype, amp_activation activation, const void *x, const void *y,
    const void *dy, void *dx, size_t count, size_t period, const float *mean, const float *gain,
    const float *bias, const float *a, const float *b, const float *c)
{
    AMP_BY_ACTIVATION(activation, AMP_BY_DTYPE(dtype,
        normalize_delta_body(x, y, dy, dx, count, period, mean, gain, bias, a, b, c, act, dt)));
}
