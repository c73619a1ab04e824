/* What layers/run.c adds to a layer's operations: the layer's name in errors, and ranges for a profiler. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "layers/layer.h"

static struct { char log[400]; const char *says; amp_status status; } fake;

static void note(const char *text) { strncat(fake.log, text, sizeof fake.log - strlen(fake.log) - 1); }

static void push(amp_backend *b, const char *name)
{
    (void)b;
    note("<");
    note(name);
    note(">");
}

static void pop(amp_backend *b)
{
    (void)b;
    note("</>");
}

static amp_status outcome(const char *what, amp_error *error)
{
    note(what);
    return fake.status == AMP_OK ? AMP_OK : amp_fail(error, fake.status, "%s", fake.says);
}

static amp_status plan(amp_node *n, amp_step *s, amp_arena *a, int f, int b, amp_error *error)
{
    (void)n, (void)s, (void)a, (void)f, (void)b;
    return outcome("plan", error);
}

static amp_status forward(amp_node *n, amp_step *s, amp_error *error) { (void)n, (void)s; return outcome("forward", error); }
static amp_status backward(amp_node *n, amp_step *s, amp_error *error) { (void)n, (void)s; return outcome("backward", error); }

static amp_status load(amp_backend *b, amp_conv *c, const float *w, amp_error *error)
{
    (void)b, (void)c, (void)w;
    return outcome("load", error);
}

/* All four operations of layer 7; the first status that is not AMP_OK. */
static amp_status run(amp_backend *backend, int has_conv, amp_error *error)
{
    static const amp_layer_ops ops = { 0, 0, plan, forward, backward };
    amp_step step = { .backend = backend };
    amp_arena arena = { 0 };
    amp_node node = { .ops = &ops, .index = 7, .desc = { .type = "convolutional" },
                      .conv = has_conv ? (amp_conv *)&step : NULL };
    memset(fake.log, 0, sizeof fake.log);
    AMP_TRY(amp_node_plan(&node, &step, &arena, 0, 1, error));
    AMP_TRY(amp_node_load_weights(&node, backend, error));
    AMP_TRY(amp_node_forward(&node, &step, error));
    return amp_node_backward(&node, &step, error);
}

static void profilers_see_layers_and_phases(void **state)
{
    (void)state;
    amp_error error;
    amp_backend silent = { .conv_load_weights = load };
    amp_backend profiled = { .conv_load_weights = load, .range_push = push, .range_pop = pop };
    fake.status = AMP_OK;
    assert_int_equal(run(&silent, 1, &error), AMP_OK);
    assert_string_equal(fake.log, "planloadforwardbackward");
    assert_int_equal(run(&profiled, 1, &error), AMP_OK);
    assert_string_equal(fake.log, "<layer 7 convolutional planning>plan</><layer 7 convolutional weights>load</>"
                        "<layer 7 convolutional forward>forward</><layer 7 convolutional backward>backward</>");
    assert_int_equal(run(&silent, 0, &error), AMP_OK);
    assert_string_equal(fake.log, "planforwardbackward");
}

static void errors_name_the_layer_once(void **state)
{
    (void)state;
    amp_error error;
    amp_backend profiled = { .conv_load_weights = load, .range_push = push, .range_pop = pop };
    fake.status = AMP_NO_MEMORY;
    fake.says = "no memory for 3 MiB";
    assert_int_equal(run(&profiled, 1, &error), AMP_NO_MEMORY);
    assert_int_equal(error.status, AMP_NO_MEMORY);
    assert_string_equal(error.message, "layer 7 [convolutional], planning: no memory for 3 MiB");
    assert_string_equal(fake.log, "<layer 7 convolutional planning>plan</>"); /* closed on failure, too */
    assert_int_equal(run(&profiled, 1, NULL), AMP_NO_MEMORY);
    fake.says = "layer 7 [convolutional]: its input is bad";
    assert_int_equal(run(&profiled, 1, &error), AMP_NO_MEMORY);
    assert_string_equal(error.message, fake.says);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profilers_see_layers_and_phases), cmocka_unit_test(errors_name_the_layer_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
