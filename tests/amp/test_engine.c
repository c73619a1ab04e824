/* What the engine guarantees around a step, tested through Darknet's own interface: casts and half copies,
 * what ends a training, resizes, inference, and freed memory. Skipped steps: test_poison.c; optimizers:
 * test_optimizer.c. */
#define _DEFAULT_SOURCE /* mkstemps */
#include "testing.h"

#include <math.h>
#include <unistd.h>

#include "engine_testing.h"
#include "convolutional_layer.h"
#include "child.h"

/* ---- counting calls ---- */

static struct { amp_backend real; int casts, loads, checks, allocations, uploads_done; } counted;

static amp_status counting_cast(amp_backend *b, const amp_tensor *s, const amp_tensor *d, int accumulate,
                                amp_error *e)
{
    counted.casts++;
    return counted.real.cast(b, s, d, accumulate, e);
}

static amp_status counting_load(amp_backend *b, const amp_conv_weights *all, int count, int *failed,
                                amp_error *e)
{
    counted.loads += count;
    return counted.real.conv_load_weights(b, all, count, failed, e);
}

static amp_status counting_check(amp_backend *b, const amp_param *p, int count, float inverse, int *found,
                                 double *squares, amp_error *e)
{
    counted.checks++;
    return counted.real.check_gradients(b, p, count, inverse, found, squares, e);
}

static amp_status counting_allocate(amp_backend *b, size_t bytes, void **out, amp_error *e)
{
    counted.allocations++;
    return counted.real.allocate(b, bytes, out, e);
}

static amp_status counting_uploads_done(amp_backend *b, amp_error *e)
{
    counted.uploads_done++;
    return counted.real.uploads_done(b, e);
}

static void count_calls(network *net)
{
    amp_backend *b = net->amp->engine->backend;
    counted.real = *b;
    counted.casts = counted.loads = counted.checks = counted.allocations = counted.uploads_done = 0;
    b->uploads_done = counting_uploads_done;
    b->check_gradients = counting_check;
    b->allocate = counting_allocate;
    b->cast = counting_cast;
    b->conv_load_weights = counting_load;
}

TEST(behaviour_28_a_weight_is_cast_once_per_update)
{
    network *net = parse_branched("", "", "bf16");
    count_calls(net);
    train_step(net, 1); /* two forwards */
    assert_int_equal(counted.loads, 3);
    train_step(net, 9);
    train_step(net, 17);
    assert_int_equal(counted.loads, 9);
    release(net);
}

/* After any forward the host may overwrite what it copies to a device without waiting. */
TEST(every_forward_ends_when_its_uploads_are_done)
{
    network *net = parse_branched("", "", "bf16");
    count_calls(net);
    train_step(net, 1);
    assert_int_equal(counted.uploads_done, 2);
    network_predict(net, net->input);
    assert_int_equal(counted.uploads_done, 3);
    release(net);
}

/* ---- memory ---- */

/* The cost is Darknet's own, and reads layer 5's. */
static void assert_no_buffers(const network *net)
{
    for (int i = 0; i < 5; i++) {
        const layer *l = &net->layers[i];
        assert_false(l->output || l->delta || l->x || l->x_norm || l->indexes || l->workspace_size);
    }
    assert_null(net->workspace);
}

/* Given back layer by layer: a network that fits only under AMP can be made, and resized. */
TEST(layers_of_the_engine_have_no_buffers_of_darknets)
{
    for (int d = 0; d < 3; d++) {
        network *net = parse_branched("", "", dtype_names[d]);
        assert_no_buffers(net);
        assert_null(net->layers[5].output);
        train_step(net, 1);
        assert_no_buffers(net);
        assert_ptr_equal(net->output, net->layers[5].output);
        resize_network(net, 24, 20);
        assert_no_buffers(net);
        train_step(net, 9);
        release(net);
    }
}

/* ---- trainings that end ---- */

/* Trainings that diverge, each in its own process. */
static int diverge(const char *how)
{
    int fp16 = !strcmp(how, "fp16");
    network *net = parse_branched(fp16 ? "amp=1\nmin_scale=1024\ninit_scale=4096\n" : "", "",
                                  fp16 ? "fp16" : "bf16");
    train_step(net, 1);
    train_step(net, 2);
    if (!strcmp(how, "weights")) net->layers[1].weights[5] = NAN;
    for (int i = 0; i < 200 * net->subdivisions; i++) {
        feed(net, 1);
        if (strcmp(how, "weights")) net->input[0] = INFINITY;
        train_network_datum(net);
    }
    return 0;
}

static void collapse(const char *how, char *text, size_t size)
{
    const char *const arguments[] = { "test_engine", "diverge", how, NULL };
    assert_int_equal(this_program_again(arguments, text, size), 1);
}

TEST(overflow_for_ever_ends_training)
{
    static char text[65536];
    collapse("fp16", text, sizeof text);
    assert_non_null(strstr(text, "4096 -> 2048"));
    assert_non_null(strstr(text, "gradients stay inf or NaN at the smallest loss scale, 1024; the first inf "
                                 "or NaN was in the image (forward pass); last good step: 1; last saved: "
                                 "none yet; try a lower learning_rate"));
    collapse("bf16", text, sizeof text);
    assert_non_null(strstr(text, "gradients stay inf or NaN step after step at loss scale 1; the first inf "
                           "or NaN was in the image (forward pass); last good step: 2; "));
}

/* More steps would not help: the first skipped step is the last. */
TEST(weights_that_are_not_finite_end_training_at_once)
{
    static char text[65536];
    collapse("weights", text, sizeof text);
    assert_non_null(strstr(text, "weights are inf, NaN or beyond 1e19; found in the weights of layer 1 "
                           "[convolutional] (update); last good step: 2; "));
    const char *first = strstr(text, "skipped the step");
    assert_non_null(first);
    assert_null(strstr(first + 1, "skipped the step"));
}

/* ---- losses ---- */

/* In bf16 an output within 2^-9 of its limit is rounded to that limit. Its gradient is not 0, because it is
 * computed from the sums. The last layer of each network has one number, whose gradient is the cost's times
 * the slope. */
TEST(a_saturated_activation_still_has_a_gradient)
{
    static const struct { const char *activation; float sum, limit; double slope; } cases[] = {
        { "logistic", 7, 1, 9.102e-4 }, { "loggy", 7, 1, 1.8205e-3 }, { "tanh", 4, 1, 1.3409e-3 },
        { "elu", -7, -1, 9.1188e-4 }, { "selu", -7, -1.758f, 1.6032e-3 } };
    static const char *const layers[] = { "[convolutional]\nfilters=1\nsize=2\nstride=1\nactivation=%s\n",
        "[maxpool]\nsize=1\nstride=1\n[connected]\noutput=1\nactivation=%s\n",
        "[convolutional]\nfilters=1\nsize=2\nstride=1\nactivation=linear\n[activation]\nactivation=%s\n" };
    for (size_t i = 0; i < COUNT(cases) * COUNT(layers) * 2; i++) {
        size_t k = i % COUNT(cases);
        char cfg[512], layer_text[256];
        snprintf(layer_text, sizeof layer_text, layers[i / COUNT(cases) % COUNT(layers)],
                 cases[k].activation);
        snprintf(cfg, sizeof cfg, "[net]\nbatch=1\nwidth=2\nheight=2\nchannels=1\namp=1\ninit_scale=64\n"
                 "%s[cost]\ntype=sse\n", layer_text);
        network *net = parse(cfg, i % 2 ? "bf16" : "fp16");
        float scale = net->amp->engine->scaler.scale;
        int count;
        layer *l = &net->layers[net->n - 2];
        if (!l->biases) l--;
        memset(l->weights, 0, 4 * sizeof *l->weights);
        l->biases[0] = cases[k].sum;
        darknet_amp_weights_changed(net);
        feed(net, 5);
        net->truth[0] = -cases[k].limit;
        both_passes(net);
        const amp_param *params = engine_params(net->amp->engine, &count);
        double delta = 0, wanted = -2 * (double)cases[k].limit * cases[k].slope;
        for (int p = 0; p < count; p++)
            if (!strcmp(params[p].name, "biases")) delta = (double)params[p].grad[0] / (double)scale;
        if (!(fabs(delta - wanted) < .02 * fabs(wanted)))
            fail_msg("%s: %g instead of %g", layer_text, delta, wanted);
        release(net);
    }
}

/* ---- what a user of the library does ---- */

/* Predictions use copies of the weights. */
TEST(weights_changed_in_memory_between_predictions_count)
{
    static const char *const dtypes[] = { "bf16", "fp32" };
    for (int d = 0; d < 2; d++) {
        network *net = parse_branched("", "", dtypes[d]), *fresh = parse_branched("", "", dtypes[d]);
        size_t bytes = (size_t)net->outputs * sizeof(float);
        float *before = malloc(bytes);
        feed(net, 5);
        feed(fresh, 5);
        memcpy(before, network_predict(net, net->input), bytes);
        rgbgr_weights(net->layers[0]);
        copy_weights(net, fresh);
        const float *changed = network_predict(net, net->input);
        assert_memory_not_equal(changed, before, bytes);
        assert_memory_equal(changed, network_predict(fresh, fresh->input), bytes);
        free(before);
        release(net);
        release(fresh);
    }
}

/* ---- observers and debug=1 ---- */

typedef struct sights { int count; char text[128][48]; } sights;

static amp_status note(void *context, amp_backend *b, const amp_seen *seen, amp_error *error)
{
    sights *s = context;
    (void)b;
    (void)error;
    assert_true(s->count < 128);
    assert_true(seen->kind != AMP_SEEN_GRADIENT || (seen->tensor.shape.n == 1 && seen->tensor.shape.h == 1
                                                    && seen->tensor.shape.w == 1));
    snprintf(s->text[s->count++], sizeof s->text[0], "%d %s %s %s", seen->layer, seen->name,
             amp_dtype_name(seen->tensor.dtype),
             seen->kind == AMP_SEEN_GRADIENT ? "gradient"
             : amp_seen_in_forward(seen->kind) ? "forward" : "backward");
    return AMP_OK;
}

TEST(an_observer_sees_every_tensor_in_the_order_of_time)
{
    static const char *const expected[] = { "-1 image fp32 forward", "0 input bf16 forward",
        "0 output bf16 forward", "1 output bf16 forward", "2 output bf16 forward", "3 output bf16 forward",
        "4 output bf16 forward", "5 output bf16 forward", "5 output fp32 forward",
        "6 output fp32 forward", "6 delta fp32 backward", "5 delta bf16 backward", "5 weights fp32 gradient",
        "5 biases fp32 gradient", "4 delta bf16 backward", "3 delta bf16 backward", "2 delta bf16 backward",
        "1 delta bf16 backward", "1 weights fp32 gradient", "1 biases fp32 gradient",
        "1 scales fp32 gradient", "0 delta bf16 backward", "0 weights fp32 gradient",
        "0 biases fp32 gradient", "0 scales fp32 gradient" };
    enum { EXPECTED = sizeof expected / sizeof *expected };
    network *net = parse_branched("", "", "bf16");
    sights seen = { 0 };
    net->amp->engine->observer = (amp_observer){ &seen, note };
    feed(net, 1);
    train_network_datum(net);
    for (int i = 0; i < EXPECTED && i < seen.count; i++) assert_string_equal(seen.text[i], expected[i]);
    assert_int_equal(seen.count, EXPECTED);
    net->amp->engine->observer = (amp_observer){ 0 };
    train_network_datum(net);
    assert_int_equal(seen.count, EXPECTED);
    release(net);
}

/* Counts the calls of one step in which anomaly detection would show: without it, there are only the step's
 * own. */
TEST(debug_costs_nothing_when_it_is_off)
{
    for (int debug = 0; debug < 2; debug++) {
        network *net = parse_branched(debug ? "amp=1\ndebug=1\n" : "", "", "bf16");
        train_step(net, 1);
        count_calls(net);
        train_step(net, 9);
        if (debug) {
            assert_true(counted.checks >= 2 * 25 && counted.allocations >= 2 * 13 && counted.casts >= 2 * 16);
        } else {
            assert_int_equal(counted.checks, 0); /* the step's own is part of finish_step */
            assert_int_equal(counted.allocations, 0);
            /* The image to bf16, the last convolution to fp32, its delta to bf16; in two subdivisions. */
            assert_int_equal(counted.casts, 2 * 3);
        }
        release(net);
    }
}

TEST(debug_names_the_first_bad_tensor)
{
    network *net = parse_branched("amp=1\ndebug=1\n", "", "bf16");
    train_step(net, 1);
    amp_update_args args = { .batch = 4, .learning_rate = .01f, .t = 2 };
    amp_step_report report;
    amp_error error;
    feed(net, 3);
    net->train = 1;
    forward_network(net);
    net->layers[6].delta[3] = NAN; /* the cost's own delta */
    backward_network(net);
    assert_int_equal(amp_engine_update(net->amp->engine, &args, 0, &report, &error), AMP_OK);
    assert_true(report.skipped);
    assert_true(report.anomaly.found);
    assert_int_equal(report.anomaly.layer, 6);
    assert_string_equal(report.anomaly.pass, "backward");
    assert_string_equal(report.anomaly.tensor, "delta");
    assert_int_equal(report.anomaly.bad_images, 1);
    assert_int_equal(report.anomaly.image, 0);
    release(net);
}

/* ---- inference ---- */

TEST(behaviour_30_repeated_inference_makes_no_new_half_copies)
{
    network *net = parse_branched("", "", "bf16");
    feed(net, 1);
    network_predict(net, net->input);
    count_calls(net);
    for (int i = 0; i < 50; i++) network_predict(net, net->input);
    assert_int_equal(counted.loads, 0);
    assert_int_equal(counted.casts, 50 * 2); /* image → bf16, last convolution → fp32 */
    release(net);
}

int main(int argc, char **argv)
{
    if (argc > 2 && !strcmp(argv[1], "diverge")) return diverge(argv[2]);
    return run_listed_tests("tests", NULL, NULL);
}
