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
    fprintf(out, "medians in ms, and in brackets the middle half; forward and backward of one pass; on synthetic images\n\n");
}

/* Four digits, three below 1, and no exponent in large ones. */
static const char *number(char text[16], double value)
{
    snprintf(text, 16, value >= 1000 ? "%.0f" : value >= 1 ? "%.4g" : "%.3g", value);
    return text;
}

static void print_ratio(FILE *out, double ratio)
{
    char text[32];
    snprintf(text, sizeof text, "%.2fx", ratio);
    fprintf(out, " %9s", ratio > 0 ? text : "-");
}

static void print_side(const amp_bench_side *s, FILE *out)
{
    fprintf(out, "%-6s", s->dtype);
    for (int p = 0; p < AMP_BENCH_PHASES; p++) {
        char text[64], median[16], lower[16], upper[16];
        const amp_bench_spread *m = &s->spread[p];
        snprintf(text, sizeof text, "%s (%s-%s)", number(median, m->median), number(lower, m->lower), number(upper, m->upper));
        fprintf(out, " %25s", text);
    }
    char images[16];
    fprintf(out, " %5d %9s %9.0f", s->steps, number(images, s->images_per_second), s->peak_memory_mb);
    print_ratio(out, s->over_stock.ratio);
    print_ratio(out, s->over_fp32.ratio);
    putc('\n', out);
}

static void print_sides(const amp_bench *b, FILE *out)
{
    fprintf(out, "%-6s", "dtype");
    for (int p = 0; p < AMP_BENCH_PHASES; p++) fprintf(out, " %25s", amp_bench_phase_names[p]);
    fprintf(out, " %5s %9s %9s %9s %9s\n", "steps", "images/s", "peak MB", "to stock", "to fp32");
    for (int i = 0; i < b->count; i++) if (!b->sides[i].left_out) print_side(&b->sides[i], out);
    for (int i = 0; i < b->count; i++)
        if (b->sides[i].left_out) fprintf(out, "%s is left out: %s\n", b->sides[i].dtype, b->sides[i].note);
}

static void print_layer(const amp_bench *b, int layer, FILE *out)
{
    int named = 0;
    for (int i = 0; i < b->count; i++) {
        const amp_bench_side *s = &b->sides[i];
        if (layer >= s->layer_count) continue;
        const amp_bench_layer *l = &s->layers[layer];
        char text[64];
        if (!named++) fprintf(out, "%5d %-15s", layer, l->type);
        snprintf(text, sizeof text, "%.4g (%.1f %%)", amp_bench_layer_ms(l),
                 100 * amp_bench_layer_ms(l) / amp_bench_layers_ms(s));
        fprintf(out, " %20s%s", text, l->in_half ? "*" : " ");
    }
    putc('\n', out);
}

static void print_layers(const amp_bench *b, FILE *out)
{
    int most = 0, half = 0;
    for (int i = 0; i < b->count; i++) if (b->sides[i].layer_count > most) most = b->sides[i].layer_count;
    int *layers = calloc((size_t)most + 1, sizeof *layers);
    int count = layers ? amp_bench_top_layers(b, layers) : 0;
    if (count) {
        fprintf(out, "\nthe most expensive layers, forward and backward in ms, with their share of all layers\n%5s "
                "%-15s", "layer", "");
        for (int i = 0; i < b->count; i++) if (b->sides[i].layer_count) fprintf(out, " %20s ", b->sides[i].dtype);
        putc('\n', out);
    }
    for (int k = 0; k < count; k++) {
        print_layer(b, layers[k], out);
        for (int i = 0; i < b->count; i++) half |= layers[k] < b->sides[i].layer_count && b->sides[i].layers[layers[k]].in_half;
    }
    if (half) fprintf(out, "* in half precision\n");
    free(layers);
}

static void print_noise(const amp_bench *b, FILE *out)
{
    int said = 0;
    fprintf(out, "\nNoise: the middle half of the steps spans");
    for (int i = 0; i < b->count; i++) {
        const amp_bench_spread *s = &b->sides[i].spread[AMP_BENCH_STEP];
        if (b->sides[i].left_out) continue;
        fprintf(out, "%s %.1f %%%s in %s", said ? "," : "", 100 * (s->upper - s->lower) / s->median, said ? "" : " of its median",
                b->sides[i].dtype);
        said = 1;
    }
    fprintf(out, ".\n");
}

void amp_bench_print(const amp_bench *b, FILE *out)
{
    print_head(b, out);
    print_sides(b, out);
    print_layers(b, out);
    print_noise(b, out);
    if (!b->verdict_count) fprintf(out, "No verdict: that needs fp32 and one of bf16 and fp16.\n");
    for (int i = 0; i < b->verdict_count; i++) fprintf(out, "Verdict: %s\n", b->verdicts[i].text);
    const amp_bench_side *stock = amp_bench_side_of(b, "stock"), *fp32 = amp_bench_side_of(b, "fp32");
    if (stock && fp32) fprintf(out, "The engine's own fp32 is %.2fx the speed of stock Darknet here.\n", fp32->over_stock.ratio);
}
