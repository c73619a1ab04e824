/* Runs the parts of a training step, and lets a watcher observe stock's layers: see fork_commands.h. */
#include "network.h"
#include "room.h"

/* ---- the parts of a step, as in train_network_datum and in the functions that it calls ---- */

void amp_fork_begin_pass(struct network *net)
{
    *net->seen += (size_t)net->batch;
    net->train = 1;
    amp_host_wait(net);
}

void amp_fork_forward(struct network *net)
{
    amp_own_forward(net);
    amp_host_wait(net);
}

void amp_fork_backward(struct network *net)
{
    amp_own_backward(net);
    amp_host_wait(net);
}

void amp_fork_update(struct network *net)
{
    amp_own_update(net);
    amp_host_wait(net);
}

void amp_fork_predict(struct network *net)
{
    amp_host_predict(net, net->input);
    amp_host_wait(net);
}

/* ---- watching layers ----
 *
 * Darknet's loops call each layer through the layer's function pointers. Watching replaces these pointers by
 * functions that call the watcher before and after the layer. */

typedef void layer_function(AMP_OWN_LAYER, amp_pass);

/* Kept per thread, because Darknet calls a layer's functions without a context. */
typedef struct amp_watched {
    const network *net;
    amp_layer_watcher *watcher;
    void *context;
    int fills_gaps;
    struct { layer_function *forward, *backward; } own[]; /* each layer's own functions */
} watched;

/* gaps.c calls the layer's own function through the layer's function pointer, which is restored during the
 * call. A dropout does not run through gaps.c: it works in place, so it has no separate input delta to which
 * gaps.c could add. */
static void run_watched(int is_forward, AMP_OWN_LAYER l, amp_pass pass)
{
    const watched *w = amp_this_thread()->watched;
    layer *called = AMP_OWN_LAYER_AT(l);
    layer_function **slot = is_forward ? &called->forward : &called->backward, *given = *slot;
    layer_function *own = is_forward ? w->own[pass.index].forward : w->own[pass.index].backward;
    int has_gap = w->fills_gaps && !amp_own_borrows_buffers(called);
    if (has_gap) *slot = own;
    amp_host_wait(w->net);
    w->watcher(w->context, pass.index, 1);
    if (!has_gap) own(l, pass);
    else if (is_forward) amp_gap_forward(*called, pass);
    else amp_gap_backward(*called, pass);
    amp_host_wait(w->net);
    w->watcher(w->context, pass.index, 0);
    *slot = given;
}

static void watched_forward(AMP_OWN_LAYER l, amp_pass pass) { run_watched(1, l, pass); }
static void watched_backward(AMP_OWN_LAYER l, amp_pass pass) { run_watched(0, l, pass); }

static layer_function **forward_of(layer *l, int on_gpu) { return on_gpu ? &l->forward_gpu : &l->forward; }
static layer_function **backward_of(layer *l, int on_gpu) { return on_gpu ? &l->backward_gpu : &l->backward; }

void amp_fork_watch_layers(struct network *net, amp_layer_watcher *watcher, void *context,
                           int fills_gaps)
{
    int on_gpu = amp_host_on_gpu(net);
    watched *w = amp_allocated(malloc(sizeof *w + (size_t)net->n * sizeof *w->own));
    *w = (watched){ .net = net, .watcher = watcher, .context = context, .fills_gaps = fills_gaps && !on_gpu };
    amp_this_thread()->watched = w;
    if (fills_gaps) amp_own_keep_deltas(net);
    for (int i = 0; i < net->n; i++) {
        if (w->fills_gaps) amp_gap_prepare(&net->layers[i]);
        layer_function **forward = forward_of(&net->layers[i], on_gpu);
        layer_function **backward = backward_of(&net->layers[i], on_gpu);
        w->own[i].forward = *forward;
        w->own[i].backward = *backward;
        if (*forward) *forward = watched_forward;
        if (*backward) *backward = watched_backward;
    }
}

void amp_fork_unwatch_layers(struct network *net)
{
    watched *w = amp_this_thread()->watched;
    for (int i = 0, on_gpu = amp_host_on_gpu(net); i < net->n; i++) {
        *forward_of(&net->layers[i], on_gpu) = w->own[i].forward;
        *backward_of(&net->layers[i], on_gpu) = w->own[i].backward;
    }
    amp_this_thread()->watched = NULL;
    free(w);
}

amp_layer_arrays amp_fork_layer_arrays(struct network *net, int i)
{
    layer *l = &net->layers[i];
    int on_gpu = amp_host_on_gpu(net);
    return (amp_layer_arrays){ *amp_host_output_of(l, on_gpu), *amp_host_delta_of(l, on_gpu),
                               (size_t)l->outputs * (size_t)net->batch };
}
