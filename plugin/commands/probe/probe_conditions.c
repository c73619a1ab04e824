/* Measures each layer's condition: the factor by which the layer amplifies a relative change of its input. A
 * nudge multiplies each number of the input by 1 + AMP_NUDGE or 1 - AMP_NUDGE, at random, and the results are
 * compared with the results without the nudge. This covers independent rounding errors.
 *
 * An error that all n terms of a sum share moves the sum n times as far as an error in one term; random
 * nudges move it only sqrt(n) times as far. Two kinds of shared errors are covered separately:
 *  - Darknet's CPU code adds up a gradient image by image. An image's sum has a rounding error, which
 *    remains if the sums of two images cancel. So another nudge multiplies all pixels of an image's channel
 *    by one factor.
 *  - Batch norm's backward subtracts the mean of a channel's deltas from each of them. An error in this
 *    mean moves all these deltas equally, which nudged deltas cannot show; mean_condition computes its
 *    effect. */
#include "probe_comparison.h"

#include <math.h>

#include "../../backend/batchnorm_rules.h"
#include "../../host/program/failure.h"

/* ---- nudges ---- */

/* Measures each tensor's condition from a pass with this nudge. `conditions` keeps the largest value of all
 * nudges. Nudged outputs change deltas and gradients too. A change is not counted if a number crossed an
 * activation's kink, or if a max pool chose another pixel. If results change even without a nudge, the layer
 * is wrong, not ill-conditioned, and gets no condition. */
static void take_conditions(const amp_network_desc *n, amp_subject_nudge nudge, const amp_differences *found,
                            amp_conditions *conditions)
{
    for (int i = 0; i < n->count; i++)
        for (int k = 0; k < AMP_TRACE_KINDS; k++) {
            amp_trace_kind kind = (amp_trace_kind)k;
            double moved = amp_difference_error(&found[i][kind]);
            if (nudge == AMP_NUDGE_NOTHING && moved > (double)AMP_NUDGE) conditions[i][kind] = -INFINITY;
            if (nudge == AMP_NUDGE_NOTHING || conditions[i][kind] < 0) continue;
            /* A delta is a sum over channels, which get different nudges. */
            if (nudge == AMP_NUDGE_CHANNELS && kind == AMP_TRACE_DELTA) continue;
            if (nudge == AMP_NUDGE_OUTPUTS) moved -= amp_probe_kinked(n, found, i, kind);
            if (nudge == AMP_NUDGE_OUTPUTS && kind == AMP_TRACE_DELTA && amp_probe_is_chosen_of(n, i))
                continue;
            conditions[i][kind] = fmax(conditions[i][kind], moved / (double)AMP_NUDGE);
        }
}

amp_status amp_probe_find_conditions(amp_subject *s, const amp_trace *reference, const amp_trace *own,
                                     amp_conditions **out, amp_error *error)
{
    static const amp_subject_nudge nudges[] = {
        AMP_NUDGE_NOTHING, AMP_NUDGE_OUTPUTS, AMP_NUDGE_DELTAS, AMP_NUDGE_CHANNELS };
    *out = amp_allocated(calloc((size_t)s->network.count + 1, sizeof **out));
    for (int n = 0; n < 4; n++) {
        amp_differences *found = NULL;
        amp_status status = amp_subject_run(s, &(amp_subject_pass){ .reference = reference,
            .found = &found, .feeds = 1, .nudge = nudges[n], .not_nudged = own }, error);
        if (status == AMP_OK) take_conditions(&s->network, nudges[n], found, *out);
        free(found);
        AMP_TRY(status);
    }
    return AMP_OK;
}

/* ---- means ---- */

/* The error limit of a mean (n/2 u, probe_verdict.c), divided by that of a gradient (2n u). */
#define PART_OF_A_MEAN .25

/* Returns the condition of the weights' gradient with respect to the two means that batch norm's backward
 * subtracts: the relative error of the gradient divided by the relative error of the means (L2 norms).
 *
 * Consider a channel with n numbers, scale s and standard deviation v. Let b and g be the gradients of its
 * bias and scale. The two means are (s/v)(b/n) and (s/v)(g/n); the second one is multiplied by the normalized
 * output. So if the means have the relative error e, the gradient of a weight changes by e (s/v)(b + g) times
 * the mean of the inputs of this weight. The mean of the inputs is estimated by the root mean square of all
 * inputs x. b and g are taken from AMP, because some of Darknet's CPU code computes no b. */
static double mean_condition(const amp_layer_desc *d, const float *scales, const amp_trace *reference,
                             const amp_trace *own, int layer, const amp_trace_tensor *x)
{
    const amp_trace_tensor *w = amp_trace_at(reference, layer, AMP_TRACE_WEIGHTS);
    const amp_trace_tensor *b = amp_trace_at(own, layer, AMP_TRACE_BIASES);
    const amp_trace_tensor *g = amp_trace_at(own, layer, AMP_TRACE_SCALES);
    const amp_trace_tensor *v = amp_trace_at(reference, layer, AMP_TRACE_VARIANCES);
    size_t channels = (size_t)d->output.c;
    double moved = 0, size = amp_trace_mean_square(w);
    if (b->count != channels || g->count != channels || v->count != channels || !(size > 0)) return 0;
    for (size_t f = 0; f < channels; f++) {
        double factor = (double)scales[f] / amp_batchnorm_spread(&d->batchnorm_rule, (double)v->numbers[f]);
        double sums = fabs((double)b->numbers[f]) + fabs((double)g->numbers[f]);
        moved += factor * factor * sums * sums;
    }
    return sqrt(moved / (double)channels * amp_trace_mean_square(x) / size);
}

amp_status amp_probe_add_mean_conditions(const amp_subject *s, const amp_trace *reference,
                                         const amp_trace *own, amp_conditions *conditions, amp_error *error)
{
    amp_status status = AMP_OK;
    for (int i = 0; i < s->network.count && status == AMP_OK; i++) {
        const amp_layer_desc *d = &s->network.layers[i];
        if (!d->batch_normalize || !d->scales || !d->input_count || conditions[i][AMP_TRACE_WEIGHTS] < 0)
            continue;
        const amp_trace_tensor image = { s->source->images, s->source->image_count }, *x = &image;
        if (d->inputs[0] >= 0) x = amp_trace_at(reference, d->inputs[0], AMP_TRACE_OUTPUT);
        size_t bytes = (size_t)d->output.c * sizeof(float);
        float *scales = amp_allocated(malloc(bytes));
        status = s->backend->download(s->backend, scales, d->scales, bytes, error);
        if (status == AMP_OK)
            conditions[i][AMP_TRACE_WEIGHTS] =
                fmax(conditions[i][AMP_TRACE_WEIGHTS],
                     PART_OF_A_MEAN * mean_condition(d, scales, reference, own, i, x));
        free(scales);
    }
    return status;
}
