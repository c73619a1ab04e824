/* Networks that are saved and loaded in the test's folder, for the tests of resuming. Include CMocka
 * first. */
#ifndef RESUME_TESTING_H
#define RESUME_TESTING_H

#include "engine_testing.h"
#include "host/network/resume.h"
#include "test_folder.h"

#define STEP(net, i) train_step(net, 100u * (unsigned)(i))

static int exists(const char *path) { return access(path, F_OK) == 0; }

static inline void assert_same_state(network *a, network *b)
{
    assert_true(are_alike(a, b));
    const amp_scaler *s = &a->amp->engine->scaler, *t = &b->amp->engine->scaler;
    assert_memory_equal(&s->scale, &t->scale, sizeof s->scale);
    assert_int_equal(s->growth_tracker, t->growth_tracker);
    assert_int_equal(a->amp->steps, b->amp->steps);
    assert_int_equal(a->amp->skipped, b->amp->skipped);
}

/* Two networks in bf16: whole has made four steps; second has loaded a.weights, saved after the
 * first three of them. */
static inline void stopped_after_three_of_four(network **whole, network **second)
{
    *whole = parse_branched("", "", "bf16");
    network *first = parse_branched("", "", "bf16");
    for (int i = 0; i < 4; i++) STEP(*whole, i);
    for (int i = 0; i < 3; i++) STEP(first, i);
    save_weights(first, "a.weights");
    release(first);
    *second = parse_branched("", "", "bf16");
    load_weights(*second, "a.weights");
}

/* Darknet ends the program with status 0 where it cannot open a file. */
static int finished;
static void must_have_finished(void) { if (!finished) _exit(1); }

static int run_resume_tests(void)
{
    gpu_index = -1;
    atexit(must_have_finished);
    int failed = run_listed_tests("resuming", NULL, NULL);
    finished = 1;
    return failed;
}

#endif
