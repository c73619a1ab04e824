/* The steps of all runs, gathered into few points. */
#include "report_curves.h"

#include "../json.h"
#include "report_text.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
    if (!count) return (double)NAN;
    qsort(values, count, sizeof *values, ascending);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static amp_status make_points(amp_points *points, size_t steps, int rows, amp_error *error)
{
    points->per_point = (steps + AMP_LOSS_POINTS - 1) / AMP_LOSS_POINTS;
    points->count = steps ? (steps + points->per_point - 1) / points->per_point : 0;
    points->step = calloc(points->count + 1, sizeof *points->step);
    points->value = calloc(points->count * (size_t)rows + 1, sizeof *points->value);
    if (!points->step || !points->value) return amp_fail(error, AMP_NO_MEMORY, "the report's charts: out of memory");
    return AMP_OK;
}

/* The steps first..end-1 of a run, counted from 0, that point i covers. */
static size_t begin_of(const amp_points *points, const amp_run *run, size_t i, size_t *end)
{
    size_t first = i * points->per_point;
    *end = first + points->per_point < run->count ? first + points->per_point : run->count;
    return first;
}

static void gather_loss(const amp_run *run, const amp_points *points, double *out, double *room)
{
    for (size_t i = 0; i < points->count; ++i) {
        size_t end, filled = 0;
        for (size_t k = begin_of(points, run, i, &end); k < end; ++k)
            if (amp_is_number((double)run->rows[k].loss)) room[filled++] = (double)run->rows[k].loss;
        out[i] = median(room, filled);
    }
}

static void find_middle(const amp_comparison *c, amp_curves *curves, int dtype, double *room)
{
    int alive = 0;
    for (int s = 0; s < c->seed_count; ++s) alive += amp_comparison_run(c, dtype, s)->state != AMP_RUN_FAILED;
    for (size_t i = 0; i < curves->middle.count; ++i) {
        size_t filled = 0;
        for (int s = 0; s < c->seed_count; ++s) {
            double loss = amp_points_of(&curves->loss, dtype * c->seed_count + s)[i];
            if (alive && amp_comparison_run(c, dtype, s)->state == AMP_RUN_FAILED) continue;
            if (amp_is_number(loss)) room[filled++] = loss;
        }
        amp_points_of(&curves->middle, dtype)[i] = median(room, filled);
    }
}

static void set_steps(amp_points *points, size_t steps)
{
    for (size_t i = 0; i < points->count; ++i) {
        size_t first = i * points->per_point + 1, last = first + points->per_point - 1;
        if (last > steps) last = steps;
        points->step[i] = ((double)first + (double)last) / 2;
    }
}

static void fill(const amp_comparison *c, amp_curves *curves, double *room)
{
    for (int r = 0; r < c->dtype_count * c->seed_count; ++r)
        gather_loss(&c->runs[r], &curves->loss, amp_points_of(&curves->loss, r), room);
    for (int d = 0; d < c->dtype_count; ++d) find_middle(c, curves, d, room);
    set_steps(&curves->loss, curves->steps);
    set_steps(&curves->middle, curves->steps);
}

amp_status amp_curves_make(const amp_comparison *c, amp_curves *out, amp_error *error)
{
    int runs = c->dtype_count * c->seed_count;
    *out = (amp_curves){ 0 };
    for (int r = 0; r < runs; ++r) if (c->runs[r].count > out->steps) out->steps = c->runs[r].count;
    amp_status status = make_points(&out->loss, out->steps, runs, error);
    if (status == AMP_OK) status = make_points(&out->middle, out->steps, c->dtype_count, error);
    double *room = calloc(out->loss.per_point + (size_t)c->seed_count + 1, sizeof *room);
    if (status == AMP_OK && !room) status = amp_fail(error, AMP_NO_MEMORY, "the report's charts: out of memory");
    if (status == AMP_OK) fill(c, out, room);
    else amp_curves_free(out);
    free(room);
    return status;
}

void amp_curves_free(amp_curves *curves)
{
    amp_points *all[] = { &curves->loss, &curves->middle };
    for (int i = 0; i < 2; ++i) {
        free(all[i]->step);
        free(all[i]->value);
    }
    *curves = (amp_curves){ 0 };
}

int amp_points_range(const amp_points *points, int first, int rows, double *low, double *high)
{
    int found = 0;
    for (size_t i = 0; i < points->count * (size_t)rows; ++i) {
        double value = amp_points_of(points, first)[i];
        if (!amp_is_number(value)) continue;
        if (!found || value < *low) *low = value;
        if (!found || value > *high) *high = value;
        found = 1;
    }
    return found;
}

amp_status amp_curves_write(const amp_comparison *c, const char *file, amp_curves_writer *write, amp_error *error)
{
    amp_curves curves;
    struct amp_output *output;
    FILE *stream;
    AMP_TRY(amp_curves_make(c, &curves, error));
    amp_status status = amp_output_begin(file, &output, &stream, error);
    if (status == AMP_OK) {
        write(stream, c, &curves);
        status = amp_output_end(output, error);
    }
    amp_curves_free(&curves);
    return status;
}
