/* Loops that only move numbers, part of rows_impl.h: a transpose for casts between layouts, and the loops
 * that copy weights (weights_copy.c). */

static void transpose_plain(const float *src, size_t src_stride, float *dst, size_t dst_stride, size_t n_rows,
                            size_t columns)
{
    for (size_t c = 0; c < columns; c++)
        for (size_t r = 0; r < n_rows; r++) dst[c * dst_stride + r] = src[r * src_stride + c];
}

#if VL == 1

static void transpose(const float *src, size_t src_stride, float *dst, size_t dst_stride, size_t n_rows,
                      size_t columns)
{
    transpose_plain(src, src_stride, dst, dst_stride, n_rows, columns);
}

#else

AMP_INLINE void transpose_8x8(const float *src, size_t src_stride, float *dst, size_t dst_stride)
{
    __m256 r[8], t[8];
    /* Puts rows i and i+4 in one register, so that all later shuffles stay within its 128-bit halves. */
    for (int i = 0; i < 4; i++)
        for (int half = 0; half < 2; half++) {
            __m128 upper = _mm_loadu_ps(src + i * src_stride + 4 * half);
            __m128 lower = _mm_loadu_ps(src + (i + 4) * src_stride + 4 * half);
            r[4 * half + i] = _mm256_insertf128_ps(_mm256_castps128_ps256(upper), lower, 1);
        }
    for (int half = 0; half < 8; half += 4) {
        t[half + 0] = _mm256_unpacklo_ps(r[half + 0], r[half + 1]);
        t[half + 1] = _mm256_unpackhi_ps(r[half + 0], r[half + 1]);
        t[half + 2] = _mm256_unpacklo_ps(r[half + 2], r[half + 3]);
        t[half + 3] = _mm256_unpackhi_ps(r[half + 2], r[half + 3]);
        _mm256_storeu_ps(dst + (half + 0) * dst_stride, _mm256_shuffle_ps(t[half], t[half + 2], 0x44));
        _mm256_storeu_ps(dst + (half + 1) * dst_stride, _mm256_shuffle_ps(t[half], t[half + 2], 0xee));
        _mm256_storeu_ps(dst + (half + 2) * dst_stride, _mm256_shuffle_ps(t[half + 1], t[half + 3], 0x44));
        _mm256_storeu_ps(dst + (half + 3) * dst_stride, _mm256_shuffle_ps(t[half + 1], t[half + 3], 0xee));
    }
}

/* Transposes for images with three channels: interleave_3 makes pixels from three rows; separate_3 does
 * the reverse. The constant 3 lets the compiler use shuffles. */
static void interleave_3(const float *restrict src, size_t stride, float *restrict dst, size_t columns)
{
    for (size_t c = 0; c < columns; c++)
        for (int k = 0; k < 3; k++) dst[3 * c + k] = src[k * stride + c];
}

static void separate_3(const float *restrict src, float *restrict dst, size_t stride, size_t n_rows)
{
    for (size_t r = 0; r < n_rows; r++)
        for (int k = 0; k < 3; k++) dst[k * stride + r] = src[3 * r + k];
}

static void transpose(const float *src, size_t src_stride, float *dst, size_t dst_stride, size_t n_rows,
                      size_t columns)
{
    if (n_rows == 3 && dst_stride == 3) { interleave_3(src, src_stride, dst, columns); return; }
    if (columns == 3 && src_stride == 3) { separate_3(src, dst, dst_stride, n_rows); return; }
    size_t whole_rows = n_rows / 8 * 8, whole_columns = columns / 8 * 8;
    for (size_t c = 0; c < whole_columns; c += 8)
        for (size_t r = 0; r < whole_rows; r += 8)
            transpose_8x8(src + r * src_stride + c, src_stride, dst + c * dst_stride + r, dst_stride);
    transpose_plain(src + whole_columns, src_stride, dst + whole_columns * dst_stride, dst_stride, n_rows,
                    columns - whole_columns);
    transpose_plain(src + whole_rows * src_stride, src_stride, dst + whole_rows, dst_stride,
                    n_rows - whole_rows, whole_columns);
}

#endif
#if VL == 16

static void pair_bf16(const float *even, const float *odd, float *dst, size_t count)
{
    AMP_LANES(count, {
        vi low = _mm512_cvtepu16_epi32(vnarrow(vload_ahead(even, i, n), AMP_BF16));
        vi high = _mm512_cvtepu16_epi32(vnarrow(vload_ahead(odd, i, n), AMP_BF16));
        vstore(dst, i, n, _mm512_castsi512_ps(_mm512_or_si512(low, _mm512_slli_epi32(high, 16))), AMP_FP32);
    });
}

/* zip and lines use streaming stores: the copies are read only much later, and an ordinary store would first
 * fetch the old bytes from memory. */
static void zip(const float *low, const float *high, size_t src_stride, amp_half_bits *dst, size_t dst_stride,
                size_t count)
{
    for (; count; --count, low += src_stride, high += src_stride, dst += dst_stride) {
        vi even = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)low));
        vi odd = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)high));
        _mm512_stream_si512((void *)dst, _mm512_or_si512(even, _mm512_slli_epi32(odd, 16)));
    }
}

static void lines(const float *src, size_t src_stride, float *dst, size_t dst_stride, size_t count)
{
    for (; count; --count, src += src_stride, dst += dst_stride) _mm512_stream_ps(dst, _mm512_loadu_ps(src));
}

static void end_copies(void) { _mm_sfence(); }

#else

static void pair_bf16(const float *even, const float *odd, float *dst, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        amp_half_bits both[2] = { amp_float_to_bf16(even[i]), amp_float_to_bf16(odd[i]) };
        memcpy(dst + i, both, sizeof both);
    }
}

static void zip(const float *low, const float *high, size_t src_stride, amp_half_bits *dst, size_t dst_stride,
                size_t count)
{
    for (; count; --count, low += src_stride, high += src_stride, dst += dst_stride) {
        amp_half_bits a[16], b[16];
        memcpy(a, low, sizeof a);
        memcpy(b, high, sizeof b);
        for (int i = 0; i < 16; i++) dst[2 * i] = a[i], dst[2 * i + 1] = b[i];
    }
}

static void lines(const float *src, size_t src_stride, float *dst, size_t dst_stride, size_t count)
{
    for (; count; --count, src += src_stride, dst += dst_stride) memcpy(dst, src, 16 * sizeof *dst);
}

static void end_copies(void) {}

#endif
