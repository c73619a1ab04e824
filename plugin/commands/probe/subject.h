/* A subject is a network whose passes are compared: stock Darknet's, or one under AMP in some dtype. All
 * subjects start from the same weights, and all passes have the same images and random numbers. */
#pragma once

#include "../../host/fork_commands.h"
#include "trace.h"

/* What all subjects of a comparison share. Owned by the caller. */
typedef struct amp_subject_source {
    const char *weights;         /* NULL: random weights with this seed */
    unsigned seed;
    /* 1: draws biases (-.2 to .2) and scales (.5 to 1.5), because a new network's biases (0) and scales (1)
     * would hide errors */
    int stirs,
    /* 1: makes a training step before the passes: a pass, then an update by momentum alone, which moves each
     * parameter by the same amount in all subjects. The later passes show errors of the update, and stale
     * copies of weights. The learning rate must not be 0 */
        steps;
    float *images, *labels;      /* input of one pass; NULL until it is loaded */
    size_t image_count, label_count; /* in floats */
} amp_subject_source;

typedef struct amp_subject {
    struct network *net;
    amp_engine *engine;          /* NULL: stock */
    amp_backend *backend;        /* backend that reads the network's arrays; in stock, owned by the subject */
    amp_network_desc network;
    float *images, *labels;      /* the network's input */
    const amp_subject_source *source;
    amp_counters counters;       /* the network's counters at the start of each pass */
    float scale;                 /* the loss scale; 1 in stock */
} amp_subject;

/* The smallest loss scale of a training, unless the .cfg sets another. */
#define AMP_LEAST_SCALE 0x1p-14f

/* Which tensors are nudged before layers read them. A nudge multiplies each number by 1 ± AMP_NUDGE, the sign
 * at random. This is large enough to exceed rounding, and small enough that little else changes. */
typedef enum amp_subject_nudge {
    AMP_NUDGE_NOTHING,
    AMP_NUDGE_OUTPUTS,  /* outputs and the image */
    AMP_NUDGE_DELTAS,
    AMP_NUDGE_CHANNELS  /* deltas, with one factor for each channel of each image */
} amp_subject_nudge;
#define AMP_NUDGE 0x1p-19f

/* What to do with the tensors of a pass. Each pointer may be NULL. */
typedef struct amp_subject_pass {
    const amp_trace *reference;  /* the trace to compare with */
    amp_differences **found;     /* out: each layer's differences; the caller frees *found */
    int feeds;                   /* AMP only. 1: each output and delta is compared, then replaced by the
                                    reference's, so that `found` has the error that each layer adds itself */
    amp_subject_nudge nudge;     /* the nudge of the reference's numbers; used only with feeds */
    const amp_trace *not_nudged; /* to measure conditions: a record of the same pass without a nudge. If not
                                    NULL, the pass is compared with it instead of the reference */
    amp_trace *record;           /* out: a copy of all tensors */
    const amp_trace *corrects;   /* stock only: its outputs replace those that are flagged in `wrong` */
    const amp_trace_flags *wrong;
    double *loss;
} amp_subject_pass;

/* dtype: "off" for stock. Makes the network as `detector train` does. An error closes the subject. */
amp_status amp_subject_open(amp_subject *, const char *cfg, const char *dtype, const amp_subject_source *,
                            amp_error *);
void amp_subject_close(amp_subject *);

/* Runs forward and backward. If gradients or deltas of an fp16 pass overflow, and no output does, halves the
 * loss scale and repeats the pass. The subject keeps the lower scale. The scale may fall below
 * AMP_LEAST_SCALE, because an inf is a fault only if no scale removes it. If the pass has `feeds`, a pass on
 * negated images runs first, so that a layer that reads a tensor too early finds other numbers. */
amp_status amp_subject_run(amp_subject *, const amp_subject_pass *, amp_error *);

/* Measures a pass of an AMP network, without recording it. The time is processor time, summed over all
 * threads; on a GPU it is wall time. *seconds is the median of as many passes as fit into a fifth of a
 * second, but of at least 3 and at most 20. */
amp_status amp_subject_time(amp_subject *, double *seconds, amp_error *);
