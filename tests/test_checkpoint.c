/* The sidecar's format: what is saved comes back bit for bit, and what is not a sound sidecar of this network is refused with a
 * reason before anything is touched. */
#define _DEFAULT_SOURCE /* mkstemps */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "amp/checkpoint.h"
#include "checkpoint_testing.h"
#include "engine_testing.h"
#include "memory_network.h"

#define SCALED "growth_interval=5\ninit_scale=1024\n"

static char folder[] = "/tmp/amp_test_checkpoint_XXXXXX";
static char sidecar[64], weights[64];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(sidecar, sizeof sidecar, "%s/x.weights.amp", folder);
    snprintf(weights, sizeof weights, "%s/x.weights", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(sidecar);
    unlink(weights);
    return rmdir(folder);
}

/* ---- networks and their state ---- */

static network *make(const char *net_keys, const char *dtype) { return parse_branched(net_keys, "", dtype); }

static amp_engine *engine_of(network *net) { return net->amp->engine; }

/* All that apply may change: what snapshot() holds, gradients, committed statistics and the scaler. */
static char *whole_state(network *net, size_t *size)
{
    char *block = snapshot(net, size);
    amp_engine_state e = amp_engine_state_of(engine_of(net));
    for (int i = 0; i < e.param_count; i++) {
        block = realloc(block, *size + e.params[i].count * sizeof(float));
        memcpy(block + *size, e.params[i].grad, e.params[i].count * sizeof(float));
        *size += e.params[i].count * sizeof(float);
    }
    for (int i = 0; i < e.statistics_count; i++) {
        block = realloc(block, *size + e.statistics[i].count * sizeof(float));
        memcpy(block + *size, e.statistics[i].committed, e.statistics[i].count * sizeof(float));
        *size += e.statistics[i].count * sizeof(float);
    }
    block = realloc(block, *size + sizeof(amp_scaler));
    memcpy(block + *size, amp_engine_scaler(engine_of(net)), sizeof(amp_scaler));
    *size += sizeof(amp_scaler);
    return block;
}

static void assert_same_state(network *a, network *b)
{
    size_t m, n;
    char *x = whole_state(a, &m), *y = whole_state(b, &n);
    assert_int_equal(m, n);
    assert_memory_equal(x, y, n);
    free(x);
    free(y);
}

static amp_run_state run_of(network *net, int window)
{
    amp_run_state run = { .seen = *net->seen, .t = *net->t, .steps = 7, .skipped = 2, .width = net->w, .height = net->h,
                          .batch = net->batch, .subdivisions = net->subdivisions, .window = window, .seeded = 1,
                          .seed = 4294967295u, .next_job = 0x123456789abcdefu, .looped = 1, .loop_count = 3,
                          .average_loss = 0.125f };
    for (int i = 0; i < AMP_RANDOM_STATE_BYTES; i++) run.random[i] = (unsigned char)(i * 37);
    return run;
}

static void save(network *net, int window)
{
    amp_error error;
    amp_run_state run = run_of(net, window);
    uint64_t sum;
    save_weights(net, weights);
    assert_int_equal(amp_file_checksum(weights, &sum, &error), AMP_OK);
    if (amp_checkpoint_write(sidecar, engine_of(net), &run, sum, &error) != AMP_OK) fail_msg("%s", error.message);
}

static amp_checkpoint *read_back(void)
{
    amp_error error;
    amp_checkpoint *c;
    if (amp_checkpoint_read(sidecar, &c, &error) != AMP_OK) fail_msg("%s", error.message);
    return c;
}

/* Load the pair into net, as a resumed training does; note may be NULL: there must be none. */
static void resume(network *net, char note[256])
{
    amp_error error;
    char mine[256];
    amp_checkpoint *c = read_back();
    load_weights(net, weights);
    if (amp_checkpoint_apply(c, engine_of(net), note ? note : mine, &error) != AMP_OK) fail_msg("%s", error.message);
    if (!note) assert_string_equal(mine, "");
    *net->t = (int)amp_checkpoint_run(c)->t;
    assert_int_equal(*net->seen, amp_checkpoint_run(c)->seen);
    amp_checkpoint_free(c);
}

static unsigned char *bytes_of(const char *path, size_t *size)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    unsigned char *bytes = malloc((size_t)info.st_size + 64);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    *size = fread(bytes, 1, (size_t)info.st_size, file);
    fclose(file);
    return bytes;
}

static void put_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* ---- round trips ---- */

/* After a resume in the middle of `steps` steps and a window, both go on to equal bits. */
static void goes_on_bitwise(const char *net_keys, const char *dtype, int steps, int window)
{
    network *a = make(net_keys, dtype), *b = make(net_keys, dtype);
    for (int i = 0; i < steps; i++) train_step(a, (unsigned)(10 * i));
    if (window) {
        feed(a, 500);
        train_network_datum(a);
    }
    save(a, window);
    train_step(b, 77); /* something to be overwritten */
    resume(b, NULL);
    assert_same_state(a, b);
    for (int i = 0; i < 2 * steps; i++) {
        feed(a, 600u + (unsigned)i);
        feed(b, 600u + (unsigned)i);
        train_network_datum(a);
        train_network_datum(b);
        assert_same_state(a, b);
    }
    release(a);
    release(b);
}

static void sgd_comes_back_bit_for_bit(void **state)
{
    (void)state;
    goes_on_bitwise("", "fp32", 3, 0);
    goes_on_bitwise("", "bf16", 3, 0);
}

static void adam_comes_back_bit_for_bit(void **state)
{
    (void)state;
    goes_on_bitwise("adam=1\n", "fp32", 3, 0);
}

static void a_half_done_batch_comes_back_bit_for_bit(void **state)
{
    (void)state;
    goes_on_bitwise("", "fp32", 3, 1);
    goes_on_bitwise("adam=1\n" SCALED, "fp16", 2, 1);
}

/* 3 of 5 clean steps are saved: the scale grows after 2 more, not after 5. */
static void behaviour_07_a_scaler_in_mid_interval_goes_on(void **state)
{
    (void)state;
    network *a = make(SCALED, "fp16"), *b = make(SCALED, "fp16");
    for (int i = 0; i < 3; i++) train_step(a, (unsigned)i);
    assert_int_equal(amp_engine_scaler(engine_of(a))->growth_tracker, 3);
    save(a, 0);
    resume(b, NULL);
    assert_int_equal(amp_engine_scaler(engine_of(b))->growth_tracker, 3);
    for (int i = 3; i < 5; i++) {
        assert_float_equal(amp_engine_scaler(engine_of(b))->scale, 1024, 0);
        train_step(b, (unsigned)i);
    }
    assert_float_equal(amp_engine_scaler(engine_of(b))->scale, 2048, 0);
    release(a);
    release(b);
}

static void the_hosts_counters_come_back(void **state)
{
    (void)state;
    network *net = make("", "fp32");
    save(net, 0);
    amp_checkpoint *c = read_back();
    amp_run_state run = run_of(net, 0);
    const amp_run_state *r = amp_checkpoint_run(c);
    uint64_t sum;
    assert_int_equal(amp_file_checksum(weights, &sum, NULL), AMP_OK);
    assert_true(amp_checkpoint_weights(c) == sum);
    assert_true(r->seen == run.seen && r->t == run.t && r->steps == 7 && r->skipped == 2 && r->width == 16 && r->height == 16);
    assert_true(r->batch == run.batch && r->subdivisions == 2 && r->window == 0 && r->seeded == 1 && r->seed == 4294967295u);
    assert_true(r->next_job == 0x123456789abcdefu && r->looped == 1 && r->loop_count == 3 && r->average_loss == 0.125f);
    assert_memory_equal(r->random, run.random, sizeof run.random);
    amp_checkpoint_free(c);
    release(net);
}

/* What the .weights file does not hold comes from the sidecar, what it does hold is left as it was loaded. */
static void arrays_that_weights_files_lack_come_back(void **state)
{
    (void)state;
    for (int window = 0; window < 2; window++) {
        memory_network *a = memory_network_make(0, 1), *b = memory_network_make(0, 1);
        amp_error error;
        char note[256];
        for (int k = 0; k < 40; k++) b->masters[k / 8][k % 8] = b->momenta[k / 8][k % 8] = -1;
        for (int k = 0; k < 18; k++) b->statistics[k / 6][k % 6] = -1;
        amp_engine_state x = amp_engine_state_of(a->engine), y = amp_engine_state_of(b->engine);
        for (int i = 0; i < x.param_count; i++) x.params[i].grad[0] = 5, y.params[i].grad[0] = -1;
        a->statistics[0][0] = 77; /* moved in the window: committed is still 0 */
        assert_int_equal(amp_checkpoint_write(sidecar, a->engine, &(amp_run_state){ .window = window }, 1, &error), AMP_OK);
        amp_checkpoint *c = read_back();
        assert_int_equal(amp_checkpoint_apply(c, b->engine, note, &error), AMP_OK);
        amp_checkpoint_free(c);
        for (int i = 0; i < x.param_count; i++) {
            size_t bytes = x.params[i].count * sizeof(float);
            assert_memory_equal(x.params[i].momentum, y.params[i].momentum, bytes);
            if (x.params_unsaved[i]) assert_memory_equal(x.params[i].master, y.params[i].master, bytes);
            else assert_true(y.params[i].master[0] == -1);
            assert_true(y.params[i].grad[0] == (window ? 5 : 0));
        }
        for (int i = 0; i < x.statistics_count; i++) {
            size_t bytes = x.statistics[i].count * sizeof(float);
            if (x.statistics[i].unsaved) assert_memory_equal(x.statistics[i].array, y.statistics[i].array, bytes);
            else assert_true(y.statistics[i].array[0] == -1);
            if (window) assert_memory_equal(x.statistics[i].committed, y.statistics[i].committed, bytes);
            else assert_memory_equal(y.statistics[i].array, y.statistics[i].committed, bytes);
        }
        memory_network_free(a);
        memory_network_free(b);
    }
}

/* A recurrent layer's state has a row for each image of the batch. */
static void another_batch_starts_recurrent_states_anew(void **state)
{
    (void)state;
    memory_network *n = memory_network_make(0, 1);
    amp_error error;
    char note[256];
    size_t size;
    assert_int_equal(amp_checkpoint_write(sidecar, n->engine, &(amp_run_state){ 0 }, 1, &error), AMP_OK);
    unsigned char *bytes = bytes_of(sidecar, &size);
    size_t at = size - 8 - 6 * 4 - AMP_CHECKPOINT_ARRAY_HEAD_BYTES; /* the last array is the state: one of 5 instead of 6 */
    unsigned char *net_record = sidecar_record(bytes, size, AMP_TAG_NETWORK, 0);
    unsigned char *count = net_record + amp_fetch_u64(net_record - 8) - 8;
    assert_true(amp_fetch_u64(count) == 6 && amp_fetch_u64(bytes + at + 8) == 6);
    amp_store_u64(count, 5);
    amp_store_u64(bytes + at + 8, 5);
    amp_store_u64(bytes + at - 8, AMP_CHECKPOINT_ARRAY_HEAD_BYTES + 5 * 4);
    size -= 4;
    seal_sidecar(bytes, size);
    amp_checkpoint *c;
    if (amp_checkpoint_parse(bytes, size, "x.amp", &c, &error) != AMP_OK) fail_msg("%s", error.message);
    n->statistics[2][0] = 99;
    assert_int_equal(amp_checkpoint_apply(c, n->engine, note, &error), AMP_OK);
    assert_non_null(strstr(note, "recurrent layers start from an empty state"));
    assert_true(n->statistics[2][0] == 99);
    amp_checkpoint_free(c);
    memory_network_free(n);
    free(bytes);
}

/* ---- what is not of this network ---- */

static void refuses_untouched(network *net, const amp_checkpoint *c, const char *reason)
{
    size_t m, n;
    amp_error error;
    char note[256], *before = whole_state(net, &m);
    assert_int_equal(amp_checkpoint_apply(c, engine_of(net), note, &error), AMP_BAD_CHECKPOINT);
    if (!strstr(error.message, reason) || !strstr(error.message, "remove it") || !strstr(error.message, sidecar) || !is_one_line(error.message))
        fail_msg("\"%s\" does not say \"%s\"", error.message, reason);
    char *after = whole_state(net, &n);
    assert_int_equal(m, n);
    assert_memory_equal(before, after, n);
    free(before);
    free(after);
}

static void another_network_is_refused_untouched(void **state)
{
    (void)state;
    network *net = make("", "fp32");
    train_step(net, 1);
    save(net, 0);
    amp_checkpoint *c = read_back();
    static const struct { const char *text, *reason; } others[] = {
        { NET("") CONV(8, "") CONV(8, "") "[maxpool]\nsize=2\nstride=1\n" TAIL, "layer 2 is [shortcut] there and [maxpool] here" },
        { NET("") CONV(8, "") CONV(8, "") "[shortcut]\nfrom=-2\nactivation=linear\n[maxpool]\nsize=2\nstride=1\n[route]\nlayers=-1,0\n",
          "7 layers there and 5 here" },
        { NET("") CONV(8, "") CONV(4, "") "[shortcut]\nfrom=-2\nactivation=linear\n[maxpool]\nsize=2\nstride=1\n[route]\nlayers=-1,0\n" TAIL,
          "layer 1 [convolutional] has 576 weights there and 288 here" },
        { NET("") "[convolutional]\nfilters=8\nsize=3\nstride=1\npad=1\nactivation=leaky\n" CONV(8, "")
          "[shortcut]\nfrom=-2\nactivation=linear\n[maxpool]\nsize=2\nstride=1\n[route]\nlayers=-1,0\n" TAIL, "scales of layer 0 there" },
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        network *other = parse(others[i].text, "fp32");
        refuses_untouched(other, c, others[i].reason);
        release(other);
    }
    amp_checkpoint_free(c);
    release(net);
}

/* ---- changed settings ---- */

static void a_change_of_optimizer_starts_its_moments_anew(void **state)
{
    (void)state;
    for (int adam = 0; adam < 2; adam++) {
        network *a = make(adam ? "adam=1\n" : "", "fp32"), *b = make(adam ? "" : "adam=1\n", "fp32");
        char note[256];
        train_step(a, 1);
        train_step(b, 2);
        save(a, 0);
        resume(b, note);
        assert_non_null(strstr(note, adam ? "optimizer was Adam and is SGD now" : "optimizer was SGD and is Adam now"));
        amp_engine_state x = amp_engine_state_of(engine_of(a)), y = amp_engine_state_of(engine_of(b));
        for (int i = 0; i < y.param_count; i++) {
            assert_memory_equal(x.params[i].master, y.params[i].master, y.params[i].count * sizeof(float));
            for (size_t k = 0; k < y.params[i].count; k++) {
                assert_true(y.params[i].momentum[k] == 0);
                if (y.adam) assert_true(y.params[i].m[k] == 0 && y.params[i].v[k] == 0);
            }
        }
        release(a);
        release(b);
    }
}

/* The scaler a resumed network has, and what the user is told. */
static amp_scaler resumed_scaler(const char *saved_keys, const char *keys, char note[256])
{
    network *a = make(saved_keys, "fp16"), *b = make(keys, "fp16");
    for (int i = 0; i < 3; i++) train_step(a, (unsigned)i);
    save(a, 0);
    resume(b, note);
    amp_scaler s = *amp_engine_scaler(engine_of(b));
    release(a);
    release(b);
    return s;
}

static void settings_of_the_cfg_win_over_saved_ones(void **state)
{
    (void)state;
    char note[256];
    amp_scaler s = resumed_scaler(SCALED, "growth_interval=9\ngrowth_factor=4\nbackoff_factor=0.25\ninit_scale=32\n", note);
    assert_string_equal(note, "");
    assert_true(s.scale == 1024 && s.growth_tracker == 3 && s.steps == 3 && s.growth_interval == 9);
    assert_true(s.growth_factor == 4 && s.backoff_factor == 0.25);

    s = resumed_scaler(SCALED, "growth_interval=2\n", note); /* overdue: it grows at the next clean step */
    assert_true(s.scale == 1024 && s.growth_tracker == 1);

    s = resumed_scaler(SCALED, "loss_scale=128\n", note);
    assert_true(!s.dynamic && s.scale == 128 && s.steps == 3);
    assert_non_null(strstr(note, "was dynamic and is static now"));

    s = resumed_scaler("loss_scale=128\n", SCALED, note);
    assert_true(s.dynamic && s.scale == 1024 && s.growth_tracker == 0 && s.steps == 3);
    assert_non_null(strstr(note, "was static and is dynamic now"));

    s = resumed_scaler(SCALED, "max_scale=512\ninit_scale=64\nhysteresis=3\n", note);
    assert_true(s.scale == 512 && s.hysteresis == 3 && s.hysteresis_tracker == 3);
    assert_non_null(strstr(note, "1024 is outside min_scale to max_scale: it is 512 now"));

    s = resumed_scaler(SCALED, "min_scale=4096\ninit_scale=65536\n", note);
    assert_true(s.scale == 4096);
    assert_non_null(strstr(note, "1024 is outside min_scale to max_scale: it is 4096 now"));
}

/* ---- files that are none ---- */

static void refused(const void *bytes, size_t size, const char *reason)
{
    amp_error error = { 0 };
    amp_checkpoint *c = (void *)&error;
    amp_status status = amp_checkpoint_parse(bytes, size, "name.amp", &c, &error);
    if (status != AMP_BAD_CHECKPOINT || c || strncmp(error.message, "name.amp: ", 10) || !strstr(error.message, reason)
        || !strstr(error.message, "remove it to start") || !is_one_line(error.message))
        fail_msg("status %d, \"%s\" instead of \"%s\"", status, error.message, reason);
}

static unsigned char *small_sidecar(const char *net_keys, int window, size_t *size)
{
    char text[1024];
    snprintf(text, sizeof text, "[net]\nbatch=2\nsubdivisions=2\nwidth=4\nheight=4\nchannels=1\nmomentum=0.9\n%s" CONV(2, "") "[cost]\n", net_keys);
    network *net = parse(text, "fp32");
    train_step(net, 1);
    save(net, window);
    release(net);
    return bytes_of(sidecar, size);
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    size_t size;
    unsigned char *bytes = small_sidecar("", 1, &size);
    for (size_t length = 0; length < size; length++) {
        refused(bytes, length, length == 0 ? "empty" : length < 8 ? "not a file" : "cut off");
        unsigned char *cut = malloc(length ? length : 1); /* of its own, so that sanitizers see its end */
        memcpy(cut, bytes, length);
        seal_sidecar(cut, length);
        refused(cut, length, "");
        free(cut);
    }
    bytes[size] = 0;
    refused(bytes, size + 1, "1 bytes follow its end");
    free(bytes);
}

static void every_flipped_byte_is_refused(void **state)
{
    (void)state;
    size_t size;
    unsigned char *bytes = small_sidecar("adam=1\n", 1, &size);
    for (size_t at = 0; at < size; at++)
        for (int bit = 0; bit <= 8; bit++) {
            unsigned char flip = bit < 8 ? (unsigned char)(1 << bit) : 0xff;
            bytes[at] ^= flip;
            refused(bytes, size, "");
            bytes[at] ^= flip;
        }
    amp_checkpoint *c;
    assert_int_equal(amp_checkpoint_parse(bytes, size, "name.amp", &c, NULL), AMP_OK);
    amp_checkpoint_free(c);
    free(bytes);
}

static void a_later_version_is_refused_by_its_number(void **state)
{
    (void)state;
    size_t size;
    unsigned char *bytes = small_sidecar("", 0, &size);
    amp_store_u32(bytes + 8, 2);
    refused(bytes, size, "later version 2 of its format; this program reads up to 1: update the program, or remove it");
    refused(bytes, 12, "later version 2");
    amp_store_u32(bytes + 8, 0);
    seal_sidecar(bytes, size);
    refused(bytes, size, "damaged");
    free(bytes);
}

/* Damage that the checksum does not show: a file that somebody, or a fault of the program, made so. */
static void content_that_makes_no_sense_is_refused(void **state)
{
    (void)state;
    enum { SCALER, RUN, NET, ARRAY, HEADER };
    static const struct { const char *reason; int part, nth; long at; int bytes; uint64_t value; } changes[] = {
        { "optimizer 2", HEADER, 0, 32, 4, 2 },
        { "in its first bytes", HEADER, 0, 12, 4, 41 },
        { "bytes more", HEADER, 0, 36, 4, 3 },
        { "it holds 0 records", HEADER, 0, 36, 4, 0 },
        { "longer than the file", HEADER, 0, 36, 4, 0xffffffff },
        { "longer than the file", SCALER, 0, -8, 8, UINT64_MAX },
        { "longer than the file", ARRAY, 3, -8, 8, UINT64_MAX - 11 },
        { "none that belongs there", RUN, 0, -12, 4, AMP_TAG_SCALER },
        { "none that belongs there", ARRAY, 1, -12, 4, AMP_TAG_RUN },
        { "none that belongs there", ARRAY, 1, -12, 4, 0x12345678 },
        { "loss scaler", SCALER, 0, 0, 4, 0x7fc00000 },       /* NaN */
        { "loss scaler", SCALER, 0, 0, 4, 0x7f800000 },       /* inf */
        { "loss scaler", SCALER, 0, 0, 4, 0 },
        { "loss scaler", SCALER, 0, 0, 4, 0xbf800000 },       /* -1 */
        { "loss scaler", SCALER, 0, 4, 4, 2 },
        { "loss scaler", SCALER, 0, 8, 4, 0xffffffff },
        { "negative", RUN, 0, 8, 8, UINT64_MAX },             /* t */
        { "negative", RUN, 0, 32, 4, 0x80000000 },            /* width */
        { "negative", RUN, 0, 48, 4, 0xffffffff },            /* window */
        { "neither 0 nor 1", RUN, 0, 52, 4, 2 },              /* seeded */
        { "the network makes no sense", NET, 0, 0, 4, 1 },    /* layers */
        { "the network makes no sense", NET, 0, 0, 4, 0x7fffffff },
        { "the network makes no sense", NET, 0, 4, 1, 0 },    /* an empty type */
        { "the network makes no sense", NET, 0, 5, 1, '\n' },
        { "the network makes no sense", NET, 0, 4, 1, 255 },
        { "the network makes no sense", NET, 0, 4 + 14 + 5 + 4, 4, 2 },            /* the first parameter's layer */
        { "the network makes no sense", NET, 0, 4 + 14 + 5 + 4 + 4, 4, 2 },        /* its flag */
        { "does not fit", NET, 0, 4 + 14 + 5 + 4 + 8, 8, UINT64_MAX / 4 },         /* its count */
        { "does not fit", ARRAY, 0, 0, 4, 7 },                /* kind */
        { "does not fit", ARRAY, 0, 0, 4, UINT32_MAX },
        { "does not fit", ARRAY, 0, 0, 4, AMP_SAVED_M },      /* Adam's in a file of SGD's */
        { "does not fit", ARRAY, 0, 4, 4, 3 },                /* index */
        { "does not fit", ARRAY, 0, 4, 4, UINT32_MAX },
        { "does not fit", ARRAY, 0, 8, 8, UINT64_MAX / 2 + 10 }, /* a count that wraps to the right number of bytes */
        { "does not fit", ARRAY, 0, 8, 8, (UINT64_C(1) << 62) + 18 },
        { "does not fit", ARRAY, 4, 4, 4, 1 },                /* twice the same */
        { "not finite", ARRAY, 0, 16, 4, 0x7f800000 },
        { "not finite", ARRAY, 0, 16 + 4 * 17, 4, 0xffc00001 },
    };
    static const uint32_t tags[] = { AMP_TAG_SCALER, AMP_TAG_RUN, AMP_TAG_NETWORK, AMP_TAG_ARRAY };
    size_t size;
    unsigned char *bytes = small_sidecar("", 1, &size), *copy = malloc(size);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        memcpy(copy, bytes, size);
        unsigned char *part = changes[i].part == HEADER ? copy : sidecar_record(copy, size, tags[changes[i].part], changes[i].nth);
        assert_non_null(part);
        for (int k = 0; k < changes[i].bytes; k++) part[changes[i].at + k] = (unsigned char)(changes[i].value >> 8 * k);
        seal_sidecar(copy, size);
        refused(copy, size, changes[i].reason);
    }
    free(copy);
    free(bytes);
}

static void a_negative_second_moment_is_refused(void **state)
{
    (void)state;
    size_t size;
    unsigned char *bytes = small_sidecar("adam=1\n", 0, &size);
    unsigned char *v = sidecar_record(bytes, size, AMP_TAG_ARRAY, 1);
    assert_int_equal(amp_fetch_u32(v), AMP_SAVED_V);
    amp_store_u32(v + 16, 0xbf800000);
    seal_sidecar(bytes, size);
    refused(bytes, size, "not finite");
    free(bytes);
}

/* Gradients of a half-done batch may be inf: the step is skipped at its end, as it would have been without the restart. */
static void an_overflow_in_a_half_done_batch_is_kept(void **state)
{
    (void)state;
    size_t size;
    unsigned char *bytes = small_sidecar("", 1, &size);
    unsigned char *gradient = sidecar_record(bytes, size, AMP_TAG_ARRAY, 1);
    assert_int_equal(amp_fetch_u32(gradient), AMP_SAVED_GRADIENT);
    amp_store_u32(gradient + 16, 0x7f800000);
    seal_sidecar(bytes, size);
    amp_checkpoint *c;
    assert_int_equal(amp_checkpoint_parse(bytes, size, "name.amp", &c, NULL), AMP_OK);
    amp_checkpoint_free(c);
    free(bytes);
}

static void a_missing_array_is_refused(void **state)
{
    (void)state;
    size_t size;
    unsigned char *bytes = small_sidecar("", 0, &size);
    uint32_t records = amp_fetch_u32(bytes + 36);
    unsigned char *last = sidecar_record(bytes, size, AMP_TAG_ARRAY, (int)records - 4);
    size = (size_t)(last - 12 - bytes) + 8;
    amp_store_u32(bytes + 36, records - 1);
    seal_sidecar(bytes, size);
    refused(bytes, size, "an array is missing");
    free(bytes);
}

static void refused_file(const char *path, amp_status expected, const char *reason)
{
    amp_error error = { 0 };
    amp_checkpoint *c = (void *)&error;
    amp_status status = amp_checkpoint_read(path, &c, &error);
    if (status != expected || c || !strstr(error.message, path) || !strstr(error.message, reason)
        || !strstr(error.message, "remove it to start") || !is_one_line(error.message))
        fail_msg("status %d, \"%s\" instead of \"%s\"", status, error.message, reason);
}

static void files_that_are_no_sidecars_are_refused(void **state)
{
    (void)state;
    char path[80];
    network *net = make("", "fp32");
    save(net, 0);
    release(net);
    refused_file(weights, AMP_BAD_CHECKPOINT, "not a file that Darknet AMP wrote");
    refused_file(folder, AMP_IO_FAILED, "not a regular file");
    refused_file("/dev/null", AMP_IO_FAILED, "not a regular file");
    snprintf(path, sizeof path, "%s/none", folder);
    refused_file(path, AMP_IO_FAILED, "No such file");
    put_file(path, "", 0);
    refused_file(path, AMP_BAD_CHECKPOINT, "empty");
    put_file(path, "[net]\nbatch=1\n", 14);
    refused_file(path, AMP_BAD_CHECKPOINT, "not a file that Darknet AMP wrote");
    if (geteuid() != 0) { /* root reads everything */
        assert_int_equal(chmod(path, 0), 0);
        refused_file(path, AMP_IO_FAILED, "Permission denied");
    }
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    refused_file(path, AMP_IO_FAILED, "not a regular file");
    unlink(path);
}

/* ---- writing ---- */

static void a_full_disk_leaves_no_file_and_a_reason(void **state)
{
    (void)state;
    network *net = make("", "fp32");
    amp_run_state run = run_of(net, 0);
    amp_error error;
    struct stat info;
    save(net, 0);
    assert_int_equal(stat(sidecar, &info), 0);
    struct rlimit old, tight;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_IGN);
    for (off_t limit = 0; limit < info.st_size; limit += limit < 64 ? 1 : 517) {
        tight = (struct rlimit){ (rlim_t)limit, old.rlim_max };
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
        amp_status status = amp_checkpoint_write(sidecar, engine_of(net), &run, 1, &error);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        assert_int_equal(status, AMP_IO_FAILED);
        if (!strstr(error.message, sidecar) || !strstr(error.message, "File too large")) fail_msg("%s", error.message);
        assert_int_equal(access(sidecar, F_OK), -1);
    }
    assert_int_equal(amp_checkpoint_write("/dev/full", engine_of(net), &run, 1, &error), AMP_IO_FAILED);
    assert_non_null(strstr(error.message, "No space left on device"));
    assert_int_equal(access("/dev/full", F_OK), 0);
    assert_int_equal(amp_checkpoint_write("/dev/null/x", engine_of(net), &run, 1, &error), AMP_IO_FAILED);
    assert_non_null(strstr(error.message, "Not a directory"));
    release(net);
}

static void a_state_with_nan_is_not_saved(void **state)
{
    (void)state;
    network *net = make("adam=1\n", "fp32");
    amp_run_state run = run_of(net, 0);
    amp_error error;
    save(net, 0);
    int count;
    const amp_param *p = amp_engine_params(engine_of(net), &count);
    float *arrays[] = { p[1].master, p[0].m, p[2].v };
    for (int i = 0; i < 3; i++) {
        float old = arrays[i][0];
        arrays[i][0] = i ? INFINITY : NAN;
        assert_int_equal(amp_checkpoint_write(sidecar, engine_of(net), &run, 1, &error), AMP_DIVERGED);
        arrays[i][0] = old;
    }
    amp_checkpoint_free(read_back()); /* the one before is still there */
    release(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sgd_comes_back_bit_for_bit),
        cmocka_unit_test(adam_comes_back_bit_for_bit),
        cmocka_unit_test(a_half_done_batch_comes_back_bit_for_bit),
        cmocka_unit_test(behaviour_07_a_scaler_in_mid_interval_goes_on),
        cmocka_unit_test(the_hosts_counters_come_back),
        cmocka_unit_test(arrays_that_weights_files_lack_come_back),
        cmocka_unit_test(another_batch_starts_recurrent_states_anew),
        cmocka_unit_test(another_network_is_refused_untouched),
        cmocka_unit_test(a_change_of_optimizer_starts_its_moments_anew),
        cmocka_unit_test(settings_of_the_cfg_win_over_saved_ones),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(every_flipped_byte_is_refused),
        cmocka_unit_test(a_later_version_is_refused_by_its_number),
        cmocka_unit_test(content_that_makes_no_sense_is_refused),
        cmocka_unit_test(a_negative_second_moment_is_refused),
        cmocka_unit_test(an_overflow_in_a_half_done_batch_is_kept),
        cmocka_unit_test(a_missing_array_is_refused),
        cmocka_unit_test(files_that_are_no_sidecars_are_refused),
        cmocka_unit_test(a_full_disk_leaves_no_file_and_a_reason),
        cmocka_unit_test(a_state_with_nan_is_not_saved),
    };
    return cmocka_run_group_tests_name("checkpoint", tests, make_folder, remove_folder);
}
