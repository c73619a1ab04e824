/* GradScaler: the loss scale of mixed precision training, with the rule of torch.amp.GradScaler.
 *
 * fp16 cannot represent gradients below 2^-24. So the loss (here: each loss layer's delta) is multiplied by
 * `scale` before backward, and the gradients by 1/scale before the update. If the scale is too large, some
 * gradient becomes inf or NaN (found_inf): the step is skipped and the scale backs off. After growth_interval
 * consecutive clean steps the scale grows.
 *
 * Usage, once per step:
 *     delta *= scaler.scale;  backward;  found_inf = any gradient not finite;
 *     if (!found_inf) update the weights with gradient * amp_scaler_inverse(&scaler);
 *     status = amp_scaler_update(&scaler, found_inf);
 * The struct owns no memory: copying it saves and restores its whole state.
 *
 * Any C or C++ program can use the scaler with the installed library: #include <darknet_amp/amp/scaler.h>. */
#pragma once

#include "../tensor/status.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* libdarknet.so exports these functions */

/* Training ends after this many consecutive skipped steps with a scale that cannot change (a static scale, or
 * a backoff that fp32 rounds away). This is also the upper limit of hysteresis, which delays the end. */
#define AMP_SCALER_STUCK_LIMIT 100

/* Settings and state. */
typedef struct amp_scaler {
    float scale;          /* the loss scale (in settings: the initial or static scale), > 0; it and its
                             inverse are finite in fp32 */
    int enabled;          /* 0: the scale is 1, and no other member matters */
    int dynamic;          /* 0: the scale is static, and no other setting matters */
    int growth_interval;  /* >= 1 */
    double growth_factor, backoff_factor; /* growth_factor > 1 and finite; 0 < backoff_factor < 1 */
    double min_scale;     /* > 0, <= scale, inverse finite in fp32. torch has no lower limit */
    double max_scale;     /* >= scale; INFINITY: torch's rule, growth up to fp32's largest number */
    int hysteresis;       /* 1 to AMP_SCALER_STUCK_LIMIT. The scale backs off after this many consecutive
                             found_infs, and then at each further one until a clean step. Every found_inf
                             skips its step. 1 is torch's rule, larger values are Apex's */

    int hysteresis_tracker; /* found_infs left until the scale backs off */
    int growth_tracker;     /* consecutive clean steps; 0 again at growth_interval */
    int stuck;              /* consecutive skipped steps in which the scale could not shrink */
    unsigned long steps;    /* number of steps, including skipped ones */
    unsigned long skipped;
} amp_scaler;

/* Returns torch's defaults: enabled, dynamic, scale 2^16, growth_factor 2, backoff_factor 0.5,
 * growth_interval 2000, hysteresis 1. Unlike torch, it has min_scale 2^-14 and max_scale 2^126: torch's scale
 * can reach 2^127, whose inverse is subnormal, and a host that flushes subnormals to 0, like Darknet, would
 * lose every gradient. Up to 2^126 (with max_scale INFINITY: always) the scale changes exactly as in torch.
 * Pass the result to amp_scaler_init. */
amp_scaler amp_scaler_defaults(void);

/* Sets *scaler to these settings, before the first step. AMP_BAD_CONFIG: a setting is outside its range;
 * *scaler is unchanged. */
amp_status amp_scaler_init(amp_scaler *scaler, const amp_scaler *settings, amp_error *error);

/* Ends a step. found_inf: non-zero if any gradient was not finite (a sum of flags will do).
 *   dynamic, found_inf: growth_tracker = 0; hysteresis_tracker -= 1 unless it is 0. If it is now 0,
 *                       scale = (float)(scale * backoff_factor).
 *   dynamic, clean:     hysteresis_tracker = hysteresis; growth_tracker += 1. If that is now growth_interval,
 *                       growth_tracker = 0 and scale = (float)(scale * growth_factor), at most max_scale. If
 *                       the new scale is not finite, the scale does not change.
 *   static:             the scale never changes; steps and skipped are counted.
 *   disabled:           nothing happens.
 *
 * AMP_DIVERGED: a dynamic scale would fall below min_scale, or AMP_SCALER_STUCK_LIMIT is reached. The step is
 * counted as skipped, growth_tracker is 0, and the scale does not change: the state can still be saved, and
 * the next found_inf returns AMP_DIVERGED again. */
amp_status amp_scaler_update(amp_scaler *scaler, int found_inf);

/* 1 if amp_scaler_update(scaler, 1) would return AMP_DIVERGED, else 0. */
int amp_scaler_would_diverge(const amp_scaler *scaler);

/* The factor that unscales gradients: 1/scale, divided in double and rounded once to float. */
float amp_scaler_inverse(const amp_scaler *scaler);

/* Checks a state read from a file, which may contain any bits. Returns NULL, or why amp_scaler_init and
 * amp_scaler_update cannot have produced this state. */
const char *amp_scaler_problem(const amp_scaler *scaler);

/* Continues from a saved state for which amp_scaler_problem returns NULL. *scaler keeps its settings. It
 * takes over the numbers of steps and skipped steps. If both scalers are dynamic, it also takes over scale
 * and trackers, moved into the range that the settings allow. `stuck` is taken over only if the scale stays
 * the same. */
void amp_scaler_resume(amp_scaler *scaler, const amp_scaler *saved);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
