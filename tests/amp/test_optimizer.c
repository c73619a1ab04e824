/* SGD, Adam and AdamW on every kind of parameter Darknet trains, against double precision.
 *
 * The reference does not use the engine's descriptions: it walks Darknet's layers as stock's update functions
 * do, takes only gradients from the engine, and keeps its own weights and history in double over several
 * steps. */
#define _DEFAULT_SOURCE /* mkstemps */
#include "testing.h"

#include "optimizer_testing.h"

/* ---- the reference ---- */

typedef struct reference {
    float *master; size_t count; int decays; double rate_scale, *w, *u, *m, *v, largest;
} reference;
typedef struct references { reference all[64]; int count; } references;

static void refer_to(references *r, float *master, size_t count, int decays, double rate_scale)
{
    if (!master) return;
    assert_true(r->count < (int)COUNT(r->all));
    reference *one = &r->all[r->count++];
    *one = (reference){ master, count, decays, rate_scale, calloc(count, sizeof(double)),
                        calloc(count, sizeof(double)), calloc(count, sizeof(double)),
                        calloc(count, sizeof(double)), 0 };
    for (size_t e = 0; e < count; e++) one->w[e] = (double)master[e];
}

/* Like update_convolutional_layer and the others: weights decay, biases and scales do not. */
static void refer_to_layer(references *r, const layer *l, double rate_scale)
{
    size_t outputs = (size_t)(l->type == CONNECTED || l->type == LOCAL ? l->outputs
                              : l->type == BATCHNORM ? l->c : l->n);
    size_t weights = l->type == CONNECTED ? (size_t)l->inputs * (size_t)l->outputs
        : l->type == LOCAL ? (size_t)l->size * l->size * l->c * l->n * l->out_w * l->out_h
        : l->type == DECONVOLUTIONAL ? (size_t)l->size * l->size * l->c * l->n
        : (size_t)l->size * l->size * (l->c / (l->groups ? l->groups : 1)) * l->n;
    if (l->type != BATCHNORM) refer_to(r, l->weights, weights, 1, rate_scale);
    refer_to(r, l->biases, outputs, 0, rate_scale);
    refer_to(r, l->scales, outputs, 0, rate_scale);
}

static references references_of(network *net, double first_rate_scale)
{
    references r = { .count = 0 };
    for (int i = 0; i < net->n; i++) {
        layer *l = &net->layers[i];
        double scale = i ? 1 : first_rate_scale;
        layer *inside[8] = { 0 };
        if (l->type == RNN || l->type == CRNN)
            memcpy(inside, (layer *[]){ l->input_layer, l->self_layer, l->output_layer }, 3 * sizeof *inside);
        if (l->type == GRU)
            memcpy(inside, (layer *[]){ l->ur, l->uz, l->uh, l->wr, l->wz, l->wh }, 6 * sizeof *inside);
        if (l->type == LSTM)
            memcpy(inside, (layer *[]){ l->wf, l->wi, l->wg, l->wo, l->uf, l->ui, l->ug, l->uo },
                   8 * sizeof *inside);
        for (int k = 0; k < 8 && inside[k]; k++) refer_to_layer(&r, inside[k], scale);
        if (l->type == CONVOLUTIONAL || l->type == DECONVOLUTIONAL || l->type == CONNECTED || l->type == LOCAL
            || l->type == BATCHNORM)
            refer_to_layer(&r, l, scale);
    }
    return r;
}

static void free_references(references *r)
{
    for (int i = 0; i < r->count; i++) {
        free(r->all[i].w); free(r->all[i].u); free(r->all[i].m); free(r->all[i].v);
    }
}

static void reference_sgd(reference *r, const float *grad, double inverse, const network *net, double rate)
{
    double batch = net->batch * net->subdivisions;
    for (size_t e = 0; e < r->count; e++) {
        double step = r->u[e] + (double)grad[e] * inverse -
            (r->decays ? (double)net->decay * batch * r->w[e] : 0);
        r->w[e] += rate * r->rate_scale / batch * step;
        r->u[e] = step * (double)net->momentum;
    }
}

/* Adam as adam_update_gpu: every array decays, and the rate is not divided by the batch. AdamW as
 * torch.optim.AdamW with a loss that is summed over the batch: weights lose rate·decay, other arrays
 * nothing. */
static void reference_adam(reference *r, const float *grad, double inverse, const network *net,
                           double rate, int t, int adamw)
{
    double b1 = (double)net->B1, b2 = (double)net->B2, decay = (double)net->decay;
    double added = adamw ? 0 : decay * net->batch * net->subdivisions;
    rate *= r->rate_scale;
    for (size_t e = 0; e < r->count; e++) {
        double d = (double)grad[e] * inverse - added * r->w[e];
        r->m[e] = b1 * r->m[e] + (1 - b1) * d;
        r->v[e] = b2 * r->v[e] + (1 - b2) * d * d;
        if (adamw && r->decays) r->w[e] *= 1 - rate * decay;
        r->w[e] += rate * (r->m[e] / (1 - pow(b1, t))) /
            (sqrt(r->v[e] / (1 - pow(b2, t))) + (double)net->eps);
    }
}

enum { SGD, ADAM, ADAMW };

/* Asserts that every array follows the reference and has a gradient. */
static void follow_reference(const char *kind, const char *solver, int adam, const char *dtype, int steps)
{
    char keys[512];
    snprintf(keys, sizeof keys, "batch=4\nsubdivisions=2\nlearning_rate=.0002\nmomentum=.8\ndecay=.3\namp=1\n"
             "loss_scale=1000\n%s", solver);
    network *net = load(kind, keys, "learning_rate=.25\n", dtype);
    references r = references_of(net, .25);
    int count;
    engine_params(net->amp->engine, &count);
    assert_int_equal(count, r.count);
    assert_int_equal(net->subdivisions, 2);
    for (int t = 1; t <= steps; t++) {
        gradients_of_step(net, 40u * (unsigned)t);
        double rate = (double)get_current_rate(net), inverse = (double)(float)(1.0 / 1000);
        for (int i = 0; i < r.count; i++) {
            reference *one = &r.all[i];
            const amp_param *p = param_at(net, one->master);
            assert_int_equal(p->count, one->count);
            for (size_t e = 0; e < p->count; e++) /* fmax here causes an internal error of gcc 12 for
                                                     aarch64 */
                if (fabs((double)p->grad[e]) > one->largest) one->largest = fabs((double)p->grad[e]);
            if (adam) reference_adam(one, p->grad, inverse, net, rate, t, adam == ADAMW);
            else reference_sgd(one, p->grad, inverse, net, rate);
        }
        update_network(net);
        if (*net->t != t) fail_msg("%s: step %d was skipped", kind, t);
    }
    assert_int_equal(net->amp->skipped, 0);
    for (int i = 0; i < r.count; i++) {
        const reference *one = &r.all[i];
        const amp_param *p = param_at(net, one->master);
        if (!(one->largest > 0))
            fail_msg("%s, layer %d, %s: its gradient was 0 in every step", kind, p->layer, p->name);
        assert_near(kind, p, "master", p->master, one->w, adam ? 2e-5 : 1e-6);
        if (!adam) assert_near(kind, p, "momentum", p->momentum, one->u, 1e-5);
        if (adam) assert_near(kind, p, "m", p->m, one->m, 1e-5);
        if (adam) assert_near(kind, p, "v", p->v, one->v, 1e-5);
    }
    free_references(&r);
    release(net);
}

/* The decay is .3, so that AdamW's decay of other arrays, or one that grows with the batch, would be seen. */
TEST(every_solver_follows_the_reference_on_every_kind)
{
    static const struct { int adam; const char *keys; } solvers[] = { { SGD, "" },
        { ADAM, "adam=1\nB1=.8\nB2=.95\neps=.002\n" },
        { ADAMW, "adam=1\nadamw=1\nB1=.7\nB2=.9\neps=.001\n" } };
    for (size_t i = 0; i < COUNT(solvers); i++) {
        for (size_t k = 0; k < COUNT(kinds); k++) {
            /* batch norm in a recurrent layer divides by variances near 0: with SGD that network does not
             * survive its second step */
            int steps = solvers[i].adam == SGD && !strcmp(kinds[k], "recurrent_batchnorm") ? 1 : 4;
            follow_reference(kinds[k], solvers[i].keys, solvers[i].adam, "fp32", steps);
        }
        follow_reference("convolutional_batchnorm", solvers[i].keys, solvers[i].adam, "bf16", 4);
    }
}

int main(void) { return run_listed_tests("tests", NULL, NULL); }
