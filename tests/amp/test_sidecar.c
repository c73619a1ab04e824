/* What a sidecar saves is restored bit for bit; a sidecar of another network is rejected with a reason before
 * anything is changed. That a training continues with it to the same bits is test_resume.c's. */
#define _DEFAULT_SOURCE /* mkstemps */
#include "testing.h"

#include "sidecar_networks.h"
#include "memory_network.h"

#define SCALED "growth_interval=5\ninit_scale=1024\n"

/* ---- round trips ---- */

/* Arrays go to and from the file in parts. */
TEST(an_array_of_several_parts_comes_back_bit_for_bit)
{
    static const char wide[] = "[net]\nbatch=2\nsubdivisions=1\ninputs=700\nlearning_rate=0.001\n"
        "momentum=0.9\nmax_batches=100\n[connected]\noutput=800\nactivation=leaky\n[cost]\ntype=sse\n";
    network *a = parse(wide, "fp32"), *b = parse(wide, "fp32");
    train_step(a, 1);
    save(a, 0);
    train_step(b, 77);
    resume(b, NULL);
    assert_same_state(a, b);
    release(a);
    release(b);
}

/* 3 of 5 clean steps are saved: the scale grows after 2 more, not after 5. */
TEST(behaviour_07_a_scaler_in_mid_interval_goes_on)
{
    network *a = make(SCALED, "fp16"), *b = make(SCALED, "fp16");
    for (int i = 0; i < 3; i++) train_step(a, (unsigned)i);
    assert_int_equal(engine_of(a)->scaler.growth_tracker, 3);
    save(a, 0);
    resume(b, NULL);
    assert_int_equal(engine_of(b)->scaler.growth_tracker, 3);
    for (int i = 3; i < 5; i++) {
        assert_float_equal(engine_of(b)->scaler.scale, 1024, 0);
        train_step(b, (unsigned)i);
    }
    assert_float_equal(engine_of(b)->scaler.scale, 2048, 0);
    release(a);
    release(b);
}

TEST(the_hosts_counters_come_back)
{
    network *net = make("", "fp32");
    save(net, 0);
    amp_sidecar *c = read_back();
    amp_run_state run = run_of(net, 0);
    const amp_run_state *r = amp_sidecar_run(c);
    uint64_t sum;
    assert_int_equal(amp_file_checksum(weights, &sum, NULL), AMP_OK);
    assert_true(c->weights == sum);
    assert_true(r->seen == run.seen && r->t == run.t && r->steps == 7 && r->skipped == 2 && r->width == 16
                && r->height == 16);
    assert_true(r->batch == run.batch && r->subdivisions == 2 && r->window == 0 && r->seeded == 1
                && r->seed == 4294967295u);
    assert_true(r->next_job == 0x123456789abcdefu && r->looped == 1 && r->loop_count == 3
                && r->average_loss == 0.125f);
    assert_memory_equal(r->random, run.random, sizeof run.random);
    amp_sidecar_free(c);
    release(net);
}

/* A recurrent layer's state has a row per image of the batch: here 5 numbers were saved, and 6 are wanted. */
TEST(another_batch_starts_recurrent_states_anew)
{
    memory_network *n = memory_network_make(0, 1);
    amp_error error;
    char note[256];
    amp_statistics *carried = &n->engine->parameters.statistics[2];
    carried->count = 5;
    assert_int_equal(amp_sidecar_write(sidecar, n->engine, &(amp_run_state){ 0 }, 1, &error), AMP_OK);
    carried->count = 6;
    n->statistics[2][0] = 99;
    amp_sidecar *c = read_back();
    assert_int_equal(amp_sidecar_apply(c, n->engine, note, &error), AMP_OK);
    assert_non_null(strstr(note, "recurrent layers start from an empty state"));
    assert_true(n->statistics[2][0] == 99);
    amp_sidecar_free(c);
    memory_network_free(n);
}

/* Asserts the state of the memory network after a resume as this rank, from the sidecar's bytes; NULL: all
 * 0. */
static void resumes_with(const unsigned char *bytes, size_t size, int rank, int ranks, const float *state,
                         const char *told)
{
    memory_network *n = memory_network_make(0, 2);
    amp_error error;
    amp_sidecar *c;
    char note[256];
    const float nothing[6] = { 0 };
    n->statistics[2][0] = 99;
    if (parse_copy(bytes, size, "x.amp", &c, &error) != AMP_OK) fail_msg("%s", error.message);
    assert_int_equal(amp_sidecar_apply(c, n->engine, note, &error), AMP_OK);
    assert_int_equal(amp_sidecar_fit_rank(c, n->engine, rank, ranks, note, &error), AMP_OK);
    assert_string_equal(note, told);
    assert_memory_equal(n->statistics[2], state ? state : nothing, sizeof nothing);
    amp_sidecar_free(c);
    memory_network_free(n);
}

static void tells_of(const unsigned char *bytes, size_t size, amp_dtype wire, int sync_batchnorm,
                     const char *told)
{
    amp_sidecar *c;
    amp_error error;
    char note[256] = "";
    if (parse_copy(bytes, size, "x.amp", &c, &error) != AMP_OK) fail_msg("%s", error.message);
    amp_sidecar_fit_ranks(c, wire, sync_batchnorm, note);
    assert_string_equal(note, told);
    amp_sidecar_free(c);
}

TEST(each_rank_goes_on_with_its_own_states)
{
    enum { RANKS = 3, STATE = 6 };
    static const char anew[] = "saved by %d ranks, now %d: recurrent layers start from an empty state";
    memory_network *n = memory_network_make(0, 1);
    amp_error error;
    char note[256];
    float states[RANKS][STATE];
    size_t size;
    for (int k = 0; k < RANKS * STATE; k++) states[k / STATE][k % STATE] = (float)k + .5f;
    assert_int_equal(amp_sidecar_state_count(n->engine), STATE);
    memcpy(n->statistics[2], states[0], sizeof states[0]);
    memset(states[0], 0, sizeof states[0]);
    assert_int_equal(amp_sidecar_states(n->engine, states[0], &error), AMP_OK);
    assert_memory_equal(n->statistics[2], states[0], sizeof states[0]);
    amp_run_state run = { .ranks = RANKS, .wire = AMP_BF16, .sync_batchnorm = 1, .states = states[0] };
    assert_int_equal(amp_sidecar_write(sidecar, n->engine, &run, 1, &error), AMP_OK);
    unsigned char *bytes = file_bytes(sidecar, &size),
        *record = sidecar_record(bytes, size, AMP_TAG_RANKS, 0);
    assert_int_equal(amp_fetch_u32(bytes + 8), 4);
    assert_int_equal(amp_fetch_u64(record - 8), 12 + 2 * STATE * 4);
    for (int rank = 0; rank < RANKS; rank++) resumes_with(bytes, size, rank, RANKS, states[rank], "");
    for (int ranks = 1; ranks < 5; ranks++) {
        snprintf(note, sizeof note, anew, RANKS, ranks);
        if (ranks != RANKS) resumes_with(bytes, size, ranks - 1, ranks, NULL, note);
    }

    tells_of(bytes, size, AMP_BF16, 1, "");
    tells_of(bytes, size, AMP_FP32, 1,
             "gradients were exchanged in bf16 and are exchanged in fp32 now (wire=)");
    tells_of(bytes, size, AMP_BF16, 0, "sync_batchnorm was 1 and is 0 now");

    /* and invalid values */
    const struct { size_t at; uint32_t value; } damage[] = { { 0, 1 }, { 0, 6 }, { 0, UINT32_MAX },
                                                             { 4, 3 }, { 8, 2 },
                                                             { 12 + 4 * STATE, 0x7fc00000 } };
    for (size_t k = 0; k < sizeof damage / sizeof *damage; k++) {
        amp_sidecar *c;
        uint32_t sound = amp_fetch_u32(record + damage[k].at);
        amp_store_u32(record + damage[k].at, damage[k].value);
        seal_sidecar(bytes, size);
        assert_int_equal(parse_copy(bytes, size, "x.amp", &c, &error), AMP_BAD_SIDECAR);
        amp_store_u32(record + damage[k].at, sound);
    }
    free(bytes);

    run = (amp_run_state){ .ranks = 1, .states = states[0] };
    assert_int_equal(amp_sidecar_write(sidecar, n->engine, &run, 1, &error), AMP_OK);
    bytes = file_bytes(sidecar, &size);
    assert_int_equal(amp_fetch_u32(bytes + 8), 4);
    resumes_with(bytes, size, 0, 1, states[0], "");
    tells_of(bytes, size, AMP_BF16, 1, "");
    snprintf(note, sizeof note, anew, 1, 2);
    resumes_with(bytes, size, 1, 2, NULL, note);
    free(bytes);
    memory_network_free(n);
}

/* ---- other networks' sidecars ---- */

TEST(another_network_is_refused_untouched)
{
    network *net = make("", "fp32");
    train_step(net, 1);
    save(net, 0);
    amp_sidecar *c = read_back();
    static const struct { const char *text, *reason; } others[] = {
        { NET("") CONV(8, "") CONV(8, "") "[maxpool]\nsize=2\nstride=1\n" TAIL,
          "layer 2 is [shortcut] in the file and [maxpool] in this network" },
        { NET("") CONV(8, "") CONV(8, "") "[shortcut]\nfrom=-2\nactivation=linear\n"
          "[dropout]\nprobability=.5\n[route]\nlayers=-1,0\n" TAIL, /* a name of the same length */
          "layer 3 is [maxpool] in the file and [dropout] in this network" },
        { NET("") CONV(8, "") CONV(8, "")
          "[shortcut]\nfrom=-2\nactivation=linear\n[maxpool]\nsize=2\nstride=1\n[route]\nlayers=-1,0\n",
          "the file has 7 layers, but this network has 5" },
        { NET("") CONV(8, "") CONV(4, "")
          "[shortcut]\nfrom=-2\nactivation=linear\n[maxpool]\nsize=2\nstride=1\n[route]\nlayers=-1,0\n" TAIL,
          "layer 1 [convolutional] has 576 weights in the file and 288 in this network" },
        { NET("") "[convolutional]\nfilters=8\nsize=3\nstride=1\npad=1\nactivation=leaky\n" CONV(8, "")
          "[shortcut]\nfrom=-2\nactivation=linear\n[maxpool]\nsize=2\nstride=1\n[route]\nlayers=-1,0\n" TAIL,
          "has scales of layer 0 where" },
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        network *other = parse(others[i].text, "fp32");
        amp_error error;
        char note[256];
        kept_state before = whole_state(other);
        assert_int_equal(amp_sidecar_apply(c, engine_of(other), note, &error), AMP_BAD_SIDECAR);
        if (!strstr(error.message, others[i].reason) || !strstr(error.message, "remove the sidecar")
            || !strstr(error.message, sidecar) || !is_one_line(error.message))
            fail_msg("\"%s\" does not say \"%s\"", error.message, others[i].reason);
        assert_true(same_states(whole_state(other), before));
        release(other);
    }
    amp_sidecar_free(c);
    release(net);
}

/* ---- changed settings ---- */

/* Adam and AdamW use the same moments. */
TEST(a_change_of_optimizer_keeps_moments_that_have_the_same_meaning)
{
    static const char sgd[] = "", adam[] = "adam=1\n", adamw[] = "adam=1\namp=1\nadamw=1\n";
    static const struct { const char *saved, *keys, *note; int kept; } table[] = {
        { sgd, adam, "optimizer was SGD and is Adam now", 0 },
        { adam, sgd, "optimizer was Adam and is SGD now", 0 },
        { adam, adamw, "the optimizer was Adam and is AdamW now: its moments are kept", 1 },
        { adamw, adam, "the optimizer was AdamW and is Adam now: its moments are kept", 1 } };
    for (size_t k = 0; k < COUNT(table); k++) {
        network *a = make(table[k].saved, "fp32"), *b = make(table[k].keys, "fp32");
        char note[256];
        train_step(a, 1);
        train_step(b, 2);
        save(a, 0);
        resume(b, note);
        if (!strstr(note, table[k].note)) fail_msg("\"%s\" does not say \"%s\"", note, table[k].note);
        amp_parameters x = engine_of(a)->parameters, y = engine_of(b)->parameters;
        for (int i = 0; i < y.param_count; i++) {
            const amp_param *p = &x.params[i], *q = &y.params[i];
            assert_memory_equal(p->master, q->master, p->count * sizeof(float));
            for (size_t e = 0; e < p->count; e++) {
                assert_true(q->momentum[e] == 0);
                if (y.adam && (q->m[e] != (table[k].kept ? p->m[e] : 0)
                               || q->v[e] != (table[k].kept ? p->v[e] : 0)))
                    fail_msg("%s: other moments", table[k].note);
            }
        }
        release(a);
        release(b);
    }
}

TEST(settings_of_the_cfg_win_over_saved_ones)
{
    static const struct { const char *saved, *keys, *note; float scale; int tracker; } table[] = {
        { SCALED, "growth_interval=9\ngrowth_factor=4\nbackoff_factor=0.25\ninit_scale=32\n", "", 1024, 3 },
        { SCALED, "growth_interval=2\n", "", 1024, 1 }, /* overdue: it grows at the next clean step */
        { SCALED, "loss_scale=128\n", "was dynamic and is static now", 128, 0 },
        { "loss_scale=128\n", SCALED, "was static and is dynamic now", 1024, 0 },
        { SCALED, "max_scale=512\ninit_scale=64\nhysteresis=3\n",
          "1024 is not between min_scale and max_scale: the scale is 512 now", 512, 3 },
        { SCALED, "min_scale=4096\ninit_scale=65536\n",
          "1024 is not between min_scale and max_scale: the scale is 4096 now", 4096, 3 } };
    for (size_t k = 0; k < COUNT(table); k++) {
        network *a = make(table[k].saved, "fp16"), *b = make(table[k].keys, "fp16");
        char note[256];
        amp_scaler set = engine_of(b)->scaler;
        for (int i = 0; i < 3; i++) train_step(a, (unsigned)i);
        save(a, 0);
        resume(b, note);
        amp_scaler s = engine_of(b)->scaler;
        if (!strstr(note, table[k].note) || !*note != !*table[k].note)
            fail_msg("\"%s\" instead of \"%s\"", note, table[k].note);
        if (s.scale != table[k].scale || s.growth_tracker != table[k].tracker || s.steps != 3)
            fail_msg("%s: scale %g, tracker %d", table[k].keys, (double)s.scale, s.growth_tracker);
        assert_int_equal(s.hysteresis_tracker, set.hysteresis);
        s.scale = set.scale;
        s.growth_tracker = set.growth_tracker;
        s.hysteresis_tracker = set.hysteresis_tracker;
        s.steps = set.steps;
        assert_memory_equal(&s, &set, sizeof s); /* all others are the .cfg's */
        release(a);
        release(b);
    }
}

int main(void) { return run_listed_tests("sidecar", enter_folder, leave_folder); }
