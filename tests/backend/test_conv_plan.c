/* The choice among a library's engines for a convolution (backend/cuda/conv_plan.h), with a fake library:
 * which engines are suitable, in which order, what happens when an engine fails, timing, and the cache. */
#include "testing.h"

#include "backend/cuda/conv_plan.h"

#define TC AMP_CONV_TENSOR_CORE
#define REDUCED AMP_CONV_REDUCED_REDUCTION
#define RANDOM AMP_CONV_NONDETERMINISTIC
#define DOWN AMP_CONV_DOWN_CONVERTS
#define COMPILED AMP_CONV_RUNTIME_COMPILED

/* ---- a library with engines numbered from 100, in its own order ---- */

typedef struct engine {
    unsigned notes;
    size_t workspace;      /* as listed */
    size_t when_built;     /* and as built, if not 0 */
    int builds_not, runs_not;
    float ms;
} engine;

typedef struct fake {
    const engine *engines;
    int count;
    int lists, builds, times; /* number of calls */
    int built[16];            /* per engine */
    int live;                 /* configs and plans not yet released */
} fake;

static amp_status fake_list(void *self, const amp_conv_problem *problem, amp_conv_candidates *out,
                            amp_error *error)
{
    (void)problem, (void)error;
    fake *f = self;
    f->lists++;
    out->list = calloc((size_t)f->count + 1, sizeof *out->list);
    out->count = f->count;
    for (int i = 0; i < f->count; i++) {
        out->list[i] = (amp_conv_candidate){ .engine = 100 + i, .notes = f->engines[i].notes, .rank = i,
                                             .workspace = f->engines[i].workspace, .config = f };
        f->live++;
    }
    return AMP_OK;
}

static amp_status fake_build(void *self, amp_conv_candidate *c, amp_error *error)
{
    fake *f = self;
    const engine *e = &f->engines[c->rank];
    f->builds++;
    f->built[c->rank]++;
    if (e->builds_not)
        return amp_fail(error, AMP_BACKEND_FAILED, "engine %d cannot be built", (int)c->engine);
    if (e->when_built) c->workspace = e->when_built;
    c->plan = f;
    f->live++;
    return AMP_OK;
}

static void fake_release(void *self, amp_conv_candidate *c)
{
    fake *f = self;
    f->live -= (c->config != NULL) + (c->plan != NULL);
    c->config = c->plan = NULL;
}

static void fake_drop(void *self, amp_conv_candidates *candidates)
{
    for (int i = 0; i < candidates->count; i++) fake_release(self, &candidates->list[i]);
    free(candidates->list);
}

static const amp_conv_library library = { fake_list, fake_build, fake_release, fake_drop };

static amp_status fake_time(void *user, const amp_conv_plan *plan, float *ms, amp_error *error)
{
    fake *f = user;
    const engine *e = &f->engines[plan->current.rank];
    f->times++;
    assert_non_null(plan->current.plan);
    if (e->runs_not)
        return amp_fail(error, AMP_BACKEND_FAILED, "engine %d does not run", (int)plan->current.engine);
    *ms = e->ms;
    return AMP_OK;
}

enum { CAP = 1000 };

static const amp_conv_problem ordinary = {
    .conv = { .x = { 2, 8, 5, 7 }, .k = 16, .size_h = 3, .size_w = 3, .stride = 1, .pad = 1, .dilation = 1,
              .groups = 1, .dtype = AMP_FP16 }, .pass = AMP_CONV_FORWARD };

/* ---- order and filter ---- */

enum { MOST_ENGINES = 6, LAST = 1 << 30 /* behind an engine's notes */ };

/* Which engines are suitable, in which order. */
static const struct {
    const char *what;
    amp_dtype dtype;
    int groups, deterministic;
    unsigned notes[MOST_ENGINES + 1];
    size_t workspaces[MOST_ENGINES];
    const char *order;
} orders[] = {
    { "Tensor Cores come first", AMP_FP16, 1, 0, { 0, TC, REDUCED, TC | REDUCED, TC, 0, LAST }, { 0 },
      "101 104 103 100 105 102" },
    { "the library's order with groups", AMP_FP16, 8, 0, { REDUCED, 0, TC, TC | REDUCED, 0, LAST }, { 0 },
      "101 102 104 100 103" },
    { "fp32 is not TF32", AMP_FP32, 1, 0, { TC, 0, TC, REDUCED, 0, LAST }, { 0 }, "101 104 103" },
    { "inputs are never rounded", AMP_FP16, 1, 0, { TC | DOWN, DOWN, TC, LAST }, { 0 }, "102" },
    { "any engine will do", AMP_FP16, 1, 0, { TC | RANDOM, TC, RANDOM, LAST }, { 0 }, "100 101 102" },
    { "only deterministic ones, if asked", AMP_FP16, 1, 1, { TC | RANDOM, TC, RANDOM, LAST }, { 0 }, "101" },
    { "workspaces stay within the cap", AMP_FP16, 1, 0, { TC, TC, 0, LAST }, { CAP + 1, CAP, 0 }, "101 102" },
};

TEST(suitable_engines_come_in_order)
{
    for (size_t k = 0; k < COUNT(orders); k++) {
        engine engines[MOST_ENGINES] = { { 0 } };
        fake f = { .engines = engines };
        amp_conv_problem p = ordinary;
        amp_conv_candidates c;
        amp_error error;
        char text[200] = "";
        int seen = 0;
        for (; orders[k].notes[f.count] != LAST; f.count++)
            engines[f.count] = (engine){ .notes = orders[k].notes[f.count],
                                         .workspace = orders[k].workspaces[f.count] };
        p.conv.dtype = orders[k].dtype;
        p.conv.groups = orders[k].groups;
        p.deterministic = orders[k].deterministic;
        assert_int_equal(fake_list(&f, &p, &c, &error), AMP_OK);
        int fit = amp_conv_candidates_sort(&c, &p, CAP);
        for (int i = 0; i < fit; i++) sprintf(text + strlen(text), i ? " %d" : "%d", (int)c.list[i].engine);
        if (strcmp(text, orders[k].order)) fail_msg("%s: %s", orders[k].what, text);
        for (int i = 0; i < f.count; i++) seen |= 1 << c.list[i].rank;
        assert_int_equal(seen, (1 << f.count) - 1); /* unsuitable ones are included, so that they are freed */
        fake_drop(&f, &c);
        assert_int_equal(f.live, 0);
    }
}

/* ---- one plan ---- */

/* Plans over a fake library. */
#define PLANS(engines_) \
    fake f = { .engines = engines_, .count = (int)COUNT(engines_) }; \
    amp_conv_plans *plans = amp_conv_plans_create(&library, &f, CAP); \
    amp_conv_plan *plan = NULL; \
    amp_error error = { .status = AMP_OK }; \
    assert_non_null(plans)

/* And the plan for the ordinary problem. */
#define PLANNED(engines_) \
    PLANS(engines_); \
    assert_int_equal(amp_conv_plans_get(plans, &ordinary, &plan, &error), AMP_OK)

#define DONE() \
    do { \
        amp_conv_plans_destroy(plans); \
        assert_int_equal(f.live, 0); \
    } while (0)

TEST(the_first_that_can_be_built_is_taken)
{
    const engine e[] = { { .notes = TC, .builds_not = 1 }, { .notes = TC, .workspace = 7 }, { .notes = TC } };
    PLANNED(e);
    assert_int_equal(plan->current.engine, 101);
    assert_int_equal(plan->current.workspace, 7);
    assert_int_equal(plan->fit, 3);
    assert_int_equal(f.builds, 2); /* lazily: 102 was not built */
    assert_int_equal(f.live, 2);   /* and its config was released */
    DONE();
}

TEST(a_plan_that_grows_over_the_cap_is_passed_over)
{
    const engine e[] = { { .notes = TC, .when_built = CAP + 1 }, { .notes = TC, .when_built = 5 } };
    PLANNED(e);
    assert_int_equal(plan->current.engine, 101);
    assert_int_equal(plan->current.workspace, 5);
    DONE();
}

TEST(a_candidate_that_fails_is_never_tried_again)
{
    const engine e[] = { { .notes = TC }, { .notes = TC, .builds_not = 1 }, { .notes = TC }, { .notes = 0 } };
    const amp_error why = { AMP_BACKEND_FAILED, "it did not run" };
    PLANNED(e);
    assert_int_equal(amp_conv_plans_next(plans, plan, &why, &error), AMP_OK);
    assert_int_equal(plan->current.engine, 102);
    assert_int_equal(amp_conv_plans_next(plans, plan, &why, &error), AMP_OK);
    assert_int_equal(plan->current.engine, 103);
    for (int i = 0; i < 4; i++) assert_int_equal(f.built[i], 1);
    DONE();
}

TEST(when_all_have_failed_the_last_reason_is_told)
{
    const engine e[] = { { .notes = TC }, { .notes = TC, .workspace = CAP + 1 }, { .notes = RANDOM } };
    const amp_error why = { AMP_BACKEND_FAILED, "CUDNN_STATUS_EXECUTION_FAILED" };
    amp_conv_problem p = ordinary;
    p.deterministic = 1;
    PLANS(e);
    assert_int_equal(amp_conv_plans_get(plans, &p, &plan, &error), AMP_OK);
    assert_int_equal(amp_conv_plans_next(plans, plan, &why, &error), AMP_BACKEND_FAILED);
    assert_null(plan->current.plan);
    assert_non_null(strstr(error.message, "CUDNN_STATUS_EXECUTION_FAILED"));
    assert_non_null(strstr(error.message, "none of the 3 candidates fits: 1 need more workspace than 0 MiB, "
                                          "1 are not deterministic, "
                                          "0 round their inputs, 1 failed"));
    assert_non_null(strstr(error.message, "2x8x5x7 (n,c,h,w) to 16 filters of 3x3"));
    assert_int_equal(amp_conv_plans_get(plans, &p, &plan, &error), AMP_UNSUPPORTED);
    assert_int_equal(f.builds, 1);
    DONE();
}

TEST(a_library_without_engines_is_an_error)
{
    const engine e[] = { { .notes = 0 } };
    PLANS(e);
    f.count = 0;
    assert_int_equal(amp_conv_plans_get(plans, &ordinary, &plan, &error), AMP_UNSUPPORTED);
    assert_non_null(strstr(error.message, "no engine"));
    DONE();
}

/* ---- the cache ---- */

TEST(a_shape_that_comes_back_costs_no_listing)
{
    const engine e[] = { { .notes = TC } };
    PLANS(e);
    amp_conv_plan *others[200];
    for (int i = 0; i < 200; i++) {
        amp_conv_problem p = ordinary;
        p.conv.x.h += i;
        assert_int_equal(amp_conv_plans_get(plans, &p, &others[i], &error), AMP_OK);
    }
    for (int i = 0; i < 200; i++) {
        amp_conv_problem p = ordinary;
        p.conv.x.h += i;
        assert_int_equal(amp_conv_plans_get(plans, &p, &plan, &error), AMP_OK);
        assert_ptr_equal(plan, others[i]);
        assert_int_equal(plan->problem.conv.x.h, p.conv.x.h);
    }
    assert_int_equal(f.lists, 200);
    DONE();
}

TEST(every_number_of_a_problem_counts)
{
    const engine e[] = { { .notes = TC } };
    PLANS(e);
    const amp_conv_problem base = { { { 4, 4, 9, 9 }, 4, 3, 3, 1, 1, 1, AMP_FP16, 0, 0, 0, 1, 1, 0, 0, 0 },
                                    AMP_CONV_BACKWARD_DATA, 0, 0 };
#define NUMBER(member) offsetof(amp_conv_problem, member)
    static const size_t numbers[] = { NUMBER(conv.x.n), NUMBER(conv.x.c), NUMBER(conv.x.h), NUMBER(conv.x.w),
        NUMBER(conv.k), NUMBER(conv.size_h), NUMBER(conv.size_w), NUMBER(conv.stride), NUMBER(conv.pad),
        NUMBER(conv.dilation), NUMBER(conv.groups), NUMBER(conv.stride_x), NUMBER(conv.dtype), NUMBER(pass),
        NUMBER(accumulate), NUMBER(deterministic) };
    assert_int_equal(amp_conv_plans_get(plans, &base, &plan, &error), AMP_OK);
    for (int i = 0; i < (int)COUNT(numbers); i++) {
        amp_conv_problem changed = base;
        amp_conv_plan *other = NULL;
        *(int *)((char *)&changed + numbers[i]) += 1;
        assert_int_equal(amp_conv_plans_get(plans, &changed, &other, &error), AMP_OK);
        assert_ptr_not_equal(other, plan);
    }
    assert_int_equal(f.lists, 1 + (int)COUNT(numbers));
    DONE();
}

/* ---- timing ---- */

TEST(the_fastest_of_the_best_is_kept)
{
    /* 100 has no Tensor Cores, but the library expects it to be fast; 103 is beyond the best three. */
    const engine e[] = { { .notes = 0, .ms = 3 }, { .notes = TC, .ms = 4 }, { .notes = TC, .ms = 2 },
                         { .notes = TC, .ms = 1 } };
    PLANNED(e);
    assert_int_equal(plan->current.engine, 101);
    assert_int_equal(amp_conv_plans_tune(plans, plan, 3, fake_time, &f, &error), AMP_OK);
    assert_int_equal(plan->current.engine, 102);
    assert_float_equal(plan->ms, 2, 0);
    assert_int_equal(f.times, 3);
    assert_int_equal(f.builds, 3); /* the current one was already built */
    assert_int_equal(amp_conv_plans_tune(plans, plan, 3, fake_time, &f, &error), AMP_OK);
    assert_int_equal(f.times, 3); /* once */
    assert_int_equal(f.live, 2);
    DONE();
}

TEST(reduced_reductions_are_timed_only_without_a_choice)
{
    const engine e[] = { { .notes = TC | REDUCED, .ms = 1 }, { .notes = TC, .ms = 2 } };
    const engine none[] = { { .notes = TC | REDUCED, .ms = 1 } };
    {
        PLANNED(e);
        assert_int_equal(amp_conv_plans_tune(plans, plan, 8, fake_time, &f, &error), AMP_OK);
        assert_int_equal(plan->current.engine, 101);
        DONE();
    }
    {
        PLANNED(none);
        assert_int_equal(amp_conv_plans_tune(plans, plan, 8, fake_time, &f, &error), AMP_OK);
        assert_int_equal(plan->current.engine, 100);
        assert_int_equal(f.times, 1);
        DONE();
    }
}

/* Whatever the number of shapes. The current one is timed nevertheless. */
TEST(not_all_engines_that_must_be_compiled_are_timed)
{
    const engine e[] = { { .notes = TC | COMPILED, .ms = 3 }, { .notes = TC | COMPILED, .ms = 1 },
                         { .notes = TC, .ms = 2 } };
    amp_conv_problem p = ordinary;
    PLANS(e);
    for (p.conv.x.n = 1; p.conv.x.n <= AMP_CONV_COMPILED + 2; p.conv.x.n++) {
        assert_int_equal(amp_conv_plans_get(plans, &p, &plan, &error), AMP_OK);
        assert_int_equal(amp_conv_plans_tune(plans, plan, 3, fake_time, &f, &error), AMP_OK);
        assert_int_equal(plan->current.engine, p.conv.x.n <= AMP_CONV_COMPILED ? 101 : 102);
        assert_true(plan->tuned);
    }
    assert_int_equal(f.built[0], AMP_CONV_COMPILED + 2);
    assert_int_equal(f.built[1], AMP_CONV_COMPILED);
    assert_int_equal(f.times, 3 * AMP_CONV_COMPILED + 2 * 2);
    DONE();
}

TEST(what_does_not_run_is_not_kept)
{
    /* The current one fails, and the next cannot be built: others take their places among the best two. */
    const engine e[] = { { .notes = TC, .runs_not = 1 }, { .notes = TC, .builds_not = 1 },
                         { .notes = TC, .ms = 2 }, { .notes = TC, .ms = 1 }, { .notes = TC, .ms = 0 } };
    PLANNED(e);
    assert_int_equal(amp_conv_plans_tune(plans, plan, 2, fake_time, &f, &error), AMP_OK);
    assert_int_equal(plan->current.engine, 103);
    assert_int_equal(f.built[0] + f.built[1], 2);
    DONE();
}

TEST(when_none_of_the_best_runs_tuning_goes_on)
{
    const engine e[] = { { .notes = TC, .runs_not = 1 }, { .notes = TC, .runs_not = 1 } };
    PLANNED(e);
    assert_int_equal(amp_conv_plans_tune(plans, plan, 1, fake_time, &f, &error), AMP_BACKEND_FAILED);
    assert_non_null(strstr(error.message, "engine 101 does not run"));
    assert_int_equal(f.times, 2);
    DONE();
}

TEST(after_a_failed_run_a_plan_can_be_tuned_again)
{
    const engine e[] = { { .notes = TC, .ms = 1 }, { .notes = TC, .ms = 3 }, { .notes = TC, .ms = 2 } };
    const amp_error why = { AMP_BACKEND_FAILED, "it did not run" };
    PLANNED(e);
    assert_int_equal(amp_conv_plans_tune(plans, plan, 3, fake_time, &f, &error), AMP_OK);
    assert_int_equal(plan->current.engine, 100);
    assert_int_equal(amp_conv_plans_next(plans, plan, &why, &error), AMP_OK);
    assert_int_equal(plan->current.engine, 101);
    assert_int_equal(amp_conv_plans_tune(plans, plan, 3, fake_time, &f, &error), AMP_OK);
    assert_int_equal(plan->current.engine, 102);
    DONE();
}

/* ---- problems ---- */

TEST(output_sizes)
{
    amp_conv_problem p = ordinary;
    assert_int_equal(amp_conv_output(&p.conv).h, 5);
    assert_int_equal(amp_conv_output(&p.conv).w, 7);
    p.conv.stride = 2;
    assert_int_equal(amp_conv_output(&p.conv).h, 3);
    assert_int_equal(amp_conv_output(&p.conv).w, 4);
    p.conv.dilation = 2; /* a window of 5 in 7 and 9 */
    assert_int_equal(amp_conv_output(&p.conv).h, 2);
    assert_int_equal(amp_conv_output(&p.conv).w, 3);
    p.conv.stride_x = 3;
    assert_int_equal(amp_conv_output(&p.conv).h, 2);
    assert_int_equal(amp_conv_output(&p.conv).w, 2);
}

int main(void) { return run_listed_tests("tests", NULL, NULL); }
