/* An observer sees every tensor of a pass as soon as it is computed, before anything reads it: to find where
 * inf or NaN appears (anomaly.h), for `amp probe`, and for tests that poison a tensor.
 *
 * The order in a training step, for each subdivision:
 *   forward:  the image; then for each layer, first to last, each input that had to be cast to the form that
 *             the layer computes in, then its output. A loss that AMP computes itself has no output in
 *             training; its delta is shown instead, times the loss scale, in its input's form.
 *   backward: for each layer that computes backward, last to first, its delta, summed over all consumers and
 *             times the loss scale, then each parameter's gradient, summed over the subdivisions so far.
 * Passes without training show the forward part. Layers that run the host's own code are shown like all
 * others. Not shown: casts inside backward (their sum is), batch statistics, half copies of weights.
 *
 * Without an observer the engine only makes one comparison per layer and pass. */
#pragma once

#include "../backend/backend.h"

typedef enum amp_seen_kind {
    AMP_SEEN_IMAGE,    /* fp32 NCHW, as the host gave it; layer is -1 */
    AMP_SEEN_INPUT,    /* the copy of another layer's output (or of the image) in this layer's form; all
                          layers of that form read the same copy, so it is shown once, with the first of
                          them */
    AMP_SEEN_OUTPUT,   /* the layer's output, N,H,W,C, in its home form; the network's output is shown
                          again in fp32 NCHW */
    AMP_SEEN_DELTA,    /* the delta of the output, in the same shape and form (during forward: in its
                          input's form); missing for a layer that no gradient reaches */
    AMP_SEEN_GRADIENT  /* fp32, a flat array: shape 1, count, 1, 1; not unscaled */
} amp_seen_kind;

typedef struct amp_seen {
    amp_seen_kind kind;
    int layer;          /* index in the .cfg; -1 is the image */
    const char *name;   /* "image", "input", "output", "delta", or the parameter's: "weights"; lives as long
                           as the engine */
    amp_tensor tensor;  /* in the backend's memory; the observer may write to it until see returns */
} amp_seen;

typedef struct amp_observer {
    void *context; /* the caller's; outlives the observer */
    /* Called by the thread that runs the pass. Any status other than AMP_OK ends the pass with that status
     * and *error. */
    amp_status (*see)(void *context, amp_backend *, const amp_seen *, amp_error *);
} amp_observer;

static inline int amp_seen_in_forward(amp_seen_kind kind) { return kind <= AMP_SEEN_OUTPUT; }
