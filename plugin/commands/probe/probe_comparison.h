/* `darknet amp probe`: one pass of the same images from the same weights in stock Darknet's own code
 * and in AMP's fp32, bf16 and fp16, compared layer by layer: whether AMP's fp32 is Darknet's, which layers
 * lose most in half precision, and what keeping them in fp32 brings.
 *
 * subject.c makes passes and trace.c compares their tensors; probe_compare.c makes the passes that are
 * needed, probe_conditions.c finds how ill-conditioned each layer is, probe_keep.c tries layers in fp32,
 * probe_verdict.c decides what the differences mean, probe_figures.c shows them as tables and JSON, and
 * probe_page.c draws them. */
#pragma once

#include "../../host/program/machine.h"
#include "../table.h"
#include "subject.h"

/* Layers kept in fp32 on trial: the first `count` of amp_probe_run.order. */
typedef struct amp_keep_trial {
    int count;
    double cosine, error;    /* of the whole gradient, against fp32's */
    double seconds;          /* of a pass */
} amp_keep_trial;

/* The error of a gradient that needs no advice. */
#define AMP_PROBE_LITTLE .01

enum { AMP_KEEP_TRIALS = 4 }; /* of 1, 2, 4 and 8 layers */

/* A tensor that is further off than rounding explains. */
typedef struct amp_probe_fault { int layer; amp_trace_kind kind; double error, limit; } amp_probe_fault;

typedef double amp_conditions[AMP_TRACE_KINDS];

/* A dtype's passes. fp32 is compared with stock, bf16 and fp16 with fp32. */
typedef struct amp_probe_run {
    int ran;                 /* else the machine's note on the dtype says why not */
    float scale, fed_scale;  /* of the whole pass, and of the one whose layers are fed */
    double loss;
    amp_differences *whole;  /* of each layer, from the image on */
    amp_differences *added;  /* ... by it to what it was given */
    double cosine, error;    /* of the whole gradient of all weights, biases and scales */
    double seconds;          /* of a pass */
    int *order, order_count; /* layers that compute in half, the one that adds most first */
    amp_keep_trial trials[AMP_KEEP_TRIALS];
    int trial_count;
    int best;                /* the trial that is advised; -1: none */
    amp_probe_fault *faults; /* the largest by error / limit first */
    int fault_count;
    amp_probe_fault nearest; /* to its limit, or furthest beyond */
} amp_probe_run;

enum { AMP_PROBE_DTYPES = AMP_BF16 + 1 };

typedef struct amp_probe_comparison {
    const char *data;        /* NULL: random images and labels */
    const char *cfg, *weights;
    long images;             /* of the pass; 0: as many as the .cfg's has */
    unsigned seed;
    int stirs;               /* biases and scales are drawn too; else they are what the weights have */
    int steps;               /* a step comes before the passes: see amp_subject_step */
    int tries_nothing;
    int width, height, on_gpu;
    double stock_loss;
    amp_machine machine;
    amp_network_desc network;
    amp_trace_flags *excused; /* per layer: Darknet's own code is known to get it wrong, or gives NaN */
    amp_trace_flags *undefined; /* per layer: AMP's fp32 gives NaN */
    amp_trace_flags *beyond;    /* per layer: AMP's fp32 gives or gets numbers that fp16 does not hold */
    int first_beyond;           /* the first that gives some; -1: none */
    amp_lines stock_faults;  /* a sentence for each fault of Darknet's own code (amp_fork_stock_fault) */
    int stock_runs;          /* 0: Darknet's own code cannot run this network: AMP's fp32 is compared with
                                nothing, half precision with fp32 */
    /* Per layer: how far its result moves when its input moves by 1; both relative, in the L2 norm. For fp32
     * around the numbers of Darknet's own pass, for half precision around those of AMP's fp32. */
    amp_conditions *conditions, *conditions_of_half;
    amp_probe_run runs[AMP_PROBE_DTYPES];
    amp_lines advice;        /* what the user has to do */
} amp_probe_comparison;

/* Whether AMP's fp32 is not Darknet's. */
static inline int amp_probe_is_wrong(const amp_probe_comparison *c)
{
    return c->runs[AMP_FP32].fault_count > 0;
}

/* Makes all passes and the verdict. The input is what DATA, CFG and WEIGHTS say, files that are there.
 * AMP_BAD_CONFIG: one that does not fit. */
amp_status amp_probe_compare(amp_probe_comparison *, amp_error *);
void amp_probe_comparison_free(amp_probe_comparison *);

/* ---- probe_conditions.c ---- */

/* Fills *out, which the caller frees, with the condition of each layer around the numbers of `reference`.
 * own: what the subject made of them without a nudge. */
amp_status amp_probe_find_conditions(amp_subject *, const amp_probe_input *, const amp_trace *reference,
                                     const amp_trace *own, amp_conditions **out, amp_error *);
/* Raises those of weights' gradients by what an error in a mean that batch norm's backward takes does. */
amp_status amp_probe_add_mean_conditions(const amp_subject *, const amp_probe_input *,
                                         const amp_trace *reference, amp_conditions *, amp_error *);

/* ---- probe_keep.c ---- */

/* Sums the differences of all layers' gradients up to one; excused: without those that have a flag, or
 * NULL. */
amp_difference amp_probe_gradient(amp_differences *, int layers, amp_trace_flags *excused);
/* Fills order, trials and best of a run whose differences are known. made_from: the .cfg that it was made of;
 * fp32: the trace that it is compared with. */
amp_status amp_probe_try_keeping(const amp_probe_comparison *, amp_dtype, amp_probe_run *,
                                 const char *made_from, const amp_probe_input *, const amp_trace *fp32,
                                 amp_error *);

/* ---- probe_verdict.c ---- */

/* fp32 beyond this, less what rounding explains, may be inf in fp16. */
#define AMP_PROBE_FP16_MOST (65504 * (1 - 32 * 0x1p-12))
/* Fills in the faults of a dtype, once its run is there. */
void amp_probe_find_faults(amp_probe_comparison *, amp_dtype);
/* "layer 3 [convolutional], output: off by 0.1, where rounding explains 1.5e-05"; a delta's fault is in the
 * layers that give it. */
enum { AMP_FAULT_TEXT = 800 };
const char *amp_probe_fault_text(const amp_probe_comparison *, const amp_probe_fault *,
                                 char text[AMP_FAULT_TEXT]);
/* The verdict on a dtype: nothing could be compared; no tensor is further off than rounding explains; nor is
 * any, but fp16 does not hold the numbers; some tensor is; AMP's fp32 is off by more than a hundredth, or inf
 * or NaN. */
typedef enum amp_probe_word {
    AMP_PROBE_NONE, AMP_PROBE_SAME, AMP_PROBE_RANGE, AMP_PROBE_OFF, AMP_PROBE_WRONG } amp_probe_word;
extern const char *const amp_probe_words[];
amp_probe_word amp_probe_word_of(const amp_probe_comparison *, amp_dtype);
/* As a table, with Darknet's own faults and the advice. */
void amp_probe_print_verdict(const amp_probe_comparison *, FILE *);
void amp_probe_advise(amp_probe_comparison *);
/* AMP_DIVERGED, with a line that names the first fault. */
amp_status amp_probe_refuse(const amp_probe_comparison *, amp_error *);
/* "output", "delta", "weight gradient", ... */
extern const char *const amp_trace_names[AMP_TRACE_KINDS];
/* What outputs that were moved across the kink of an activation explain of a gradient's or a delta's
 * difference; whether a layer's outputs are chosen among these numbers (amp_layer_ops.chooses). */
double amp_probe_kinked(const amp_network_desc *, const amp_differences *added, int layer, amp_trace_kind);
int amp_probe_is_chosen_of(const amp_network_desc *, int value);
/* The error that rounding explains in what a layer adds. */
double amp_probe_limit(const amp_probe_comparison *, amp_dtype, int layer, amp_trace_kind);

/* ---- probe_figures.c, probe_page.c ---- */

void amp_probe_print_comparison(const amp_probe_comparison *, FILE *);
amp_output_writer amp_probe_write_comparison, amp_probe_write_page; /* as JSON, as HTML */
