/* The layers over a backend, in a plan but without an engine or a host: is backward the gradient of forward?
 *
 * Tests kinds, activations and options that only AlexeyAB's fork has. (The other tests of layers compare with
 * pjreddie's code.) Each network is described here, and its gradients are compared with finite differences of
 * Σ coefficient·output in fp32; those of fp16 and bf16 with those of fp32. */
#include "amp/plan.h"
#include "kernel_cases.h"
#include "layers/epilogue.h"
#include "plain_residual.h"

enum { MOST_LAYERS = 12, MOST_INPUTS = 4 };

/* A short description of a layer; `from` lists its inputs, where -1 is the image. */
typedef struct brief {
    const amp_layer_ops *kind;
    int inputs[MOST_INPUTS], from;
    amp_activation activation;
    amp_layer_desc options; /* batch_normalize and those settings that are not 0 */
} brief;

/* An array of parameters and its gradient. */
typedef struct parameter { float *master, *gradient; size_t count; } parameter;

typedef struct network {
    amp_layer_desc layers[MOST_LAYERS];
    int inputs[MOST_LAYERS][MOST_INPUTS], count;
    amp_gradients gradients[MOST_LAYERS];
    amp_param_desc params[MOST_LAYERS][3];
    parameter parameters[3 * MOST_LAYERS + 1]; /* the last is the image */
    int parameter_count;
    float *statistics[2 * MOST_LAYERS], *coefficients;
    amp_plan *plan;
    amp_call call;
    void *block;
} network;

static const amp_shape image = { 2, 3, 5, 4 };
static uint32_t seed;

static parameter *parameter_of(network *n, size_t count, float low, float high)
{
    parameter *p = &n->parameters[n->parameter_count++];
    *p = (parameter){ filled_array(count, ++seed, low, high), filled_array(count, 1, 0, 0), count };
    return p;
}

static float *weights_of(network *n, float **gradient, size_t count, float low, float high)
{
    parameter *p = parameter_of(n, count, low, high);
    *gradient = p->gradient;
    return p->master;
}

static amp_shape input_of(const network *n, int layer, int k)
{
    return n->inputs[layer][k] < 0 ? image : n->layers[n->inputs[layer][k]].output;
}

static amp_shape output_of(const network *n, int layer)
{
    const amp_layer_desc *d = &n->layers[layer];
    amp_shape y = input_of(n, layer, 0);
    if (d->kind == &amp_route_ops)
        for (int k = y.c = 0; k < d->input_count; k++) y.c += input_of(n, layer, k).c / d->route.groups;
    if (d->kind == &amp_convolutional_ops) y.c = d->convolution.filters;
    if (d->kind == &amp_multiply_ops) y = input_of(n, layer, 1);
    if (d->kind == &amp_avgpool_ops) y.h = y.w = 1;
    return y; /* all others keep the size */
}

/* Parameters of a layer with weights. Sums of inputs of about 1 are about 1. */
static void give_parameters(network *n, int i)
{
    amp_layer_desc *d = &n->layers[i];
    amp_gradients *g = &n->gradients[i];
    if (d->kind != &amp_convolutional_ops) return;
    size_t k = (size_t)d->convolution.filters, size = (size_t)d->convolution.size;
    size_t window = (size_t)input_of(n, i, 0).c * size * size;
    float spread = 1 / sqrtf((float)window);
    d->weights = weights_of(n, &g->all[0], k * window, -2 * spread, 2 * spread);
    d->biases = weights_of(n, &g->all[1], k, -.5f, .5f);
    if (d->batch_normalize) d->scales = weights_of(n, &g->all[2], k, .5f, 1.5f);
    float *const masters[] = { d->weights, d->biases, d->scales };
    d->params = n->params[i];
    d->param_count = d->scales ? 3 : 2;
    for (int p = 0; p < d->param_count; p++) d->params[p].master = masters[p];
    if (!d->batch_normalize) return;
    d->rolling_mean = n->statistics[2 * i] = filled_array(k, 1, 0, 0);
    d->rolling_variance = n->statistics[2 * i + 1] = filled_array(k, 1, 1, 1);
}

static void describe(network *n, const brief *layers, int count)
{
    *n = (network){ .count = count };
    seed = 7;
    for (int i = 0; i < count; i++) {
        amp_layer_desc *d = &n->layers[i];
        *d = layers[i].options;
        d->kind = layers[i].kind;
        d->type = "test";
        d->activation = layers[i].activation;
        d->batchnorm_rule = (amp_batchnorm_rule){ 0, 1, 1e-5f, 1e-5f, 0, .01f }; /* exact backward */
        if (d->kind == &amp_convolutional_ops) d->convolution.groups = d->convolution.stride = 1;
        if (d->kind == &amp_route_ops && !d->route.groups) d->route.groups = 1;
        if (d->kind == &amp_shortcut_ops && !d->shortcut.alpha)
            d->shortcut.alpha = .75f, d->shortcut.beta = 1.25f;
        memcpy(n->inputs[i], layers[i].inputs, sizeof layers[i].inputs);
        d->inputs = n->inputs[i];
        d->input_count = layers[i].from;
        d->output = output_of(n, i);
        give_parameters(n, i);
    }
    n->coefficients = filled_array(amp_shape_count(n->layers[count - 1].output), 3, -1, 1);
    parameter_of(n, amp_shape_count(image), -1.5f, 1.5f);
}

static void plan(network *n, amp_dtype dtype)
{
    const amp_network_desc desc = { .layers = n->layers, .count = n->count, .image = image,
                                    .output_layer = n->count };
    const amp_plan_key key = { .batch = image.n, .w = image.w, .h = image.h, .keeps_state = 1,
                               .image_delta = 1 };
    n->call = (amp_call){ .backend = backend, .training = 1, .keeps_state = 1, .loss_scale = 1 };
    const amp_plan_request request = { &desc, &key, dtype, n->gradients, n->call, NULL };
    ASSERT_OK(amp_plan_create(&request, &n->plan, e));
    n->block = allocate_tensor(backend, n->plan->arena.total);
    assert_non_null(n->block);
    amp_arena_bind(&n->plan->arena, n->block);
}

static void unplan(network *n)
{
    amp_plan_free(n->plan, backend);
    release_tensor(backend, n->block);
}

static amp_status run_forward(network *n, amp_error *e)
{
    amp_plan *p = n->plan;
    for (int i = -1; i < n->count; i++) {
        amp_value *v = i < 0 ? &p->image : &p->values[i];
        memset(v->data_valid, 0, sizeof v->data_valid);
        memset(v->delta_valid, 0, sizeof v->delta_valid);
    }
    p->image.data[AMP_FORM_PLAIN] = n->parameters[n->parameter_count - 1].master;
    p->image.data_valid[AMP_FORM_PLAIN] = 1;
    AMP_TRY(amp_nodes_load_weights(p->nodes, n->count, backend, e));
    for (int i = 0; i < n->count; i++) AMP_TRY(amp_node_forward(&p->nodes[i], &n->call, e));
    return backend->synchronize(backend, e);
}

static amp_tensor result(const network *n)
{
    const amp_value *y = &n->plan->values[n->count - 1];
    return amp_value_data(y, y->home);
}

static double loss(network *n)
{
    double sum = 0;
    ASSERT_OK(run_forward(n, e));
    amp_tensor y = result(n);
    for (size_t i = 0; i < amp_shape_count(y.shape); i++) sum += (double)n->coefficients[i] * element(&y, i);
    return sum;
}

/* Called with each layer's deltas, for a test that checks them: they are overwritten later. */
static void (*look)(const network *, int layer, const char *which, amp_tensor delta);

static amp_status run_backward(network *n, amp_error *e)
{
    amp_plan *p = n->plan;
    int any;
    p->image.delta[AMP_FORM_PLAIN] = n->parameters[n->parameter_count - 1].gradient;
    p->image.delta_valid[AMP_FORM_PLAIN] = 1;
    for (int i = n->count - 1; i >= 0; i--) {
        const amp_node *node = &p->nodes[i];
        AMP_TRY(amp_value_settle_delta(&n->call, &p->values[i], &any, e));
        if (look) look(n, i, "delta", amp_value_delta(node->output, node->form));
        if (any) AMP_TRY(amp_node_backward(&p->nodes[i], &n->call, e));
        if (look && amp_epilogue_changes_delta(node)) look(n, i, "inner", amp_epilogue_sums_delta(node));
    }
    AMP_TRY(amp_value_settle_delta(&n->call, &p->image, &any, e));
    return backend->synchronize(backend, e);
}

/* Runs forward and backward, with minus the loss's gradient, into all gradients. */
static void differentiate(network *n)
{
    for (int k = 0; k < n->parameter_count; k++)
        memset(n->parameters[k].gradient, 0, n->parameters[k].count * sizeof(float));
    loss(n);
    amp_value *y = &n->plan->values[n->count - 1];
    amp_tensor dy = amp_value_delta(y, y->home);
    for (size_t i = 0; i < amp_shape_count(dy.shape); i++) set_element(&dy, i, -n->coefficients[i]);
    y->delta_valid[y->home] = 1;
    ASSERT_OK(run_backward(n, e));
}

/* Differences at h, 2h and 4h, combined so that the errors in h² and h⁴ cancel. */
static double slope(network *n, float *x)
{
    const float h = 1.f / 32, at = *x;
    double difference[3];
    for (int i = 0; i < 3; i++) {
        float up = at + (float)(1 << i) * h, down = at - (float)(1 << i) * h;
        *x = up;
        double above = loss(n);
        *x = down;
        difference[i] = (above - loss(n)) / ((double)up - (double)down);
    }
    *x = at;
    return (64 * difference[0] - 20 * difference[1] + difference[2]) / 45;
}

static double largest(const parameter *p)
{
    double size = 0;
    for (size_t i = 0; i < p->count; i++) /* fmax here causes an internal error of gcc 12 for aarch64 */
        if (fabs((double)p->gradient[i]) > size) size = fabs((double)p->gradient[i]);
    return size;
}

/* Checks some of an array's gradients, to 1e-4 of its largest, or of an eighth of the network's largest,
 * since a loss rounded in fp32 does not give more accurate slopes. */
static void assert_slopes(network *n, const parameter *p, int k)
{
    double size = largest(p);
    assert_true(size > 0);
    for (int i = 0; i < n->parameter_count; i++) size = fmax(size, largest(&n->parameters[i]) / 8);
    for (size_t i = 0; i < p->count; i += p->count / 12 + 1) {
        double got = -(double)p->gradient[i], want = slope(n, &p->master[i]);
        if (!(fabs(got - want) <= 1e-4 * size))
            fail_msg("parameter %d, element %zu: gradient %g, slope %g (%s)", k, i, got, want, variant);
    }
}

static void undescribe(network *n)
{
    for (int k = 0; k < n->parameter_count; k++)
        release(n->parameters[k].master), release(n->parameters[k].gradient);
    for (int k = 0; k < 2 * n->count; k++) if (n->statistics[k]) release(n->statistics[k]);
    release(n->coefficients);
}

static float *gradients_of(const network *n, size_t *count)
{
    float *all = NULL;
    *count = 0;
    for (int k = 0; k < n->parameter_count; k++) {
        const parameter *p = &n->parameters[k];
        all = realloc(all, (*count + p->count) * sizeof *all);
        assert_non_null(all);
        memcpy(all + *count, p->gradient, p->count * sizeof *all);
        *count += p->count;
    }
    return all;
}

static void check(const brief *layers, int count)
{
    static const double allowed[] = { [AMP_FP16] = 0x1p-7, [AMP_BF16] = 0x1p-4 };
    network n;
    size_t all;
    describe(&n, layers, count);
    plan(&n, AMP_FP32);
    differentiate(&n);
    float *exact = gradients_of(&n, &all);
    for (int k = 0; k < n.parameter_count; k++) assert_slopes(&n, &n.parameters[k], k);
    unplan(&n);
    for (size_t d = 1; d < COUNT(all_dtypes); d++) {
        plan(&n, all_dtypes[d]);
        differentiate(&n);
        float *rounded = gradients_of(&n, &all);
        double size = 0, off = 0;
        for (size_t i = 0; i < all; i++) {
            size += pow((double)exact[i], 2);
            off += pow((double)exact[i] - (double)rounded[i], 2);
        }
        if (!(sqrt(off) <= allowed[all_dtypes[d]] * sqrt(size)))
            fail_msg("gradients in %s: %g of %g off", amp_dtype_name(all_dtypes[d]), sqrt(off), sqrt(size));
        free(rounded);
        unplan(&n);
    }
    free(exact);
    undescribe(&n);
}

#define CONV(from, act, k, window, ...) { &amp_convolutional_ops, { from }, 1, act, \
        { .convolution = { .filters = k, .size = window, .pad = window / 2 }, __VA_ARGS__ } }
#define LAYER(kind, act, sources, ...) { &amp_##kind##_ops, SOURCES sources, act, { __VA_ARGS__ } }
#define SOURCES(...) { __VA_ARGS__ }, sizeof (int[]){ __VA_ARGS__ } / sizeof(int)

/* After batch norm, after a bias, and alone. */
TEST(activations_of_the_input_have_their_gradient)
{
    static const amp_activation smooth[] = { AMP_MISH, AMP_SWISH };
    for (size_t a = 0; a < COUNT(smooth); a++) {
        const brief layers[] = {
            CONV(-1, smooth[a], 8, 3, .batch_normalize = 1), CONV(0, smooth[a], 6, 1, .batch_normalize = 0),
            LAYER(activation, smooth[a], (1)), CONV(2, AMP_LINEAR, 5, 3, .batch_normalize = 1),
        };
        check(layers, COUNT(layers));
    }
}

/* Each of three inputs has other consumers too; one of them is the shortcut's own. */
TEST(shortcuts_add_several_inputs)
{
    static const amp_activation activations[] = { AMP_LINEAR, AMP_MISH, AMP_TANH };
    for (size_t a = 0; a < COUNT(activations); a++) {
        const brief layers[] = {
            CONV(-1, AMP_MISH, 6, 3, .batch_normalize = 1), CONV(0, AMP_SWISH, 6, 1, .batch_normalize = 0),
            CONV(1, AMP_LINEAR, 6, 3, .batch_normalize = 1),
            LAYER(shortcut, activations[a], (2, 1, 0)), CONV(3, AMP_LINEAR, 6, 1, .batch_normalize = 0),
            LAYER(shortcut, activations[a], (4, 3)),
        };
        check(layers, COUNT(layers));
    }
}

/* All parts of an input, and only one of them; a part of several inputs. */
TEST(routes_take_a_part_of_their_inputs)
{
    const brief layers[] = {
        CONV(-1, AMP_MISH, 6, 3, .batch_normalize = 1),
        LAYER(route, AMP_LINEAR, (0), .route = { 3, 2 }),
        LAYER(route, AMP_LINEAR, (0), .route = { 3, 0 }),
        CONV(2, AMP_SWISH, 4, 3, .batch_normalize = 1),
        LAYER(route, AMP_LINEAR, (3, 0), .route = { 2, 1 }), LAYER(route, AMP_LINEAR, (4, 1, 3)),
        CONV(5, AMP_LINEAR, 4, 3, .batch_normalize = 0),
    };
    check(layers, COUNT(layers));
    const brief last_only[] = { CONV(-1, AMP_MISH, 6, 3, .batch_normalize = 1),
                                LAYER(route, AMP_LINEAR, (0), .route = { 2, 1 }) };
    check(last_only, COUNT(last_only));
}

/* ---- a residual block's deltas and their memory ---- */

static plain_residual block;
static int looked_at;

static void compare_with_block(const network *n, int layer, const char *which, amp_tensor delta)
{
    (void)n;
    const double *want = layer == 2 ? block.sum_delta : block.conv[layer == 3 ? 2 : layer].delta;
    if (*which == 'i') want = block.conv[layer].inner;
    double size = 0;
    size_t count = amp_shape_count(delta.shape);
    float *got = malloc(count * sizeof *got);
    assert_int_equal(CALL(download, got, delta.data, count * sizeof *got, NULL), AMP_OK);
    for (size_t i = 0; i < count; i++) size = fmax(size, fabs(want[i]));
    assert_true(size > 0);
    for (size_t i = 0; i < count; i++)
        if (!(fabs((double)got[i] - want[i]) <= 1e-5 * size))
            fail_msg("%s of layer %d, element %zu: %g, not %g", which, layer, i, (double)got[i],
                     want[i]);
    free(got);
    looked_at++;
}

static void compute_block(const network *n)
{
    static const int layers[] = { 0, 1, 3 };
    int pixels = image.h * image.w;
    block = (plain_residual){ .n = image.n, .h = image.h, .w = image.w };
    double *x = plain_array(&block, image.c), *head = plain_array(&block, n->layers[3].output.c);
    for (int i = 0; i < image.n * image.c * pixels; i++)
        x[(i / (image.c * pixels) * pixels + i % pixels) * image.c + i / pixels % image.c] =
            (double)n->parameters[n->parameter_count - 1].master[i];
    for (int i = 0; i < 3; i++) {
        const amp_layer_desc *d = &n->layers[layers[i]];
        block.conv[i] = (plain_conv){ input_of(n, layers[i], 0).c, d->convolution.filters,
                                      d->convolution.size, d->weights, d->biases, d->scales,
                                      d->batchnorm_rule, .x = NULL };
    }
    plain_forward(&block, x);
    for (size_t i = 0; i < amp_shape_count(n->layers[3].output); i++) head[i] = -(double)n->coefficients[i];
    block.conv[2].delta = head;
    plain_backward(&block);
    free(x);
}

/* If only a shortcut reads a layer, all deltas of the sum share one buffer, and that of the layer's own sums
 * is elsewhere. If the backend can, the batch norm adds, unless outputs are shown. */
TEST(a_residual_blocks_deltas_are_those_of_a_plain_computation)
{
    const brief layers[] = {
        CONV(-1, AMP_LEAKY, 6, 3, .batch_normalize = 1), CONV(0, AMP_LEAKY, 6, 3, .batch_normalize = 1),
        LAYER(shortcut, AMP_LINEAR, (1, 0), .shortcut = { 1, 1 }),
        CONV(2, AMP_LINEAR, 5, 1, .batch_normalize = 0),
    };
    for (int shown = 0; shown <= 1; shown++) {
        network n;
        describe(&n, layers, COUNT(layers));
        plan(&n, AMP_FP32);
        assert_true(n.plan->nodes[1].keeps_delta);
        assert_int_equal(n.plan->nodes[2].norm_of != NULL, backend->adds_to_batchnorm);
        n.call.shown = shown;
        compute_block(&n);
        looked_at = 0;
        look = compare_with_block;
        differentiate(&n);
        look = NULL;
        assert_int_equal(looked_at, 4 + 2);
        plain_free(&block);
        unplan(&n);
        undescribe(&n);
    }
}

/* Squeeze-excite, an attention per pixel, and per element. The factor and the other input have further
 * consumers, and in the last product both are the same value. */
TEST(products_pass_the_gradient_to_both)
{
    static const amp_activation activations[] = { AMP_LINEAR, AMP_SWISH, AMP_TANH };
    for (size_t a = 0; a < COUNT(activations); a++) {
        const brief layers[] = {
            CONV(-1, AMP_SWISH, 6, 3, .batch_normalize = 1), LAYER(avgpool, AMP_LINEAR, (0)),
            CONV(1, AMP_SWISH, 3, 1, .batch_normalize = 0), CONV(2, AMP_LOGISTIC, 6, 1, .batch_normalize = 0),
            LAYER(multiply, activations[a], (3, 0)), CONV(4, AMP_LOGISTIC, 1, 3, .batch_normalize = 0),
            LAYER(multiply, activations[a], (5, 4)), LAYER(multiply, AMP_LINEAR, (6, 0)),
            LAYER(multiply, AMP_LINEAR, (7, 7)), CONV(8, AMP_LINEAR, 5, 1, .batch_normalize = 1),
        };
        check(layers, COUNT(layers));
    }
}

int main(void) { return with_one_variant(run_listed); }
