/* A new kind of layer, defined only by this file and a row of the fork's table. It trains, is repeated under
 * checkpoint=auto, and `amp plan` prints it.
 *
 * It replaces Darknet's [l2norm] and doubles its input. So does a shortcut from the layer before, bit for
 * bit, which serves as the reference. */
#define _DEFAULT_SOURCE /* mkstemps */
#include "testing.h"

/* The fork's table, with an additional row. */
#define amp_own_types types_without_it
#define amp_own_type_count count_without_it
#include "host/pjreddie/layers.c"
#undef amp_own_types
#undef amp_own_type_count

#include "commands/plan/plan_report.h"
#include "engine_testing.h"

static amp_status plan(amp_node *node, amp_call *call, amp_arena *arena, int forward_time, int backward_time,
                       amp_error *error)
{
    (void)call, (void)error;
    amp_arena_keep_bytes(arena, 4096, forward_time, backward_time, &node->kept);
    return AMP_OK;
}

static int forwards, repeats, accumulated;

static amp_status forward(amp_node *node, amp_call *call, amp_error *error)
{
    amp_tensor x, y;
    AMP_TRY(amp_value_read(call, node->inputs[0], node->form, &x, error));
    y = amp_value_write(node->output);
    forwards++;
    repeats += call->again;
    return call->backend->channels(call->backend, &x, 0, &y, 0, x.shape.c, 2, 0, error);
}

static amp_status backward(amp_node *node, amp_call *call, amp_error *error)
{
    if (!node->inputs[0]->wants_delta) return AMP_OK;
    int accumulate;
    amp_tensor dy = amp_value_delta(node->output, node->form),
        dx = amp_value_delta_target(node->inputs[0], node->form, &accumulate);
    accumulated += accumulate;
    return call->backend->channels(call->backend, &dy, 0, &dx, 0, dx.shape.c, 2, accumulate, error);
}

/* As if it multiplied by a matrix. */
static amp_products products(const amp_node *node)
{
    amp_shape x = node->inputs[0]->shape;
    return (amp_products){ 1, x.c, x.c, 1, (size_t)x.n * x.h * x.w, .out_key = "numbers" };
}

static const amp_layer_ops doubling = { .class = AMP_CLASS_FOLLOWS, .plan = plan, .forward = forward,
                                        .backward = backward, .products = products,
                                        .repeats = AMP_RECOMPUTE_ALL };

const amp_own_type amp_own_types[] = {
    TYPES_OF_BOTH_FORKS
    [CONVOLUTIONAL] = NATIVE("convolutional", amp_convolutional_ops, convolution_settings),
    [SHORTCUT] = NATIVE("shortcut", amp_shortcut_ops, shortcut_settings),
    [L2NORM] = { "l2norm", &doubling, NULL, NULL },
};
const size_t amp_own_type_count = ROWS(amp_own_types);

#define NETWORK(amp, double) NET("[amp]\n" amp) CONV(12, "") double CONV(8, "") double CONV(8, "") TAIL
#define IT "[l2norm]\n"
#define SHORTCUT_OF_BOTH "[shortcut]\nfrom=-1\nactivation=linear\n"

static network *trained(const char *text, const char *dtype, network *like)
{
    network *net = parse(text, dtype);
    if (like) copy_weights(like, net);
    for (unsigned k = 0; k < 3; k++) {
        train_step(net, 10 + k);
        assert_false(darknet_amp_skipped(net));
    }
    return net;
}

TEST(it_trains_as_the_shortcut_that_it_is)
{
    for (int d = 0; d < 3; d++) {
        network *first = parse(NETWORK("", IT), dtype_names[d]);
        network *it = trained(NETWORK("loss_scale=128\n", IT), dtype_names[d], first),
            *shortcut = trained(NETWORK("loss_scale=128\n", SHORTCUT_OF_BOTH), dtype_names[d], first);
        assert_ptr_equal(amp_host_kind_of(&it->layers[1]), &doubling);
        assert_masters_near(it, shortcut, 0);
        release(first), release(it), release(shortcut);
    }
}

TEST(it_adds_to_what_another_consumer_gave)
{
#define BRANCHED(double) NETWORK("", double CONV(12, "") "[shortcut]\nfrom=-3\nactivation=linear\n")
    network *first = parse(BRANCHED(IT), "fp32");
    accumulated = 0;
    network *it = trained(BRANCHED(IT), "fp32", first),
        *shortcut = trained(BRANCHED(SHORTCUT_OF_BOTH), "fp32", first);
    assert_true(accumulated > 0);
    assert_masters_near(it, shortcut, 1e-6);
    release(first), release(it), release(shortcut);
}

/* With a budget that requires repeated layers. */
TEST(checkpoint_auto_repeats_it_and_changes_no_bit)
{
    network *first = parse(NETWORK("", IT), "bf16"), *whole = trained(NETWORK("", IT), "bf16", first);
    size_t all = whole->amp->engine->active->arena.total;
    network *net = parse(NETWORK("", IT), "bf16");
    net->amp->engine->settings.recompute = (amp_recompute_settings){ .on = 1, .budget = all * 9 / 10 };
    copy_weights(first, net);
    forwards = repeats = 0;
    for (unsigned k = 0; k < 3; k++) train_step(net, 10 + k);
    const amp_plan *plan = net->amp->engine->active;
    assert_true(plan->arena.total < all);
    assert_int_equal(plan->nodes[1].recompute, AMP_RECOMPUTE_ALL);
    assert_true(repeats > 0 && forwards > repeats);
    assert_masters_near(net, whole, 0);
    release(first), release(whole), release(net);
}

TEST(amp_plan_prints_it)
{
    static const char text[] = NETWORK("checkpoint=auto\ndtype=bf16\n", IT);
    char name[] = "/tmp/new-kind-XXXXXX.cfg", printed[1 << 14] = "";
    amp_plan_report r;
    amp_error error;
    write_cfg(name, text);
    if (amp_plan_gather(name, 0, 0, NULL, &r, &error) != AMP_OK) fail_msg("%s", error.message);
    unlink(name);
    amp_plan_advise(&r);
    const amp_plan_row *row = &r.rows[3];
    assert_string_equal(row->type, "l2norm");
    assert_string_equal(row->class_name, "follows");
    assert_string_equal(row->form, "bf16");
    assert_int_equal(row->in, 8);
    assert_true(row->operations == 2. * 8 * 8 * 2 * 16 * 16);
    assert_true(row->training_operations == 3 * row->operations);
    assert_int_equal(row->arena.kept, 4096);
    assert_int_equal(r.rows[1].out_aligned, 0);
    int advised = 0;
    for (int i = 0; i < r.advice_count; i++)
        advised |= r.advice[i].layer == 1 && !strcmp(r.advice[i].text, "numbers=16 instead of 12");
    assert_true(advised);
    FILE *out = fmemopen(printed, sizeof printed, "w");
    amp_plan_print_table(&r, out);
    fclose(out);
    assert_non_null(strstr(printed, " l2norm "));
    amp_plan_report_free(&r);
}

int main(void) { return run_listed_tests("a new kind", NULL, NULL); }
