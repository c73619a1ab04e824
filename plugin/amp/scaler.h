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
 * The scaler is a plain struct that owns no memory: copying it saves and restores its whole state.
 *
 * Any C or C++ program can use the scaler with the installed library: #include <darknet_amp/amp/scaler.h>.
 * Nothing here depends on Darknet or on a network. */
#pragma once

#include "../tensor/status.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* libdarknet.so exports these functions */

/* Training ends after this many consecutive skipped steps with a scale that cannot change (a static scale, or
 * a backoff that fp32 rounds away). After a hundred overflowing batches the next one would overflow too. The
 * same number is the upper limit of hysteresis, so that hysteresis cannot postpone this end. */
#define AMP_SCALER_STUCK_LIMIT 100

/* Settings and state. */
typedef struct amp_scaler {
    float scale;          /* the current scale (in settings: the initial or static scale). It is above 0, and
                             the scale and its inverse are finite in fp32 */
    int enabled;          /* 0: the scale is 1, and no other member matters */
    int dynamic;          /* 0: the scale is static, and no other setting matters */
    int growth_interval;  /* >= 1 */
    double growth_factor, backoff_factor; /* growth_factor > 1 and finite; 0 < backoff_factor < 1 */
    double min_scale;     /* > 0, <= scale, inverse finite in fp32. torch has no lower limit: its scale can
                             reach 0 */
    double max_scale;     /* >= scale; INFINITY: torch's rule, growth up to fp32's largest number */
    int hysteresis;       /* 1 to AMP_SCALER_STUCK_LIMIT. The scale backs off after this many consecutive
                             found_infs, and then at each further one until a clean step. Every found_inf
                             skips its step. 1 is torch's rule, larger values are Apex's */

    int hysteresis_tracker; /* number of further found_infs until the scale backs off; a clean step resets it
                               to hysteresis */
    int growth_tracker;     /* consecutive clean steps. At growth_interval it restarts from 0, even if the
                               scale cannot grow any more */
    int stuck;              /* consecutive skipped steps in which the scale should have backed off but could
                               not change */
    unsigned long steps;    /* number of steps, including skipped steps */
    unsigned long skipped;  /* number of skipped steps */
} amp_scaler;

/* Returns torch's defaults: enabled, dynamic, scale 2^16, growth_factor 2, backoff_factor 0.5,
 * growth_interval 2000, hysteresis 1. In addition it sets min_scale 2^-14 and max_scale 2^126, which torch
 * does not have. torch's scale can reach 2^127, whose inverse is subnormal: a host that flushes subnormals to
 * 0, like Darknet, would lose every gradient. Up to 2^126 the scale changes exactly as in torch. With
 * max_scale = INFINITY it changes as in torch above 2^126 too. Pass the result to amp_scaler_init. */
amp_scaler amp_scaler_defaults(void);

/* Sets *scaler to these settings, in the state before the first step. AMP_BAD_CONFIG: a setting is outside
 * the range given above; *scaler is unchanged. */
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
 * AMP_DIVERGED: a dynamic scale would fall below min_scale, or AMP_SCALER_STUCK_LIMIT is reached. (A
 * found_inf that hysteresis tolerates causes neither.) The step is counted as skipped, growth_tracker is 0,
 * and the scale does not change. So the state can still be saved and printed, and the next found_inf returns
 * AMP_DIVERGED again. */
amp_status amp_scaler_update(amp_scaler *scaler, int found_inf);

/* 1 if amp_scaler_update(scaler, 1) would return AMP_DIVERGED, else 0. */
int amp_scaler_would_diverge(const amp_scaler *scaler);

/* The factor that unscales gradients: 1/scale, divided in double and rounded once to float. */
float amp_scaler_inverse(const amp_scaler *scaler);

/* Returns NULL if amp_scaler_init and amp_scaler_update can have produced this state, else what is wrong with
 * it. For states read from a file: *scaler may contain any bits. */
const char *amp_scaler_problem(const amp_scaler *scaler);

/* Continues from a saved state. *scaler keeps its settings and takes over the saved counters. If both scalers
 * are dynamic, it also takes over the scale and the trackers, changed to the nearest values that its settings
 * allow. `saved` must be valid: amp_scaler_problem returns NULL for it. */
void amp_scaler_resume(amp_scaler *scaler, const amp_scaler *saved);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
