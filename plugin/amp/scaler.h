/* GradScaler: the loss scale of mixed precision training, by the rule of torch.amp.GradScaler.
 *
 * fp16 loses gradients below 2^-24. So the loss (here: each loss layer's delta) is multiplied by `scale`
 * before backward and the gradients by 1/scale before the update. A scale too large overflows: then some
 * gradient is inf or NaN (found_inf), the step is skipped and the scale backs off; after growth_interval
 * clean steps in a row it grows.
 *
 * Usage, once per step:
 *     delta *= scaler.scale;  backward;  found_inf = any gradient not finite;
 *     if (!found_inf) update the weights with gradient * amp_scaler_inverse(&scaler);
 *     status = amp_scaler_update(&scaler, found_inf);
 * A plain struct that owns no memory: copying it saves and restores its whole state.
 *
 * Any C or C++ program can use it, with the installed library: #include <darknet_amp/amp/scaler.h>. Nothing
 * here knows of Darknet or of a network. */
#pragma once

#include "../tensor/status.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* libdarknet.so exports it */

/* So many skipped steps in a row with a scale that does not move (a static one, or a backoff that fp32 rounds
 * away) end training: a hundred batches that all overflow are no accident, and nothing would ever change.
 * hysteresis has the same bound, or it would be a way around this one. */
#define AMP_SCALER_STUCK_LIMIT 100

/* Settings and state in one. */
typedef struct amp_scaler {
    float scale;          /* initial or static; > 0, and it and its inverse finite in fp32 */
    int enabled;          /* 0: scale 1, and nothing below matters */
    int dynamic;          /* 0: scale is static, and no other setting matters */
    int growth_interval;  /* >= 1 */
    double growth_factor, backoff_factor; /* > 1 and finite; > 0 and < 1 */
    double min_scale;     /* > 0, <= scale, inverse finite in fp32; torch has no floor and can reach 0 */
    double max_scale;     /* >= scale; INFINITY: torch's rule, growth up to fp32's largest number */
    int hysteresis;       /* 1 to AMP_SCALER_STUCK_LIMIT: the scale backs off at the hysteresis-th found_inf
                             since a clean step and at each one after it, and all of them skip their step. 1
                             is torch's rule, more is Apex's */

    int hysteresis_tracker; /* found_infs until the scale backs off; hysteresis after a clean step */
    int growth_tracker;     /* clean steps in a row since the scale last moved (or could not grow) */
    int stuck;              /* skipped steps in a row that left the scale where it was, and should not have */
    unsigned long steps;    /* updates, skipped ones included */
    unsigned long skipped;  /* updates with found_inf */
} amp_scaler;

/* torch's defaults: enabled, dynamic, 2^16, 2, 0.5, 2000, hysteresis 1; and our floor of 2^-14 and cap of
 * 2^126. torch's scale goes on to 2^127, whose inverse is subnormal: a host that flushes such numbers to 0,
 * as Darknet does, would lose every gradient. Up to 2^126 both take the same steps; with max_scale = INFINITY
 * beyond it as well. To be given to amp_scaler_init. */
amp_scaler amp_scaler_defaults(void);

/* A scaler with these settings, before any step. AMP_BAD_CONFIG: one is out of the range above; *scaler is
 * then unchanged. */
amp_status amp_scaler_init(amp_scaler *scaler, const amp_scaler *settings, amp_error *error);

/* Ends a step. found_inf: non-zero if any gradient was not finite (a sum of flags will do).
 *   dynamic, found_inf: growth_tracker = 0, hysteresis_tracker -= 1 unless it is 0; if it is 0 now,
 *                       scale = (float)(scale * backoff_factor).
 *   dynamic, clean:     hysteresis_tracker = hysteresis, growth_tracker += 1; at growth_interval it returns
 *                       to 0 and (float)(scale * growth_factor), at most max_scale, is taken if finite.
 *   static:             the scale never moves; steps and skipped are counted.
 *   disabled:           nothing happens.
 *
 * AMP_DIVERGED: a dynamic scale would fall below min_scale, or AMP_SCALER_STUCK_LIMIT is reached (found_infs
 * that hysteresis tolerates do neither). The step is counted as skipped, growth_tracker is 0, and the scale
 * keeps its last value that was not below min_scale; so the state is fit to be saved and printed, and a
 * further found_inf says AMP_DIVERGED again. */
amp_status amp_scaler_update(amp_scaler *scaler, int found_inf);

/* 1 if amp_scaler_update(scaler, 1) would return AMP_DIVERGED, else 0. */
int amp_scaler_would_diverge(const amp_scaler *scaler);

/* What gradients are multiplied with before the update: 1/scale, divided in double and rounded once. */
float amp_scaler_inverse(const amp_scaler *scaler);

/* What is wrong with a state that was read from a file, or NULL if amp_scaler_init and amp_scaler_update can
 * have made it. Whatever bits it holds, looking is safe. */
const char *amp_scaler_problem(const amp_scaler *scaler);

/* Goes on from a saved state with this scaler's settings, which win: takes the saved counters, and if both
 * are dynamic the scale and the trackers too, where this scaler's settings allow them (else the nearest they
 * allow). saved must be sound. */
void amp_scaler_resume(amp_scaler *scaler, const amp_scaler *saved);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
