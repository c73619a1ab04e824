/* Runs passes, and records and compares their tensors layer by layer. AMP's engine shows each tensor to an
 * observer; stock Darknet calls a function before and after each layer (amp_fork_watch_layers). */
#include "subject.h"

#include "../../backend/activate.h"
#include "../../host/program/clock.h"
#include "../../host/program/random.h"
#include "../../host/network/resume.h"
#include "../../host/network/state.h"
#include "../../tensor/half.h"
#include "../../amp/statistics.h"

#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#define LEAST_SCALE 0x1p-64f
enum { LEAST_PASSES = 3, MOST_PASSES = 20 };
#define SECONDS_OF_PASSES .2
/* Before each pass with amp_subject_pass.feeds, an extra pass runs on the images multiplied by this factor,
 * and leaves other numbers in memory. So a layer that reads a tensor too early gives wrong results. The
 * factor is negative because batch norm would cancel a positive one. */
#define OTHER_IMAGES -1.f

/* The state of a running pass. */
typedef struct looker {
    amp_subject *s;
    const amp_subject_pass *asked;
    amp_trace whole;         /* collects statistics, and gradients (which are complete only after backward) */
    /* for each layer and kind: how often the engine has shown the tensor (it shows an output twice).
     * AMP_TRACE_WEIGHTS: how many of the layer's gradients it has shown */
    amp_trace_flags *seen;
    int is_forward;          /* used only for stock passes: 1 during forward, 0 during backward */
    float *numbers;          /* one tensor's numbers, in NCHW */
    unsigned char *bytes;    /* the same tensor in the backend's layout */
    size_t room;             /* allocated length of both, in floats */
    int overflowed;          /* a gradient or a delta is inf or NaN; both are checked, because dropout may
                                hide a delta's inf from the gradients */
    int hopeless;            /* an output is inf or NaN, so another loss scale would not help */
    amp_status status;       /* the status of `watch`, which cannot return it */
    amp_error error;
} looker;

/* ---- recording and comparing a tensor ---- */

static void make_room(looker *l, size_t count)
{
    if (count <= l->room) return;
    l->room = count;
    l->numbers = amp_allocated(realloc(l->numbers, count * sizeof *l->numbers));
    l->bytes = amp_allocated(realloc(l->bytes, count * sizeof *l->numbers));
}

static void look(looker *l, int layer, amp_trace_kind kind, const float *numbers, size_t count)
{
    const amp_subject_pass *asked = l->asked;
    const amp_trace *with = asked->not_nudged ? asked->not_nudged : asked->reference;
    double scale = kind == AMP_TRACE_DELTA ? (double)l->s->scale : 1;
    if (with) amp_trace_compare(with, layer, kind, numbers, count, scale, &(*asked->found)[layer][kind]);
    if (asked->record) amp_trace_append(asked->record, layer, kind, numbers, count, 1);
}

static amp_trace_kind kind_of(const amp_param_desc *p)
{
    size_t length = strlen(p->name), ending = strlen("scales");
    if (p->decays) return AMP_TRACE_WEIGHTS;
    return length >= ending && !strcmp(p->name + length - ending, "scales") ? AMP_TRACE_SCALES
                                                                            : AMP_TRACE_BIASES;
}

/* Appends a parameter's gradient to l->whole. array: fp32, multiplied by the loss scale. */
static amp_status take_gradient(looker *l, int layer, int param, const float *array, amp_error *error)
{
    const amp_param_desc *p = &l->s->network.layers[layer].params[param];
    make_room(l, p->count);
    AMP_TRY(l->s->backend->download(l->s->backend, l->numbers, array, p->count * sizeof *l->numbers, error));
    amp_trace_append(&l->whole, layer, kind_of(p), l->numbers, p->count, 1 / l->s->scale);
    return AMP_OK;
}

/* ---- a convolution whose logistic is computed by the yolo layer after it ----
 *
 * Under AMP the convolution's output is x, in stock p = 1 / (1 + exp(-x)); both are compared as p. The deltas
 * of both layers are d/dx under AMP, d/dp in stock; both are compared as d/dx = p (1 - p) d/dp. */

static int gives_logits(const amp_layer_desc *d) { return d->yolo && d->yolo->before_logistic; }

static int is_squashed_later(const amp_network_desc *n, int layer)
{
    for (int i = layer + 1; i < n->count; i++)
        if (gives_logits(&n->layers[i]) && n->layers[i].inputs[0] == layer) return 1;
    return 0;
}

/* ---- AMP ---- */

static float nudged(float number, size_t at)
{
    return number * (amp_random_mix(at * AMP_RANDOM_STEP) & 1 ? 1 + AMP_NUDGE : 1 - AMP_NUDGE);
}

/* Replaces the tensor's numbers by those of `with`, multiplied by factor. alike: how many consecutive numbers
 * get the same nudge; 0: no nudge. A missing or differently sized `with` changes nothing. */
static amp_status feed(looker *l, amp_backend *b, const amp_tensor *t, const amp_trace_tensor *with,
                       size_t alike, float factor, amp_error *error)
{
    if (!with->numbers || with->count != amp_shape_count(t->shape)) return AMP_OK;
    for (size_t i = 0; i < with->count; i++)
        l->numbers[i] = alike ? nudged(with->numbers[i], i / alike) : with->numbers[i];
    amp_trace_convert(t, l->bytes, factor, l->numbers, NULL);
    return b->upload(b, t->data, l->bytes, amp_tensor_bytes(t), error);
}

/* The activation's slope as Darknet computes it from the output y; NaN if it is computed from the input. */
static double slope_at(amp_activation a, double y)
{
    switch (a) {
    case AMP_LOGISTIC: return (1 - y) * y;
    case AMP_LOGGY: return .5 * (1 - y) * (1 + y);
    case AMP_TANH: return 1 - y * y;
    case AMP_ELU: return y >= 0 ? 1 : y + 1;
    case AMP_SELU: return y >= 0 ? (double)AMP_SELU_SCALE : y + (double)AMP_SELU_ALPHA;
    default: return amp_gradient_wants_input(a) ? NAN : (double)amp_gradient((float)y, a);
    }
}

/* Returns amp_difference.flipped of a layer. numbers: its output in this pass; output and delta: those of the
 * reference. If AMP computes the slope from the input, Darknet's slope is off by the rounding error of the
 * output. Near an activation's limit, this error is large relative to the slope. */
static double flipped(const amp_layer_desc *d, const float *numbers, const amp_trace_tensor *output,
                      const amp_trace_tensor *delta)
{
    double some = 0, all = 0;
    amp_activation a = d->activation;
    if (isnan(slope_at(a, 0))) return 0;
    for (size_t i = 0; i < delta->count && delta->count == output->count; i++) {
        double given = (double)delta->numbers[i];
        double slope = slope_at(a, (double)output->numbers[i]);
        double moved = amp_gradient_wants_input(a) ? 0x1p-23 : slope_at(a, (double)numbers[i]) - slope;
        all += given * given * slope * slope;
        some += given * given * moved * moved;
    }
    return some > 0 ? all > 0 ? sqrt(some / all) : 1 : 0;
}

static amp_status see_tensor(looker *l, amp_backend *b, const amp_seen *seen, amp_trace_kind kind,
                             amp_error *error)
{
    const amp_tensor *t = &seen->tensor;
    float scale = kind == AMP_TRACE_DELTA ? l->s->scale : 1;
    if (l->seen[seen->layer][kind]++) return AMP_OK;
    make_room(l, amp_shape_count(t->shape));
    AMP_TRY(b->download(b, l->bytes, t->data, amp_tensor_bytes(t), error));
    amp_trace_convert(t, l->bytes, 1 / scale, NULL, l->numbers);
    int *flag = kind == AMP_TRACE_DELTA ? &l->overflowed : &l->hopeless;
    *flag |= !amp_all_finite(l->numbers, amp_shape_count(t->shape));
    int squashed = kind == AMP_TRACE_OUTPUT && is_squashed_later(&l->s->network, seen->layer);
    for (size_t i = 0; squashed && i < amp_shape_count(t->shape); i++)
        l->numbers[i] = (float)(1 / (1 + exp(-(double)l->numbers[i])));
    look(l, seen->layer, kind, l->numbers, amp_shape_count(t->shape));
    if (!l->asked->feeds || squashed) return AMP_OK;
    const amp_trace *reference = l->asked->reference;
    if (kind == AMP_TRACE_OUTPUT)
        (*l->asked->found)[seen->layer][kind].flipped =
            flipped(&l->s->network.layers[seen->layer], l->numbers,
                    amp_trace_at(reference, seen->layer, AMP_TRACE_OUTPUT),
                    amp_trace_at(reference, seen->layer, AMP_TRACE_DELTA));
    amp_subject_nudge nudge = l->asked->nudge;
    size_t alike = nudge == (kind == AMP_TRACE_OUTPUT ? AMP_NUDGE_OUTPUTS : AMP_NUDGE_DELTAS);
    if (nudge == AMP_NUDGE_CHANNELS && kind == AMP_TRACE_DELTA)
        alike = (size_t)t->shape.h * (size_t)t->shape.w;
    return feed(l, b, t, amp_trace_at(reference, seen->layer, kind), alike, scale, error);
}

/* Whether the layer is a loss whose output another layer reads. In Darknet, the loss's delta then includes
 * the gradient from that reader. AMP shows only the gradient of the loss itself. */
static int mixes_deltas(const amp_network_desc *n, int layer)
{
    int reads = 0;
    for (int i = layer + 1; i < n->count; i++) reads += amp_layer_reads(&n->layers[i], layer);
    return reads && n->layers[layer].kind->makes_loss;
}

static amp_status see(void *context, amp_backend *b, const amp_seen *seen, amp_error *error)
{
    looker *l = context;
    if (seen->layer < 0) return AMP_OK;
    switch (seen->kind) {
    case AMP_SEEN_OUTPUT: return see_tensor(l, b, seen, AMP_TRACE_OUTPUT, error);
    case AMP_SEEN_DELTA:
        if (mixes_deltas(&l->s->network, seen->layer)) return AMP_OK;
        return see_tensor(l, b, seen, AMP_TRACE_DELTA, error);
    case AMP_SEEN_GRADIENT:
        return take_gradient(l, seen->layer, l->seen[seen->layer][AMP_TRACE_WEIGHTS]++, seen->tensor.data,
                             error);
    default: return AMP_OK;
    }
}

/* ---- stock ---- */

static amp_status take_array(looker *l, int layer, amp_trace_kind kind, const float *array, size_t count,
                             amp_error *error)
{
    if (!array) return AMP_OK;
    make_room(l, count);
    AMP_TRY(l->s->backend->download(l->s->backend, l->numbers, array, count * sizeof *array, error));
    look(l, layer, kind, l->numbers, count);
    return AMP_OK;
}

static amp_status take_delta(looker *l, int layer, const amp_layer_arrays *a, amp_error *error)
{
    const amp_network_desc *n = &l->s->network;
    int logits = gives_logits(&n->layers[layer]) ? n->layers[layer].inputs[0]
               : is_squashed_later(n, layer) ? layer : -1;
    if (logits < 0) return take_array(l, layer, AMP_TRACE_DELTA, a->delta, a->count, error);
    make_room(l, a->count);
    float *p = (void *)l->bytes;
    amp_backend *b = l->s->backend;
    const float *output = amp_fork_layer_arrays(l->s->net, logits).output;
    AMP_TRY(b->download(b, p, output, a->count * sizeof *p, error));
    AMP_TRY(b->download(b, l->numbers, a->delta, a->count * sizeof *p, error));
    for (size_t i = 0; i < a->count; i++) l->numbers[i] *= p[i] * (1 - p[i]);
    look(l, layer, AMP_TRACE_DELTA, l->numbers, a->count);
    return AMP_OK;
}

/* If Darknet's own code is known to compute this output wrongly, overwrites it with the output in `corrects`,
 * so that the layers after it read realistic numbers. */
static amp_status correct(looker *l, int layer, const amp_layer_arrays *a, amp_error *error)
{
    if (!l->asked->corrects || !l->asked->wrong[layer][AMP_TRACE_OUTPUT] || !a->output) return AMP_OK;
    const amp_trace_tensor *with = amp_trace_at(l->asked->corrects, layer, AMP_TRACE_OUTPUT);
    if (!with->numbers || with->count != a->count) return AMP_OK;
    return l->s->backend->upload(l->s->backend, a->output, with->numbers, a->count * sizeof(float), error);
}

/* Takes the layer's tensors once they are complete: the output after forward, the delta before backward, the
 * gradients after backward. begins: 1 before the layer runs, 0 after. */
static amp_status take_layer(looker *l, int layer, int begins, amp_error *error)
{
    amp_layer_arrays a = amp_fork_layer_arrays(l->s->net, layer);
    const amp_layer_desc *d = &l->s->network.layers[layer];
    if (l->is_forward && !begins) AMP_TRY(correct(l, layer, &a, error));
    if (l->is_forward && !begins) return take_array(l, layer, AMP_TRACE_OUTPUT, a.output, a.count, error);
    if (l->is_forward) return AMP_OK;
    if (begins) return a.delta ? take_delta(l, layer, &a, error) : AMP_OK;
    for (int k = 0; k < d->param_count; k++)
        AMP_TRY(take_gradient(l, layer, k, *d->params[k].gradient_slot, error));
    return AMP_OK;
}

static void watch(void *context, int layer, int begins)
{
    looker *l = context;
    if (l->status == AMP_OK) l->status = take_layer(l, layer, begins, &l->error);
}

/* ---- statistics ---- */

/* Sets recurrent states and rolling statistics to 0 before a pass. A rolling statistic r then becomes (1-f)·0
 * + f·x for the batch's statistic x and the rolling factor f, so x is r / f. No training pass reads r. */
static amp_status clear_statistics(looker *l, amp_error *error)
{
    amp_subject *s = l->s;
    for (int i = 0; i < s->network.count; i++)
        for (int k = 0; k < s->network.layers[i].statistics_count; k++) {
            const amp_statistics_desc *d = &s->network.layers[i].statistics[k];
            make_room(l, d->count);
            memset(l->numbers, 0, d->count * sizeof(float));
            AMP_TRY(s->backend->upload(s->backend, d->array, l->numbers, d->count * sizeof(float), error));
        }
    return AMP_OK;
}

/* Appends the batch's statistics to l->whole. Rolling statistics come in pairs: means, then variances. Leaves
 * out recurrent states, which have no rolling factor. */
static amp_status take_statistics(looker *l, int layer, amp_error *error)
{
    const amp_layer_desc *d = &l->s->network.layers[layer];
    for (int k = 0, pair = 0; k < d->statistics_count; k++) {
        const amp_statistics_desc *s = &d->statistics[k];
        if (!(s->rolling_factor > 0)) continue;
        amp_trace_kind kind = pair++ % 2 ? AMP_TRACE_VARIANCES : AMP_TRACE_MEANS;
        make_room(l, s->count);
        AMP_TRY(l->s->backend->download(l->s->backend, l->numbers, s->array, s->count * sizeof(float),
                                        error));
        amp_trace_append(&l->whole, layer, kind, l->numbers, s->count, 1 / s->rolling_factor);
    }
    return AMP_OK;
}

/* ---- a pass ---- */

/* Sets the network's input to the source's images, multiplied by `factor` (0: nudged), and its labels. If the
 * source has no images or labels yet, the network keeps its own. Also resets the network's counters and the
 * random seed. */
static void put_input(amp_subject *s, float factor)
{
    const amp_subject_source *input = s->source;
    for (size_t i = 0; i < input->image_count; i++)
        s->images[i] = factor != 0 ? factor * input->images[i] : nudged(input->images[i], i);
    if (input->labels && s->labels) memcpy(s->labels, input->labels, input->label_count * sizeof *s->labels);
    amp_fork_set_counters(s->net, s->counters);
    srand(s->source->seed + 1); /* every pass gets the same dropout masks */
}

/* Discards what Darknet's layers print to stdout; returns the argument of restore_stdout. */
static int mute_stdout(void)
{
    fflush(stdout);
    int kept = dup(STDOUT_FILENO), nowhere = open("/dev/null", O_WRONLY);
    if (kept >= 0 && nowhere >= 0) dup2(nowhere, STDOUT_FILENO);
    if (nowhere >= 0) close(nowhere);
    return kept;
}

static void restore_stdout(int kept)
{
    fflush(stdout);
    if (kept < 0) return;
    dup2(kept, STDOUT_FILENO);
    close(kept);
}

static amp_status set_scale(amp_subject *s, float scale, amp_error *error)
{
    amp_scaler scaler = amp_scaler_defaults();
    scaler.dynamic = 0;
    scaler.scale = s->scale = scale;
    AMP_TRY(amp_scaler_init(&scaler, &scaler, error));
    s->engine->scaler = scaler;
    return AMP_OK;
}

static void forward_and_backward(amp_subject *s, float factor, int *is_forward, double *loss)
{
    int kept = mute_stdout();
    put_input(s, factor);
    amp_fork_begin_pass(s->net);
    *is_forward = 1;
    amp_fork_forward(s->net);
    *is_forward = 0;
    amp_fork_backward(s->net);
    if (loss) *loss = (double)amp_fork_cost(s->net);
    restore_stdout(kept);
}

/* Resets the engine after a pass, except for the loss scale. */
static amp_status forget(amp_subject *s, amp_error *error)
{
    if (!s->engine) return AMP_OK;
    AMP_TRY(amp_engine_start_anew(s->engine, error));
    return set_scale(s, s->scale, error);
}

static amp_status run(looker *l, amp_error *error)
{
    amp_subject *s = l->s;
    AMP_TRY(clear_statistics(l, error));
    if (s->engine) s->engine->observer = (amp_observer){ l, see };
    else amp_fork_watch_layers(s->net, watch, l, 1);
    forward_and_backward(s, l->asked->nudge != AMP_NUDGE_OUTPUTS, &l->is_forward, l->asked->loss);
    if (s->engine) s->engine->observer = (amp_observer){ 0 };
    else amp_fork_unwatch_layers(s->net);
    if (l->status != AMP_OK) {
        *error = l->error;
        return l->status;
    }
    for (int i = 0; i < s->network.count; i++) {
        AMP_TRY(take_statistics(l, i, error));
        for (int k = AMP_TRACE_WEIGHTS; k < AMP_TRACE_KINDS; k++) {
            amp_trace_tensor *t = amp_trace_at(&l->whole, i, (amp_trace_kind)k);
            if (!t->numbers) continue;
            l->overflowed |= k <= AMP_TRACE_SCALES && !amp_all_finite(t->numbers, t->count);
            look(l, i, (amp_trace_kind)k, t->numbers, t->count);
        }
    }
    return forget(s, error);
}

static void empty(const amp_subject_pass *asked, int layers)
{
    if (asked->record) {
        amp_trace_free(asked->record);
        amp_trace_make(asked->record, layers);
    }
    if (asked->found) {
        free(*asked->found);
        *asked->found = amp_allocated(calloc((size_t)layers + 1, sizeof **asked->found));
    }
}

static amp_status run_once(amp_subject *s, const amp_subject_pass *asked, int *overflowed, amp_error *error)
{
    int layers = s->network.count;
    looker l = { .s = s, .asked = asked };
    empty(asked, layers);
    amp_trace_make(&l.whole, layers);
    l.seen = amp_allocated(calloc((size_t)layers + 1, sizeof *l.seen));
    amp_status status = run(&l, error);
    *overflowed = l.overflowed && !l.hopeless;
    amp_trace_free(&l.whole);
    free(l.seen);
    free(l.numbers);
    free(l.bytes);
    return status;
}

/* Runs a pass without recording or comparing its tensors. */
static amp_status run_unseen(amp_subject *s, float factor, amp_error *error)
{
    int is_forward;
    forward_and_backward(s, factor, &is_forward, NULL);
    return forget(s, error);
}

amp_status amp_subject_run(amp_subject *s, const amp_subject_pass *asked, amp_error *error)
{
    int lowers = s->engine && amp_fork_state(s->net)->config->dtype == AMP_FP16;
    if (asked->feeds) AMP_TRY(run_unseen(s, OTHER_IMAGES, error));
    for (int overflowed;;) {
        AMP_TRY(run_once(s, asked, &overflowed, error));
        if (!overflowed || !lowers || s->scale / 2 < LEAST_SCALE) return AMP_OK;
        AMP_TRY(set_scale(s, s->scale / 2, error));
    }
}

static double seconds_of(const amp_subject *s)
{
    return amp_fork_view(s->net).on_gpu ? amp_clock_seconds() : amp_clock_read(CLOCK_PROCESS_CPUTIME_ID);
}

amp_status amp_subject_time(amp_subject *s, double *seconds, amp_error *error)
{
    double times[MOST_PASSES], all = 0;
    size_t count = 0;
    for (; count < LEAST_PASSES || (count < MOST_PASSES && all < SECONDS_OF_PASSES); all += times[count++]) {
        double began = seconds_of(s);
        int is_forward;
        forward_and_backward(s, 1, &is_forward, NULL);
        times[count] = seconds_of(s) - began;
        AMP_TRY(forget(s, error));
    }
    *seconds = amp_median(times, count);
    return AMP_OK;
}

/* ---- making a subject ---- */

/* Makes the network and loads its weights without their sidecar. Rounds `seen` down to a whole step. */
static struct network *load(const char *cfg, const char *dtype, const amp_subject_source *from)
{
    const char *requested = amp_this_program()->dtype;
    srand(from->seed);
    amp_fork_seed((unsigned)rand());
    amp_program_to_set()->dtype = dtype;
    struct network *net = amp_fork_make_network(cfg, cfg, 1);
    amp_program_to_set()->dtype = requested;
    if (from->weights) amp_fork_load_weights(net, from->weights);
    amp_fork_use_device(net);
    struct darknet_amp *amp = amp_fork_state(net);
    amp_view view = amp_fork_view(net);
    amp_counters counters = amp_fork_counters(net);
    counters.seen -= counters.seen % (size_t)(view.batch * view.subdivisions);
    amp_fork_set_counters(net, counters);
    if (!amp) return net;
    amp->resume->phase = AMP_FRESH;
    amp->summary_printed = 1; /* print no line about a resumed training, because its state is not used */
    return net;
}

static amp_status set_up(amp_subject *s, amp_error *error)
{
    struct darknet_amp *amp = amp_fork_state(s->net);
    amp_view view = amp_fork_view(s->net);
    amp_config none = { 0 };
    s->images = view.images;
    s->labels = view.labels;
    s->scale = 1;
    s->counters = amp_fork_counters(s->net);
    amp_fork_describe(s->net, amp ? amp->config : &none, &s->network);
    if (!amp) return (s->backend = amp_fork_backend(error)) ? AMP_OK : error->status;
    s->engine = amp->engine;
    s->backend = amp->engine->backend;
    s->engine->settings.recompute = (amp_recompute_settings){ 0 };
    return set_scale(s, amp->config->dtype == AMP_FP32 ? 1 : s->engine->scaler.scale, error);
}

/* stirs 1: draws biases and scales. stirs 0: moves each parameter by up to half of its value: in stock
 * directly, because Darknet's own update skips some layers; under AMP through the momentum, at the next
 * update. All subjects with the same network and seed get the same numbers. */
static amp_status draw(amp_subject *s, int stirs, amp_error *error)
{
    uint64_t state = stirs ? s->source->seed : ~(uint64_t)s->source->seed;
    float to_momentum = stirs ? 0 : (float)amp_fork_view(s->net).batch / amp_fork_rate(s->net);
    for (int i = 0; i < s->network.count; i++)
        for (int k = 0; k < s->network.layers[i].param_count; k++) {
            const amp_param_desc *p = &s->network.layers[i].params[k];
            amp_trace_kind kind = kind_of(p);
            if (stirs && kind == AMP_TRACE_WEIGHTS) continue;
            size_t bytes = p->count * sizeof(float);
            float *numbers = amp_allocated(malloc(bytes + 1));
            float *to = stirs || !s->engine ? p->master : *p->gradient_slot;
            amp_status status = s->backend->download(s->backend, numbers, p->master, bytes, error);
            for (size_t e = 0; e < p->count; e++) {
                float u = (float)(amp_random_mix(state += AMP_RANDOM_STEP) >> 40) / 0x1p24f, by = u - .5f;
                if (stirs) numbers[e] = kind == AMP_TRACE_SCALES ? .5f + u : .4f * u - .2f;
                else numbers[e] *= s->engine ? by * to_momentum : 1 + by;
            }
            if (status == AMP_OK) status = s->backend->upload(s->backend, to, numbers, bytes, error);
            free(numbers);
            AMP_TRY(status);
        }
    return AMP_OK;
}

static amp_status make_step(amp_subject *s, amp_error *error)
{
    if (!s->engine) return draw(s, 0, error);
    AMP_TRY(run_unseen(s, 1, error)); /* the pass copies the weights; the update must renew the copies */
    AMP_TRY(draw(s, 0, error));
    amp_fork_update(s->net);
    return forget(s, error);
}

amp_status amp_subject_open(amp_subject *s, const char *cfg, const char *dtype,
                            const amp_subject_source *from, amp_error *error)
{
    *s = (amp_subject){ .net = load(cfg, dtype, from), .source = from };
    amp_status status = set_up(s, error);
    if (status == AMP_OK && from->stirs) status = draw(s, 1, error);
    if (status == AMP_OK && from->stirs && s->engine) amp_engine_weights_changed(s->engine);
    if (status == AMP_OK && from->steps) status = make_step(s, error);
    if (status != AMP_OK) amp_subject_close(s);
    return status;
}

void amp_subject_close(amp_subject *s)
{
    if (!s->engine && s->backend) s->backend->destroy(s->backend);
    amp_network_desc_free(&s->network);
    amp_fork_free_network(s->net);
    *s = (amp_subject){ 0 };
}
