/* Medians, quantiles, and confidence intervals from Student's t distribution. */
#include "statistics.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void amp_sort(double *values, size_t count)
{
    if (count) qsort(values, count, sizeof *values, ascending);
}

double amp_quantile(const double *sorted, size_t count, double q)
{
    if (!count) return NAN;
    double place = q * (double)(count - 1);
    size_t below = (size_t)place;
    if (below + 1 >= count) return sorted[count - 1];
    return sorted[below] + (place - (double)below) * (sorted[below + 1] - sorted[below]);
}

double amp_median(double *values, size_t count)
{
    amp_sort(values, count);
    return amp_quantile(values, count, .5);
}

/* The probability that Student's t lies between -x and x = sqrt(freedom) tan(angle): Abramowitz and Stegun,
 * Handbook of Mathematical Functions (1964), 26.7.3 for odd and 26.7.4 for even degrees of freedom. */
static double probability_within(double angle, int freedom)
{
    int odd = freedom % 2;
    double square = cos(angle) * cos(angle), term = odd ? cos(angle) : 1, sum = freedom == 1 ? 0 : term;
    for (int k = 2 + odd; k <= freedom - 2; k += 2) {
        term *= square * (k - 1) / k;
        sum += term;
    }
    return odd ? (angle + sin(angle) * sum) * 2 / acos(-1) : sin(angle) * sum;
}

/* The result is t = sqrt(freedom) tan(angle). Finds the angle by bisection, to the precision of double. */
double amp_student(int count, double alpha)
{
    double low = 0, high = acos(-1) / 2;
    if (count < 2) return NAN;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        if (probability_within(middle, count - 1) < 1 - alpha) low = middle;
        else high = middle;
    }
    return sqrt(count - 1) * tan(low);
}

amp_interval amp_interval_of(const double *values, int count, double alpha)
{
    amp_interval interval = { .count = count, .mean = NAN, .error = NAN, .least = NAN, .most = NAN };
    double sum = 0, squares = 0;
    for (int i = 0; i < count; i++) sum += values[i];
    if (count) interval.mean = sum / count;
    if (count < 2) return interval;
    for (int i = 0; i < count; i++) squares += (values[i] - interval.mean) * (values[i] - interval.mean);
    interval.error = sqrt(squares / (count - 1) / count);
    double reach = amp_student(count, alpha) * interval.error;
    interval.least = interval.mean - reach;
    interval.most = interval.mean + reach;
    return interval;
}
