/* What a dtype loses of a histogram. The limits follow from its format alone (IEEE 754: round to nearest,
 * ties to even):
 *            numbers up to   normal from   smallest   rounded to 0 up to
 *     fp16   2^15 · 1.999    2^-14         2^-24      2^-25
 *     bf16   2^127 · 1.992   2^-126        2^-133     2^-134
 *     fp32   2^127 · 2.000   2^-126        2^-149     2^-150 */
#include "numerics.h"

#include <limits.h>
#include <math.h>

#include "../tensor/half.h"

typedef struct format { int most, least_normal, fraction_bits; } format;

static format format_of(amp_dtype dtype)
{
    return dtype == AMP_FP16 ? (format){ 15, -14, 10 } : dtype == AMP_BF16 ? (format){ 127, -126, 7 }
        : (format){ 127, -126, 23 };
}

/* Bins with this exponent or a lower one become 0. */
static int vanishing(format f) { return f.least_normal - f.fraction_bits - 2; }

/* The least number that rounds to inf: half a last place above the largest number; 65520 in fp16. */
static double overflowing(format f) { return ldexp(2 - ldexp(1, -f.fraction_bits - 1), f.most); }

static int exponent_of(double number)
{
    int exponent;
    frexp(number, &exponent);
    return exponent - 1;
}

/* A host built with -Ofast treats fp32's subnormals as 0, here too. */
static double largest_of(const amp_exponents *e)
{
    unsigned bits = amp_float_bits(e->largest);
    return bits >> 23 ? (double)e->largest : ldexp((double)bits, AMP_LEAST_EXPONENT);
}

/* How far rounding moves a number with this exponent, as a share of the number. */
static double error_at(format f, int exponent)
{
    if (exponent <= vanishing(f)) return 1;
    int spacing = (exponent < f.least_normal ? f.least_normal : exponent) - f.fraction_bits;
    return ldexp(.25 / 1.5, spacing - exponent);
}

/* Sizes are relative to the largest bin's, so that their sum stays within a double's range. */
static double error_of(const amp_exponents *e, format f, int shift)
{
    double sum = 0, lost = 0;
    for (int b = 0; b < AMP_EXPONENTS; b++) {
        int exponent = b + AMP_LEAST_EXPONENT + shift;
        if (!e->bins[b] || exponent > f.most) continue;
        double size = ldexp((double)e->bins[b], b - AMP_EXPONENTS);
        sum += size;
        lost += size * error_at(f, exponent);
    }
    return sum > 0 ? lost / sum : 0;
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
    lost.error = error_of(e, f, shift);
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
    format f = format_of(dtype);
    int most = amp_numerics_most_scale(e, dtype), least = vanishing(f) - AMP_LEAST_EXPONENT - AMP_EXPONENTS;
    if (most == INT_MAX) return INT_MIN;
    for (int k = least; k <= most; k++) if (error_of(e, f, k) <= share) return k;
    return INT_MAX;
}
