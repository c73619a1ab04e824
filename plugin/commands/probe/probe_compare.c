/* The passes of `darknet amp probe -compare`. Stock's tensors are kept until AMP's fp32 was compared with
 * them, and fp32's until bf16 and fp16 were: two traces at a time. */
#define _DEFAULT_SOURCE /* setenv */
#include "probe_compare.h"

#include <string.h>

#include "../../host/program/failure.h"
#include "../../host/program/random.h"
#include "../../tensor/half.h"
#include "../cfg_copy.h"

/* ---- the images ---- */

static void keep_images(const amp_subject *s, amp_probe_input *input)
{
    amp_view view = amp_fork_view(s->net);
    *input = (amp_probe_input){ .image_count = (size_t)view.inputs * (size_t)view.batch,
                                .label_count = (size_t)view.truths * (size_t)view.batch };
    input->images = amp_allocated(malloc((input->image_count + 1) * sizeof *input->images));
    input->labels = amp_allocated(calloc(input->label_count + 1, sizeof *input->labels));
    memcpy(input->images, s->images, input->image_count * sizeof *input->images);
    if (s->labels) memcpy(input->labels, s->labels, input->label_count * sizeof *input->labels);
}

static amp_status load_images(const amp_probe_comparison *c, amp_subject *s, amp_probe_input *input,
                              amp_error *error)
{
    amp_batches *batches;
    srand(c->seed);
    if (!c->data) {
        amp_fork_fill_random_batch(s->net, c->seed);
        keep_images(s, input);
        return AMP_OK;
    }
    AMP_TRY(amp_batches_open(c->data, s->net, &batches, error));
    amp_status status = amp_batches_next(batches, 1, error);
    if (status == AMP_OK) {
        amp_batches_put(batches, s->net, 0);
        keep_images(s, input);
    }
    amp_batches_close(batches);
    return status;
}

static amp_status open_subject(const amp_probe_comparison *c, amp_subject *s, const char *cfg,
                               const char *dtype, amp_error *error)
{
    AMP_TRY(amp_subject_open(s, cfg, c->weights, dtype, c->seed, error));
    amp_status status = c->stirs ? amp_subject_stir(s, error) : AMP_OK;
    if (status == AMP_OK && c->steps) status = amp_subject_step(s, error);
    if (status != AMP_OK) amp_subject_close(s);
    return status;
}

/* ---- stock ---- */

static void excuse(amp_probe_comparison *c, int layer, amp_trace_kind kind, int *count)
{
    *count += !c->excused[layer][kind];
    c->excused[layer][kind] = 1;
}

/* A layer whose backward overwrites the delta of the one before it, after a later layer has added to that. On
 * the CPU what is missing is made up for (amp_fork_watch_layers). */
static void note_overwritten(amp_probe_comparison *c, const amp_network_desc *n, int i)
{
    int value = n->layers[i].inputs[0], read = 0;
    for (int later = i + 1; later < n->count; later++) read += amp_layer_reads(&n->layers[later], value);
    if (value >= 0 && read && c->on_gpu) excuse(c, value, AMP_TRACE_DELTA, &c->lost_deltas);
    else c->lost_deltas += value >= 0 && read;
}

/* On a GPU dropout and crop draw from cuRAND: their own output differs, and the delta that they hand back. */
static void note_drawn(amp_probe_comparison *c, const amp_network_desc *n, int i)
{
    const amp_layer_desc *d = &n->layers[i];
    if (!c->on_gpu || !(d->kind->draws_numbers || d->no_backward)) return;
    excuse(c, i, AMP_TRACE_OUTPUT, &c->drawn);
    if (d->inputs[0] >= 0) c->excused[d->inputs[0]][AMP_TRACE_DELTA] = 1;
}

static void note_faults(amp_probe_comparison *c, const amp_subject *s)
{
    const amp_network_desc *n = &s->network;
    c->excused = amp_allocated(calloc((size_t)n->count + 1, sizeof *c->excused));
    for (int i = 0; i < n->count; i++) {
        int faults = amp_fork_own_faults(s->net, i);
        if (faults & AMP_OWN_OVERWRITES) note_overwritten(c, n, i);
        if (faults & AMP_OWN_FORGETS_BIASES) excuse(c, i, AMP_TRACE_BIASES, &c->forgotten_biases);
        note_drawn(c, n, i);
    }
}

static int has_not_finite(const amp_trace *trace, int layer, int kind)
{
    const amp_trace_tensor *t = amp_trace_at(trace, layer, (amp_trace_kind)kind);
    return t->numbers && !amp_all_finite(t->numbers, t->count);
}

/* A batch norm of one number for each channel gives NaN, and so does all that reads it. Its means, which are
 * held against the variances (amp_trace_compare), cannot be compared either. */
static void note_not_finite(amp_probe_comparison *c, const amp_trace *trace)
{
    for (int i = 0; i < trace->layers; i++) {
        for (int kind = 0; kind < AMP_TRACE_KINDS; kind++)
            if (has_not_finite(trace, i, kind)) excuse(c, i, (amp_trace_kind)kind, &c->not_finite);
        if (c->excused[i][AMP_TRACE_VARIANCES]) excuse(c, i, AMP_TRACE_MEANS, &c->not_finite);
    }
}

static amp_status run_stock(amp_probe_comparison *c, const char *cfg, amp_probe_input *input,
                            amp_trace *trace, amp_error *error)
{
    amp_subject s;
    fprintf(stderr, "amp probe: a pass in Darknet's own code\n");
    AMP_TRY(open_subject(c, &s, cfg, "off", error));
    amp_view view = amp_fork_view(s.net);
    c->width = view.w;
    c->height = view.h;
    c->on_gpu = view.on_gpu;
    note_faults(c, &s);
    amp_status status = load_images(c, &s, input, error);
    if (status == AMP_OK)
        status = amp_subject_run(&s, input, &(amp_subject_pass){ .record = trace, .loss = &c->stock_loss },
                                 error);
    if (status == AMP_OK) note_not_finite(c, trace);
    amp_subject_close(&s);
    return status;
}

/* ---- AMP ---- */

/* From the image on, and once more with each layer given the reference's numbers. */
static amp_status run_both(amp_probe_run *run, amp_trace_flags *excused, amp_subject *s,
                           const amp_probe_input *input, const amp_trace *reference, amp_trace *record,
                           amp_error *error)
{
    AMP_TRY(amp_subject_run(s, input, &(amp_subject_pass){ .reference = reference, .found = &run->whole,
                                                           .record = record, .loss = &run->loss }, error));
    amp_difference gradient = amp_probe_gradient(run->whole, s->network.count, excused);
    run->cosine = amp_difference_cosine(&gradient);
    run->error = amp_difference_error(&gradient);
    run->scale = s->scale;
    run->ran = 1;
    AMP_TRY(amp_subject_time(s, input, &run->seconds, error));
    return amp_subject_run(s, input, &(amp_subject_pass){ .reference = reference, .found = &run->added,
                                                          .feeds = 1 }, error);
}

static amp_status run_amp(amp_probe_comparison *c, amp_dtype dtype, const char *cfg,
                          const amp_probe_input *input, const amp_trace *reference, amp_trace *record,
                          amp_error *error)
{
    amp_subject s;
    amp_probe_run *run = &c->runs[dtype];
    fprintf(stderr, "amp probe: passes in %s\n", amp_dtype_name(dtype));
    AMP_TRY(open_subject(c, &s, cfg, amp_dtype_name(dtype), error));
    amp_trace_flags *excused = dtype == AMP_FP32 ? c->excused : NULL;
    amp_status status = run_both(run, excused, &s, input, reference, record, error);
    if (status == AMP_OK && dtype == AMP_FP32) {
        c->network = s.network; /* its arrays go with the network, its kinds and links stay */
        s.network = (amp_network_desc){ 0 };
    }
    amp_subject_close(&s);
    if (status == AMP_OK) amp_probe_find_faults(c, dtype);
    if (status == AMP_OK && dtype != AMP_FP32)
        status = amp_probe_try_keeping(c, dtype, run, cfg, input, reference, error);
    return status;
}

static amp_status run_all(amp_probe_comparison *c, const char *cfg, amp_probe_input *input, amp_trace *stock,
                          amp_trace *fp32, amp_error *error)
{
    AMP_TRY(run_stock(c, cfg, input, stock, error));
    AMP_TRY(run_amp(c, AMP_FP32, cfg, input, stock, fp32, error));
    amp_trace_free(stock);
    static const amp_dtype halves[] = { AMP_BF16, AMP_FP16 };
    for (int k = 0; k < 2; k++)
        if (c->machine.support[halves[k]] != AMP_SUPPORT_NONE)
            AMP_TRY(run_amp(c, halves[k], cfg, input, fp32, NULL, error));
    return AMP_OK;
}

/* ---- the comparison ---- */

/* A copy of the .cfg whose batch is one pass. */
static amp_status copy_cfg(amp_probe_comparison *c, char copy[AMP_MEMORY_FILE], amp_error *error)
{
    amp_cfg_facts facts;
    AMP_TRY(amp_cfg_look(c->cfg, "fp32", c->data ? CFG_TRAINS_DATA : CFG_FOR_ANYTHING, &facts, error));
    long pass = facts.subdivisions > 0 ? facts.batch / facts.subdivisions : facts.batch;
    if (!c->images) c->images = pass > 1 ? pass : 1;
    const amp_cfg_change changes[] = { { "batch", (double)c->images }, { "subdivisions", 1 } };
    return amp_cfg_copy_in_memory(c->cfg, changes, 2, "this -images", copy, error);
}

amp_status amp_probe_compare(amp_probe_comparison *c, amp_error *error)
{
    char copy[AMP_MEMORY_FILE];
    amp_probe_input input = { 0 };
    amp_trace stock = { 0 }, fp32 = { 0 };
    AMP_TRY(amp_machine_read(&c->machine, error));
    AMP_TRY(copy_cfg(c, copy, error));
    setenv("DARKNET_MATH", "fp32", 1); /* else a GPU's cuDNN takes TF32 for Darknet's own convolutions */
    if (!c->seed) c->seed = darknet_amp_seed();
    if (!darknet_amp_is_seeded()) amp_random_set_seed(c->seed); /* AlexeyAB's yolo layer seeds by it */
    amp_status status = run_all(c, copy, &input, &stock, &fp32, error);
    amp_trace_free(&stock);
    amp_trace_free(&fp32);
    free(input.images);
    free(input.labels);
    if (status == AMP_OK) amp_probe_judge(c);
    return status;
}

void amp_probe_comparison_free(amp_probe_comparison *c)
{
    for (int d = 0; d < AMP_PROBE_DTYPES; d++) {
        free(c->runs[d].whole);
        free(c->runs[d].added);
        free(c->runs[d].order);
        free(c->runs[d].faults);
    }
    amp_lines_free(&c->verdict);
    amp_network_desc_free(&c->network);
    free(c->excused);
}
