/* Chooses which of a library's engines computes a convolution.
 *
 * For each problem (one pass of a convolution) the library lists candidate engines, those expected to be
 * fastest first. conv_plan.c filters and sorts them. It takes the first one that can be built; if the caller
 * has a timer, it takes the fastest. It caches the choice, because shapes occur again (random=1). A candidate
 * that fails to build or to run is never tried again for that problem. cudnn_graph.c implements the library
 * (amp_conv_library); the tests have a fake one.
 *
 * Only one thread at a time may use an amp_conv_plans and its plans. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "../check.h"

typedef enum amp_conv_pass { AMP_CONV_FORWARD, AMP_CONV_BACKWARD_DATA,
                             AMP_CONV_BACKWARD_FILTER } amp_conv_pass;

/* One pass of a convolution that amp_check_conv has accepted, with input x (n,h,w,c), weights w (k, size_h,
 * size_w, c/groups) and output y (n, out_h, out_w, k). All have one dtype and are densely packed; sums are in
 * fp32. The backward-filter pass writes dw, which may be scaled down (amp_cudnn_downscale). The whole struct
 * is the cache's key. */
typedef struct amp_conv_problem {
    amp_conv_desc conv; /* shapes and dtype; fields that do not change the problem are 0: training, wants_dx,
                           transposed, leaky, direct, masters_stay */
    amp_conv_pass pass;
    int accumulate;     /* 1 (only in the backward-data pass): adds to dx */
    int deterministic;  /* 1: the result must have the same bits in every run */
} amp_conv_problem;

/* For messages: "convolution forward of 64x3x416x416 (n,c,h,w) to 32 filters of 3x3, ..., deterministic". */
enum { AMP_CONV_PROBLEM_TEXT = AMP_CONV_TEXT + 16 };
void amp_conv_problem_text(const amp_conv_problem *problem, char text[AMP_CONV_PROBLEM_TEXT]);

/* Properties of an engine, as the library reports them. */
enum amp_conv_notes {
    AMP_CONV_TENSOR_CORE = 1,
    AMP_CONV_DOWN_CONVERTS = 2,      /* rounds its inputs to fewer bits */
    AMP_CONV_REDUCED_REDUCTION = 4,  /* sums in fewer bits than fp32 */
    AMP_CONV_NONDETERMINISTIC = 8,
    AMP_CONV_RUNTIME_COMPILED = 16   /* building it compiles it, in a third of a second */
};

typedef struct amp_conv_candidate {
    int64_t engine;
    unsigned notes;
    size_t workspace; /* size in bytes; 0 if the library knows it only after building the engine */
    int rank;         /* place in the library's list, from 0; failures are recorded by rank */
    void *config, *plan; /* owned by the library; plan is NULL until it is built */
} amp_conv_candidate;

enum { AMP_CONV_CANDIDATES = 128 }; /* the maximum length of a list; a longer list is truncated */

typedef struct amp_conv_candidates {
    amp_conv_candidate *list;
    int count;
    void *graph; /* the library's operation graph, which all configs share */
} amp_conv_candidates;

/* Sorts the candidates, best first, moves unfit ones to the end, and returns how many are fit.
 *
 * An engine is unfit if it rounds its inputs, if it needs more than workspace_cap bytes, if it is not
 * deterministic but the problem requires that, or if it uses Tensor Cores for fp32 (they would compute in
 * TF32). Fit engines are sorted by these keys, in this order:
 *  - without groups only: engines with Tensor Cores come first;
 *  - engines with reduced-precision reductions come last;
 *  - the library's order. */
int amp_conv_candidates_sort(amp_conv_candidates *candidates, const amp_conv_problem *problem,
                             size_t workspace_cap);

/* The functions of a library; self: the library. */
typedef struct amp_conv_library {
    amp_status (*list)(void *self, const amp_conv_problem *, amp_conv_candidates *out, amp_error *);
    /* builds the candidate's plan, and sets workspace to the bytes that the plan needs */
    amp_status (*build)(void *self, amp_conv_candidate *, amp_error *);
    /* frees plan and config, and sets both to NULL */
    void (*release)(void *self, amp_conv_candidate *);
    /* frees what `list` allocated, except configs and plans that the caller has set to NULL */
    void (*drop)(void *self, amp_conv_candidates *);
} amp_conv_library;

/* The plan for a problem. The amp_conv_plans owns it and never moves it. Callers only read it. */
typedef struct amp_conv_plan {
    amp_conv_problem problem;
    amp_conv_candidate current; /* the engine that runs; its plan is NULL if no engine is left */
    int fit;                    /* how many of the library's candidates are fit */
    int tuned;                  /* 1: engines were timed, and current was the fastest */
    float ms;                   /* current's time, if tuned */
    uint64_t failed[AMP_CONV_CANDIDATES / 64]; /* bit `rank` is set: the candidate has failed */
} amp_conv_plan;

typedef struct amp_conv_plans amp_conv_plans;

/* library and self must outlive the plans. workspace_cap: bytes. */
amp_conv_plans *amp_conv_plans_create(const amp_conv_library *library, void *self, size_t workspace_cap);
void amp_conv_plans_destroy(amp_conv_plans *plans);

/* Sets *out to the problem's plan: the cached one, or a new one with the best candidate that can be built. If
 * no candidate can be built, returns the status of the last attempt, or AMP_UNSUPPORTED if there was none. */
amp_status amp_conv_plans_get(amp_conv_plans *plans, const amp_conv_problem *problem, amp_conv_plan **out,
                              amp_error *error);

/* Call this when the current candidate has failed to run, with error *why. Replaces it by the next candidate
 * that can be built. If none is left, current.plan becomes NULL, and the call fails with the last candidate's
 * error. */
amp_status amp_conv_plans_next(amp_conv_plans *plans, amp_conv_plan *plan, const amp_error *why,
                               amp_error *error);

/* Sets *ms to the time of one run of plan->current. Returns an error if it does not run. */
typedef amp_status (*amp_conv_timer)(void *user, const amp_conv_plan *plan, float *ms, amp_error *error);

/* The maximum number of engines, over all plans, that may be compiled at run time for timing. Without a
 * limit, a network with many depthwise convolutions would compile for minutes at each of its sizes. */
enum { AMP_CONV_COMPILED = 32 };

/* Times the first best_of candidates in the library's order, and makes the fastest one current. Does nothing
 * if the plan is tuned. Two kinds of engines are not timed:
 *  - engines with reduced-precision reductions, unless the best candidate in sorted order has them too;
 *  - engines that are compiled at run time, once AMP_CONV_COMPILED engines have been compiled for timing; the
 *    current engine is timed nevertheless. */
amp_status amp_conv_plans_tune(amp_conv_plans *plans, amp_conv_plan *plan, int best_of, amp_conv_timer timer,
                               void *user, amp_error *error);
