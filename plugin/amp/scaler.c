/* The state machine of scaler.h. The scale is multiplied in double and stored as float, as in torch's
 * amp_update_scale_, so that the sequence of scales equals torch's bit for bit. */
#include "scaler.h"

#include <float.h>

#include "../tensor/half.h"

amp_scaler amp_scaler_defaults(void)
{
    return (amp_scaler){ .enabled = 1, .dynamic = 1, .scale = 65536, .growth_factor = 2,
                         .backoff_factor = 0.5, .growth_interval = 2000, .min_scale = 0x1p-14,
                         .max_scale = 0x1p126, .hysteresis = 1 };
}

/* 1/scale, rounded once. */
static float inverse_of(float scale) { return (float)(1.0 / (double)scale); }

static float smaller(float a, float b) { return a < b ? a : b; }
static float larger(float a, float b) { return a > b ? a : b; }

/* -- Valid values. Comparisons are written so that NaN fails them. Scales are compared in float: in double,
 * min_scale = 0.7 would differ from the scale 0.7f. -- */

static const char *scale_problem(float scale, const amp_scaler *settings)
{
    if (!(scale > 0 && amp_is_finite(scale))) return "the loss scale is not a positive fp32 number";
    if (!amp_is_finite(inverse_of(scale))) return "the loss scale has no finite inverse";
    if (!settings->dynamic) return NULL;
    if (!(scale >= (float)settings->min_scale)) return "the loss scale is below min_scale";
    if (!(scale <= (float)settings->max_scale)) return "the loss scale is above max_scale";
    return NULL;
}

static const char *settings_problem(const amp_scaler *scaler)
{
    if (!(scaler->growth_factor > 1 && scaler->growth_factor <= DBL_MAX))
        return "growth_factor is not above 1 and finite";
    if (!(scaler->backoff_factor > 0 && scaler->backoff_factor < 1))
        return "backoff_factor is not between 0 and 1";
    if (scaler->growth_interval < 1) return "growth_interval is below 1";
    if (!((float)scaler->min_scale > 0) || !amp_is_finite(inverse_of((float)scaler->min_scale)))
        return "min_scale is not a positive number with a finite inverse";
    if (!(scaler->max_scale >= scaler->min_scale)) return "max_scale is not a number of at least min_scale";
    _Static_assert(AMP_SCALER_STUCK_LIMIT == 100, "the message names it, and the table of keys does");
    if (scaler->hysteresis < 1 || scaler->hysteresis > AMP_SCALER_STUCK_LIMIT)
        return "hysteresis is not between 1 and 100";
    return NULL;
}

static const char *trackers_problem(const amp_scaler *scaler)
{
    int intervals = scaler->dynamic ? scaler->growth_interval : 1;
    if (scaler->growth_tracker < 0 || scaler->growth_tracker >= intervals)
        return "the growth tracker is not between 0 and growth_interval";
    if (scaler->dynamic && (scaler->hysteresis_tracker < 0
                            || scaler->hysteresis_tracker > scaler->hysteresis))
        return "the hysteresis tracker is not between 0 and hysteresis";
    if (scaler->stuck < 0 || scaler->stuck > AMP_SCALER_STUCK_LIMIT)
        return "the count of skipped steps in a row is out of range";
    if (scaler->skipped > scaler->steps) return "the count of skipped steps exceeds the count of all steps";
    return NULL;
}

const char *amp_scaler_problem(const amp_scaler *scaler)
{
    if (scaler->enabled != 0 && scaler->enabled != 1) return "enabled is neither 0 nor 1";
    if (scaler->dynamic != 0 && scaler->dynamic != 1) return "dynamic is neither 0 nor 1";
    if (!scaler->enabled) return scaler->scale == 1 ? NULL : "a disabled scaler's scale is not 1";
    const char *problem = scaler->dynamic ? settings_problem(scaler) : NULL;
    if (!problem) problem = scale_problem(scaler->scale, scaler);
    return problem ? problem : trackers_problem(scaler);
}

amp_status amp_scaler_init(amp_scaler *scaler, const amp_scaler *settings, amp_error *error)
{
    amp_scaler made = *settings;
    made.enabled = settings->enabled != 0;
    made.dynamic = settings->dynamic != 0;
    made.hysteresis_tracker = made.hysteresis;
    made.growth_tracker = made.stuck = 0;
    made.steps = made.skipped = 0;
    if (!made.enabled) made = (amp_scaler){ .scale = 1 };
    const char *problem = amp_scaler_problem(&made);
    if (problem) return amp_fail(error, AMP_BAD_CONFIG, "GradScaler: %s", problem);
    *scaler = made;
    return AMP_OK;
}

/* -- A step -- */

static amp_status back_off(amp_scaler *scaler)
{
    scaler->skipped++;
    scaler->growth_tracker = 0;
    if (scaler->dynamic && scaler->hysteresis_tracker > 0 && --scaler->hysteresis_tracker > 0) return AMP_OK;
    float reduced = scaler->dynamic ? (float)((double)scaler->scale * scaler->backoff_factor) : scaler->scale;
    if (scaler->dynamic && reduced < (float)scaler->min_scale) return AMP_DIVERGED;
    if (reduced != scaler->scale) scaler->stuck = 0;
    else if (scaler->stuck < AMP_SCALER_STUCK_LIMIT) scaler->stuck++;
    scaler->scale = reduced;
    return scaler->stuck < AMP_SCALER_STUCK_LIMIT ? AMP_OK : AMP_DIVERGED;
}

static void grow_when_due(amp_scaler *scaler)
{
    scaler->stuck = 0;
    if (!scaler->dynamic) return;
    scaler->hysteresis_tracker = scaler->hysteresis;
    if (++scaler->growth_tracker < scaler->growth_interval) return;
    float grown = smaller((float)((double)scaler->scale * scaler->growth_factor), (float)scaler->max_scale);
    scaler->growth_tracker = 0;
    if (amp_is_finite(grown)) scaler->scale = grown;
}

amp_status amp_scaler_update(amp_scaler *scaler, int found_inf)
{
    if (!scaler->enabled) return AMP_OK;
    scaler->steps++;
    if (found_inf) return back_off(scaler);
    grow_when_due(scaler);
    return AMP_OK;
}

int amp_scaler_would_diverge(const amp_scaler *scaler)
{
    amp_scaler tried = *scaler;
    return amp_scaler_update(&tried, 1) == AMP_DIVERGED;
}

float amp_scaler_inverse(const amp_scaler *scaler) { return inverse_of(scaler->scale); }

/* -- A saved state -- */

void amp_scaler_resume(amp_scaler *scaler, const amp_scaler *saved)
{
    if (!scaler->enabled) return;
    scaler->steps = saved->steps;
    scaler->skipped = saved->skipped;
    if (scaler->dynamic != saved->dynamic) return;
    float scale = scaler->dynamic
        ? larger((float)scaler->min_scale, smaller(saved->scale, (float)scaler->max_scale)) : scaler->scale;
    scaler->stuck = scale == saved->scale ? saved->stuck : 0;
    scaler->scale = scale;
    if (!scaler->dynamic) return;
    /* A tracker that has reached the interval becomes interval - 1: the next clean step grows the scale. */
    scaler->growth_tracker = saved->growth_tracker < scaler->growth_interval ? saved->growth_tracker
                                                                            : scaler->growth_interval - 1;
    int tolerated = saved->hysteresis - saved->hysteresis_tracker;
    scaler->hysteresis_tracker = tolerated < scaler->hysteresis ? scaler->hysteresis - tolerated : 0;
}
