/* Networks for the engine's tests, made from a .cfg text and run through Darknet's own interface. Include
 * CMocka first. */
#ifndef ENGINE_TESTING_H
#define ENGINE_TESTING_H

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/darknet/room.h"
#include "engine_params.h"
#include "network.h"
#include "parser.h"
#include "tensor/half.h"

#define CONV(filters, more)                                                               \
    "[convolutional]\nbatch_normalize=1\nfilters=" #filters "\nsize=3\nstride=1\npad=1\n" \
    "activation=leaky\n" more
#define NET(more)                                                                                           \
    "[net]\nbatch=4\nsubdivisions=2\nwidth=16\nheight=16\nchannels=3\nlearning_rate=0.0002\nmomentum=0.9\n" \
    "decay=0.01\nmax_batches=100\n" more
#define TAIL "[convolutional]\nfilters=4\nsize=1\nstride=1\nactivation=linear\n[cost]\ntype=sse\n"

/* Three convolutions, a shortcut and a route: every value has a second consumer. */
static const char branched[] = NET("%s") CONV(8, "") CONV(8, "%s") "[shortcut]\nfrom=-2\nactivation=linear\n"
    "[maxpool]\nsize=2\nstride=1\n[route]\nlayers=-1,0\n" TAIL;

static const char *const dtype_names[] = { "fp32", "bf16", "fp16" };

/* free_network forgets the workspace; under AMP there is none. */
static inline void release(network *net)
{
    free(net->workspace);
    free_network(net);
}

/* Deletes a weights file and its sidecar. */
static inline void unlink_pair(const char *name)
{
    char sidecar[256];
    snprintf(sidecar, sizeof sidecar, "%s.amp", name);
    unlink(name);
    unlink(sidecar);
}

/* name: "....XXXXXX.cfg"; its Xs are replaced to make the name unique. */
static void write_cfg(char *name, const char *text)
{
    int file = mkstemps(name, 4);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
}

static inline network *parse(const char *text, const char *dtype)
{
    char name[] = "/tmp/engine-XXXXXX.cfg";
    write_cfg(name, text);
    char *argv[] = { "darknet", "-amp", (char *)dtype, NULL };
    if (dtype) darknet_amp_start(3, argv);
    else darknet_amp_start(1, argv);
    srand(5);
    network *net = parse_network_cfg(name);
    unlink(name);
    return net;
}

static inline network *parse_branched(const char *net_keys, const char *layer_keys, const char *dtype)
{
    char text[4096];
    snprintf(text, sizeof text, branched, net_keys, layer_keys);
    return parse(text, dtype);
}

static inline void feed(network *net, unsigned seed)
{
    for (int i = 0; i < net->inputs * net->batch; i++) {
        seed = seed * 1664525u + 1013904223u;
        net->input[i] = (float)(seed >> 8) / 16777216.0f;
    }
    for (int i = 0; i < net->truths * net->batch; i++) {
        seed = seed * 1664525u + 1013904223u;
        net->truth[i] = (float)(seed >> 8) / 16777216.0f;
    }
}

/* Forward and backward of a subdivision whose input is set; the caller makes the update. */
static inline void both_passes(network *net)
{
    net->train = 1;
    forward_network(net);
    backward_network(net);
}

/* One update: all subdivisions. */
static inline void train_step(network *net, unsigned seed)
{
    for (int s = 0; s < net->subdivisions; s++) {
        feed(net, seed + (unsigned)s);
        train_network_datum(net);
    }
}

static inline amp_network_desc described(network *net)
{
    amp_network_desc d;
    amp_config config = { 0 };
    amp_fork_describe(net, &config, &d);
    return d;
}

/* A byte-by-byte copy of a network's state. */
typedef struct kept_state { char *bytes; size_t size; } kept_state;

static void keep(kept_state *s, const void *data, size_t size)
{
    s->bytes = realloc(s->bytes, s->size + size);
    assert_non_null(s->bytes);
    memcpy(s->bytes + s->size, data, size);
    s->size += size;
}

/* Everything a skipped step must not change: masters, momentum, statistics, seen, t and Adam's moments. */
static inline kept_state snapshot(network *net)
{
    amp_network_desc d = described(net);
    kept_state s = { NULL, 0 };
    for (int i = 0; i < d.count; i++) {
        for (int k = 0; k < d.layers[i].param_count; k++) {
            const amp_param_desc *p = &d.layers[i].params[k];
            keep(&s, p->master, p->count * sizeof(float));
            keep(&s, *p->gradient_slot, p->count * sizeof(float));
        }
        for (int k = 0; k < d.layers[i].statistics_count; k++)
            keep(&s, d.layers[i].statistics[k].array, d.layers[i].statistics[k].count * sizeof(float));
    }
    amp_counters counters = amp_fork_counters(net);
    keep(&s, &counters.seen, sizeof counters.seen);
    keep(&s, &counters.t, sizeof counters.t);
    if (net->amp && net->adam) {
        int count;
        assert_int_equal(amp_parameters_take(&net->amp->engine->parameters, NULL), AMP_OK);
        const amp_param *params = engine_params(net->amp->engine, &count);
        for (int i = 0; i < count; i++) {
            keep(&s, params[i].m, params[i].count * sizeof(float));
            keep(&s, params[i].v, params[i].count * sizeof(float));
        }
    }
    amp_network_desc_free(&d);
    return s;
}

/* Frees both. */
static inline int same_states(kept_state a, kept_state b)
{
    int same = a.size == b.size && !memcmp(a.bytes, b.bytes, a.size);
    free(a.bytes);
    free(b.bytes);
    return same;
}

static inline int are_alike(network *a, network *b)
{
    return same_states(snapshot(a), snapshot(b));
}

/* Frees `before`. */
static inline int is_as_before(network *net, kept_state before)
{
    return same_states(snapshot(net), before);
}

/* Copies masters and statistics; the same seed does not make networks equal, since Darknet's rand_normal
 * keeps a spare number. */
static inline void copy_weights(network *from, network *to)
{
    amp_network_desc a = described(from), b = described(to);
    for (int i = 0; i < a.count; i++) {
        for (int k = 0; k < a.layers[i].param_count; k++)
            memcpy(b.layers[i].params[k].master, a.layers[i].params[k].master,
                   a.layers[i].params[k].count * sizeof(float));
        for (int k = 0; k < a.layers[i].statistics_count; k++)
            memcpy(b.layers[i].statistics[k].array, a.layers[i].statistics[k].array,
                   a.layers[i].statistics[k].count * sizeof(float));
    }
    amp_network_desc_free(&a);
    amp_network_desc_free(&b);
    if (to->amp) darknet_amp_weights_changed(to);
}

static inline void assert_masters_near(network *a, network *b, double tolerance)
{
    amp_network_desc x = described(a), y = described(b);
    for (int i = 0; i < x.count; i++)
        for (int k = 0; k < x.layers[i].param_count; k++) {
            double difference = 0, size = 0;
            const amp_param_desc *p = &x.layers[i].params[k], *q = &y.layers[i].params[k];
            for (size_t e = 0; e < p->count; e++) {
                difference += pow(p->master[e] - q->master[e], 2);
                size += pow(q->master[e], 2);
            }
            if (!(sqrt(difference) <= tolerance * sqrt(size) + 1e-7))
                fail_msg("%s of layer %d: %g of %g apart", p->name, i, sqrt(difference), sqrt(size));
        }
    amp_network_desc_free(&x);
    amp_network_desc_free(&y);
}

/* |a - b| / |b|, in the 2-norm; if both are 0, NaN, which no comparison accepts. */
static inline double relative_distance(const float *a, const float *b, size_t count)
{
    double difference = 0, size = 0;
    for (size_t e = 0; e < count; e++) {
        difference += pow((double)a[e] - (double)b[e], 2);
        size += pow((double)b[e], 2);
    }
    return sqrt(difference / size);
}

static inline double predicted_distance(network *ours, network *stock, unsigned seed)
{
    feed(stock, seed);
    float *image = malloc((size_t)stock->inputs * stock->batch * sizeof *image);
    memcpy(image, stock->input, (size_t)stock->inputs * stock->batch * sizeof *image);
    const float *b = network_predict(stock, image), *a = network_predict(ours, image);
    free(image);
    return relative_distance(a, b, (size_t)(stock->outputs * stock->batch));
}

/* The delta of its input that a loss computed by AMP has written, after forward and before backward. */
static inline amp_tensor made_delta(network *net, int layer)
{
    const amp_node *node = &net->amp->engine->active->nodes[layer];
    return amp_value_delta(node->inputs[0], node->form);
}

static inline amp_form form_of(network *net, int layer)
{
    return net->amp->engine->active->nodes[layer].form;
}

#endif
