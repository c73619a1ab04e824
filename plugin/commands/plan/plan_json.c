/* The plan as JSON: every fact of the table, in bytes, elements and operations. */
#include "plan_report.h"
#include "../probe/probe.h"

#include "../json.h"

static const char *form_dtype(const amp_plan_report *r, amp_form form)
{
    return amp_dtype_name(form == AMP_FORM_LOW ? r->dtype : AMP_FP32);
}

static void write_network(amp_json *json, const amp_plan_report *r)
{
    amp_json_object(json, "network");
    amp_json_integer(json, "width", r->view.w);
    amp_json_integer(json, "height", r->view.h);
    amp_json_integer(json, "channels", r->view.c);
    amp_json_integer(json, "inputs", r->view.inputs);
    amp_json_integer(json, "batch", r->batch);
    amp_json_integer(json, "subdivisions", r->subdivisions);
    amp_json_integer(json, "time_steps", r->steps);
    amp_json_integer(json, "images_per_pass", r->images);
    amp_json_boolean(json, "adam", r->view.adam);
    amp_json_close(json);
}

static void write_device(amp_json *json, const amp_plan_report *r)
{
    amp_json_object(json, "device");
    amp_json_text(json, "backend", r->backend->name);
    amp_json_text(json, "description", r->machine.description);
    amp_json_array(json, "dtypes");
    for (int d = 0; d < 3; d++) {
        amp_json_object(json, NULL);
        amp_json_text(json, "dtype", amp_dtype_name((amp_dtype)d));
        amp_json_text(json, "support", amp_plan_support_name(r->machine.support[d]));
        amp_json_text(json, "note", r->machine.note[d][0] ? r->machine.note[d] : NULL);
        amp_json_close(json);
    }
    amp_json_close(json);
    amp_json_text(json, "free_memory_of", r->memory.what);
    if (r->memory.bytes) amp_json_integer(json, "free_memory_bytes", (long long)r->memory.bytes);
    else amp_json_text(json, "free_memory_bytes", NULL);
    amp_json_integer(json, "all_memory_bytes", (long long)r->memory.all);
    amp_json_close(json);
}

static void write_shape(amp_json *json, const char *key, amp_shape s)
{
    amp_json_object(json, key);
    amp_json_integer(json, "n", s.n);
    amp_json_integer(json, "c", s.c);
    amp_json_integer(json, "h", s.h);
    amp_json_integer(json, "w", s.w);
    amp_json_close(json);
}

static void write_products(amp_json *json, const amp_plan_row *row)
{
    amp_json_object(json, "channels");
    amp_json_integer(json, "in", row->in);
    amp_json_integer(json, "out", row->out);
    amp_json_boolean(json, "in_aligned", row->in % 8 == 0);
    amp_json_boolean(json, "out_aligned", row->out % 8 == 0);
    amp_json_integer(json, "padded_in", row->padded_in);
    amp_json_integer(json, "padded_out", row->padded_out);
    amp_json_close(json);
    amp_json_text(json, "kernel", row->kernel[0] ? row->kernel : NULL);
    amp_json_integer(json, "weight_copy_bytes", (long long)row->half_bytes);
}

static void write_bytes(amp_json *json, const amp_plan_row *row)
{
    size_t arena = row->arena.output + row->arena.copies + row->arena.deltas + row->arena.kept;
    amp_json_object(json, "activation_bytes");
    amp_json_integer(json, "stock", (long long)row->stock_bytes);
    amp_json_integer(json, "amp", (long long)row->amp_bytes);
    amp_json_integer(json, "amp_output", (long long)row->arena.output);
    amp_json_integer(json, "amp_copies", (long long)row->arena.copies);
    amp_json_integer(json, "amp_deltas", (long long)row->arena.deltas);
    amp_json_integer(json, "amp_kept", (long long)row->arena.kept);
    amp_json_integer(json, "amp_host_buffers", (long long)(row->amp_bytes - arena));
    amp_json_close(json);
}

static void write_layer(amp_json *json, const amp_plan_report *r, int i)
{
    const amp_plan_row *row = &r->rows[i];
    const amp_layer_desc *d = &r->plan->nodes[i].desc;
    amp_json_object(json, NULL);
    amp_json_integer(json, "index", i);
    amp_json_text(json, "type", row->type);
    amp_json_array(json, "inputs");
    for (int k = 0; k < d->input_count; k++) amp_json_integer(json, NULL, d->inputs[k]);
    amp_json_close(json);
    write_shape(json, "output", row->output);
    amp_json_text(json, "class", row->class_name);
    amp_json_text(json, "dtype", amp_dtype_name(row->dtype));
    amp_json_text(json, "computes", amp_dtype_name(row->computes));
    amp_json_text(json, "form", amp_plan_form_name(r, row->autocast.form));
    amp_json_text(json, "why", row->why);
    amp_json_boolean(json, "pinned", row->pinned);
    amp_json_integer(json, "parameters", (long long)row->weights);
    amp_json_number(json, "forward_operations", row->operations);
    amp_json_number(json, "training_operations", row->training_operations);
    if (row->is_convolution) write_products(json, row);
    write_bytes(json, row);
    amp_json_close(json);
}

static void write_casts(amp_json *json, const amp_plan_report *r)
{
    amp_json_array(json, "casts");
    for (int k = 0; k < r->cast_count; k++) {
        const amp_plan_cast *c = &r->casts[k];
        amp_json_object(json, NULL);
        amp_json_integer(json, "producer", c->producer);
        if (c->reader >= 0) amp_json_integer(json, "reader", c->reader);
        else amp_json_text(json, "reader", NULL);
        amp_json_text(json, "from", form_dtype(r, c->from));
        amp_json_text(json, "from_layout", c->from == AMP_FORM_HOST ? "NCHW" : "NHWC");
        amp_json_text(json, "to", form_dtype(r, c->to));
        amp_json_text(json, "to_layout", c->to == AMP_FORM_HOST ? "NCHW" : "NHWC");
        amp_json_boolean(json, "backward", c->backward);
        amp_json_integer(json, "elements", (long long)c->elements);
        amp_json_close(json);
    }
    amp_json_close(json);
}

static void write_totals(amp_json *json, const amp_plan_report *r)
{
    size_t one = r->parameters * sizeof(float);
    amp_json_object(json, "totals");
    amp_json_object(json, "activation_bytes");
    amp_json_integer(json, "stock", (long long)r->stock);
    amp_json_integer(json, "engine_fp32", (long long)amp_footprint_sum(&r->fp32));
    amp_json_integer(json, "amp", (long long)amp_footprint_sum(&r->amp));
    amp_json_integer(json, "amp_arena", (long long)r->amp.arena);
    amp_json_integer(json, "amp_host_buffers", (long long)r->amp.buffers);
    amp_json_integer(json, "amp_input", (long long)r->amp.input);
    amp_json_close(json);
    amp_json_integer(json, "parameters", (long long)r->parameters);
    amp_json_integer(json, "master_bytes", (long long)one);
    amp_json_integer(json, "momentum_bytes", (long long)one);
    amp_json_integer(json, "gradient_bytes", (long long)one);
    amp_json_integer(json, "adam_bytes", (long long)(r->view.adam ? 2 * one : 0));
    amp_json_integer(json, "weight_copy_bytes", (long long)r->half_bytes);
    amp_json_integer(json, "workspace_bytes", (long long)r->workspace);
    amp_json_integer(json, "stock_workspace_bytes", (long long)r->stock_workspace);
    amp_json_integer(json, "loaded_images_bytes", (long long)amp_plan_loaded_bytes(r, r->images));
    amp_json_number(json, "training_operations", r->operations);
    amp_json_number(json, "half_operations", r->half_operations);
    amp_json_number(json, "stored_half_operations", r->stored_operations);
    amp_json_close(json);
}

static void write_fit(amp_json *json, const char *key, int fits)
{
    if (fits >= 0) amp_json_integer(json, key, fits);
    else amp_json_text(json, key, NULL);
}

static void write_memory(amp_json *json, const amp_plan_report *r)
{
    amp_json_array(json, "memory");
    for (int k = 0; k < r->batch_count; k++) {
        const amp_plan_batch *b = &r->batches[k];
        amp_json_object(json, NULL);
        amp_json_integer(json, "images_per_pass", b->images);
        amp_json_integer(json, "amp_arena", (long long)b->arena);
        amp_json_integer(json, "amp", (long long)b->amp);
        amp_json_integer(json, "engine_fp32", (long long)b->fp32);
        amp_json_integer(json, "stock", (long long)b->stock);
        amp_json_close(json);
    }
    amp_json_close(json);
    amp_json_object(json, "fitting_images_per_pass");
    write_fit(json, "amp", r->fits_amp);
    write_fit(json, "stock", r->fits_stock);
    amp_json_integer(json, "most_that_darknet_counts", r->most_images);
    amp_json_close(json);
}

static void write_advice(amp_json *json, const amp_plan_report *r)
{
    amp_json_array(json, "advice");
    for (int k = 0; k < r->advice_count; k++) {
        const amp_plan_advice *a = &r->advice[k];
        amp_json_object(json, NULL);
        amp_json_text(json, "kind", a->kind);
        if (a->layer >= 0) amp_json_integer(json, "layer", a->layer);
        else amp_json_text(json, "layer", NULL);
        amp_json_text(json, "text", a->text);
        amp_json_close(json);
    }
    amp_json_close(json);
}

void amp_plan_write_json(const amp_plan_report *r, const amp_probe_result *probe, FILE *stream)
{
    amp_json json = amp_json_begin(stream);
    amp_json_object(&json, NULL);
    amp_json_text(&json, "cfg", r->cfg);
    amp_json_text(&json, "dtype_asked", amp_dtype_name(r->asked));
    amp_json_text(&json, "dtype", amp_dtype_name(r->dtype));
    amp_json_boolean(&json, "cfg_asks_for_amp", !r->off_in_cfg);
    write_network(&json, r);
    write_device(&json, r);
    amp_json_array(&json, "layers");
    for (int i = 0; i < r->count; i++) write_layer(&json, r, i);
    amp_json_close(&json);
    write_casts(&json, r);
    write_totals(&json, r);
    write_memory(&json, r);
    write_advice(&json, r);
    amp_json_number(&json, "seconds", r->seconds);
    if (probe) amp_probe_json(probe, &json, "probe");
    amp_json_close(&json);
}
