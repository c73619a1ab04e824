/* How batch norm computes in AlexeyAB's and hank-ai's Darknets. This rule has its own file so that a test
 * program can replace it. */
#include "../darknet/room.h"

/* Chosen so that AMP's fp32 computes what -amp off does, and each can predict with weights that the other
 * trained. The rule on the CPU is that of normalize_cpu, variance_cpu and forward_batchnorm_layer; connected
 * layers have another rolling_factor. The rule on a GPU is cuDNN's: see ../pjreddie/batchnorm_rule.c. */
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
