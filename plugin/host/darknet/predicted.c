/* Checks, with and without AMP, that network_predict returns finite numbers: inf or NaN would silently remove
 * detections, or become an index outside an array. */
#include "../../tensor/half.h"
#include "network.h"
#include "room.h"

int amp_host_gives_boxes(const layer *l) { return l->type == DETECTION || amp_own_finds_boxes(l); }

/* Returns the possible causes, for the message. text: a buffer in which the fork describes its own cause. */
static const char *why_not_finite(const network *net, char text[256])
{
    const char *fault = amp_fork_fault(net, text);
    return fault ? fault : "the weights belong to another network or are damaged, or their training diverged "
                           "or was too short for fp16 (then use bf16 or fp32)";
}

amp_status amp_host_check_predicted(const network *net, const float *output, const char *of, amp_error *error)
{
    size_t batch = (size_t)net->batch;
    char text[256];
    for (int i = 0; i < net->n; i++) {
        const layer *l = &net->layers[i];
        if (amp_host_gives_boxes(l) && l->output && !amp_all_finite(l->output, (size_t)l->outputs * batch))
            return amp_fail(error, AMP_DIVERGED, "%s: layer %d outputs inf or NaN; %s", of, i,
                            why_not_finite(net, text));
    }
    if (output && !amp_all_finite(output, (size_t)net->outputs * batch))
        return amp_fail(error, AMP_DIVERGED, "%s: the network outputs inf or NaN; %s", of,
                        why_not_finite(net, text));
    return AMP_OK;
}

float *amp_host_predict(network *net, float *image)
{
    amp_this_thread()->checks_prediction = 1;
    float *output = network_predict(AMP_NET(net), image);
    amp_this_thread()->checks_prediction = 0;
    return output;
}

void darknet_amp_predicted(struct network *net, const float *output)
{
    amp_error error;
    if (!net->amp) amp_own_fix_logistics(net);
    if (!amp_this_thread()->checks_prediction)
        amp_host_check(amp_host_check_predicted(net, output, "amp: a prediction", &error), &error);
}
