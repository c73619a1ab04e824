/* What layers/run.c adds to a layer's operations: the layer's name in errors, and ranges for a profiler. */
#include "testing.h"

#include "layers/layer.h"

static struct { char log[400]; const char *says; amp_status status; int blamed; } fake;

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

/* Of all convolutions; the second is to blame, or none. */
static amp_status load(amp_backend *b, const amp_conv_weights *all, int count, int *failed, amp_error *error)
{
    (void)b;
    assert_int_equal(count, 2);
    assert_ptr_equal(all[1].masters, (float *)&fake + 1);
    *failed = fake.blamed;
    return outcome("load", error);
}

/* All three operations of layer 7; the first status that is not AMP_OK. */
static amp_status run(amp_backend *backend, amp_error *error)
{
    static const amp_layer_ops ops = { .plan = plan, .forward = forward, .backward = backward };
    amp_step step = { .backend = backend };
    amp_arena arena = { 0 };
    amp_node node = { .ops = &ops, .index = 7, .desc = { .type = "convolutional" } };
    memset(fake.log, 0, sizeof fake.log);
    AMP_TRY(amp_node_plan(&node, &step, &arena, 0, 1, error));
    AMP_TRY(amp_node_forward(&node, &step, error));
    return amp_node_backward(&node, &step, error);
}

TEST(profilers_see_layers_and_phases)
{
    amp_error error;
    amp_backend silent = { .name = "silent" };
    amp_backend profiled = { .range_push = push, .range_pop = pop };
    fake.status = AMP_OK;
    assert_int_equal(run(&silent, &error), AMP_OK);
    assert_string_equal(fake.log, "planforwardbackward");
    assert_int_equal(run(&profiled, &error), AMP_OK);
    assert_string_equal(fake.log, "<layer 7 convolutional planning>plan</>"
                        "<layer 7 convolutional forward>forward</><layer 7 convolutional backward>backward</>");
}

TEST(errors_name_the_layer_once)
{
    amp_error error;
    amp_backend profiled = { .range_push = push, .range_pop = pop };
    fake.status = AMP_NO_MEMORY;
    fake.says = "no memory for 3 MiB";
    assert_int_equal(run(&profiled, &error), AMP_NO_MEMORY);
    assert_int_equal(error.status, AMP_NO_MEMORY);
    assert_string_equal(error.message, "layer 7 [convolutional], planning: no memory for 3 MiB");
    assert_string_equal(fake.log, "<layer 7 convolutional planning>plan</>"); /* closed on failure, too */
    assert_int_equal(run(&profiled, NULL), AMP_NO_MEMORY);
    fake.says = "layer 7 [convolutional]: its input is bad";
    assert_int_equal(run(&profiled, &error), AMP_NO_MEMORY);
    assert_string_equal(error.message, fake.says);
}

TEST(weights_of_all_layers_are_loaded_at_once)
{
    amp_error error = { 0 };
    amp_backend profiled = { .conv_load_weights = load, .range_push = push, .range_pop = pop };
    amp_node nodes[5] = { { .index = 0 }, { .index = 1 }, { .index = 2 }, { .index = 3 }, { .index = 4 } };
    nodes[1].conv = nodes[3].conv = (amp_conv *)&error;
    nodes[1].desc = (amp_layer_desc){ .type = "convolutional", .weights = (float *)&fake };
    nodes[3].desc = (amp_layer_desc){ .type = "connected", .weights = (float *)&fake + 1 };
    memset(fake.log, 0, sizeof fake.log);
    fake.status = AMP_OK;
    assert_int_equal(amp_nodes_load_weights(nodes, 5, &profiled, &error), AMP_OK);
    assert_string_equal(fake.log, "<weights>load</>");
    fake.status = AMP_NO_MEMORY;
    fake.says = "no memory for 3 MiB";
    fake.blamed = 1;
    assert_int_equal(amp_nodes_load_weights(nodes, 5, &profiled, &error), AMP_NO_MEMORY);
    assert_string_equal(error.message, "layer 3 [connected], weights: no memory for 3 MiB");
    fake.blamed = -1;
    assert_int_equal(amp_nodes_load_weights(nodes, 5, &profiled, &error), AMP_NO_MEMORY);
    assert_string_equal(error.message, "no memory for 3 MiB");
    assert_int_equal(amp_nodes_load_weights(nodes, 5, &profiled, NULL), AMP_NO_MEMORY);
}

int main(void) { return run_listed_tests("tests", NULL, NULL); }
