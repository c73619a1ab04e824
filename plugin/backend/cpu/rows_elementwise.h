/* The elementwise loops, part of rows_impl.h. Each makes one pass over memory and rounds each result once;
 * see rows.h. */

static void activate(amp_dtype dtype, amp_activation activation, const void *x, void *y, size_t count)
{
    AMP_BY_ACTIVATION(activation, AMP_BY_DTYPE(dtype,
        AMP_LANES(count, vstore(y, i, n, vactivate(vload(x, i, n, dt), act), dt))));
}

static void gradient(amp_dtype dtype, amp_activation activation, const void *y, const void *dy, void *dx,
                     size_t count, int accumulate)
{
    AMP_BY_ACTIVATION(activation, AMP_BY_DTYPE(dtype,
        AMP_LANES(count, vput(dx, i, n, vload(dy, i, n, dt) * vgradient(vload(y, i, n, dt), act), accumulate,
                              dt))));
}

static void blend(amp_dtype dtype, amp_activation activation, const void *x, const void *from, void *y,
                  size_t count, float alpha, float beta)
{
    AMP_BY_ACTIVATION(activation, AMP_BY_DTYPE(dtype, AMP_LANES(count, {
        vf v = vset(alpha) * vload(x, i, n, dt) + vset(beta) * vload(from, i, n, dt);
        vstore(y, i, n, vactivate(v, act), dt);
    })));
}

static void product(amp_dtype dtype, const void *x, const void *s, void *y, size_t count, int accumulate)
{
    AMP_BY_DTYPE(dtype, AMP_LANES(count, vput(y, i, n, vload(x, i, n, dt) * vload(s, i, n, dt), accumulate,
                                              dt)));
}

static void scale(amp_dtype dtype, const void *src, void *dst, size_t count, float alpha, int accumulate)
{
    AMP_BY_DTYPE(dtype, AMP_LANES(count, vput(dst, i, n, vset(alpha) * vload(src, i, n, dt), accumulate,
                                              dt)));
}

static void spread(amp_dtype dtype, const float *values, size_t period, void *dst, size_t count,
                   int accumulate)
{
    while (count > 0) {
        size_t lanes = count < period ? count : period;
        AMP_BY_DTYPE(dtype, AMP_LANES(lanes, vput(dst, i, n, vload(values, i, n, AMP_FP32), accumulate, dt)));
        dst = into(dst, lanes, dtype);
        count -= lanes;
    }
}

static void mask(amp_dtype dtype, const void *x, void *y, const uint8_t *keep, size_t count, float scale_by,
    int accumulate)
{
    AMP_BY_DTYPE(dtype, AMP_LANES(count, {
        vm dropped = vieq(vload_u8(keep + i, n), viset(0));
        vput(y, i, n, vselect(dropped, vset(0), vset(scale_by) * vload(x, i, n, dt)), accumulate, dt);
    }));
}
