/*
 * rnn, gru, lstm, crnn on the CPU, at 3 steps, 2 streams, from a state that is not zero: is backward through
 * time the gradient? Where stock's is not, the test says what it is instead.
 */
#include "gradient_check.h"

#include "activations.h"
#include "crnn_layer.h"
#include "gru_layer.h"
#include "lstm_layer.h"
#include "rnn_layer.h"

enum { TIMES = 3, BATCH = 2, IN = 3, OUT = 4 };

/* ---- gru ----------------------------------------------------------------------------------------------- */

static struct subject gru(int tanh)
{
    layer l = make_gru_layer(BATCH*TIMES, IN, OUT, TIMES, 0, 0);
    l.tanh = tanh;
    struct subject s = subject_of(l, BATCH*TIMES);
    carries(&s, s.l.state, BATCH*OUT);
    return s;
}

TEST(gru_backward_is_the_gradient)
{
    for (int tanh = 0; tanh < 2; tanh++){
        struct subject s = gru(tanh);
        run_both(&s);
        assert_input_gradient(&s, weighted_output, 1);
        layer *subs[] = {s.l.uz, s.l.ur, s.l.uh, s.l.wz, s.l.wr, s.l.wh};
        const char *names[] = {"uz", "ur", "uh", "wz", "wr", "wh"};
        for (int i = 0; i < 6; i++)
            assert_parameter_gradients(&s, subs[i], names[i], i < 3 ? IN*OUT : OUT*OUT);
        release(&s);
    }
}

/* As the first layer of a network, which has no net.delta. */
TEST(gru_without_net_delta_trains_its_parameters_and_carries_its_last_output)
{
    struct subject s = gru(1);
    float *delta = s.net.delta;
    s.net.delta = NULL;
    run_both(&s);
    assert_memory_equal(s.l.state, s.l.output + (TIMES - 1)*BATCH*OUT, BATCH*OUT*sizeof(float));
    assert_parameter_gradients(&s, s.l.uh, "uh", IN*OUT);
    s.net.delta = delta;
    release(&s);
}

/* ---- rnn ----------------------------------------------------------------------------------------------- */

static struct subject rnn(ACTIVATION activation, int shortcut)
{
    layer l = make_rnn_layer(BATCH*TIMES, IN, OUT, TIMES, activation, 0, 0);
    l.shortcut = shortcut;
    struct subject s = subject_of(l, BATCH*TIMES);
    carries(&s, s.l.state, BATCH*OUT);
    return s;
}

TEST(rnn_backward_is_the_gradient_and_its_last_state_goes_to_the_next_batch)
{
    for (int shortcut = 0; shortcut < 2; shortcut++){
        struct subject s = rnn(TANH, shortcut);
        run_both(&s);
        const int last = (TIMES - 1)*BATCH*OUT;
        for (int i = 0; i < BATCH*OUT && !shortcut; i++){
            float sum = s.l.input_layer->output[last + i] + s.l.self_layer->output[last + i];
            assert_float_equal(s.l.state[i], sum, 1e-6);
        }
        assert_input_gradient(&s, weighted_output, 1);
        assert_parameter_gradients(&s, s.l.input_layer, "input", IN*OUT);
        assert_parameter_gradients(&s, s.l.self_layer, "self", OUT*OUT);
        assert_parameter_gradients(&s, s.l.output_layer, "output", OUT*OUT);
        release(&s);
    }
}

/* ---- lstm ---------------------------------------------------------------------------------------------- */

static struct subject lstm(int steps)
{
    struct subject s = subject_of(make_lstm_layer(BATCH*steps, IN, OUT, steps, 0, 0), BATCH*steps);
    carries(&s, s.l.h_cpu, BATCH*OUT);
    carries(&s, s.l.c_cpu, BATCH*OUT);
    return s;
}

TEST(lstm_of_one_step_from_rest_has_the_gradient)
{
    struct subject s = lstm(1);
    memset(s.first_state[0], 0, BATCH*OUT*sizeof(float));
    memset(s.first_state[1], 0, BATCH*OUT*sizeof(float));
    run_both(&s);
    assert_input_gradient(&s, weighted_output, 1);
    layer *subs[] = {s.l.uf, s.l.ui, s.l.ug, s.l.uo, s.l.wf, s.l.wi, s.l.wg, s.l.wo};
    const char *names[] = {"uf", "ui", "ug", "uo", "wf", "wi", "wg", "wo"};
    for (int i = 0; i < 8; i++) assert_parameter_gradients(&s, subs[i], names[i], i < 4 ? IN*OUT : OUT*OUT);
    release(&s);
}

/* The gates' deltas are right at every step, but for the forget gate's at the first. */
TEST(lstm_input_weights_but_the_forget_gates_have_the_gradient)
{
    struct subject s = lstm(TIMES);
    run_both(&s);
    assert_parameter_gradients(&s, s.l.ui, "ui", IN*OUT);
    assert_parameter_gradients(&s, s.l.ug, "ug", IN*OUT);
    assert_parameter_gradients(&s, s.l.uo, "uo", IN*OUT);
    const int later = BATCH*IN; /* past the first step's inputs */
    assert_gradient(&s, weighted_output, "net.delta after the first step", s.net.input + later,
        s.inputs - later, s.net.delta + later, 1);
    release(&s);
}

/*
 * Stock's both forms: weights' gradient = sum over t of delta(t) * h(t-1), with h(0) in place of h(-1);
 * the forget gate's first delta = dc(0) * c(0) * f(1-f), with c(0) in place of c(-1), where dc(0) =
 * delta_i(0) / (g * i(1-i)).
 */
TEST(lstm_takes_the_first_step_for_the_one_before_it)
{
    struct subject s = lstm(TIMES);
    run_both(&s);
    layer *subs[] = {s.l.wf, s.l.wi, s.l.wg, s.l.wo};
    for (int w = 0; w < 4; w++){
        float expected[OUT*OUT] = {0};
        for (int t = 0; t < TIMES; t++){
            const float *h = s.l.output + (t ? t - 1 : 0)*BATCH*OUT;
            const float *delta = subs[w]->delta + t*BATCH*OUT;
            for (int b = 0; b < BATCH; b++)
                for (int o = 0; o < OUT; o++)
                    for (int i = 0; i < OUT; i++) expected[o*OUT + i] += delta[b*OUT + o]*h[b*OUT + i];
        }
        assert_close("w.weight_updates", subs[w]->weight_updates, expected, OUT*OUT, 1e-5);
    }
    float expected[BATCH*OUT];
    for (int i = 0; i < BATCH*OUT; i++){
        float f = logistic_activate(s.l.uf->output[i] + s.l.wf->output[i]);
        float in = logistic_activate(s.l.ui->output[i] + s.l.wi->output[i]);
        float g = tanh_activate(s.l.ug->output[i] + s.l.wg->output[i]);
        float dc = s.l.wi->delta[i]/(g*in*(1 - in));
        expected[i] = dc*s.l.cell_cpu[i]*f*(1 - f);
    }
    assert_close("wf.delta at the first step", s.l.wf->delta, expected, BATCH*OUT, 1e-3);
    release(&s);
}

TEST(lstm_forgets_the_overflow_of_the_batch_before)
{
    struct subject s = lstm(TIMES);
    run_both(&s);
    float *clean = zeros(s.inputs);
    memcpy(clean, s.net.delta, s.inputs*sizeof(float));

    for (int i = 0; i < BATCH*OUT; i++) s.l.dc_cpu[i] = 1e30f;
    memset(s.net.delta, 0, s.inputs*sizeof(float));
    run_both(&s);
    assert_close("net.delta", s.net.delta, clean, s.inputs, 0);
    free(clean);
    release(&s);
}

/* ---- crnn ---------------------------------------------------------------------------------------------- */

enum { SIDE = 3, HIDDEN = 2, FILTERS = 2, CHANNELS = 2 };

static struct subject crnn(ACTIVATION activation)
{
    layer l = make_crnn_layer(BATCH*TIMES, SIDE, SIDE, CHANNELS, HIDDEN, FILTERS, TIMES, activation, 0);
    return subject_of(l, BATCH*TIMES);
}

TEST(crnn_of_linear_activation_has_the_gradient_and_needs_no_workspace)
{
    struct subject s = crnn(LINEAR);
    assert_null(s.net.workspace);
    run_both(&s);
    assert_input_gradient(&s, weighted_output, 1);
    assert_parameter_gradients(&s, s.l.input_layer, "input", s.l.input_layer->nweights);
    assert_parameter_gradients(&s, s.l.self_layer, "self", s.l.self_layer->nweights);
    assert_parameter_gradients(&s, s.l.output_layer, "output", s.l.output_layer->nweights);
    release(&s);
}

/* Stock's both forms: input.delta = self.delta * act'(input), where self.delta has been through
 * act'(self) already. */
TEST(crnn_sends_the_self_layers_delta_to_the_input_layer)
{
    struct subject s = crnn(TANH);
    run_both(&s);
    assert_parameter_gradients(&s, s.l.self_layer, "self", s.l.self_layer->nweights);
    assert_parameter_gradients(&s, s.l.output_layer, "output", s.l.output_layer->nweights);
    run_both(&s);
    const int n = TIMES*BATCH*SIDE*SIDE*HIDDEN;
    float *expected = zeros(n);
    for (int i = 0; i < n; i++){
        expected[i] = s.l.self_layer->delta[i]*tanh_gradient(s.l.input_layer->output[i]);
    }
    assert_close("input.delta", s.l.input_layer->delta, expected, n, 1e-6);
    free(expected);
    release(&s);
}

int main(void)
{
    srand(1);
    return run_listed_tests("tests", NULL, NULL);
}
