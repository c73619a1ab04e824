/* debug=1: where in a pass the first inf or NaN appears. Costs a cast and a scan of every tensor; off, nothing is called. */
#ifndef AMP_AMP_ANOMALY_H
#define AMP_AMP_ANOMALY_H

#include "../layers/layer.h"

/* The first non-finite tensor of a step; found = 0 while there is none. */
typedef struct amp_anomaly {
    int found, layer;
    const char *pass;   /* "forward" or "backward" */
    const char *tensor; /* "output", "delta", or a parameter's name: its gradient */
} amp_anomaly;

/* Look at a tensor (any dtype and layout); the first find is remembered, later ones are not. */
amp_status amp_anomaly_look(amp_anomaly *, amp_backend *, const amp_tensor *, int layer, const char *pass, const char *tensor,
                            amp_error *);
/* Look at an fp32 array. */
amp_status amp_anomaly_look_array(amp_anomaly *, amp_backend *, const float *array, size_t count, int layer, const char *pass,
                                  const char *tensor, amp_error *);

#endif
