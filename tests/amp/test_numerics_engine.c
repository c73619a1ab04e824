/* What the numerics see in an engine that trains: every tensor once, and the inner tensors of layers. */
#define _DEFAULT_SOURCE /* mkstemps */
#include "testing.h"

#include "amp/numerics.h"
#include "engine_testing.h"
#include "plain_residual.h"

#define SMALL                                                                                 \
    "[net]\nbatch=4\nsubdivisions=2\nwidth=16\nheight=16\nchannels=3\nlearning_rate=0.0002\n" \
    "max_batches=100\n"
#define PLAIN(filters, activation) \
    "[convolutional]\nfilters=" #filters "\nsize=3\nstride=1\npad=1\nactivation=" #activation "\n"

static const char text[] = SMALL CONV(8, "") PLAIN(8, leaky) PLAIN(8, linear)
    "[maxpool]\nsize=2\nstride=2\n" TAIL;
enum { NORMALIZED, ACTIVATED, LINEAR_ONE, POOL, LAST, COST_LAYER };

static amp_numerics *watch(network *net, int inside)
{
    amp_numerics *n;
    n = amp_numerics_create(net->n, inside ? net->amp->engine : NULL);
    amp_observer observer = amp_numerics_observer(n);
    amp_engine_set_observer(net->amp->engine, &observer);
    return n;
}

static unsigned long long all(const amp_exponents *e)
{
    return amp_exponents_count(e) + e->zeros + e->not_finite;
}

TEST(each_tensor_of_a_step_is_counted_once)
{
    network *net = parse(text, "fp32");
    amp_numerics *n = watch(net, 1);
    train_step(net, 3); /* two subdivisions of two images */
    const unsigned long long big = 4 * 8 * 16 * 16, half = 4 * 8 * 8 * 8, last = 4 * 4 * 8 * 8;
    const unsigned long long outputs[] = { big, big, big, half, last },
        weights[] = { 3 * 8 * 9, 8 * 8 * 9, 8 * 8 * 9, 0, 8 * 4 };
    for (int i = 0; i < COST_LAYER; i++) {
        const amp_layer_numerics *l = amp_numerics_of(n, i);
        assert_int_equal(all(&l->output), outputs[i]);
        assert_int_equal(all(&l->delta), outputs[i]);
        /* Once per subdivision; biases and scales are not counted. */
        assert_int_equal(all(&l->gradient), 2 * weights[i]);
        assert_int_equal(all(&l->inner_output), i == NORMALIZED ? big : 0);
        assert_int_equal(all(&l->inner_delta), i == NORMALIZED || i == ACTIVATED ? big : 0);
    }
    amp_engine_set_observer(net->amp->engine, NULL);
    train_step(net, 4);
    assert_int_equal(all(&amp_numerics_of(n, 0)->output), outputs[0]);
    amp_numerics_free(n);
    release(net);
}

TEST(without_the_engine_nothing_inner_is_counted)
{
    network *net = parse(text, "fp32");
    amp_numerics *n = watch(net, 0);
    train_step(net, 3);
    for (int i = 0; i < net->n; i++)
        assert_int_equal(all(&amp_numerics_of(n, i)->inner_output) + all(&amp_numerics_of(n, i)->inner_delta),
                         0);
    amp_numerics_free(n);
    release(net);
}

/* The first layer's backward runs last: its inner delta still exists when the step is over. */
TEST(the_inner_tensors_are_the_layers_own)
{
    for (int d = 0; d < 3; d++) {
        network *net = parse(SMALL "subdivisions=1\n" CONV(8, "") TAIL, dtype_names[d]);
        amp_numerics *n = watch(net, 1);
        feed(net, 5);
        net->train = 1;
        forward_network(net);
        const amp_node *node = &amp_engine_plan(net->amp->engine)->nodes[0];
        amp_tensor sums = amp_value_data(node->output, node->form), wide = sums,
            delta = amp_value_delta(node->output, node->form);
        size_t count = amp_shape_count(sums.shape);
        float *numbers = calloc(count, sizeof *numbers);
        amp_exponents e = { .zeros = 0 };
        amp_backend *b = amp_engine_backend(net->amp->engine);
        sums.data = node->pre_activation;
        wide.data = numbers;
        wide.dtype = AMP_FP32;
        assert_int_equal(b->cast(b, &sums, &wide, 0, NULL), AMP_OK);
        amp_exponents_add(&e, numbers, AMP_FP32, count);
        assert_memory_equal(&amp_numerics_of(n, 0)->inner_output, &e, sizeof e);
        assert_memory_not_equal(&amp_numerics_of(n, 0)->output, &e, sizeof e);

        backward_network(net);
        assert_int_equal(b->cast(b, &delta, &wide, 0, NULL), AMP_OK);
        e = (amp_exponents){ .zeros = 0 };
        amp_exponents_add(&e, numbers, AMP_FP32, count);
        assert_memory_equal(&amp_numerics_of(n, 0)->inner_delta, &e, sizeof e);
        assert_memory_not_equal(&amp_numerics_of(n, 0)->delta, &e, sizeof e);
        free(numbers);
        amp_numerics_free(n);
        release(net);
    }
}

/* ---- a residual block ---- */

/* Asserts that the largest |number| is within 1e-5 of what is expected. */
static void assert_largest(const amp_exponents *e, const double *want, int count)
{
    double size = 0;
    for (int i = 0; i < count; i++) size = fmax(size, fabs(want[i]));
    assert_int_equal(all(e), count);
    if (!(fabs((double)e->largest - size) <= 1e-5 * size))
        fail_msg("the largest is %g, not %g", (double)e->largest, size);
}

/* Only the shortcut reads layer 1: its outer delta is the sum's, its inner delta is elsewhere. */
TEST(a_residual_blocks_numbers_are_those_of_a_plain_computation)
{
    enum { SIDE = 16, IMAGES = 2, NUMBERS = IMAGES * SIDE * SIDE, HEAD = 3, IN = 3, OUT = 4 };
    network *net = parse(SMALL CONV(8, "") CONV(8, "") "[shortcut]\nfrom=-2\n"
                         "activation=linear\n" TAIL, "fp32");
    amp_numerics *n = watch(net, 1);
    amp_network_desc d = described(net);
    plain_residual r = { .n = IMAGES, .h = SIDE, .w = SIDE };
    for (int i = 0; i < 3; i++) {
        const amp_layer_desc *l = &d.layers[i == 2 ? HEAD : i];
        r.conv[i] = (plain_conv){ i ? 8 : IN, l->convolution.filters, l->convolution.size, l->weights,
                                  l->biases, l->scales, l->batchnorm_rule, .x = NULL };
    }
    double *image = plain_array(&r, IN), *delta = plain_array(&r, OUT);
    feed(net, 3);
    for (int i = 0; i < NUMBERS * IN; i++)
        image[(i / (IN * SIDE * SIDE) * SIDE * SIDE + i % (SIDE * SIDE)) * IN + i / (SIDE * SIDE) % IN] =
            (double)net->input[i];
    plain_forward(&r, image);
    for (int i = 0; i < NUMBERS * OUT; i++) { /* the cost's delta: truth, which is NCHW, minus the
                                                 prediction */
        int p = i / OUT, plane = SIDE * SIDE, at = (p / plane * OUT + i % OUT) * plane + p % plane;
        delta[i] = (double)net->truth[at] - r.conv[2].y[i];
    }
    r.conv[2].delta = delta;
    plain_backward(&r);
    train_network_datum(net);
    for (int i = 0; i < 2; i++) {
        const amp_layer_numerics *l = amp_numerics_of(n, i);
        assert_largest(&l->output, r.conv[i].y, NUMBERS * 8);
        assert_largest(&l->inner_output, r.conv[i].sums, NUMBERS * 8);
        assert_largest(&l->delta, r.conv[i].delta, NUMBERS * 8);
        assert_largest(&l->inner_delta, r.conv[i].inner, NUMBERS * 8);
    }
    assert_largest(&amp_numerics_of(n, 2)->delta, r.sum_delta, NUMBERS * 8);
    assert_true(fabsf(amp_numerics_of(n, 1)->inner_delta.largest - amp_numerics_of(n, 1)->delta.largest)
                > 1e-3f * amp_numerics_of(n, 1)->delta.largest);
    amp_network_desc_free(&d);
    amp_numerics_free(n);
    plain_free(&r);
    free(image);
    release(net);
}

int main(void) { return run_listed_tests("tests", NULL, NULL); }
