/* What the [amp] section accepts, what it rejects and with which messages, and which setting wins.
 * test_parsers_fuzz.c shows that no file can crash it; test_cfg_check.c tests the rest of a .cfg. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "testing.h"

#include <sys/stat.h>
#include <unistd.h>

#include "documents.h"
#include "test_folder.h"

#define NET "[net]\nbatch=1\n"
#define LAYER "[convolutional]\nfilters=2\n"

static const char path[] = "x.cfg"; /* in the test's folder */

static amp_config *read_text(const char *text, const char *command_line, amp_dtype default_dtype)
{
    amp_config *config = NULL;
    amp_error error = { 0 };
    put_anew(path, text);
    if (config_of(path, CFG_PLAIN, command_line, default_dtype, &config, &error) != AMP_OK)
        fail_msg("refused: %s\n---\n%.300s", error.message, text);
    assert_non_null(config);
    return config;
}

static void same_message(const char *message, const char *rest)
{
    if (strncmp(message, path, sizeof path - 1) != 0 || strcmp(message + sizeof path - 1, rest) != 0)
        fail_msg("\n     got %s\ninstead of %s%s", message, path, rest);
}

static void refuses_bytes(const char *bytes, size_t count, const char *command_line, const char *rest)
{
    amp_config *config = (amp_config *)path; /* must be set to NULL */
    amp_error error = { 0 };
    unlink(path);
    put_bytes(path, bytes, count);
    amp_status status = config_of(path, CFG_PLAIN, command_line, AMP_BF16, &config, &error);
    if (status != AMP_BAD_CONFIG) {
        if (status == AMP_OK) amp_config_free(config);
        fail_msg("status %d instead of FILE%s", status, rest);
    }
    assert_null(config);
    assert_int_equal(error.status, AMP_BAD_CONFIG);
    same_message(error.message, rest);
    assert_int_equal(config_of(path, CFG_PLAIN, command_line, AMP_BF16, &config, NULL), AMP_BAD_CONFIG);
}

/* -- Good files -- */

TEST(defaults_are_those_of_the_design)
{
    const struct { amp_dtype dtype; int dynamic; } cases[] = { { AMP_FP16, 1 }, { AMP_BF16, 0 },
                                                               { AMP_FP32, 0 } };
    for (size_t i = 0; i < COUNT(cases); i++) {
        amp_config *c = read_text(NET "[amp]\n" LAYER, NULL, cases[i].dtype);
        assert_int_equal(c->enabled, 1);
        assert_int_equal(c->dtype, cases[i].dtype);
        assert_int_equal(c->dynamic, cases[i].dynamic);
        assert_true(c->loss_scale == 1);
        assert_true(c->init_scale == 65536 && c->growth_factor == 2 && c->backoff_factor == 0.5);
        assert_int_equal(c->growth_interval, 2000);
        assert_true(c->min_scale == 1.0 / 16384 && c->max_scale == 0x1p126);
        assert_int_equal(c->hysteresis, 1);
        assert_true(c->clip_norm == 0 && c->spike_factor == 20 && c->spike == AMP_SPIKE_LOG);
        assert_int_equal(c->adamw, 0);
        assert_int_equal(c->debug, 0);
        assert_true(c->checkpoint == AMP_CHECKPOINT_OFF && c->memory == 0 && !c->layers[0].checkpoint);
        assert_int_equal(c->layer_count, 1);
        assert_int_equal(c->layers[0].amp, 1);
        assert_string_equal(c->note, "");
        amp_config_free(c);
    }
}

TEST(every_key_is_read)
{
    static const char keys[] = "amp=1\ndtype=bf16\nloss_scale=dynamic\ninit_scale=1024\ngrowth_factor=1.5\n"
                               "backoff_factor=.25\ngrowth_interval=+7\nmin_scale=1e-3\nmax_scale=1e6\n"
                               "hysteresis=3\nclip_norm=10.5\nspike_factor=2.5\nspike=skip\nadamw=1\n"
                               "debug=1\ncheckpoint=7\nmemory=1.5GB\n";
    char in_amp[512], in_net[512];
    snprintf(in_amp, sizeof in_amp, "%sadam=1\n[amp]\n%s%s", NET, keys, LAYER);
    snprintf(in_net, sizeof in_net, "%s%sadam=1\n%s", NET, keys, LAYER);
    const char *texts[] = { in_amp, in_net };
    for (size_t i = 0; i < COUNT(texts); i++) {
        amp_config *c = read_text(texts[i], NULL, AMP_FP32);
        assert_int_equal(c->enabled, 1);
        assert_int_equal(c->dtype, AMP_BF16);
        assert_int_equal(c->dynamic, 1);
        assert_true(c->init_scale == 1024 && c->growth_factor == 1.5 && c->backoff_factor == 0.25);
        assert_int_equal(c->growth_interval, 7);
        assert_true(c->min_scale == 1e-3 && c->max_scale == 1e6 && c->clip_norm == 10.5);
        assert_true(c->spike_factor == 2.5 && c->spike == AMP_SPIKE_SKIP);
        assert_int_equal(c->hysteresis, 3);
        assert_int_equal(c->adamw, 1);
        assert_int_equal(c->debug, 1);
        assert_true(c->checkpoint == 7 && c->memory == 1.5 * 0x1p30);
        amp_config_free(c);
    }
}

TEST(every_good_form_of_a_file_is_read)
{
    static const struct { const char *name, *text; int enabled; } cases[] = {
        { "[amp] last and empty", NET LAYER "[amp]", 1 },
        { "[amp] empty in the middle", NET LAYER "[amp]\n" LAYER, 1 },
        { "no newline at the end", NET LAYER "[amp]\ndtype=bf16", 1 },
        { "CRLF", "[net]\r\nbatch=1\r\n\r\n[amp]\r\ndtype=bf16\r\n[convolutional]\r\namp=0\r\n", 1 },
        { "blanks anywhere", " [ n e t ]\n\t[amp] \n d type\t= b f16 \n\n \t\n[convolutional]\n", 1 },
        { "comments", "# [amp]\n;amp=1\n  # a=b\n" NET "[amp]\n#dtype=fp64\n;x\n" LAYER, 1 },
        { "form feeds", NET "\f\n[amp]\n" LAYER, 1 },
        { "bytes above 127 in a comment", NET "# \xc3\xa9 \xff\n[amp]\n" LAYER, 1 },
        { "[network]", "[network]\n[amp]\n[conv]\n", 1 },
        { "lines without '=' in other sections", NET "junk\n[amp]\n" LAYER "pad\n=\n", 1 },
        { "off in [amp]", NET "[amp]\namp=0\n" LAYER, 0 },
        { "static scale", NET "[amp]\nloss_scale=128\n" LAYER, 1 },
        { "extremes", NET "[amp]\ninit_scale=8.5e37\nmin_scale=1.2e-38\nmax_scale=8.5e37\nhysteresis=100\n"
                      "growth_interval=2147483647\n"
                      "growth_factor=1.0000001\nbackoff_factor=1e-300\nclip_norm=0.0\n" LAYER, 1 },
        { "nothing of AMP", NET LAYER, 0 },
        { "nothing of AMP, and odd", NET "[sam]\nfrom=-1\n\x01\n[net]\nbatch\n[convolutional]#x\namp2=7\n",
          0 },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        amp_config *c = read_text(cases[i].text, NULL, AMP_BF16);
        if (c->enabled != cases[i].enabled || c->dtype != AMP_BF16) fail_msg("%s", cases[i].name);
        amp_config_free(c);
    }
}

TEST(layers_are_counted_in_order_and_pinned_one_by_one)
{
    amp_config *c = read_text(NET "[conv]\namp=0\n[maxpool]\n[amp]\n[route]\nlayers=-1\namp=1\n[yolo]\n"
                              "amp=0\nmask=0\n", NULL, AMP_BF16);
    static const signed char expected[] = { 0, 1, 1, 0 };
    assert_int_equal(c->layer_count, 4);
    for (int i = 0; i < 4; i++) assert_int_equal(c->layers[i].amp, expected[i]);
    amp_config_free(c);
}

TEST(a_thousand_layers_fit)
{
    char text[32 + 1000 * 16] = NET;
    for (int i = 0; i < 1000; i++) strcat(text, i % 3 ? "[conv]\n" : "[conv]\namp=0\n");
    amp_config *c = read_text(text, "bf16", AMP_BF16);
    assert_int_equal(c->layer_count, 1000);
    for (int i = 0; i < 1000; i++) assert_int_equal(c->layers[i].amp, i % 3 != 0);
    amp_config_free(c);
}

/* -- Which setting wins -- */

TEST(command_line_wins_over_amp_section_wins_over_net)
{
    enum { OFF = -1 };
    static const struct { const char *net, *amp, *command_line; int dtype_or_off; } cases[] = {
        { "", NULL, NULL, OFF },
        { "dtype=fp16\n", NULL, NULL, OFF },
        { "amp=0\n", NULL, NULL, OFF },
        { "amp=1\n", NULL, NULL, AMP_FP32 }, /* the default given below */
        { "amp=1\ndtype=fp16\n", NULL, NULL, AMP_FP16 },
        { "", "", NULL, AMP_FP32 },
        { "dtype=fp16\n", "", NULL, AMP_FP16 },
        { "dtype=fp16\n", "dtype=bf16\n", NULL, AMP_BF16 },
        { "amp=1\ndtype=fp16\n", "amp=0\n", NULL, OFF },
        { "amp=0\ndtype=fp16\n", "amp=1\n", NULL, AMP_FP16 },
        { "amp=0\n", "", NULL, OFF },
        { "", NULL, "bf16", AMP_BF16 },
        { "", NULL, "off", OFF },
        { "amp=0\ndtype=fp16\n", NULL, "bf16", AMP_BF16 },
        { "amp=1\ndtype=fp16\n", NULL, "fp32", AMP_FP32 },
        { "", "dtype=fp16\n", "bf16", AMP_BF16 },
        { "", "amp=0\n", "fp16", AMP_FP16 },
        { "amp=1\n", "amp=1\ndtype=bf16\n", "off", OFF },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[256];
        snprintf(text, sizeof text, NET "%s%s%s" LAYER, cases[i].net, cases[i].amp ? "[amp]\n" : "",
                 cases[i].amp ? cases[i].amp : "");
        amp_config *c = read_text(text, cases[i].command_line, AMP_FP32);
        int got = c->enabled ? (int)c->dtype : OFF;
        if (got != cases[i].dtype_or_off)
            fail_msg("case %zu: %d instead of %d", i, got, cases[i].dtype_or_off);
        amp_config_free(c);
    }
}

TEST(keys_win_one_by_one)
{
    amp_config *c = read_text(NET "init_scale=8\ngrowth_interval=3\n[amp]\ngrowth_interval=5\n" LAYER, NULL,
                              AMP_FP16);
    assert_true(c->init_scale == 8);
    assert_int_equal(c->growth_interval, 5);
    amp_config_free(c);
}

/* Its default follows the final dtype, and wire=fp16, which holds at most 65504, makes it dynamic too. */
TEST(a_loss_scale_that_is_not_set_follows_the_final_dtype)
{
    static const struct { const char *amp, *command_line; int dynamic; double loss_scale; } cases[] = {
        { "dtype=bf16\n", "fp16", 1, 1 }, { "dtype=fp16\n", "bf16", 0, 1 },
        { "dtype=bf16\nloss_scale=512\n", "fp16", 0, 512 }, { "dtype=fp32\nwire=fp16\n", NULL, 1, 1 },
        { "dtype=fp32\nwire=fp16\nloss_scale=1\n", NULL, 0, 1 } };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[256];
        snprintf(text, sizeof text, NET "[amp]\n%s" LAYER, cases[i].amp);
        amp_config *c = read_text(text, cases[i].command_line, AMP_BF16);
        if (c->dynamic != cases[i].dynamic || c->loss_scale != cases[i].loss_scale)
            fail_msg("%s: dynamic %d, loss scale %g", text, c->dynamic, c->loss_scale);
        amp_config_free(c);
    }
}

TEST(keys_without_amp_1_are_noted)
{
    amp_config *c = read_text(NET "dtype=fp16\n" LAYER, NULL, AMP_BF16);
    same_message(c->note, ":3: [net] dtype = fp16: has no effect, since AMP is off; amp = 1 turns it on");
    amp_config_free(c);
    static const char *const silent[] = { NET "dtype=fp16\namp=0\n" LAYER, NET "dtype=fp16\namp=1\n" LAYER,
                                          NET LAYER };
    for (size_t i = 0; i < COUNT(silent); i++) {
        c = read_text(silent[i], NULL, AMP_BF16);
        assert_string_equal(c->note, "");
        amp_config_free(c);
    }
    c = read_text(NET "dtype=fp16\n" LAYER, "off", AMP_BF16);
    assert_string_equal(c->note, "");
    amp_config_free(c);
}

TEST(layers_may_ask_for_checkpoints)
{
    amp_config *c = read_text(NET "[amp]\ncheckpoint=auto\n[conv]\ncheckpoint=1\n[maxpool]\namp=0\n"
                              "checkpoint=0\n" LAYER, NULL, AMP_BF16);
    assert_true(c->checkpoint == AMP_CHECKPOINT_AUTO && c->memory == 0);
    assert_true(c->layers[0].checkpoint && !c->layers[1].checkpoint && !c->layers[2].checkpoint);
    assert_true(c->layers[0].amp && !c->layers[1].amp);
    amp_config_free(c);
    static const char twice[] = NET "[amp]\n[conv]\ncheckpoint=1\ncheckpoint=1\n" LAYER;
    refuses_bytes(twice, strlen(twice), NULL,
                  ":6: [conv] checkpoint = 1: set twice in this section, first on line 5; allowed: each "
                  "key once");
    static const char many[] = NET "[amp]\n[conv]\ncheckpoint=4\n" LAYER;
    refuses_bytes(many, strlen(many), NULL, ":5: [conv] checkpoint = 4: neither 0 nor 1; allowed: 0, 1");
    assert_true(amp_config_is_layer_key("checkpoint") && amp_config_is_layer_key("amp"));
    assert_false(amp_config_is_layer_key("memory") || amp_config_is_layer_key("debug"));
}

/* -- Errors -- */

#define ALLOWED_KEYS                                                                                  \
    "; allowed: amp, dtype, loss_scale, init_scale, growth_factor, growth_interval, backoff_factor, " \
                     "hysteresis, min_scale, max_scale, clip_norm, spike_factor, spike, adamw, " \
                     "checkpoint, memory, wire, sync_batchnorm, graphs, winograd, debug"
#define A_NUMBER_FROM_MIN "; allowed: a number from min_scale to max_scale"
#define AN_INTERVAL "; allowed: a whole number from 1 to 2147483647"
#define A_LOSS_SCALE "; allowed: dynamic, or a number from 1.2e-38 to 8.5e37"
#define A_MIN_SCALE "; allowed: a number from 1.2e-38 to init_scale"
#define A_MAX_SCALE "; allowed: a number from init_scale to 8.5e37"
#define UP_TO_100 "; allowed: a whole number from 1 to 100"
#define A_CHECKPOINT "; allowed: off, auto, or a number of segments from 1 to 1000"
#define A_MEMORY "; allowed: a number of megabytes or gigabytes, such as 900MB or 8GB"
#define A_CLIP_NORM "; allowed: 0 (off), or a number up to 3.4e38"
#define A_SECTION "; allowed: the layers of Darknet, [net] first, and [amp]"
#define EACH_ONCE "; allowed: each key once"
#define NET_FIRST "; allowed: [net] first, then the layers"
#define NET_FIRST_THEN_KEYS "; allowed: [net] first, then its keys"

/* Darknet takes the first adam= of [net]; one in another section does not count. */
TEST(adamw_needs_adam)
{
#define WITHOUT_ADAM ": it is a form of Adam, but [net] does not set adam=1; allowed: with adam=1 in " \
                     "[net], where B1, B2 and eps are set too"
    static const struct { const char *text, *rest; } cases[] = {
        { NET "[amp]\nadamw=1\n" LAYER, ":4: [amp] adamw = 1" WITHOUT_ADAM },
        { NET "adam=0\nadam=1\namp=1\nadamw=1\n" LAYER, ":6: [net] adamw = 1" WITHOUT_ADAM },
        { NET "[amp]\nadamw=1\n" LAYER "adam=1\n", ":4: [amp] adamw = 1" WITHOUT_ADAM },
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        refuses_bytes(cases[i].text, strlen(cases[i].text), NULL, cases[i].rest);
    static const char *const fine[] = { NET "[amp]\nadamw=0\n" LAYER, NET "[amp]\namp=0\nadamw=1\n" LAYER,
                                        NET "adam=2\nadam=0\n[amp]\nadamw=1\n" LAYER };
    for (size_t i = 0; i < COUNT(fine); i++) amp_config_free(read_text(fine[i], NULL, AMP_FP32));
}

TEST(bad_values_are_refused_where_they_stand)
{
    static const struct { const char *option, *complaint; } cases[] = {
        { "amp=2", "amp = 2: neither 0 nor 1; allowed: 0, 1" },
        { "amp=", "amp = : has no value; allowed: 0, 1" },
        { "amp", "amp: has no value; allowed: 0, 1" },
        { "debug=-1", "debug = -1: neither 0 nor 1; allowed: 0, 1" },
        { "dtype=fp64", "dtype = fp64: unknown dtype; allowed: fp16, bf16, fp32" },
        { "dtype = fp16 # half",
          "dtype = fp16#half: a comment needs a line of its own; allowed: fp16, bf16, fp32" },
        { "loss_scale=Dynamic", "loss_scale = Dynamic: neither dynamic nor a decimal number" A_LOSS_SCALE },
        { "loss_scale=0", "loss_scale = 0: not positive" A_LOSS_SCALE },
        { "loss_scale=1e39", "loss_scale = 1e39: out of fp32's range" A_LOSS_SCALE },
        { "init_scale=nan", "init_scale = nan: not a decimal number" A_NUMBER_FROM_MIN },
        { "init_scale=1e999", "init_scale = 1e999: out of fp32's range" A_NUMBER_FROM_MIN },
        { "init_scale=1e-999", "init_scale = 1e-999: not positive" A_NUMBER_FROM_MIN },
        { "init_scale=1,5", "init_scale = 1,5: not a decimal number" A_NUMBER_FROM_MIN },
        { "init_scale=1e-6", "init_scale = 1e-6: below min_scale, which is 6.10352e-05" A_NUMBER_FROM_MIN },
        { "min_scale=65537", "min_scale = 65537: above init_scale, which is 65536" A_MIN_SCALE },
        { "loss_scale=1e38", "loss_scale = 1e38: above 2^126: fp32 cannot hold its inverse" A_LOSS_SCALE },
        { "max_scale=65535", "max_scale = 65535: below init_scale, which is 65536" A_MAX_SCALE },
        { "hysteresis=0", "hysteresis = 0: below 1" UP_TO_100 },
        { "hysteresis=101", "hysteresis = 101: too large" UP_TO_100 },
        { "growth_factor=1", "growth_factor = 1: not above 1; allowed: a number above 1" },
        { "growth_factor=1e999", "growth_factor = 1e999: not finite; allowed: a number above 1" },
        { "backoff_factor=1",
          "backoff_factor = 1: not between 0 and 1; allowed: a number above 0 and below 1" },
        { "growth_interval=0", "growth_interval = 0: below 1" AN_INTERVAL },
        { "growth_interval=1.5", "growth_interval = 1.5: not a whole number" AN_INTERVAL },
        { "growth_interval=2147483648", "growth_interval = 2147483648: too large" AN_INTERVAL },
        { "clip_norm=-1", "clip_norm = -1: negative" A_CLIP_NORM },
        { "clip_norm=1e40", "clip_norm = 1e40: out of fp32's range" A_CLIP_NORM },
        { "spike_factor=0.5", "spike_factor = 0.5: below 1; allowed: 0 (off), or a number of at least 1" },
        { "spike=drop", "spike = drop: neither log nor skip; allowed: log, skip" },
        { "checkpoint=0", "checkpoint = 0: below 1" A_CHECKPOINT },
        { "memory=8", "memory = 8: needs a unit, MB or GB" A_MEMORY },
        { "memory=8 GB of RAM", "memory = 8GBofRAM: needs a unit, MB or GB" A_MEMORY },
        { "memory=-8GB", "memory = -8GB: below 1MB" A_MEMORY },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[256], rest[512];
        snprintf(text, sizeof text, NET LAYER "[amp]\n\n%s\n", cases[i].option);
        snprintf(rest, sizeof rest, ":7: [amp] %s", cases[i].complaint);
        refuses_bytes(text, strlen(text), NULL, rest);
        refuses_bytes(text, strlen(text), "off", rest);
        snprintf(text, sizeof text, "#\n" NET "%s\n" LAYER, cases[i].option);
        snprintf(rest, sizeof rest, ":4: [net] %s", cases[i].complaint);
        refuses_bytes(text, strlen(text), NULL, rest);
    }
}

TEST(broken_files_are_refused_where_they_break)
{
    static const struct { const char *text, *rest; } cases[] = {
        /* keys */
        { NET "[amp]\nlos_scale=1\n" LAYER,
          ":4: [amp] los_scale = 1: unknown key, did you mean loss_scale?" ALLOWED_KEYS },
        { NET "[amp]\ndtyep=fp16\n" LAYER, ":4: [amp] dtyep = fp16: unknown key, did you mean dtype?"
          ALLOWED_KEYS },
        { NET "[amp]\nfilters=3\n" LAYER, ":4: [amp] filters = 3: unknown key" ALLOWED_KEYS },
        { NET "[amp]\nfp16\n" LAYER, ":4: [amp] fp16: unknown key" ALLOWED_KEYS },
        { NET "[amp]\n=1\n" LAYER, ":4: [amp] = 1: unknown key" ALLOWED_KEYS },
        { NET "[amp]\ndebug=1\ndtype=fp16\ndebug=1\n" LAYER,
          ":6: [amp] debug = 1: set twice in this section, first on line 4" EACH_ONCE },
        { NET "amp=1\namp=1\n" LAYER, ":4: [net] amp = 1: set twice in this section, first on line 3"
          EACH_ONCE },
        { NET "init_scale=2\n[amp]\nmin_scale=4\n" LAYER,
          ":3: [net] init_scale = 2: below min_scale, which is 4" A_NUMBER_FROM_MIN },
        { NET "max_scale=8\n[amp]\ninit_scale=16\n" LAYER,
          ":5: [amp] init_scale = 16: above max_scale, which is 8" A_NUMBER_FROM_MIN },
        { NET "[amp]\nspike=skip\nspike_factor=0\n" LAYER, ":4: [amp] spike = skip: has no effect with "
          "spike_factor=0, which turns spike detection off; allowed: with spike_factor above 0" },
        /* a layer's amp= */
        { NET LAYER "amp=2\n", ":5: [convolutional] amp = 2: neither 0 nor 1; allowed: 0, 1" },
        { NET LAYER "[yolo]\namp=fp16\n", ":6: [yolo] amp = fp16: neither 0 nor 1; allowed: 0, 1" },
        { NET LAYER "amp\n", ":5: [convolutional] amp: has no value; allowed: 0, 1" },
        { NET LAYER "amp=0\namp=0\n",
          ":6: [convolutional] amp = 0: set twice in this section, first on line 5" EACH_ONCE },
        /* sections */
        { NET "[amp]\n" LAYER "[amp]\n",
          ":6: [amp]: a second [amp] section, the first is on line 3; allowed: one [amp] section" },
        { "[amp]\ndtype=fp16\n" NET LAYER,
          ":1: [amp]: cannot be the first section; put it after [net]; allowed: [net] first, then [amp]" },
        { LAYER NET, ":1: [convolutional]: the first section is not [net]" NET_FIRST },
        { NET "[AMP]\ndtype=fp16\n" LAYER, ":3: [AMP]: unknown section, did you mean [amp]?" A_SECTION },
        { NET "[amp\ndtype=fp16\n" LAYER,
          ":3: [amp: unknown section, did you mean [amp]?" A_SECTION },
        { NET, ":1: [net]: no layer follows" NET_FIRST },
        { NET "[amp]\n", ":1: [net]: no layer follows" NET_FIRST },
        /* before the first section, and without a section */
        { "batch=1\n" NET LAYER, ":1: batch = 1: comes before the first section: is this a .cfg file?"
          NET_FIRST_THEN_KEYS },
        { "\n#\namp=1\n", ":3: amp = 1: comes before the first section: is this a .cfg file?"
          NET_FIRST_THEN_KEYS },
        { "\xef\xbb\xbf[net]\n" LAYER,
          ":1: \xef\xbb\xbf[net]: the file begins with a byte order mark; allowed: UTF-8 without one" },
        { "", ": holds no section" NET_FIRST },
        { "\n\n# nothing\n", ": holds no section" NET_FIRST },
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        refuses_bytes(cases[i].text, strlen(cases[i].text), NULL, cases[i].rest);
}

TEST(nul_bytes_are_refused_with_and_without_amp)
{
    static const char with[] = NET "[amp]\n\0dtype=fp16\n", without[] = NET "[conv]\nfilters=\0 3\n";
    refuses_bytes(with, sizeof with - 1, NULL,
                  ":4: [amp]: byte 1 of the line is NUL: this is not a text file; allowed: lines of text");
    refuses_bytes(without, sizeof without - 1, NULL,
                  ":4: [conv]: byte 9 of the line is NUL: this is not a text file; allowed: lines of text");
}

TEST(long_values_and_keys_are_shortened_in_the_message)
{
    static char text[4096];
    strcpy(text, NET "[amp]\nclip_norm=");
    memset(text + strlen(text), 'z', 3000);
    strcat(text, "\n" LAYER);
    refuses_bytes(text, strlen(text), NULL,
                  ":4: [amp] clip_norm = zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz...: "
                  "not a decimal number" A_CLIP_NORM);
    text[0] = '\0';
    strcpy(text, NET "[amp]\n");
    size_t head = strlen(text);
    text[head++] = 'e';
    for (size_t i = 0; i < 400; i += 2) memcpy(text + head + i, "\xc3\xa9", 2);
    strcpy(text + head + 400, "=1\n" LAYER);
    refuses_bytes(text, strlen(text), NULL,
                  ":4: [amp] eééééééééééééééééééééé... = 1: unknown key" ALLOWED_KEYS);
}

TEST(bad_command_line_is_refused)
{
    static const struct { const char *argument, *message; } cases[] = {
        { "banana", "command line: -amp banana: unknown dtype; allowed: off, fp32, fp16, bf16" },
        { "", "command line: -amp : unknown dtype; allowed: off, fp32, fp16, bf16" },
        { "OFF", "command line: -amp OFF: unknown dtype; allowed: off, fp32, fp16, bf16" },
        { "a\nb", "command line: -amp a?b: unknown dtype; allowed: off, fp32, fp16, bf16" },
    };
    put_file(path, NET LAYER);
    for (size_t i = 0; i < COUNT(cases); i++) {
        amp_config *config;
        amp_error error = { 0 };
        assert_int_equal(config_of(path, CFG_PLAIN, cases[i].argument, AMP_BF16, &config, &error),
                         AMP_BAD_CONFIG);
        assert_null(config);
        assert_string_equal(error.message, cases[i].message);
    }
}

TEST(files_that_cannot_be_read_are_refused_with_the_cause)
{
    amp_config *config;
    amp_error error = { 0 };
    unlink(path);
    assert_int_equal(config_of(path, CFG_PLAIN, NULL, AMP_BF16, &config, &error), AMP_BAD_CONFIG);
    same_message(error.message, ": No such file or directory; allowed: a .cfg file");

    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(config_of(path, CFG_PLAIN, NULL, AMP_BF16, &config, &error), AMP_BAD_CONFIG);
    same_message(error.message, ": Is a directory; allowed: a .cfg file");
    rmdir(path);

    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(config_of(path, CFG_PLAIN, NULL, AMP_BF16, &config, &error), AMP_BAD_CONFIG);
    same_message(error.message, ": not a regular file: a .cfg is read more than once, so a pipe does not "
                                "work; allowed: a .cfg file (write the pipe's output to a file first)");
    unlink(path);

    put_file(path, NET LAYER);
    chmod(path, 0);
    if (geteuid() != 0) { /* root reads anything */
        assert_int_equal(config_of(path, CFG_PLAIN, NULL, AMP_BF16, &config, &error), AMP_BAD_CONFIG);
        same_message(error.message, ": Permission denied; allowed: a .cfg file that can be read");
    }
    unlink(path);

    char far[2048];
    memset(far, 'x', sizeof far);
    memcpy(far, "/tmp/", 5);
    strcpy(far + sizeof far - 8, "end.cfg");
    assert_int_equal(config_of(far, CFG_PLAIN, NULL, AMP_BF16, &config, &error), AMP_BAD_CONFIG);
    assert_non_null(strstr(error.message, "xend.cfg: File name too long"));
    assert_true(strncmp(error.message, "...x", 4) == 0);
}

/* ---- docs/keys.md ---- */

/* A cell without markup. */
static char *cell(char **rest)
{
    char *text = *rest, *end = strstr(text, " |"), *to = text;
    assert_non_null(end);
    *end = '\0';
    *rest = strchr(end + 1, '|') + 1;
    for (char *from = text + (*text == ' '); *from; from++) if (*from != '`') *to++ = *from;
    *to = '\0';
    return text;
}

static FILE *table;

/* Every row with the program's words and in its order, and no other rows. */
TEST(the_documentation_lists_the_keys)
{
    char line[1024];
    assert_non_null(table);
    while (fgets(line, sizeof line, table) && strcmp(line, "| key | default | meaning |\n")) {}
    assert_non_null(fgets(line, sizeof line, table)); /* |---|---|---| */
    amp_config_row row;
    for (int k = 0; amp_config_key(k, &row); k++) {
        assert_non_null(fgets(line, sizeof line, table));
        char *rest = line + 1;
        assert_string_equal(cell(&rest), row.name);
        assert_string_equal(cell(&rest), row.initial);
        assert_string_equal(cell(&rest), row.help);
        assert_true(amp_config_is_key(row.name));
    }
    assert_false(amp_config_is_key("") || amp_config_is_key("scales") || amp_config_is_key("am"));
    assert_non_null(fgets(line, sizeof line, table));
    assert_string_equal(line, "\n");
    fclose(table);
}

TEST(what_the_cfg_sets_is_told)
{
    amp_config *config = read_text(NET "loss_scale=2\n[amp]\ninit_scale = 1024\ndtype=fp16\n" LAYER, NULL,
                                   AMP_BF16);
    assert_string_equal(config->given, "dtype=fp16, loss_scale=2, init_scale=1024");
    amp_config_free(config);
}

int main(void)
{
    char name[4096]; /* __FILE__ may be relative, and the tests change to another folder */
    snprintf(name, sizeof name, "%.*s../docs/keys.md", (int)(sizeof __FILE__ - sizeof "amp/test_config.c"),
             __FILE__);
    table = fopen(name, "r");
    return run_listed_tests("config", enter_folder, leave_folder);
}
