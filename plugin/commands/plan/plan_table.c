/* The plan as a table for people, in lines of at most WIDTH columns. */
#include "plan_report.h"

#include <stdarg.h>
#include <string.h>

enum { WIDTH = 110 };

static double mib(size_t bytes) { return (double)bytes / (1 << 20); }
static double gib(size_t bytes) { return (double)bytes / (1 << 30); }

/* Prints to the end of a line that stands at column `indent`. Words that do not fit go on in further lines,
 * indented alike. */
__attribute__((format(printf, 3, 4)))
static void finish_line(FILE *stream, int indent, const char *format, ...)
{
    char text[1200];
    int column = indent;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (const char *word = text; *word; word += strspn(word, " ")) {
        int length = (int)strcspn(word, " ");
        if (column > indent && column + 1 + length > WIDTH) {
            fprintf(stream, "\n%*s", indent, "");
            column = indent;
        }
        column += fprintf(stream, "%s%.*s", column > indent ? " " : "", length, word);
        word += length;
    }
    putc('\n', stream);
}

/* ---- rows ---- */

__attribute__((format(printf, 3, 4)))
static void append(char *text, size_t size, const char *format, ...)
{
    size_t length = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + length, size - length, format, args);
    va_end(args);
}

/* Why the layer runs in what it runs in, and what is cast: what it is the first to read in its form, or its
 * own output when that is handed out. */
static void say_notes(const amp_plan_report *r, int i, char *text, size_t size)
{
    const amp_plan_row *row = &r->rows[i];
    snprintf(text, size, "%s", row->why);
    if (row->padded_in != row->in || row->padded_out != row->out)
        append(text, size, "; padded to %d -> %d", row->padded_in, row->padded_out);
    for (int k = 0; k < r->cast_count; k++) {
        const amp_plan_cast *c = &r->casts[k];
        if (c->reader != i && !(c->reader < 0 && c->producer == i)) continue;
        if (c->reader < 0) append(text, size, "; its output");
        else if (c->producer < 0) append(text, size, "; image");
        else append(text, size, "; layer %d", c->producer);
        append(text, size, " cast to %s%s", amp_plan_form_name(r, c->to), c->backward ? " and back" : "");
    }
}

/* All but the notes, which come last. */
enum { LAYER, TYPE, OUTPUT, RUNS_IN, CHANNELS, OF_STOCK, OF_AMP, COLUMNS };

typedef struct plan_cells { char text[COLUMNS][32]; } plan_cells;

static const plan_cells headings = {
    { "layer", "type", "w x h x c", "runs in", "channels", "stock", "AMP" } };

static plan_cells cells_of(const amp_plan_report *r, int i)
{
    const amp_plan_row *row = &r->rows[i];
    plan_cells c = { 0 };
    enum { SIZE = sizeof c.text[0] };
    snprintf(c.text[LAYER], SIZE, "%d", i);
    snprintf(c.text[TYPE], SIZE, "%s", row->type);
    snprintf(c.text[OUTPUT], SIZE, "%d x %d x %d", row->output.w, row->output.h, row->output.c);
    snprintf(c.text[RUNS_IN], SIZE, "%s", amp_dtype_name(row->dtype));
    if (row->is_convolution)
        snprintf(c.text[CHANNELS], SIZE, "%d%s -> %d%s", row->in, row->in % 8 ? "!" : "", row->out,
                 row->out % 8 ? "!" : "");
    snprintf(c.text[OF_STOCK], SIZE, "%.2f", mib(row->stock_bytes));
    snprintf(c.text[OF_AMP], SIZE, "%.2f", mib(row->amp_bytes));
    return c;
}

static void widen(int widths[COLUMNS], const plan_cells *c)
{
    for (int k = 0; k < COLUMNS; k++) {
        int width = (int)strlen(c->text[k]);
        if (width > widths[k]) widths[k] = width;
    }
}

static void print_row(FILE *stream, const int widths[COLUMNS], const plan_cells *c, const char *notes)
{
    int column = 0;
    for (int k = 0; k < COLUMNS; k++) {
        int right = k == LAYER || k == OUTPUT || k == OF_STOCK || k == OF_AMP;
        column += fprintf(stream, "%*s ", right ? widths[k] : -widths[k], c->text[k]);
    }
    column += fprintf(stream, " ");
    finish_line(stream, column, "%s", notes);
}

static void print_rows(const amp_plan_report *r, FILE *stream)
{
    int widths[COLUMNS] = { 0 };
    widen(widths, &headings);
    for (int i = 0; i < r->count; i++) {
        plan_cells c = cells_of(r, i);
        widen(widths, &c);
    }
    print_row(stream, widths, &headings, "why, and what is cast");
    for (int i = 0; i < r->count; i++) {
        char notes[800];
        plan_cells c = cells_of(r, i);
        say_notes(r, i, notes, sizeof notes);
        print_row(stream, widths, &c, notes);
    }
    finish_line(stream, 0, "w x h x c: of the output. channels: of a group, in -> out; ! is no multiple of "
                "8. padded: in the backend's copies of the weights.");
    finish_line(stream, 0, "stock, AMP: MiB of outputs, deltas and what backward reads again, in stock's "
                "fp32 and under AMP.");
    finish_line(stream, 0, "cast: a layer's output, where this layer is the first to read it so; \"and "
                "back\": its delta too.");
}

/* ---- totals ---- */

static double percent(double part, double all) { return all > 0 ? 100 * part / all : 0; }

enum { TOTAL = 27 };

static void print_total(FILE *stream, const char *name) { fprintf(stream, "  %-*s", TOTAL - 2, name); }

static void print_activations(const amp_plan_report *r, FILE *stream)
{
    size_t amp = amp_footprint_sum(&r->amp), fp32 = amp_footprint_sum(&r->fp32);
    print_total(stream, "activations and deltas");
    finish_line(stream, TOTAL, "stock %.1f MiB, engine in fp32 %.1f MiB, AMP %.1f MiB (%.0f %% of stock)",
                mib(r->stock), mib(fp32), mib(amp), percent((double)amp, (double)r->stock));
    print_total(stream, "  of AMP's");
    finish_line(stream, TOTAL, "arena as planned %.1f MiB, Darknet's own fp32 buffers %.1f MiB, images and "
                "labels %.1f MiB",
                mib(r->amp.arena), mib(r->amp.buffers), mib(r->amp.input));
}

static void print_weights(const amp_plan_report *r, FILE *stream)
{
    size_t one = r->parameters * sizeof(float);
    char adam[64] = "";
    if (r->view.adam) snprintf(adam, sizeof adam, ", Adam's moments %.1f MiB", mib(2 * one));
    print_total(stream, "weights");
    finish_line(stream, TOTAL, "%zu numbers: masters %.1f MiB, momentum %.1f MiB, gradients %.1f MiB%s",
                r->parameters, mib(one), mib(one), mib(one), adam);
    print_total(stream, "");
    finish_line(stream, TOTAL, "copies to compute with %.1f MiB, shared workspace %.1f MiB (stock's: %.1f "
                "MiB)",
                mib(r->half_bytes), mib(r->workspace), mib(r->stock_workspace));
}

static void print_operations(const amp_plan_report *r, FILE *stream)
{
    char stored[80] = "";
    size_t elements = 0;
    int back = 0;
    if (r->stored_operations > 0)
        snprintf(stored, sizeof stored, ", %.1f %% on stored %s computed in fp32",
                 percent(r->stored_operations, r->operations),
                 amp_dtype_name(r->dtype));
    print_total(stream, "matrix products");
    finish_line(stream, TOTAL, "%.2f GFLOP a pass, of which %.1f %% in %s%s", r->operations * 1e-9,
                percent(r->half_operations, r->operations),
                r->dtype == AMP_FP32 ? "half precision" : amp_dtype_name(r->dtype), stored);
    for (int k = 0; k < r->cast_count; k++) {
        elements += r->casts[k].elements;
        back += r->casts[k].backward;
    }
    print_total(stream, "casts");
    finish_line(stream, TOTAL, "%d a pass and %d of deltas back, %.1f million numbers forward", r->cast_count,
                back, (double)elements * 1e-6);
}

/* What the library chose, each kernel once with how many layers run it forward. */
static void print_kernels(const amp_plan_report *r, FILE *stream)
{
    char text[1000] = "";
    for (int i = 0; i < r->count; i++) {
        int count = 0, first = r->rows[i].kernel[0] != 0;
        for (int k = 0; k < r->count && first; k++) {
            int same = !strcmp(r->rows[k].kernel, r->rows[i].kernel);
            first = !(same && k < i);
            count += same;
        }
        if (first) append(text, sizeof text, "%s%d x %s", text[0] ? "; " : "", count, r->rows[i].kernel);
    }
    if (!text[0]) return;
    print_total(stream, "kernels forward");
    finish_line(stream, TOTAL, "%s", text);
}

static void print_device(const amp_plan_report *r, FILE *stream)
{
    fprintf(stream, "\nDevice\n  ");
    finish_line(stream, 2, "%s", r->machine.description);
    for (int d = 0; d < 3; d++) {
        int column = fprintf(stream, "  %s     %-8s ", amp_dtype_name((amp_dtype)d),
                             amp_plan_support_name(r->machine.support[d]));
        finish_line(stream, column, "%s", r->machine.note[d]);
    }
}

static void say_fit(int fits, int most, char *text, size_t size)
{
    snprintf(text, size, "%d%s", fits, fits >= most ? " (and Darknet cannot count more)" : "");
}

static void print_bytes(const amp_plan_report *r, size_t bytes, FILE *stream)
{
    fprintf(stream, " %14.2f GiB%s", gib(bytes), r->memory.bytes && bytes > r->memory.bytes ? "*" : " ");
}

static void print_memory(const amp_plan_report *r, FILE *stream)
{
    char amp[80], stock[80];
    fprintf(stream, "\nMemory of a training: weights, activations, loaded images\n  %11s %18s  %18s  %18s  "
            "%18s\n", "images/pass", "planned arena", "AMP", "engine in fp32", "stock");
    for (int k = 0; k < r->batch_count; k++) {
        const amp_plan_batch *b = &r->batches[k];
        fprintf(stream, "  %11d", b->images);
        print_bytes(r, b->arena, stream);
        print_bytes(r, b->amp, stream);
        print_bytes(r, b->fp32, stream);
        print_bytes(r, b->stock, stream);
        fprintf(stream, "\n");
    }
    fprintf(stream, "  ");
    if (r->memory.bytes) {
        say_fit(r->fits_amp, r->most_images, amp, sizeof amp);
        say_fit(r->fits_stock, r->most_images, stock, sizeof stock);
        fprintf(stream, "free now: %.2f GiB of %.2f GiB of %s (*: does not fit)\n  ", gib(r->memory.bytes),
                gib(r->memory.all), r->memory.what);
        fprintf(stream, "images a pass that fit, at most: AMP %s, stock %s\n  ", amp, stock);
    }
    finish_line(stream, 2, "Counted: arenas planned at these batches, Darknet's buffers that stay, images "
                "and labels (of the pass%s), weights, gradients, momentum, workspace. Not counted: the program "
                "and its libraries, pictures while they are decoded.",
                amp_plan_loaded_bytes(r, 1) ? ", and two loaded batches" : "");
}

static void print_advice(const amp_plan_report *r, FILE *stream)
{
    fprintf(stream, "\nAdvice\n");
    for (int k = 0; k < r->advice_count; k++) {
        fprintf(stream, "  * ");
        finish_line(stream, 4, "%s", r->advice[k].text);
    }
    if (!r->advice_count) fprintf(stream, "  none: nothing here stands in AMP's way\n");
}

void amp_plan_print_table(const amp_plan_report *r, FILE *stream)
{
    finish_line(stream, 0, "Plan of %s: %s, training, %d image%s a pass (batch=%d subdivisions=%d), input "
                "%d x %d x %d", r->cfg, amp_dtype_name(r->dtype), r->images, r->images == 1 ? "" : "s",
                r->batch, r->subdivisions, r->view.w, r->view.h, r->view.c);
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
