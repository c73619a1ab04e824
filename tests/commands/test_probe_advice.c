/* Which layers the probe says to keep in fp32, on networks and histograms made up for it. */
#include "testing.h"

#include <limits.h>
#include <math.h>

#include "amp/autocast.h"
#include "commands/probe/probe.h"

enum { MOST = 24 };

/* ---- made-up networks ---- */

static amp_probe_result *r; /* of the test's network */

/* Of so many layers, which are still to be made, in the place of the one before. */
static void start_network(int layers)
{
    if (r) amp_probe_free(r);
    r = calloc(1, sizeof *r);
    r->share = .01;
    r->scale_source = AMP_SCALE_HIGHEST;
    r->scale_moves = 1;
    r->layers = calloc((size_t)layers, sizeof *r->layers);
    r->network.layers = calloc((size_t)layers, sizeof *r->network.layers);
    r->network.count = layers;
}

static int forget_network(void **state)
{
    (void)state;
    amp_probe_free(r);
    r = NULL;
    return 0;
}

static void put(amp_exponents *e, float number, int count)
{
    for (int i = 0; i < count; i++) amp_exponents_add(e, &number, AMP_FP32, 1);
}

/* Fine in all respects: outputs and deltas of 1. */
static void layer(int i, const amp_layer_ops *kind, const char *type, int from, int other)
{
    amp_layer_desc *d = &r->network.layers[i];
    d->kind = kind;
    d->type = type;
    d->input_count = other == from ? 1 : 2;
    d->inputs = malloc(2 * sizeof *d->inputs);
    d->inputs[0] = from;
    d->inputs[1] = other;
    put(&r->layers[i].numerics.output, 1, 100);
    put(&r->layers[i].numerics.delta, 1, 100);
}
static void conv(int i, int from) { layer(i, &amp_convolutional_ops, "convolutional", from, from); }
static void pool(int i, int from) { layer(i, &amp_maxpool_ops, "maxpool", from, from); }
static void loss(int i, int from) { layer(i, AMP_LAYER_HOST, "yolo", from, from); }

/* Five convolutions and a loss. */
static int chain(void **state)
{
    (void)state;
    start_network(6);
    for (int i = 0; i < 5; i++) conv(i, i - 1);
    loss(5, 4);
    return 0;
}

#define CHAIN_TEST(name) TEST_WITH(name, chain, forget_network)

static amp_layer_numerics *of(int i) { return &r->layers[i].numerics; }

static void set(amp_exponents *e, float number)
{
    *e = (amp_exponents){ .zeros = 0 };
    put(e, number, 100);
}

/* ---- what is said ---- */

static void assert_pins(const char *expected)
{
    char pins[200] = "";
    for (int i = 0; i < r->network.count; i++)
        if (r->layers[i].keep) snprintf(pins + strlen(pins), 20, "%s%d", *pins ? "," : "", i);
    assert_string_equal(pins, expected);
}

static void advise(const char *pins, int sentences)
{
    amp_probe_advise(r);
    assert_pins(pins);
    assert_int_equal(r->advice.count, sentences);
}

static void assert_says(int i, const char *text)
{
    if (!strstr(r->advice.line[i], text)) fail_msg("no '%s' in: %s", text, r->advice.line[i]);
}

CHAIN_TEST(nothing_is_pinned_where_all_is_well)
{
    advise("", 1);
    assert_says(0, "nothing needs to be kept in fp32");
    assert_int_equal(r->scales.most, 15);
    assert_true(r->scale == 0x1p15f);
}

CHAIN_TEST(an_output_that_overflows_pins_its_layer_and_who_reads_it)
{
    put(&of(1)->output, -1e6f, 25);
    advise("1,2", 1);
    assert_says(0, "layer 1 [convolutional]: 20.0 % of its outputs exceed fp16's 65504 (the largest is "
                   "1e+06): keep it in fp32 with amp=0, and layer 2, which reads them, or use dtype=bf16");
}

CHAIN_TEST(a_share_too_small_for_percents_is_told_as_a_count)
{
    put(&of(1)->output, 1, 30000);
    put(&of(1)->output, 65520, 1);
    advise("1,2", 1);
    assert_says(0, "1 of 30101 of its outputs exceed");
}

/* The loss reads in fp32 anyway. */
CHAIN_TEST(the_last_convolution_is_pinned_alone)
{
    put(&of(4)->output, 1e5f, 1);
    advise("4", 1);
}

CHAIN_TEST(sums_before_batch_normalization_are_nobody_elses)
{
    put(&of(1)->inner_output, 1e5f, 1);
    advise("1", 1);
    assert_says(0, "of its sums before batch normalization exceed");
}

/* 0 - conv, 1 - maxpool, 2 - conv: what the pool hands on overflows as well, and 2 would make fp16 of it. */
CHAIN_TEST(a_layer_that_follows_its_input_needs_no_pin)
{
    start_network(4);
    conv(0, -1);
    pool(1, 0);
    conv(2, 1);
    loss(3, 2);
    put(&of(0)->output, 1e5f, 10);
    put(&of(1)->output, 1e5f, 10);
    advise("0,2", 2);
    assert_says(0, "layer 0 [convolutional]");
    assert_says(0, "keep it in fp32 with amp=0, or use");
    assert_says(1, "layer 1 [maxpool]");
    assert_says(1, ": keep layer 2, which reads them, in fp32 with amp=0, or use");
}

/* An rnn keeps fp32, but its products make fp16 of what it reads, of its output (which it reads at the next
 * step) and of deltas. */
CHAIN_TEST(a_layer_that_lends_its_products_is_pinned_for_what_they_round)
{
    for (int what = 0; what < 4; what++) {
        start_network(4);
        conv(0, -1);
        layer(1, AMP_LAYER_HOST, "rnn", 0, 0);
        r->network.layers[1].lends_products = 1;
        conv(2, 1);
        loss(3, 2);
        if (what == 1) put(&of(0)->output, 1e5f, 10);
        if (what == 2) put(&of(1)->output, 1e5f, 10);
        if (what == 3) set(&of(1)->delta, 1e-12f);
        advise(what == 0 ? "" : what == 1 ? "0,1" : "1,2", 1);
        assert_true(r->layers[1].low);
    }
}

CHAIN_TEST(what_the_cfg_pins_is_not_advised_again)
{
    r->network.layers[1].keep_fp32 = 1;
    put(&of(1)->output, 1e5f, 10);
    advise("2", 1);
    chain(NULL);
    r->network.layers[1].keep_fp32 = r->network.layers[2].keep_fp32 = 1;
    put(&of(1)->output, 1e5f, 10);
    advise("", 1);
    assert_says(0, "nothing needs to be kept in fp32");
}

/* A shortcut adds two that are fine. */
CHAIN_TEST(a_sum_of_two_layers_is_pinned_itself)
{
    start_network(5);
    conv(0, -1);
    conv(1, 0);
    layer(2, &amp_shortcut_ops, "shortcut", 1, 0);
    conv(3, 2);
    loss(4, 3);
    put(&of(2)->output, 1e5f, 10);
    advise("2,3", 1);
}

CHAIN_TEST(outputs_that_are_too_small_are_pinned_and_a_long_tail_is_not)
{
    put(&of(1)->output, 1e-12f, 900); /* nine tenths become 0, and do not matter */
    set(&of(3)->output, 1e-7f);
    advise("3,4", 1);
    assert_says(0, "layer 3 [convolutional]: 100.0 % of its outputs are subnormal in fp16");
}

CHAIN_TEST(the_scales_are_those_that_suit_every_layer)
{
    set(&of(1)->delta, 0x1p-20f); /* 2^-24 / 4 / 1.5 of it: 1.04 %; at twice the scale half of that */
    set(&of(3)->delta, 1000);     /* up to 64000 */
    set(&of(4)->inner_delta, 2000);
    advise("", 1);
    assert_int_equal(r->layers[1].scales.least, 1);
    assert_int_equal(r->layers[3].scales.most, 6);
    assert_int_equal(r->scales.least, 1);
    assert_int_equal(r->scales.most, 5);
    assert_true(r->scale == 32);
    assert_int_equal(r->layers[5].scales.most, INT_MAX); /* the loss's own is fp32 */
}

CHAIN_TEST(a_present_scale_outside_the_range_is_told_without_pins)
{
    set(&of(1)->delta, 0x1p-28f);
    r->scale = 1;
    r->scale_moves = 0;
    r->scale_source = AMP_SCALE_OF_CFG;
    advise("", 1);
    assert_says(0, "layer 1 [convolutional]: 100.0 % of its deltas become 0 in fp16 at the present loss "
                   "scale of 1: set loss_scale from 512 to 32768, or loss_scale=dynamic, or keep the "
                   "layer in fp32 with amp=0");
}

CHAIN_TEST(a_static_scale_that_overflows_is_told_and_a_dynamic_one_falls)
{
    for (int moves = 0; moves < 2; moves++) {
        chain(NULL);
        put(&of(1)->delta, 1000, 100);
        r->scale = 65536;
        r->scale_moves = moves;
        r->scale_source = AMP_SCALE_OF_CFG;
        advise("", moves ? 1 : 6 - 1);
        if (moves) assert_says(0, "nothing needs to be kept in fp32");
        else assert_says(1, "layer 1 [convolutional]: 100.0 % of its deltas overflow fp16 at the present "
                            "loss scale of 65536");
    }
}

/* No scale suits 1 and the others: 1 is pinned, and 2, which hands its delta down in fp16. */
CHAIN_TEST(deltas_that_no_scale_suits_are_pinned_where_that_takes_the_fewest_layers)
{
    set(&of(1)->delta, 0x1p-50f);
    advise("1,2", 1);
    assert_says(0,
                "layer 1 [convolutional]: 100.0 % of its deltas become 0 in fp16 at a loss scale of 32768");
    assert_int_equal(r->scales.most, 15);

    chain(NULL); /* and now it is 1 that stands against all others */
    for (int i = 0; i < 5; i++) set(&of(i)->delta, i == 1 ? 1e9f : 1e-6f);
    advise("1,2", 1);
    assert_says(0, "layer 1 [convolutional]: 100.0 % of its deltas overflow fp16 at a loss scale of");
}

CHAIN_TEST(inf_in_fp32_is_no_matter_of_precision)
{
    of(2)->output.not_finite = 3;
    advise("", 1);
    assert_says(0, "layer 2 [convolutional]: it held inf or NaN in fp32 already");
}

/* ---- any network ---- */

static unsigned random_state = 7;
static int below(int limit)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (int)((random_state >> 8) % (unsigned)limit);
}

/* With the pins, nothing that overflows is ever in fp16: not where it is made, and not where it is read. */
static void assert_nothing_overflows(void)
{
    amp_form forms[MOST];
    for (int i = 0; i < r->network.count; i++) {
        amp_layer_desc d = r->network.layers[i];
        amp_form inputs[2];
        d.keep_fp32 |= r->layers[i].keep;
        for (int k = 0; k < d.input_count; k++)
            inputs[k] = d.inputs[k] < 0 ? AMP_FORM_PLAIN : forms[d.inputs[k]];
        forms[i] = amp_autocast_of(&d, AMP_FP16, inputs).form;
        if (forms[i] != AMP_FORM_HALF) continue;
        assert_false(amp_numerics_lost(&r->layers[i].numerics.output, AMP_FP16, 1).overflows);
        for (int k = 0; k < d.input_count; k++)
            assert_true(d.inputs[k] < 0 || !amp_numerics_lost(&r->layers[d.inputs[k]].numerics.output,
                                                              AMP_FP16, 1).overflows);
    }
}

CHAIN_TEST(pins_are_enough_in_any_network)
{
    static const amp_layer_ops *const kinds[] = { &amp_convolutional_ops, &amp_convolutional_ops,
                                                  &amp_maxpool_ops, &amp_shortcut_ops, &amp_route_ops,
                                                  AMP_LAYER_HOST, &amp_batchnorm_ops };
    for (int round = 0; round < 300; round++) {
        int count = 3 + below(MOST - 3), none = 1;
        start_network(count);
        for (int i = 0; i < count; i++) {
            const amp_layer_ops *kind = i ? kinds[below(7)] : &amp_convolutional_ops;
            int joins = kind == &amp_shortcut_ops || kind == &amp_route_ops;
            layer(i, kind, "layer", i - 1, joins ? below(i) : i - 1);
            if (below(6) == 0) put(&of(i)->output, 1e6f, 3), none = 0;
            r->network.layers[i].keep_fp32 = below(9) == 0;
        }
        amp_probe_advise(r);
        assert_nothing_overflows();
        if (none) assert_pins("");
        for (int i = 0; i < count; i++) assert_false(r->layers[i].keep && r->network.layers[i].keep_fp32);
    }
}

int main(void) { return run_listed_tests("tests", NULL, NULL); }
