/* The effect of a skipped step, a change of the loss scale, frozen layers, clip and clip_norm on parameters
 * and their history. */
#define _DEFAULT_SOURCE /* mkstemps */
#include "testing.h"

#include <float.h>

#include "optimizer_testing.h"

/* ---- skipped steps ---- */

static const float poisons[] = { INFINITY, -INFINITY, NAN };

static int has_history(const amp_param *p)
{
    for (size_t e = 0; e < p->count; e++)
        if (p->m ? p->m[e] != 0 && p->v[e] != 0 : p->momentum[e] != 0) return 1;
    return 0;
}

/* Poisons each array whose name contains `which`, one at a time, at its first, middle or last element. The
 * rate is low because random truths make some of these networks diverge. */
static int skip_with_each(const char *kind, const char *solver, const char *which)
{
    char keys[128];
    snprintf(keys, sizeof keys, "learning_rate=.0000001\n%s", solver);
    network *net = load(kind, keys, "", "fp32");
    int count, poisoned = 0;
    const amp_param *params = engine_params(net->amp->engine, &count);
    for (int k = 0; k < count; k++) {
        const amp_param *p = &params[k];
        const size_t places[] = { 0, p->count / 2, p->count - 1 };
        if (!strstr(p->name, which)) continue;
        train_step(net, 100u * (unsigned)k);
        assert_true(has_history(p)); /* state must exist to be preserved */
        kept_state before = snapshot(net);
        unsigned long skipped = net->amp->skipped;
        gradients_of_step(net, 100u * (unsigned)k + 50);
        p->grad[places[k % 3]] = poisons[k / 3 % 3];
        update_network(net);
        if (net->amp->skipped != skipped + 1)
            fail_msg("%s, layer %d, %s: the step was not skipped", kind, p->layer, p->name);
        assert_true(is_as_before(net, before));
        uint32_t left = 0;
        for (int i = 0; i < count; i++)
            for (size_t e = 0; e < params[i].count; e++) left |= amp_float_bits(params[i].grad[e]);
        assert_int_equal(left, 0);
        poisoned++;
    }
    release(net);
    return poisoned;
}

TEST(behaviour_09_sgd_skip_leaves_weights_and_momentum_bit_unchanged)
{
    for (size_t k = 0; k < COUNT(kinds); k++) assert_true(skip_with_each(kinds[k], "", "") >= 4);
}

/* t is among what snapshot() holds. */
TEST(behaviour_10_adam_skip_leaves_m_v_and_t)
{
    for (size_t k = 0; k < COUNT(kinds); k++) assert_true(skip_with_each(kinds[k], "adam=1\n", "") >= 4);
}

/* Darknet's shortcut has no weights. */
TEST(behaviour_13_batchnorm_scales_and_biases_are_in_the_check)
{
    static const struct {
        const char *kind; int scales, biases;
    } table[] = { { "convolutional_batchnorm", 5, 6 }, { "connected", 1, 5 }, { "batchnorm", 2, 5 },
#ifndef DARKNET_AMP_ALEXEYAB /* see optimizer_testing.h */
        { "deconvolutional", 1, 5 }, { "crnn", 3, 7 },
#endif
    };
    for (size_t k = 0; k < COUNT(table); k++) {
        int scales = skip_with_each(table[k].kind, "", "scales"),
            biases = skip_with_each(table[k].kind, "", "biases");
        if (scales != table[k].scales || biases != table[k].biases)
            fail_msg("%s: %d arrays of scales and %d of biases were checked, not %d and %d", table[k].kind,
                     scales, biases, table[k].scales, table[k].biases);
    }
}

#ifndef DARKNET_AMP_ALEXEYAB /* which has no arrays for frozen layers: e2e/alexeyab_training.sh */
/* ---- frozen layers ---- */

/* Compares the results of three updates. Where every processor has fused multiply-add (aarch64), the compiler
 * uses it in stock's update, whose weights may then differ by one unit per update, and by the decay's
 * rounding. */
static void assert_alike(const float *ours, const float *stock, int count)
{
#ifdef __FP_FAST_FMAF
    for (int i = 0; i < count; i++)
        assert_true(fabsf(ours[i] - stock[i]) <= 4 * FLT_EPSILON * fabsf(stock[i]));
#else
    assert_memory_equal(ours, stock, (size_t)count * sizeof *ours);
#endif
}

/* Stock's update still decays what stopbackward freezes, and so does AMP: weights change exactly as in stock,
 * and only by decay. */
TEST(behaviour_14_frozen_layers_are_out_of_the_check)
{
    network *ours = load("stopbackward", "decay=.05\n", "", "fp32"),
        *stock = load("stopbackward", "decay=.05\n", "", "off");
    int count, stop = -1, frozen = 0;
    for (int i = 0; i < ours->n; i++) if (ours->layers[i].stopbackward) stop = i;
    assert_true(stop > 0);
    copy_weights(ours, stock);
    const amp_param *params = engine_params(ours->amp->engine, &count);
    float first = ours->layers[stop].weights[0];
    for (unsigned t = 0; t < 3; t++) {
        gradients_of_step(ours, 10 * t);
        for (int i = 0; i < count; i++)
            for (size_t e = 0; e < params[i].count && params[i].layer <= stop; e++, frozen++)
                if (amp_float_bits(params[i].grad[e]))
                    fail_msg("layer %d, %s has a gradient", params[i].layer, params[i].name);
        update_network(ours);
        train_step(stock, 10 * t);
    }
    assert_true(frozen > 0);
    for (int i = 0; i < ours->n; i++) /* no delta below a frozen layer could be inf */
        assert_int_equal(ours->amp->engine->active->nodes[i].computes_backward, i > stop);
    assert_true(ours->layers[stop].weights[0] != first);
    for (int i = 0; i <= stop; i++) {
        assert_alike(ours->layers[i].weights, stock->layers[i].weights, ours->layers[i].nweights);
        assert_alike(ours->layers[i].biases, stock->layers[i].biases, ours->layers[i].n);
    }
    release(ours);
    release(stock);
}

#endif

/* ---- loss scale, standalone batchnorm ---- */

static kept_state histories(network *net)
{
    int count;
    const amp_param *params = engine_params(net->amp->engine, &count);
    kept_state s = { NULL, 0 };
    for (int i = 0; i < count; i++) {
        keep(&s, params[i].master, params[i].count * sizeof(float));
        keep(&s, params[i].momentum, params[i].count * sizeof(float));
    }
    return s;
}

/* In fp32 a power of two passes through backward exactly, so a training with another scale is the same
 * training. */
TEST(behaviour_15_a_scale_change_never_alters_momentum)
{
    static const float scales[] = { 1, 1024, 0.25f, 65536, 65536, 2 };
    network *net = parse_branched("amp=1\nloss_scale=1\n", "", "fp32"),
        *control = parse_branched("amp=1\nloss_scale=1\n", "", "fp32");
    copy_weights(net, control);
    for (unsigned t = 0; t < COUNT(scales); t++) {
        amp_scaler scaler = net->amp->engine->scaler;
        scaler.scale = scales[t];
        kept_state before = histories(net);
        net->amp->engine->scaler = scaler;
        assert_true(same_states(histories(net), before));
        train_step(net, 10 * t);
        train_step(control, 10 * t);
        assert_true(same_states(histories(net), histories(control)));
    }
    release(net);
    release(control);
}

TEST(behaviour_16_a_standalone_batchnorm_really_updates)
{
    network *net = load("batchnorm", "momentum=0\n", "", "bf16");
    int batchnorms = 0;
    float scales[8], biases[8], scale_gradients[8], bias_gradients[8];
    for (int i = 0; i < net->n; i++) {
        layer *l = &net->layers[i];
        if (l->type != BATCHNORM) continue;
        batchnorms++;
        assert_true(l->c <= 8);
        memcpy(scales, l->scales, (size_t)l->c * sizeof *scales);
        memcpy(biases, l->biases, (size_t)l->c * sizeof *biases);
        gradients_of_step(net, 5);
        memcpy(scale_gradients, param_at(net, l->scales)->grad, (size_t)l->c * sizeof *scales);
        memcpy(bias_gradients, param_at(net, l->biases)->grad, (size_t)l->c * sizeof *biases);
        double rate = (double)get_current_rate(net) / net->batch;
        update_network(net);
        for (int c = 0; c < l->c; c++) {
            assert_true(l->scales[c] != scales[c] && l->biases[c] != biases[c]);
            assert_true(fabs((double)l->scales[c] - (double)scales[c] - rate * (double)scale_gradients[c]) <
                        1e-6);
            assert_true(fabs((double)l->biases[c] - (double)biases[c] - rate * (double)bias_gradients[c]) <
                        1e-6);
        }
    }
    assert_int_equal(batchnorms, 2);
    release(net);
}

/* ---- clip_norm and clip ---- */

static double norm_of_scaled_gradients(network *net)
{
    int count;
    const amp_param *params = engine_params(net->amp->engine, &count);
    double squares = 0;
    for (int i = 0; i < count; i++)
        for (size_t e = 0; e < params[i].count; e++)
            squares += (double)params[i].grad[e] * (double)params[i].grad[e];
    return sqrt(squares);
}

/* By definition, scaled gradients are clipped at max_norm × scale and then unscaled; the resulting step does
 * not depend on the scale. */
TEST(behaviour_18_clip_norm_comes_after_unscaling)
{
    static const struct { const char *keys; double scale; } table[] = { { "loss_scale=1\n", 1 },
        { "loss_scale=4096\n", 4096 }, { "loss_scale=1000\n", 1000 }, { "loss_scale=.03\n", (double).03f } };
    const double clip_norm = .02;
    kept_state of_scale[2]; /* the first two scales, which are powers of two */
    network *start = NULL;
    for (size_t k = 0; k < COUNT(table); k++) {
        char text[2048];
        snprintf(text, sizeof text, "[net]\nbatch=4\nsubdivisions=2\nwidth=16\nheight=16\nchannels=3\n"
                 "learning_rate=.01\nmomentum=1\ndecay=0\nmax_batches=9\namp=1\nclip_norm=.02\n%s"
                 CONV(8, "") CONV(8, "") TAIL, table[k].keys);
        network *net = parse(text, "fp32");
        if (!start) start = parse(text, "fp32");
        copy_weights(start, net);
        int count;
        const amp_param *params = engine_params(net->amp->engine, &count);
        gradients_of_step(net, 5);
        double batch = net->batch * net->subdivisions, norm = norm_of_scaled_gradients(net),
            bound = clip_norm * table[k].scale * batch;
        assert_true(norm > 3 * bound); /* it does clip */
        double *want[16];
        for (int i = 0; i < count; i++) {
            want[i] = calloc(params[i].count, sizeof(double));
            for (size_t e = 0; e < params[i].count; e++)
                want[i][e] = (double)params[i].grad[e] * (bound / norm) / table[k].scale;
        }
        update_network(net);
        /* With momentum 1 and no history, the momentum is the gradient that was used. */
        for (int i = 0; i < count; i++) {
            assert_near("clip_norm", &params[i], "momentum", params[i].momentum, want[i], 1e-6);
            free(want[i]);
        }
        if (k < 2) of_scale[k] = histories(net);
        release(net);
    }
    assert_true(same_states(of_scale[0], of_scale[1]));
    release(start);
}

#ifndef DARKNET_AMP_ALEXEYAB /* it has no deconvolutional layer */
static const char clipped[] = "[net]\nbatch=2\nsubdivisions=1\nwidth=6\nheight=6\nchannels=3\n"
    "learning_rate=.01\nmomentum=.9\ndecay=0\nmax_batches=10\nclip=.05\n%s" CONV(6, "")
    "[deconvolutional]\nfilters=4\nsize=2\nstride=2\nactivation=leaky\n"
    "[local]\nfilters=3\nsize=3\nstride=1\npad=1\nactivation=leaky\n[connected]\noutput=5\n"
    "activation=linear\n[cost]\ntype=sse\n";

static int outside(const float *weights, size_t count)
{
    int n = 0;
    for (size_t e = 0; e < count; e++) n += !(fabsf(weights[e]) <= .05f);
    return n;
}

static void check_clip(const char *solver, const char *dtype)
{
    char text[2048];
    snprintf(text, sizeof text, clipped, solver);
    network *net = parse(text, dtype);
    int count, at_the_bound = 0;
    const amp_param *params = engine_params(net->amp->engine, &count);
    layer *conv = &net->layers[0];
    assert_true(outside(conv->weights, (size_t)conv->nweights) > 0);

    gradients_of_step(net, 5); /* a skipped step does not clip */
    params[0].grad[3] = INFINITY;
    float *before = malloc((size_t)conv->nweights * sizeof *before);
    memcpy(before, conv->weights, (size_t)conv->nweights * sizeof *before);
    update_network(net);
    assert_int_equal(net->amp->skipped, 1);
    assert_memory_equal(before, conv->weights, (size_t)conv->nweights * sizeof *before);
    free(before);

    train_step(net, 9);
    for (int i = 0; i < count; i++) {
        const amp_param *p = &params[i];
        if (p->layer == 0 && !strcmp(p->name, "weights")) {
            assert_int_equal(outside(p->master, p->count), 0);
            for (size_t e = 0; e < p->count; e++) at_the_bound += fabsf(p->master[e]) == .05f;
            assert_true(at_the_bound > 0 && at_the_bound < (int)p->count);
        } else if (!strcmp(p->name, "weights") || !strcmp(p->name, "scales")) {
            if (!outside(p->master, p->count))
                fail_msg("layer %d, %s: clipped, which Darknet does not", p->layer, p->name);
        }
    }
    release(net);
}

TEST(clip_keeps_convolutional_weights_in_bounds)
{
    check_clip("", "fp32");
    check_clip("", "bf16");
    check_clip("adam=1\n", "fp32");
}
#endif

int main(void) { return run_listed_tests("tests", NULL, NULL); }
