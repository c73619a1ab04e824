/* Batch norm's passes over memory, part of rows_impl.h.
 *
 * Each lane of the period has an fp32 accumulator, which is added to a double after each chunk of CHUNK
 * periods, so that the error does not grow with the batch. Four periods (in delta_sums, two) are added
 * pairwise first, so that the accumulator is read and written less often. */

enum { CHUNK = 64 }; /* periods */

/* A part of a span: `groups` groups of `lanes` elements, from element `first` on. A group is a period, or
 * the rest of a period at the end of the span. lanes = 0 ends the loop. */
typedef struct chunk { size_t first, groups, lanes; } chunk;

AMP_INLINE chunk chunk_at(size_t first, size_t count, size_t period)
{
    size_t left = count - first, groups = left / period < CHUNK ? left / period : CHUNK;
    return groups ? (chunk){ first, groups, period } : (chunk){ first, 1, left };
}

#define FOR_CHUNKS(k, count, period) \
    for (chunk k = chunk_at(0, count, period); k.lanes; \
         k = chunk_at(k.first + k.groups * k.lanes, count, period))

static void sum(amp_dtype dtype, const void *x, size_t count, size_t period, const amp_cpu_sums *to)
{
    float *acc = to->scratch;
    double *sums = to->first;
    FOR_CHUNKS(k, count, period) {
        size_t g = 0;
        memset(acc, 0, k.lanes * sizeof *acc);
        for (; g + 4 <= k.groups; g += 4)
            AMP_BY_DTYPE(dtype, AMP_LANES(k.lanes, {
                size_t p = k.first + g * period + i;
                vf low = vload(x, p, n, dt) + vload(x, p + period, n, dt);
                vf high = vload(x, p + 2 * period, n, dt) + vload(x, p + 3 * period, n, dt);
                vput(acc, i, n, low + high, 1, AMP_FP32);
            }));
        for (; g < k.groups; g++)
            AMP_BY_DTYPE(dtype, AMP_LANES(k.lanes,
                vput(acc, i, n, vload(x, k.first + g * period + i, n, dt), 1, AMP_FP32)));
        for (size_t l = 0; l < k.lanes; l++) sums[l] += (double)acc[l];
    }
}

/* Sums x - origin and its square. Each chunk takes its first group as pivot and sums u = x - pivot. Σu² stays
 * accurate where Σx² would lose all digits. The sums are then converted, in double, to the origin, which all
 * chunks share. With n groups and s = pivot - origin:
 *   Σ(x-origin) = Σu + n·s, Σ(x-origin)² = Σu² + 2s·Σu + n·s² */
static void moments(amp_dtype dtype, const void *x, size_t count, size_t period, const float *origin,
                    const amp_cpu_sums *to)
{
    float *pivot = to->scratch, *first = pivot + period, *second = first + period;
    double *sums = to->first, *squared = to->second;
    FOR_CHUNKS(k, count, period) {
        size_t g = 0;
        AMP_BY_DTYPE(dtype, AMP_LANES(k.lanes,
            vstore(pivot, i, n, vload(x, k.first + i, n, dt), AMP_FP32)));
        memset(first, 0, k.lanes * sizeof *first);
        memset(second, 0, k.lanes * sizeof *second);
        for (; g + 4 <= k.groups; g += 4)
            AMP_BY_DTYPE(dtype, AMP_LANES(k.lanes, {
                size_t p = k.first + g * period + i;
                vf zero = vload(pivot, i, n, AMP_FP32);
                vf u0 = vload(x, p, n, dt) - zero;
                vf u1 = vload(x, p + period, n, dt) - zero;
                vf u2 = vload(x, p + 2 * period, n, dt) - zero;
                vf u3 = vload(x, p + 3 * period, n, dt) - zero;
                vput(first, i, n, (u0 + u1) + (u2 + u3), 1, AMP_FP32);
                vput(second, i, n, (u0 * u0 + u1 * u1) + (u2 * u2 + u3 * u3), 1, AMP_FP32);
            }));
        for (; g < k.groups; g++)
            AMP_BY_DTYPE(dtype, AMP_LANES(k.lanes, {
                vf u = vload(x, k.first + g * period + i, n, dt) - vload(pivot, i, n, AMP_FP32);
                vput(first, i, n, u, 1, AMP_FP32);
                vput(second, i, n, u * u, 1, AMP_FP32);
            }));
        for (size_t l = 0; l < k.lanes; l++) {
            double s = (double)pivot[l] - (double)origin[l], total = (double)k.groups * s;
            sums[l] += (double)first[l] + total;
            squared[l] += (double)second[l] + s * (2 * (double)first[l] + total);
        }
    }
}

/* Runs `step` for each vector of each period of a span. A vector has lanes i..i+n-1 of the period, which are
 * the elements p..p+n-1 of the span. */
#define EACH_PERIOD(count, period, dtype, step) \
    AMP_BY_DTYPE(dtype, for (size_t first = 0; first < (count); first += (period)) { \
        const size_t lanes = (count) - first < (period) ? (count) - first : (period); \
        AMP_LANES(lanes, { const size_t p = first + i; step; }); \
    })

static void normalize(amp_dtype dtype, amp_activation activation, const void *x, void *y, size_t count,
                      const amp_cpu_norm *norm)
{
    const amp_cpu_norm m = *norm;
    AMP_BY_ACTIVATION(activation, EACH_PERIOD(count, m.period, dtype, {
        vf centred = vload(x, p, n, dt) - vload(m.mean, i, n, AMP_FP32);
        vf v = centred * vload(m.gain, i, n, AMP_FP32) + vload(m.bias, i, n, AMP_FP32);
        vstore(y, p, n, vactivate(v, act), dt);
    }));
}

/* Returns d = dy·act' for the vector at element p of the span and lane i of the period. centred: x - mean. */
AMP_INLINE vf delta_at(const void *y, const void *dy, size_t p, size_t i, int n, vf centred,
                       const amp_cpu_norm *m, amp_activation act, amp_dtype dtype)
{
    vf v;
    if (amp_cpu_repeats_forward(act, dtype))
        v = centred * vload(m->gain, i, n, AMP_FP32) + vload(m->bias, i, n, AMP_FP32);
    else v = vload(y, p, n, dtype);
    return vload(dy, p, n, dtype) * vgradient(v, act);
}

static void delta_sums(amp_dtype dtype, amp_activation activation, const void *x, const void *y,
                       const void *dy, size_t count, const amp_cpu_norm *norm, const amp_cpu_sums *to)
{
    const amp_cpu_norm m = *norm;
    float *first = to->scratch, *second = first + m.period;
    double *sums = to->first, *products = to->second;
    FOR_CHUNKS(k, count, m.period) {
        size_t g = 0;
        memset(first, 0, k.lanes * sizeof *first);
        memset(second, 0, k.lanes * sizeof *second);
        for (; g + 2 <= k.groups; g += 2)
            AMP_BY_ACTIVATION(activation, AMP_BY_DTYPE(dtype, AMP_LANES(k.lanes, {
                size_t p = k.first + g * m.period + i;
                vf centre = vload(m.mean, i, n, AMP_FP32);
                vf u0 = vload(x, p, n, dt) - centre;
                vf u1 = vload(x, p + m.period, n, dt) - centre;
                vf d0 = delta_at(y, dy, p, i, n, u0, &m, act, dt);
                vf d1 = delta_at(y, dy, p + m.period, i, n, u1, &m, act, dt);
                vput(first, i, n, d0 + d1, 1, AMP_FP32);
                vput(second, i, n, d0 * u0 + d1 * u1, 1, AMP_FP32);
            })));
        for (; g < k.groups; g++)
            AMP_BY_ACTIVATION(activation, AMP_BY_DTYPE(dtype, AMP_LANES(k.lanes, {
                size_t p = k.first + g * m.period + i;
                vf u = vload(x, p, n, dt) - vload(m.mean, i, n, AMP_FP32);
                vf d = delta_at(y, dy, p, i, n, u, &m, act, dt);
                vput(first, i, n, d, 1, AMP_FP32);
                vput(second, i, n, d * u, 1, AMP_FP32);
            })));
        for (size_t l = 0; l < k.lanes; l++) {
            sums[l] += (double)first[l];
            products[l] += (double)second[l];
        }
    }
}

static void normalize_delta(amp_dtype dtype, amp_activation activation, const void *x, const void *y,
                            const void *dy, void *dx, size_t count, const amp_cpu_norm *norm)
{
    const amp_cpu_norm m = *norm;
    AMP_BY_ACTIVATION(activation, EACH_PERIOD(count, m.period, dtype, {
        vf centred = vload(x, p, n, dt) - vload(m.mean, i, n, AMP_FP32);
        vf along = delta_at(y, dy, p, i, n, centred, &m, act, dt) * vload(m.a, i, n, AMP_FP32);
        vstore(dx, p, n, along + (centred * vload(m.b, i, n, AMP_FP32) + vload(m.c, i, n, AMP_FP32)), dt);
    }));
}
