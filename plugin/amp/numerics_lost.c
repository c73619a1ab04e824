/* What a dtype loses of a histogram. Its limits, from its format alone (IEEE 754: round to nearest, ties to even), as exponents:
 *
 *              numbers up to   normal from   smallest   becoming 0
 *     fp16     2^15 · 1.999    2^-14         2^-24      up to 2^-25
 *     bf16     2^127 · 1.992   2^-126        2^-133     up to 2^-134
 *     fp32     2^127 · 2.000   2^-126        2^-149     up to 2^-150 */
#include "numerics.h"

#include <limits.h>
#include <math.h>

#include "../tensor/half.h"

typedef struct format { int most, least_normal, fraction_bits; } format;

static format format_of(amp_dtype dtype)
{
    return dtype == AMP_FP16 ? (format){ 15, -14, 10 } : dtype == AMP_BF16 ? (format){ 127, -126, 7 } : (format){ 127, -126, 23 };
}

/* A bin with this exponent and all below become 0. */
static int vanishing(format f) { return f.least_normal - f.fraction_bits - 2; }

/* What rounds to inf: half a last place beyond the largest number, 65520 in fp16. */
static double overflowing(format f) { return ldexp(2 - ldexp(1, -f.fraction_bits - 1), f.most); }

static int exponent_of(double number)
{
    int exponent;
    frexp(number, &exponent);
    return exponent - 1;
}

/* A host built with -Ofast takes fp32's subnormals for 0, here too. */
static double largest_of(const amp_exponents *e)
{
    unsigned bits = amp_float_bits(e->largest);
    return bits >> 23 ? (double)e->largest : ldexp((double)bits, AMP_LEAST_EXPONENT);
}

amp_lost amp_numerics_lost(const amp_exponents *e, amp_dtype dtype, float scale)
{
    format f = format_of(dtype);
    int shift = exponent_of((double)scale);
    unsigned long long over = 0, zero = 0, subnormal = 0;
    amp_lost lost = { .count = amp_exponents_count(e) };
    if (!lost.count) return lost;
    for (int b = 0; b < AMP_EXPONENTS; b++) {
        int exponent = b + AMP_LEAST_EXPONENT + shift;
        if (exponent > f.most) over += e->bins[b];
        else if (exponent <= vanishing(f)) zero += e->bins[b];
        else if (exponent < f.least_normal) subnormal += e->bins[b];
    }
    lost.overflows = ldexp(largest_of(e), shift) >= overflowing(f);
    if (lost.overflows && !over) over = 1;
    lost.overflow = (double)over / (double)lost.count;
    lost.zero = (double)zero / (double)lost.count;
    lost.subnormal = (double)subnormal / (double)lost.count;
    return lost;
}

int amp_numerics_most_scale(const amp_exponents *e, amp_dtype dtype)
{
    format f = format_of(dtype);
    double largest = largest_of(e);
    if (largest == 0) return INT_MAX;
    int k = f.most - exponent_of(largest);
    return ldexp(largest, k) >= overflowing(f) ? k - 1 : k;
}

int amp_numerics_least_scale(const amp_exponents *e, amp_dtype dtype, double share)
{
    unsigned long long count = amp_exponents_count(e), lost = 0;
    if (!count) return INT_MIN;
    int b = 0; /* the first bin that must not vanish */
    for (; b < AMP_EXPONENTS - 1; b++) {
        lost += e->bins[b];
        if ((double)lost > share * (double)count) break;
    }
    return vanishing(format_of(dtype)) + 1 - (b + AMP_LEAST_EXPONENT);
}
