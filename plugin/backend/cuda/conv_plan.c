/* Choosing, building, timing and caching the engines of convolutions; see conv_plan.h. */
#include "conv_plan.h"

#include <stdlib.h>
#include <string.h>

struct amp_conv_plans {
    const amp_conv_library *library;
    void *self;
    size_t workspace_cap;
    amp_conv_plan **list;
    int count;
    size_t room;
    int compiled; /* number of engines compiled for timing, at most AMP_CONV_COMPILED */
};

/* ---- problems ---- */

static const char *pass_name(const amp_conv_problem *p)
{
    static const char *const names[] = { "forward", "backward data", "backward filter" };
    return p->accumulate ? "backward data (adding)" : names[p->pass];
}

void amp_conv_problem_text(const amp_conv_problem *p, char text[AMP_CONV_PROBLEM_TEXT])
{
    amp_conv_text(&p->conv, pass_name(p), text);
    if (p->deterministic) strcat(text, ", deterministic");
}

/* ---- candidates ---- */

typedef enum fitness { FIT, DOWN_CONVERTS, TF32, NONDETERMINISTIC, OVER_CAP, FITNESSES } fitness;

static fitness fitness_of(const amp_conv_candidate *c, const amp_conv_problem *p, size_t workspace_cap)
{
    if (c->notes & AMP_CONV_DOWN_CONVERTS) return DOWN_CONVERTS;
    if (p->conv.dtype == AMP_FP32 && (c->notes & AMP_CONV_TENSOR_CORE)) return TF32;
    if (p->deterministic && (c->notes & AMP_CONV_NONDETERMINISTIC)) return NONDETERMINISTIC;
    if (c->workspace > workspace_cap) return OVER_CAP;
    return FIT;
}

/* Fit candidates are sorted by this number, lowest first; the library's order breaks ties. */
static int preference(const amp_conv_candidate *c, const amp_conv_problem *p)
{
    int reduced = (c->notes & AMP_CONV_REDUCED_REDUCTION) != 0;
    int slow = p->conv.groups == 1 && !(c->notes & AMP_CONV_TENSOR_CORE);
    return 2 * slow + reduced;
}

int amp_conv_candidates_sort(amp_conv_candidates *candidates, const amp_conv_problem *problem,
                             size_t workspace_cap)
{
    amp_conv_candidate *list = candidates->list;
    int fit = 0;
    for (int i = 0; i < candidates->count; i++) {
        amp_conv_candidate c = list[i];
        if (fitness_of(&c, problem, workspace_cap) != FIT) continue;
        int to = fit++;
        /* list[to] to list[i-1] are unfit. They move up by one place, and c is inserted among the fit
         * candidates before them. */
        memmove(&list[to + 1], &list[to], sizeof *list * (size_t)(i - to));
        while (to > 0 && preference(&list[to - 1], problem) > preference(&c, problem)) {
            list[to] = list[to - 1];
            to--;
        }
        list[to] = c;
    }
    return fit;
}

/* Writes the part of the error that says why no candidate is left: "none of the 12 candidates fits: 3 need
 * more workspace than 256 MiB, ...". */
static void explain_none_fit(const amp_conv_candidates *candidates, const amp_conv_plan *plan,
                             size_t workspace_cap, char *text, size_t size)
{
    int counts[FITNESSES] = { 0 };
    for (int i = 0; i < candidates->count; i++)
        counts[fitness_of(&candidates->list[i], &plan->problem, workspace_cap)]++;
    snprintf(text, size, "none of the %d candidates fits: %d need more workspace than %zu MiB, %d are not "
             "deterministic, %d round their inputs, %d failed", candidates->count, counts[OVER_CAP],
             workspace_cap >> 20, counts[NONDETERMINISTIC],
             counts[DOWN_CONVERTS] + counts[TF32], counts[FIT]);
}

/* ---- one plan ---- */

static void mark_failed(amp_conv_plan *plan, const amp_conv_candidate *c)
{
    plan->failed[c->rank / 64] |= UINT64_C(1) << c->rank % 64;
}

static int has_failed(const amp_conv_plan *plan, const amp_conv_candidate *c)
{
    return (plan->failed[c->rank / 64] >> c->rank % 64) & 1;
}

static void release_current(amp_conv_plans *plans, amp_conv_plan *plan)
{
    if (plan->current.config || plan->current.plan) plans->library->release(plans->self, &plan->current);
}

/* Makes c, which has been built, the plan's current candidate, and moves c's config and plan there. */
static void set_current(amp_conv_plans *plans, amp_conv_plan *plan, amp_conv_candidate *c)
{
    release_current(plans, plan);
    plan->current = *c;
    c->config = c->plan = NULL;
}

static amp_status list_sorted(amp_conv_plans *plans, amp_conv_plan *plan, amp_conv_candidates *out,
                              amp_error *error)
{
    amp_error why;
    *out = (amp_conv_candidates){ 0 };
    if (plans->library->list(plans->self, &plan->problem, out, &why) != AMP_OK) {
        char text[AMP_CONV_PROBLEM_TEXT];
        amp_conv_problem_text(&plan->problem, text);
        return amp_fail(error, why.status, "%s: %s", text, why.message);
    }
    plan->fit = amp_conv_candidates_sort(out, &plan->problem, plans->workspace_cap);
    return AMP_OK;
}

/* Builds c. Marks it as failed if it cannot be built, or if it then needs more workspace than allowed. */
static amp_status build(amp_conv_plans *plans, amp_conv_plan *plan, amp_conv_candidate *c, amp_error *why)
{
    amp_status status = plans->library->build(plans->self, c, why);
    if (status == AMP_OK && c->workspace > plans->workspace_cap) {
        status = amp_fail(why, AMP_NO_MEMORY, "engine %lld needs %zu MiB of workspace", (long long)c->engine,
                          c->workspace >> 20);
        plans->library->release(plans->self, c);
    }
    if (status != AMP_OK) mark_failed(plan, c);
    return status;
}

/* Sets the plan's current candidate to the best one that can be built and has not failed yet. *why, on entry
 * and on return: the most recent failure, or status AMP_OK if there was none. */
static amp_status choose(amp_conv_plans *plans, amp_conv_plan *plan, amp_error *why, amp_error *error)
{
    amp_conv_candidates candidates;
    AMP_TRY(list_sorted(plans, plan, &candidates, error));
    for (int i = 0; i < plan->fit && !plan->current.plan; i++)
        if (!has_failed(plan, &candidates.list[i]) && build(plans, plan, &candidates.list[i], why) == AMP_OK)
            set_current(plans, plan, &candidates.list[i]);
    amp_status status = AMP_OK;
    if (!plan->current.plan) {
        char text[AMP_CONV_PROBLEM_TEXT], counts[200];
        amp_conv_problem_text(&plan->problem, text);
        explain_none_fit(&candidates, plan, plans->workspace_cap, counts, sizeof counts);
        status = why->status == AMP_OK ? AMP_UNSUPPORTED : why->status;
        if (!candidates.count)
            amp_fail(error, status, "%s: the library has no engine for it on this device", text);
        else amp_fail(error, status, "%s: %s%s%s", text, counts, why->status ? ": " : "",
                      why->status ? why->message : "");
    }
    plans->library->drop(plans->self, &candidates);
    return status;
}

/* ---- all plans ---- */

amp_conv_plans *amp_conv_plans_create(const amp_conv_library *library, void *self, size_t workspace_cap)
{
    amp_conv_plans *plans = amp_allocated(calloc(1, sizeof *plans));
    *plans = (amp_conv_plans){ .library = library, .self = self, .workspace_cap = workspace_cap };
    return plans;
}

void amp_conv_plans_destroy(amp_conv_plans *plans)
{
    if (!plans) return;
    for (int i = 0; i < plans->count; i++) {
        release_current(plans, plans->list[i]);
        free(plans->list[i]);
    }
    free(plans->list);
    free(plans);
}

static int same(const amp_conv_problem *a, const amp_conv_problem *b)
{
    _Static_assert(sizeof *a == 22 * sizeof(int),
                   "a problem is compared byte by byte: it may hold no padding");
    return !memcmp(a, b, sizeof *a);
}

amp_status amp_conv_plans_get(amp_conv_plans *plans, const amp_conv_problem *problem, amp_conv_plan **out,
                              amp_error *error)
{
    amp_error why = { .status = AMP_OK };
    for (int i = 0; i < plans->count; i++) {
        if (!same(&plans->list[i]->problem, problem)) continue;
        *out = plans->list[i];
        return (*out)->current.plan ? AMP_OK : choose(plans, *out, &why, error);
    }
    amp_conv_plan *plan = amp_allocated(calloc(1, sizeof *plan));
    plan->problem = *problem;
    amp_status status = choose(plans, plan, &why, error);
    if (status != AMP_OK) {
        free(plan);
        return status;
    }
    plans->list = amp_grow(plans->list, (size_t)plans->count, &plans->room, sizeof *plans->list);
    *out = plans->list[plans->count++] = plan;
    return AMP_OK;
}

amp_status amp_conv_plans_next(amp_conv_plans *plans, amp_conv_plan *plan, const amp_error *why,
                               amp_error *error)
{
    amp_error last = *why;
    if (plan->current.plan) mark_failed(plan, &plan->current);
    release_current(plans, plan);
    plan->tuned = 0;
    return choose(plans, plan, &last, error);
}

/* ---- tuning ---- */

/* Whether list[i] is one of the first best_of candidates in the library's order. Failed candidates are not
 * counted. Candidates with reduced-precision reductions are counted only if list[0], the best one, has such
 * reductions. */
static int worth_timing(const amp_conv_plan *plan, const amp_conv_candidate *list, int i, int best_of)
{
    unsigned unwanted = list[0].notes & AMP_CONV_REDUCED_REDUCTION ? 0 : AMP_CONV_REDUCED_REDUCTION;
    if ((list[i].notes & unwanted) || has_failed(plan, &list[i])) return 0;
    int before = 0;
    for (int j = 0; j < plan->fit; j++)
        before += !(list[j].notes & unwanted) && !has_failed(plan, &list[j]) && list[j].rank < list[i].rank;
    return before < best_of;
}

/* Whether a timing with this status is a failure of the engine. A lack of memory is not the engine's fault:
 * the workspace may fit when the memory for timing has been freed. */
static int is_its_fault(amp_status timed) { return timed != AMP_OK && timed != AMP_NO_MEMORY; }

/* Times the current candidate, which is already built. */
static void time_current(amp_conv_plan *plan, amp_conv_timer timer, void *user, amp_error *why)
{
    amp_status status = timer(user, plan, &plan->ms, why);
    plan->tuned = status == AMP_OK;
    if (is_its_fault(status)) mark_failed(plan, &plan->current);
}

/* Builds c, unless that would compile more than AMP_CONV_COMPILED engines. Returns whether c is built. */
static int built_for_timing(amp_conv_plans *plans, amp_conv_plan *plan, amp_conv_candidate *c, amp_error *why)
{
    int compiles = (c->notes & AMP_CONV_RUNTIME_COMPILED) != 0;
    if (compiles && plans->compiled >= AMP_CONV_COMPILED) return 0;
    plans->compiled += compiles;
    return build(plans, plan, c, why) == AMP_OK;
}

/* Times the current candidate of `trial`, and moves it to `plan` if it is the fastest so far. */
static void time_one(amp_conv_plans *plans, amp_conv_plan *trial, amp_conv_plan *plan, amp_conv_timer timer,
                     void *user, amp_error *why)
{
    float ms;
    amp_status status = timer(user, trial, &ms, why);
    if (is_its_fault(status)) {
        mark_failed(plan, &trial->current);
    } else if (status == AMP_OK && (!plan->tuned || ms < plan->ms)) {
        set_current(plans, plan, &trial->current);
        plan->tuned = 1;
        plan->ms = ms;
    }
    release_current(plans, trial);
}

amp_status amp_conv_plans_tune(amp_conv_plans *plans, amp_conv_plan *plan, int best_of, amp_conv_timer timer,
                               void *user, amp_error *error)
{
    if (plan->tuned) return AMP_OK;
    amp_conv_candidates candidates;
    AMP_TRY(list_sorted(plans, plan, &candidates, error));
    amp_error why = { .status = AMP_OK };
    for (int i = 0; i < plan->fit; i++) {
        amp_conv_candidate *c = &candidates.list[i];
        if (!worth_timing(plan, candidates.list, i, best_of)) continue;
        if (plan->current.plan && c->rank == plan->current.rank) {
            time_current(plan, timer, user, &why);
            continue;
        }
        if (!built_for_timing(plans, plan, c, &why)) continue;
        amp_conv_plan trial = { .problem = plan->problem };
        set_current(plans, &trial, c);
        time_one(plans, &trial, plan, timer, user, &why);
    }
    plans->library->drop(plans->self, &candidates);
    if (plan->tuned || !has_failed(plan, &plan->current)) return AMP_OK;
    return amp_conv_plans_next(plans, plan, &why, error);
}
