/* The rooms below host, without any Darknet: this program links them alone (CMakeLists.txt), describes a
 * network of two layers by hand, and trains it. */
#include "testing.h"

#include <math.h>

#include "amp/engine.h"

/* A connected layer of 4 inputs and 1 output, and a host layer that is the loss: half the squared distance
 * from the target. Darknet's deltas point downhill: target - output. */
enum { BATCH = 8, INPUTS = 4, STEPS = 400 };

typedef struct own_network {
    float weights[INPUTS], bias[1];        /* the masters */
    float momentum[INPUTS + 1], *slots[2];
    float outputs[2][BATCH], deltas[2][BATCH];
    float target[BATCH], loss;
} own_network;

/* The network that is learnt. */
static float wanted(const float *x) { return 2 * x[0] - x[1] + .5f * x[2] + .25f; }

/* ---- what the engine asks of a host ---- */

static void describe(void *context, int batch, amp_network_desc *out)
{
    own_network *n = context;
    amp_layer_desc *layers = calloc(2, sizeof *layers);
    for (int i = 0; i < 2; i++) {
        layers[i].inputs = malloc(sizeof(int));
        layers[i].inputs[0] = i - 1;
        layers[i].input_count = 1;
        layers[i].output = (amp_shape){ batch, 1, 1, 1 };
        layers[i].rate_scale = 1;
    }
    layers[0].kind = &amp_convolutional_ops;
    layers[0].type = "connected";
    layers[0].convolution = (struct amp_convolution_settings){ .filters = 1, .stride = 1, .stride_x = 1,
                                                               .dilation = 1, .groups = 1 };
    layers[0].activation = AMP_LINEAR;
    layers[0].weights = n->weights;
    layers[0].biases = n->bias;
    layers[0].params = calloc(2, sizeof(amp_param_desc));
    layers[0].params[0] = (amp_param_desc){ .name = "weights", .master = n->weights, .count = INPUTS,
                                            .gradient_slot = &n->slots[0], .decays = 1 };
    layers[0].params[1] = (amp_param_desc){ .name = "biases", .master = n->bias, .count = 1,
                                            .gradient_slot = &n->slots[1] };
    layers[0].param_count = 2;
    layers[1].kind = AMP_LAYER_HOST;
    layers[1].type = "cost";
    layers[1].is_loss = 1;
    *out = (amp_network_desc){ .layers = layers, .count = 2, .image = { batch, INPUTS, 1, 1 } };
}

static amp_status prepare_buffers(void *context, const char *needs_output, const char *needs_delta,
                                  amp_error *error)
{
    (void)context; (void)needs_output; (void)needs_delta; (void)error;
    return AMP_OK; /* they are always there */
}

static float *output(void *context, int layer) { return ((own_network *)context)->outputs[layer]; }
static float *delta(void *context, int layer) { return ((own_network *)context)->deltas[layer]; }
static float loss(void *context, int layer) { (void)layer; return ((own_network *)context)->loss; }

static void forward(void *context, int layer, float *input, int training)
{
    own_network *n = context;
    (void)training;
    n->loss = 0;
    for (int i = 0; i < BATCH; i++) {
        n->deltas[layer][i] = n->target[i] - input[i];
        n->outputs[layer][i] = n->deltas[layer][i] * n->deltas[layer][i] / 2;
        n->loss += n->outputs[layer][i];
    }
}

static void backward(void *context, int layer, float *input, float *input_delta, int training)
{
    own_network *n = context;
    (void)input; (void)training;
    for (int i = 0; i < BATCH; i++) input_delta[i] += n->deltas[layer][i];
}

/* ---- training ---- */

static amp_engine *create(own_network *n, amp_dtype dtype)
{
    amp_error error;
    const amp_host host = { .context = n, .describe = describe, .prepare_buffers = prepare_buffers,
                            .output = output, .delta = delta, .forward = forward, .backward = backward,
                            .loss = loss };
    amp_engine_settings settings = { .dtype = dtype };
    amp_scaler scaler = amp_scaler_defaults();
    scaler.dynamic = dtype == AMP_FP16;
    if (!scaler.dynamic) scaler.scale = 1;
    assert_int_equal(amp_scaler_init(&settings.scaler, &scaler, &error), AMP_OK);
    amp_backend *backend = amp_cpu_backend_create(&error);
    if (!backend) fail_msg("%s", error.message);
    amp_network_desc network;
    describe(n, BATCH, &network);
    *n = (own_network){ .slots = { n->momentum, n->momentum + INPUTS } };
    amp_engine *engine = amp_engine_create(&settings, backend, &host, &network);
    amp_network_desc_free(&network);
    return engine;
}

static void take_step(own_network *n, amp_engine *engine, int step)
{
    amp_error error = { 0 };
    amp_step_report report;
    amp_plan *plan;
    const amp_plan_key key = { .batch = BATCH, .w = 1, .h = 1, .keeps_state = 1 };
    amp_update_args args = { .learning_rate = .1f, .momentum = .9f, .batch = BATCH };
    static float images[BATCH][INPUTS];
    for (int i = 0; i < BATCH; i++) {
        for (int k = 0; k < INPUTS; k++) images[i][k] = sinf((float)(step * BATCH + i) * (float)(k + 1));
        n->target[i] = wanted(images[i]);
    }
    amp_status status = amp_engine_plan_for(engine, &key, &plan, &error);
    if (status == AMP_OK) status = amp_engine_forward(engine, plan, images[0], 1, &error);
    if (status == AMP_OK) status = amp_engine_backward(engine, NULL, &error);
    if (status == AMP_OK) status = amp_engine_update(engine, &args, 0, &report, &error);
    if (status != AMP_OK) fail_msg("step %d: %s", step, error.message);
}

/* fp32 finds the weights exactly; with 8 and 11 bits of significand the loss stays that far above 0. */
TEST(a_network_of_two_layers_learns)
{
    static const struct { amp_dtype dtype; float most; } cases[] = {
        { AMP_FP32, 1e-5f }, { AMP_BF16, .01f }, { AMP_FP16, 2e-3f } };
    int ran = 0;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char note[256];
        own_network n = { .loss = 0 };
        amp_engine *engine = create(&n, cases[i].dtype);
        amp_backend *b = engine->backend;
        if (b->supports(b, cases[i].dtype, note) != AMP_SUPPORT_NONE) {
            for (int step = 0; step < STEPS; step++) take_step(&n, engine, step);
            const float right[] = { 2, -1, .5f, 0 };
            for (int k = 0; k < INPUTS; k++)
                if (fabsf(n.weights[k] - right[k]) > cases[i].most)
                    fail_msg("%s: weight %d is %g, not %g", amp_dtype_name(cases[i].dtype), k,
                             (double)n.weights[k], (double)right[k]);
            if (fabsf(n.bias[0] - .25f) > cases[i].most) fail_msg("the bias is %g", (double)n.bias[0]);
            ran++;
        }
        amp_engine_free(engine);
    }
    assert_true(ran >= 1);
}

/* An update of a shared array by each of its layers: (1 - .1)(1 - .2)(1 - .5) of it remains. */
TEST(statistics_that_layers_share_have_one_entry_and_rolling_factor)
{
    enum { LAYERS = 4 };
    static const float factors[LAYERS] = { .1f, .3f, .2f, .5f };
    float shared[1] = { 0 }, other[1] = { 0 };
    amp_statistics_desc statistics[LAYERS];
    amp_layer_desc layers[LAYERS] = { { 0 } };
    for (int i = 0; i < LAYERS; i++) {
        statistics[i] = (amp_statistics_desc){ i == 1 ? other : shared, 1, 0, factors[i] };
        layers[i] = (amp_layer_desc){ .kind = AMP_LAYER_HOST, .type = "batchnorm", .rate_scale = 1,
                                      .statistics = &statistics[i], .statistics_count = 1 };
    }
    amp_parameters p = { 0 };
    amp_parameters_collect(&p, &(amp_network_desc){ .layers = layers, .count = LAYERS });
    assert_int_equal(p.statistics_count, 2); /* of an array that is saved and restored once */
    assert_int_equal(p.committed_count, 2);
    assert_true(p.statistics[0].array == shared && fabsf(p.statistics[0].rolling_factor - .64f) < 1e-6f);
    assert_true(p.statistics[1].array == other && fabsf(p.statistics[1].rolling_factor - .3f) < 1e-6f);
    amp_parameters_free(&p);
}

TEST(every_parameters_gradient_is_searched_for_inf)
{
    own_network n = { .loss = 0 };
    amp_engine *engine = create(&n, AMP_FP32);
    take_step(&n, engine, 0);
    for (int i = 0; i < engine->parameters.param_count; i++) {
        const amp_param *param = &engine->parameters.params[i];
        amp_anomaly bad = { 0 };
        assert_false(amp_parameters_bad_gradient(&engine->parameters, &bad));
        param->grad[param->count - 1] = INFINITY;
        assert_true(amp_parameters_bad_gradient(&engine->parameters, &bad));
        assert_string_equal(bad.tensor, param->name);
        param->grad[param->count - 1] = 0;
    }
    amp_engine_free(engine);
}

int main(void) { return run_listed_tests("core", NULL, NULL); }
