/* Called after the forward of a loss layer that Darknet's own code computes. First corrects a softmax's loss
 * if a probability has underflowed to 0. Then adds up the loss of each image. */
#include "room.h"

#include <math.h>

#include "../../tensor/half.h"
#include "../network/ranks_join.h"
#include "tree.h"

/* ---- softmax ---- */

/* The `count` numbers of one softmax, `stride` apart. first: the index of the first one within its image. */
typedef struct group { int first, count, stride; } group;

static group group_of(const layer *l, int i)
{
    int pixels = l->w * l->h, each = l->inputs / (l->groups > 0 ? l->groups : 1);
    if (AMP_OWN_SPATIAL_SOFTMAX(l)) return (group){ i % pixels, l->c, pixels };
    group g = { i / each * each, each, 1 };
    if (l->softmax_tree) AMP_OWN_TREE_GROUP(l->softmax_tree, i, &g.first, &g.count);
    return g;
}

/* Returns log p[i], where p[i] = exp(x[i] / t) / Σ exp(x[k] / t), t is the temperature, and k runs over the
 * softmax of i. x: the inputs of one image. */
static double log_probability(const layer *l, const float *x, int i)
{
    group g = group_of(l, i);
    double t = AMP_OWN_SPATIAL_SOFTMAX(l) ? 1 : l->temperature, largest = -INFINITY, sum = 0;
    const float *of_group = x + g.first;
    for (int k = 0; k < g.count; k++) largest = fmax(largest, of_group[k * g.stride]);
    for (int k = 0; k < g.count; k++) sum += exp((of_group[k * g.stride] - largest) / t);
    return (x[i] - largest) / t - log(sum);
}

/* A softmax's loss is -log p of each true class. If p underflowed to 0, Darknet's loss is inf. In this case
 * the function computes the loss from the softmax's input, and sums up the cost again. */
static void complete_softmax(struct darknet_amp *amp, int index, const float *input)
{
    layer *l = &amp->net->layers[index];
    size_t count = (size_t)l->batch * (size_t)l->inputs;
    float *copy = NULL;
    double sum = 0;
    amp_error error;
    if (l->type != SOFTMAX || amp_is_finite(*l->cost)) return;
    if (amp_host_on_gpu(amp->net)) {
        amp_backend *b = amp->engine->backend;
        copy = amp_allocated(malloc(count * sizeof *copy));
        amp_host_check(b->download(b, copy, input, count * sizeof *copy, &error), &error);
        input = copy;
    }
    for (int i = 0; i < l->batch * l->inputs; i++) {
        if (!amp_is_finite(l->loss[i]))
            l->loss[i] = (float)-log_probability(l, input + i / l->inputs * l->inputs, i % l->inputs);
        sum += l->loss[i];
    }
    *l->cost = (float)sum;
    free(copy);
    if (!amp_is_finite(*l->cost) || amp->softmax_printed || !amp_ranks_prints_for(amp)) return;
    amp->softmax_printed = 1;
    fprintf(stderr, "amp: layer %d [softmax]: the probability of an image's class is 0 in fp32, which makes "
            "Darknet's loss inf; AMP computes the loss from the layer's input instead; this line is printed "
            "once\n",
            index);
}

/* ---- the loss of each image ---- */

/* Adds an array's numbers, or their squares, to the losses of their images. */
static void add_image_losses(struct darknet_amp *amp, const float *array, int per_image, int squared)
{
    double *losses = amp->image_losses.pass;
    for (int b = 0; array && b < amp->net->batch; b++)
        for (int i = 0; i < per_image; i++) {
            double value = (double)array[(size_t)b * (size_t)per_image + (size_t)i];
            losses[b] += squared ? value * value : value;
        }
}

void amp_host_note_loss(struct darknet_amp *amp, int index, const float *input)
{
    const layer *l = &amp->net->layers[index];
    if (!l->cost) return;
    complete_softmax(amp, index, input);
    if (!amp->image_losses.pass) return;
    if (l->type == COST) add_image_losses(amp, l->output, l->outputs, 0);
    else if (l->loss) add_image_losses(amp, l->loss, l->inputs, 0);
    else add_image_losses(amp, l->delta, l->outputs, 1);
}
