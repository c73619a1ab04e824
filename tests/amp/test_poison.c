/* A skipped step leaves no trace, whichever tensor overflowed.
 *
 * Two copies of a network train on the same batches. One of them gets an additional batch, in which an
 * observer writes inf or NaN into one element of one tensor: each tensor of each layer in turn, forward and
 * backward, in the first or in the last subdivision. Afterwards every byte of its state must equal the
 * other's, which never saw that batch; and this must hold over the next steps too, so that differences hidden
 * in buffers that are not compared would show. If a layer swallows the poison (a max pool that chooses
 * another element, a dropout that drops it), the step is a normal one; then all state must be finite. */
#define _DEFAULT_SOURCE /* mkstemps */
#include "testing.h"

#include "engine_testing.h"
#include "listening.h"
#include "kernel_numbers.h"
#include "host/darknet/device.h"
#include "layer_networks.h"

enum { SHOWN = 512 };

/* Darknet prints each layer and loss, and AMP each skipped step: thousands of lines. */
static struct { int on; heard out, error; } quiet;

static void be_quiet(void)
{
    quiet.out = listen_to(1);
    quiet.error = listen_to(2);
    quiet.on = 1;
}

static void be_loud(void)
{
    if (!quiet.on) return;
    quiet.on = 0;
    free(end_listening(quiet.error));
    free(end_listening(quiet.out));
}

#define CHECK(condition, ...) do { if (!(condition)) { be_loud(); fail_msg(__VA_ARGS__); } } while (0)

/* ---- the observer that poisons ---- */

typedef struct target { amp_seen_kind kind; int layer; const char *name; } target;

typedef struct poison {
    target at;
    float value;
    size_t element;
    int armed, struck;
    target shown[SHOWN]; /* everything shown while recording */
    int count, recording;
} poison;

static amp_status see(void *context, amp_backend *b, const amp_seen *seen, amp_error *error)
{
    poison *p = context;
    (void)b;
    (void)error;
    if (p->recording) {
        assert_true(p->count < SHOWN);
        p->shown[p->count++] = (target){ seen->kind, seen->layer, seen->name };
    }
    if (!p->armed || seen->kind != p->at.kind || seen->layer != p->at.layer || strcmp(seen->name, p->at.name))
        return AMP_OK;
    set_number(seen->tensor.dtype, seen->tensor.data, p->element % amp_shape_count(seen->tensor.shape),
               p->value);
    p->armed = 0;
    p->struck++;
    return AMP_OK;
}

static void observe(network *net, poison *p)
{
    net->amp->engine->observer = (amp_observer){ p, see };
}

/* Every tensor of one subdivision. */
static void record(network *net, poison *p)
{
    p->recording = 1;
    observe(net, p);
    srand(3);
    feed(net, 3);
    both_passes(net);
    p->recording = 0;
    net->amp->engine->observer = (amp_observer){ 0 };
    int count;
    const amp_param *params = engine_params(net->amp->engine, &count);
    for (int i = 0; i < count; i++) memset(params[i].grad, 0, params[i].count * sizeof(float));
}

/* ---- steps and states ---- */

/* Dropout and others draw from rand(): equal batches get equal numbers. Returns the sum of losses. */
static double step(network *net, unsigned seed, poison *p, int subdivision)
{
    double loss = 0;
    srand(seed);
    for (int s = 0; s < net->subdivisions; s++) {
        feed(net, seed + (unsigned)s);
        if (p) p->armed = s == subdivision;
        loss += (double)train_network_datum(net);
    }
    return loss;
}

static void assert_equal_states(network *net, network *control, const char *when, const poison *p)
{
    amp_scaler a = net->amp->engine->scaler, b = control->amp->engine->scaler;
    int count;
    const amp_param *params = engine_params(net->amp->engine, &count);
    CHECK(are_alike(net, control), "%s, %g in %s of layer %d (kind %d): another state", when,
          (double)p->value, p->at.name, p->at.layer, (int)p->at.kind);
    CHECK(get_current_rate(net) == get_current_rate(control) && a.scale == b.scale, "%s: rate %g, scale %g",
          when, (double)get_current_rate(net), (double)a.scale);
    for (int i = 0; i < count; i++)
        for (size_t e = 0; e < params[i].count; e++)
            CHECK(params[i].grad[e] == 0, "%s: a gradient of layer %d was not dropped", when,
                  params[i].layer);
}

static void assert_finite(network *net, const poison *p)
{
    amp_network_desc d = described(net);
    for (int i = 0; i < d.count; i++) {
        const amp_layer_desc *l = &d.layers[i];
        for (int k = 0; k < l->param_count; k++)
            for (size_t e = 0; e < l->params[k].count; e++)
                CHECK(amp_is_finite(l->params[k].master[e])
                      && amp_is_finite((*l->params[k].gradient_slot)[e]),
                      "%g in %s of layer %d: reached %s of layer %d", (double)p->value, p->at.name,
                      p->at.layer, l->params[k].name, i);
        for (int k = 0; k < l->statistics_count; k++)
            for (size_t e = 0; e < l->statistics[k].count; e++)
                CHECK(amp_is_finite(l->statistics[k].array[e]), "%g in %s of layer %d: reached statistics of "
                      "layer %d", (double)p->value, p->at.name, p->at.layer, i);
    }
    amp_network_desc_free(&d);
}

/* ---- the property ---- */

typedef struct tally { int skipped, swallowed; } tally;

/* Darknet's own layers multiply the workspace's old contents by 0 before they use it, and NaN times 0 is
 * NaN. */
static void assert_clean_workspace(const network *net, const poison *p)
{
    const float *workspace = net->amp->memory->workspace;
    if (!workspace || amp_host_on_gpu(net)) return;
    for (size_t i = 0; i < net->amp->memory->workspace_bytes / sizeof *workspace; i++)
        CHECK(isfinite(workspace[i]),
              "%g in %s of layer %d: the workspace of Darknet's own layers keeps a %g",
              (double)p->value, p->at.name, p->at.layer, (double)workspace[i]);
}

static void poison_once(network *net, network *control, poison *p, unsigned seed, int subdivision, tally *t)
{
    amp_scaler before = net->amp->engine->scaler;
    unsigned long skipped = net->amp->skipped;
    p->struck = 0;
    observe(net, p);
    step(net, seed, p, subdivision);
    CHECK(p->struck, "%s of layer %d was not shown again", p->at.name, p->at.layer);
    if (net->amp->skipped > skipped) {
        amp_scaler after = net->amp->engine->scaler;
        CHECK(after.scale == (before.dynamic ? before.scale / 2 : before.scale), "loss scale %g after %g",
              (double)after.scale, (double)before.scale);
        before.skipped = after.skipped;
        net->amp->engine->scaler = before;
        assert_clean_workspace(net, p);
        t->skipped++;
    } else {
        CHECK(p->at.kind != AMP_SEEN_GRADIENT, "%s of layer %d: its gradient was %g, and the step was not "
              "skipped", p->at.name, p->at.layer, (double)p->value);
        observe(control, p);
        step(control, seed, p, subdivision);
        control->amp->engine->observer = (amp_observer){ 0 };
        t->swallowed++;
    }
    net->amp->engine->observer = (amp_observer){ 0 };
    p->armed = 0;
    assert_finite(net, p);
    assert_equal_states(net, control, "after the poisoned step", p);
    for (unsigned i = 1; i <= 2; i++) {
        double a = step(net, seed + 100 * i, NULL, 0), b = step(control, seed + 100 * i, NULL, 0);
        CHECK(a - a == 0 && a == b, "%g in %s of layer %d: loss %g in a later step, not %g", (double)p->value,
              p->at.name, p->at.layer, a, b);
        assert_equal_states(net, control, "some steps later", p);
    }
}

/* every: 1: each tensor with each value; 2: alternate the values. */
static void poison_network(int which, const char *net_keys, const char *dtype, int every, tally *t)
{
    network *net = make(which, net_keys, dtype), *control = make(which, net_keys, dtype);
    poison p = { 0 };
    copy_weights(net, control);
    record(net, &p);
    record(control, &p);
    p.count /= 2;
    darknet_amp_weights_changed(net); /* recording has changed the statistics */
    darknet_amp_weights_changed(control);
    step(net, 1, NULL, 0);
    step(control, 1, NULL, 0);
    assert_equal_states(net, control, "before any poison", &p);
    for (int i = 0; i < 2 * p.count; i++) {
        if (i % 2 != i / 2 % 2 && every == 2) continue;
        p.at = p.shown[i / 2];
        p.value = i % 2 ? NAN : INFINITY;
        p.element = (size_t)i * 7919;
        poison_once(net, control, &p, 1000u * (unsigned)(i + 1), (i / 2 + i) % 2 ? net->subdivisions - 1 : 0,
                    t);
    }
    release(net);
    release(control);
}

static void a_poisoned_step_leaves_no_trace(const char *dtype)
{
    for (int i = 0; i < NETWORKS; i++) {
        tally t = { 0, 0 };
        be_quiet();
        poison_network(i, "", dtype, strcmp(dtype, "bf16") ? 2 : 1, &t);
        poison_network(i, "adam=1\n", dtype, 2, &t);
        be_loud();
        print_message("%s, %s: %d steps skipped, %d went on with finite numbers\n", dtype, networks[i].name,
                      t.skipped, t.swallowed);
        assert_true(t.skipped > 2 * t.swallowed);
    }
}

TEST(fp32_poisoned_steps_leave_no_trace) { a_poisoned_step_leaves_no_trace("fp32"); }
TEST(bf16_poisoned_steps_leave_no_trace) { a_poisoned_step_leaves_no_trace("bf16"); }
TEST(fp16_poisoned_steps_leave_no_trace) { a_poisoned_step_leaves_no_trace("fp16"); }

/* ---- bad batches ---- */

/* Trains net on a batch whose first subdivision `spoil` has changed; the step must be skipped, blamed on
 * `tensor`, and leave no trace. */
static void check_spoilt_batch(int which, const char *dtype, void (*spoil)(network *), const char *tensor)
{
    network *net = make(which, "", dtype), *control = make(which, "", dtype);
    poison nothing = { .at = { .name = tensor } };
    copy_weights(net, control);
    for (unsigned i = 1; i < 3; i++) {
        step(net, i, NULL, 0);
        step(control, i, NULL, 0);
    }
    amp_scaler before = net->amp->engine->scaler;
    amp_step_report report;
    amp_error error;
    amp_update_args args = { .batch = net->batch, .learning_rate = .1f, .momentum = .9f, .t = *net->t + 1 };
    feed(net, 50);
    spoil(net);
    both_passes(net);
    feed(net, 51);
    both_passes(net);
    assert_int_equal(amp_engine_update(net->amp->engine, &args, 0, &report, &error), AMP_OK);
    assert_true(report.skipped);
    assert_string_equal(report.bad.tensor, tensor);
    amp_fork_forget_overflow(net->amp);
    net->amp->engine->scaler = before;
    assert_equal_states(net, control, "after a spoilt batch", &nothing);
    for (unsigned i = 5; i < 8; i++) {
        step(net, i, NULL, 0);
        step(control, i, NULL, 0);
        assert_equal_states(net, control, "some steps after a spoilt batch", &nothing);
    }
    release(net);
    release(control);
}

static void huge_truth(network *net) { net->truth[7] = 1e20f; }
static void nan_label(network *net) { net->truth[0] = NAN; }
static void infinite_label(network *net) { net->truth[net->truths + 3] = -INFINITY; }
static void huge_image(network *net)
{
    for (int i = 0; i < net->inputs; i++) net->input[i] *= i % 2 ? 1e25f : -1e25f;
}

/* The square of 1e20 is inf in fp32, but its gradient is finite. */
TEST(a_loss_that_is_not_finite_skips_no_step)
{
    for (int d = 0; d < 2; d++) {
        network *net = make(1, "", d ? "bf16" : "fp32");
        amp_step_report report;
        amp_error error;
        amp_update_args args = { .batch = net->batch, .learning_rate = 1e-10f, .t = 1 };
        feed(net, 50);
        huge_truth(net);
        both_passes(net);
        assert_false(isfinite(*net->cost));
        feed(net, 51);
        both_passes(net);
        assert_int_equal(amp_engine_update(net->amp->engine, &args, 0, &report, &error), AMP_OK);
        assert_int_equal(report.skipped, 0);
        assert_true(report.gradient_norm > 1e15 && isfinite(report.gradient_norm));
        assert_string_equal(report.bad_loss.tensor, "loss");
        assert_int_equal(report.bad_loss.layer, 3);
        assert_null(amp_spikes_problem(&net->amp->engine->spikes));
        assert_true(net->amp->engine->spikes.losses.values[0] > 1e37);
        step(net, 3, NULL, 0);
        assert_true(isfinite(*net->cost));
        release(net);
    }
}

TEST(running_statistics_that_overflow_skip_the_step)
{
    check_spoilt_batch(0, "fp32", huge_image, "rolling statistics");
}

/* Darknet's yolo and region layers use them as indices. */
TEST(labels_that_are_not_finite_skip_the_step)
{
    for (int which = 0; which < NETWORKS; which++) {
        check_spoilt_batch(which, "fp32", nan_label, "labels");
        check_spoilt_batch(which, "bf16", infinite_label, "labels");
        check_spoilt_batch(which, "fp16", nan_label, "labels");
    }
}

/* A caller that calls forward, backward and update itself may leave seen at 0. */
TEST(behaviour_24_a_caller_that_does_not_count_keeps_seen_at_zero)
{
    network *net = parse_branched("", "", "bf16");
    feed(net, 5);
    net->input[0] = INFINITY;
    both_passes(net);
    update_network(net);
    assert_int_equal(net->amp->skipped, 1);
    assert_int_equal(*net->seen, 0);
    release(net);
}

/* Each batch is spoilt once before it is trained on, through burn-in and two steps of the policy. */
TEST(behaviour_24_a_skipped_batch_does_not_advance_seen_burn_in_or_rate)
{
    static const char keys[] = "burn_in=3\npower=2\npolicy=steps\nsteps=5,7\nscales=.5,.5\ninit_scale=64\n"
        "amp=1\n";
    /* After step 1, 2, ... */
    static const float factors[] = { 1.f / 9, 4.f / 9, 1, 1, .5f, .5f, .25f, .25f, .25f };
    for (int d = 0; d < 3; d++) {
        network *net = parse_branched(keys, "", dtype_names[d]);
        for (size_t k = 1; k <= 9; k++) {
            size_t seen = *net->seen;
            float rate = get_current_rate(net);
            for (int s = 0; s < net->subdivisions; s++) {
                feed(net, 5);
                net->input[0] = s ? INFINITY : 0;
                train_network_datum(net);
            }
            assert_int_equal(net->amp->skipped, k);
            assert_int_equal(*net->seen, seen);
            assert_int_equal(get_current_batch(net), k - 1);
            assert_true(get_current_rate(net) == rate);
            train_step(net, 100u * (unsigned)k);
            assert_int_equal(net->amp->skipped, k);
            assert_int_equal(get_current_batch(net), k);
            assert_true(fabsf(get_current_rate(net) - .0002f * factors[k - 1]) < 1e-9f);
        }
        free(net->steps); /* free_network does not free them */
        free(net->scales);
        release(net);
    }
}

int main(void) { return run_listed_tests("tests", NULL, NULL); }
