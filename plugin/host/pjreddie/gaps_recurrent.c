/* In Darknet's CPU code, rnn writes outside its state buffer, and the backward of gru is empty. These
 * functions compute what forward_rnn_layer_gpu, backward_rnn_layer_gpu and backward_gru_layer_gpu compute:
 * truncated backpropagation through time, which takes the state before the first step as a constant.
 *
 * The sub-layers (connected layers) keep the outputs and deltas of all steps, from which the states are
 * recomputed. forward saves the first state in l.prev_state. */
#include "../darknet/own.h"

#include "activations.h"
#include "blas.h"
#include "connected_layer.h"

static float *step_of(float *x, int step, int size)
{
    return x ? x + (size_t)step * size : NULL;
}

static void add(int n, float *x, float *y)
{
    axpy_cpu(n, 1, x, 1, y, 1);
}

static void sum_of(int n, float *x, float *y, float *sum)
{
    copy_cpu(n, x, 1, sum, 1);
    add(n, y, sum);
}

/* state <- input(x) + self(state) [+ state with shortcut]; output <- output_layer(state). */
void amp_gap_forward_rnn(layer l, network net)
{
    const int n = l.outputs * l.batch;
    network s = net;

    fill_cpu(n * l.steps, 0, l.input_layer->delta, 1);
    fill_cpu(n * l.steps, 0, l.self_layer->delta, 1);
    fill_cpu(n * l.steps, 0, l.delta, 1);
    if (net.train) copy_cpu(n, l.state, 1, l.prev_state, 1);

    for (int t = 0; t < l.steps; t++) {
        layer input = amp_gap_at_step(l.input_layer, t);
        layer self = amp_gap_at_step(l.self_layer, t);
        layer output = amp_gap_at_step(l.output_layer, t);

        s.input = step_of(net.input, t, l.inputs * l.batch);
        forward_connected_layer(input, s);
        s.input = l.state;
        forward_connected_layer(self, s);

        if (!l.shortcut) fill_cpu(n, 0, l.state, 1);
        add(n, input.output, l.state);
        add(n, self.output, l.state);

        s.input = l.state;
        forward_connected_layer(output, s);
    }
}

void amp_gap_backward_rnn(layer l, network net)
{
    const int n = l.outputs * l.batch;
    network s = net;

    /* states[t] is the state before step t; states[steps] is l.state. */
    float *states = amp_gap_scratch((size_t)(l.steps + 1) * n);
    copy_cpu(n, l.prev_state, 1, states, 1);
    for (int t = 0; t < l.steps; t++) {
        float *state = states + (size_t)(t + 1) * n;
        if (l.shortcut) copy_cpu(n, state - n, 1, state, 1);
        add(n, amp_gap_at_step(l.input_layer, t).output, state);
        add(n, amp_gap_at_step(l.self_layer, t).output, state);
    }

    for (int t = l.steps - 1; t >= 0; --t) {
        layer input = amp_gap_at_step(l.input_layer, t);
        layer self = amp_gap_at_step(l.self_layer, t);
        layer output = amp_gap_at_step(l.output_layer, t);
        float *earlier_delta = (t > 0) ? self.delta - n : NULL;

        /* self.delta must become the delta of the state after step t. So far it holds the part from step
         * t + 1; the output layer's backward adds the other part. */
        s.input = states + (size_t)(t + 1) * n;
        s.delta = self.delta;
        backward_connected_layer(output, s);

        /* The state after step t is a sum, and each of its terms gets the state's delta. It is copied to the
         * input layer now, because the self layer's backward changes self.delta in place. */
        copy_cpu(n, self.delta, 1, input.delta, 1);
        if (earlier_delta && l.shortcut) add(n, self.delta, earlier_delta);

        s.input = states + (size_t)t * n;
        s.delta = earlier_delta;
        backward_connected_layer(self, s);

        s.input = step_of(net.input, t, l.inputs * l.batch);
        s.delta = step_of(net.delta, t, l.inputs * l.batch);
        backward_connected_layer(input, s);
    }
    free(states);
}

/* Darknet's own forward computes
 *
 *   z = logistic(uz(x) + wz(state))     r = logistic(ur(x) + wr(state))
 *   h = act(uh(x) + wh(r * state))      state <- output <- z * state + (1 - z) * h
 *
 * and keeps only the final step's z, r and h. */
void amp_gap_backward_gru(layer l, network net)
{
    const int n = l.outputs * l.batch;
    const ACTIVATION act = l.tanh ? TANH : LOGISTIC;
    network s = net;

    for (int t = l.steps - 1; t >= 0; --t) {
        layer uz = amp_gap_at_step(l.uz, t), wz = amp_gap_at_step(l.wz, t);
        layer ur = amp_gap_at_step(l.ur, t), wr = amp_gap_at_step(l.wr, t);
        layer uh = amp_gap_at_step(l.uh, t), wh = amp_gap_at_step(l.wh, t);
        float *delta = l.delta + (size_t)t * n;
        float *earlier_delta = (t > 0) ? delta - n : NULL;
        float *state = (t > 0) ? l.output + (size_t)(t - 1) * n : l.prev_state;

        sum_of(n, uz.output, wz.output, l.z_cpu);
        activate_array(l.z_cpu, n, LOGISTIC);
        sum_of(n, ur.output, wr.output, l.r_cpu);
        activate_array(l.r_cpu, n, LOGISTIC);
        sum_of(n, uh.output, wh.output, l.h_cpu);
        activate_array(l.h_cpu, n, act);

        weighted_delta_cpu(state, l.h_cpu, l.z_cpu, earlier_delta, uh.delta, uz.delta, n, delta);
        gradient_array(l.h_cpu, n, act, uh.delta);
        copy_cpu(n, uh.delta, 1, wh.delta, 1);

        copy_cpu(n, state, 1, l.forgot_state, 1);
        mul_cpu(n, l.r_cpu, 1, l.forgot_state, 1);
        fill_cpu(n, 0, l.forgot_delta, 1);
        s.input = l.forgot_state;
        s.delta = l.forgot_delta;
        backward_connected_layer(wh, s);
        if (earlier_delta) mult_add_into_cpu(n, l.forgot_delta, l.r_cpu, earlier_delta);
        mult_add_into_cpu(n, l.forgot_delta, state, ur.delta);

        gradient_array(l.r_cpu, n, LOGISTIC, ur.delta);
        copy_cpu(n, ur.delta, 1, wr.delta, 1);
        gradient_array(l.z_cpu, n, LOGISTIC, uz.delta);
        copy_cpu(n, uz.delta, 1, wz.delta, 1);

        s.input = state;
        s.delta = earlier_delta;
        backward_connected_layer(wr, s);
        backward_connected_layer(wz, s);

        s.input = step_of(net.input, t, l.inputs * l.batch);
        s.delta = step_of(net.delta, t, l.inputs * l.batch);
        backward_connected_layer(uh, s);
        backward_connected_layer(ur, s);
        backward_connected_layer(uz, s);
    }
}
