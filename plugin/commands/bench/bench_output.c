/* A benchmark on the terminal and as JSON. */
#include "bench.h"

#include "../table.h"

#include <string.h>

/* ---- one dtype ---- */

/* What is 0 is not measured: a prediction has no backward. */
static void number_cell(const amp_cell *cell, char text[AMP_CELL_TEXT])
{
    double value = *(const double *)cell->value;
    if (value > 0) amp_bench_number(text, value);
}

static void megabytes_cell(const amp_cell *cell, char text[AMP_CELL_TEXT])
{
    double value = *(const double *)cell->value;
    if (value > 0) snprintf(text, AMP_CELL_TEXT, "%.0f", value);
}

void amp_bench_step_text(const amp_bench_spread *step, char text[AMP_CELL_TEXT])
{
    char typical[16], lower[16], upper[16];
    snprintf(text, AMP_CELL_TEXT, "%s (%s-%s)", amp_bench_number(typical, step->typical),
             amp_bench_number(lower, step->lower), amp_bench_number(upper, step->upper));
}

static void step_cell(const amp_cell *cell, char text[AMP_CELL_TEXT])
{
    amp_bench_step_text(cell->value, text);
}

static void ratio_cell(const amp_cell *cell, char text[AMP_CELL_TEXT])
{
    const amp_bench_ratio *r = cell->value;
    if (r->ratio > 0) snprintf(text, AMP_CELL_TEXT, "%.2fx", r->ratio);
}

static void bounded_ratio_cell(const amp_cell *cell, char text[AMP_CELL_TEXT])
{
    const amp_bench_ratio *r = cell->value;
    ratio_cell(cell, text);
    if (r->ratio > 0 && r->least > 0 && strcmp(((const amp_bench_side *)cell->record)->dtype, "fp32"))
        amp_append(text, AMP_CELL_TEXT, " (%.2f-%.2f)", r->least, r->most);
}

#define LAYER(key, member) AMP_FIELD_AS(key, amp_bench_layer, member)
static const amp_field layer_fields[] = {
    LAYER("layer", index), LAYER("type", type), AMP_FLAG_AS("half", amp_bench_layer, in_half),
    AMP_FLAG_AS("misaligned", amp_bench_layer, misaligned), LAYER("forward_ms", forward_ms),
    LAYER("backward_ms", backward_ms), LAYER("share", share),
    LAYER("operations", operations), LAYER("bytes", bytes), { 0 } };

#define SPREAD(key, member) AMP_FIELD_AS(key, amp_bench_spread, member)
static const amp_field spread_fields[] = {
    SPREAD("typical", typical), SPREAD("median", median), SPREAD("min", least),
    SPREAD("lower_quartile", lower), SPREAD("upper_quartile", upper), SPREAD("max", most), { 0 } };

#define SIDE(key, member, ...) AMP_FIELD_AS(key, amp_bench_side, member, __VA_ARGS__)
#define PHASE(key, phase) AMP_RECORD_AS(key, amp_bench_side, spread[phase], spread_fields)
#define TYPICAL(phase, heading) SIDE(NULL, spread[phase].typical, .title = heading, .cell = number_cell)

static const amp_field phase_fields[] = {
    PHASE("forward", AMP_BENCH_FORWARD), PHASE("backward", AMP_BENCH_BACKWARD),
    PHASE("update", AMP_BENCH_UPDATE), PHASE("step", AMP_BENCH_STEP), { 0 } };

static const amp_field side_fields[] = {
    SIDE("dtype", dtype, .title = "dtype", .left = 1),
    AMP_NAME_AS("support", amp_bench_side, support, amp_support_names), SIDE("note", note),
    TYPICAL(AMP_BENCH_FORWARD, "forward"), TYPICAL(AMP_BENCH_BACKWARD, "backward"),
    TYPICAL(AMP_BENCH_UPDATE, "update"),
    SIDE(NULL, spread[AMP_BENCH_STEP], .title = "step", .cell = step_cell), AMP_GROUP_AS("ms", phase_fields),
    SIDE("steps", steps, .title = "steps"), SIDE("skipped", skipped), SIDE("first_loss", first_loss),
    SIDE("images_per_second", images_per_second, .title = "images/s", .cell = number_cell),
    SIDE("peak_memory_mb", peak_memory_mb, .title = "peak MB", .cell = megabytes_cell),
    SIDE("training_memory_mb", training_mb, .known = AMP_ABOVE_0, .title = "training",
         .cell = megabytes_cell),
    SIDE("speedup_over_stock", over_stock.ratio, .known = AMP_ABOVE_0, .title = "to stock",
         .cell = ratio_cell),
    SIDE("speedup_over_fp32", over_fp32.ratio, .known = AMP_ABOVE_0, .title = "to fp32",
         .cell = bounded_ratio_cell), { 0 } };

/* ---- what a step is made of ---- */

/* A row of its table: a layer, or all others, the update, the step; what that costs each side. */
typedef struct part { char layer[8]; const char *name; char cost[AMP_BENCH_SIDES][32]; } part;

/* mark: of what runs in half precision. */
static void set_cost(part *row, const amp_bench *b, const amp_bench_side *s, double ms, int is_half)
{
    char number[16];
    snprintf(row->cost[s - b->sides], sizeof *row->cost, "%s (%.1f %%)%s", amp_bench_number(number, ms),
             100 * ms / s->spread[AMP_BENCH_STEP].typical, is_half ? "*" : " ");
}

static void set_costs(part *rows, const amp_bench *b, const amp_bench_side *s, const int *top, int count)
{
    double others = amp_bench_layers_ms(s);
    for (int k = 0; k < count; k++) {
        const amp_bench_layer *l = &s->layers[top[k]];
        double ms = amp_bench_layer_ms(l);
        others -= ms;
        rows[k].name = l->type;
        snprintf(rows[k].layer, sizeof rows->layer, "%d", l->index);
        set_cost(&rows[k], b, s, ms, l->in_half);
    }
    set_cost(&rows[count], b, s, count < s->layer_count && others > 0 ? others : 0, 0);
    set_cost(&rows[count + 1], b, s, s->spread[AMP_BENCH_UPDATE].typical, 0);
    set_cost(&rows[count + 2], b, s, s->spread[AMP_BENCH_STEP].typical, 0);
}

static void print_layers(const amp_bench *b, FILE *out)
{
    int top[AMP_BENCH_TOP], count = amp_bench_top_layers(b, top), columns = 2;
    amp_field fields[AMP_BENCH_SIDES + 3] = { AMP_FIELD(part, layer, .title = "layer"),
                                              AMP_FIELD(part, name, .title = "", .left = 1) };
    part rows[AMP_BENCH_TOP + 3] = { 0 };
    static const char *const rest[] = { "other layers", "update", "step" };
    if (!count) return;
    for (int k = 0; k < 3; k++) rows[count + k].name = rest[k];
    for (int i = 0; i < b->count; i++) {
        const amp_bench_side *s = &b->sides[i];
        if (!s->layer_count) continue;
        set_costs(rows, b, s, top, count);
        fields[columns++] = (amp_field){ .at = offsetof(part, cost) + (size_t)i * sizeof *rows->cost,
                                         .kind = AMP_CHARS, .title = s->dtype };
    }
    fprintf(out, "\nwhat a step is made of: the most expensive layers, forward and backward of all its "
            "passes,\nms and share; * in half precision\n");
    amp_table_print(out, 0, fields, rows, sizeof *rows, count + 3, NULL);
}

/* ---- the whole ---- */

static void print_head(const amp_bench *b, FILE *out)
{
    fprintf(out, "%s: ", b->cfg);
    /* else a flat input */
    if (b->width > 0) fprintf(out, "%d x %d x %d, ", b->width, b->height, b->channels);
    fprintf(out, "%d image%s a pass; a step is ", b->batch, b->batch == 1 ? "" : "s");
    if (b->detect) fprintf(out, "a prediction, as `detector test` makes it of images that are loaded\n");
    else fprintf(out, "%d pass%s and an update\n", b->subdivisions, b->subdivisions == 1 ? "" : "es");
    fprintf(out, "%s; %d thread%s, %d processor%s\n", b->machine.backend, b->threads,
            b->threads == 1 ? "" : "s", b->processors, b->processors == 1 ? "" : "s");
    fprintf(out, "ms; forward and backward are of one pass, on synthetic images; in brackets the middle\n"
            "half of the steps, and the bounds of the ratio; MB at the peak: of this benchmark, which holds\n"
            "one pass' images");
    if (!b->detect) fprintf(out, ", and of a training, which holds two batches (besides those it decodes)");
    fprintf(out, "\n\n");
}

void amp_bench_print(const amp_bench *b, FILE *out)
{
    print_head(b, out);
    amp_table_print(out, 0, side_fields, b->sides, sizeof *b->sides, b->count, NULL);
    for (size_t i = 0; i < b->left_out.count; i++) fprintf(out, "%s\n", b->left_out.line[i]);
    print_layers(b, out);
    if (b->detect) return;
    putc('\n', out);
    if (!b->verdict_count) fprintf(out, "No verdict: that needs fp32 and one of bf16 and fp16.\n");
    for (int i = 0; i < b->verdict_count; i++) fprintf(out, "Verdict: %s\n", b->verdicts[i].text);
}

static void write_verdict(amp_json *j, const amp_bench_verdict *v)
{
    static const char *const worth[] = { "worth it", "cannot tell", "not worth it" };
#define VERDICT(key, member, ...) AMP_FIELD_AS(key, amp_bench_verdict, member, __VA_ARGS__)
    static const amp_field fields[] = {
        VERDICT("dtype", dtype), AMP_NAME_AS("verdict", amp_bench_verdict, worth, worth),
        VERDICT("speedup", speedup.ratio), VERDICT("speedup_least", speedup.least),
        VERDICT("speedup_most", speedup.most), VERDICT("paired_rounds", speedup.rounds),
        VERDICT("memory_ratio", memory_ratio, .known = AMP_ABOVE_0),
        AMP_FLAG_AS("saves_memory", amp_bench_verdict, saves_memory), VERDICT("text", text), { 0 } };
    amp_json_object(j, NULL);
    amp_json_fields(j, v, fields);
    amp_json_array(j, "reasons");
    for (int i = 0; i < v->reasons; i++) amp_json_text(j, NULL, v->reason[i]);
    amp_json_close(j);
    amp_json_close(j);
}

void amp_bench_write_json(const amp_bench *b, FILE *stream)
{
#define BENCH(member) AMP_FIELD(amp_bench, member)
    static const amp_field fields[] = {
        BENCH(cfg), AMP_FLAG_AS("gpu", amp_bench, on_gpu), AMP_FLAG_AS("detect", amp_bench, detect),
        AMP_FIELD_AS("machine", amp_bench, machine.backend), BENCH(threads), BENCH(processors), BENCH(seed),
        BENCH(batch), BENCH(subdivisions), BENCH(width), BENCH(height), BENCH(channels), { 0 } };
    amp_json j = amp_json_begin(stream);
    amp_json_object(&j, NULL);
    amp_json_fields(&j, b, fields);
    amp_json_lines(&j, "left_out", &b->left_out);
    amp_json_array(&j, "dtypes");
    for (const amp_bench_side *s = b->sides; s < b->sides + b->count; s++) {
        amp_json_object(&j, NULL);
        amp_json_fields(&j, s, side_fields);
        amp_json_records(&j, "layers", s->layers, sizeof *s->layers, s->layer_count, layer_fields);
        amp_json_close(&j);
    }
    amp_json_close(&j);
    amp_json_array(&j, "verdicts");
    for (int i = 0; i < b->verdict_count; i++) write_verdict(&j, &b->verdicts[i]);
    amp_json_close(&j);
    amp_json_close(&j);
}
