/* How batch norm computes in AlexeyAB's Darknet. It has its own file so that a test program can replace the
 * rule. */
#include "../darknet/room.h"

/* Chosen so that AMP's fp32 computes what -amp off does, and each can predict with weights that the other
 * trained. CPU: normalize_cpu, variance_cpu and forward_batchnorm_layer; connected layers have another
 * rolling_factor. GPU: cuDNN's, see pjreddie's. */
amp_batchnorm_rule amp_own_batchnorm_rule(const layer *l, int on_gpu)
{
    amp_batchnorm_rule rule = { .unbiased = !on_gpu,
                                .direct_outside_root = !on_gpu,
                                .epsilon_inside_root = 1,
                                .epsilon = .00001f,
                                .backward_epsilon = .00001f,
                                .rolling_factor = .01f };
    if (!on_gpu) rule.rolling_factor = l->type == CONNECTED ? .05f : .1f;
    return rule;
}
