/* A subject is a network that runs passes to be compared: stock Darknet's, or one under AMP in some dtype.
 * All start from the same weights, and each pass has the same images and the same random numbers. */
#pragma once

#include "../../host/fork_commands.h"
#include "trace.h"

/* What all subjects of a comparison have in common: the weights they start from, and the input of each pass.
 * Owned by the caller. */
typedef struct amp_subject_source {
    const char *weights;         /* NULL: random ones with this seed */
    unsigned seed;
    /* Draws biases (from -.2 to .2) and scales (from .5 to 1.5). In random weights all of them are 0 and 1,
     * which would hide errors. */
    int stirs,
    /* Makes a step before the passes: a pass, and an update by momentum alone, which moves all parameters by
     * the same amounts in all subjects with the same network and seed. The passes after this step show errors
     * of the update, and copies of weights that were not renewed. The learning rate must not be 0. */
        steps;
    float *images, *labels;      /* of one pass; NULL until they are loaded */
    size_t image_count, label_count; /* in floats */
} amp_subject_source;

typedef struct amp_subject {
    struct network *net;
    amp_engine *engine;          /* NULL: stock */
    amp_backend *backend;        /* reads the network's arrays; in stock, the subject's own */
    amp_network_desc network;
    float *images, *labels;      /* the network's input */
    const amp_subject_source *source;
    amp_counters counters;       /* before each pass */
    float scale;                 /* the loss scale; 1 in stock */
} amp_subject;

/* The smallest loss scale of a training, unless the .cfg sets another. */
#define AMP_LEAST_SCALE 0x1p-14f

/* Which fed numbers are multiplied by 1 + AMP_NUDGE or 1 - AMP_NUDGE, at random. AMP_NUDGE is large enough
 * that rounding hides little of the effect, and small enough that little else changes. */
typedef enum amp_subject_nudge {
    AMP_NUDGE_NOTHING,
    AMP_NUDGE_OUTPUTS,  /* outputs and the image */
    AMP_NUDGE_DELTAS,
    AMP_NUDGE_CHANNELS  /* deltas, with the same factor for all pixels of one image's channel */
} amp_subject_nudge;
#define AMP_NUDGE 0x1p-19f

/* What to do with the tensors of a pass; each member may be NULL. */
typedef struct amp_subject_pass {
    const amp_trace *reference;  /* each tensor is compared with the reference's */
    amp_differences **found;     /* gets the differences of each layer; the caller frees them */
    int feeds;                   /* after its comparison, each output and delta is replaced by the
                                    reference's, so that `found` holds the error that each layer adds itself.
                                    AMP only */
    amp_subject_nudge nudge;     /* changes the numbers that replace them */
    const amp_trace *not_nudged; /* a record of the pass without a nudge, with which tensors are compared
                                    instead of the reference, to measure each layer's condition */
    amp_trace *record;           /* gets a copy of all tensors */
    const amp_trace *corrects;   /* stock only: replaces the outputs that `wrong` flags */
    const amp_trace_flags *wrong;
    double *loss;
} amp_subject_pass;

/* dtype: "off" for stock. The network is made from cfg as in `detector train`. After an error there is
 * nothing to close. */
amp_status amp_subject_open(amp_subject *, const char *cfg, const char *dtype, const amp_subject_source *,
                            amp_error *);
void amp_subject_close(amp_subject *);

/* Runs a forward and a backward. If gradients or deltas of an fp16 pass overflow, and no output does, the
 * pass is repeated with half the loss scale, as a training's next step would be; the subject keeps that
 * scale. The scale may fall below AMP_LEAST_SCALE, because only an inf that no scale removes is a fault.
 * Before a fed pass, a pass on the negated images runs, so that a layer that reads a tensor too early finds
 * other numbers. */
amp_status amp_subject_run(amp_subject *, const amp_subject_pass *, amp_error *);

/* Measures the seconds of an AMP network's pass without recording: processor time of all threads, or on a GPU
 * wall time. Takes the median of the passes that fit into a fifth of a second, from 3 to 20. */
amp_status amp_subject_time(amp_subject *, double *seconds, amp_error *);
