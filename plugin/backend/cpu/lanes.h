/* A vector of fp32 lanes, in three versions: one float (baseline; the compiler vectorises the loops), 8
 * floats (AVX2) or 16 floats (AVX-512). AMP_ROWS_LANES_* selects the version. Only rows_impl.h includes this
 * file.
 *
 *   VL                     lanes in a vector
 *   vf, vi, vm             a vector of floats, of 32-bit integers, of truth values
 *   vload(p, i, n, dtype)  elements i..i+n-1 of a stored array, widened; other lanes are 0; fastest if n = VL
 *   vstore(p, i, n, v, dtype)   the reverse, rounded to nearest even
 *   vload_u8, vstore_u8    one byte per lane
 *   vkeep(p, i, n, m, q, j, dtype)   p[i..] = m ? q[j..] : 0, as stored bits
 *   vset, vgt (ordered), vselect(m, a, b) = m ? a : b, vsqrt; + - * / work as on floats
 *   vmax(a, b) = a > b ? a : b, so a NaN in either gives b
 *   vexponent(a)           the lowest 9 bits of a, moved to a float's sign and exponent
 *   viset, vieq, viselect  the few integer operations
 *
 * The 16-bit conversions equal tensor/half.h bit for bit. fp16: F16C rounds in the same way, gives the same
 * quiet NaN and ignores flush-to-zero. bf16: the code here uses the same integer arithmetic (VCVTNEPS2BF16
 * would flush subnormals). */
#pragma once

#include <math.h>
#include <string.h>

#include "../../tensor/half.h"
#include "../../tensor/tensor.h"

#define AMP_INLINE static inline __attribute__((always_inline))

#if defined(AMP_ROWS_LANES_BASE)

#define VL 1
typedef float vf;
typedef int32_t vi;
typedef int vm;

/* Returns m ? a : b. Uses a mask instead of a branch: an activation's sign cannot be predicted, and a
 * misprediction costs 20 cycles. */
AMP_INLINE uint32_t vbits(int m, uint32_t a, uint32_t b)
{
    uint32_t ones = 0u - (uint32_t)m;
    return (a & ones) | (b & ~ones);
}

AMP_INLINE vf vselect(vm m, vf a, vf b)
{
    return amp_bits_float(vbits(m, amp_float_bits(a), amp_float_bits(b)));
}

#if defined(__aarch64__)

AMP_INLINE float vwiden_fp16(amp_half_bits h)
{
    __fp16 value;
    memcpy(&value, &h, sizeof value);
    return value;
}

AMP_INLINE amp_half_bits vnarrow_fp16(float v)
{
    __fp16 value = (__fp16)v;
    amp_half_bits h;
    memcpy(&h, &value, sizeof h);
    return h;
}

#else

/* The conversions of tensor/half.h in a form that the compiler can vectorise: without branches and without
 * shifts by a variable. Subnormals of fp16 are converted by adding or subtracting a float instead of
 * shifting. No intermediate result is an fp32 subnormal, so flush-to-zero changes nothing. */
AMP_INLINE float vwiden_fp16(amp_half_bits h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, magnitude = (uint32_t)(h & 0x7fffu) << 13;
    uint32_t normal = magnitude + (112u << 23);
    uint32_t special = magnitude | 0x7f800000u | (vbits(magnitude > 0x1fu << 23, 1u << 22, 0));
    /* a subnormal: 2^-14 + mantissa·2^-24, minus 2^-14 */
    uint32_t small = amp_float_bits(amp_bits_float(magnitude + (113u << 23)) - 0x1p-14f);
    return amp_bits_float(sign | vbits(magnitude >= 0x1fu << 23, special,
                                       vbits(magnitude < 1u << 23, small, normal)));
}

AMP_INLINE amp_half_bits vnarrow_fp16(float v)
{
    uint32_t bits = amp_float_bits(v), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - (112u << 23)) >> 13;
    /* floats between 0.5 and 1 are 2^-24 apart, as fp16's subnormals are, so the sum is rounded like these */
    uint32_t small = amp_float_bits(amp_bits_float(magnitude) + 0.5f) - (126u << 23);
    uint32_t special = 0x7c00u | vbits(magnitude > 0x7f800000u, 0x200u | ((magnitude >> 13) & 0x3ffu), 0);
    uint32_t finite = vbits(magnitude < 113u << 23, small, normal);
    return (amp_half_bits)(sign | vbits(magnitude >= 0x477ff000u, special, finite));
}

#endif

AMP_INLINE vf vload(const void *p, size_t i, int n, amp_dtype dtype)
{
    if (dtype == AMP_FP16) return vwiden_fp16(((const amp_half_bits *)p)[i]);
    if (dtype == AMP_BF16) return amp_bf16_to_float(((const amp_half_bits *)p)[i]);
    return ((const float *)p)[i];
}

AMP_INLINE void vstore(void *p, size_t i, int n, vf v, amp_dtype dtype)
{
    if (dtype == AMP_FP16) ((amp_half_bits *)p)[i] = vnarrow_fp16(v);
    else if (dtype == AMP_BF16) ((amp_half_bits *)p)[i] = amp_float_to_bf16(v);
    else ((float *)p)[i] = v;
}

AMP_INLINE void vkeep(void *p, size_t i, int n, vm m, const void *q, size_t j, amp_dtype dtype)
{
    if (dtype == AMP_FP32) ((float *)p)[i] = vselect(m, ((const float *)q)[j], 0);
    else ((amp_half_bits *)p)[i] = (amp_half_bits)(((const amp_half_bits *)q)[j] & (0u - (uint32_t)m));
}

AMP_INLINE vi vload_u8(const uint8_t *p, int n) { return *p; }
AMP_INLINE void vstore_u8(uint8_t *p, int n, vi v) { *p = (uint8_t)v; }
AMP_INLINE vf vset(float a) { return a; }
AMP_INLINE vm vgt(vf a, vf b) { return a > b; }
AMP_INLINE vf vmax(vf a, vf b) { return a > b ? a : b; }
AMP_INLINE vf vsqrt(vf a) { return sqrtf(a); }
AMP_INLINE vf vexponent(vf a) { return amp_bits_float(amp_float_bits(a) << 23); }
AMP_INLINE vi viset(int a) { return a; }
AMP_INLINE vm vieq(vi a, vi b) { return a == b; }
AMP_INLINE vi viselect(vm m, vi a, vi b) { return m ? a : b; }

#elif defined(AMP_ROWS_LANES_AVX2)

#include <immintrin.h>

#define VL 8
typedef __m256 vf;
typedef __m256i vi;
typedef __m256 vm;

AMP_INLINE vf vload(const void *p, size_t i, int n, amp_dtype dtype)
{
    const char *from = (const char *)p + i * amp_dtype_size(dtype);
    float part[VL] = { 0 };
    if (n < VL) {
        memcpy(part, from, (size_t)n * amp_dtype_size(dtype));
        from = (const char *)part;
    }
    if (dtype == AMP_FP32) return _mm256_loadu_ps((const float *)from);
    __m128i half = _mm_loadu_si128((const __m128i *)from);
    if (dtype == AMP_FP16) return _mm256_cvtph_ps(half);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

AMP_INLINE __m128i vnarrow(vf v, amp_dtype dtype)
{
    if (dtype == AMP_FP16) return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
    __m256i bits = _mm256_castps_si256(v), high = _mm256_srli_epi32(bits, 16);
    __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    __m256i number = _mm256_srli_epi32(_mm256_add_epi32(bits,
                                                        _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))),
                                       16);
    __m256i nan = _mm256_or_si256(high, _mm256_set1_epi32(0x0040));
    __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    __m256i both = _mm256_blendv_epi8(number, nan, is_nan);
    return _mm_packus_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
}

AMP_INLINE void vstore(void *p, size_t i, int n, vf v, amp_dtype dtype)
{
    char *to = (char *)p + i * amp_dtype_size(dtype);
    float part[VL];
    void *target = n < VL ? (void *)part : (void *)to;
    if (dtype == AMP_FP32) _mm256_storeu_ps(target, v);
    else _mm_storeu_si128(target, vnarrow(v, dtype));
    if (n < VL) memcpy(to, part, (size_t)n * amp_dtype_size(dtype));
}

AMP_INLINE void vkeep(void *p, size_t i, int n, vm m, const void *q, size_t j, amp_dtype dtype)
{
    if (dtype == AMP_FP32 || n < VL) { /* partial vectors of halves too: only a signalling NaN changes */
        vstore(p, i, n, _mm256_and_ps(m, vload(q, j, n, dtype)), dtype);
        return;
    }
    __m256i lanes = _mm256_castps_si256(m);
    __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
    __m128i kept = _mm_and_si128(words, _mm_loadu_si128((const __m128i *)((const amp_half_bits *)q + j)));
    _mm_storeu_si128((__m128i *)((amp_half_bits *)p + i), kept);
}

AMP_INLINE vi vload_u8(const uint8_t *p, int n)
{
    uint64_t bytes = 0;
    memcpy(&bytes, p, n < VL ? (size_t)n : 8);
    return _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)bytes));
}

AMP_INLINE void vstore_u8(uint8_t *p, int n, vi v)
{
    __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    long long bytes = _mm_cvtsi128_si64(_mm_packus_epi16(words, words));
    memcpy(p, &bytes, n < VL ? (size_t)n : 8);
}

AMP_INLINE vf vset(float a) { return _mm256_set1_ps(a); }
AMP_INLINE vm vgt(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_GT_OQ); }
AMP_INLINE vf vselect(vm m, vf a, vf b) { return _mm256_blendv_ps(b, a, m); }
AMP_INLINE vf vmax(vf a, vf b) { return _mm256_max_ps(a, b); }
AMP_INLINE vf vsqrt(vf a) { return _mm256_sqrt_ps(a); }
AMP_INLINE vf vexponent(vf a) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(a), 23)); }
AMP_INLINE vi viset(int a) { return _mm256_set1_epi32(a); }
AMP_INLINE vm vieq(vi a, vi b) { return _mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b)); }
AMP_INLINE vi viselect(vm m, vi a, vi b) { return _mm256_blendv_epi8(b, a, _mm256_castps_si256(m)); }

#elif defined(AMP_ROWS_LANES_AVX512)

#include <immintrin.h>

#define VL 16
typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;

AMP_INLINE __mmask16 vfirst(int n) { return (__mmask16)((1u << n) - 1); }

AMP_INLINE vf vload(const void *p, size_t i, int n, amp_dtype dtype)
{
    const char *from = (const char *)p + i * amp_dtype_size(dtype);
    if (dtype == AMP_FP32) return n == VL ? _mm512_loadu_ps(from) : _mm512_maskz_loadu_ps(vfirst(n), from);
    __m256i half = n == VL ? _mm256_loadu_si256((const __m256i *)from) : _mm256_maskz_loadu_epi16(vfirst(n),
            from);
    if (dtype == AMP_FP16) return _mm512_cvtph_ps(half);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

AMP_INLINE __m256i vnarrow(vf v, amp_dtype dtype)
{
    if (dtype == AMP_FP16) return _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
    static const uint16_t odd_words[32] = { 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31 };
    __m512i bits = _mm512_castps_si512(v), rounded = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));
    __mmask16 odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
    rounded = _mm512_mask_add_epi32(rounded, odd, rounded, _mm512_set1_epi32(1));
    __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    rounded = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
    /* takes the high half of each float */
    return _mm512_castsi512_si256(_mm512_permutexvar_epi16(_mm512_loadu_si512(odd_words), rounded));
}

AMP_INLINE void vstore(void *p, size_t i, int n, vf v, amp_dtype dtype)
{
    char *to = (char *)p + i * amp_dtype_size(dtype);
    if (dtype == AMP_FP32) {
        if (n == VL) _mm512_storeu_ps(to, v);
        else _mm512_mask_storeu_ps(to, vfirst(n), v);
    } else {
        if (n == VL) _mm256_storeu_si256((__m256i *)to, vnarrow(v, dtype));
        else _mm256_mask_storeu_epi16(to, vfirst(n), vnarrow(v, dtype));
    }
}

AMP_INLINE void vkeep(void *p, size_t i, int n, vm m, const void *q, size_t j, amp_dtype dtype)
{
    vm m_n = n == VL ? m : (vm)(m & vfirst(n));
    if (dtype == AMP_FP32) {
        __m512 kept = _mm512_maskz_loadu_ps(m_n, (const float *)q + j);
        if (n == VL) _mm512_storeu_ps((float *)p + i, kept);
        else _mm512_mask_storeu_ps((float *)p + i, vfirst(n), kept);
    } else {
        __m256i kept = _mm256_maskz_loadu_epi16(m_n, (const amp_half_bits *)q + j);
        if (n == VL) _mm256_storeu_si256((__m256i *)((amp_half_bits *)p + i), kept);
        else _mm256_mask_storeu_epi16((amp_half_bits *)p + i, vfirst(n), kept);
    }
}

AMP_INLINE vi vload_u8(const uint8_t *p, int n)
{
    return _mm512_cvtepu8_epi32(n == VL ? _mm_loadu_si128((const __m128i *)p)
                                : _mm_maskz_loadu_epi8(vfirst(n), p));
}

AMP_INLINE void vstore_u8(uint8_t *p, int n, vi v)
{
    if (n == VL) _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(v));
    else _mm_mask_storeu_epi8(p, vfirst(n), _mm512_cvtepi32_epi8(v));
}

AMP_INLINE vf vset(float a) { return _mm512_set1_ps(a); }
AMP_INLINE vm vgt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
AMP_INLINE vf vselect(vm m, vf a, vf b) { return _mm512_mask_blend_ps(m, b, a); }
AMP_INLINE vf vmax(vf a, vf b) { return _mm512_max_ps(a, b); }
AMP_INLINE vf vsqrt(vf a) { return _mm512_sqrt_ps(a); }
AMP_INLINE vf vexponent(vf a) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(a), 23)); }
AMP_INLINE vi viset(int a) { return _mm512_set1_epi32(a); }
AMP_INLINE vm vieq(vi a, vi b) { return _mm512_cmpeq_epi32_mask(a, b); }
AMP_INLINE vi viselect(vm m, vi a, vi b) { return _mm512_mask_blend_epi32(m, b, a); }

#endif

/* Prefetches fp32 data 32 cache lines ahead, because the hardware's prefetcher stops at page boundaries. Does
 * nothing if VL = 1, where it would prevent vectorisation. */
AMP_INLINE void vahead(const float *p, size_t i)
{
    enum { AHEAD = 512 };
    if (VL > 1) __builtin_prefetch(p + i + AHEAD);
}

AMP_INLINE vf vload_ahead(const float *p, size_t i, int n)
{
    vahead(p, i);
    return vload(p, i, n, AMP_FP32);
}

/* Runs `step`, which processes lanes i..i+n-1, for all lanes below count: first for whole vectors, then once
 * for the rest. For whole vectors `n` is a constant. */
#define AMP_LANES(count, step) do { \
        size_t i = 0; \
        for (; i + VL <= (count); i += VL) { const int n = VL; step; } \
        if (VL > 1 && i < (count)) { const int n = (int)((count) - i); step; } \
    } while (0)

/* Runs `call`, in which `dt` is dtype as a compile-time constant, so that each dtype has its own loop. */
#define AMP_BY_DTYPE(dtype, call) do { \
        switch (dtype) { \
        case AMP_FP16: { const amp_dtype dt = AMP_FP16; call; break; } \
        case AMP_BF16: { const amp_dtype dt = AMP_BF16; call; break; } \
        default: { const amp_dtype dt = AMP_FP32; call; break; } \
        } \
    } while (0)

/* Runs `call`, in which `act` is the activation, as a compile-time constant for the activations of hot
 * layers. The other activations share one loop. */
#define AMP_BY_ACTIVATION(activation, call) do { \
        switch (activation) { \
        case AMP_LINEAR: { const amp_activation act = AMP_LINEAR; call; break; } \
        case AMP_LEAKY: { const amp_activation act = AMP_LEAKY; call; break; } \
        case AMP_RELU: { const amp_activation act = AMP_RELU; call; break; } \
        default: { const amp_activation act = activation; call; break; } \
        } \
    } while (0)
