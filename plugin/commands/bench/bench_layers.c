/* See bench_layers.h. AMP's engine shows its tensors as they come into being, so the time between two is that of what lies
 * between. Darknet's own loops find their layers' functions in the layers: there, clocks take the functions' place. */
#define _POSIX_C_SOURCE 200809L
#include "bench_layers.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../host/pjreddie/device.h"
#include "../../host/pjreddie/pjreddie.h"

typedef void layer_function(struct layer, struct network);

struct amp_layer_clocks {
    network *net;
    int passes, room;
    double *forward, *backward, *casts; /* ms; [layer][pass]; casts are within forward */
    double last;                     /* when the last tensor was shown */
    int open;                        /* the layer whose backward has begun and shown no gradient yet; -1: none */
    int is_forward;                  /* a delta that is shown now is what a loss's forward has made */
    layer_function **stock_forward, **stock_backward; /* the layers' own, in stock */
};

/* Darknet calls its layers without a context. */
static amp_layer_clocks *driven;

double amp_bench_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void add(amp_layer_clocks *c, double *times, int layer, double ms)
{
    if (layer >= 0 && layer < c->net->n && c->passes < c->room) times[layer * c->room + c->passes] += ms;
}

/* ---- AMP ---- */

/* A delta is shown once all parts of it are summed, and before its layer's backward; gradients right after. So what passes before
 * a delta is the backward of the layer shown last if that has no parameters, else the sum. */
static void note(amp_layer_clocks *c, const amp_seen *seen, double ms)
{
    if (seen->kind == AMP_SEEN_IMAGE) return;
    if (c->is_forward) {
        add(c, c->forward, seen->layer, ms);
        if (seen->kind == AMP_SEEN_INPUT) add(c, c->casts, seen->layer, ms);
    } else if (seen->kind == AMP_SEEN_DELTA) {
        add(c, c->backward, c->open >= 0 ? c->open : seen->layer, ms);
        c->open = seen->layer;
    } else {
        add(c, c->backward, seen->layer, ms);
        c->open = -1;
    }
}

static amp_status see(void *context, amp_backend *backend, const amp_seen *seen, amp_error *error)
{
    amp_layer_clocks *c = context;
    AMP_TRY(backend->synchronize(backend, error));
    note(c, seen, amp_bench_now_ms() - c->last);
    c->last = amp_bench_now_ms();
    return AMP_OK;
}

/* ---- stock ---- */

static void run_timed(layer_function *function, double *times, layer l, network net)
{
    int index = net.index;
    amp_host_wait(&net);
    double began = amp_bench_now_ms();
    function(l, net);
    amp_host_wait(&net);
    add(driven, times, index, amp_bench_now_ms() - began);
}

static void timed_forward(layer l, network net) { run_timed(driven->stock_forward[net.index], driven->forward, l, net); }
static void timed_backward(layer l, network net) { run_timed(driven->stock_backward[net.index], driven->backward, l, net); }

static void take_place(amp_layer_clocks *c)
{
    int on_gpu = amp_host_on_gpu(c->net);
    for (int i = 0; i < c->net->n; i++) {
        layer *l = &c->net->layers[i];
        layer_function **forward = on_gpu ? &l->forward_gpu : &l->forward, **backward = on_gpu ? &l->backward_gpu : &l->backward;
        c->stock_forward[i] = *forward;
        c->stock_backward[i] = *backward;
        if (*forward) *forward = timed_forward;
        if (*backward) *backward = timed_backward;
    }
}

/* ---- both ---- */

amp_status amp_layer_clocks_create(network *net, int steps, amp_layer_clocks **out, amp_error *error)
{
    amp_layer_clocks *c = calloc(1, sizeof *c);
    size_t layers = (size_t)net->n + 1;
    *out = c;
    if (c) {
        *c = (amp_layer_clocks){ .net = net, .room = steps, .forward = calloc(layers * (size_t)steps, sizeof(double)),
                                 .backward = calloc(layers * (size_t)steps, sizeof(double)),
                                 .casts = calloc(layers * (size_t)steps, sizeof(double)), .open = -1,
                                 .stock_forward = calloc(layers, sizeof(layer_function *)),
                                 .stock_backward = calloc(layers, sizeof(layer_function *)) };
    }
    if (!c || !c->forward || !c->backward || !c->casts || !c->stock_forward || !c->stock_backward) {
        amp_layer_clocks_free(c);
        *out = NULL;
        return amp_fail(error, AMP_NO_MEMORY, "out of memory");
    }
    if (net->amp) {
        amp_observer observer = { c, see };
        amp_engine_set_observer(net->amp->engine, &observer);
        return AMP_OK;
    }
    driven = c;
    take_place(c);
    return AMP_OK;
}

void amp_layer_clocks_free(amp_layer_clocks *c)
{
    if (!c) return;
    for (int i = 0; c == driven && i < c->net->n; i++) {
        layer *l = &c->net->layers[i];
        int on_gpu = amp_host_on_gpu(c->net);
        *(on_gpu ? &l->forward_gpu : &l->forward) = c->stock_forward[i];
        *(on_gpu ? &l->backward_gpu : &l->backward) = c->stock_backward[i];
    }
    if (c == driven) driven = NULL;
    else if (c->net->amp) amp_engine_set_observer(c->net->amp->engine, NULL);
    free(c->forward);
    free(c->backward);
    free(c->casts);
    free(c->stock_forward);
    free(c->stock_backward);
    free(c);
}

void amp_layer_clocks_pass(amp_layer_clocks *c)
{
    amp_host_wait(c->net);
    c->last = amp_bench_now_ms();
    c->is_forward = 1;
    forward_network(c->net);
    amp_host_wait(c->net);
    c->is_forward = 0;
    c->last = amp_bench_now_ms();
    c->open = -1;
    backward_network(c->net);
    amp_host_wait(c->net);
    if (c->net->amp) add(c, c->backward, c->open, amp_bench_now_ms() - c->last);
    c->passes++;
}

/* Additions and multiplications of one forward, and the fp32 bytes of what it must read and write. */
static void count_work(const network *net, const layer *l, amp_bench_layer *out)
{
    double images = net->batch, weights = 0, products = 0;
    if (l->type == CONVOLUTIONAL || l->type == DECONVOLUTIONAL) {
        double pixels = l->type == CONVOLUTIONAL ? (double)l->out_h * l->out_w : (double)l->h * l->w;
        weights = l->nweights;
        products = weights * pixels;
    } else if (l->type == CONNECTED) {
        weights = products = (double)l->inputs * l->outputs;
    } else if (l->type == LOCAL) {
        weights = products = (double)l->size * l->size * l->c * l->n * l->out_h * l->out_w;
    } else if (l->type == RNN || l->type == GRU || l->type == LSTM || l->type == CRNN) {
        return; /* layers within layers */
    }
    out->operations = products > 0 ? 2 * products * images : (double)l->outputs * images;
    out->bytes = 4 * (weights + images * ((double)l->inputs + l->outputs));
}

static int is_misaligned(const layer *l)
{
    int groups = l->groups > 0 ? l->groups : 1;
    if (l->type == CONVOLUTIONAL || l->type == DECONVOLUTIONAL) return l->c / groups % 8 || l->n / groups % 8;
    return l->type == CONNECTED && (l->inputs % 8 || l->outputs % 8);
}

amp_bench_layer amp_layer_clocks_of(const amp_layer_clocks *c, int index)
{
    const layer *l = &c->net->layers[index];
    int passes = c->passes < c->room ? c->passes : c->room;
    amp_bench_layer out = { .index = index, .misaligned = is_misaligned(l),
                            .forward_ms = amp_bench_spread_of(c->forward + index * c->room, passes).median,
                            .cast_ms = amp_bench_spread_of(c->casts + index * c->room, passes).median,
                            .backward_ms = amp_bench_spread_of(c->backward + index * c->room, passes).median };
    const amp_plan *plan = c->net->amp ? amp_engine_plan(c->net->amp->engine) : NULL;
    if (plan) out.in_half = plan->nodes[index].products != AMP_FP32;
    snprintf(out.type, sizeof out.type, "%s", amp_host_type_name(l->type));
    count_work(c->net, l, &out);
    return out;
}
