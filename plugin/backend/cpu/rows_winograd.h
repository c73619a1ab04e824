/* The inner loops of Winograd convolutions for AVX2 and AVX-512, part of rows_impl.h. winograd.h explains the
 * computation and the names of matrices, layouts and points. In the transforms, each lane of a vector is a
 * channel.
 *
 * Fused multiply-adds are written explicitly, so that both instruction sets give the same bits. */
#if VL == 1

#define AMP_ROWS_WINOGRAD

#else

#define AMP_ROWS_WINOGRAD ROW(winograd_transform) ROW(winograd_output) ROW(winograd_direct) \
    ROW(winograd_is_finite) ROW(winograd_filters) ROW(winograd_products) ROW(winograd_sums) \
    ROW(winograd_gradient) ROW(winograd_direct_gradient) .winograd_panel = PANEL,

#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 36")
#endif

enum { TILE = AMP_WINOGRAD_TILE, SIDE = AMP_WINOGRAD_SIDE, PLANES = AMP_WINOGRAD_PLANES, PANEL = 2 * VL,
       LINE = 16, PLACES = 9 };

#if VL == 8
AMP_INLINE vf vfma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); } /* a·b + c */
#else
AMP_INLINE vf vfma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
#endif
AMP_INLINE vf vtimes(float a, vf b, vf c) { return vfma(vset(a), b, c); }

/* winograd.h's points a and b (PA, PB), and the factors 1/p, 1/q and 1/r of G (GP, GQ, GR). */
#define PA .625f
#define PB 1.5f
#define PA2 (PA * PA)
#define PB2 (PB * PB)
#define GP (1 / (PA2 * PB2))
#define GQ (1 / (2 * PA2 * (PA2 - PB2)))
#define GR (1 / (2 * PB2 * (PB2 - PA2)))

/* ---- products of a matrix and a column d, written to o; from, to: the strides of d and o ---- */

AMP_INLINE void times_bt(const vf *d, int from, vf *o, int to)
{
    vf d0 = d[0], d1 = d[from], d2 = d[2 * from], d3 = d[3 * from], d4 = d[4 * from], d5 = d[5 * from];
    vf even_a = vtimes(-PB2, d2, d4), odd_a = vtimes(-PB2, d1, d3);
    vf even_b = vtimes(-PA2, d2, d4), odd_b = vtimes(-PA2, d1, d3);
    o[0] = vtimes(PA2 * PB2, d0, vtimes(-PA2 - PB2, d2, d4));
    o[to] = vtimes(PA, odd_a, even_a);
    o[2 * to] = vtimes(-PA, odd_a, even_a);
    o[3 * to] = vtimes(PB, odd_b, even_b);
    o[4 * to] = vtimes(-PB, odd_b, even_b);
    o[5 * to] = vtimes(PA2 * PB2, d1, vtimes(-PA2 - PB2, d3, d5));
}

AMP_INLINE void times_at(const vf *d, int from, vf *o, int to)
{
    vf d1 = d[from], d2 = d[2 * from], d3 = d[3 * from], d4 = d[4 * from];
    vf sum_a = d1 + d2, less_a = d1 - d2, sum_b = d3 + d4, less_b = d3 - d4;
    o[0] = d[0] + (sum_a + sum_b);
    o[to] = vtimes(PA, less_a, vset(PB) * less_b);
    o[2 * to] = vtimes(PA2, sum_a, vset(PB2) * sum_b);
    o[3 * to] = vtimes(PA * PA2, less_a, vtimes(PB * PB2, less_b, d[5 * from]));
}

AMP_INLINE void times_a(const vf *d, int from, vf *o, int to)
{
    vf d0 = d[0], d1 = d[from], d2 = d[2 * from], d3 = d[3 * from];
    vf even_a = vtimes(PA2, d2, d0), odd_a = vtimes(PA2, d3, d1);
    vf even_b = vtimes(PB2, d2, d0), odd_b = vtimes(PB2, d3, d1);
    o[0] = d0;
    o[to] = vtimes(PA, odd_a, even_a);
    o[2 * to] = vtimes(-PA, odd_a, even_a);
    o[3 * to] = vtimes(PB, odd_b, even_b);
    o[4 * to] = vtimes(-PB, odd_b, even_b);
    o[5 * to] = d3;
}

AMP_INLINE void times_g(const vf *d, int from, vf *o, int to)
{
    vf d0 = d[0], d1 = d[from], d2 = d[2 * from];
    vf even_a = vtimes(GQ * PA2, d2, vset(GQ) * d0), even_b = vtimes(GR * PB2, d2, vset(GR) * d0);
    o[0] = vset(GP) * d0;
    o[to] = vtimes(GQ * PA, d1, even_a);
    o[2 * to] = vtimes(-GQ * PA, d1, even_a);
    o[3 * to] = vtimes(GR * PB, d1, even_b);
    o[4 * to] = vtimes(-GR * PB, d1, even_b);
    o[5 * to] = d2;
}

AMP_INLINE void times_gt(const vf *d, int from, vf *o, int to)
{
    vf d1 = d[from], d2 = d[2 * from], d3 = d[3 * from], d4 = d[4 * from];
    vf sum_a = d1 + d2, less_a = d1 - d2, sum_b = d3 + d4, less_b = d3 - d4;
    o[0] = vtimes(GP, d[0], vtimes(GQ, sum_a, vset(GR) * sum_b));
    o[to] = vtimes(GQ * PA, less_a, vset(GR * PB) * less_b);
    o[2 * to] = vtimes(GQ * PA2, sum_a, vtimes(GR * PB2, sum_b, d[5 * from]));
}

/* ---- narrow tiles ---- */

/* Bt and A for narrow tiles, which have n = 1, 2 or 3 pixels of output in a row: [n - 1][plane][pixel]. Bt
 * has no column for the last of the n + 2 input pixels, which is outside the image. */
static const float narrow_b[TILE - 1][SIDE][TILE] = {
    { { PA2 * PB2, -PA * PB2 }, { 0, 2 * PA * (PA2 - PB2) }, [SIDE - 1] = { 0, -PA } },
    { { PA2 * PB2, 0, -PB2 }, { 0, PA * (PA2 - PB2), PA2 - PB2 }, { 0, -PA * (PA2 - PB2), PA2 - PB2 },
      [SIDE - 1] = { 0, -PA2, 0 } },
    { { PA2 * PB2, -PA2 * PB, -PB2, PB }, { 0, -PA * PB * (PA + PB), PA2 - PB2, PA + PB },
      { 0, PA * PB * (PB - PA), PA2 - PB2, PB - PA }, { 0, -2 * PB * PA2, 0, 2 * PB },
      [SIDE - 1] = { 0, PA2 * PB, -PA2, -PB } },
};
static const float narrow_a[TILE - 1][SIDE][TILE] = {
    { { 1 }, { 1 }, [SIDE - 1] = { 1 } },
    { { 1 }, { 1, PA }, { 1, -PA }, [SIDE - 1] = { 0, 1 } },
    { { 1 }, { 1, PA, PA2 }, { 1, -PA, PA2 }, { 1, PB, PB2 }, [SIDE - 1] = { 0, 0, 1 } },
};

/* For a row of a tile with n pixels of output (1 to 4). pixels_of: how many pixels are read. plane_of: the
 * index (0 to 5) of plane p of the n + 2 planes that a narrow tile uses. */
AMP_INLINE int pixels_of(int side, int n) { return side == TILE ? n : n == TILE ? SIDE : n + 1; }
AMP_INLINE int plane_of(int p, int n) { return p <= n ? p : SIDE - 1; }

AMP_INLINE void narrow_planes(const int side, const int n, const vf *d, vf *o, int to)
{
    UNROLL for (int p = 0; p < n + 2; p++) {
        const float *m = (side == SIDE ? narrow_b : narrow_a)[n - 1][plane_of(p, n)];
        vf sum = vset(m[0]) * d[0];
        UNROLL for (int i = 1; i < pixels_of(side, n); i++) sum = vtimes(m[i], d[i], sum);
        o[plane_of(p, n) * to] = sum;
    }
}

AMP_INLINE void narrow_pixels(const int n, const vf *d, int from, vf *o)
{
    UNROLL for (int i = 0; i < n; i++) {
        vf sum = vset(narrow_a[n - 1][0][i]) * d[0];
        UNROLL for (int p = 1; p < n + 2; p++)
            sum = vtimes(narrow_a[n - 1][plane_of(p, n)][i], d[plane_of(p, n) * from], sum);
        o[i] = sum;
    }
}

AMP_INLINE void planes_of(const int side, int n, const vf *d, vf *o, int to)
{
    if (n == 1) narrow_planes(side, 1, d, o, to);
    else if (n == 2) narrow_planes(side, 2, d, o, to);
    else if (n == 3) narrow_planes(side, 3, d, o, to);
    else if (side == SIDE) times_bt(d, 1, o, to);
    else times_a(d, 1, o, to);
}

AMP_INLINE void pixels_from(int n, const vf *d, int from, vf *o)
{
    if (n == 1) narrow_pixels(1, d, from, o);
    else if (n == 2) narrow_pixels(2, d, from, o);
    else if (n == 3) narrow_pixels(3, d, from, o);
    else times_at(d, from, o, 1);
}

/* ---- tiles ---- */

AMP_INLINE int vlarge(vf squares) /* returns 1 for NaN too */
{
    float lane[VL], sum = 0;
    vstore(lane, 0, VL, squares, AMP_FP32);
    for (int i = 0; i < VL; i++) sum += lane[i];
    return !(sum <= AMP_WINOGRAD_LARGE * AMP_WINOGRAD_LARGE);
}

/* Prefetches, for the next tile, the cache line that begins `further` elements after channel c of this pixel.
 * The hardware's prefetcher does not predict these reads of short pieces from many rows. */
AMP_INLINE void read_ahead(const void *pixel, size_t c, size_t further, amp_dtype dtype)
{
    size_t size = amp_dtype_size(dtype);
    if (c * size % 64 == 0) __builtin_prefetch((const char *)pixel + (further + c) * size);
}

/* Transforms side x side pixels to 6 x 6 numbers. Returns 1 if the pixels are large (vlarge). */
AMP_INLINE int transform_tile(const void *const *pixels, const int side, amp_dtype dtype, size_t channels,
                              size_t groups, amp_cpu_matrix to)
{
    vf squares = vset(0);
    for (size_t c = 0; c < channels; c += VL) {
        vf d[SIDE], u[PLANES];
        float *out = to.data + c / LINE * to.line + c % LINE;
        UNROLL for (int j = 0; j < side; j++) {
            vf sum = vset(0);
            UNROLL for (int i = 0; i < side; i++) {
                d[i] = vload(pixels[i * side + j], c, VL, dtype);
                sum = vfma(d[i], d[i], sum);
                if (j >= side - TILE) read_ahead(pixels[i * side + j], c, TILE * groups * channels, dtype);
            }
            squares = squares + sum;
            planes_of(side, TILE, d, u + j, side);
        }
        UNROLL for (int i = 0; i < SIDE; i++) {
            planes_of(side, TILE, u + i * side, d, 1);
            UNROLL for (int j = 0; j < SIDE; j++)
                vstore(out + (size_t)(i * SIDE + j) * to.plane, 0, VL, d[j], AMP_FP32);
        }
    }
    return vlarge(squares);
}

/* Like transform_tile, but for a narrow tile: writes only the planes that a narrow tile uses. */
AMP_INLINE int transform_narrow(const void *const *pixels, amp_cpu_tile_size size, const int side,
                                amp_dtype dtype, size_t channels, amp_cpu_matrix to)
{
    vf squares = vset(0);
    for (size_t c = 0; c < channels; c += VL) {
        vf d[SIDE], u[PLANES];
        float *out = to.data + c / LINE * to.line + c % LINE;
        for (int j = 0; j < pixels_of(side, size.columns); j++) {
            for (int i = 0; i < pixels_of(side, size.rows); i++) {
                d[i] = vload(pixels[i * side + j], c, VL, dtype);
                squares = vfma(d[i], d[i], squares);
            }
            planes_of(side, size.rows, d, u + j, side);
        }
        for (int p = 0; p < size.rows + 2; p++) {
            int i = plane_of(p, size.rows);
            planes_of(side, size.columns, u + i * side, d, 1);
            for (int q = 0; q < size.columns + 2; q++) {
                int j = plane_of(q, size.columns);
                vstore(out + (size_t)(i * SIDE + j) * to.plane, 0, VL, d[j], AMP_FP32);
            }
        }
    }
    return vlarge(squares);
}

AMP_INLINE int is_narrow(amp_cpu_tile_size size) { return size.rows < TILE || size.columns < TILE; }

#define TRANSFORM(side) \
    if (is_narrow(size)) \
        AMP_BY_DTYPE(dtype, large = transform_narrow(pixels, size, side, dt, channels, to)); \
    else AMP_BY_DTYPE(dtype, large = transform_tile(pixels, side, dt, channels, groups, to))

static int winograd_transform(amp_dtype dtype, int side, const void *const *pixels, amp_cpu_tile_size size,
                              size_t channels, size_t groups, amp_cpu_matrix to)
{
    int large = 0;
    if (side == SIDE) { TRANSFORM(SIDE); }
    else { TRANSFORM(TILE); }
    return large;
}

AMP_INLINE void put_pixel(void *pixel, size_t c, vf sum, vf bias, const amp_cpu_tile_end *end,
                          const int accumulate, amp_dtype dtype)
{
    vf y = sum + (accumulate ? vload(pixel, c, VL, dtype) : bias);
    vstore(pixel, c, VL, accumulate ? y : vmax(y, y * vset(end->slope)), dtype);
}

AMP_INLINE void output_tile(amp_cpu_matrix from, size_t channels, amp_dtype dtype, void *const *pixels,
                            const amp_cpu_tile_end *end, const int accumulate)
{
    for (size_t c = 0; c < channels; c += VL) {
        vf d[SIDE], u[TILE * SIDE], bias = accumulate ? vset(0) : vload(end->bias, c, VL, AMP_FP32);
        const float *in = from.data + c / LINE * from.line + c % LINE;
        UNROLL for (int j = 0; j < SIDE; j++) {
            UNROLL for (int i = 0; i < SIDE; i++)
                d[i] = vload(in + (size_t)(i * SIDE + j) * from.plane, 0, VL, AMP_FP32);
            times_at(d, 1, u + j, SIDE);
        }
        UNROLL for (int i = 0; i < TILE; i++) {
            times_at(u + i * SIDE, 1, d, 1);
            UNROLL for (int j = 0; j < TILE; j++)
                put_pixel(pixels[i * TILE + j], c, d[j], bias, end, accumulate, dtype);
        }
    }
}

AMP_INLINE void output_narrow(amp_cpu_matrix from, size_t channels, amp_dtype dtype, void *const *pixels,
                              amp_cpu_tile_size size, const amp_cpu_tile_end *end, const int accumulate)
{
    for (size_t c = 0; c < channels; c += VL) {
        vf d[SIDE], u[SIDE * TILE], bias = accumulate ? vset(0) : vload(end->bias, c, VL, AMP_FP32);
        const float *in = from.data + c / LINE * from.line + c % LINE;
        for (int p = 0; p < size.rows + 2; p++) {
            int i = plane_of(p, size.rows);
            for (int q = 0; q < size.columns + 2; q++) {
                int j = plane_of(q, size.columns);
                d[j] = vload(in + (size_t)(i * SIDE + j) * from.plane, 0, VL, AMP_FP32);
            }
            pixels_from(size.columns, d, 1, u + i * TILE);
        }
        for (int j = 0; j < size.columns; j++) {
            pixels_from(size.rows, u + j, TILE, d);
            for (int i = 0; i < size.rows; i++)
                put_pixel(pixels[i * TILE + j], c, d[i], bias, end, accumulate, dtype);
        }
    }
}

#define OUTPUT(accumulate) \
    if (is_narrow(size)) \
        AMP_BY_DTYPE(dtype, output_narrow(from, channels, dt, pixels, size, end, accumulate)); \
    else AMP_BY_DTYPE(dtype, output_tile(from, channels, dt, pixels, end, accumulate))

static void winograd_output(amp_dtype dtype, amp_cpu_matrix from, size_t channels, void *const *pixels,
                            amp_cpu_tile_size size, const amp_cpu_tile_end *end)
{
    if (end->accumulate) { OUTPUT(1); }
    else { OUTPUT(0); }
}

static float widened(const void *p, size_t i, amp_dtype dtype)
{
    if (dtype == AMP_FP32) return ((const float *)p)[i];
    amp_half_bits half = ((const amp_half_bits *)p)[i];
    return dtype == AMP_FP16 ? amp_fp16_to_float(half) : amp_bf16_to_float(half);
}

/* This function is not vectorised, because large tiles are rare. */
static int winograd_is_finite(amp_dtype dtype, const void *const *pixels, size_t count, size_t channels)
{
    for (size_t p = 0; p < count; p++)
        for (size_t c = 0; c < channels; c++)
            if (!amp_is_finite(widened(pixels[p], c, dtype))) return 0;
    return 1;
}

/* lines[channel][place][filter] ← the weights at all 3x3 places, of 16 channels and 16 filters, starting at
 * `channel` and `filter`. */
AMP_INLINE void take_filters(const amp_cpu_filters *f, size_t filter, size_t channel, float *lines)
{
    const float *from = f->masters + filter * f->filter_stride + channel * f->channel_stride;
    if (!f->turned) transpose(from, f->filter_stride, lines, LINE, LINE, LINE * PLACES);
    else for (size_t c = 0; c < LINE; c++)
        transpose(from + c * f->channel_stride, PLACES, lines + c * PLACES * LINE, LINE, LINE, PLACES);
}

static void winograd_direct(amp_dtype dtype, const void *const *pixels, size_t in, const amp_cpu_filters *f,
                            size_t first, size_t channels, void *const *to, const amp_cpu_tile_end *end)
{
    for (size_t o = 0; o < channels; o += VL) {
        float lines[LINE * PLACES * LINE];
        vf sums[TILE * TILE], bias = end->accumulate ? vset(0) : vload(end->bias, o, VL, AMP_FP32);
        for (int p = 0; p < TILE * TILE; p++) sums[p] = vset(0);
        for (size_t c = 0; c < in; c++) {
            float x[PLANES];
            const float *g = lines + c % LINE * PLACES * LINE + o % LINE;
            if (c % LINE == 0) take_filters(f, first + o / LINE * LINE, c, lines);
            for (int p = 0; p < PLANES; p++) x[p] = widened(pixels[p], c, dtype);
            for (int q = 0; q < PLACES; q++) {
                vf lanes = vload(g + (f->turned ? PLACES - 1 - q : q) * LINE, 0, VL, AMP_FP32);
                const float *pixel = x + q / 3 * SIDE + q % 3;
                UNROLL for (int p = 0; p < TILE * TILE; p++)
                    sums[p] = vfma(vset(pixel[p / TILE * SIDE + p % TILE]), lanes, sums[p]);
            }
        }
        for (int p = 0; p < TILE * TILE; p++) {
            if (end->accumulate)
                AMP_BY_DTYPE(dtype, put_pixel(to[p], o, sums[p], bias, end, 1, dt));
            else AMP_BY_DTYPE(dtype, put_pixel(to[p], o, sums[p], bias, end, 0, dt));
        }
    }
}

/* ---- filters ---- */

AMP_INLINE vf filter_lanes(const float *lines, const int turned, float *to, size_t plane, vf squares)
{
    vf g[PLACES], u[SIDE * 3], d[SIDE];
    UNROLL for (int q = 0; q < PLACES; q++) {
        g[q] = vload(lines + (turned ? PLACES - 1 - q : q) * LINE, 0, VL, AMP_FP32);
        squares = vfma(g[q], g[q], squares);
    }
    UNROLL for (int j = 0; j < 3; j++) times_g(g + j, 3, u + j, 3);
    UNROLL for (int i = 0; i < SIDE; i++) {
        times_g(u + i * 3, 1, d, 1);
        UNROLL for (int j = 0; j < SIDE; j++)
            vstore(to + (size_t)(i * SIDE + j) * plane, 0, VL, d[j], AMP_FP32);
    }
    return squares;
}

static int winograd_filters(const amp_cpu_filters *f, size_t first, size_t width, size_t channel,
                            size_t channels, float *to, size_t plane)
{
    vf squares = vset(0);
    for (size_t c = 0; c < channels; c += LINE) {
        float lines[PANEL / LINE][LINE * PLACES * LINE];
        for (size_t lane = 0; lane < width; lane += LINE)
            take_filters(f, first + lane, channel + c, lines[lane / LINE]);
        for (size_t i = 0; i < LINE; i++, to += width)
            for (size_t lane = 0; lane < width; lane += VL) {
                const float *g = lines[lane / LINE] + i * PLACES * LINE + lane % LINE;
                if (f->turned) squares = filter_lanes(g, 1, to + lane, plane, squares);
                else squares = filter_lanes(g, 0, to + lane, plane, squares);
            }
    }
    return vlarge(squares);
}

/* dw += the gradient of `width` filters for 16 channels, computed from the sum of `parts` matrices. */
static void winograd_gradient(const float *from, size_t plane, size_t parts, size_t part, size_t width,
                              float *dw, size_t filter_stride)
{
    float lines[LINE * PLACES][VL], rows_of[VL][LINE * PLACES];
    for (size_t lane = 0; lane < width; lane += VL) {
        for (int c = 0; c < LINE; c++) {
            vf d[SIDE], u[3 * SIDE], g[PLACES];
            const float *in = from + (size_t)c * width + lane;
            UNROLL for (int j = 0; j < SIDE; j++) {
                UNROLL for (int i = 0; i < SIDE; i++) {
                    const float *sum = in + (size_t)(i * SIDE + j) * plane;
                    d[i] = vload(sum, 0, VL, AMP_FP32);
                    for (size_t p = 1; p < parts; p++) d[i] = d[i] + vload(sum + p * part, 0, VL, AMP_FP32);
                }
                times_gt(d, 1, u + j, SIDE);
            }
            UNROLL for (int i = 0; i < 3; i++) times_gt(u + i * SIDE, 1, g + i * 3, 1);
            UNROLL for (int q = 0; q < PLACES; q++)
                vstore(lines[c * PLACES + q], 0, VL, g[q], AMP_FP32);
        }
        transpose(lines[0], VL, rows_of[0], LINE * PLACES, LINE * PLACES, VL);
        for (size_t k = 0; k < VL; k++) {
            float *sum = dw + (lane + k) * filter_stride;
            for (size_t q = 0; q < LINE * PLACES; q += VL)
                vput(sum, q, VL, vload(rows_of[k], q, VL, AMP_FP32), 1, AMP_FP32);
        }
    }
}

static void winograd_direct_gradient(amp_dtype dtype, const void *const *x, size_t channels,
                                     const void *const *dy, size_t filter, float *dw)
{
    float delta[TILE * TILE], lines[PLACES][VL], sums[VL * PLACES];
    for (int p = 0; p < TILE * TILE; p++) delta[p] = widened(dy[p], filter, dtype);
    for (size_t c = 0; c < channels; c += VL) {
        vf d[PLANES];
        for (int p = 0; p < PLANES; p++) AMP_BY_DTYPE(dtype, d[p] = vload(x[p], c, VL, dt));
        for (int q = 0; q < PLACES; q++) {
            vf sum = vset(0);
            for (int p = 0; p < TILE * TILE; p++)
                sum = vfma(vset(delta[p]), d[(p / TILE + q / 3) * SIDE + p % TILE + q % 3], sum);
            vstore(lines[q], 0, VL, sum, AMP_FP32);
        }
        transpose(lines[0], VL, sums, PLACES, PLACES, VL);
        for (size_t i = 0; i < VL * PLACES; i++) dw[c * PLACES + i] += sums[i];
    }
}

/* ---- products ---- */

#if VL == 8
#define MOST_TILES 6 /* with more tiles, the sums for a panel would not fit in registers */
#else
#define MOST_TILES 14
#endif

/* In one plane: m[tiles][vectors] (+)= v[tiles][blocks * 16] · u[blocks * 16][vectors]. */
AMP_INLINE void multiply_tiles(const float *v, size_t v_line, size_t blocks, const float *u, float *m,
                               size_t m_line, int add, const int tiles, const int vectors)
{
    vf s[MOST_TILES][2];
    UNROLL for (int t = 0; t < tiles; t++)
        UNROLL for (int j = 0; j < vectors; j++)
            s[t][j] = add ? vload(m + (size_t)(j * VL / LINE) * m_line + t * LINE + j * VL % LINE, 0, VL,
                                  AMP_FP32) : vset(0);
    for (size_t b = 0; b < blocks; b++, v += v_line)
        _Pragma("GCC unroll 2") for (int c = 0; c < LINE; c++, u += vectors * VL) {
            vf f[2];
            UNROLL for (int j = 0; j < vectors; j++) f[j] = vload(u + j * VL, 0, VL, AMP_FP32);
            UNROLL for (int t = 0; t < tiles; t++)
                UNROLL for (int j = 0; j < vectors; j++) s[t][j] = vfma(vset(v[t * LINE + c]), f[j], s[t][j]);
        }
    UNROLL for (int t = 0; t < tiles; t++)
        UNROLL for (int j = 0; j < vectors; j++)
            vstore(m + (size_t)(j * VL / LINE) * m_line + t * LINE + j * VL % LINE, 0, VL, s[t][j], AMP_FP32);
}

#define TILES(n) \
    case n: \
        if (width == PANEL) multiply_tiles(v, v_line, blocks, u, m, m_line, add, n, 2); \
        else multiply_tiles(v, v_line, blocks, u, m, m_line, add, n, 1); \
        break;

static void winograd_products(const float *v, size_t v_line, size_t blocks, const float *u, size_t width,
                              float *m, size_t m_line, size_t tiles, int add)
{
    /* Groups of nearly equal size: a small last group could not hide the latency of its additions. */
    size_t groups = (tiles + MOST_TILES - 1) / MOST_TILES, left = tiles;
    for (; groups; --groups) {
        size_t n = left / groups;
        switch (n) {
            TILES(1) TILES(2) TILES(3) TILES(4) TILES(5) TILES(6)
#if VL == 16
            TILES(7) TILES(8) TILES(9) TILES(10) TILES(11) TILES(12) TILES(13) TILES(14)
#endif
        }
        v += n * LINE, m += n * LINE, left -= n;
    }
}

/* out[rows][vectors] (+)= the sum over tiles of v[tile][rows] · d[tile][vectors]. */
AMP_INLINE void sum_tiles(const float *v, const float *d, size_t d_line, size_t tiles, float *out, int add,
                          const int rows_of, const int vectors)
{
    vf s[8][2];
    UNROLL for (int i = 0; i < rows_of; i++)
        UNROLL for (int j = 0; j < vectors; j++)
            s[i][j] = add ? vload(out + (i * vectors + j) * VL, 0, VL, AMP_FP32) : vset(0);
    for (size_t t = 0; t < tiles; t++, v += LINE, d += LINE) {
        vf f[2];
        UNROLL for (int j = 0; j < vectors; j++)
            f[j] = vload(d + (size_t)(j * VL / LINE) * d_line + j * VL % LINE, 0, VL, AMP_FP32);
        UNROLL for (int i = 0; i < rows_of; i++)
            UNROLL for (int j = 0; j < vectors; j++) s[i][j] = vfma(vset(v[i]), f[j], s[i][j]);
    }
    UNROLL for (int i = 0; i < rows_of; i++)
        UNROLL for (int j = 0; j < vectors; j++)
            vstore(out + (i * vectors + j) * VL, 0, VL, s[i][j], AMP_FP32);
}

#define SUM_ROWS(first, rows_of) \
    if (width == PANEL) sum_tiles(v + first, d, d_line, tiles, out + first * width, add, rows_of, 2); \
    else sum_tiles(v + first, d, d_line, tiles, out + first * width, add, rows_of, 1)

static void winograd_sums(const float *v, const float *d, size_t d_line, size_t tiles, size_t width,
                          float *out, int add)
{
    if (VL == 8) {
        SUM_ROWS(0, 6);
        SUM_ROWS(6, 5);
        SUM_ROWS(11, 5);
    }
    else {
        SUM_ROWS(0, 8);
        SUM_ROWS(8, 8);
    }
}

#endif
