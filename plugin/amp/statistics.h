/* Statistics of what is measured: medians, and the interval in which a mean lies. */
#pragma once

#include <stddef.h>

/* Sorts values[count], smallest first. */
void amp_sort(double *values, size_t count);
/* The quantile q (0 to 1) of sorted values, interpolated between neighbours. NaN if count is 0. */
double amp_quantile(const double *sorted, size_t count, double q);
/* Sorts values. NaN if count is 0. */
double amp_median(double *values, size_t count);

/* The mean of `count` independent measurements, and the bounds between which the true mean lies with
 * probability 1 - alpha. error: the standard error of the mean. NaN: mean without values; error, least and
 * most below 2. */
typedef struct amp_interval { int count; double mean, error, least, most; } amp_interval;
amp_interval amp_interval_of(const double *values, int count, double alpha);

/* The half-width of the interval of a mean of `count` values that holds with probability 1 - alpha, in
 * standard errors: the quantile 1 - alpha/2 of Student's t with count - 1 degrees of freedom. NaN if count is
 * below 2. */
double amp_student(int count, double alpha);
