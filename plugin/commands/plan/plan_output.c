/* Prints the plan as a table, in lines of at most 110 columns, and writes it as JSON. */
#include "plan_report.h"

#include "../table.h"

static double gib(size_t bytes) { return (double)bytes / (1 << 30); }

static const char *const dtype_names[] = { [AMP_FP32] = "fp32", [AMP_FP16] = "fp16", [AMP_BF16] = "bf16" };
static const char *const layout_names[] = { [AMP_FORM_HALF] = "NHWC", [AMP_FORM_WIDE] = "NHWC",
                                            [AMP_FORM_PLAIN] = "NCHW" };

/* ---- layers ---- */

static void shape_cell(const amp_cell *cell, char text[AMP_CELL_TEXT])
{
    const amp_shape *s = cell->value;
    snprintf(text, AMP_CELL_TEXT, "%d x %d x %d", s->w, s->h, s->c);
}

static void channels_cell(const amp_cell *cell, char text[AMP_CELL_TEXT])
{
    const amp_plan_row *row = cell->record;
    if (row->is_convolution)
        snprintf(text, AMP_CELL_TEXT, "%d%s -> %d%s", row->in, row->in_aligned ? "" : "!", row->out,
                 row->out_aligned ? "" : "!");
}

/* Prints why the layer runs in its dtype, and its casts. The cast of an input is listed at the first layer
 * that reads the input in that form. The cast of the output is listed if the host reads the output. */
static void notes_cell(const amp_cell *cell, char text[AMP_CELL_TEXT])
{
    const amp_plan_report *r = cell->context;
    const amp_plan_row *row = cell->record;
    snprintf(text, AMP_CELL_TEXT, "%s", row->why);
    if (row->padded_in != row->in || row->padded_out != row->out)
        amp_append(text, AMP_CELL_TEXT, "; padded to %d -> %d", row->padded_in, row->padded_out);
    for (int k = 0; k < r->cast_count; k++) {
        const amp_plan_cast *c = &r->casts[k];
        if (row->index != (c->reader < 0 ? c->producer : c->reader)) continue;
        if (c->reader < 0) amp_append(text, AMP_CELL_TEXT, "; its output");
        else if (c->producer < 0) amp_append(text, AMP_CELL_TEXT, "; image");
        else amp_append(text, AMP_CELL_TEXT, "; layer %d", c->producer);
        amp_append(text, AMP_CELL_TEXT, " cast to %s%s", amp_plan_form_name(r, c->to),
                   c->backward ? " and back" : "");
    }
}

static const amp_field shape_fields[] = {
    AMP_FIELD(amp_shape, n), AMP_FIELD(amp_shape, c), AMP_FIELD(amp_shape, h), AMP_FIELD(amp_shape, w),
    { 0 } };

#define ROW(member, ...) AMP_FIELD(amp_plan_row, member, __VA_ARGS__)
#define ROW_AS(key, member, ...) AMP_FIELD_AS(key, amp_plan_row, member, __VA_ARGS__)

static const amp_field bytes_fields[] = {
    ROW_AS("stock", stock_bytes), ROW_AS("amp", amp_bytes), ROW_AS("amp_output", arena.output),
    ROW_AS("amp_copies", arena.copies), ROW_AS("amp_deltas", arena.deltas), ROW_AS("amp_kept", arena.kept),
    ROW_AS("amp_host_buffers", buffer_bytes), { 0 } };

static const amp_field layer_fields[] = {
    ROW(index, .title = "layer"), ROW(type, .title = "type", .left = 1),
    AMP_RECORD_AS("output", amp_plan_row, output, shape_fields, .title = "w x h x c", .cell = shape_cell),
    ROW_AS("class", class_name),
    AMP_NAME_AS("dtype", amp_plan_row, dtype, dtype_names, .title = "runs in", .left = 1),
    AMP_NAME_AS("computes", amp_plan_row, computes, dtype_names), ROW_AS("form", form), ROW(why),
    AMP_FLAG_AS("keep_fp32", amp_plan_row, keep_fp32), ROW_AS("parameters", weights),
    ROW_AS("forward_operations", operations), ROW(training_operations),
    { .title = "channels", .left = 1, .cell = channels_cell },
    AMP_GROUP_AS("activation_bytes", bytes_fields),
    ROW_AS(NULL, stock_bytes, .title = "stock", .format = "%.2f", .unit = 1 << 20),
    ROW_AS(NULL, amp_bytes, .title = "AMP", .format = "%.2f", .unit = 1 << 20),
    { .title = "why, and what is cast", .left = 1, .cell = notes_cell }, { 0 } };

/* Additional JSON fields of layers with matrix products. */
static const amp_field channel_fields[] = {
    ROW(in), ROW(out), AMP_FLAG_AS("in_aligned", amp_plan_row, in_aligned),
    AMP_FLAG_AS("out_aligned", amp_plan_row, out_aligned), ROW(padded_in), ROW(padded_out), { 0 } };
static const amp_field product_fields[] = {
    AMP_GROUP_AS("channels", channel_fields), ROW(kernel), ROW(winograd),
    ROW_AS("weight_copy_bytes", half_bytes), { 0 } };

static void print_rows(const amp_plan_report *r, FILE *stream)
{
    amp_table_print(stream, 0, layer_fields, r->rows, sizeof *r->rows, r->count, r);
    amp_print_wrapped(stream, 0, "w x h x c: the output's size. channels: of a group, in -> out; ! marks a "
                                 "number that is not a multiple of 8. padded: in the backend's copies of "
                                 "the weights.");
    amp_print_wrapped(stream, 0, "stock, AMP: MiB of outputs, deltas and what backward reads again, in "
                      "stock's fp32 and under AMP.");
    amp_print_wrapped(stream, 0, "cast: the output of the named layer is cast for this layer, which is the "
                      "first to read it in this form; \"and back\": its delta is cast too.");
}

static void write_layer(amp_json *json, const amp_plan_row *row, const amp_layer_desc *d)
{
    amp_json_object(json, NULL);
    amp_json_array(json, "inputs");
    for (int k = 0; k < d->input_count; k++) amp_json_integer(json, NULL, d->inputs[k]);
    amp_json_close(json);
    amp_json_fields(json, row, layer_fields);
    if (row->is_convolution) amp_json_fields(json, row, product_fields);
    amp_json_close(json);
}

static void write_cast(amp_json *json, const amp_plan_report *r, const amp_plan_cast *c)
{
    static const amp_field fields[] = {
        AMP_FIELD(amp_plan_cast, producer), AMP_FIELD(amp_plan_cast, reader, .known = AMP_FROM_0),
        AMP_NAME_AS("from_layout", amp_plan_cast, from, layout_names),
        AMP_NAME_AS("to_layout", amp_plan_cast, to, layout_names),
        AMP_FLAG_AS("backward", amp_plan_cast, backward), AMP_FIELD(amp_plan_cast, elements), { 0 } };
    amp_json_object(json, NULL);
    amp_json_fields(json, c, fields);
    amp_json_text(json, "from", amp_dtype_name(c->from == AMP_FORM_HALF ? r->dtype : AMP_FP32));
    amp_json_text(json, "to", amp_dtype_name(c->to == AMP_FORM_HALF ? r->dtype : AMP_FP32));
    amp_json_close(json);
}

/* ---- totals ---- */

#define REPORT(key, member, ...) AMP_FIELD_AS(key, amp_plan_report, member, __VA_ARGS__)
enum { TOTAL = 33 }; /* width of the column with the totals' names */
#define TOTAL_MIB(key, member, name) REPORT(key, member, .title = name, .format = "%.1f MiB", .unit = 1 << 20)

/* Prints a number of operations as a percentage of all operations. */
static void share_cell(const amp_cell *cell, char text[AMP_CELL_TEXT])
{
    double all = ((const amp_plan_report *)cell->record)->operations;
    snprintf(text, AMP_CELL_TEXT, "%.1f %%", all > 0 ? 100 * *(const double *)cell->value / all : 0);
}

static const amp_field activation_fields[] = {
    TOTAL_MIB("stock", stock, "activations and deltas in stock"),
    TOTAL_MIB("engine_fp32", fp32_bytes, "  with the engine in fp32"),
    TOTAL_MIB("amp", amp_bytes, "  under AMP"), TOTAL_MIB("amp_arena", amp.arena, "    arena as planned"),
    TOTAL_MIB("amp_host_buffers", amp.buffers, "    Darknet's own fp32 buffers"),
    TOTAL_MIB("amp_input", amp.input, "    images and labels"), { 0 } };
static const amp_field total_fields[] = {
    REPORT("parameters", parameters, .title = "weights: how many"),
    TOTAL_MIB("master_bytes", masters, "  masters"), TOTAL_MIB("gradient_bytes", masters, "  gradients"),
    TOTAL_MIB("momentum_bytes", masters, "  momentum"), TOTAL_MIB("adam_bytes", adam, "  moments of Adam"),
    TOTAL_MIB("weight_copy_bytes", half_bytes, "  copies to compute with"),
    TOTAL_MIB("workspace_bytes", workspace, "shared workspace"),
    TOTAL_MIB("stock_workspace_bytes", stock_workspace, "  in stock"),
    REPORT("training_operations", operations, .title = "matrix products of a pass", .unit = 1e9,
           .format = "%.2f GFLOP"),
    REPORT("half_operations", half_operations, .title = "  in 16 bits", .cell = share_cell),
    REPORT("stored_half_operations", stored_operations, .title = "  in fp32 on stored 16 bits",
           .cell = share_cell),
    REPORT(NULL, cast_count, .title = "casts of a pass"),
    REPORT(NULL, cast_back, .title = "  and of deltas back"),
    REPORT(NULL, cast_elements, .title = "  numbers cast forward"), { 0 } };

static void write_totals(amp_json *json, const amp_plan_report *r)
{
    amp_json_object(json, "totals");
    amp_json_record(json, "activation_bytes", r, activation_fields);
    amp_json_fields(json, r, total_fields);
    amp_json_integer(json, "loaded_images_bytes", (long long)amp_plan_loaded_bytes(r, r->images));
    amp_json_close(json);
}

/* ---- the machine ---- */

void amp_plan_print_machine(const amp_machine *machine, FILE *stream)
{
    fprintf(stream, "\nDevice\n  ");
    amp_print_wrapped(stream, 2, "%s", machine->description);
    for (int d = 0; d < AMP_MACHINE_DTYPES; d++) {
        int column = fprintf(stream, "  %s     %-8s ", amp_dtype_name((amp_dtype)d),
                             amp_support_names[machine->support[d]]);
        amp_print_wrapped(stream, column, "%s", machine->note[d]);
    }
}

static void write_device(amp_json *json, const amp_plan_report *r)
{
    static const amp_field memory_fields[] = {
        REPORT("free_memory_of", memory.what),
        REPORT("free_memory_bytes", memory.bytes, .known = AMP_ABOVE_0),
        REPORT("all_memory_bytes", memory.all), REPORT("description", machine.description), { 0 } };
    amp_json_object(json, "device");
    amp_json_text(json, "backend", r->backend->name);
    amp_json_fields(json, r, memory_fields);
    amp_json_array(json, "dtypes");
    for (int d = 0; d < AMP_MACHINE_DTYPES; d++) {
        amp_json_object(json, NULL);
        amp_json_text(json, "dtype", amp_dtype_name((amp_dtype)d));
        amp_json_text(json, "support", amp_support_names[r->machine.support[d]]);
        amp_json_text(json, "note", r->machine.note[d][0] ? r->machine.note[d] : NULL);
        amp_json_close(json);
    }
    amp_json_close(json);
    amp_json_close(json);
}

/* ---- memory ---- */

static void gib_cell(const amp_cell *cell, char text[AMP_CELL_TEXT])
{
    size_t bytes = *(const size_t *)cell->value,
        available = ((const amp_plan_report *)cell->context)->memory.bytes;
    snprintf(text, AMP_CELL_TEXT, "%.2f GiB%s", gib(bytes), available && bytes > available ? "*" : " ");
}

#define BATCH(key, member, heading) \
    AMP_FIELD_AS(key, amp_plan_batch, member, .title = heading, .cell = gib_cell)
static const amp_field batch_fields[] = {
    AMP_FIELD_AS("images_per_pass", amp_plan_batch, images, .title = "images/pass"),
    BATCH("amp_arena", arena, "planned arena"), BATCH("amp", amp, "AMP"),
    BATCH("engine_fp32", fp32, "engine in fp32"), BATCH("stock", stock, "stock"), { 0 } };

static const amp_field fit_fields[] = {
    REPORT("amp", fits_amp, .known = AMP_FROM_0), REPORT("stock", fits_stock, .known = AMP_FROM_0),
    REPORT("most_that_darknet_counts", most_images), { 0 } };

static void print_memory(const amp_plan_report *r, FILE *stream)
{
    static const char beyond[] = " (the most that Darknet can count)";
    int loads = amp_plan_loaded_bytes(r, 1) > 0;
    fprintf(stream, "\nMemory of a training: weights, activations, loaded images\n");
    amp_table_print(stream, 2, batch_fields, r->batches, sizeof *r->batches, r->batch_count, r);
    if (r->memory.bytes)
        fprintf(stream, "  free now: %.2f GiB of %.2f GiB of %s (*: does not fit)\n"
                "  images a pass that fit, at most: AMP %d%s, stock %d%s\n", gib(r->memory.bytes),
                gib(r->memory.all), r->memory.what, r->fits_amp, r->fits_amp >= r->most_images ? beyond : "",
                r->fits_stock, r->fits_stock >= r->most_images ? beyond : "");
    fprintf(stream, "  ");
    amp_print_wrapped(stream, 2, "Counted: arenas planned at these batches, the buffers that Darknet "
                      "keeps, images and labels (of the pass%s), weights, gradients, momentum, workspace, "
                      "the program itself%s.", loads ? ", and two loaded batches of `batch=`" : "",
                      loads ? "; not counted: pictures while they are decoded" : "");
    if (r->cache.images)
        fprintf(stream, "  A cache of the %zu training images, at cache_scale=%g: about %.1f MiB more, of "
                "RAM with cache=ram,\n  of disk space with cache=disk.\n", r->cache.images, r->cache.scale,
                (double)r->cache.bytes / 0x1p20);
    if (r->view.largest_w != r->view.w || r->view.largest_h != r->view.h)
        fprintf(stream, "  All for inputs of %d x %d, the largest that random=1 chooses.\n",
                r->view.largest_w, r->view.largest_h);
}

static const char *const in_force_names[] = { "", "as in the .cfg" };

#define CHECKPOINT(key, member, heading, ...) \
    AMP_FIELD_AS(key, amp_plan_checkpoint, member, .title = heading, __VA_ARGS__)
static const amp_field checkpoint_fields[] = {
    CHECKPOINT("checkpoint", name, "checkpoint", .left = 1),
    CHECKPOINT("amp_arena", arena, "planned arena", .format = "%.1f MiB", .unit = 1 << 20),
    CHECKPOINT("percent_of_forward_again", again, "computed again", .format = "%.1f %%"),
    CHECKPOINT("fitting_images_per_pass", fits, "images/pass that fit", .known = AMP_FROM_0,
               .none = "not known"),
    AMP_FLAG_AS("in_force", amp_plan_checkpoint, in_force),
    AMP_NAME_AS(NULL, amp_plan_checkpoint, in_force, in_force_names, .title = "", .left = 1), { 0 } };

static void print_checkpoints(const amp_plan_report *r, FILE *stream)
{
    fprintf(stream, "\nActivation checkpointing, images a pass: %d; share of a forward's arithmetic\n",
            r->images);
    amp_table_print(stream, 2, checkpoint_fields, r->checkpoints, sizeof *r->checkpoints,
                    r->checkpoint_count, r);
}

/* ---- advice ---- */

static void advised_cell(const amp_cell *cell, char text[AMP_CELL_TEXT])
{
    const amp_plan_report *r = cell->context;
    int layer = *(const int *)cell->value;
    snprintf(text, AMP_CELL_TEXT, "%d [%s]", layer, r->rows[layer].type);
}

#define ADVICE(key, member, ...) AMP_FIELD_AS(key, amp_plan_advice, member, __VA_ARGS__)
static const amp_field advice_fields[] = {
    ADVICE("layer", layer, .known = AMP_FROM_0, .title = "layer", .left = 1, .cell = advised_cell),
    ADVICE("kind", kind, .title = "why", .left = 1),
    ADVICE("percent_of_products", percent, .known = AMP_ABOVE_0, .title = "products",
           .format = "%.1f %%"),
    ADVICE("text", text, .title = "what to do", .left = 1), { 0 } };

static void print_advice(const amp_plan_report *r, FILE *stream)
{
    fprintf(stream, "\nAdvice%s\n", r->advice_count ? "" : ": none");
    if (r->advice_count)
        amp_table_print(stream, 2, advice_fields, r->advice, sizeof *r->advice, r->advice_count, r);
}

/* ---- the whole ---- */

void amp_plan_print_table(const amp_plan_report *r, FILE *stream)
{
    amp_print_wrapped(stream, 0, "Plan of %s: %s, training, images a pass: %d (batch=%d subdivisions=%d), "
                      "input %d x %d x %d", r->cfg, amp_dtype_name(r->dtype), r->images, r->batch,
                      r->subdivisions, r->view.w, r->view.h, r->view.c);
    if (r->steps > 1) fprintf(stream, "Each image stands for %d time steps.\n", r->steps);
    if (r->off_in_cfg)
        fprintf(stream, "The .cfg does not turn AMP on; this is the plan of `-amp %s`.\n",
                amp_dtype_name(r->dtype));
    putc('\n', stream);
    print_rows(r, stream);
    fprintf(stream, "\nTotals\n");
    amp_sheet_print(stream, TOTAL, activation_fields, r);
    amp_sheet_print(stream, TOTAL, total_fields, r);
    amp_plan_print_machine(&r->machine, stream);
    print_memory(r, stream);
    print_checkpoints(r, stream);
    amp_plan_print_ranks(r, stream);
    print_advice(r, stream);
}

void amp_plan_write_json(FILE *stream, const void *report)
{
    const amp_plan_report *r = report;
    static const amp_field network_fields[] = {
        REPORT("width", view.w), REPORT("height", view.h), REPORT("channels", view.c),
        REPORT("inputs", view.inputs), REPORT("batch", batch), REPORT("subdivisions", subdivisions),
        REPORT("time_steps", steps), REPORT("images_per_pass", images),
        AMP_FLAG_AS("adam", amp_plan_report, view.adam), AMP_FLAG_AS("adamw", amp_plan_report, adamw),
        { 0 } };
    static const amp_field fields[] = {
        REPORT("cfg", cfg), AMP_NAME_AS("dtype", amp_plan_report, dtype, dtype_names),
        AMP_GROUP_AS("network", network_fields), AMP_GROUP_AS("fitting_images_per_pass", fit_fields), { 0 } };
    static const amp_field cache_fields[] = {
        REPORT("images", cache.images), REPORT("bytes", cache.bytes), REPORT("scale", cache.scale), { 0 } };
    static const amp_field cache[] = { AMP_GROUP_AS("cache", cache_fields), { 0 } };
    amp_json json = amp_json_begin(stream);
    amp_json_object(&json, NULL);
    amp_json_fields(&json, r, fields);
    amp_json_boolean(&json, "cfg_asks_for_amp", !r->off_in_cfg);
    write_device(&json, r);
    amp_json_array(&json, "layers");
    for (int i = 0; i < r->count; i++) write_layer(&json, &r->rows[i], &r->plan->nodes[i].desc);
    amp_json_close(&json);
    amp_json_array(&json, "casts");
    for (int k = 0; k < r->cast_count; k++) write_cast(&json, r, &r->casts[k]);
    amp_json_close(&json);
    write_totals(&json, r);
    amp_json_records(&json, "memory", r->batches, sizeof *r->batches, r->batch_count, batch_fields);
    amp_json_records(&json, "checkpoints", r->checkpoints, sizeof *r->checkpoints, r->checkpoint_count,
                     checkpoint_fields);
    amp_plan_write_ranks(r, &json);
    if (r->cache.images) amp_json_fields(&json, r, cache);
    amp_json_records(&json, "advice", r->advice, sizeof *r->advice, r->advice_count, advice_fields);
    amp_json_close(&json);
}
