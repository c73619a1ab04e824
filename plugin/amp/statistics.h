/* Statistics of measurements: medians, and confidence intervals of means. */
#pragma once

#include <stddef.h>

/* Sorts values[count], smallest first. */
void amp_sort(double *values, size_t count);
/* The quantile q (0 to 1) of sorted values, interpolated between neighbours. NaN if count is 0. */
double amp_quantile(const double *sorted, size_t count, double q);
/* The median. Sorts `values` in place. NaN if count is 0. */
double amp_median(double *values, size_t count);

/* The mean of `count` independent measurements, its standard error, and its confidence interval from `least`
 * to `most` at the level 1 - alpha. The mean is NaN if count is 0; the others are NaN if it is below 2. */
typedef struct amp_interval { int count; double mean, error, least, most; } amp_interval;
amp_interval amp_interval_of(const double *values, int count, double alpha);

/* Returns the quantile 1 - alpha/2 of Student's t with count - 1 degrees of freedom: how many standard errors
 * the confidence interval of a mean reaches to each side. NaN if count is below 2. */
double amp_student(int count, double alpha);
