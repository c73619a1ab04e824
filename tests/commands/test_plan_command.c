/* `amp plan` says what is so: rows against facts worked out by hand, casts against those that a step really
 * makes, bytes against what stock's network and AMP's really take. */
#define _DEFAULT_SOURCE /* mkstemps, mkdtemp */
#include "testing.h"

#include <dirent.h>
#include <sys/resource.h>

#include "backend/cpu/rows.h"
#include "commands/cfg_copy.h"
#include "commands/plan/plan_report.h"
#include "engine_testing.h"
#include "host/network/needs.h"
#include "host/program/random.h"
#include "host/fork_commands.h"
#include "host/darknet/room.h"
#include "requests.h"
#include "test_folder.h"
#include "utils.h"

/* ---- a network whose plan is known ---- */

#define POINTWISE(filters, more) \
    "[convolutional]\nfilters=" #filters "\nsize=1\nstride=1\nactivation=linear\n" more
/* Two images a pass of 16 x 16 x 3. */
static const char known[] = NET("[amp]\ndtype=bf16\n") CONV(12, "") CONV(16, "amp=0\n")
    "[activation]\nactivation=relu\n"
    "[route]\nlayers=0,-1\n" POINTWISE(8, "") "[shortcut]\nfrom=0\nactivation=linear\n"
    POINTWISE(8, "xnor=1\n")
    POINTWISE(10, "") "[cost]\ntype=sse\n";

static amp_plan_report planned(const char *text, const char *dtype)
{
    amp_plan_report report;
    amp_error error = { 0 };
    put_anew("known.cfg", text);
    amp_program_to_set()->dtype = NULL;
    amp_status status = amp_plan_gather("known.cfg", 0, 0, dtype, &report, &error);
    if (status != AMP_OK) fail_msg("%s", error.message);
    amp_plan_advise(&report);
    return report;
}

TEST(rows_say_class_dtype_and_reason)
{
    static const struct { const char *type, *class, *dtype, *why; } expected[] = {
        { "convolutional", "lower", "bf16", "matrix products" },
        { "convolutional", "lower", "fp32", "amp=0" },
        { "activation", "follows", "fp32", "as layer 1" }, { "route", "promotes", "fp32", "layer 2 is fp32" },
        { "convolutional", "lower", "bf16", "matrix products" },
        { "shortcut", "promotes", "bf16", "all inputs are bf16" },
        { "convolutional", "host fp32", "fp32", "xnor is set" },
        { "convolutional", "lower", "bf16", "matrix products" },
        { "cost", "host fp32", "fp32", "fp32 loss" } };
    amp_plan_report r = planned(known, NULL);
    assert_int_equal(r.count, sizeof expected / sizeof *expected);
    for (int i = 0; i < r.count; i++) {
        assert_string_equal(r.rows[i].type, expected[i].type);
        assert_string_equal(r.rows[i].class_name, expected[i].class);
        assert_string_equal(amp_dtype_name(r.rows[i].dtype), expected[i].dtype);
        /* where the CPU stores bf16 only, the reason of what multiplies has more to say */
        int multiplies = !strcmp(expected[i].why, "matrix products");
        size_t shown = multiplies ? strlen(expected[i].why) : sizeof r.rows[i].why;
        if (strncmp(r.rows[i].why, expected[i].why, shown)) fail_msg("layer %d: %s", i, r.rows[i].why);
    }
    assert_int_equal(r.images, 2);
    assert_false(r.off_in_cfg);
    amp_plan_report_free(&r);
}

/* What halves the size and doubles the channels, as in a resnet, is no reason for fp32: only the image
 * and the loss are cast. */
TEST(a_shortcut_between_sizes_is_half_and_casts_nothing)
{
    static const char text[] = NET("[amp]\ndtype=bf16\n") CONV(8, "")
        "[convolutional]\nfilters=16\nsize=3\nstride=2\npad=1\n"
        "activation=linear\n" "[shortcut]\nfrom=0\nactivation=leaky\n" CONV(16, "")
        "[shortcut]\nfrom=-2\nactivation=leaky\n"
        POINTWISE(8, "") "[cost]\ntype=sse\n";
    amp_plan_report r = planned(text, NULL);
    assert_int_equal(r.count, 7);
    for (int i = 0; i < 6; i++) assert_int_equal(r.rows[i].dtype, AMP_BF16);
    assert_string_equal(r.rows[2].class_name, "promotes");
    assert_memory_equal(r.rows[2].why, "all inputs are bf16", 19);
    assert_int_equal(r.rows[2].stock_bytes, 2 * 16 * 8 * 8 * 2 * 4);
    assert_int_equal(r.rows[2].arena.copies, 0);
    assert_int_equal(r.cast_count, 2);
    amp_plan_report_free(&r);
}

TEST(rows_say_channels_and_bytes)
{
    enum { PIXELS = 16 * 16 * 2 };
    amp_plan_report r = planned(known, NULL);
    const amp_plan_row *first = &r.rows[0], *route = &r.rows[3], *pinned = &r.rows[1];
    assert_int_equal(first->in, 3);
    assert_int_equal(first->out, 12);
    assert_true(first->padded_in >= 3 && first->padded_out >= 12);
    assert_int_equal(r.rows[4].in, 28); /* 16 and 12 channels side by side */
    assert_false(route->is_convolution);
    assert_int_equal(first->stock_bytes, 4 * 12 * PIXELS * 4); /* output, delta and batch norm's two */
    assert_int_equal(first->arena.output, 12 * PIXELS * 2);
    assert_int_equal(first->arena.copies, 12 * PIXELS * 4);    /* in fp32, for layers 1 and 3 */
    assert_int_equal(first->arena.deltas, 12 * PIXELS * (2 + 4));
    assert_int_equal(first->arena.kept, 12 * PIXELS * 2 + 2 * 64); /* the arena counts in 64 bytes */
    assert_int_equal(pinned->arena.output, 16 * PIXELS * 4);
    assert_int_equal(pinned->computes, AMP_FP32);
    assert_int_equal(r.rows[8].stock_bytes, r.rows[8].amp_bytes); /* Darknet's own */
    /* 3x3 windows over 3 channels; no gradient for the image. The second has all three products. */
    assert_true(first->operations == 2. * 27 * 12 * PIXELS
                && first->training_operations == 2 * first->operations);
    assert_true(pinned->operations == 2. * 9 * 12 * 16 * PIXELS
                && pinned->training_operations == 3 * pinned->operations);
    assert_int_equal(r.parameters, 27 * 12 + 2 * 12 + 9 * 12 * 16 + 2 * 16 + 28 * 8 + 8 + 8 * 8 + 8 +
                     8 * 10 + 10);
    amp_plan_report_free(&r);
}

TEST(winograd_0_has_every_convolution_made_by_the_direct_sum)
{
    amp_plan_report usual = planned(NET("") CONV(16, "") CONV(16, "") "[cost]\ntype=sse\n", "fp32");
    amp_plan_report direct = planned(NET("[amp]\nwinograd=0\n") CONV(16, "") CONV(16, "")
                                     "[cost]\ntype=sse\n", "fp32");
    int has_winograd = usual.rows[1].winograd[0] != '\0';
    assert_int_equal(has_winograd, amp_cpu_rows_best()->winograd_panel != 0);
    for (int i = 0; i < direct.count; i++) assert_string_equal(direct.rows[i].winograd, "");
    amp_plan_report_free(&usual);
    amp_plan_report_free(&direct);
}

/* ---- recurrent layers, whose products alone are in half ---- */

#define SEQUENCE "[net]\nbatch=2\ninputs=40\ntime_steps=3\nmax_batches=10\n"

TEST(products_of_recurrent_layers_are_in_half_and_the_layers_are_not)
{
    enum { WEIGHTS = 3 * (40 * 36 + 36 * 36), ROWS = 2 * 3 };
    amp_plan_report r = planned(SEQUENCE "[gru]\noutput=36\n[gru]\noutput=36\namp=0\n[softmax]\n", "bf16");
    const amp_plan_row *half = &r.rows[0], *pinned = &r.rows[1];
    size_t element = r.machine.support[AMP_BF16] == AMP_SUPPORT_NATIVE ? 2 : 4;
    assert_int_equal(half->dtype, AMP_FP32);
    assert_int_equal(half->products, AMP_BF16);
    assert_string_equal(half->class_name, "host fp32");
    assert_non_null(strstr(half->why, "Darknet's own fp32 code; its matrix products: bf16"));
    assert_int_equal(half->half_bytes, WEIGHTS * element);
    assert_int_equal(r.half_bytes, half->half_bytes);
    assert_true(half->operations == 2. * WEIGHTS * ROWS);
    assert_true(r.half_operations + r.stored_operations == half->training_operations
                && half->training_operations > 0);
    assert_int_equal(pinned->products, AMP_FP32);
    assert_int_equal(pinned->half_bytes, 0);
    assert_string_equal(pinned->why, "amp=0");
    int advised = 0;
    for (int k = 0; k < r.advice_count; k++) {
        assert_true(r.advice[k].layer != 0); /* nothing there is to be changed */
        advised += r.advice[k].layer == 1 && !strcmp(r.advice[k].kind, "kept");
    }
    assert_int_equal(advised, 1);
    amp_plan_report_free(&r);
    r = planned(SEQUENCE "[gru]\noutput=36\n[softmax]\n", "fp32");
    assert_int_equal(r.half_bytes, 0);
    assert_string_equal(r.rows[0].why, "Darknet's own fp32 code");
    amp_plan_report_free(&r);
}

static amp_status (*allocate_of_backend)(amp_backend *, size_t, void **, amp_error *);
static size_t bytes_taken;

static amp_status counting_allocate(amp_backend *backend, size_t bytes, void **out, amp_error *error)
{
    bytes_taken += bytes;
    return allocate_of_backend(backend, bytes, out, error);
}

static void a_pass(network *net)
{
    feed(net, 3);
    net->train = 1;
    forward_network(net);
    backward_network(net);
}

TEST(copies_of_recurrent_weights_take_what_is_told)
{
    static const char *const layers[] = { "[rnn]\noutput=36\nactivation=tanh\n", "[gru]\noutput=36\n",
                                          "[lstm]\nbatch_normalize=1\noutput=36\n" };
    static const char *const dtypes[] = { "bf16", "fp16", "fp32" };
    for (size_t l = 0; l < sizeof layers / sizeof *layers; l++)
        for (size_t t = 0; t < 3; t++) {
            char text[512];
            snprintf(text, sizeof text, SEQUENCE "%s[softmax]\n", layers[l]);
            amp_plan_report r = planned(text, dtypes[t]);
            network *net = parse(text, dtypes[t]);
            amp_backend *b = net->amp->engine->backend;
            a_pass(net);
            b->gemm_drop_copies(b);
            allocate_of_backend = b->allocate;
            b->allocate = counting_allocate;
            bytes_taken = 0;
            a_pass(net);
            assert_int_equal(bytes_taken, r.half_bytes);
            assert_int_equal(t == 2, bytes_taken == 0);
            release(net);
            amp_plan_report_free(&r);
        }
}

TEST(casts_are_where_forms_meet)
{
    static const amp_plan_cast expected[] = {
        { -1, 0, AMP_FORM_PLAIN, AMP_FORM_HALF, 0, 3 * 512 },
        { 0, 1, AMP_FORM_HALF, AMP_FORM_WIDE, 1, 12 * 512 },
        { 3, 4, AMP_FORM_WIDE, AMP_FORM_HALF, 1, 28 * 512 },
        { 5, 6, AMP_FORM_HALF, AMP_FORM_PLAIN, 1, 8 * 512 },
        { 6, 7, AMP_FORM_PLAIN, AMP_FORM_HALF, 1, 8 * 512 },
        { 7, -1, AMP_FORM_HALF, AMP_FORM_PLAIN, 1, 10 * 512 } };
    amp_plan_report r = planned(known, NULL);
    assert_int_equal(r.cast_count, sizeof expected / sizeof *expected);
    for (int k = 0; k < r.cast_count; k++) {
        const amp_plan_cast *a = &r.casts[k], *b = &expected[k];
        if (a->producer != b->producer || a->reader != b->reader || a->from != b->from || a->to != b->to
            || a->backward != b->backward || a->elements != b->elements)
            fail_msg("cast %d: of %d for %d, form %d to %d, back %d, %zu elements", k, a->producer, a->reader,
                     a->from, a->to, a->backward, a->elements);
    }
    amp_plan_report_free(&r);
}

static const amp_plan_advice *advice_of(const amp_plan_report *r, const char *kind, int layer)
{
    for (int k = 0; k < r->advice_count; k++)
        if (!strcmp(r->advice[k].kind, kind) && r->advice[k].layer == layer) return &r->advice[k];
    return NULL;
}

TEST(advice_names_what_could_be_changed)
{
    amp_plan_report r = planned(known, NULL);
    const amp_plan_advice *first = advice_of(&r, "misaligned", 0), *last = advice_of(&r, "misaligned", 7);
    assert_non_null(first);
    assert_string_equal(first->text, "filters=16 instead of 12");
    assert_true(first->percent > 0 && first->percent < 100);
    assert_non_null(last);
    assert_string_equal(last->text, "nothing: layer 8 [cost] needs filters=10");
    assert_null(advice_of(&r, "misaligned", 1)); /* in fp32 it does not matter */
    assert_non_null(advice_of(&r, "kept", 1));
    assert_non_null(advice_of(&r, "fp32", 6));
    const amp_plan_advice *followed = advice_of(&r, "followed", 1);
    assert_non_null(followed);
    assert_string_equal(followed->text, "remove amp=0: layers that follow this one into fp32: 2");
    amp_plan_report_free(&r);
}

/* As a training that does not fit: a divisor of the batch, or none at all. */
TEST(subdivisions_that_fit_divide_the_batch)
{
    static const struct { int fits; const char *text; } cases[] = {
        { 0, "no number of subdivisions is enough: use a smaller width and height, a smaller batch, "
             "random=0, or checkpoint=auto in [amp] (if not set)" },
        { 1, "subdivisions=64 instead of 2: images a pass that fit in the free RAM: 1" },
        { 5, "subdivisions=16 instead of 2: images a pass that fit in the free RAM: 5" },
        { 31, "subdivisions=4 instead of 2: images a pass that fit in the free RAM: 31" } };
    amp_plan_report r = planned(known, NULL);
    r.batch = 64;
    r.subdivisions = 2;
    r.images = 32;
    r.memory.what = "RAM";
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        r.advice_count = 0;
        r.fits_amp = cases[k].fits;
        amp_plan_advise(&r);
        const amp_plan_advice *advice = advice_of(&r, "too large", -1);
        assert_non_null(advice);
        assert_string_equal(advice->text, cases[k].text);
    }
    amp_plan_report_free(&r);
}

TEST(in_fp32_nothing_is_half_and_the_reason_is_the_dtype)
{
    amp_plan_report r = planned(known, "fp32");
    for (int i = 0; i < r.count; i++) assert_int_equal(r.rows[i].dtype, AMP_FP32);
    assert_string_equal(r.rows[0].why, "dtype=fp32");
    assert_true(r.half_operations == 0 && r.stored_operations == 0 && r.operations > 0);
    assert_int_equal(r.amp_bytes, r.fp32_bytes);
    assert_null(advice_of(&r, "misaligned", 0));
    amp_plan_report_free(&r);
}

/* ---- every network of tests/cfg ---- */

static int each_cfg(void (*visit)(const char *cfg))
{
    char before[1024];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(networks_folder()), 0); /* where they look for their trees */
    DIR *folder = opendir(".");
    int count = 0;
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (!strstr(entry->d_name, ".cfg")) continue;
        visit(entry->d_name);
        count++;
    }
    closedir(folder);
    assert_int_equal(chdir(before), 0);
    return count;
}

static network *made(const char *cfg, const char *dtype)
{
    amp_program_to_set()->dtype = dtype;
    network *net = amp_fork_make_network(cfg, cfg, 1);
    amp_program_to_set()->dtype = NULL;
    return net;
}

static struct {
    int forward, backward, *now;
    amp_status (*real)(amp_backend *, const amp_tensor *, const amp_tensor *, int, amp_error *);
} casts;

static amp_status counted_cast(amp_backend *b, const amp_tensor *from, const amp_tensor *to, int accumulate,
                               amp_error *error)
{
    /* What only adds changes neither. */
    *casts.now += from->dtype != to->dtype || from->layout != to->layout;
    return casts.real(b, from, to, accumulate, error);
}

static void casts_are_counted_in_a_step(const char *cfg)
{
    network *net = made(cfg, "bf16");
    const amp_plan *plan;
    amp_plan_cast list[64];
    amp_error error = { 0 };
    int back = 0;
    assert_int_equal(amp_host_training_plan(net, &plan, &error), AMP_OK);
    int count = amp_plan_casts(plan, list, 64);
    assert_true(count <= 64);
    for (int k = 0; k < count; k++) back += list[k].backward;

    amp_backend *backend = net->amp->engine->backend;
    casts.real = backend->cast;
    backend->cast = counted_cast;
    casts.forward = casts.backward = 0;
    net->train = 1;
    feed(net, 7);
    casts.now = &casts.forward;
    forward_network(net);
    casts.now = &casts.backward;
    backward_network(net);
    if (count != casts.forward || back != casts.backward)
        fail_msg("%s: %d casts and %d back; a step makes %d and %d", cfg, count, back, casts.forward,
                 casts.backward);
    release(net);
}

TEST(a_step_makes_the_casts_that_are_planned)
{
    assert_true(each_cfg(casts_are_counted_in_a_step) > 40);
}

/* The arena, by layer; and Darknet's buffers that AMP keeps, after they were fitted for a step. */
static void all_memory_is_accounted_for(const char *cfg)
{
    network *net = made(cfg, "bf16");
    const amp_plan *plan;
    amp_error error = { 0 };
    size_t asked = 0, told = 0;
    assert_int_equal(amp_host_training_plan(net, &plan, &error), AMP_OK);
    for (int k = 0; k < plan->arena.count; k++) asked += plan->arena.requests[k].bytes;
    for (int i = -1; i < plan->count; i++) {
        amp_plan_bytes b = amp_plan_bytes_of(plan, i);
        told += b.output + b.copies + b.deltas + b.kept;
    }
    if (asked != told) fail_msg("%s: %zu bytes of %zu are accounted for", cfg, told, asked);
    net->train = 1;
    feed(net, 7);
    forward_network(net);
    for (int i = 0; i < net->n; i++) {
        const amp_host_buffers *have = &net->amp->memory->buffers[i];
        if (!amp_host_is_native(&net->layers[i])) continue;
        size_t kept = (have->output_capacity + have->delta_capacity) * sizeof(float);
        told = amp_fork_buffer_bytes(net, i, net->batch, plan);
        if (told != kept) fail_msg("%s: layer %d keeps %zu bytes, told are %zu", cfg, i, kept, told);
    }
    release(net);
}

TEST(bytes_of_layers_add_up_to_what_was_asked_for_and_stays)
{
    each_cfg(all_memory_is_accounted_for);
}

/* ---- memory at other batches ---- */

static network *made_at(const char *cfg, int batch, const char *dtype)
{
    amp_cfg_change changes[] = { { "batch", batch }, { "subdivisions", 1 } };
    char copy[AMP_MEMORY_FILE];
    amp_error error = { 0 };
    assert_int_equal(amp_cfg_copy_in_memory(cfg, changes, 2, "these", copy, &error), AMP_OK);
    return made(copy, dtype);
}

static void outline_is_the_plan_of_that_batch(const char *cfg)
{
    network *small = made_at(cfg, 2, "bf16"), *large = made_at(cfg, 6, "bf16");
    const amp_plan *plan;
    amp_footprint told;
    amp_error error = { 0 };
    size_t buffers = 0;
    assert_int_equal(amp_host_footprint(small, large->batch, small->amp->config->dtype, &told, &error),
                     AMP_OK);
    assert_int_equal(amp_host_training_plan(large, &plan, &error), AMP_OK);
    for (int i = 0; i < large->n; i++) buffers += amp_fork_buffer_bytes(large, i, large->batch, plan);
    if (told.arena != plan->arena.total || told.buffers != buffers)
        fail_msg("%s: told %zu and %zu bytes, planned %zu and %zu", cfg, told.arena, told.buffers,
                 plan->arena.total, buffers);
    assert_int_equal(small->batch * 3, large->batch);
    release(small);
    release(large);
}

TEST(memory_at_another_batch_is_what_its_plan_takes)
{
    each_cfg(outline_is_the_plan_of_that_batch);
}

/* Of stock's network: activations, deltas, images and labels, and what else it takes. */
static size_t stock_network(const char *cfg, int batch, size_t *told)
{
    requests_begin();
    network *net = made_at(cfg, batch, "off");
    size_t bytes = requests_end();
    *told = ((size_t)net->inputs + (size_t)net->truths) * (size_t)net->batch * sizeof(float);
    for (int i = 0; i < net->n; i++) {
        *told += amp_fork_stock_bytes(net, i, net->batch);
        /* make_activation_layer asks for pointers where it means floats; the second half is never touched */
        if (net->layers[i].type == ACTIVE)
            *told += 2 * sizeof(float) * (size_t)net->batch * (size_t)net->layers[i].outputs;
    }
    release(net);
    return bytes;
}

/* The difference between two batches: whatever does not grow with the batch falls out. */
static void stock_takes_what_is_told(const char *cfg)
{
    size_t told_small, told_large;
    size_t small = stock_network(cfg, 2, &told_small), large = stock_network(cfg, 402, &told_large);
    size_t grown = large - small, told = told_large - told_small;
    if (grown != told)
        fail_msg("%s: stock takes %zu bytes more for 400 images more, told are %zu", cfg, grown, told);
}

TEST(stocks_bytes_are_what_it_takes)
{
    each_cfg(stock_takes_what_is_told);
}

/* Requests that live of as many bytes as all parameters together have. */
static int large_requests(network *net)
{
    int params, large = 0;
    size_t bytes = 0;
    const amp_param *p = engine_params(net->amp->engine, &params);
    for (int i = 0; i < params; i++) bytes += p[i].count * sizeof(float);
    for (size_t i = 0; i < request_count; i++) large += requests[i].bytes >= bytes;
    return large;
}

TEST(adamw_is_named)
{
    char *text = NULL;
    size_t length;
    amp_plan_report r = planned("[net]\nbatch=2\nwidth=8\nheight=8\nchannels=64\nadam=1\n[amp]\nadamw=1\n"
                                CONV(64, ""), NULL);
    FILE *stream = open_memstream(&text, &length);
    amp_plan_print_table(&r, stream);
    amp_plan_write_json(stream, &r);
    fclose(stream);
    assert_non_null(strstr(text, "\"adamw\": true"));
    free(text);
    amp_plan_report_free(&r);
}

/* Gradients and Adam's moments are one request each, and larger than all else: a layer's weights are half of
 * them. Nor is there a place for a delta, or for anything that a backward would read. */
TEST(a_prediction_takes_nothing_that_only_a_training_needs)
{
    put_file("large.cfg", "[net]\nbatch=2\nwidth=8\nheight=8\nchannels=64\nadam=1\nlearning_rate=0.001\n"
                          "max_batches=10\n[amp]\ndtype=fp32\n" CONV(64, "") CONV(64, "")
                          "[dropout]\n[cost]\ntype=sse\n");
    amp_program_to_set()->dtype = NULL;
    requests_begin();
    network *net = made("large.cfg", NULL);
    set_batch_network(net, 2);
    feed(net, 1);
    network_predict(net, net->input);
    assert_int_equal(large_requests(net), 0);
    const amp_plan *plan = net->amp->engine->active;
    for (int i = 0; i < plan->count; i++) {
        const amp_node *node = &plan->nodes[i];
        assert_false(node->pre_activation || node->mean || node->variance || node->kept);
        for (int form = 0; form < AMP_FORM_PLAIN; form++) assert_null(node->output->delta[form]);
    }
    train_step(net, 1);
    assert_int_equal(large_requests(net), 2);
    requests_end();
    release(net);
}

static size_t needed(amp_plan_report *r, int images)
{
    amp_needs needs;
    amp_error error = { 0 };
    amp_training training = { .net = r->net, .plan = r->plan, .dtype = r->dtype, .images = images };
    assert_int_equal(amp_host_needs(&training, images, &needs, &error), AMP_OK);
    return amp_needs_sum(&needs);
}

TEST(what_fits_is_the_largest_that_fits)
{
    amp_plan_report r = planned(known, "fp32");
    if (!r.memory.bytes) skip();
    assert_true(r.fits_amp > r.images && r.fits_amp <= r.most_images);
    assert_true(needed(&r, r.fits_amp) <= r.memory.bytes);
    if (r.fits_amp < r.most_images) assert_true(needed(&r, r.fits_amp + 1) > r.memory.bytes);
    amp_plan_report_free(&r);
}

/* ---- what a training needs ---- */

/* With the sizes that random=1 takes: in 608 x 608 there are 1444 times the pixels of 16 x 16. */
TEST(needs_are_of_the_largest_size)
{
    enum { AREA = 608 * 608 / (16 * 16) };
    static const char yolo[] = NET("") CONV(8, "") POINTWISE(18, "") "[yolo]\nclasses=1\nnum=3\nmask=0,1,2\n"
        "anchors=1,1, 2,2, 3,3\n";
    char changing[4096];
    amp_needs fixed, largest;
    amp_error error = { 0 };
    snprintf(changing, sizeof changing, "%srandom=1\n", yolo);
    amp_plan_report a = planned(yolo, "fp32"), b = planned(changing, "fp32");
    const amp_training trainings[] = { { a.net, a.plan, AMP_FP32, 2, 0 }, { b.net, b.plan, AMP_FP32, 2, 0 } };
    assert_int_equal(amp_host_needs(&trainings[0], 2, &fixed, &error), AMP_OK);
    assert_int_equal(amp_host_needs(&trainings[1], 2, &largest, &error), AMP_OK);
    assert_true(fixed.area == 1 && largest.area == 1. * 608 * 608 / (16 * 16));
    assert_int_equal(largest.parameters, fixed.parameters);
    assert_int_equal(largest.copies, fixed.copies);
    assert_true(largest.pass.arena / fixed.pass.arena == AREA && largest.loaded / fixed.loaded == AREA);
    amp_plan_report_free(&a);
    amp_plan_report_free(&b);
}

/* At the first step an engine takes what is told: copies of weights and the arena. */
TEST(an_engine_takes_the_copies_and_the_arena_that_are_told)
{
    static const char *const dtypes[] = { "bf16", "fp32" };
    static const char text[] = "[net]\nbatch=8\nwidth=96\nheight=96\nchannels=3\nmax_batches=9\n" CONV(16, "")
        CONV(32, "") POINTWISE(16, "") "[cost]\ntype=sse\n";
    for (int t = 0; t < 2; t++) {
        amp_needs needs;
        amp_error error = { 0 };
        const amp_plan *plan;
        network *net = parse(text, dtypes[t]);
        assert_int_equal(amp_host_training_plan(net, &plan, &error), AMP_OK);
        const amp_training training = { net, plan, net->amp->config->dtype, net->batch, 0 };
        amp_status status = amp_host_needs(&training, net->batch, &needs, &error);
        assert_int_equal(status, AMP_OK);
        /* weights, biases and scales, three times; two rolling statistics, twice */
        size_t learnt = 27 * 16 + 2 * 16 + 144 * 32 + 2 * 32 + 32 * 16 + 16, channels = 16 + 32;
        assert_int_equal(needs.parameters, (3 * learnt + 4 * channels) * sizeof(float));
        requests_begin();
        a_pass(net);
        size_t taken = requests_end();
        size_t told = needs.pass.arena + needs.pass.buffers + needs.copies + needs.workspace;
        print_message("%s: %zu bytes taken, %zu told\n", dtypes[t], taken, told);
        /* Darknet has made some of its buffers already, and not all of the workspace is wanted here */
        assert_true(taken >= needs.pass.arena + needs.copies && taken < 1.1 * (double)told);
        release(net);
    }
}

/* ---- what memory there is ---- */

static void put(const char *path, const char *text)
{
    char command[512];
    snprintf(command, sizeof command, "mkdir -p $(dirname %s)", path);
    assert_int_equal(system(command), 0);
    put_file(path, text);
}

static void available_is(size_t bytes, size_t all, const char *what)
{
    amp_available_memory memory = amp_available_ram(".", 1);
    if (memory.bytes != bytes || memory.all != all || strcmp(memory.what, what))
        fail_msg("%zu of %zu of %s instead of %zu of %zu of %s", memory.bytes, memory.all, memory.what, bytes,
                 all, what);
}

TEST(the_least_of_all_limits_counts)
{
    static const char group[] = "RAM that the control group allows";
    struct rlimit before, limit;
    put("proc/meminfo", "MemTotal:  900 kB\nMemFree: 1 kB\nMemAvailable:  800 kB\n");
    available_is(800 << 10, 900 << 10, "RAM");
    /* version 2: what is above counts too, files are given up, and "max" is no limit */
    put("proc/self/cgroup", "0::/user/job\n");
    put("sys/fs/cgroup/user/job/memory.max", "max\n");
    put("sys/fs/cgroup/user/job/memory.current", "700000\n");
    available_is(800 << 10, 900 << 10, "RAM");
    put("sys/fs/cgroup/user/memory.max", "600000\n");
    put("sys/fs/cgroup/user/memory.current", "500000\n");
    put("sys/fs/cgroup/user/memory.stat", "anon 1\ninactive_file 200000\n");
    available_is(300000, 600000, group);
    /* this program has more resident than the group uses */
    assert_int_equal(amp_available_ram(".", 1).resident, 300000);
    put("sys/fs/cgroup/user/job/memory.max", "650000\n"); /* full, and more */
    available_is(0, 650000, group);
    /* version 1, in a container: the path is the machine's, and only the mount's root is there */
    put("proc/self/cgroup", "5:cpu:/a\n4:memory:/docker/abc\n0::/\n");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("sys/fs/cgroup/memory/memory.usage_in_bytes", "500000\n");
    available_is(800 << 10, 900 << 10, "RAM");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "700000\n");
    put("sys/fs/cgroup/memory/memory.stat", "inactive_file 7\ntotal_inactive_file 100000\n");
    available_is(300000, 700000, group);
    /* four ranks have a fourth each */
    amp_available_memory fourth = amp_available_ram(".", 4);
    assert_true(fourth.bytes == 75000 && fourth.all == 700000);
    assert_string_equal(fourth.what, "RAM for each rank on this machine");
    /* the address space: all of it is taken already */
    put("proc/self/cgroup", "");
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    limit = (struct rlimit){ 1 << 20, before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    amp_available_memory memory = amp_available_ram(".", 1), of_four = amp_available_ram(".", 4);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_true(of_four.bytes == 0 && of_four.all == 1 << 20);
    assert_true(memory.bytes == 0 && memory.all == 1 << 20);
    assert_string_equal(memory.what, "address space (ulimit -v)");
}

/* ---- networks without weights ---- */

TEST(a_network_that_is_looked_at_draws_nothing)
{
    put_file("known.cfg", known);
    srand(11);
    int untouched = rand();
    srand(11);
    network *net = amp_fork_make_network("known.cfg", "known.cfg", 0);
    assert_int_equal(rand(), untouched);
    assert_true(net->layers[0].weights[0] == 0);
    release(net);
    assert_true(rand_uniform(1, 2) >= 1); /* later draws are draws again */
    net = amp_fork_make_network("known.cfg", "known.cfg", 1); /* and the next one has weights again */
    assert_true(net->layers[0].weights[0] != 0);
    release(net);
}

int main(void) { return run_listed_tests("tests", enter_folder, leave_folder); }
