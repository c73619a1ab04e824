/* Times each layer. AMP's engine shows each tensor to an observer when it has been made, so the time between
 * two tensors is that of the work between them. For stock's layers, the fork calls a function before and
 * after each (amp_fork_watch_layers). */
#include "bench.h"

#include "../../host/network/state.h"
#include "../../host/program/clock.h"

struct amp_layer_clocks {
    struct network *net;
    amp_engine *engine;              /* NULL in stock */
    int layers, passes, room;
    double *forward, *backward; /* ms; [layer][pass] */
    double last;                     /* when the last tensor was shown, or the layer of stock began */
    /* the layer whose backward has begun and has not shown a gradient yet; -1: none */
    int open;
    int is_forward;                  /* in forward: a delta that is shown now was made by a loss */
};

double amp_bench_now_ms(void) { return 1e3 * amp_clock_seconds(); }

static void add(amp_layer_clocks *c, double *times, int layer, double ms)
{
    if (layer >= 0 && layer < c->layers && c->passes < c->room) times[layer * c->room + c->passes] += ms;
}

/* ---- AMP ---- */

/* A delta is shown when all its parts have been summed, before its layer's backward; gradients are shown
 * right after that. So the time before a delta belongs to the backward of the layer that was shown last, if
 * that has no parameters; else to the sum. */
static void note(amp_layer_clocks *c, const amp_seen *seen, double ms)
{
    if (seen->kind == AMP_SEEN_IMAGE) return;
    if (c->is_forward) {
        add(c, c->forward, seen->layer, ms);
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

static void see_stock(void *context, int layer, int begins)
{
    amp_layer_clocks *c = context;
    if (begins) c->last = amp_bench_now_ms();
    else add(c, c->is_forward ? c->forward : c->backward, layer, amp_bench_now_ms() - c->last);
}

/* ---- both ---- */

amp_layer_clocks *amp_layer_clocks_create(struct network *net, int steps)
{
    amp_layer_clocks *c = amp_allocated(calloc(1, sizeof *c));
    struct darknet_amp *amp = amp_fork_state(net);
    int layers = amp_fork_view(net).layers;
    size_t room = ((size_t)layers + 1) * (size_t)steps;
    double *times = amp_allocated(calloc(2 * room, sizeof *times));
    *c = (amp_layer_clocks){ .net = net, .engine = amp ? amp->engine : NULL, .layers = layers,
                             .room = steps, .open = -1, .forward = times, .backward = times + room };
    if (amp) amp_engine_set_observer(c->engine, &(amp_observer){ c, see });
    else amp_fork_watch_layers(net, see_stock, c, 0);
    return c;
}

void amp_layer_clocks_free(amp_layer_clocks *c)
{
    if (c->engine) amp_engine_set_observer(c->engine, NULL);
    else amp_fork_unwatch_layers(c->net);
    free(c->forward);
    free(c);
}

void amp_layer_clocks_pass(amp_layer_clocks *c)
{
    amp_fork_begin_pass(c->net);
    c->last = amp_bench_now_ms();
    c->is_forward = 1;
    amp_fork_forward(c->net);
    c->is_forward = 0;
    c->last = amp_bench_now_ms();
    c->open = -1;
    amp_fork_backward(c->net);
    if (c->engine) add(c, c->backward, c->open, amp_bench_now_ms() - c->last);
    c->passes++;
}

amp_bench_layer amp_layer_clocks_of(const amp_layer_clocks *c, int index)
{
    amp_layer_work work = amp_fork_layer_work(c->net, index);
    int passes = c->passes < c->room ? c->passes : c->room;
    int at = index * c->room;
    amp_bench_layer out = { .index = index, .misaligned = work.misaligned, .operations = work.operations,
                            .bytes = work.bytes,
                            .forward_ms = amp_bench_spread_of(c->forward + at, passes).median,
                            .backward_ms = amp_bench_spread_of(c->backward + at, passes).median };
    const amp_plan *plan = c->engine ? amp_engine_plan(c->engine) : NULL;
    if (plan) out.in_half = plan->nodes[index].products != AMP_FP32;
    snprintf(out.type, sizeof out.type, "%s", work.type);
    return out;
}
