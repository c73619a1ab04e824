/* The factor by which a step's gradients are multiplied: 1/(loss scale), times clip_norm/norm if the norm of
 * the gradient is above clip_norm. */
#pragma once

#include <float.h>
#include <math.h>

#include "backend.h"

typedef struct amp_unscale {
    float factor, rest;   /* gradients are multiplied by factor, then by rest */
    double gradient_norm; /* the same as in amp_step_outcome */
} amp_unscale;

/* sum_squares: Σ grad². Every operation here is correctly rounded, so all machines get the same result. A
 * program built with -Ofast flushes subnormal floats to 0, so a subnormal factor becomes two factors. */
AMP_ANYWHERE amp_unscale amp_unscale_of(double sum_squares, const amp_update_args *args)
{
    const double small = 0x1p-100;
    double unscale = args->inverse_scale;
    double norm = sqrt(sum_squares * args->inverse_scale * args->inverse_scale) / args->batch;
    if (args->clip_norm > 0 && norm > args->clip_norm) unscale *= args->clip_norm / norm;
    int split = unscale < (double)FLT_MIN;
    amp_unscale u = { split ? (float)small : (float)unscale, split ? (float)(unscale / small) : 1, norm };
    return u;
}

AMP_ANYWHERE int amp_is_above_limit(double gradient_norm, const amp_update_args *args)
{
    return args->norm_limit != 0 && gradient_norm > args->norm_limit;
}
