/* Conversions of rows between fp32, fp16 and bf16, and a transpose, for plain C, AVX2 and AVX-512.
 *
 * bf16 is rounded with integer arithmetic everywhere: the vcvtneps2bf16 instruction flushes subnormals to zero, and
 * tensor/half.h does not. fp16 uses F16C, which agrees with half.h for every input: the instructions take the rounding
 * from their operand, ignore flush-to-zero for fp16 subnormals, and keep the top bits of a NaN while quieting it. */
#include "convert.h"
#include "processor.h"

#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define AMP_X86 1
#else
#define AMP_X86 0
#endif

/* ------------------------------------------------------------------------------------------------ plain C */

static void from_fp16_c(const amp_half_bits *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n; ++i) dst[i] = amp_fp16_to_float(src[i]);
}

static void from_bf16_c(const amp_half_bits *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n; ++i) dst[i] = amp_bf16_to_float(src[i]);
}

static void to_fp16_c(const float *src, amp_half_bits *dst, size_t n)
{
    for (size_t i = 0; i < n; ++i) dst[i] = amp_float_to_fp16(src[i]);
}

static void to_bf16_c(const float *src, amp_half_bits *dst, size_t n)
{
    for (size_t i = 0; i < n; ++i) dst[i] = amp_float_to_bf16(src[i]);
}

static void add_c(const float *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n; ++i) dst[i] += src[i];
}

static void transpose_c(const float *src, size_t src_stride, float *dst, size_t dst_stride, size_t rows, size_t columns)
{
    for (size_t c = 0; c < columns; ++c)
        for (size_t r = 0; r < rows; ++r) dst[c * dst_stride + r] = src[r * src_stride + c];
}

static void pair_bf16_c(const float *even, const float *odd, float *dst, size_t n)
{
    for (size_t i = 0; i < n; ++i) {
        amp_half_bits both[2] = { amp_float_to_bf16(even[i]), amp_float_to_bf16(odd[i]) };
        memcpy(dst + i, both, sizeof both);
    }
}

static void zip_c(const float *low, const float *high, size_t src_stride, amp_half_bits *dst, size_t dst_stride, size_t count)
{
    for (; count; --count, low += src_stride, high += src_stride, dst += dst_stride) {
        amp_half_bits a[16], b[16];
        memcpy(a, low, sizeof a);
        memcpy(b, high, sizeof b);
        for (int i = 0; i < 16; ++i) dst[2 * i] = a[i], dst[2 * i + 1] = b[i];
    }
}

static const amp_converters plain = { "plain C", from_fp16_c, from_bf16_c, to_fp16_c, to_bf16_c, add_c, transpose_c,
                                      pair_bf16_c, zip_c };

#if AMP_X86
/* ------------------------------------------------------------------------------------------------ AVX2 + F16C */
#define AVX2 __attribute__((target("avx2,fma,f16c")))

AVX2 static void from_fp16_avx2(const amp_half_bits *src, float *dst, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(src + i))));
    from_fp16_c(src + i, dst + i, n - i);
}

AVX2 static void from_bf16_avx2(const amp_half_bits *src, float *dst, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(src + i)));
        _mm256_storeu_si256((__m256i *)(dst + i), _mm256_slli_epi32(wide, 16));
    }
    from_bf16_c(src + i, dst + i, n - i);
}

AVX2 static void to_fp16_avx2(const float *src, amp_half_bits *dst, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(dst + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(src + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    to_fp16_c(src + i, dst + i, n - i);
}

/* Eight bf16 in the low halves of eight 32-bit lanes: amp_float_to_bf16, lane by lane. */
AVX2 static inline __m256i round_bf16_avx2(__m256i bits)
{
    __m256i high = _mm256_srli_epi32(bits, 16);
    __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
    __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
    __m256i is_nan = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7f800000));
    return _mm256_blendv_epi8(rounded, _mm256_or_si256(high, _mm256_set1_epi32(0x40)), is_nan);
}

AVX2 static void to_bf16_avx2(const float *src, amp_half_bits *dst, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i low = round_bf16_avx2(_mm256_loadu_si256((const __m256i *)(src + i)));
        __m256i high = round_bf16_avx2(_mm256_loadu_si256((const __m256i *)(src + i + 8)));
        /* packus works within 128-bit lanes; the permutation puts the quarters in order */
        __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), _MM_SHUFFLE(3, 1, 2, 0));
        _mm256_storeu_si256((__m256i *)(dst + i), packed);
    }
    to_bf16_c(src + i, dst + i, n - i);
}

AVX2 static void add_avx2(const float *src, float *dst, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(dst + i, _mm256_add_ps(_mm256_loadu_ps(dst + i), _mm256_loadu_ps(src + i)));
    add_c(src + i, dst + i, n - i);
}

AVX2 static inline void transpose_8x8(const float *src, size_t src_stride, float *dst, size_t dst_stride)
{
    __m256 r[8], t[8];
    for (int i = 0; i < 4; ++i) { /* rows i and i+4 side by side: after this all shuffles stay in 128-bit lanes */
        for (int half = 0; half < 2; ++half) {
            __m128 upper = _mm_loadu_ps(src + i * src_stride + 4 * half);
            __m128 lower = _mm_loadu_ps(src + (i + 4) * src_stride + 4 * half);
            r[4 * half + i] = _mm256_insertf128_ps(_mm256_castps128_ps256(upper), lower, 1);
        }
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

/* Images have three channels: interleave or separate three rows; the constant count lets the compiler use shuffles. */
AVX2 static void interleave_3(const float *restrict src, size_t stride, float *restrict dst, size_t columns)
{
    for (size_t c = 0; c < columns; ++c) {
        dst[3 * c] = src[c];
        dst[3 * c + 1] = src[stride + c];
        dst[3 * c + 2] = src[2 * stride + c];
    }
}

AVX2 static void separate_3(const float *restrict src, float *restrict dst, size_t stride, size_t rows)
{
    for (size_t r = 0; r < rows; ++r) {
        dst[r] = src[3 * r];
        dst[stride + r] = src[3 * r + 1];
        dst[2 * stride + r] = src[3 * r + 2];
    }
}

AVX2 static void transpose_avx2(const float *src, size_t src_stride, float *dst, size_t dst_stride, size_t rows,
                                size_t columns)
{
    if (rows == 3 && dst_stride == 3) { interleave_3(src, src_stride, dst, columns); return; }
    if (columns == 3 && src_stride == 3) { separate_3(src, dst, dst_stride, rows); return; }
    size_t whole_rows = rows / 8 * 8, whole_columns = columns / 8 * 8;
    for (size_t c = 0; c < whole_columns; c += 8)
        for (size_t r = 0; r < whole_rows; r += 8)
            transpose_8x8(src + r * src_stride + c, src_stride, dst + c * dst_stride + r, dst_stride);
    transpose_c(src + whole_columns, src_stride, dst + whole_columns * dst_stride, dst_stride, rows,
                columns - whole_columns);
    transpose_c(src + whole_rows * src_stride, src_stride, dst + whole_rows, dst_stride, rows - whole_rows,
                whole_columns);
}

static const amp_converters avx2 = { "AVX2", from_fp16_avx2, from_bf16_avx2, to_fp16_avx2, to_bf16_avx2, add_avx2,
                                     transpose_avx2, pair_bf16_c, zip_c };

/* ------------------------------------------------------------------------------------------------ AVX-512 */
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")))

/* The last 1 to 15 elements go through masks, which short rows (a pixel of few channels) are made of. */
AVX512 static inline __mmask16 tail_mask(size_t rest) { return (__mmask16)((1u << rest) - 1); }

AVX512 static void from_fp16_avx512(const amp_half_bits *src, float *dst, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(dst + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(src + i))));
    if (i < n) {
        __mmask16 mask = tail_mask(n - i);
        _mm512_mask_storeu_ps(dst + i, mask, _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, src + i)));
    }
}

AVX512 static void from_bf16_avx512(const amp_half_bits *src, float *dst, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(src + i)));
        _mm512_storeu_si512(dst + i, _mm512_slli_epi32(wide, 16));
    }
    if (i < n) {
        __mmask16 mask = tail_mask(n - i);
        __m512i wide = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, src + i));
        _mm512_mask_storeu_epi32(dst + i, mask, _mm512_slli_epi32(wide, 16));
    }
}

AVX512 static void to_fp16_avx512(const float *src, amp_half_bits *dst, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256((__m256i *)(dst + i),
                            _mm512_cvtps_ph(_mm512_loadu_ps(src + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    if (i < n) {
        __mmask16 mask = tail_mask(n - i);
        __m256i half = _mm512_cvtps_ph(_mm512_maskz_loadu_ps(mask, src + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        _mm256_mask_storeu_epi16(dst + i, mask, half);
    }
}

AVX512 static inline __m256i round_bf16_avx512(__m512i bits)
{
    __m512i high = _mm512_srli_epi32(bits, 16);
    __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
    __m512i magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff));
    __mmask16 is_nan = _mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32(0x7f800000));
    return _mm512_cvtepi32_epi16(_mm512_mask_or_epi32(rounded, is_nan, high, _mm512_set1_epi32(0x40)));
}

AVX512 static void to_bf16_avx512(const float *src, amp_half_bits *dst, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256((__m256i *)(dst + i), round_bf16_avx512(_mm512_loadu_si512(src + i)));
    if (i < n) {
        __mmask16 mask = tail_mask(n - i);
        _mm256_mask_storeu_epi16(dst + i, mask, round_bf16_avx512(_mm512_maskz_loadu_epi32(mask, src + i)));
    }
}

AVX512 static void add_avx512(const float *src, float *dst, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(dst + i, _mm512_add_ps(_mm512_loadu_ps(dst + i), _mm512_loadu_ps(src + i)));
    if (i < n) {
        __mmask16 mask = tail_mask(n - i);
        __m512 sum = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, dst + i), _mm512_maskz_loadu_ps(mask, src + i));
        _mm512_mask_storeu_ps(dst + i, mask, sum);
    }
}

/* The hardware stops prefetching at each page; asking ahead doubles the speed. */
AVX512 static void pair_bf16_avx512(const float *even, const float *odd, float *dst, size_t n)
{
    enum { AHEAD = 512 };
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 mask = n - i < 16 ? tail_mask(n - i) : 0xffff;
        _mm_prefetch((const char *)(even + i) + AHEAD * sizeof *even, _MM_HINT_T0);
        _mm_prefetch((const char *)(odd + i) + AHEAD * sizeof *odd, _MM_HINT_T0);
        __m512i low = _mm512_cvtepu16_epi32(round_bf16_avx512(_mm512_maskz_loadu_epi32(mask, even + i)));
        __m512i high = _mm512_cvtepu16_epi32(round_bf16_avx512(_mm512_maskz_loadu_epi32(mask, odd + i)));
        _mm512_mask_storeu_epi32(dst + i, mask, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
    }
}

/* Streamed: the copies are read much later, and fetching their old bytes first would cost as much as writing them. */
AVX512 static void zip_avx512(const float *low, const float *high, size_t src_stride, amp_half_bits *dst, size_t dst_stride,
                              size_t count)
{
    for (; count; --count, low += src_stride, high += src_stride, dst += dst_stride) {
        __m512i even = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)low));
        __m512i odd = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)high));
        _mm512_stream_si512((void *)dst, _mm512_or_si512(even, _mm512_slli_epi32(odd, 16)));
    }
    _mm_sfence();
}

static const amp_converters avx512 = { "AVX-512", from_fp16_avx512, from_bf16_avx512, to_fp16_avx512, to_bf16_avx512,
                                       add_avx512, transpose_avx2, pair_bf16_avx512, zip_avx512 };
#endif

/* ------------------------------------------------------------------------------------------------ choice */

int amp_converter_sets(const amp_converters *const **sets)
{
#if AMP_X86
    static const amp_converters *const all[] = { &plain, &avx2, &avx512 };
    *sets = all;
    return 1 + (int)amp_cpu_widest();
#else
    static const amp_converters *const all[] = { &plain };
    *sets = all;
    return 1;
#endif
}

const amp_converters *amp_best_converters(void)
{
    const amp_converters *const *sets;
    int count = amp_converter_sets(&sets);
    return sets[count - 1];
}
