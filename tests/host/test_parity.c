/* Every layer kind, forward and backward, against stock Darknet.
 *
 * Each file of tests/cfg is built twice in this process: once with AMP off, which is stock's code, and once
 * through the engine, from the same weights, fed the same image and truth. Compared are the cost, the output
 * of the network, every parameter's gradient, and the gradient of the image, which every layer of the
 * network has passed on, and which is added to what the image's delta held.
 *
 * Under dtype fp32 they agree to 1e-4 of the tensor's norm. Under bf16 and fp16 a network answers rounding
 * with errors that depend on the network (a max pool that chooses another pixel, a kink crossed), so the
 * yardstick is the network's own: stock, in fp32, with image and weights moved by random relative errors of
 * the format's size. A tensor may lie as far off as twice the largest of those movements (activations and
 * deltas are rounded as well), plus 8 roundings.
 *
 * Where stock's own CPU code leaves a layer out (gaps.h), the same replacement runs on both sides; its own
 * correctness is test_gaps.c's and test_gaps_recurrent.c's subject. */
#define _DEFAULT_SOURCE /* mkstemps */
#include "testing.h"

#include <glob.h>

#include "engine_testing.h"
#include "host/pjreddie/gaps.h"

static network *load(const char *cfg, const char *dtype)
{
    char *argv[] = { "darknet", "-amp", (char *)dtype, NULL };
    darknet_amp_start(3, argv);
    srand(42);
    return parse_network_cfg((char *)cfg);
}

/* Stock's functions by layer, behind the replacements for what stock leaves out on the CPU. */
static void (*stock_forward[64])(layer, network), (*stock_backward[64])(layer, network);

static void forward_completed(layer l, network net)
{
    l.forward = stock_forward[net.index];
    amp_gap_forward(l, net);
}

static void backward_completed(layer l, network net)
{
    l.backward = stock_backward[net.index];
    amp_gap_backward(l, net);
}

static void complete_stock(network *net)
{
    for (int i = 0; i < net->n && i < 64; i++) {
        layer *l = &net->layers[i];
        amp_gap_prepare(l);
        /* A route to it crashes stock. */
        if (l->type == CROP) l->delta = calloc((size_t)l->outputs * l->batch, sizeof(float));
        stock_forward[i] = l->forward;
        stock_backward[i] = l->backward;
        l->forward = forward_completed;
        l->backward = backward_completed;
    }
}

static float noise(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / 16777216.0f;
}

/* An image in [0,1), and a truth that every loss layer can read: boxes for detectors, numbers elsewhere. */
static void feed_readable(network *net, float *image, float *truth)
{
    unsigned state = 7;
    layer last = net->layers[net->n - 1];
    for (int i = 0; i < net->inputs * net->batch; i++) image[i] = noise(&state);
    for (int i = 0; i < net->truths * net->batch; i++) truth[i] = noise(&state);
    if (last.type == YOLO || last.type == REGION) {
        for (int b = 0; b < net->batch; b++) {
            float *t = truth + b * net->truths;
            memset(t, 0, (size_t)net->truths * sizeof *t);
            for (int k = 0; k < 2; k++) {
                float *box = t + k * 5;
                box[0] = .2f + .6f * noise(&state); box[1] = .2f + .6f * noise(&state);
                box[2] = .2f + .3f * noise(&state); box[3] = .2f + .3f * noise(&state);
                box[4] = (float)(k % last.classes);
            }
        }
    } else if (last.type == DETECTION) {
        int cell = 1 + last.coords + last.classes;
        for (int c = 0; c < net->batch * last.side * last.side; c++) {
            float *t = truth + c * cell;
            memset(t, 0, (size_t)cell * sizeof *t);
            if (c % 3) continue;
            t[0] = 1;
            t[1 + c % last.classes] = 1;
            for (int k = 0; k < last.coords; k++) t[1 + last.classes + k] = .3f + .4f * noise(&state);
        }
    } else if (last.type == ISEG) {
        int plane = last.w * last.h;
        for (int b = 0; b < net->batch; b++) {
            float *t = truth + b * last.truths;
            for (int k = 0; k < 90; k++) t[k * (plane + 1)] = -1;
            for (int k = 0; k < 2; k++) {
                t[k * (plane + 1)] = (float)(k % last.classes);
                for (int p = 0; p < plane; p++) t[k * (plane + 1) + 1 + p] = (float)(p % 2 == k);
            }
        }
    }
}

static void run(network *net, float *image_delta)
{
    float *own = net->input;
    net->delta = image_delta;
    srand(11); /* dropout */
    both_passes(net);
    net->delta = NULL;
    net->input = own;
}

/* |a - b| / max(|b|, floor); any non-finite number is a failure of its own. */
static double distance(const float *a, const float *b, size_t count, double floor)
{
    double difference = 0, size = 0;
    for (size_t i = 0; i < count; i++) {
        if (!amp_is_finite(a[i]) || !amp_is_finite(b[i])) return HUGE_VAL;
        difference += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        size += (double)b[i] * b[i];
    }
    size = sqrt(size);
    if (size < floor) size = floor;
    return size > 0 ? sqrt(difference) / size : sqrt(difference);
}

/* Root mean square. */
static double typical(const float *a, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += (double)a[i] * a[i];
    return sqrt(sum / (double)count);
}

/* What a pass over a network left behind: cost, output, the image's gradient, each parameter's gradient. */
enum { MAX_TENSORS = 128, PERTURBATIONS = 8 };
typedef struct outcome {
    int count; float *data[MAX_TENSORS]; size_t size[MAX_TENSORS]; double floor[MAX_TENSORS];
    char name[MAX_TENSORS][64];
} outcome;

static void record(outcome *o, const float *data, size_t count, float factor, double floor, const char *name,
                   int layer)
{
    assert_true(o->count < MAX_TENSORS);
    float *copy = malloc(count * sizeof *copy);
    for (size_t i = 0; i < count; i++) copy[i] = data[i] * factor;
    o->data[o->count] = copy;
    o->size[o->count] = count;
    o->floor[o->count] = floor;
    snprintf(o->name[o->count++], sizeof o->name[0], "%s of layer %d", name, layer);
}

static void forget(outcome *o)
{
    for (int i = 0; i < o->count; i++) free(o->data[i]);
    o->count = 0;
}

/* Forward and backward; gradients are taken from the engine's arrays or, in stock, from
 * weight_updates, and zeroed. */
static void observe(network *net, outcome *o)
{
    size_t pixels = (size_t)net->inputs * net->batch;
    float *image_delta = malloc(pixels * sizeof *image_delta);
    float factor = net->amp ? 1 / net->amp->engine->scaler.scale : 1;
    int count = 0, at = 0;
    o->count = 0;
    for (size_t i = 0; i < pixels; i++) image_delta[i] = 0x1p-6f;
    run(net, image_delta);
    for (size_t i = 0; i < pixels; i++) image_delta[i] -= 0x1p-6f;
    record(o, net->cost, 1, 1, 0, "cost", net->n - 1);
    record(o, net->output, (size_t)net->outputs * net->batch, 1, 0, "output", net->n - 1);
    record(o, image_delta, pixels, 1, 0, "the image's gradient", 0);
    const amp_param *params = net->amp ? engine_params(net->amp->engine, &count) : NULL;
    amp_network_desc all = described(net);
    for (int i = 0; i < all.count; i++) {
        double weights = 0;
        for (int k = 0; k < all.layers[i].param_count; k++, at++) {
            const amp_param_desc *d = &all.layers[i].params[k];
            float *gradient = params ? params[at].grad : *d->gradient_slot;
            /* A bias in front of a batch norm has gradient 0 but for rounding; so biases and scales are held
             * against the size of their weights' gradient, where that is larger. */
            if (d->decays) weights = typical(gradient, d->count) * factor;
            record(o, gradient, d->count, factor, weights * sqrt((double)d->count), d->name, i);
            memset(gradient, 0, d->count * sizeof *gradient);
        }
    }
    assert_true(!params || at == count);
    amp_network_desc_free(&all);
    free(image_delta);
}

static int all_finite(const outcome *o)
{
    for (int i = 0; i < o->count; i++)
        for (size_t e = 0; e < o->size[i]; e++) if (!amp_is_finite(o->data[i][e])) return 0;
    return 1;
}

/* As training would: while something overflows, the step is dropped and the scale backs off. What
 * overflowed must not stay behind anywhere: stock's gemm multiplies what lies in the workspace by 0, and
 * NaN times 0 is NaN. */
static void observe_without_overflow(network *net, outcome *o)
{
    int count;
    const amp_param *params = engine_params(net->amp->engine, &count);
    for (observe(net, o); !all_finite(o) && net->amp->engine->scaler.scale > 1; observe(net, o)) {
        forget(o);
        params[0].grad[0] = HUGE_VALF; /* observe has cleared the gradients */
        *net->seen += (size_t)net->batch * net->subdivisions;
        darknet_amp_update(net);
    }
}

static void copy_params(network *from, network *to, float error_size, unsigned *state)
{
    amp_network_desc a = described(from), b = described(to);
    for (int i = 0; i < a.count; i++)
        for (int k = 0; k < a.layers[i].param_count; k++) {
            const amp_param_desc *p = &a.layers[i].params[k], *q = &b.layers[i].params[k];
            for (size_t e = 0; e < p->count; e++)
                q->master[e] = p->master[e] * (1 + error_size * (2 * noise(state) - 1));
        }
    amp_network_desc_free(&a);
    amp_network_desc_free(&b);
}

/* The output at inference, from rolling statistics that training for long might have left. Recurrent layers
 * are left out: their state differs after the passes before. */
static void record_inference(network *net, outcome *o)
{
    for (int i = 0; i < net->n; i++) {
        layer *l = &net->layers[i];
        if (l->type == RNN || l->type == GRU || l->type == LSTM || l->type == CRNN) return;
        int channels = l->type == CONNECTED ? l->outputs : l->type == BATCHNORM ? l->c : l->n;
        for (int c = 0; l->rolling_mean && c < channels; c++) {
            l->rolling_mean[c] = .1f * (float)(c % 3);
            l->rolling_variance[c] = .5f + .2f * (float)(c % 4);
        }
    }
    feed_readable(net, net->input, net->truth);
    float *image = malloc((size_t)net->inputs * net->batch * sizeof *image);
    memcpy(image, net->input, (size_t)net->inputs * net->batch * sizeof *image);
    srand(12); /* crop */
    record(o, network_predict(net, image), (size_t)net->outputs * net->batch, 1, 0, "output at inference",
           net->n - 1);
    free(image);
}

/* Stock's own answer to roundings of size `unit`: per tensor, the largest movement. */
static void measure_movement(network *stock, const char *path, const outcome *base, float unit,
                             double movement[MAX_TENSORS])
{
    unsigned state = 99;
    memset(movement, 0, MAX_TENSORS * sizeof *movement);
    for (int p = 0; p < PERTURBATIONS && unit > 0; p++) {
        network *moved = load(path, "off");
        outcome o;
        copy_params(stock, moved, unit, &state);
        complete_stock(moved);
        feed_readable(moved, moved->input, moved->truth);
        for (int i = 0; i < moved->inputs * moved->batch; i++)
            moved->input[i] *= 1 + unit * (2 * noise(&state) - 1);
        observe(moved, &o);
        record_inference(moved, &o);
        for (int i = 0; i < o.count; i++) {
            double d = distance(o.data[i], base->data[i], base->size[i], base->floor[i]);
            if (d > movement[i]) movement[i] = d;
        }
        forget(&o);
        release(moved);
    }
}

/* Darknet's biases begin as 0, of which each is in its place. */
static void give_biases(network *net)
{
    for (int i = 0; i < net->n; i++) {
        const layer *l = &net->layers[i];
        int count = l->type == LOCAL ? l->outputs : l->type == DECONVOLUTIONAL ? l->n : 0;
        for (int k = 0; k < count; k++) l->biases[k] = .05f * (float)(k % 11 - 5);
    }
}

/* Prints the tensor that comes nearest to its limit (or is furthest beyond it); returns distance
 * / limit of that one. */
static double compare(const char *cfg, const char *dtype, float unit, double tolerance)
{
    unsigned state = 1;
    network *stock = load(cfg, "off"), *ours = load(cfg, dtype);
    assert_null(stock->amp);
    assert_non_null(ours->amp);
    give_biases(stock);
    copy_params(stock, ours, 0, &state);
    darknet_amp_weights_changed(ours);
    complete_stock(stock);
    feed_readable(stock, stock->input, stock->truth);
    feed_readable(ours, ours->input, ours->truth);
    outcome theirs, mine;
    double movement[MAX_TENSORS], worst = -1, worst_distance = 0;
    int which = 0, learns = 0;
    observe(stock, &theirs);
    observe_without_overflow(ours, &mine);
    assert_int_equal(theirs.count, mine.count);
    record_inference(stock, &theirs);
    record_inference(ours, &mine);
    measure_movement(stock, cfg, &theirs, unit, movement);
    for (int i = 0; i < theirs.count; i++) {
        double d = distance(mine.data[i], theirs.data[i], theirs.size[i], theirs.floor[i]),
            limit = tolerance + 2 * movement[i];
        if (d / limit > worst) {
            worst = d / limit;
            worst_distance = d;
            which = i;
        }
        if (i > 2) learns |= typical(theirs.data[i], theirs.size[i]) > 0;
    }
    print_message("%-4s %-32s %8.2e, %5.2f of its limit%s: %s%s\n", dtype, cfg, worst_distance, worst,
                  worst <= 1 ? "" : " FAR", theirs.name[which], learns ? "" : " (no parameter learns)");
    forget(&theirs);
    forget(&mine);
    release(stock);
    release(ours);
    return worst;
}

/* unit: the distance of neighbouring numbers of the format at 1, or 0 to hold to tolerance alone. */
static void compare_all(const char *dtype, float unit, double tolerance)
{
    glob_t files;
    const char *only = getenv("PARITY_ONLY");
    int failures = 0;
    assert_int_equal(glob("*.cfg", 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++)
        if (!only || strstr(files.gl_pathv[i], only))
            failures += !(compare(files.gl_pathv[i], dtype, unit, tolerance) <= 1);
    globfree(&files);
    assert_int_equal(failures, 0);
}

TEST(fp32_agrees_with_stock) { compare_all("fp32", 0, 1e-4); }
TEST(bf16_agrees_with_stock) { compare_all("bf16", 0x1p-7f, 8 * 0x1p-8); }
TEST(fp16_agrees_with_stock) { compare_all("fp16", 0x1p-10f, 8 * 0x1p-11); }

int main(void)
{
    if (chdir(networks_folder())) return 1;
    return run_listed_tests("tests", NULL, NULL);
}
