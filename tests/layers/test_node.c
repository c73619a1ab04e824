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

static amp_status plan(amp_node *n, amp_call *s, amp_arena *a, int f, int b, amp_error *error)
{
    (void)n, (void)s, (void)a, (void)f, (void)b;
    return outcome("plan", error);
}

static amp_status forward(amp_node *n, amp_call *s, amp_error *error)
{
    (void)n, (void)s;
    return outcome("forward", error);
}
static amp_status backward(amp_node *n, amp_call *s, amp_error *error)
{
    (void)n, (void)s;
    return outcome("backward", error);
}

/* Loads all convolutions; reports the second as failed, or none. */
static amp_status load(amp_backend *b, const amp_conv_weights *all, int count, int *failed, amp_error *error)
{
    (void)b;
    assert_int_equal(count, 2);
    assert_ptr_equal(all[1].masters, (float *)&fake + 1);
    *failed = fake.blamed;
    return outcome("load", error);
}

/* Runs all three operations of layer 7; returns the first status that is not AMP_OK. */
static amp_status run(amp_backend *backend, amp_error *error)
{
    static const amp_layer_ops ops = { .plan = plan, .forward = forward, .backward = backward };
    amp_call call = { .backend = backend };
    amp_arena arena = { 0 };
    amp_node node = { .index = 7, .desc = { .kind = &ops, .type = "convolutional" } };
    memset(fake.log, 0, sizeof fake.log);
    AMP_TRY(amp_node_plan(&node, &call, &arena, 0, 1, error));
    AMP_TRY(amp_node_forward(&node, &call, error));
    return amp_node_backward(&node, &call, error);
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
                        "<layer 7 convolutional forward>forward</><layer 7 convolutional "
                        "backward>backward</>");
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
    assert_string_equal(fake.log, "<layer 7 convolutional planning>plan</>"); /* the range is closed on
                                                                                 failure too */
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

/* ---- a yolo layer's table of classes ---- */

static amp_yolo_class_rule copy[2];

static amp_status allocate(amp_backend *b, size_t bytes, void **memory, amp_error *error)
{
    (void)b, (void)error;
    assert_int_equal(bytes, sizeof copy);
    note("allocate ");
    *memory = copy;
    return AMP_OK;
}

static amp_status upload(amp_backend *b, void *to, const void *from, size_t bytes, amp_error *error)
{
    (void)b, (void)error;
    memcpy(to, from, bytes);
    return AMP_OK;
}

static void release(amp_backend *b, void *memory)
{
    (void)b;
    assert_ptr_equal(memory, copy);
    note("release");
}

static amp_status yolo_loss(amp_backend *b, const amp_tensor *x, const float *labels, const amp_yolo_desc *d,
                            float scale, const amp_tensor *dx, int accumulate, amp_yolo_result *result,
                            double *image_costs, amp_error *error)
{
    (void)b, (void)x, (void)labels, (void)scale, (void)dx, (void)accumulate, (void)result, (void)image_costs;
    assert_ptr_equal(d->class_table, copy);
    return outcome("loss ", error);
}

static const float *no_labels(void *context, int layer) { return (void)context, (void)layer, NULL; }

TEST(a_table_of_classes_lies_where_the_backend_reads_it)
{
    amp_error error = { 0 };
    amp_yolo_class_rule table[2] = { { 1, 3 }, { 0, 1 } };
    const amp_yolo_desc yolo = { .classes = 2, .class_table = table };
    amp_backend backend = { .allocate = allocate, .upload = upload, .release = release,
                            .yolo_loss = yolo_loss };
    amp_host host = { .labels = no_labels };
    amp_value input = { .data_valid = { 1, 1, 1 } }, output = { 0 }, *inputs[] = { &input };
    double costs[1];
    amp_call call = { .backend = &backend, .host = &host, .training = 1, .image_costs = costs };
    amp_node node = { .index = 7, .inputs = inputs, .output = &output,
                      .desc = { .kind = &amp_yolo_ops, .type = "yolo", .yolo = &yolo } };
    memset(fake.log, 0, sizeof fake.log);
    fake.status = AMP_OK;
    assert_int_equal(amp_node_plan(&node, &call, NULL, 0, 1, &error), AMP_OK);
    assert_memory_equal(copy, table, sizeof table);
    assert_int_equal(amp_node_forward(&node, &call, &error), AMP_OK);
    amp_node_release(&node, &backend);
    amp_node_release(&node, &backend);
    assert_string_equal(fake.log, "allocate loss release");
    table[0].learnt = 2;
    assert_int_equal(amp_node_plan(&node, &call, NULL, 0, 1, &error), AMP_BAD_NETWORK);
    assert_string_equal(error.message, "layer 7 [yolo]: the file given by map= turns class 0 into "
                        "class 2, but classes=2; correct that file");
}

int main(void) { return run_listed_tests("tests", NULL, NULL); }
