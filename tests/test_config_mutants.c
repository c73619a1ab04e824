/* No .cfg at all crashes or leaks: seeded mutants of good files, each read or refused in one printable line.
 * Worth most in the asan preset. AMP_FUZZ_SEED=N starts at the mutant N that a failure names. */
#define _POSIX_C_SOURCE 200809L
#include "testing.h"

#include <float.h>
#include <unistd.h>

#include "../plugin/amp/config.h"

#define NET "[net]\nbatch=1\n"
#define LAYER "[convolutional]\nfilters=2\n"

static void write_bytes(const char *path, const char *bytes, size_t count)
{
    unlink(path); /* overwriting in place would wait for the disk each time */
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static uint64_t random_state;

static uint32_t random_number(uint32_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % below;
}

/* One edit of text[0..size), which has room for limit bytes. */
static size_t mutate(char *text, size_t size, size_t limit)
{
    static const char *const words[] = {
        "[amp]", "[net]", "[", "]", "=", "\n", "\r\n", "#", "amp=", "dtype=fp16\n", "loss_scale=",
        "dynamic", "nan",
        "-inf", "0x1p9", "1e400", "-1", "99999999999", "growth_interval=", "min_scale=1e30\n", "\xef\xbb\xbf",
        "amp=0\n", "[amp]\n", "  ",
    };
    size_t at = random_number((uint32_t)size + 1), count;
    switch (random_number(5)) {
    case 0: /* a byte of any value */
        if (at < size) text[at] = (char)random_number(random_number(4) ? 128 : 256);
        return size;
    case 1: /* cut */
        count = random_number(40);
        if (at + count > size) count = size - at;
        memmove(text + at, text + at + count, size - at - count);
        return size - count;
    case 2: /* a word */
    case 3: {
        const char *word = words[random_number(COUNT(words))];
        count = strlen(word);
        if (size + count > limit) return size;
        memmove(text + at + count, text + at, size - at);
        memcpy(text + at, word, count);
        return size + count;
    }
    default: /* repeat a stretch, now and then very often */
        count = random_number(60) + 1;
        if (at + count > size) return size;
        for (uint32_t n = random_number(50) ? 1 : random_number(2000); n && size + count <= limit; n--) {
            memmove(text + at + count, text + at, size - at);
            size += count;
        }
        return size;
    }
}

static void check_config(const amp_config *c)
{
    assert_true(c->enabled == 0 || c->enabled == 1);
    assert_true(c->dtype == AMP_FP32 || c->dtype == AMP_FP16 || c->dtype == AMP_BF16);
    assert_true(c->loss_scale > 0 && c->loss_scale <= FLT_MAX);
    assert_true(c->min_scale >= FLT_MIN && c->init_scale >= c->min_scale);
    assert_true(c->max_scale >= c->init_scale && c->max_scale <= 0x1p126);
    assert_in_range(c->hysteresis, 1, 100);
    assert_true(c->growth_factor > 1 && c->growth_factor <= DBL_MAX);
    assert_true(c->backoff_factor > 0 && c->backoff_factor < 1);
    assert_true(c->growth_interval >= 1);
    assert_true(c->clip_norm >= 0 && c->clip_norm <= FLT_MAX);
    assert_true(c->debug == 0 || c->debug == 1);
    assert_true(c->layer_count >= 1);
    for (int i = 0; i < c->layer_count; i++) assert_true(c->layers[i].amp == 0 || c->layers[i].amp == 1);
    assert_null(strchr(c->note, '\n'));
}

/* A crash leaves its file behind. */
TEST(mutants_are_read_or_refused_in_one_line)
{
    char directory[] = "/tmp/amp_test_config_mutants_XXXXXX", path[64];
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/x.cfg", directory);
    static const char *const seeds[] = {
        NET "amp=1\ndtype=fp16\nloss_scale=dynamic\n" LAYER "amp=0\n[maxpool]\nsize=2\n[yolo]\nmask=0,1,2\n",
        NET LAYER "[amp]\namp=1\ndtype=bf16\nloss_scale=128\ninit_scale=1024\ngrowth_factor=1.5\n"
            "backoff_factor=.25\ngrowth_interval=7\nmin_scale=1e-3\nmax_scale=1e6\nhysteresis=3\n"
            "clip_norm=10.5\ndebug=1\n[softmax]\n",
        "# comment\r\n[network]\r\nwidth = 4 16\r\n[amp]\r\n; none\r\n[conv]\r\nactivation=leaky\r\n",
    };
    static const char *const arguments[] = { NULL, NULL, NULL, "off", "fp16", "bf17" };
    static char text[1 << 17];
    const char *seed = getenv("AMP_FUZZ_SEED");
    uint64_t run = seed ? strtoull(seed, NULL, 10) : 1;
    long accepted = 0, refused = 0;
    for (uint64_t end = run + 20000; run < end; run++) {
        random_state = run * 0x9e3779b97f4a7c15u;
        const char *good = seeds[random_number(COUNT(seeds))];
        const char *argument = arguments[random_number(COUNT(arguments))];
        size_t size = strlen(good);
        memcpy(text, good, size);
        for (uint32_t edits = random_number(6); edits; edits--) size = mutate(text, size, sizeof text);
        write_bytes(path, text, size);

        amp_config *config = NULL;
        amp_error error = { 0 };
        amp_status status = amp_config_read(path, argument, AMP_BF16, &config, &error);
        if (status == AMP_OK) {
            check_config(config);
            amp_config_free(config);
            accepted++;
            continue;
        }
        refused++;
        int named = strncmp(error.message, path, strlen(path)) == 0
            || strncmp(error.message, "command line", 12) == 0;
        int printable = 1;
        for (const char *c = error.message; *c; c++) printable &= (unsigned char)*c >= 0x20 && *c != 0x7f;
        if (status != AMP_BAD_CONFIG || config || !named || !printable)
            fail_msg("AMP_FUZZ_SEED=%llu: status %d, %s", (unsigned long long)run, status, error.message);
    }
    unlink(path);
    rmdir(directory);
    print_message("%ld mutants read, %ld refused\n", accepted, refused);
    assert_true(accepted > 100 && refused > 100);
}

int main(void) { return run_listed_tests("config mutants", NULL, NULL); }
