/* A network that makes passes to be compared: stock Darknet's, or one under AMP in some dtype. All begin with
 * the same weights, and each pass is made on the same images with the same random numbers. */
#pragma once

#include "../../host/fork_commands.h"
#include "trace.h"

/* One pass's images and labels, and how many of each. The caller's. */
typedef struct amp_probe_input { float *images, *labels; size_t image_count, label_count; } amp_probe_input;

typedef struct amp_subject {
    struct network *net;
    amp_engine *engine;          /* NULL: stock */
    amp_backend *backend;        /* reads the network's arrays; stock's is the subject's own */
    amp_network_desc network;
    float *images, *labels;      /* where it reads its input */
    unsigned seed;
    amp_counters counters;       /* before each pass */
    float scale;                 /* the loss scale; 1 in stock */
} amp_subject;

/* The least loss scale of a training, unless the .cfg has another. */
#define AMP_LEAST_SCALE 0x1p-14f

/* Which of the fed numbers are multiplied by 1 + AMP_NUDGE or 1 - AMP_NUDGE: outputs, and the image; deltas;
 * or deltas, all pixels of one image's channel alike. AMP_NUDGE is large enough that rounding hides little of
 * the effect, and small enough that little else changes. */
typedef enum amp_subject_nudge {
    AMP_NUDGE_NOTHING, AMP_NUDGE_OUTPUTS, AMP_NUDGE_DELTAS, AMP_NUDGE_CHANNELS } amp_subject_nudge;
#define AMP_NUDGE 0x1p-19f

/* What is done with the tensors of a pass; each may be NULL. */
typedef struct amp_subject_pass {
    const amp_trace *reference;  /* each tensor is compared with it */
    amp_differences **found;     /* ... and this is what is found, for each layer; the caller frees it */
    int feeds;                   /* each output and delta is then replaced by the reference's, so that what is
                                    found of a layer is what it adds itself to what it was given. AMP only */
    amp_subject_nudge nudge;     /* ... and nudged */
    const amp_trace *not_nudged; /* compared with, instead of the reference: a record of the pass without a
                                    nudge, which shows how ill-conditioned a layer is */
    amp_trace *record;           /* keeps all tensors */
    const amp_trace *corrects;   /* stock only: the outputs that `wrong` flags are replaced by these */
    const amp_trace_flags *wrong;
    double *loss;
} amp_subject_pass;

/* dtype: "off" for stock's. cfg is what the network is made of, as `detector train` makes it; weights NULL:
 * random ones of this seed. On failure there is nothing to close. */
amp_status amp_subject_open(amp_subject *, const char *cfg, const char *weights, const char *dtype,
                            unsigned seed, amp_error *);
void amp_subject_close(amp_subject *);

/* Draws biases (from -.2 to .2) and scales (from .5 to 1.5), which in random weights are all 0 and 1, so that
 * a wrong one would not be seen. Alike in all subjects of one network and seed. */
amp_status amp_subject_stir(amp_subject *, amp_error *);

/* A pass and an update, by momentum alone, that moves all parameters, alike in all subjects of one network
 * and seed: the passes after it see where it went wrong, and copies of weights that were not made anew. The
 * learning rate must not be 0. */
amp_status amp_subject_step(amp_subject *, amp_error *);

/* A forward and a backward. Where gradients or deltas overflow, and no output does, a pass in fp16 is made
 * again with half the loss scale, as a training's next step would be, which the subject keeps. This goes on
 * below AMP_LEAST_SCALE: an inf that no scale takes away is a fault. A pass that is fed comes after one on
 * negatives of the images, so that it finds other numbers where it reads too early. */
amp_status amp_subject_run(amp_subject *, const amp_probe_input *, const amp_subject_pass *, amp_error *);

/* Seconds that a pass takes when nothing looks at its tensors: of the processor, by all threads; on a GPU, of
 * the clock. The median of as many passes as a fifth of a second holds, from 3 to 20. Of an AMP network. */
amp_status amp_subject_time(amp_subject *, const amp_probe_input *, double *seconds, amp_error *);
