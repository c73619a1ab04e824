/* AlexeyAB's and hank-ai's batch norm rule, in its own file so that a test program can replace it. */
#include "../darknet/room.h"

/* With this rule, AMP in fp32 computes the same as Darknet without AMP (-amp off). On the CPU it is the rule
 * of normalize_cpu, variance_cpu and forward_batchnorm_layer; connected layers have their own rolling_factor.
 * On a GPU it is cuDNN's rule: see ../pjreddie/batchnorm_rule.c. */
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
