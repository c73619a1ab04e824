/* A benchmark on the terminal. */
#define _POSIX_C_SOURCE 200809L
#include "bench.h"

#include <stdlib.h>
#include <string.h>

static void print_head(const amp_bench *b, FILE *out)
{
    const char *machine = "";
    for (int i = 0; i < b->count; i++) if (b->sides[i].machine[0]) machine = b->sides[i].machine;
    fprintf(out, "%s: ", b->cfg);
    if (b->width > 0) fprintf(out, "%d x %d x %d, ", b->width, b->height, b->channels); /* else a flat input */
    fprintf(out, "%d image%s a pass; a step is %d pass%s and an update\n", b->batch, b->batch == 1 ? "" : "s", b->subdivisions,
            b->subdivisions == 1 ? "" : "es");
    fprintf(out, "%s%s%d thread%s, %d processor%s\n", machine, machine[0] ? "; " : "", b->threads,
            b->threads == 1 ? "" : "s", b->processors, b->processors == 1 ? "" : "s");
    fprintf(out, "ms; forward and backward are of one pass, on synthetic images; in brackets the middle\n"
            "half of the steps, and the bounds of the ratio; MB at the peak: of this benchmark, which holds\n"
            "one pass' images, and of a training, which holds two batches (besides those it decodes)\n\n");
}

static void print_ratio(FILE *out, const amp_bench_ratio *r, int bounds)
{
    char text[40] = "-";
    if (r->ratio > 0)
        snprintf(text, sizeof text, bounds ? "%.2fx (%.2f-%.2f)" : "%.2fx", r->ratio, r->least, r->most);
    fprintf(out, bounds ? " %19s" : " %8s", text);
}

static void print_side(const amp_bench *b, const amp_bench_side *s, FILE *out)
{
    char text[64], number[3][16];
    const amp_bench_spread *step = &s->spread[AMP_BENCH_STEP];
    fprintf(out, "%-6s", s->dtype);
    for (int p = 0; p < AMP_BENCH_STEP; p++)
        fprintf(out, " %8s", amp_bench_number(number[0], s->phase_ms[p]));
    snprintf(text, sizeof text, "%s (%s-%s)", amp_bench_number(number[0], s->phase_ms[AMP_BENCH_STEP]),
             amp_bench_number(number[1], step->lower), amp_bench_number(number[2], step->upper));
    fprintf(out, " %21s %5d %8s %8.0f %8.0f", text, s->steps,
            amp_bench_number(number[0], s->images_per_second), s->peak_memory_mb, s->training_mb);
    if (amp_bench_side_of(b, "stock")) print_ratio(out, &s->over_stock, 0);
    if (amp_bench_side_of(b, "fp32")) print_ratio(out, &s->over_fp32, strcmp(s->dtype, "fp32") != 0);
    putc('\n', out);
}

static void print_sides(const amp_bench *b, FILE *out)
{
    fprintf(out, "%-6s %8s %8s %8s %21s %5s %8s %8s %8s", "dtype", "forward", "backward", "update", "step",
            "steps", "images/s", "peak MB", "training");
    if (amp_bench_side_of(b, "stock")) fprintf(out, " %8s", "to stock");
    if (amp_bench_side_of(b, "fp32")) fprintf(out, "  to fp32");
    putc('\n', out);
    for (int i = 0; i < b->count; i++) if (!b->sides[i].left_out) print_side(b, &b->sides[i], out);
    for (int i = 0; i < b->count; i++)
        if (b->sides[i].left_out) fprintf(out, "%s is left out: %s\n", b->sides[i].dtype, b->sides[i].note);
}

/* A cell of the layers' table: the part of a step. */
static void print_part(const amp_bench_side *s, double ms, const char *mark, FILE *out)
{
    char text[48], number[16];
    snprintf(text, sizeof text, "%s (%.1f %%)", amp_bench_number(number, ms),
             100 * ms / s->phase_ms[AMP_BENCH_STEP]);
    fprintf(out, " %20s%s", text, mark);
}

static void print_layer(const amp_bench *b, int layer, FILE *out)
{
    int named = 0;
    for (int i = 0; i < b->count; i++) {
        const amp_bench_side *s = &b->sides[i];
        if (layer >= s->layer_count) continue;
        if (!named++) fprintf(out, "%5d %-15s", layer, s->layers[layer].type);
        print_part(s, amp_bench_layer_ms(&s->layers[layer]), s->layers[layer].in_half ? "*" : " ", out);
    }
    putc('\n', out);
}

/* What a step has besides the layers that were shown. */
static void print_rest(const amp_bench *b, const int *shown, int count, FILE *out)
{
    static const char *const names[] = { "other layers", "update", "step" };
    for (int row = 0; row < 3; row++) {
        fprintf(out, "%5s %-15s", "", names[row]);
        for (int i = 0; i < b->count; i++) {
            const amp_bench_side *s = &b->sides[i];
            double others = amp_bench_layers_ms(s);
            if (!s->layer_count) continue;
            for (int k = 0; k < count; k++) others -= amp_bench_layer_ms(&s->layers[shown[k]]);
            const double ms[] = { others > 0 ? others : 0, s->phase_ms[AMP_BENCH_UPDATE],
                                  s->phase_ms[AMP_BENCH_STEP] };
            print_part(s, ms[row], " ", out);
        }
        putc('\n', out);
    }
}

static void print_layers(const amp_bench *b, FILE *out)
{
    int most = 0, half = 0;
    for (int i = 0; i < b->count; i++) if (b->sides[i].layer_count > most) most = b->sides[i].layer_count;
    int *layers = calloc((size_t)most + 1, sizeof *layers);
    int count = layers ? amp_bench_top_layers(b, layers) : 0;
    if (count) {
        fprintf(out, "\nwhat a step is made of: the most expensive layers, forward and backward of all its "
                "passes, ms and share\n%5s %-15s", "layer", "");
        for (int i = 0; i < b->count; i++) if (b->sides[i].layer_count) fprintf(out, " %20s ", b->sides[i].dtype);
        putc('\n', out);
    }
    for (int k = 0; k < count; k++) {
        print_layer(b, layers[k], out);
        for (int i = 0; i < b->count; i++) half |= layers[k] < b->sides[i].layer_count && b->sides[i].layers[layers[k]].in_half;
    }
    if (count) print_rest(b, layers, count, out);
    if (half) fprintf(out, "* in half precision\n");
    free(layers);
}

void amp_bench_print(const amp_bench *b, FILE *out)
{
    print_head(b, out);
    print_sides(b, out);
    print_layers(b, out);
    putc('\n', out);
    if (!b->verdict_count) fprintf(out, "No verdict: that needs fp32 and one of bf16 and fp16.\n");
    for (int i = 0; i < b->verdict_count; i++) fprintf(out, "Verdict: %s\n", b->verdicts[i].text);
    const amp_bench_side *stock = amp_bench_side_of(b, "stock"), *fp32 = amp_bench_side_of(b, "fp32");
    if (stock && fp32) fprintf(out, "The engine's own fp32 is %.2fx the speed of stock Darknet here.\n", fp32->over_stock.ratio);
}
