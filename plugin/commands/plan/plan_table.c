/* The plan as a table for people. */
#include "plan_report.h"

#include <string.h>

static double mib(size_t bytes) { return (double)bytes / (1 << 20); }
static double gib(size_t bytes) { return (double)bytes / (1 << 30); }

/* ---- rows ---- */

static void say_cast(const amp_plan_report *r, const amp_plan_cast *c, char *text, size_t size)
{
    char from[24] = "image";
    if (c->producer >= 0) snprintf(from, sizeof from, "%d", c->producer);
    snprintf(text, size, "%s: %s -> %s%s", from, amp_plan_form_name(r, c->from), amp_plan_form_name(r, c->to),
             c->backward ? " and back" : "");
}

static void append(char *text, size_t size, const char *more)
{
    size_t length = strlen(text);
    snprintf(text + length, size - length, "%s%s", length ? ", " : "", more);
}

/* The casts that are made when this layer reads, or when its own output is handed out. */
static void say_casts(const amp_plan_report *r, int layer, char *text, size_t size)
{
    char one[96];
    text[0] = 0;
    for (int k = 0; k < r->cast_count; k++) {
        const amp_plan_cast *c = &r->casts[k];
        if (c->reader != layer && !(c->reader < 0 && c->producer == layer)) continue;
        say_cast(r, c, one, sizeof one);
        append(text, size, one);
    }
}

static void say_channels(const amp_plan_row *row, char *text, size_t size)
{
    text[0] = 0;
    if (row->is_convolution)
        snprintf(text, size, "%d%s -> %d%s", row->in, row->in % 8 ? "!" : "", row->out, row->out % 8 ? "!" : "");
}

static void say_padding(const amp_plan_row *row, char *text, size_t size)
{
    text[0] = 0;
    if (row->padded_in != row->in || row->padded_out != row->out)
        snprintf(text, size, "%d -> %d", row->padded_in, row->padded_out);
}

/* All but the casts, which come last and need no width. */
enum { LAYER, TYPE, OUTPUT, CLASS, RUNS_IN, WHY, CHANNELS, PADDED, ACTIVATIONS, COLUMNS };

typedef struct plan_cells { char text[COLUMNS][sizeof ((amp_plan_row *)0)->why]; } plan_cells;

static const plan_cells headings = { { "layer", "type", "output w x h x c", "class", "runs in", "why", "channels", "padded to",
                                       "activations MiB" } };

static plan_cells cells_of(const amp_plan_report *r, int i)
{
    const amp_plan_row *row = &r->rows[i];
    plan_cells c;
    snprintf(c.text[LAYER], sizeof c.text[LAYER], "%d", i);
    snprintf(c.text[TYPE], sizeof c.text[TYPE], "%s", row->type);
    snprintf(c.text[OUTPUT], sizeof c.text[OUTPUT], "%d x %d x %4d", row->output.w, row->output.h, row->output.c);
    snprintf(c.text[CLASS], sizeof c.text[CLASS], "%s", row->class_name);
    snprintf(c.text[RUNS_IN], sizeof c.text[RUNS_IN], "%s", amp_dtype_name(row->dtype));
    snprintf(c.text[WHY], sizeof c.text[WHY], "%s", row->why);
    say_channels(row, c.text[CHANNELS], sizeof c.text[CHANNELS]);
    say_padding(row, c.text[PADDED], sizeof c.text[PADDED]);
    snprintf(c.text[ACTIVATIONS], sizeof c.text[ACTIVATIONS], "%.2f -> %.2f", mib(row->stock_bytes), mib(row->amp_bytes));
    return c;
}

static void widen(int widths[COLUMNS], const plan_cells *c)
{
    for (int k = 0; k < COLUMNS; k++) {
        int width = (int)strlen(c->text[k]);
        if (width > widths[k]) widths[k] = width;
    }
}

static void print_row(FILE *stream, const int widths[COLUMNS], const plan_cells *c, const char *casts)
{
    for (int k = 0; k < COLUMNS; k++) {
        int right = k == LAYER || k == OUTPUT || k == ACTIVATIONS;
        fprintf(stream, "%*s ", right ? widths[k] : -widths[k], c->text[k]);
    }
    fprintf(stream, " %s\n", casts);
}

/* Columns are as wide as what stands in them, so that a usual network's rows fit a usual terminal. */
static void print_rows(const amp_plan_report *r, FILE *stream)
{
    int widths[COLUMNS] = { 0 };
    widen(widths, &headings);
    for (int i = 0; i < r->count; i++) {
        plan_cells c = cells_of(r, i);
        widen(widths, &c);
    }
    print_row(stream, widths, &headings, "casts");
    for (int i = 0; i < r->count; i++) {
        char casts[400];
        plan_cells c = cells_of(r, i);
        say_casts(r, i, casts, sizeof casts);
        print_row(stream, widths, &c, casts);
    }
    fprintf(stream, "channels: of a group, in -> out; ! is no multiple of 8. padded to: as in the backend's copies of "
            "the weights.\n"
            "activations: outputs, deltas and what backward reads again, stock's fp32 -> AMP's.\n"
            "casts: of which layer's output, when this layer first reads it; \"and back\": its delta too.\n");
}

/* ---- totals ---- */

static double percent(double part, double all) { return all > 0 ? 100 * part / all : 0; }

static void print_activations(const amp_plan_report *r, FILE *stream)
{
    size_t amp = amp_host_footprint_sum(&r->amp), fp32 = amp_host_footprint_sum(&r->fp32);
    fprintf(stream, "  activations and deltas   stock %.1f MiB, engine in fp32 %.1f MiB, AMP %.1f MiB (%.0f %% of stock)\n",
            mib(r->stock), mib(fp32), mib(amp), percent((double)amp, (double)r->stock));
    fprintf(stream, "    of AMP's               arena as planned %.1f MiB, Darknet's own fp32 buffers %.1f MiB, images "
            "and labels %.1f MiB\n",
            mib(r->amp.arena), mib(r->amp.buffers), mib(r->amp.input));
}

static void print_weights(const amp_plan_report *r, FILE *stream)
{
    size_t one = r->parameters * sizeof(float);
    fprintf(stream, "  weights (%zu numbers)  masters %.1f MiB, momentum %.1f MiB, gradients %.1f MiB", r->parameters,
            mib(one), mib(one), mib(one));
    if (r->net->adam) fprintf(stream, ", Adam's moments %.1f MiB", mib(2 * one));
    fprintf(stream, "\n    copies to compute with %.1f MiB; shared workspace %.1f MiB (stock's: %.1f MiB)\n",
            mib(r->half_bytes), mib(r->workspace),
            mib(r->stock_workspace));
}

static void print_operations(const amp_plan_report *r, FILE *stream)
{
    fprintf(stream, "  matrix products          %.2f GFLOP a pass, of which %.1f %% in %s", r->operations * 1e-9,
            percent(r->half_operations, r->operations), r->dtype == AMP_FP32 ? "half precision" : amp_dtype_name(r->dtype));
    if (r->stored_operations > 0)
        fprintf(stream, ", %.1f %% on stored %s computed in fp32", percent(r->stored_operations, r->operations),
                amp_dtype_name(r->dtype));
    fprintf(stream, "\n  casts                    %d a pass", r->cast_count);
    size_t elements = 0;
    int back = 0;
    for (int k = 0; k < r->cast_count; k++) {
        elements += r->casts[k].elements;
        back += r->casts[k].backward;
    }
    fprintf(stream, " and %d of deltas back, %.1f million numbers forward\n", back, (double)elements * 1e-6);
}

/* What the library chose, each kernel once with how many layers run it forward. */
static void print_kernels(const amp_plan_report *r, FILE *stream)
{
    const char *before = "  kernels forward          ";
    for (int i = 0; i < r->count; i++) {
        int count = 0, first = r->rows[i].kernel[0] != 0;
        for (int k = 0; k < r->count && first; k++) {
            int same = !strcmp(r->rows[k].kernel, r->rows[i].kernel);
            first = !(same && k < i);
            count += same;
        }
        if (!first) continue;
        fprintf(stream, "%s%d x %s", before, count, r->rows[i].kernel);
        before = "; ";
    }
    if (before[0] == ';') putc('\n', stream);
}

static void print_device(const amp_plan_report *r, FILE *stream)
{
    fprintf(stream, "\nDevice\n  %s\n", r->machine.description);
    for (int d = 0; d < 3; d++)
        fprintf(stream, "  %s     %-8s %s\n", amp_dtype_name((amp_dtype)d), amp_plan_support_name(r->machine.support[d]),
                r->machine.note[d]);
}

static void say_fit(int fits, int most, char *text, size_t size)
{
    if (fits < 0) snprintf(text, size, "not known");
    else snprintf(text, size, "%d%s", fits, fits >= most ? " (and Darknet cannot count more)" : "");
}

static void print_memory(const amp_plan_report *r, FILE *stream)
{
    char amp[80], stock[80];
    say_fit(r->fits_amp, r->most_images, amp, sizeof amp);
    say_fit(r->fits_stock, r->most_images, stock, sizeof stock);
    fprintf(stream, "\nMemory of a training: weights, activations, loaded images\n  %12s %14s %12s %14s %12s\n",
            "images/pass", "planned arena", "AMP", "engine in fp32",
            "stock");
    for (int k = 0; k < r->batch_count; k++) {
        const amp_plan_batch *b = &r->batches[k];
        fprintf(stream, "  %12d %10.2f GiB %8.2f GiB %10.2f GiB %8.2f GiB\n", b->images, gib(b->arena), gib(b->amp),
                gib(b->fp32), gib(b->stock));
    }
    if (!r->free_bytes) return;
    fprintf(stream, "  free now: %.2f GiB of %s. Images a pass that fit, at most: AMP %s, stock %s.\n",
            gib(r->free_bytes), r->free_where, amp, stock);
    fprintf(stream, "  Counted: arenas planned at these batches, Darknet's buffers that stay, images and labels (of the "
            "pass%s),\n"
            "  weights, gradients, momentum, workspace. Not counted: the program and its libraries, pictures while they are decoded.\n",
            amp_plan_loaded_bytes(r, 1) ? ", and two loaded batches" : "");
}

static void print_advice(const amp_plan_report *r, FILE *stream)
{
    fprintf(stream, "\nAdvice\n");
    for (int k = 0; k < r->advice_count; k++) fprintf(stream, "  * %s\n", r->advice[k].text);
    if (!r->advice_count) fprintf(stream, "  none: nothing here stands in AMP's way\n");
}

void amp_plan_print_table(const amp_plan_report *r, FILE *stream)
{
    fprintf(stream, "Plan of %s: %s, training, %d image%s a pass (batch=%d subdivisions=%d), input %d x %d x %d\n",
            r->cfg, amp_dtype_name(r->dtype), r->images, r->images == 1 ? "" : "s", r->batch, r->subdivisions, r->net->w,
            r->net->h, r->net->c);
    if (r->steps > 1) fprintf(stream, "Each image stands for %d time steps.\n", r->steps);
    if (r->off_in_cfg) fprintf(stream, "The .cfg does not ask for AMP: shown is what `-amp %s` would do.\n",
                               amp_dtype_name(r->asked));
    putc('\n', stream);
    print_rows(r, stream);
    fprintf(stream, "\nTotals\n");
    print_activations(r, stream);
    print_weights(r, stream);
    print_operations(r, stream);
    print_kernels(r, stream);
    print_device(r, stream);
    print_memory(r, stream);
    print_advice(r, stream);
    fprintf(stream, "\nMade in %.2f s; nothing was run.\n", r->seconds);
}
