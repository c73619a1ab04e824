/* An observer sees every tensor of a pass as soon as it is computed, before anything reads it: for anomaly
 * detection (anomaly.h), `amp probe`, and tests that write inf or NaN to a tensor.
 *
 * The order in a training step, for each subdivision:
 *   forward:  first the image. Then for each layer, first to last: each input that had to be cast to the
 *             layer's form, then the layer's output. In training, a loss that AMP computes itself has no
 *             output; the delta of its input is shown instead, times the loss scale, in the input's form.
 *   backward: for each layer that computes backward, last to first: its delta, summed over all consumers and
 *             times the loss scale, then each parameter's gradient, summed over the subdivisions so far.
 * Passes without training show only the forward part. Not shown: the parts of a delta that backward casts
 * from other forms, batch statistics, and half copies of weights. */
#pragma once

#include "../backend/backend.h"

typedef enum amp_seen_kind {
    AMP_SEEN_IMAGE,    /* fp32 NCHW, as the host gave it; layer is -1 */
    AMP_SEEN_INPUT,    /* another layer's output, or the image, cast to this layer's form; shown only for the
                          first layer that reads this cast */
    AMP_SEEN_OUTPUT,   /* the layer's output, N,H,W,C, in its home form; the network's output is shown
                          again in fp32 NCHW */
    AMP_SEEN_DELTA,    /* in backward: the output's delta, in the output's shape and home form, if a
                          gradient reaches the layer; in forward: the delta that a loss has computed for
                          its input */
    AMP_SEEN_GRADIENT  /* fp32, flat: (1, count, 1, 1); times the loss scale */
} amp_seen_kind;

typedef struct amp_seen {
    amp_seen_kind kind;
    int layer;          /* index in the .cfg; -1: the image */
    const char *name;   /* "image", "input", "output", "delta", or a parameter's name ("weights"); valid as
                           long as the engine exists */
    amp_tensor tensor;  /* the tensor, in the backend's memory; the observer may write to it until see
                           returns */
} amp_seen;

typedef struct amp_observer {
    void *context; /* owned by the caller; must outlive the observer */
    /* Called by the thread that runs the pass. Any status but AMP_OK ends the pass. */
    amp_status (*see)(void *context, amp_backend *, const amp_seen *, amp_error *);
} amp_observer;

static inline int amp_seen_in_forward(amp_seen_kind kind) { return kind <= AMP_SEEN_OUTPUT; }
