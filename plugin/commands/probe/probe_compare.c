/* Runs the passes of `darknet amp probe`. Stock's tensors are kept until AMP's fp32 has been compared with
 * them. The tensors of AMP's fp32 are kept until bf16 and fp16 have been compared with them. */
#define _DEFAULT_SOURCE /* for setenv */
#include "probe_comparison.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "../../host/program/failure.h"
#include "../../host/program/random.h"
#include "../../tensor/half.h"

/* ---- the images ---- */

static void keep_images(const amp_subject *s, amp_subject_source *input)
{
    amp_view view = amp_fork_view(s->net);
    input->image_count = (size_t)view.inputs * (size_t)view.batch;
    input->label_count = (size_t)view.truths * (size_t)view.batch;
    input->images = amp_allocated(malloc((input->image_count + 1) * sizeof *input->images));
    input->labels = amp_allocated(calloc(input->label_count + 1, sizeof *input->labels));
    memcpy(input->images, s->images, input->image_count * sizeof *input->images);
    if (s->labels) memcpy(input->labels, s->labels, input->label_count * sizeof *input->labels);
}

static amp_status load_images(amp_probe_comparison *c, amp_subject *s, amp_error *error)
{
    amp_batches *batches;
    srand(c->source.seed);
    if (!c->data) {
        amp_fork_fill_random_batch(s->net, c->source.seed);
        keep_images(s, &c->source);
        return AMP_OK;
    }
    AMP_TRY(amp_batches_open(c->data, s->net, &batches, error));
    amp_status status = amp_batches_next(batches, 1, error);
    if (status == AMP_OK) {
        amp_batches_put(batches, s->net, 0);
        keep_images(s, &c->source);
    }
    amp_batches_close(batches);
    return status;
}

/* ---- stock ---- */

static void excuse(amp_trace_flags *flags, const amp_network_desc *n, int i, int effects)
{
    const amp_layer_desc *d = &n->layers[i];
    char *of = flags[i];
    if (effects & AMP_WRONG_OUTPUT) of[AMP_TRACE_OUTPUT] = 1;
    if (effects & AMP_WRONG_STATISTICS) of[AMP_TRACE_MEANS] = of[AMP_TRACE_VARIANCES] = 1;
    if (effects & AMP_WRONG_WEIGHTS) of[AMP_TRACE_WEIGHTS] = of[AMP_TRACE_SCALES] = 1;
    if (effects & AMP_WRONG_BIASES) of[AMP_TRACE_BIASES] = 1;
    if ((effects & AMP_WRONG_DELTA) && d->kind->makes_loss) of[AMP_TRACE_DELTA] = 1;
    int wrong_deltas = effects & AMP_WRONG_DELTA ? d->input_count : (effects & AMP_WRONG_NEAR_DELTA) != 0;
    for (int k = 0; k < wrong_deltas; k++)
        if (d->inputs[k] >= 0) flags[d->inputs[k]][AMP_TRACE_DELTA] = 1;
}

/* The effects of a fault of layer i in this network. With AMP_LOSES_DELTA the layer overwrites the part of
 * its input's delta that later layers have computed. If no later layer reads that input, nothing is lost.
 * Otherwise the delta is wrong on a GPU; on the CPU amp_fork_watch_layers restores the lost part. */
static int effects_here(const amp_probe_comparison *c, const amp_network_desc *n, int i, int effects)
{
    int value = n->layers[i].inputs[0], read = 0;
    if (!(effects & AMP_LOSES_DELTA)) return effects;
    for (int later = i + 1; later < n->count; later++) read += amp_layer_reads(&n->layers[later], value);
    return value < 0 || !read ? 0 : c->on_gpu ? AMP_WRONG_DELTA : effects;
}

static const char *consequence(int effects)
{
    if (effects & AMP_CANNOT_RUN) return "that code cannot run this network and is not compared";
    return effects & AMP_LOSES_DELTA ? "this comparison adds up all parts, as a GPU does" : "not counted";
}

/* Adds a sentence about a fault that `count` layers have: "layer 3 [convolutional] (and 2 more) ...". */
static void tell_fault(amp_probe_comparison *c, const amp_network_desc *n, int first, int count,
                       const char *what, const char *end)
{
    char more[32] = "";
    if (count > 1) snprintf(more, sizeof more, " (and %d more)", count - 1);
    amp_lines_add(&c->stock_faults, "Darknet's own code: layer %d [%s]%s %s; %s.", first,
                  n->layers[first].type, more, what, end);
}

static void note_fault(amp_probe_comparison *c, const amp_subject *s, int row, const amp_stock_fault *fault)
{
    int count = 0, first = 0, all = 0;
    for (int i = s->network.count - 1; i >= 0; i--) {
        int effects = amp_fork_has_stock_fault(s->net, i, row)
                      ? effects_here(c, &s->network, i, fault->effects) : 0;
        if (!effects) continue;
        excuse(c->excused, &s->network, first = i, effects);
        if (effects & AMP_UNDEFINED) excuse(c->undefined, &s->network, i, effects);
        all |= effects;
        count++;
    }
    if (all & AMP_CANNOT_RUN) c->stock_runs = 0;
    if (count) tell_fault(c, &s->network, first, count, fault->what, consequence(all));
}

static void note_faults(amp_probe_comparison *c, const amp_subject *s)
{
    const amp_stock_fault *fault;
    c->stock_runs = 1;
    c->excused = amp_allocated(calloc((size_t)s->network.count + 1, sizeof *c->excused));
    c->undefined = amp_allocated(calloc((size_t)s->network.count + 1, sizeof *c->undefined));
    for (int row = 0; (fault = amp_fork_stock_fault(row)); row++) note_fault(c, s, row, fault);
}

/* Whether the layer's tensor contains inf, NaN or a number above `most`. */
static int exceeds(const amp_trace *trace, int layer, int kind, float most)
{
    if (layer < 0) return 0;
    const amp_trace_tensor *t = amp_trace_at(trace, layer, (amp_trace_kind)kind);
    for (size_t i = 0; t->numbers && i < t->count; i++)
        if (!amp_is_finite(t->numbers[i]) || fabsf(t->numbers[i]) > most) return 1;
    return 0;
}

/* Whether an input of batch norm may exceed `most`: N numbers are within sqrt(N · variance) of their mean. */
static int sums_exceed(const amp_layer_desc *d, const amp_trace *trace, int layer, float most)
{
    const amp_trace_tensor *m = amp_trace_at(trace, layer, AMP_TRACE_MEANS);
    const amp_trace_tensor *v = amp_trace_at(trace, layer, AMP_TRACE_VARIANCES);
    double n = (double)d->output.n * d->output.h * d->output.w;
    for (size_t i = 0; m->numbers && v->numbers && i < m->count && i < v->count; i++)
        if (!(fabs((double)m->numbers[i]) + sqrt(n * (double)v->numbers[i]) <= (double)most)) return 1;
    return 0;
}

/* Flags results that may be wrong because of inf, NaN or numbers beyond `most`: all results of a layer that
 * reads or writes outputs beyond `most`, and all backward results of a layer with a delta or gradient that is
 * inf or NaN. Finite results are flagged too: Darknet's code, compiled with -Ofast, may turn inf and NaN into
 * finite numbers. Returns the number of flagged layers, and sets *first to the first one. */
static int note_beyond(const amp_network_desc *n, const amp_trace *trace, float most, amp_trace_flags *flags,
                       int *first)
{
    int count = 0;
    for (int i = n->count - 1; i >= 0; i--) {
        int forward = exceeds(trace, i, AMP_TRACE_OUTPUT, most) || sums_exceed(&n->layers[i], trace, i, most);
        int backward = 0;
        for (int k = 0; k < n->layers[i].input_count; k++)
            forward |= exceeds(trace, n->layers[i].inputs[k], AMP_TRACE_OUTPUT, most);
        for (int kind = AMP_TRACE_DELTA; kind <= AMP_TRACE_SCALES; kind++)
            backward |= exceeds(trace, i, kind, FLT_MAX);
        if (!forward && !backward) continue;
        excuse(flags, n, *first = i, forward ? AMP_WRONG_ALL : AMP_WRONG_BACKWARD);
        flags[i][AMP_TRACE_DELTA] = 1;
        count++;
    }
    return count;
}

/* Whether Darknet's own code is known to compute some output wrongly. */
static int has_wrong_outputs(const amp_probe_comparison *c, int layers)
{
    int wrong = 0;
    for (int i = 0; i < layers; i++) wrong |= c->excused[i][AMP_TRACE_OUTPUT];
    return wrong;
}

/* Records the outputs of a whole pass in AMP's fp32. */
static amp_status record_outputs(const amp_probe_comparison *c, amp_trace *out, amp_error *error)
{
    amp_subject s;
    AMP_TRY(amp_subject_open(&s, c->copy, "fp32", &c->source, error));
    amp_status status = amp_subject_run(&s, &(amp_subject_pass){ .record = out }, error);
    amp_subject_close(&s);
    return status;
}

static amp_status pass_in_stock(amp_probe_comparison *c, amp_subject *s, amp_trace *right, amp_trace *trace,
                                amp_error *error)
{
    int first, count;
    const amp_subject_pass pass = { .record = trace, .loss = &c->stock_loss, .wrong = c->excused,
                                    .corrects = right->tensors ? right : NULL };
    fprintf(stderr, "amp probe: a pass in Darknet's own code\n");
    AMP_TRY(amp_subject_run(s, &pass, error));
    if ((count = note_beyond(&s->network, trace, FLT_MAX, c->excused, &first)))
        tell_fault(c, &s->network, first, count, "reads or writes inf or NaN", "not counted");
    return AMP_OK;
}

/* Records the network's size and the known faults of Darknet's own code, and loads the images. */
static amp_status look_at_stock(amp_probe_comparison *c, amp_subject *s, amp_error *error)
{
    amp_view view = amp_fork_view(s->net);
    c->width = view.w;
    c->height = view.h;
    c->on_gpu = view.on_gpu;
    note_faults(c, s);
    return load_images(c, s, error);
}

static amp_status run_stock(amp_probe_comparison *c, amp_trace *trace, amp_error *error)
{
    amp_subject s;
    amp_trace right = { 0 };
    AMP_TRY(amp_subject_open(&s, c->copy, "off", &c->source, error));
    amp_status status = look_at_stock(c, &s, error);
    /* only one network is open at a time, because each has its own stream on a GPU */
    if (status == AMP_OK && c->stock_runs && has_wrong_outputs(c, s.network.count)) {
        amp_subject_close(&s);
        status = record_outputs(c, &right, error);
        if (status == AMP_OK) status = amp_subject_open(&s, c->copy, "off", &c->source, error);
        if (status != AMP_OK) {
            amp_trace_free(&right);
            return status;
        }
    }
    if (status == AMP_OK && c->stock_runs) status = pass_in_stock(c, &s, &right, trace, error);
    amp_trace_free(&right);
    amp_subject_close(&s);
    return status;
}

/* ---- AMP ---- */

/* Runs a pass in which each layer starts from the reference's numbers. Sets *found to the differences that
 * each layer adds itself. If conditions is not NULL, sets *conditions to the layers' conditions, measured
 * with the same numbers. is_stock: the reference comes from Darknet's own code. */
static amp_status run_fed(amp_subject *s, const amp_trace *reference, int is_stock, amp_differences **found,
                          amp_conditions **conditions, amp_error *error)
{
    amp_trace own = { 0 };
    amp_status status = amp_subject_run(s, &(amp_subject_pass){ .reference = reference, .found = found,
        .feeds = 1, .record = conditions ? &own : NULL }, error);
    if (status == AMP_OK && conditions)
        status = amp_probe_find_conditions(s, reference, &own, conditions, error);
    if (status == AMP_OK && conditions && is_stock)
        status = amp_probe_add_mean_conditions(s, reference, &own, *conditions, error);
    amp_trace_free(&own);
    return status;
}

/* Runs a pass of the whole network. reference NULL: the pass is only recorded. */
static amp_status run_whole(amp_probe_run *run, amp_trace_flags *excused, amp_subject *s,
                            const amp_trace *reference, amp_trace *record, amp_error *error)
{
    AMP_TRY(amp_subject_run(s, &(amp_subject_pass){ .reference = reference, .found = &run->whole,
                                                    .record = record, .loss = &run->loss }, error));
    amp_difference gradient = amp_probe_gradient(run->whole, s->network.count, excused);
    run->cosine = amp_difference_cosine(&gradient);
    run->error = amp_difference_error(&gradient);
    run->scale = s->scale;
    run->ran = 1;
    return amp_subject_time(s, &run->seconds, error);
}

/* Runs fp32's passes. At most three traces exist at a time: stock's, fp32's, and the results of the running
 * pass. stock is NULL if Darknet's own code cannot run the network. */
static amp_status run_fp32(amp_probe_comparison *c, amp_subject *s, const amp_trace *stock, amp_trace *record,
                           amp_error *error)
{
    amp_probe_run *run = &c->runs[AMP_FP32];
    amp_differences *itself = NULL;
    if (stock) AMP_TRY(run_fed(s, stock, 1, &run->added, &c->conditions, error));
    AMP_TRY(run_whole(run, c->excused, s, stock, record, error));
    amp_status status = run_fed(s, record, 0, stock ? &itself : &run->added, &c->conditions_of_half, error);
    free(itself);
    return status;
}

/* The pass of the whole network comes first: it finds the loss scale. */
static amp_status run_half(amp_probe_run *run, amp_subject *s, const amp_trace *fp32, amp_error *error)
{
    AMP_TRY(run_whole(run, NULL, s, fp32, NULL, error));
    AMP_TRY(run_fed(s, fp32, 0, &run->added, NULL, error));
    run->fed_scale = s->scale;
    return AMP_OK;
}

static amp_status run_amp(amp_probe_comparison *c, amp_dtype dtype, const amp_trace *reference,
                          amp_trace *record, amp_error *error)
{
    amp_subject s;
    fprintf(stderr, "amp probe: passes in %s\n", amp_dtype_name(dtype));
    AMP_TRY(amp_subject_open(&s, c->copy, amp_dtype_name(dtype), &c->source, error));
    amp_status status = dtype == AMP_FP32 ? run_fp32(c, &s, reference, record, error)
                                          : run_half(&c->runs[dtype], &s, reference, error);
    if (status == AMP_OK && dtype == AMP_FP32) {
        c->beyond = amp_allocated(calloc((size_t)s.network.count + 1, sizeof *c->beyond));
        note_beyond(&s.network, record, FLT_MAX, c->undefined, &(int){ 0 });
        note_beyond(&s.network, record, (float)AMP_PROBE_FP16_MOST, c->beyond, &c->first_beyond);
        /* The description outlives the network, except for its pointers to the network's arrays. */
        c->network = s.network;
        s.network = (amp_network_desc){ 0 };
    }
    amp_subject_close(&s);
    if (status == AMP_OK) amp_probe_find_faults(c, dtype);
    if (status == AMP_OK && dtype != AMP_FP32) status = amp_probe_try_keeping(c, dtype, reference, error);
    return status;
}

static amp_status run_all(amp_probe_comparison *c, amp_trace *stock, amp_trace *fp32, amp_error *error)
{
    AMP_TRY(run_stock(c, stock, error));
    AMP_TRY(run_amp(c, AMP_FP32, c->stock_runs ? stock : NULL, fp32, error));
    amp_trace_free(stock);
    static const amp_dtype halves[] = { AMP_BF16, AMP_FP16 };
    for (int k = 0; k < 2; k++)
        if (c->machine.support[halves[k]] != AMP_SUPPORT_NONE)
            AMP_TRY(run_amp(c, halves[k], fp32, NULL, error));
    return AMP_OK;
}

/* ---- the comparison ---- */

static amp_status copy_cfg(amp_probe_comparison *c, amp_error *error)
{
    amp_cfg_facts facts;
    AMP_TRY(amp_cfg_look(c->cfg, "fp32", c->data ? CFG_TRAINS_DATA : CFG_FOR_ANYTHING, &facts, error));
    long pass = facts.subdivisions > 0 ? facts.batch / facts.subdivisions : facts.batch;
    if (!c->images) c->images = pass > 1 ? pass : 1;
    const amp_cfg_change changes[] = { { "batch", (double)c->images }, { "subdivisions", 1 } };
    return amp_cfg_copy_in_memory(c->cfg, changes, 2, "this -images", c->copy, error);
}

amp_status amp_probe_compare(amp_probe_comparison *c, amp_error *error)
{
    amp_trace stock = { 0 }, fp32 = { 0 };
    c->first_beyond = -1;
    AMP_TRY(amp_machine_read(&c->machine, error));
    AMP_TRY(copy_cfg(c, error));
    setenv("DARKNET_MATH", "fp32", 1); /* keeps cuDNN from using TF32 for Darknet's own convolutions */
    if (!c->source.seed) c->source.seed = darknet_amp_seed();
    /* AlexeyAB's yolo layer uses the program's seed */
    if (!darknet_amp_is_seeded()) amp_random_set_seed(c->source.seed);
    amp_status status = run_all(c, &stock, &fp32, error);
    amp_trace_free(&stock);
    amp_trace_free(&fp32);
    if (status == AMP_OK) amp_probe_advise(c);
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
    free(c->source.images);
    free(c->source.labels);
    amp_lines_free(&c->advice);
    amp_lines_free(&c->stock_faults);
    amp_network_desc_free(&c->network);
    free(c->excused);
    free(c->undefined);
    free(c->beyond);
    free(c->conditions);
    free(c->conditions_of_half);
}
