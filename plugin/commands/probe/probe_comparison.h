/* `darknet amp probe`: runs a training pass in stock Darknet's own code and in AMP's fp32, bf16 and fp16,
 * with the same images and weights, and compares the passes layer by layer. Shows whether AMP's fp32 agrees
 * with Darknet's, which layers lose most in half precision, and how much it helps to keep them in fp32.
 *
 * subject.c runs a pass, trace.c compares its tensors, and probe_compare.c decides which passes are run. */
#pragma once

#include "../../host/program/machine.h"
#include "../cfg_copy.h"
#include "../table.h"
#include "subject.h"

/* A trial in which the first `count` layers of amp_probe_run.order are kept in fp32. */
typedef struct amp_keep_trial {
    int count;
    double cosine, error;    /* cosine and relative error of all gradients together, against fp32's */
    double seconds;          /* duration of a pass */
} amp_keep_trial;

/* A relative gradient error up to this needs no advice. */
#define AMP_PROBE_LITTLE .01

enum { AMP_KEEP_TRIALS = 4 }; /* with 1, 2, 4 and 8 layers in fp32 */

/* A tensor whose error is above `limit`, the largest error that rounding explains. */
typedef struct amp_probe_fault { int layer; amp_trace_kind kind; double error, limit; } amp_probe_fault;

typedef double amp_conditions[AMP_TRACE_KINDS];

/* A dtype's passes. fp32 is compared with stock; bf16 and fp16 are compared with fp32. */
typedef struct amp_probe_run {
    int ran;                 /* 0: it did not run; amp_machine.note says why */
    float scale, fed_scale;  /* loss scales: of the pass for `whole`; of the pass for `added` */
    double loss;
    amp_differences *whole;  /* differences in a pass of the whole network */
    amp_differences *added;  /* what each layer adds itself, starting from the reference's numbers */
    double cosine, error;    /* cosine and relative error of all gradients, against the reference's */
    double seconds;          /* duration of a pass */
    /* layers whose matrix products run in half precision, sorted by added error, largest first */
    int *order, order_count;
    amp_keep_trial trials[AMP_KEEP_TRIALS];
    int trial_count;
    int best;                /* the recommended trial; -1: none */
    amp_probe_fault *faults; /* the faults, sorted by error / limit, largest first */
    int fault_count;
    amp_probe_fault nearest; /* the tensor with the largest error / limit */
} amp_probe_run;

enum { AMP_PROBE_DTYPES = AMP_BF16 + 1 };

typedef struct amp_probe_comparison {
    const char *data;        /* NULL: random images and labels */
    const char *cfg;
    amp_subject_source source; /* amp_probe_compare sets its images and labels */
    long images;             /* images per pass; 0: as in the .cfg */
    int tries_nothing;       /* 1: no trials with layers kept in fp32 */
    char copy[AMP_MEMORY_FILE]; /* the name of an in-memory copy of the .cfg with one pass per batch */
    int width, height, on_gpu;
    double stock_loss;
    amp_machine machine;
    amp_network_desc network;
    /* Flags of each layer's tensors. A flag is set if: */
    amp_trace_flags *excused;   /* Darknet's own code is known to compute the tensor wrongly, or as NaN */
    amp_trace_flags *undefined; /* the tensor is inf or NaN in AMP's fp32, or its value is undefined */
    amp_trace_flags *beyond;    /* in AMP's fp32, the layer reads or writes numbers that fp16 cannot hold */
    int first_beyond;           /* the first layer with numbers that fp16 cannot hold; -1: none */
    amp_lines stock_faults;  /* a sentence for each fault of Darknet's own code (amp_fork_stock_fault) */
    int stock_runs;          /* 0: Darknet's own code cannot run the network, so AMP's fp32 is not compared */
    /* Each layer's condition: the relative change of its result, divided by the relative change of its input
     * (L2 norms). `conditions` is for fp32, measured with the numbers of Darknet's own pass;
     * `conditions_of_half` is for half precision, measured with the numbers of AMP's fp32 pass. */
    amp_conditions *conditions, *conditions_of_half;
    amp_probe_run runs[AMP_PROBE_DTYPES];
    amp_lines advice;        /* what the user should do */
} amp_probe_comparison;

/* Whether AMP's fp32 differs from Darknet's by more than rounding explains. */
static inline int amp_probe_is_wrong(const amp_probe_comparison *c)
{
    return c->runs[AMP_FP32].fault_count > 0;
}

/* Runs all passes and makes the verdict. data, cfg and weights must be existing files; data and weights may
 * be NULL. AMP_BAD_CONFIG: one of the files is not valid. */
amp_status amp_probe_compare(amp_probe_comparison *, amp_error *);
void amp_probe_comparison_free(amp_probe_comparison *);

/* ---- probe_conditions.c: how ill-conditioned each layer is ---- */

/* Measures the condition of each layer with the numbers of `reference`. own: the record of a pass in which
 * each layer started from these numbers, without a nudge. The caller frees *out. */
amp_status amp_probe_find_conditions(amp_subject *, const amp_trace *reference, const amp_trace *own,
                                     amp_conditions **out, amp_error *);
/* Raises the conditions of the weights' gradients: they must also cover errors in the means that batch norm's
 * backward subtracts. */
amp_status amp_probe_add_mean_conditions(const amp_subject *, const amp_trace *reference,
                                         const amp_trace *own, amp_conditions *, amp_error *);

/* ---- probe_keep.c: layers in fp32 ---- */

/* Adds up the differences of all gradients, except those that are flagged in `excused` (may be NULL). */
amp_difference amp_probe_gradient(amp_differences *, int layers, amp_trace_flags *excused);
/* Fills order, trials and best of a dtype's run, whose differences must be known. fp32: the reference. */
amp_status amp_probe_try_keeping(amp_probe_comparison *, amp_dtype, const amp_trace *fp32, amp_error *);

/* ---- probe_verdict.c: what the differences mean ---- */

/* fp16's maximum, less the error that rounding explains: a larger number in fp32 may become inf in fp16. */
#define AMP_PROBE_FP16_MOST (65504 * (1 - 32 * 0x1p-12))
/* Finds the faults of a dtype after its run. */
void amp_probe_find_faults(amp_probe_comparison *, amp_dtype);
/* Writes a fault to text, and returns text: "layer 3 [convolutional], output: off by 0.1, where rounding
 * explains 1.5e-05". For a delta, names the layers that compute it. */
enum { AMP_FAULT_TEXT = 800 };
const char *amp_probe_fault_text(const amp_probe_comparison *, const amp_probe_fault *,
                                 char text[AMP_FAULT_TEXT]);
/* The verdict on a dtype. NONE: nothing could be compared. SAME: rounding explains all errors. RANGE: as
 * SAME, but fp16 cannot hold some numbers. OFF: the error of some tensor is larger than rounding explains.
 * WRONG: AMP's fp32 is off by more than a hundredth, or is inf or NaN. */
typedef enum amp_probe_word {
    AMP_PROBE_NONE, AMP_PROBE_SAME, AMP_PROBE_RANGE, AMP_PROBE_OFF, AMP_PROBE_WRONG } amp_probe_word;
extern const char *const amp_probe_words[];
amp_probe_word amp_probe_word_of(const amp_probe_comparison *, amp_dtype);
void amp_probe_advise(amp_probe_comparison *);
/* Names for messages: "output", "delta", "weights' gradient", ... */
extern const char *const amp_trace_names[AMP_TRACE_KINDS];
/* Estimates how large the error of a gradient or a delta becomes if rounding moves outputs across the kink of
 * an activation: 4 times amp_difference.flipped. Returns 0 for other tensors. added: the differences that
 * each layer adds itself. */
double amp_probe_kinked(const amp_network_desc *, const amp_differences *added, int layer, amp_trace_kind);
/* Whether a layer that copies selected elements (amp_layer_ops.chooses, a max pool) reads this output. */
int amp_probe_is_chosen_of(const amp_network_desc *, int value);
/* The largest error that rounding explains in this tensor, if the layer starts from the reference's
 * numbers. */
double amp_probe_limit(const amp_probe_comparison *, amp_dtype, int layer, amp_trace_kind);

/* Prints the verdict as a table, with the faults of Darknet's own code and the advice. */
amp_output_writer amp_probe_print_verdict;

/* ---- probe_figures.c, probe_page.c ---- */

/* Write an amp_probe_comparison as text, as JSON and as HTML. */
amp_output_writer amp_probe_print_comparison, amp_probe_write_comparison, amp_probe_write_page;
