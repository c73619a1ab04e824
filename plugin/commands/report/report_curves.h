/* The losses of all runs, gathered into few points for the chart: as many for a training of a hundred steps as for one of a
 * million. */
#ifndef AMP_COMMANDS_REPORT_REPORT_CURVES_H
#define AMP_COMMANDS_REPORT_REPORT_CURVES_H

#include "../compare/comparison.h"

/* Runs are gathered alike: point i of every run covers the same steps. Steps are counted from 1, skipped ones included: as all
 * runs see the same batches, step n is the same batch everywhere. */
typedef struct amp_points {
    size_t per_point, count;
    double *step;           /* [count]: the middle step of a point */
    double *value;          /* [runs][count]; NaN: none */
} amp_points;

typedef struct amp_curves {
    size_t steps;           /* of the longest run */
    amp_points loss;        /* medians; steps whose loss is inf or NaN are left out */
    amp_points middle;      /* [dtypes][count]: medians over the seeds of loss; failed runs only where all have failed */
} amp_curves;

enum { AMP_LOSS_POINTS = 100 };

/* AMP_NO_MEMORY. Nothing to free after a failure. */
amp_status amp_curves_make(const amp_comparison *, amp_curves *out, amp_error *);
void amp_curves_free(amp_curves *);

/* Writes a file of the report that shows the curves, as a whole or not at all (json.h's amp_output). */
typedef void amp_curves_writer(FILE *, const amp_comparison *, const amp_curves *);
amp_status amp_curves_write(const amp_comparison *, const char *file, amp_curves_writer *write, amp_error *);

static inline double *amp_points_of(const amp_points *points, int run) { return points->value + (size_t)run * points->count; }
/* Least and largest of the values of `rows` runs or dtypes from `first` on; 0: there are none. */
int amp_points_range(const amp_points *, int first, int rows, double *low, double *high);

#endif
