/* GradScaler: the loss scale of mixed precision training, by the rule of torch.amp.GradScaler.
 *
 * fp16 loses gradients below 2^-24. So the loss (here: each loss layer's delta) is multiplied by `scale` before
 * backward and the gradients by 1/scale before the update. A scale too large overflows: then some gradient is inf or
 * NaN (found_inf), the step is skipped and the scale backs off; after growth_interval clean steps in a row it grows.
 *
 * Usage, once per step:
 *     delta *= scaler.scale;  backward;  found_inf = any gradient not finite;
 *     if (!found_inf) update the weights with gradient * amp_scaler_inverse(&scaler);
 *     status = amp_scaler_update(&scaler, found_inf);
 * A plain struct that owns no memory: copying it saves and restores its whole state. */
#ifndef AMP_AMP_SCALER_H
#define AMP_AMP_SCALER_H

#include "../tensor/status.h"

/* So many skipped steps in a row with a scale that does not move (a static one, or a backoff that fp32 rounds away) end
 * training: a hundred batches that all overflow are no accident, and nothing would ever change. */
#define AMP_SCALER_STUCK_LIMIT 100

typedef struct amp_scaler_params {
    int enabled;          /* 0: scale 1, and nothing below matters */
    int dynamic;          /* 0: scale is static, and only `scale` below matters */
    double scale;         /* initial or static; > 0, and it and its inverse finite in fp32 */
    double growth_factor, backoff_factor; /* > 1 and finite; > 0 and < 1 */
    int growth_interval;  /* >= 1 */
    double min_scale;     /* > 0, <= scale, inverse finite in fp32; torch has no floor, and its scale can reach 0 */
} amp_scaler_params;

/* torch's defaults: enabled, dynamic, 2^16, 2, 0.5, 2000; and our floor of 2^-14. */
amp_scaler_params amp_scaler_defaults(void);

typedef struct amp_scaler {
    float scale;
    int enabled, dynamic;
    double growth_factor, backoff_factor;
    int growth_interval;
    int growth_tracker;    /* clean steps in a row since the scale last moved (or could not grow) */
    double min_scale;
    unsigned long steps;   /* updates, skipped ones included */
    unsigned long skipped; /* updates with found_inf */
    int stuck;             /* skipped steps in a row at one and the same scale */
} amp_scaler;

/* AMP_BAD_CONFIG: a parameter out of the range above; *scaler is then unchanged. */
amp_status amp_scaler_init(amp_scaler *scaler, const amp_scaler_params *params, amp_error *error);

/* Ends a step. found_inf: non-zero if any gradient was not finite (a sum of flags will do).
 *   dynamic, found_inf: scale = (float)(scale * backoff_factor), growth_tracker = 0.
 *   dynamic, clean:     growth_tracker += 1; at growth_interval it returns to 0 and (float)(scale * growth_factor)
 *                       is taken up to 2^126 (torch: if finite, so up to 2^127; beyond 2^126 the inverse is subnormal, and
 *                       a host built with -Ofast flushes that to 0).
 *   static:             the scale never moves; steps and skipped are counted.
 *   disabled:           nothing happens.
 * AMP_DIVERGED: a dynamic scale would fall below min_scale, or AMP_SCALER_STUCK_LIMIT is reached. The step is counted
 * as skipped, growth_tracker is 0, and the scale keeps its last value that was not below min_scale; so the state is fit
 * to be saved and printed, and a further found_inf says AMP_DIVERGED again. */
amp_status amp_scaler_update(amp_scaler *scaler, int found_inf);

/* What gradients are multiplied with before the update: 1/scale, divided in double and rounded once. */
float amp_scaler_inverse(const amp_scaler *scaler);

#endif
