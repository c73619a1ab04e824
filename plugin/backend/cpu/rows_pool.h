/* Max pooling and upsampling, part of rows_impl.h. Loops go over the pixels of a row, and vectors over the
 * channels of a pixel. */

AMP_INLINE int at_least(int a, int b) { return a > b ? a : b; }
AMP_INLINE int at_most(int a, int b) { return a < b ? a : b; }

/* Computes an output pixel from the part of its window that is inside the image: rows n0..n1-1 and columns
 * m0..m1-1, whose first element is x[corner]. The first of equal maxima wins, and NaN is never chosen. */
AMP_INLINE void maxpool_pixel(const void *x, size_t corner, size_t c, size_t x_row, int size, int n0, int n1,
                              int m0, int m1, void *y, uint8_t *choice, amp_dtype dtype)
{
    AMP_LANES(c, {
        vf best = vset(-FLT_MAX);
        vi which = viset(255);
        for (int r = n0; r < n1; r++)
            for (int m = m0; m < m1; m++) {
                vf value = vload(x, corner + (size_t)(r - n0) * x_row + (size_t)(m - m0) * c + i, n, dtype);
                vm wins = vgt(value, best);
                best = vselect(wins, value, best);
                which = viselect(wins, viset(r * size + m), which);
            }
        vstore(y, i, n, best, dtype);
        vstore_u8(choice + i, n, which);
    });
}

AMP_INLINE void maxpool_body(const amp_cpu_pool *p, const void *x, int i, void *y_row, uint8_t *choice_row,
    amp_dtype dtype)
{
    int top = i * p->stride - p->offset, n0 = at_least(0, -top), n1 = at_most(p->size, p->h - top);
    size_t c = (size_t)p->c, x_row = (size_t)p->w * c;
    for (int j = 0; j < p->out_w; j++) {
        int left = j * p->stride - p->offset, m0 = at_least(0, -left), m1 = at_most(p->size, p->w - left);
        size_t corner = (size_t)(top + n0) * x_row + (size_t)(left + m0) * c;
        void *y = into(y_row, (size_t)j * c, dtype);
        uint8_t *choice = choice_row + (size_t)j * c;
        if (p->size == 2 && n1 - n0 == 2 && m1 - m0 == 2) /* the usual window, unrolled */
            maxpool_pixel(x, corner, c, x_row, 2, 0, 2, 0, 2, y, choice, dtype);
        else
            maxpool_pixel(x, corner, c, x_row, p->size, n0, n1, m0, m1, y, choice, dtype);
    }
}

static void maxpool(amp_dtype dtype, const amp_cpu_pool *p, const void *x, int i, void *y_row,
                    uint8_t *choice_row)
{
    AMP_BY_DTYPE(dtype, maxpool_body(p, x, i, y_row, choice_row, dt));
}

/* For windows that overlap. The delta of an input pixel is the sum of dy over the windows that chose this
 * pixel, in fp32 and in row order. The windows in rows i0..i1-1 cover input row r, and the windows in columns
 * j0..j1-1 cover input column s. j0 and j1 only increase with s. */
AMP_INLINE void maxpool_delta_overlapping(const amp_cpu_pool *p, const void *dy, const uint8_t *choice, int r,
                                          void *dx_row, int accumulate, amp_dtype dtype)
{
    int down = r + p->offset, i1 = at_most(p->out_h, down / p->stride + 1);
    int i0 = down < p->size ? 0 : (down - p->size) / p->stride + 1;
    size_t c = (size_t)p->c, y_row = (size_t)p->out_w * c;
    int j0 = 0, j1 = 0;
    for (int s = 0; s < p->w; s++) {
        int right = s + p->offset;
        while (j1 < p->out_w && j1 * p->stride <= right) ++j1;
        while (j0 < j1 && j0 * p->stride + p->size <= right) ++j0;
        void *dx = into(dx_row, (size_t)s * c, dtype);
        AMP_LANES(c, {
            vf total = accumulate ? vload(dx, i, n, dtype) : vset(0);
            for (int wi = i0; wi < i1; wi++) {
                size_t pixel = (size_t)wi * y_row + (size_t)j0 * c + i;
                int place = (down - wi * p->stride) * p->size + right - j0 * p->stride;
                for (int wj = j0; wj < j1; wj++, pixel += c, place -= p->stride) {
                    vm chosen = vieq(vload_u8(choice + pixel, n), viset(place));
                    total = total + vselect(chosen, vload(dy, pixel, n, dtype), vset(0));
                }
            }
            vstore(dx, i, n, total, dtype);
        });
    }
}

/* For windows that do not overlap. Each input pixel is in at most one window, so dy is copied, not summed.
 * Each vector of `choice` is read once for all columns of its window in this row. */
AMP_INLINE void maxpool_delta_apart(const amp_cpu_pool *p, const void *dy, const uint8_t *choice, int r,
                                    void *dx_row, int accumulate, amp_dtype dtype)
{
    int down = r + p->offset, wi = down / p->stride, place = (down - wi * p->stride) * p->size;
    int covered = wi < p->out_h && down - wi * p->stride < p->size;
    size_t c = (size_t)p->c, y_row = (size_t)wi * p->out_w * c;
    int gaps = !covered || p->stride > p->size || p->out_w * p->stride - p->offset < p->w;
    if (gaps && !accumulate) memset(dx_row, 0, (size_t)p->w * c * amp_dtype_size(dtype));
    for (int j = 0; covered && j < p->out_w; j++) {
        int left = j * p->stride - p->offset, m0 = at_least(0, -left), m1 = at_most(p->size, p->w - left);
        size_t y = y_row + (size_t)j * c;
        AMP_LANES(c, {
            vi chosen = vload_u8(choice + y + i, n);
            for (int m = m0; m < m1; m++) {
                vm here = vieq(chosen, viset(place + m));
                size_t x = (size_t)(left + m) * c + i;
                if (accumulate)
                    vput(dx_row, x, n, vselect(here, vload(dy, y + i, n, dtype), vset(0)), 1, dtype);
                else vkeep(dx_row, x, n, here, dy, y + i, dtype);
            }
        });
    }
}

static void maxpool_delta(amp_dtype dtype, const amp_cpu_pool *p, const void *dy, const uint8_t *choice,
                          int r, void *dx_row, int accumulate)
{
    if (p->stride >= p->size)
        AMP_BY_DTYPE(dtype, maxpool_delta_apart(p, dy, choice, r, dx_row, accumulate, dt));
    else AMP_BY_DTYPE(dtype, maxpool_delta_overlapping(p, dy, choice, r, dx_row, accumulate, dt));
}

static void upsample(amp_dtype dtype, const void *x_row, void *y_row, int w, int c, int stride, float factor)
{
    size_t lanes = (size_t)c;
    AMP_BY_DTYPE(dtype, for (int s = 0; s < w; s++) AMP_LANES(lanes, {
        vf v = vset(factor) * vload(x_row, (size_t)s * lanes + i, n, dt);
        for (int m = 0; m < stride; m++) vstore(y_row, ((size_t)s * stride + m) * lanes + i, n, v, dt);
    }));
}

static void upsample_delta(amp_dtype dtype, const void *dy_rows, void *dx_row, int w, int c, int stride,
                           float factor, int accumulate)
{
    size_t lanes = (size_t)c, row = (size_t)w * stride * lanes;
    AMP_BY_DTYPE(dtype, for (int s = 0; s < w; s++) AMP_LANES(lanes, {
        vf total = vset(0);
        for (int r = 0; r < stride; r++)
            for (int m = 0; m < stride; m++)
                total = total + vload(dy_rows, r * row + ((size_t)s * stride + m) * lanes + i, n, dt);
        vput(dx_row, (size_t)s * lanes + i, n, vset(factor) * total, accumulate, dt);
    }));
}
