/* Which of a library's engines computes a convolution: the choice, without the library.
 *
 * A library lists candidates for a problem in the order in which it expects them to be fast. Here they are
 * filtered and ordered, built one by one until one works, timed if the caller can time, and cached per
 * problem, so that a shape that comes back (random=1) costs a lookup. A candidate that fails, at build or
 * when it runs, is never tried again for that problem. cudnn_graph.c is the library; the tests have one of
 * their own.
 *
 * One thread at a time uses an amp_conv_plans and what came out of it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "../check.h"

typedef enum amp_conv_pass { AMP_CONV_FORWARD, AMP_CONV_BACKWARD_DATA,
                             AMP_CONV_BACKWARD_FILTER } amp_conv_pass;

/* One pass of a convolution, x (n,h,w,c) · w (k, size_h, size_w, c/groups) → y (n, out_h, out_w, k), all of
 * one dtype and densely packed, sums in fp32. forward writes y; backward data writes dx, or adds to it;
 * backward filter writes dw (scaled: amp_cudnn_downscale). It is its own cache key. */
typedef struct amp_conv_problem {
    amp_conv_desc conv; /* its shapes and dtype; training, wants_dx, transposed, leaky, direct and
                           masters_stay are 0 */
    amp_conv_pass pass;
    int accumulate;     /* 1, backward data only: dx += */
    int deterministic;  /* 1: the same bits in every run */
} amp_conv_problem;

/* AMP_BAD_NETWORK if no convolution has these numbers. */
amp_status amp_conv_problem_check(const amp_conv_problem *problem, amp_error *error);

/* For messages: "convolution forward of 64x3x416x416 (n,c,h,w) to 32 filters of 3x3, ..., deterministic". */
enum { AMP_CONV_PROBLEM_TEXT = AMP_CONV_TEXT + 16 };
void amp_conv_problem_text(const amp_conv_problem *problem, char text[AMP_CONV_PROBLEM_TEXT]);

/* Properties of an engine, as the library reports them. */
enum amp_conv_notes {
    AMP_CONV_TENSOR_CORE = 1,
    AMP_CONV_DOWN_CONVERTS = 2,      /* rounds its inputs to fewer bits */
    AMP_CONV_REDUCED_REDUCTION = 4,  /* adds up in less than fp32 */
    AMP_CONV_NONDETERMINISTIC = 8,
    AMP_CONV_RUNTIME_COMPILED = 16   /* building it takes a compiler and a third of a second */
};

typedef struct amp_conv_candidate {
    int64_t engine;
    unsigned notes;
    size_t workspace; /* bytes; 0 until it is built where the library does not know before */
    int rank;         /* place in the library's list, from 0: what a failure is remembered by */
    void *config, *plan; /* the library's; plan is NULL until it is built */
} amp_conv_candidate;

enum { AMP_CONV_CANDIDATES = 128 }; /* a longer list is cut */

typedef struct amp_conv_candidates {
    amp_conv_candidate *list;
    int count;
    void *graph; /* the library's: what the configs were made for */
} amp_conv_candidates;

/* Sorts the candidates, best first, and returns how many are fit for use; the others come behind. Unfit is
 * what rounds its inputs, what is not deterministic when the problem asks for that, what needs more than
 * workspace_cap bytes, and, for an fp32 problem, Tensor Cores: there they stand for TF32. Without groups
 * Tensor Cores come first, and reduced-precision reductions only when nothing else has them; otherwise the
 * library's order holds, with reduced-precision reductions last. */
int amp_conv_candidates_sort(amp_conv_candidates *candidates, const amp_conv_problem *problem,
                             size_t workspace_cap);

/* The functions of a library. drop frees all that list allocated, except configs and plans that are NULL by
 * then. */
typedef struct amp_conv_library {
    amp_status (*list)(void *self, const amp_conv_problem *, amp_conv_candidates *out, amp_error *);
    /* sets plan, and workspace to what it needs */
    amp_status (*build)(void *self, amp_conv_candidate *, amp_error *);
    /* plan and config; sets both to NULL */
    void (*release)(void *self, amp_conv_candidate *);
    void (*drop)(void *self, amp_conv_candidates *);
} amp_conv_library;

/* A problem's plan. Callers read it; it belongs to the amp_conv_plans and stays at its address as long as
 * that lives. */
typedef struct amp_conv_plan {
    amp_conv_problem problem;
    amp_conv_candidate current; /* what runs */
    int fit;                    /* candidates of the library that are fit for use */
    int tuned;                  /* current was the fastest of those timed, */
    float ms;                   /* with this time */
    uint64_t failed[AMP_CONV_CANDIDATES / 64]; /* one bit per rank */
} amp_conv_plan;

typedef struct amp_conv_plans amp_conv_plans;

/* library and self must outlive the plans. NULL: no memory. */
amp_conv_plans *amp_conv_plans_create(const amp_conv_library *library, void *self, size_t workspace_cap);
void amp_conv_plans_destroy(amp_conv_plans *plans);

/* The problem's plan: from the cache, else the first candidate that can be built. AMP_UNSUPPORTED if none
 * can. */
amp_status amp_conv_plans_get(amp_conv_plans *plans, const amp_conv_problem *problem, amp_conv_plan **out,
                              amp_error *error);

/* The plan's current candidate did not run, for the reason in *why: the next one takes its place. If there is
 * none, the plan is left without one (current.plan is NULL), and *error says why the last one failed. */
amp_status amp_conv_plans_next(amp_conv_plans *plans, amp_conv_plan *plan, const amp_error *why,
                               amp_error *error);

/* Runs plan->current as often as it takes and sets *ms to the time of one run. An error means that it did not
 * run. */
typedef amp_status (*amp_conv_timer)(void *user, const amp_conv_plan *plan, float *ms, amp_error *error);

/* The most engines that are compiled at run time only to be timed, of all plans together. Without a limit a
 * network of many depthwise convolutions would compile for minutes, at each of its sizes. */
enum { AMP_CONV_COMPILED = 32 };

/* Times the best_of candidates that the library holds for the fastest, and keeps the one that is; once per
 * plan, a tuned plan is left as it is. Reduced-precision reductions are not timed while there is another
 * choice; engines compiled at run time, beside the one in use, up to AMP_CONV_COMPILED. */
amp_status amp_conv_plans_tune(amp_conv_plans *plans, amp_conv_plan *plan, int best_of, amp_conv_timer timer,
                               void *user, amp_error *error);
