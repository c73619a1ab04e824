/* Measures one dtype of `darknet amp bench`, in a separate program, so that its peak memory is that of the
 * dtype. It loads the .cfg that its parent made, and trains on one synthetic batch (-detect: predicts). With
 * a .data file it then trains on batches that it loads. It sends these lines to its parent
 * (host/program/turns.h):
 *
 *     shape WIDTH HEIGHT CHANNELS BATCH ON_GPU
 *   * warm LOSS                                  a warm-up step, which is not measured
 *   * skipped LOSS                               a skipped step, which is not measured
 *   * step FORWARD BACKWARD UPDATE               ms
 *     memory PEAK LOADED                         MB: the peak so far; a loader's memory for one pass
 *     loading WAIT COMPUTE                       seconds of a step that loads its images: waiting; the rest
 *   * pass                                       a pass that times layers or operations; not with -detect
 *     layer INDEX TYPE HALF MISALIGNED FORWARD BACKWARD OPERATIONS BYTES
 *     limits BYTES HALF FP32                     a GPU's limits per ms: bytes, operations in half and in fp32
 *     operation LAYER NAME CALLS MS BYTES PRODUCTS HALF    for one pass and one update; LAYER is - if none
 *     done STEPS                                 the number of measured steps
 *
 * After a line marked with a star, the child waits for its next turn. */
#include "bench.h"

#include "../cfg_copy.h"
#include "../../host/data/loader_memory.h"
#include "../../host/data/loading.h"
#include "../../host/network/needs.h"
#include "../../host/program/memory.h"
#include "../../host/network/state.h"
#include "../../host/program/turns.h"

#include <limits.h>
#include <string.h>

enum { LAYERS_MS = 2000, LEAST_PASSES = 3, MOST_PASSES = 15 };

typedef struct child {
    const amp_bench_request *request;
    struct network *net;
    struct darknet_amp *amp;       /* NULL in stock */
    int stopped;
    double step_ms;                /* time of the last step */
    long measured;                 /* number of measured steps */
    /* bytes of GPU memory: this program's use when its turn began; free memory at that time; this program's
     * peak use */
    double used, at_turn, peak;
} child;

/* ---- memory ---- */

/* Free memory of the GPU in bytes. The benchmark's other programs pause during this program's turn, so memory
 * that is taken during the turn is this program's. */
static double gpu_bytes_free(void)
{
    return amp_fork_device() >= 0 ? (double)amp_host_available_memory().bytes : 0;
}

static void memory_turn_begins(child *c) { c->at_turn = gpu_bytes_free(); }

static double memory_look(child *c)
{
    double used = c->used + c->at_turn - gpu_bytes_free();
    if (used > c->peak) c->peak = used;
    return used;
}

/* Sends a line and waits for the next turn. */
__attribute__((format(printf, 2, 3)))
static void end_turn(child *c, const char *format, ...)
{
    char line[128];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    c->used = memory_look(c);
    c->stopped |= amp_turns_yield("%s", line);
    memory_turn_begins(c);
}

/* ---- the network ---- */

/* A low learning rate keeps random weights from overflowing. One pass per step (subdivisions 1) is enough:
 * the update does the same work after one pass as after many. */
amp_status amp_bench_write_cfg(const amp_bench_request *r, int batch, int subdivisions, char *name,
                               amp_error *error)
{
    const amp_cfg_change changes[] = { { "batch", batch }, { "subdivisions", subdivisions }, { "burn_in", 0 },
        { "learning_rate", 1e-6 }, { "max_batches", 1e6 }, { "width", (double)r->size },
        { "height", (double)r->size } };
    return amp_cfg_copy_in_memory(r->cfg, changes, r->size ? 7 : 5, "this -batch and -size (most detectors "
                                  "want a multiple of 32)", name, error);
}

static amp_status load(child *c, amp_error *error)
{
    unsigned seed = darknet_amp_seed();
    srand(seed);
    c->net = amp_fork_make_network(c->request->cfg, c->request->cfg, 1);
    c->amp = amp_fork_state(c->net);
    amp_view v = amp_fork_view(c->net);
    if (!v.images || (double)v.inputs * v.batch > INT_MAX)
        return amp_fail(error, AMP_NO_MEMORY, "no memory for %d images of %d x %d x %d; try a smaller -batch",
                        v.batch, v.w, v.h, v.c);
    amp_fork_fill_random_batch(c->net, seed);
    amp_turns_send("shape %d %d %d %d %d", v.w, v.h, v.c, v.batch, v.on_gpu);
    return AMP_OK;
}

/* ---- steps ---- */

static void predict(child *c, double ms[AMP_BENCH_STEP])
{
    double began = amp_bench_now_ms();
    amp_fork_predict(c->net);
    c->step_ms = ms[AMP_BENCH_FORWARD] = amp_bench_now_ms() - began;
    ms[AMP_BENCH_BACKWARD] = ms[AMP_BENCH_UPDATE] = 0;
    memory_look(c);
}

/* Makes the step of train_network_datum. ms: the times of forward, backward and update. */
static void step(child *c, double ms[AMP_BENCH_STEP])
{
    if (c->request->detect) {
        predict(c, ms);
        return;
    }
    amp_fork_begin_pass(c->net);
    double began = amp_bench_now_ms();
    amp_fork_forward(c->net);
    double forward = amp_bench_now_ms();
    amp_fork_backward(c->net);
    double backward = amp_bench_now_ms();
    memory_look(c);
    double to_update = amp_bench_now_ms();
    amp_fork_update(c->net);
    ms[AMP_BENCH_FORWARD] = forward - began;
    ms[AMP_BENCH_BACKWARD] = backward - forward;
    ms[AMP_BENCH_UPDATE] = amp_bench_now_ms() - to_update;
    c->step_ms = ms[AMP_BENCH_FORWARD] + ms[AMP_BENCH_BACKWARD] + ms[AMP_BENCH_UPDATE];
}

int amp_bench_is_enough(const amp_bench_request *r, long steps, double spent_ms)
{
    enum { USUAL_MS = 8000, LEAST_STEPS = 7 };
    if (r->iters) return steps >= r->iters;
    return steps >= AMP_BENCH_MOST_STEPS || (steps >= LEAST_STEPS && spent_ms >= USUAL_MS);
}

static int was_skipped(const child *c) { return c->amp && c->amp->step_skipped; }

/* Measures steps, except those that fp16 skips until it has found its loss scale. */
static amp_status measure(child *c, amp_error *error)
{
    double ms[AMP_BENCH_STEP], spent = 0;
    int skipped = 0;
    for (int warm = AMP_BENCH_WARMUP; !c->stopped && !amp_bench_is_enough(c->request, c->measured, spent);) {
        step(c, ms);
        if (was_skipped(c)) {
            if (++skipped > AMP_BENCH_MOST_SKIPPED)
                return amp_fail(error, AMP_DIVERGED, AMP_BENCH_ALL_SKIPPED, skipped);
            end_turn(c, "skipped %g", (double)amp_fork_cost(c->net));
        } else if (warm-- > 0) {
            end_turn(c, "warm %g", (double)amp_fork_cost(c->net));
        } else {
            warm = 0;
            spent += c->step_ms;
            c->measured++;
            end_turn(c, "step %.9g %.9g %.9g", ms[AMP_BENCH_FORWARD], ms[AMP_BENCH_BACKWARD],
                     ms[AMP_BENCH_UPDATE]);
        }
    }
    amp_view v = amp_fork_view(c->net);
    amp_turns_send("memory %.9g %.9g", v.on_gpu ? c->peak / 1048576 : amp_host_peak_resident_mb(),
                   (double)amp_host_loaded_bytes(c->net, v.batch) / 1048576);
    return AMP_OK;
}

/* Makes steps as `detector train` does, while threads load the images of the next step. All steps are made in
 * one turn, because loading would continue during other programs' turns, and look faster than it is. */
static amp_status measure_loading(child *c, amp_error *error)
{
    enum { STEPS = AMP_WAITS_LEFT_OUT + AMP_WAITS_COUNTED };
    amp_batches *batches;
    amp_status status = AMP_OK;
    AMP_TRY(amp_batches_open(c->request->data, c->net, &batches, error));
    for (int i = 1; i <= STEPS; i++) {
        double ms[AMP_BENCH_STEP], began = amp_clock_seconds();
        if ((status = amp_batches_next(batches, i == STEPS, error)) != AMP_OK) break;
        double loaded = amp_clock_seconds(), load = amp_loading_seconds();
        amp_batches_put(batches, c->net, 0);
        step(c, ms);
        double ended = amp_clock_seconds();
        if (c->amp && !amp_fork_view(c->net).on_gpu) amp_loaders_adapt(loaded - began, ended - began, load);
        amp_turns_send("loading %.9g %.9g", loaded - began, ended - loaded);
    }
    amp_batches_close(batches);
    return status;
}

/* ---- clocks around the layers, which make a step slower ---- */

/* AMP's engine shows each tensor to an observer as soon as it is computed. So the time between two tensors is
 * the time of computing the second. In stock, the fork calls a function before and after each layer. */
typedef struct clocks {
    int layers, passes, pass;
    double *forward, *backward; /* ms; [layer][pass] */
    double last;                /* time when the last tensor was shown, or in stock when the layer began */
    int open;          /* the layer whose delta was shown last, if no gradient was shown since; -1: none */
    int is_forward;    /* 1: forward is running. Any delta that is shown then belongs to a loss layer, and its
                          time is part of that layer's forward */
} clocks;

/* Adds the time since `last` to the layer's time (-1: to none), and sets `last` to now. */
static void add(clocks *c, int layer)
{
    double now = amp_bench_now_ms(), *times = c->is_forward ? c->forward : c->backward;
    if (layer >= 0 && layer < c->layers) times[layer * c->passes + c->pass] += now - c->last;
    c->last = now;
}

/* Charges the time since the last shown tensor to a layer. Backward makes these steps for each layer: the
 * parts of its delta are summed; the delta is shown; its backward runs; its gradients, if it has any, are
 * shown.
 *
 * So the time until a gradient is shown is that of the layer's backward. The time until a delta is shown is
 * charged to
 *  - the layer whose delta was shown before, if it has no gradients (`open`): this time is that of its
 *    backward and of summing, which takes little;
 *  - the delta's own layer, in all other cases: this time is only that of summing the delta. */
static amp_status see(void *context, amp_backend *backend, const amp_seen *seen, amp_error *error)
{
    clocks *c = context;
    int is_delta = seen->kind == AMP_SEEN_DELTA && !c->is_forward;
    AMP_TRY(backend->synchronize(backend, error));
    add(c, seen->kind == AMP_SEEN_IMAGE ? -1 : is_delta && c->open >= 0 ? c->open : seen->layer);
    if (seen->kind != AMP_SEEN_IMAGE) c->open = is_delta ? seen->layer : -1;
    return AMP_OK;
}

static void see_stock(void *context, int layer, int begins)
{
    add(context, begins ? -1 : layer);
}

static void measure_pass(child *c, clocks *k)
{
    amp_fork_begin_pass(c->net);
    k->last = amp_bench_now_ms();
    k->is_forward = 1;
    amp_fork_forward(c->net);
    k->is_forward = 0;
    k->last = amp_bench_now_ms();
    k->open = -1;
    amp_fork_backward(c->net);
    if (c->amp) add(k, k->open);
    amp_fork_update(c->net);
}

static void send_layer(const child *c, const clocks *k, int i)
{
    amp_layer_work work = amp_fork_layer_work(c->net, i);
    const amp_plan *plan = c->amp ? c->amp->engine->active : NULL;
    amp_turns_send("layer %d %s %d %d %.9g %.9g %.9g %.9g", i, work.type,
                   plan && plan->nodes[i].products != AMP_FP32, work.misaligned,
                   amp_bench_spread_of(k->forward + i * k->passes, k->passes).median,
                   amp_bench_spread_of(k->backward + i * k->passes, k->passes).median, work.operations,
                   work.bytes);
}

static void measure_layers(child *c)
{
    double fitting = LAYERS_MS / c->step_ms;
    int passes = fitting < LEAST_PASSES ? LEAST_PASSES : fitting > MOST_PASSES ? MOST_PASSES : (int)fitting;
    int layers = amp_fork_view(c->net).layers;
    size_t room = ((size_t)layers + 1) * (size_t)passes;
    double *times = amp_allocated(calloc(2 * room, sizeof *times));
    clocks k = { .layers = layers, .passes = passes, .forward = times, .backward = times + room };
    if (c->amp) c->amp->engine->observer = (amp_observer){ &k, see };
    else amp_fork_watch_layers(c->net, see_stock, &k, 0);
    for (; !c->stopped && k.pass < passes; k.pass++) {
        measure_pass(c, &k);
        end_turn(c, "pass");
    }
    for (int i = 0; !c->stopped && i < layers; i++) send_layer(c, &k, i);
    if (c->amp) c->amp->engine->observer = (amp_observer){ 0 };
    else amp_fork_unwatch_layers(c->net);
    free(times);
}

/* Measures and sends the times of a GPU's operations, if the backend can measure them. */
static amp_status measure_operations(child *c, amp_error *error)
{
    amp_backend *b = c->amp ? c->amp->engine->backend : NULL;
    amp_operation_times t;
    double ms[AMP_BENCH_STEP];
    if (!b || !b->operation_times) return AMP_OK;
    AMP_TRY(b->operation_times(b, &t, error));
    for (int i = 0; !c->stopped && i < LEAST_PASSES; i++) {
        step(c, ms);
        if (i == LEAST_PASSES - 1) AMP_TRY(b->operation_times(b, &t, error));
        end_turn(c, "pass");
    }
    if (c->stopped) return AMP_OK;
    amp_turns_send("limits %.9g %.9g %.9g", t.bytes_per_ms, t.half_per_ms, t.fp32_per_ms);
    for (const amp_operation_time *o = t.rows; o < t.rows + t.count; o++)
        amp_turns_send("operation %s %s %.9g %.9g %.9g %.9g %d", o->layer[0] ? o->layer : "-", o->operation,
                       (double)o->calls / LEAST_PASSES, o->ms / LEAST_PASSES, o->bytes / LEAST_PASSES,
                       o->products / LEAST_PASSES, o->half);
    free(t.rows);
    return AMP_OK;
}

static amp_status measure_all(child *c, amp_error *error)
{
    AMP_TRY(load(c, error));
    AMP_TRY(measure(c, error));
    if (!c->stopped && c->request->data) AMP_TRY(measure_loading(c, error));
    if (!c->stopped && !c->request->detect) measure_layers(c);
    if (!c->stopped && !c->request->detect) AMP_TRY(measure_operations(c, error));
    if (!c->stopped) amp_turns_send("done %ld", c->measured);
    return AMP_OK;
}

amp_status amp_bench_child(const amp_bench_request *request, amp_error *error)
{
    child c = { .request = request };
    /* The turn begins before the network is made, to count the network's GPU memory. */
    if (amp_turns_ready()) return AMP_OK;
    memory_turn_begins(&c);
    amp_status status = measure_all(&c, error);
    amp_fork_free_network(c.net);
    return status;
}
