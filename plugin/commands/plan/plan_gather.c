/* Gathers the data that `darknet amp plan` prints: see plan_report.h. */
#include "plan_report.h"

#include "../../host/network/fits.h"
#include "../../host/network/state.h"
#include "../cfg_copy.h"
#include "../table.h"

/* ---- words ---- */

const char *amp_plan_form_name(const amp_plan_report *r, amp_form form)
{
    return form == AMP_FORM_HALF ? amp_dtype_name(r->dtype) : form == AMP_FORM_WIDE ? "fp32" : "fp32 nchw";
}

static const char *const class_names[] = { [AMP_CLASS_LOWER] = "lower", [AMP_CLASS_FOLLOWS] = "follows",
                                           [AMP_CLASS_PROMOTES] = "promotes",
                                           [AMP_CLASS_FP32] = "host fp32" };

static void explain_input(const amp_plan_report *r, const amp_node *node, const amp_autocast *a, char *why,
                          size_t size)
{
    if (a->input < 0) {
        snprintf(why, size, "all inputs are %s", amp_dtype_name(r->dtype));
        return;
    }
    int producer = node->desc.inputs[a->input];
    if (producer < 0) snprintf(why, size, "the image is fp32");
    else if (a->class == AMP_CLASS_PROMOTES && node->desc.input_count > 1)
        snprintf(why, size, "layer %d is fp32", producer);
    else snprintf(why, size, "as layer %d", producer);
}

/* Writes why autocast chose the layer's form. */
static void explain_form(const amp_plan_report *r, const amp_node *node, const amp_autocast *a, char *why,
                         size_t size)
{
    switch (a->reason) {
    case AMP_WHY_CLASS:
        snprintf(why, size, "%s", node->desc.why_host ? node->desc.why_host : "matrix products");
        break;
    case AMP_WHY_DTYPE:
        snprintf(why, size, "dtype=fp32");
        break;
    case AMP_WHY_KEPT: snprintf(why, size, "amp=0"); break;
    case AMP_WHY_INPUT: explain_input(r, node, a, why, size); break;
    }
}

/* ---- rows ---- */

static void add_why(amp_plan_row *row, const char *more, amp_dtype dtype)
{
    amp_append(row->why, sizeof row->why, "%s %s", more, amp_dtype_name(dtype));
}

static void ask_backend(amp_plan_row *row, const amp_node *node, const amp_backend *backend)
{
    const amp_products p = node->desc.kind->products(node);
    row->is_convolution = 1;
    row->products = row->computes = node->products;
    row->padded_in = row->in = p.in;
    row->padded_out = row->out = p.out;
    row->in_aligned = row->in % 8 == 0;
    row->out_aligned = row->out % 8 == 0;
    amp_conv_facts facts;
    if (!amp_node_facts(node, backend, &facts)) return;
    row->computes = facts.computes;
    /* pixels per input channel of a connected layer, which flattens its input; 1 for other layers */
    int flattened = p.groups * p.in / node->inputs[0]->shape.c;
    row->padded_in = (p.turned ? facts.padded_out : facts.padded_in) * flattened;
    row->padded_out = p.turned ? facts.padded_in : facts.padded_out;
    snprintf(row->kernel, sizeof row->kernel, "%s", facts.kernel);
    snprintf(row->winograd, sizeof row->winograd, "%s", facts.winograd);
    if (row->computes != row->dtype) add_why(row, "; computed in", row->computes);
    if (row->winograd[0]) amp_append(row->why, sizeof row->why, "; winograd: %s", row->winograd);
}

/* For a layer that runs in Darknet's code, but whose matrix products the backend computes: records the dtype
 * of these products. */
static void ask_about_products(amp_plan_row *row, const amp_node *node, const amp_backend *backend)
{
    row->products = node->products;
    row->computes = backend->gemm_computes(backend, node->products);
    add_why(row, "; its matrix products:", node->products);
    if (row->computes != node->products) add_why(row, ", computed in", row->computes);
}

/* The operations of a training pass: forward, the weight gradients, and the data gradient if it is needed. */
static double training_operations(const amp_node *node, double forward)
{
    int wants_delta = 0;
    for (int k = 0; k < node->desc.input_count; k++) wants_delta |= node->inputs[k]->wants_delta;
    return node->computes_backward ? forward * (2 + wants_delta) : forward;
}

static double operations_of(const amp_plan_report *r, const amp_node *node)
{
    return node->desc.kind->products ? amp_products_operations(node->desc.kind->products(node))
                                     : amp_fork_layer_work(r->net, node->index).products;
}

static void fill_row(amp_plan_report *r, int i)
{
    const amp_node *node = &r->plan->nodes[i];
    amp_plan_row *row = &r->rows[i];
    *row = (amp_plan_row){ .index = i, .type = node->desc.type, .output = node->desc.output,
                           .autocast = r->plan->autocast[i],
        .dtype = node->dtype, .computes = node->dtype, .products = AMP_FP32,
        .keep_fp32 = node->desc.keep_fp32,
        .operations = operations_of(r, node), .arena = amp_plan_bytes_of(r->plan, i),
        .stock_bytes = amp_fork_stock_bytes(r->net, i, r->view.batch),
        .buffer_bytes = amp_fork_buffer_bytes(r->net, i, r->view.batch, r->plan),
        .half_bytes = amp_node_copies(node, r->backend, r->dtype) };
    row->class_name = class_names[row->autocast.class];
    row->form = amp_plan_form_name(r, row->autocast.form);
    row->training_operations = training_operations(node, row->operations);
    row->amp_bytes = row->arena.output + row->arena.copies + row->arena.deltas + row->arena.kept
        + row->buffer_bytes;
    for (int k = 0; k < node->desc.param_count; k++) row->weights += node->desc.params[k].count;
    explain_form(r, node, &row->autocast, row->why, sizeof row->why);
    if (node->desc.kind->products)
        ask_backend(row, node, r->backend);
    else if (node->desc.lends_products && node->products != AMP_FP32)
        ask_about_products(row, node, r->backend);
    else if (node->desc.kind->makes_loss && node->dtype != AMP_FP32) {
        row->dtype = row->computes = AMP_FP32;
        snprintf(row->why, sizeof row->why, "fp32 loss; reads and writes %s", amp_dtype_name(node->dtype));
    }
}

static void fill_rows(amp_plan_report *r)
{
    r->count = r->plan->count;
    r->rows = amp_allocated(calloc((size_t)r->count + 1, sizeof *r->rows));
    r->cast_count = amp_plan_casts(r->plan, NULL, 0);
    r->casts = amp_allocated(calloc((size_t)r->cast_count + 1, sizeof *r->casts));
    amp_plan_casts(r->plan, r->casts, r->cast_count);
    for (int k = 0; k < r->cast_count; k++) {
        r->cast_elements += r->casts[k].elements;
        r->cast_back += r->casts[k].backward;
    }
    for (int i = 0; i < r->count; i++) {
        const amp_plan_row *row = &r->rows[i];
        fill_row(r, i);
        r->parameters += row->weights;
        r->operations += row->training_operations;
        if (row->products == AMP_FP32) continue;
        *(row->computes == row->products ? &r->half_operations
          : &r->stored_operations) += row->training_operations;
    }
}

/* ---- memory ---- */

size_t amp_plan_loaded_bytes(const amp_plan_report *r, int images)
{
    return amp_host_loaded_bytes(r->net, images > r->batch ? images : r->batch);
}

static amp_training training_of(const amp_plan_report *r)
{
    return (amp_training){ .net = r->net, .plan = r->plan, .dtype = r->dtype, .images = r->batch };
}

static amp_status add_batch(amp_plan_report *r, int images, amp_error *error)
{
    amp_plan_batch *b = &r->batches[r->batch_count++];
    amp_training training = training_of(r);
    amp_needs fp32, amp;
    *b = (amp_plan_batch){ .images = images, .stock = amp_host_stock_needs(&training, images) };
    AMP_TRY(amp_host_needs(&training, images, &amp, error));
    training.dtype = AMP_FP32;
    AMP_TRY(amp_host_needs(&training, images, &fp32, error));
    b->arena = amp.pass.arena;
    b->amp = amp_needs_sum(&amp);
    b->fp32 = amp_needs_sum(&fp32);
    return AMP_OK;
}

/* Lists the passes of 1, 2, 4, ... images that fit under AMP, up to the larger of the .cfg's batch and 64.
 * Also lists the .cfg's own pass, whether it fits or not. */
static amp_status list_batches(amp_plan_report *r, amp_error *error)
{
    int most = r->batch > 64 ? r->batch : 64;
    if (r->fits_amp >= 0 && most > r->fits_amp) most = r->fits_amp;
    if (most > r->most_images) most = r->most_images;
    for (long images = 1, before = 0; before < most || before < r->images; before = images, images *= 2) {
        if (before < r->images && r->images < images) AMP_TRY(add_batch(r, r->images, error));
        if (images <= most || images == r->images) AMP_TRY(add_batch(r, (int)images, error));
    }
    return AMP_OK;
}

/* Adds the row of these checkpointing settings. in_force: 1: they are the .cfg's own, and r->fits_amp is
 * known. */
static amp_status add_checkpoint(amp_plan_report *r, const amp_recompute_settings *settings, int in_force,
                                 amp_error *error)
{
    amp_plan_checkpoint *c = &r->checkpoints[r->checkpoint_count++];
    const amp_training training = training_of(r);
    amp_footprint at;
    *c = (amp_plan_checkpoint){ .in_force = in_force, .fits = r->fits_amp };
    if (settings->on && settings->segments) snprintf(c->name, sizeof c->name, "%d", settings->segments);
    else snprintf(c->name, sizeof c->name, "%s", settings->on ? "auto" : "off");
    amp_fork_state(r->net)->engine->settings.recompute = *settings;
    AMP_TRY(amp_host_footprint(r->net, r->view.batch, r->dtype, &at, error));
    if (!in_force)
        AMP_TRY(amp_host_largest_pass(&training, r->memory.bytes, r->most_images, 0, &c->fits, error));
    c->arena = at.arena;
    c->again = 100 * at.again;
    return AMP_OK;
}

/* Lists checkpoint=off, 1, 2, 4, 8 and 16, and the .cfg's setting. */
static amp_status list_checkpoints(amp_plan_report *r, amp_error *error)
{
    static const int usual[] = { AMP_CHECKPOINT_OFF, 1, 2, 4, 8, 16 };
    struct darknet_amp *amp = amp_fork_state(r->net);
    const amp_recompute_settings in_force = amp->engine->settings.recompute;
    amp_status status = AMP_OK;
    int listed = 0;
    for (size_t k = 0; status == AMP_OK && k < sizeof usual / sizeof *usual; k++) {
        const amp_recompute_settings settings = { .on = usual[k] > 0, .segments = usual[k] };
        int is_in_force = usual[k] == amp->config->checkpoint;
        listed |= is_in_force;
        status = add_checkpoint(r, &settings, is_in_force, error);
    }
    if (status == AMP_OK && !listed) status = add_checkpoint(r, &in_force, 1, error);
    amp->engine->settings.recompute = in_force;
    return status;
}

/* ---- the network ---- */

/* Chooses the plan's dtype: from -dtype, -amp or the .cfg, in this order; AMP's default if AMP is off. */
static amp_status choose_dtype(amp_plan_report *r, const char *dtype, amp_error *error)
{
    amp_cfg_facts requested, own;
    const char *given = dtype ? dtype : amp_this_program()->dtype;
    AMP_TRY(amp_cfg_look(r->cfg, NULL, CFG_FOR_ANYTHING, &own, error));
    AMP_TRY(amp_cfg_look(r->cfg, given, CFG_FOR_ANYTHING, &requested, error));
    r->off_in_cfg = !requested.under_amp || !own.under_amp;
    if (!requested.under_amp) dtype = amp_dtype_name(amp_fork_default_dtype());
    if (dtype) amp_program_to_set()->dtype = dtype;
    return AMP_OK;
}

/* Makes the network from the .cfg, or from a copy with another batch and subdivisions. */
static amp_status make_network(amp_plan_report *r, long batch, long subdivisions, amp_error *error)
{
    amp_cfg_facts facts;
    amp_cfg_change changes[2];
    int count = 0;
    char copy[AMP_MEMORY_FILE];
    const char *made_from = batch || subdivisions ? copy : r->cfg;
    if (batch) changes[count++] = (amp_cfg_change){ "batch", (double)batch };
    if (subdivisions) changes[count++] = (amp_cfg_change){ "subdivisions", (double)subdivisions };
    if (count)
        AMP_TRY(amp_cfg_copy_in_memory(r->cfg, changes, count, "this -batch and -subdivisions", copy, error));
    AMP_TRY(amp_cfg_look(made_from, NULL, CFG_FOR_ANYTHING, &facts, error));
    r->batch = facts.batch;
    r->memory = amp_host_available_memory();
    r->net = amp_fork_make_network(made_from, r->cfg, 0);
    struct darknet_amp *amp = amp_fork_state(r->net);
    if (!amp) return amp_fail(error, AMP_UNSUPPORTED, "%s: this network was made without AMP", r->cfg);
    r->view = amp_fork_view(r->net);
    r->subdivisions = r->view.subdivisions;
    r->steps = amp_time_steps(&r->view);
    r->images = r->view.batch / r->steps;
    r->dtype = amp->config->dtype;
    r->adamw = amp->config->adamw;
    r->backend = amp->engine->backend;
    amp_machine_describe(r->backend, &r->machine);
    return AMP_OK;
}

amp_status amp_plan_gather(const char *cfg, long batch, long subdivisions, const char *dtype,
                           amp_plan_report *r, amp_error *error)
{
    amp_needs needs;
    amp_footprint fp32;
    *r = (amp_plan_report){ .cfg = cfg };
    AMP_TRY(choose_dtype(r, dtype, error));
    AMP_TRY(make_network(r, batch, subdivisions, error));
    AMP_TRY(amp_host_training_plan(r->net, &r->plan, error));
    fill_rows(r);
    r->stock_workspace = amp_fork_workspace(r->net, 1);
    const amp_training training = training_of(r);
    AMP_TRY(amp_host_needs(&training, r->images, &needs, error));
    r->workspace = needs.workspace;
    r->half_bytes = needs.copies;
    r->stock = amp_host_stock_footprint(r->net, r->view.batch);
    AMP_TRY(amp_host_footprint(r->net, r->view.batch, r->dtype, &r->amp, error));
    AMP_TRY(amp_host_footprint(r->net, r->view.batch, AMP_FP32, &fp32, error));
    r->amp_bytes = amp_footprint_sum(&r->amp);
    r->fp32_bytes = amp_footprint_sum(&fp32);
    r->masters = r->parameters * sizeof(float);
    r->adam = r->view.adam ? 2 * r->masters : 0;
    r->most_images = amp_fork_largest_batch(r->net) / r->steps;
    AMP_TRY(amp_host_largest_pass(&training, r->memory.bytes, r->most_images, 0, &r->fits_amp, error));
    AMP_TRY(amp_host_largest_pass(&training, r->memory.bytes, r->most_images, 1, &r->fits_stock, error));
    AMP_TRY(list_checkpoints(r, error));
    return list_batches(r, error);
}

void amp_plan_report_free(amp_plan_report *r)
{
    free(r->advice);
    free(r->rows);
    free(r->casts);
    amp_fork_free_network(r->net);
    *r = (amp_plan_report){ 0 };
}
