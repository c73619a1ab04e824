/* A comparison as tables and JSON. */
#include "probe_compare.h"

#include <math.h>

#include "../table.h"

/* ---- tables ---- */

static void print_number(double error, FILE *stream)
{
    if (isnan(error)) fprintf(stream, " %7s", "-");
    else if (isinf(error)) fprintf(stream, " %7s", "not fin");
    else if (error == 0) fprintf(stream, " %7s", "0");
    else fprintf(stream, " %7.1e", error);
}

static void print_cosine(double cosine, FILE *stream)
{
    if (isnan(cosine)) fprintf(stream, " %7s", "-");
    else fprintf(stream, " %7.5f", cosine);
}

/* The larger error of two tensors, of which one or both may not be there. */
static double larger(const amp_differences *d, int layer, amp_trace_kind a, amp_trace_kind b)
{
    return fmax(amp_difference_error(amp_differences_at(d, layer, a)),
                amp_difference_error(amp_differences_at(d, layer, b)));
}

static void print_cells(const amp_probe_run *r, int layer, amp_trace_kind kind, FILE *stream)
{
    fputs(" |", stream);
    print_number(amp_difference_error(amp_differences_at(&r->whole, layer, kind)), stream);
    print_cosine(amp_difference_cosine(amp_differences_at(&r->whole, layer, kind)), stream);
    print_number(amp_difference_error(amp_differences_at(&r->added, layer, kind)), stream);
}

static void print_row(const amp_probe_comparison *c, const amp_probe_run *r, int i, FILE *stream)
{
    fprintf(stream, "%3d %-13.13s", i, c->network.layers[i].type);
    print_cells(r, i, AMP_TRACE_OUTPUT, stream);
    print_cells(r, i, AMP_TRACE_DELTA, stream);
    print_cells(r, i, AMP_TRACE_WEIGHTS, stream);
    fputs(" |", stream);
    print_number(larger(&r->added, i, AMP_TRACE_BIASES, AMP_TRACE_SCALES), stream);
    fputs(" |", stream);
    print_number(larger(&r->whole, i, AMP_TRACE_MEANS, AMP_TRACE_VARIANCES), stream);
    print_number(larger(&r->added, i, AMP_TRACE_MEANS, AMP_TRACE_VARIANCES), stream);
    putc('\n', stream);
}

static void print_table(const amp_probe_comparison *c, amp_dtype dtype, FILE *stream)
{
    const amp_probe_run *r = &c->runs[dtype];
    if (!r->ran) return;
    fprintf(stream, "\n%s against %s\n%16s | %-23s | %-23s | %-23s | %-7s | %s\n", amp_dtype_name(dtype),
            dtype == AMP_FP32 ? "Darknet's own code" : "AMP's fp32", "", "output", "delta",
            "weights' gradient", "biases'", "statistics");
    fprintf(stream, "%-16s |   error  cosine   added |   error  cosine   added |   error  cosine   added |"
            "   added |   error   added\n", "layer");
    for (int i = 0; i < c->network.count; i++) print_row(c, r, i, stream);
}

void amp_probe_print_comparison(const amp_probe_comparison *c, FILE *stream)
{
    print_table(c, AMP_FP32, stream);
    print_table(c, AMP_BF16, stream);
    print_table(c, AMP_FP16, stream);
    for (int d = AMP_FP16; d <= AMP_BF16; d++)
        for (int k = -1; k < c->runs[d].trial_count; k++) {
            const amp_probe_run *r = &c->runs[d];
            if (k < 0) fprintf(stream, "%s cos %.6f err %g scale %g\n", amp_dtype_name((amp_dtype)d), r->cosine, r->error, (double)r->scale);
            else fprintf(stream, "  %d cos %.6f err %g time %g %g\n", r->trials[k].count, r->trials[k].cosine, r->trials[k].error, r->trials[k].seconds, r->trials[k].seconds_without);
        }
    for (int i = 0; i < c->verdict_count; i++) amp_print_wrapped(stream, 0, "%s", c->verdict[i]);
}
