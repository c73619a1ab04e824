/* A subject is a network whose passes are compared: stock Darknet's network, or a network under AMP in some
 * dtype. All subjects start from the same weights. All passes have the same images and the same random
 * numbers. */
#pragma once

#include "../../host/fork_commands.h"
#include "trace.h"

/* What all subjects of a comparison share: the weights that they start from, and the input of each pass.
 * Owned by the caller. */
typedef struct amp_subject_source {
    const char *weights;         /* NULL: random weights with this seed */
    unsigned seed;
    /* 1: draws random biases (from -.2 to .2) and scales (from .5 to 1.5). In new networks all biases are 0
     * and all scales 1, which would hide errors. */
    int stirs,
    /* 1: makes a training step before the passes. The step is a pass, then an update by momentum alone, which
     * moves all parameters by the same amounts in all subjects with the same network and seed. The later
     * passes show errors of the update, and stale copies of weights. The learning rate must not be 0. */
        steps;
    float *images, *labels;      /* input of one pass; NULL until it is loaded */
    size_t image_count, label_count; /* in floats */
} amp_subject_source;

typedef struct amp_subject {
    struct network *net;
    amp_engine *engine;          /* NULL: stock */
    amp_backend *backend;        /* reads the network's arrays; in stock, the subject owns it */
    amp_network_desc network;
    float *images, *labels;      /* the network's input */
    const amp_subject_source *source;
    amp_counters counters;       /* the network's counters at the start of each pass */
    float scale;                 /* the loss scale; 1 in stock */
} amp_subject;

/* The smallest loss scale of a training, unless the .cfg sets another. */
#define AMP_LEAST_SCALE 0x1p-14f

/* Which tensors are nudged before layers read them. A nudge multiplies each number by 1 + AMP_NUDGE
 * or 1 - AMP_NUDGE, at random. AMP_NUDGE is large enough that its effect exceeds rounding, and small enough
 * that little else changes. */
typedef enum amp_subject_nudge {
    AMP_NUDGE_NOTHING,
    AMP_NUDGE_OUTPUTS,  /* outputs and the image */
    AMP_NUDGE_DELTAS,
    AMP_NUDGE_CHANNELS  /* deltas, with one factor for each channel of each image */
} amp_subject_nudge;
#define AMP_NUDGE 0x1p-19f

/* What to do with the tensors of a pass. Each pointer may be NULL. */
typedef struct amp_subject_pass {
    const amp_trace *reference;  /* each tensor is compared with the same tensor of this trace */
    amp_differences **found;     /* out: the differences of each layer; the caller frees *found */
    int feeds;                   /* 1: each output and delta is compared, and then replaced by the reference's
                                    output or delta. So `found` has the error that each layer adds itself. AMP
                                    only */
    amp_subject_nudge nudge;     /* with feeds: nudges the reference's numbers before layers get them */
    const amp_trace *not_nudged; /* a record of the same pass without a nudge. Tensors are compared with it
                                    instead of the reference, to measure each layer's condition */
    amp_trace *record;           /* out: a copy of all tensors */
    const amp_trace *corrects;   /* stock only: its outputs replace those that are flagged in `wrong` */
    const amp_trace_flags *wrong;
    double *loss;
} amp_subject_pass;

/* dtype: "off" for stock. The network is made from cfg as in `detector train`. After an error the subject is
 * closed already. */
amp_status amp_subject_open(amp_subject *, const char *cfg, const char *dtype, const amp_subject_source *,
                            amp_error *);
void amp_subject_close(amp_subject *);

/* Runs forward and backward. If gradients or deltas of an fp16 pass overflow, and no output does, halves the
 * loss scale and repeats the pass. The subject keeps the lower scale. The scale may fall below
 * AMP_LEAST_SCALE, because an inf is a fault only if no scale removes it. If the pass has `feeds`, a pass on
 * negated images runs first, so that a layer that reads a tensor too early finds other numbers. */
amp_status amp_subject_run(amp_subject *, const amp_subject_pass *, amp_error *);

/* Measures the seconds of an AMP network's pass without recording: processor time of all threads, or on a GPU
 * wall time. Takes the median of the passes that fit into a fifth of a second; at least 3 and at most 20
 * passes. */
amp_status amp_subject_time(amp_subject *, double *seconds, amp_error *);
