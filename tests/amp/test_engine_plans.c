/* What the engine keeps separate: plans of different shapes and modes, statistics and states that belong to
 * the weights, and what one step leaves for the next. */
#define _DEFAULT_SOURCE /* mkstemps */
#include "testing.h"

#include "engine_testing.h"
#include "poison_arena.h"
#include "test_folder.h"

static void pair(network **stock, network **ours, const char *layer_keys)
{
    *stock = parse_branched("", layer_keys, "off");
    *ours = parse_branched("", layer_keys, "fp32");
}

static void resize_both(network *stock, network *ours, int w, int h)
{
    resize_network(stock, w, h);
    resize_network(ours, w, h);
}

static void train_both(network *stock, network *ours, unsigned seed)
{
    train_step(stock, seed);
    train_step(ours, seed);
}

TEST(resize_away_and_back_without_a_pass)
{
    network *stock, *ours;
    pair(&stock, &ours, "");
    train_both(stock, ours, 1);
    resize_both(stock, ours, 24, 20);
    resize_both(stock, ours, 16, 16);
    assert_null(ours->workspace);
    train_both(stock, ours, 50);
    assert_null(ours->layers[0].output);
    assert_null(ours->layers[0].x);
    assert_masters_near(ours, stock, 1e-4);
    release(stock);
    release(ours);
}

TEST(every_shape_gets_its_own_plan)
{
    network *stock, *ours;
    pair(&stock, &ours, "");
    assert_true(predicted_distance(ours, stock, 3) < 1e-4); /* inference before any training */
    train_both(stock, ours, 1);
    for (int batch = 1; batch <= 2; batch++) {
        set_batch_network(stock, batch);
        set_batch_network(ours, batch);
        assert_true(predicted_distance(ours, stock, 5) < 1e-4);
        assert_int_equal(ours->amp->engine->active->key.batch, batch);
    }
    for (int i = 0; i < 40; i++) { /* twice as many shapes as plans are kept */
        int w = 16 + 4 * (i % 20 / 2), h = 16 + 8 * (i % 2);
        resize_both(stock, ours, w, h);
        assert_true(predicted_distance(ours, stock, (unsigned)i) < 1e-4);
        assert_int_equal(ours->amp->engine->active->key.h, h);
    }
    resize_both(stock, ours, 16, 16);
    train_both(stock, ours, 7);
    assert_masters_near(ours, stock, 1e-4);
    const amp_engine *engine = ours->amp->engine; /* only the active plan has copies of the weights */
    for (int i = 0; i < engine->plan_count; i++)
        assert_true((engine->plans[i]->weights_version != 0) == (engine->plans[i] == engine->active));
    release(stock);
    release(ours);
}

static void predict(network *net)
{
    feed(net, 1);
    network_predict(net, net->input);
}

/* Stock cannot resize it: the reference is stock made at that size. */
TEST(a_deconvolutional_layer_is_resized)
{
    static const char text[] = "[net]\nbatch=4\nsubdivisions=2\nwidth=%d\nheight=%d\nchannels=3\n"
        "learning_rate=0.0002\n" CONV(6, "") "[maxpool]\nsize=2\nstride=2\n"
        "[deconvolutional]\nfilters=5\nsize=4\nstride=2\npadding=1\nbatch_normalize=1\nactivation=leaky\n"
        "[route]\nlayers=-1,0\n" TAIL;
    char cfg[2048];
    snprintf(cfg, sizeof cfg, text, 16, 16);
    network *ours = parse(cfg, "fp32");
    train_step(ours, 1);
    for (int side = 24; side >= 8; side -= 8) {
        snprintf(cfg, sizeof cfg, text, side, side + 4);
        network *stock = parse(cfg, "off");
        copy_weights(ours, stock);
        resize_network(ours, side, side + 4);
        assert_null(ours->layers[2].output);
        assert_null(ours->layers[2].x);
        assert_int_equal(ours->layers[2].outputs, stock->layers[2].outputs);
        assert_true(predicted_distance(ours, stock, 3) < 1e-4);
        train_step(ours, 5);
        assert_int_equal(form_of(ours, 2), AMP_FORM_WIDE);
        release(stock);
    }
    release(ours);
}

/* Darknet cannot resize them, and its own batchnorm crashes on a CPU: the reference is a network made at that
 * size. */
TEST(layers_of_their_inputs_shape_are_resized)
{
    static const char text[] = "[net]\nbatch=4\nsubdivisions=2\nwidth=%d\nheight=%d\nchannels=3\n"
        "learning_rate=0.0002\n" CONV(6, "") "[batchnorm]\n[activation]\nactivation=leaky\n[dropout]\n"
        "probability=.3\n[maxpool]\nsize=2\nstride=2\n[batchnorm]\n[dropout]\n[activation]\n"
        "activation=relu\n[upsample]\nstride=2\n[route]\nlayers=-1,3,2\n" TAIL;
    static const int widths[] = { 24, 8, 32, 16 };
    char cfg[2048];
    snprintf(cfg, sizeof cfg, text, 16, 16);
    network *ours = parse(cfg, "fp32");
    train_step(ours, 1);
    for (int i = 0; i < 4; i++) {
        snprintf(cfg, sizeof cfg, text, widths[i], widths[i] + 4);
        network *made = parse(cfg, "fp32");
        copy_weights(ours, made);
        resize_network(ours, widths[i], widths[i] + 4);
        for (int k = 0; k < ours->n; k++) {
            assert_int_equal(ours->layers[k].outputs, made->layers[k].outputs);
            assert_int_equal(ours->layers[k].out_w, made->layers[k].out_w);
        }
        assert_true(predicted_distance(ours, made, 3) < 1e-4);
        train_step(ours, 5);
        release(made);
    }
    release(ours);
}

static int has_plan(const amp_engine *engine, const amp_plan_key *key)
{
    int i = 0;
    while (i < engine->plan_count && memcmp(&engine->plans[i]->key, key, sizeof *key)) i++;
    return i < engine->plan_count;
}

TEST(the_oldest_plan_goes)
{
    network *net = parse_branched("", "", "fp32");
    amp_plan_key used = { 2, 16, 16, 1, 0, 0, 0 }, old = { 2, 20, 16, 0, 0, 0, 0 };
    train_step(net, 1);
    for (int i = 1; i < 16; i++) {
        resize_network(net, 16 + 4 * i, 16);
        predict(net);
    }
    resize_network(net, 16, 16);
    train_step(net, 1);
    resize_network(net, 16, 24);
    predict(net);
    assert_true(has_plan(net->amp->engine, &used));
    assert_false(has_plan(net->amp->engine, &old));
    release(net);
}

TEST(an_anomaly_is_told_once)
{
    network *net = parse_branched("amp=1\ndebug=1\n", "", "bf16");
    amp_update_args args = { .batch = 4, .t = 2 };
    amp_step_report report;
    amp_error error;
    for (int step = 0; step < 2; step++) {
        feed(net, 3);
        if (step == 0) net->input[1] = NAN;
        both_passes(net);
        assert_int_equal(amp_engine_update(net->amp->engine, &args, 0, &report, &error), AMP_OK);
        assert_int_equal(report.anomaly.found, step == 0);
    }
    release(net);
}

/* A backward after inference, as in nightmare: uses rolling statistics, and adds the delta to existing
 * numbers. */
TEST(the_image_gets_its_gradient_at_inference)
{
    static const char text[] = "[net]\nbatch=2\nwidth=8\nheight=8\nchannels=3\n" CONV(4, "") CONV(4, "")
        "[convolutional]\nfilters=4\nsize=3\nstride=1\npad=1\nactivation=linear\n[cost]\ntype=sse\n";
    network *nets[2] = { parse(text, "off"), parse(text, "fp32") };
    float *deltas[2];
    int count = nets[0]->inputs * nets[0]->batch;
    assert_masters_near(nets[1], nets[0], 0);
    for (int k = 0; k < 2; k++) {
        network *net = nets[k];
        deltas[k] = malloc((size_t)count * sizeof *deltas[k]);
        for (int i = 0; i < count; i++) deltas[k][i] = 3;
        feed(net, 3);
        train_network_datum(net); /* a plan without the image's delta is made first */
        for (int i = 0; i < 2; i++)
            for (int c = 0; c < 4; c++) {
                net->layers[i].rolling_mean[c] = .1f * (float)c;
                net->layers[i].rolling_variance[c] = .5f + (float)c;
            }
        net->train = 0;
        net->delta = deltas[k];
        forward_network(net);
        backward_network(net);
        net->delta = NULL;
    }
    for (int i = 0; i < count; i++)
        if (fabs(deltas[1][i] - deltas[0][i]) > 1e-4)
            fail_msg("[%d]: %g, stock %g", i, deltas[1][i], deltas[0][i]);
    for (int k = 0; k < 2; k++) {
        free(deltas[k]);
        release(nets[k]);
    }
}

TEST(the_batch_may_grow)
{
    static const char text[] = "[net]\nbatch=1\nwidth=16\nheight=16\nchannels=3\n" CONV(8, "")
        "[convolutional]\nfilters=4\nsize=1\nstride=1\nactivation=linear\n";
    network *net = parse(text, "bf16");
    float *images = calloc((size_t)net->inputs * 8, sizeof *images);
    network_predict(net, images);
    set_batch_network(net, 8);
    float *out = network_predict(net, images);
    assert_ptr_equal(out, net->layers[1].output);
    for (int i = 0; i < 8 * net->outputs; i++) out[i] = 1; /* the whole output exists */
    free(images);
    release(net);
}

TEST(memory_is_shared_and_inference_has_no_deltas)
{
    network *net = parse_branched("", "", "bf16");
    train_step(net, 1);
    const amp_arena *arena = &net->amp->engine->active->arena;
    size_t sum = 0;
    for (int i = 0; i < arena->count; i++) sum += arena->requests[i].bytes;
    assert_true(arena->total < sum * 3 / 4);
    predict(net);
    assert_false(net->amp->engine->active->needs_delta[5]);
    release(net);
}

/* 69 half inputs, followed by one in fp32. */
TEST(every_input_of_a_long_route_counts)
{
    char text[2048] = NET("") CONV(2, "") CONV(2, "amp=0\n") "[route]\nlayers=";
    for (int k = 0; k < 69; k++) strcat(text, "0,");
    strcat(text, "1\n" TAIL);
    network *net = parse(text, "bf16");
    predict(net);
    amp_autocast route = net->amp->engine->active->autocast[2];
    assert_int_equal(route.form, AMP_FORM_WIDE);
    assert_int_equal(route.input, 69);
    release(net);
}

/* ---- shared deltas ---- */

#define SUM(from) "[shortcut]\nfrom=" #from "\nactivation=linear\n"
#define BARE(activation) \
    "[convolutional]\nfilters=8\nsize=3\nstride=1\npad=1\nactivation=" activation "\n"
#define NORMALIZATION "[normalization]\nsize=3\nalpha=.0001\nbeta=.75\nkappa=1\n"
#define HEAD "[yolo]\nmask=0,1\nanchors=2,3, 4,4\nclasses=2\nnum=2\nignore_thresh=.7\ntruth_thresh=1\n"

/* For shortcut s, which adds y and x: whether it shares its delta with y and x. ONE_FORM: only if everything
 * is in fp32. */
enum { ONE_FORM = 2 };
static const struct { const char *what, *layers; int s, x, of_y, of_x; } sums[] = {
    { "two blocks in a row, the upper one", CONV(8, "") CONV(8, "") CONV(8, "") SUM(-3) CONV(8, "") SUM(-2),
      5, 3, 1, 1 },
    { "two blocks in a row, the lower one", CONV(8, "") CONV(8, "") CONV(8, "") SUM(-3) CONV(8, "") SUM(-2),
      3, 0, 1, 1 },
    { "y without batch norm", CONV(8, "") BARE("relu") SUM(-2), 2, 0, 1, 1 },
    { "y that is connected", "[connected]\nbatch_normalize=1\noutput=64\nactivation=leaky\n"
      "[connected]\nbatch_normalize=1\noutput=64\nactivation=leaky\n" SUM(-2), 2, 0, 1, 1 },
    { "y that hands its delta on as it is", CONV(8, "") BARE("linear") SUM(-2), 2, 0, 1, 0 },
    { "y that is no convolution", CONV(8, "") "[activation]\nactivation=leaky\n" SUM(-2), 2, 0, 1, 0 },
    { "y that a route reads, too", CONV(8, "") CONV(8, "") SUM(-2) CONV(8, "") "[route]\nlayers=-1,1\n",
      2, 0, 0, 0 },
    { "x and y that are pinned", CONV(8, "amp=0\n") CONV(8, "amp=0\n") SUM(-2), 2, 0, 1, 1 },
    { "x in 16 bits, y in 32", CONV(8, "") CONV(8, "amp=0\n") SUM(-2), 2, 0, 1, ONE_FORM },
    { "x in 32 bits, y in 16", CONV(8, "amp=0\n") CONV(8, "") SUM(-2), 2, 0, ONE_FORM, ONE_FORM },
    { "x that a later layer reads, too", CONV(8, "") CONV(8, "") SUM(-2) CONV(8, "") "[route]\nlayers=-1,0\n",
      2, 0, 1, 0 },
    { "x that a host layer reads before y",
      CONV(8, "") NORMALIZATION CONV(8, "") SUM(-3), 3, 0, 1, 1 },
    { "x that a loss reads before y",
      "[convolutional]\nfilters=14\nsize=1\nstride=1\nactivation=linear\n" HEAD "[route]\nlayers=0\n"
      CONV(14, "") SUM(-4), 4, 0, 1, 0 },
    { "x that is added twice, in the upper sum", CONV(8, "") CONV(8, "") SUM(-2) CONV(8, "") SUM(-4),
      4, 0, 1, 1 },
    { "x that is added twice, in the lower sum", CONV(8, "") CONV(8, "") SUM(-2) CONV(8, "") SUM(-4),
      2, 0, 1, 0 },
    { "a sum that a host layer reads", CONV(8, "") CONV(8, "") SUM(-2) NORMALIZATION, 2, 0, 1, 1 },
    { "an activation", CONV(8, "") CONV(8, "") "[shortcut]\nfrom=-2\nactivation=leaky\n", 2, 0, 1, 0 },
    { "beta", CONV(8, "") CONV(8, "") "[shortcut]\nfrom=-2\nbeta=.5\nactivation=linear\n", 2, 0, 1, 0 },
    { "alpha", CONV(8, "") CONV(8, "") "[shortcut]\nfrom=-2\nalpha=.5\nactivation=linear\n", 2, 0, 0, 0 },
    { "shapes that differ", CONV(4, "") CONV(8, "") SUM(-2), 2, 0, 1, 0 },
};

/* Gives each layer's delta separate memory, which is freed with *own. Only until the next plan. */
static void part_deltas(network *net, void **own)
{
    const amp_plan *plan = net->amp->engine->active;
    for (int i = 0; i < plan->count; i++) {
        amp_value *value = &plan->values[i];
        amp_tensor delta = amp_value_delta(value, value->home);
        if (value->home == AMP_FORM_PLAIN || !delta.data) continue;
        own[i] = value->delta[value->home] = malloc(amp_tensor_bytes(&delta));
        assert_non_null(own[i]);
    }
}

/* Compares with a network whose deltas all have separate memory. In one of the two, unused memory is filled
 * with NaN. */
static void compare_sums(int k, const char *dtype, int segments)
{
    char text[4096];
    void *own[16] = { NULL };
    poison_arena poison;
    snprintf(text, sizeof text, NET("amp=1\nloss_scale=16\n") "%s" TAIL, sums[k].layers);
    network *net = parse(text, dtype), *control = parse(text, dtype);
    amp_recompute_settings settings = { .on = segments > 0, .segments = segments };
    net->amp->engine->settings.recompute = settings;
    copy_weights(net, control);
    poison_begin(&poison, net->amp->engine);
    for (unsigned step = 0; step < 3; step++) {
        train_step(net, 10 * step);
        train_step(control, 10 * step);
        assert_false(darknet_amp_skipped(net) || darknet_amp_skipped(control));
        if (step == 0) part_deltas(control, own);
    }
    assert_true(poison_end(&poison, net->amp->engine) > 0);
    const amp_value *values = net->amp->engine->active->values;
    amp_form form = values[sums[k].s].home;
    const void *of_s = values[sums[k].s].delta[form];
    assert_non_null(of_s);
    int of_y = values[sums[k].s - 1].delta[form] == of_s, of_x = values[sums[k].x].delta[form] == of_s;
    int whole = strcmp(dtype, "fp32") == 0, right = of_y == (sums[k].of_y == ONE_FORM ? whole : sums[k].of_y)
        && of_x == (sums[k].of_x == ONE_FORM ? whole : sums[k].of_x);
    int alike = are_alike(net, control);
    if (!right || !alike)
        fail_msg("%s, %s, %d segments: one delta: y's %d, x's %d; %s", sums[k].what, dtype, segments, of_y,
                 of_x, alike ? "the same weights" : "other weights than with two");
    for (int i = 0; i < 16; i++) free(own[i]);
    release(net);
    release(control);
}

TEST(a_sum_and_what_it_adds_share_a_delta_where_nobody_would_notice)
{
    for (int k = 0; k < (int)(sizeof sums / sizeof *sums); k++)
        for (int d = 0; d < 3; d++)
            for (int segments = 0; segments <= 3; segments += 3) compare_sums(k, dtype_names[d], segments);
}

/* ---- networks that only predict ---- */

/* Every way of folding batch norm: windows, strides, groups, flat layers, Winograd; fused and separate
 * activations; and a [batchnorm] layer, which is not folded. */
static const char folds[] =
    "[net]\nbatch=3\nwidth=12\nheight=10\nchannels=3\nlearning_rate=0.001\nmax_batches=100\n" CONV(16, "")
    CONV(16, "") "[convolutional]\nbatch_normalize=1\nfilters=12\nsize=2\nstride=2\ngroups=2\n"
    "activation=relu\n"
    "[convolutional]\nfilters=6\nsize=1\nstride=1\nactivation=leaky\n[batchnorm]\n"
    "[connected]\nbatch_normalize=1\noutput=20\nactivation=leaky\n"
    "[connected]\nbatch_normalize=1\noutput=9\nactivation=logistic\n"
    "[connected]\noutput=7\nactivation=linear\n[cost]\ntype=sse\n";
enum { FOLDED = 5, ROUNDINGS = 1 + 2 * 7 + 1 }; /* layers; roundings of image, weights and outputs,
                                                   batchnorm's output */

/* Statistics as in a trained network, with gains of .3 to 2. */
static void settle(network *net, unsigned seed)
{
    for (int i = 0; i < net->n; i++) {
        layer *l = &net->layers[i];
        for (int k = 0; l->rolling_mean && k < l->out_c; k++) {
            float *const to[] = { l->rolling_mean, l->rolling_variance, l->scales, l->biases };
            const float least[] = { -.3f, .5f, .5f, -.3f }, most[] = { .3f, 2, 1.5f, .3f };
            for (int a = 0; a < 4; a++) {
                seed = seed * 1664525u + 1013904223u;
                to[a][k] = least[a] + (most[a] - least[a]) * (float)(seed >> 8) / 16777216.f;
            }
        }
    }
    if (net->amp) darknet_amp_weights_changed(net);
}

/* In the plan that ran last. */
static int folded_layers(network *net)
{
    const amp_plan *plan = net->amp->engine->active;
    int count = 0;
    for (int i = 0; i < plan->count; i++) count += plan->nodes[i].folded;
    return count;
}

/* The outputs, with batch norm folded or not; owned by the caller. */
static float *outputs_of(network *net, int folded)
{
    size_t bytes = (size_t)net->outputs * net->batch * sizeof(float);
    float *out = malloc(bytes);
    feed(net, 8);
    net->amp->measures = !folded;
    memcpy(out, amp_host_predict(net, net->input), bytes);
    net->amp->measures = 0;
    return out;
}

/* The largest difference, as a share of the largest number of b. */
static double apart(const float *a, const float *b, int count)
{
    double difference = 0, size = 0;
    for (int i = 0; i < count; i++) {
        double d = fabs((double)a[i] - (double)b[i]), s = fabs((double)b[i]);
        if (!(d <= difference)) difference = isnan(d) ? INFINITY : d;
        if (s > size) size = s;
    }
    return difference / size;
}

/* In fp32 within 1e-5; in half as close to fp32 as that many roundings allow. Weights and statistics do not
 * change. */
TEST(batch_norm_is_folded_for_prediction_and_nothing_else_changes)
{
    static const struct { const char *dtype; double unit; } halves[] = { { "bf16", 0x1p-8 },
                                                                         { "fp16", 0x1p-11 } };
    network *wide = parse(folds, "fp32");
    settle(wide, 1);
    kept_state before = snapshot(wide);
    float *folded = outputs_of(wide, 1);
    assert_int_equal(folded_layers(wide), FOLDED);
    float *apart_from = outputs_of(wide, 0);
    assert_int_equal(folded_layers(wide), 0);
    int count = wide->outputs * wide->batch;
    assert_true(apart(folded, apart_from, count) <= 1e-5);
    assert_true(is_as_before(wide, before));
    for (int h = 0; h < 2; h++) {
        network *half = parse(folds, halves[h].dtype);
        copy_weights(wide, half);
        float *rounded = outputs_of(half, 1);
        assert_int_equal(folded_layers(half), FOLDED);
        double error = apart(rounded, apart_from, count);
        if (!(error <= ROUNDINGS * halves[h].unit)) fail_msg("%s: %g", halves[h].dtype, error);
        free(rounded);
        release(half);
    }
    free(folded);
    free(apart_from);
    release(wide);
}

/* Predictions between steps do not change a training, and from its first step on they fold nothing. */
TEST(folding_stays_out_of_a_training)
{
    for (int h = 0; h < 2; h++) {
        network *plain = parse(folds, h ? "bf16" : "fp32"), *asked = parse(folds, h ? "bf16" : "fp32");
        copy_weights(plain, asked);
        for (unsigned k = 0; k < 3; k++) {
            free(outputs_of(asked, 1));
            assert_int_equal(folded_layers(asked), k ? 0 : FOLDED);
            train_step(plain, k);
            train_step(asked, k);
        }
        assert_true(are_alike(plain, asked));
        release(plain);
        release(asked);
    }
}

/* The memory limit of checkpoint=auto is computed when the network is made, with a training's plan that is
 * only inspected. */
TEST(a_prediction_with_checkpoint_auto_is_no_training)
{
    network *net = parse_branched("amp=1\ncheckpoint=auto\n", "", "fp32");
    int count;
    free(outputs_of(net, 1));
    assert_false(net->amp->engine->trains);
    const amp_param *params = engine_params(net->amp->engine, &count);
    for (int i = 0; i < count; i++) assert_null(params[i].grad);
    release(net);
}

/* With a variance of 0 the weights are multiplied by 10^6, which is out of fp16's range. */
TEST(what_a_dtype_cannot_hold_is_not_folded)
{
    network *net = parse(folds, "fp16");
    settle(net, 1);
    net->layers[0].rolling_variance[3] = 0;
    darknet_amp_weights_changed(net);
    float *folded = outputs_of(net, 1);
    assert_int_equal(folded_layers(net), FOLDED - 1);
    assert_false(net->amp->engine->active->nodes[0].folded);
    free(folded);
    net->layers[0].rolling_variance[3] = 1; /* as if other weights were loaded */
    darknet_amp_weights_changed(net);
    free(outputs_of(net, 1));
    assert_int_equal(folded_layers(net), FOLDED);
    release(net);
}

static kept_state file_of(network *net)
{
    char name[] = "/tmp/engine-XXXXXX";
    kept_state s;
    close(mkstemp(name));
    save_weights(net, name);
    s.bytes = file_bytes(name, &s.size);
    unlink_pair(name);
    return s;
}

/* Saved weights are the masters, and saving does not change predictions. */
TEST(a_network_that_has_predicted_saves_its_own_weights)
{
    network *net = parse(folds, "bf16");
    settle(net, 1);
    kept_state before = file_of(net);
    float *first = outputs_of(net, 1);
    assert_true(same_states(file_of(net), before));
    float *again = outputs_of(net, 1);
    assert_memory_equal(first, again, (size_t)net->outputs * net->batch * sizeof *first);
    free(first);
    free(again);
    release(net);
}

/* Their results are compared with those of other programs; e2e_classifier and e2e_map_training do that. */
TEST(commands_that_measure_accuracy_are_known)
{
    static const struct { char *verb; int measures; } known[] = {
        { "valid", 1 }, { "valid10", 1 }, { "map", 1 }, { "recall", 1 }, { "test", 0 }, { "demo", 0 },
        { "predict", 0 }, { "train", 0 } };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        amp_host_note_command(3, (char *[]){ "darknet", "detector", known[i].verb });
        assert_int_equal(amp_this_program()->measures, known[i].measures);
    }
    amp_host_note_command(1, (char *[]){ "darknet" }); /* a program that uses Darknet as a library */
    assert_false(amp_this_program()->measures);
}

/* The copies, and the choice of layers to fold, follow the weights. */
TEST(new_weights_are_folded_anew)
{
    network *used = parse(folds, "bf16"), *other = parse(folds, "bf16");
    settle(used, 1);
    free(outputs_of(used, 1));
    settle(other, 2);
    copy_weights(other, used);
    float *a = outputs_of(used, 1), *b = outputs_of(other, 1);
    assert_memory_equal(a, b, (size_t)used->outputs * used->batch * sizeof *a);
    for (int k = 0; k < used->layers[0].nweights; k++) used->layers[0].weights[k] *= 2; /* one array alone */
    float *c = outputs_of(used, 1);
    assert_memory_not_equal(a, c, (size_t)used->outputs * used->batch * sizeof *a);
    free(a);
    free(b);
    free(c);
    release(used);
    release(other);
}

int main(void) { return run_listed_tests("tests", NULL, NULL); }
