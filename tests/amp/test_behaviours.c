/* How the loss scale gets into the gradients (docs/behaviours.md): the .cfg's settings reach the scaler; the
 * same scale for all subdivisions of a batch, all heads of a network, and every kind of loss layer. Scales
 * are powers of two and the precision is fp32, so that a gradient under loss scale S is exactly S times the
 * one under 1: scaling twice, or not at all, shows in every bit. */
#define _DEFAULT_SOURCE /* mkstemps */
#include "testing.h"

#include <glob.h>
#include <unistd.h>

#include "optimizer_testing.h"

static void one_forward(network *net, unsigned seed)
{
    feed(net, seed);
    *net->seen += (size_t)net->batch;
    net->train = 1;
    srand(11); /* dropout, crop */
    forward_network(net);
}

/* Forward and backward of one subdivision; the caller updates. */
static void one_subdivision(network *net, unsigned seed)
{
    one_forward(net, seed);
    backward_network(net);
}

/* Asserts that every gradient of `scaled` is exactly `scale` times that of `plain`. Returns how many elements
 * are not 0. */
static size_t assert_gradients_scaled(network *scaled, network *plain, float scale, const char *where)
{
    size_t moved = 0;
    int count, same;
    const amp_param *a = engine_params(scaled->amp->engine, &count),
        *b = engine_params(plain->amp->engine, &same);
    assert_int_equal(count, same);
    for (int i = 0; i < count; i++)
        for (size_t e = 0; e < a[i].count; e++) {
            if (!amp_is_finite(b[i].grad[e]) || a[i].grad[e] != scale * b[i].grad[e])
                fail_msg("%s: %s of layer %d [%zu]: %g, not %g times %g", where, a[i].name, a[i].layer, e,
                         (double)a[i].grad[e], (double)scale, (double)b[i].grad[e]);
            moved += b[i].grad[e] != 0;
        }
    return moved;
}

/* ---- settings ---- */

TEST(every_key_of_the_cfg_reaches_the_scaler)
{
    network *net = parse_branched("init_scale=64\ngrowth_factor=1.5\nbackoff_factor=0.25\ngrowth_interval=7\n"
                                  "min_scale=2\nmax_scale=1024\nhysteresis=3\n", "", "fp16");
    const amp_scaler *scaler = &net->amp->engine->scaler;
    assert_true(scaler->enabled && scaler->dynamic);
    assert_true(scaler->scale == 64 && scaler->growth_factor == 1.5 && scaler->backoff_factor == .25);
    assert_true(scaler->min_scale == 2 && scaler->max_scale == 1024);
    assert_int_equal(scaler->growth_interval, 7);
    assert_int_equal(scaler->hysteresis, 3);
    release(net);
}

TEST(behaviour_08_static_scale_still_checks)
{
    for (int i = 0; i < 3; i++) {
        network *net = parse_branched("loss_scale=64\n", "", dtype_names[i]);
        const amp_scaler *scaler = &net->amp->engine->scaler;
        assert_true(scaler->enabled && !scaler->dynamic);
        for (int bad = 0; bad < 2; bad++) {
            train_step(net, 1);
            kept_state before = snapshot(net);
            for (unsigned s = 0; s < 2; s++) {
                feed(net, 77 + s);
                if (s) net->input[100] = bad ? NAN : INFINITY;
                train_network_datum(net);
            }
            assert_int_equal(scaler->skipped, bad + 1);
            assert_true(is_as_before(net, before));
            assert_true(scaler->scale == 64);
        }
        release(net);
    }
}

/* ---- subdivisions ---- */

/* The scale would grow after each clean update: it must not do so between two subdivisions. */
TEST(behaviour_17_one_scale_per_batch_over_all_subdivisions)
{
    network *net = parse_branched("amp=1\nloss_scale=dynamic\ninit_scale=64\ngrowth_interval=1\n", "",
                                  "fp32");
    network *plain = parse_branched("amp=1\nloss_scale=1\n", "", "fp32");
    float scale = 64;
    copy_weights(net, plain);
    for (unsigned window = 0; window < 2; window++, scale *= 2) {
        for (unsigned s = 0; s < 2; s++) {
            one_subdivision(net, 10 * window + s);
            one_subdivision(plain, 10 * window + s);
            assert_true(assert_gradients_scaled(net, plain, scale,
                                                s ? "second subdivision" : "first subdivision") > 0);
        }
        update_network(net);
        update_network(plain);
        assert_true(net->amp->engine->scaler.scale == 2 * scale);
        assert_true(are_alike(net, plain));
    }
    assert_int_equal(net->amp->steps, 2);
    release(net);
    release(plain);
}

TEST(behaviour_17_an_overflow_in_any_subdivision_drops_the_whole_batch)
{
    /* In the first or the second subdivision, from the image on or in only one gradient. */
    for (int how = 0; how < 4; how++) {
        network *net = parse_branched("amp=1\nloss_scale=dynamic\ninit_scale=64\n", "", "fp32");
        int bad = how % 2, count;
        const amp_param *params = engine_params(net->amp->engine, &count);
        train_step(net, 1);
        kept_state before = snapshot(net);
        for (int s = 0; s < 2; s++) {
            feed(net, 30 + (unsigned)s);
            if (s == bad && how < 2) net->input[7] = INFINITY;
            *net->seen += (size_t)net->batch;
            both_passes(net);
            if (s == bad && how >= 2) params[count - 1].grad[1] = INFINITY;
        }
        update_network(net);
        assert_true(is_as_before(net, before));
        assert_int_equal(net->amp->steps, 1);
        assert_int_equal(net->amp->skipped, 1);
        assert_true(net->amp->engine->scaler.scale == 32);
        release(net);
    }
}

/* ---- heads and kinds of loss ---- */

/* NAME.cfg of tests/cfg in fp32 with a static loss scale. */
static network *load_scaled(const char *name, int scale)
{
    char keys[64];
    snprintf(keys, sizeof keys, "amp=1\nloss_scale=%d\n", scale);
    return load(name, keys, "", "fp32");
}

TEST(behaviour_19_several_heads_share_one_scale)
{
    network *net = load_scaled("yolo", 512), *plain = load_scaled("yolo", 1);
    int heads[2] = { 8, 15 };
    copy_weights(net, plain);
    one_forward(net, 3);
    one_forward(plain, 3);
    for (int k = 0; k < 2; k++) {
        amp_tensor a = made_delta(net, heads[k]), b = made_delta(plain, heads[k]);
        assert_int_equal(net->layers[heads[k]].type, YOLO);
        for (size_t i = 0; i < amp_shape_count(a.shape); i++)
            assert_true(((float *)a.data)[i] == 512 * ((float *)b.data)[i]);
    }
    backward_network(net);
    backward_network(plain);
    assert_true(assert_gradients_scaled(net, plain, 512, "two heads") > 0);
    update_network(net);
    update_network(plain);
    assert_true(are_alike(net, plain));

    /* An overflow in one head skips the layers of the other as well. */
    kept_state before = snapshot(net);
    feed(net, 4);
    *net->seen += (size_t)net->batch;
    forward_network(net);
    *(float *)made_delta(net, heads[0]).data = INFINITY;
    backward_network(net);
    update_network(net);
    assert_int_equal(net->amp->skipped, 1);
    assert_true(is_as_before(net, before));
    release(net);
    release(plain);
}

#ifndef DARKNET_AMP_ALEXEYAB /* which has other losses: e2e/alexeyab_training.sh */
/* Over all networks of tests/cfg: all kinds of loss, some of them several times, and layers that look like
 * losses but are not (l2norm; dropout, which in stock writes to its neighbour's delta). */
TEST(behaviour_20_every_kind_of_loss_is_scaled_once)
{
    static const LAYER_TYPE losses[] = { YOLO, REGION, DETECTION, COST, SOFTMAX, LOGXENT, ISEG };
    static const COST_TYPE costs[] = { SSE, MASKED, L1, SEG, SMOOTH, WGAN };
    char seen[64] = "", seen_cost[16] = "";
    glob_t files;
    assert_int_equal(glob("*.cfg", 0, NULL, &files), 0);
    for (size_t f = 0; f < files.gl_pathc; f++) {
        char *name = files.gl_pathv[f];
        *strrchr(name, '.') = 0;
        network *net = load_scaled(name, 1024), *plain = load_scaled(name, 1);
        copy_weights(net, plain);
        one_subdivision(net, 21);
        one_subdivision(plain, 21);
        int params, originates = 0;
        engine_params(net->amp->engine, &params);
        for (int i = 0; i < net->n; i++) {
            layer l = net->layers[i];
            if (!l.cost) continue;
            int here = l.type == YOLO && *l.cost > 0; /* its delta is in its input's */
            for (int e = 0; l.delta && e < l.outputs * net->batch; e++)
                here |= plain->layers[i].delta[e] != 0;
            originates |= here;
            seen[l.type] |= (char)(here && params);
            if (l.type == COST) seen_cost[l.cost_type] |= (char)here;
        }
        size_t moved = assert_gradients_scaled(net, plain, 1024, name);
        assert_true(moved || !originates || !params);
        update_network(net);
        update_network(plain);
        assert_int_equal(net->amp->skipped + plain->amp->skipped, 0);
        if (!are_alike(net, plain)) fail_msg("%s: they differ after the update", name);
        release(net);
        release(plain);
    }
    globfree(&files);
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) assert_true(seen[losses[i]]);
    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++) assert_true(seen_cost[costs[i]]);
}
#endif

int main(void)
{
    if (chdir(networks_folder())) return 1;
    return run_listed_tests("tests", NULL, NULL);
}
