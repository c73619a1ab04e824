/* The state machine of scaler.h. Factors multiply in double and the scale is stored as float, as in torch's
 * amp_update_scale_, so that the sequence of scales is torch's bit for bit. */
#include "scaler.h"

#include <float.h>

#include "../tensor/half.h"

amp_scaler_params amp_scaler_defaults(void)
{
    return (amp_scaler_params){ .enabled = 1, .dynamic = 1, .scale = 65536, .growth_factor = 2, .backoff_factor = 0.5,
                                .growth_interval = 2000, .min_scale = 0x1p-14 };
}

/* 1/scale, rounded once. */
static float inverse_of(float scale) { return (float)(1.0 / (double)scale); }

/* What is wrong with params, or NULL. Comparisons are written so that NaN fails them. */
static const char *params_problem(const amp_scaler_params *params)
{
    if (!(params->scale > 0 && params->scale <= FLT_MAX)) return "the loss scale is not a positive fp32 number";
    if (!((float)params->scale > 0) || !amp_is_finite(inverse_of((float)params->scale)))
        return "the loss scale has no finite inverse";
    if (!params->dynamic) return NULL;
    if (!(params->growth_factor > 1 && params->growth_factor <= DBL_MAX))
        return "growth_factor is not above 1 and finite";
    if (!(params->backoff_factor > 0 && params->backoff_factor < 1)) return "backoff_factor is not between 0 and 1";
    if (params->growth_interval < 1) return "growth_interval is below 1";
    if (!((float)params->min_scale > 0) || !amp_is_finite(inverse_of((float)params->min_scale)))
        return "min_scale is not a positive number with a finite inverse";
    if (!(params->scale >= params->min_scale)) return "the loss scale is below min_scale";
    return NULL;
}

amp_status amp_scaler_init(amp_scaler *scaler, const amp_scaler_params *params, amp_error *error)
{
    if (!params->enabled) {
        *scaler = (amp_scaler){ .scale = 1 };
        return AMP_OK;
    }
    const char *problem = params_problem(params);
    if (problem) return amp_fail(error, AMP_BAD_CONFIG, "GradScaler: %s", problem);
    *scaler = (amp_scaler){ .scale = (float)params->scale, .enabled = 1, .dynamic = params->dynamic != 0,
                            .growth_factor = params->growth_factor, .backoff_factor = params->backoff_factor,
                            .growth_interval = params->growth_interval, .min_scale = params->min_scale };
    return AMP_OK;
}

static amp_status back_off(amp_scaler *scaler)
{
    float reduced = scaler->dynamic ? (float)((double)scaler->scale * scaler->backoff_factor) : scaler->scale;
    scaler->skipped++;
    scaler->growth_tracker = 0;
    /* compared as floats, or a floor of 0.7 would lie above the scale 0.7 */
    if (scaler->dynamic && reduced < (float)scaler->min_scale) return AMP_DIVERGED;
    if (reduced != scaler->scale) scaler->stuck = 0;
    else if (scaler->stuck < AMP_SCALER_STUCK_LIMIT) scaler->stuck++;
    scaler->scale = reduced;
    return scaler->stuck < AMP_SCALER_STUCK_LIMIT ? AMP_OK : AMP_DIVERGED;
}

/* Above 2^126 the inverse is subnormal, and a host built with -Ofast flushes it to 0: every gradient would be lost. */
static const float LARGEST_SCALE = 0x1p126f;

static void grow_when_due(amp_scaler *scaler)
{
    scaler->stuck = 0;
    if (!scaler->dynamic || ++scaler->growth_tracker < scaler->growth_interval) return;
    float grown = (float)((double)scaler->scale * scaler->growth_factor);
    scaler->growth_tracker = 0;
    if (grown <= LARGEST_SCALE) scaler->scale = grown;
}

amp_status amp_scaler_update(amp_scaler *scaler, int found_inf)
{
    if (!scaler->enabled) return AMP_OK;
    scaler->steps++;
    if (found_inf) return back_off(scaler);
    grow_when_due(scaler);
    return AMP_OK;
}

float amp_scaler_inverse(const amp_scaler *scaler) { return inverse_of(scaler->scale); }
