/* Prints a benchmark on the terminal, and writes it as JSON. */
#include "bench.h"

#include "../../host/program/machine.h"

#include <string.h>

/* ---- one dtype ---- */

void amp_bench_number_cell(const amp_cell *cell, char text[AMP_CELL_TEXT])
{
    amp_bench_number(text, *(const double *)cell->value);
}

void amp_bench_step_cell(const amp_cell *cell, char text[AMP_CELL_TEXT])
{
    const amp_bench_spread *step = cell->value;
    char typical[16], lower[16], upper[16];
    snprintf(text, AMP_CELL_TEXT, "%s (%s-%s)", amp_bench_number(typical, step->typical),
             amp_bench_number(lower, step->lower), amp_bench_number(upper, step->upper));
}

static void bounded_ratio_cell(const amp_cell *cell, char text[AMP_CELL_TEXT])
{
    const amp_bench_ratio *r = cell->value;
    amp_plain_cell(cell, text);
    if (r->least > 0 && strcmp(((const amp_bench_side *)cell->record)->dtype, "fp32"))
        amp_append(text, AMP_CELL_TEXT, " (%.2f-%.2f)", r->least, r->most);
}

#define LAYER(key, member) AMP_FIELD_AS(key, amp_bench_layer, member)
static const amp_field layer_fields[] = {
    LAYER("layer", index), LAYER("type", type), AMP_FLAG_AS("half", amp_bench_layer, in_half),
    AMP_FLAG_AS("misaligned", amp_bench_layer, misaligned), LAYER("forward_ms", forward_ms),
    LAYER("backward_ms", backward_ms), LAYER("share", share),
    LAYER("operations", operations), LAYER("bytes", bytes), { 0 } };

#define OPERATION(key, member, ...) AMP_FIELD_AS(key, amp_bench_operation, member, __VA_ARGS__)
static const amp_field operation_fields[] = {
    OPERATION("layer", layer, .title = "layer", .left = 1),
    OPERATION("operation", name, .title = "operation", .left = 1),
    OPERATION("calls", calls, .title = "calls", .format = "%g"),
    OPERATION("ms", ms, .title = "ms", .cell = amp_bench_number_cell),
    OPERATION("bytes", bytes, .title = "MB", .format = "%.1f", .unit = 1e6),
    OPERATION("percent_of_bandwidth", of_bandwidth, .known = AMP_ABOVE_0, .title = "% of bandwidth",
              .format = "%.0f"),
    OPERATION("operations", products, .title = "GFLOP", .format = "%.2f", .unit = 1e9),
    OPERATION("percent_of_arithmetic", of_arithmetic, .known = AMP_ABOVE_0, .title = "% of arithmetic",
              .format = "%.0f"),
    AMP_FLAG_AS("half", amp_bench_operation, in_half), { 0 } };

#define SPREAD(key, member) AMP_FIELD_AS(key, amp_bench_spread, member)
static const amp_field spread_fields[] = {
    SPREAD("typical", typical), SPREAD("median", median), SPREAD("min", least),
    SPREAD("lower_quartile", lower), SPREAD("upper_quartile", upper), SPREAD("max", most), { 0 } };

#define SIDE(key, member, ...) AMP_FIELD_AS(key, amp_bench_side, member, __VA_ARGS__)
#define PHASE(key, phase) AMP_RECORD_AS(key, amp_bench_side, spread[phase], spread_fields)
#define NUMBER(member, ...) SIDE(NULL, member, .cell = amp_bench_number_cell, __VA_ARGS__)
#define TYPICAL(phase, heading) NUMBER(spread[phase].typical, .title = heading)
#define STEP_SPREAD(heading) \
    SIDE(NULL, spread[AMP_BENCH_STEP], .title = heading, .cell = amp_bench_step_cell)

#define RATIOS \
    SIDE("speedup_over_stock", over_stock.ratio, .known = AMP_ABOVE_0, .title = "to stock", \
         .format = "%.2fx"), \
    SIDE("speedup_over_fp32", over_fp32.ratio, .known = AMP_ABOVE_0, .title = "to fp32", \
         .format = "%.2fx", .cell = bounded_ratio_cell)

static const amp_field phase_fields[] = {
    PHASE("forward", AMP_BENCH_FORWARD), PHASE("backward", AMP_BENCH_BACKWARD),
    PHASE("update", AMP_BENCH_UPDATE), PHASE("step", AMP_BENCH_STEP), { 0 } };

static const amp_field loading_fields[] = {
    SIDE("images_per_second", trained, .known = AMP_ABOVE_0),
    SIDE("load_images_per_second", load_rate, .known = AMP_ABOVE_0),
    SIDE("step_images_per_second", step_rate, .known = AMP_ABOVE_0),
    SIDE("waiting", waiting, .known = AMP_FROM_0), { 0 } };

static const amp_field side_fields[] = {
    SIDE("dtype", dtype), AMP_NAME_AS("support", amp_bench_side, support, amp_support_names),
    SIDE("note", note),
    SIDE("machine", machine), AMP_FLAG_AS("left_out", amp_bench_side, left_out), { 0 } };

/* The columns of a dtype whose training steps were measured. */
static const amp_field measured_fields[] = {
    SIDE(NULL, dtype, .title = "dtype", .left = 1), TYPICAL(AMP_BENCH_FORWARD, "forward"),
    TYPICAL(AMP_BENCH_BACKWARD, "backward"), TYPICAL(AMP_BENCH_UPDATE, "update"),
    STEP_SPREAD("step"), AMP_GROUP_AS("ms", phase_fields),
    SIDE("steps", steps, .title = "steps"), SIDE("skipped", skipped), SIDE("first_loss", first_loss),
    SIDE("images_per_second", images_per_second, .title = "images/s", .cell = amp_bench_number_cell),
    NUMBER(trained, .known = AMP_ABOVE_0, .title = "loading"),
    AMP_GROUP_AS("loading", loading_fields),
    SIDE("peak_memory_mb", peak_memory_mb, .title = "peak MB", .format = "%.0f"),
    SIDE("training_memory_mb", training_mb, .title = "training", .format = "%.0f"),
    RATIOS, { 0 } };

/* The columns of a dtype whose predictions were measured. */
static const amp_field predicted_fields[] = {
    SIDE(NULL, dtype, .title = "dtype", .left = 1),
    STEP_SPREAD("ms"), PHASE("ms", AMP_BENCH_STEP),
    SIDE("passes", steps, .title = "passes"),
    SIDE("images_per_second", images_per_second, .title = "images/s", .cell = amp_bench_number_cell),
    SIDE("peak_memory_mb", peak_memory_mb, .title = "peak MB", .format = "%.0f"),
    RATIOS, { 0 } };

static void print_sides(const amp_bench *b, const amp_field *fields, FILE *out)
{
    amp_bench_side measured[AMP_BENCH_SIDES];
    int count = 0;
    for (int i = 0; i < b->count; i++) if (!b->sides[i].left_out) measured[count++] = b->sides[i];
    amp_table_print(out, 0, fields, measured, sizeof *measured, count, NULL);
    for (int i = 0; i < b->count; i++)
        if (b->sides[i].left_out) fprintf(out, "%s is left out: %s\n", b->sides[i].dtype, b->sides[i].note);
}

/* layers: 1 if the layers were timed. */
static void write_sides(amp_json *j, const amp_bench *b, const amp_field *fields, int layers)
{
    amp_json_array(j, "dtypes");
    for (const amp_bench_side *s = b->sides; s < b->sides + b->count; s++) {
        amp_json_object(j, NULL);
        amp_json_fields(j, s, side_fields);
        if (!s->left_out) amp_json_fields(j, s, fields);
        if (!s->left_out && layers)
            amp_json_records(j, "layers", s->layers, sizeof *s->layers, s->layer_count, layer_fields);
        if (!s->left_out && s->operation_count)
            amp_json_records(j, "operations", s->operations, sizeof *s->operations, s->operation_count,
                             operation_fields);
        amp_json_close(j);
    }
    amp_json_close(j);
}

/* ---- layers ---- */

/* The last rows of the table of layers, below the most expensive layers. */
enum { OTHER_LAYERS, UPDATE, STEP, REST };

static double rest_ms(const amp_bench *b, const amp_bench_side *s, int row)
{
    if (row != OTHER_LAYERS) return s->spread[row == UPDATE ? AMP_BENCH_UPDATE : AMP_BENCH_STEP].typical;
    double ms = amp_bench_layers_ms(s);
    for (int k = 0; k < b->top_count; k++) ms -= amp_bench_layer_ms(&s->layers[b->top[k]]);
    return ms > 0 ? ms : 0;
}

static void print_layers(const amp_bench *b, FILE *out)
{
    static const char *const rest[REST] = { "other layers", "update", "step" };
    const amp_bench_side *timed[AMP_BENCH_SIDES];
    int sides = 0, any_half = 0;
    for (int i = 0; i < b->count; i++) if (b->sides[i].layer_count) timed[sides++] = &b->sides[i];
    if (!sides) return;
    fprintf(out, "\nthe most expensive layers of a step: ms of forward and backward in all its passes, and "
            "their share\n%5s %-15s", "layer", "");
    for (int i = 0; i < sides; i++) fprintf(out, " %20s ", timed[i]->dtype);
    putc('\n', out);
    for (int row = -b->top_count; row < REST; row++) {
        int layer = row < 0 ? b->top[b->top_count + row] : -1;
        if (row < 0) fprintf(out, "%5d %-15s", layer, timed[0]->layers[layer].type);
        else fprintf(out, "%5s %-15s", "", rest[row]);
        for (int i = 0; i < sides; i++) {
            char text[48], number[16];
            int half = row < 0 && timed[i]->layers[layer].in_half;
            double ms = row < 0 ? amp_bench_layer_ms(&timed[i]->layers[layer]) : rest_ms(b, timed[i], row);
            snprintf(text, sizeof text, "%s (%.1f %%)", amp_bench_number(number, ms),
                     100 * ms / timed[i]->spread[AMP_BENCH_STEP].typical);
            fprintf(out, " %20s%s", text, half ? "*" : " ");
            any_half |= half;
        }
        putc('\n', out);
    }
    if (any_half) fprintf(out, "* in half precision\n");
}

/* Prints the time of a GPU's operations by kind of layer. Leaves out operations that take less than 1/200 of
 * the total time. */
static void print_operations(const amp_bench *b, FILE *out)
{
    for (const amp_bench_side *s = b->sides; s < b->sides + b->count; s++) {
        double all = 0;
        int shown = 0;
        for (int i = 0; i < s->operation_count; i++) all += s->operations[i].ms;
        while (shown < s->operation_count && s->operations[shown].ms >= all / 200) shown++;
        if (!shown) continue;
        char text[16];
        fprintf(out, "\nwhere %s's time goes on the GPU: operations of a pass and an update (%s ms in all), "
                "the data\nand products that they need, and what share of the GPU's limits they reach\n",
                s->dtype, amp_bench_number(text, all));
        amp_table_print(out, 0, operation_fields, s->operations, sizeof *s->operations, shown, NULL);
    }
}

/* ---- the whole ---- */

static void print_cfg(const amp_bench *b, FILE *out)
{
    fprintf(out, "%s: ", b->cfg);
    /* width 0: the input is not an image */
    if (b->width > 0) fprintf(out, "%d x %d x %d, ", b->width, b->height, b->channels);
}

static void print_machine(const amp_bench *b, FILE *out)
{
    const char *machine = "";
    for (int i = 0; i < b->count; i++) if (b->sides[i].machine[0]) machine = b->sides[i].machine;
    fprintf(out, "%s%sthreads: %d, processors: %d\n", machine, machine[0] ? "; " : "", b->threads,
            b->processors);
}

static void print_head(const amp_bench *b, FILE *out)
{
    print_cfg(b, out);
    fprintf(out, "images a pass: %d, passes a step: %d, then an update\n", b->batch, b->subdivisions);
    print_machine(b, out);
    fprintf(out, "times in ms; forward, backward: one pass on synthetic images; in brackets: the middle\n"
            "half of the steps, and the bounds of the ratio; peak MB: memory of this benchmark, which\n"
            "holds the images of one pass; training: peak MB of a training, which holds two batches\n"
            "(plus the images that it decodes)\n");
    if (b->cores) fprintf(out, "loading: images/s of steps that load their images at the same time\n");
    putc('\n', out);
}

/* docs/commands.md explains the words. */
static const char *const worth_names[] = { "worth it", "cannot tell", "not worth it" };
static const char *const saved_names[] = { "not saved", "saved" };

#define VERDICT(key, member, ...) AMP_FIELD_AS(key, amp_bench_verdict, member, __VA_ARGS__)
static const amp_field verdict_fields[] = {
    VERDICT("dtype", dtype, .title = "dtype", .left = 1),
    AMP_NAME_AS("verdict", amp_bench_verdict, worth, worth_names, .title = "verdict", .left = 1),
    VERDICT("speedup", speedup.ratio), VERDICT("speedup_least", speedup.least),
    VERDICT("speedup_most", speedup.most), VERDICT("paired_rounds", speedup.rounds),
    VERDICT("memory_ratio", memory_ratio, .known = AMP_ABOVE_0),
    AMP_FLAG_AS("saves_memory", amp_bench_verdict, saves_memory), VERDICT("advice", advice),
    AMP_NAME_AS(NULL, amp_bench_verdict, saves_memory, saved_names, .title = "memory", .left = 1),
    VERDICT(NULL, why, .title = "why", .left = 1), { 0 } };

static void print_verdicts(const amp_bench *b, FILE *out)
{
    if (!b->verdict_count) {
        fprintf(out, "No verdict: it needs fp32 and one of bf16 and fp16.\n");
        return;
    }
    amp_table_print(out, 0, verdict_fields, b->verdicts, sizeof *b->verdicts, b->verdict_count, NULL);
    for (int i = 0; i < b->verdict_count; i++)
        if (b->verdicts[i].advice[0]) fprintf(out, "%s: %s\n", b->verdicts[i].dtype, b->verdicts[i].advice);
}

static void print_training(const amp_bench *b, FILE *out)
{
    print_head(b, out);
    print_sides(b, measured_fields, out);
    print_layers(b, out);
    print_operations(b, out);
    putc('\n', out);
    print_verdicts(b, out);
    const amp_bench_side *stock = amp_bench_side_of(b, "stock"), *fp32 = amp_bench_side_of(b, "fp32");
    if (stock && fp32)
        fprintf(out, "The engine's own fp32 is %.2fx the speed of stock Darknet here.\n",
                fp32->over_stock.ratio);
}

static void write_verdict(amp_json *j, const amp_bench_verdict *v)
{
    amp_json_object(j, NULL);
    amp_json_fields(j, v, verdict_fields);
    amp_json_array(j, "reasons");
    for (int i = 0; i < AMP_BENCH_REASONS; i++)
        if (v->reason[i]) amp_json_text(j, NULL, amp_bench_reason_names[i]);
    amp_json_close(j);
    amp_json_close(j);
}

#define BENCH(member) AMP_FIELD(amp_bench, member)

static void write_training(amp_json *j, const amp_bench *b)
{
    static const amp_field fields[] = { BENCH(batch), BENCH(subdivisions), { 0 } };
    amp_json_fields(j, b, fields);
    write_sides(j, b, measured_fields, 1);
    amp_json_array(j, "most_expensive_layers");
    for (int k = 0; k < b->top_count; k++) amp_json_integer(j, NULL, b->top[k]);
    amp_json_close(j);
    amp_json_array(j, "verdicts");
    for (int i = 0; i < b->verdict_count; i++) write_verdict(j, &b->verdicts[i]);
    amp_json_close(j);
}

/* ---- predictions ---- */

static void print_predictions(const amp_bench *b, int count, FILE *out)
{
    print_cfg(b, out);
    fprintf(out, "predictions, as `detector test` makes them once its image is loaded\n");
    print_machine(b, out);
    fprintf(out, "ms of a pass on synthetic images; brackets hold the middle half of the passes and the\n"
            "bounds of the ratio; MB at the peak of this benchmark\n");
    for (int i = 0; i < count; i++) {
        fprintf(out, "\nimages a pass: %d\n", b[i].batch);
        print_sides(&b[i], predicted_fields, out);
    }
}

static void write_predictions(amp_json *j, const amp_bench *b, int count)
{
    amp_json_array(j, "batches");
    for (int i = 0; i < count; i++) {
        amp_json_object(j, NULL);
        amp_json_integer(j, "batch", b[i].batch);
        write_sides(j, &b[i], predicted_fields, 0);
        amp_json_close(j);
    }
    amp_json_close(j);
}

/* ---- both ---- */

void amp_bench_print(const amp_bench *b, int count, FILE *out)
{
    if (b->detect) print_predictions(b, count, out);
    else print_training(b, out);
}

void amp_bench_write_json(const amp_bench *b, int count, FILE *stream)
{
    static const amp_field fields[] = {
        BENCH(cfg), AMP_FLAG_AS("gpu", amp_bench, on_gpu), BENCH(threads), BENCH(processors), BENCH(seed),
        BENCH(width), BENCH(height), BENCH(channels), { 0 } };
    amp_json j = amp_json_begin(stream);
    amp_json_object(&j, NULL);
    amp_json_fields(&j, b, fields);
    if (b->detect) write_predictions(&j, b, count);
    else write_training(&j, b);
    amp_json_close(&j);
}
