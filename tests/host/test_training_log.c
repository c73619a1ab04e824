/* Rows of a training's log: what is written is read back bit for bit, and nothing else is read. */
#include <float.h>
#include <math.h>
#include "testing.h"

#include "host/training/training_log.h"
#include "tensor/half.h"

static const float floats[] = { 0, -0.0f, 1, 0.1f, -1.5f, 65536, 16777217, 3.14159274f, FLT_MAX, -FLT_MAX,
                                FLT_MIN, 0x1p-126f, 0x1p126f };
/* Subnormal, inf. */
static const uint32_t float_bits[] = { 0x00000001u, 0x807fffffu, 0x00400000u, 0x7f800000u, 0xff800000u };
static const double doubles[] = { 0, 1, 0.1, -2.5, 1.0 / 3, DBL_MAX, DBL_MIN, -DBL_MAX, 1e-300,
                                  123456789.123456789 };

static int same_float(float a, float b) { return amp_float_bits(a) == amp_float_bits(b); }
static int same_double(double a, double b) { return !memcmp(&a, &b, sizeof a); }

static void assert_round_trip(const amp_log_row *row)
{
    char text[AMP_LOG_TEXT], again[AMP_LOG_TEXT];
    amp_log_row read;
    amp_error error;
    assert_ptr_equal(amp_log_row_text(row, text), text);
    if (amp_log_row_read(text, &read, &error) != AMP_OK) fail_msg("%s", error.message);
    assert_int_equal(read.iteration, row->iteration);
    assert_true(same_float(read.loss, row->loss) && same_float(read.avg_loss, row->avg_loss));
    assert_true(same_float(read.learning_rate, row->learning_rate) && same_float(read.scale, row->scale));
    assert_int_equal(read.found_inf, row->found_inf);
    assert_true(same_double(read.grad_norm, row->grad_norm));
    assert_true(same_double(read.images_per_second, row->images_per_second)
                && same_double(read.load_seconds, row->load_seconds));
    assert_true(same_double(read.train_seconds, row->train_seconds)
                && same_double(read.peak_memory_mb, row->peak_memory_mb));
    assert_true(same_double(read.time, row->time));
    assert_int_equal(read.wire, row->wire);
    assert_string_equal(amp_log_row_text(&read, again), text);
}

/* Floats are f or -f, and the others x or -x. */
static amp_log_row row_of(long iteration, float f, double x)
{
    return (amp_log_row){ .iteration = iteration, .loss = f, .avg_loss = -f, .learning_rate = f, .scale = f,
        .found_inf = (int)(iteration & 1), .grad_norm = x, .images_per_second = x, .load_seconds = x,
        .train_seconds = -x, .peak_memory_mb = x, .time = x };
}

TEST(every_number_is_read_back_exactly)
{
    size_t count = sizeof floats / sizeof *floats, bits = sizeof float_bits / sizeof *float_bits,
        d = sizeof doubles / sizeof *doubles;
    for (size_t i = 0; i < count + bits; i++) {
        float f = i < count ? floats[i] : amp_bits_float(float_bits[i - count]);
        amp_log_row row = row_of((long)i, f, doubles[i % d]);
        assert_round_trip(&row);
    }
    srand(1);
    for (int i = 0; i < 20000; i++) {
        float f = amp_bits_float((uint32_t)rand() << 1 ^ (uint32_t)rand());
        double x = (rand() + rand() / 2147483647.0) / (1 + rand() % 1000);
        if (!amp_is_finite(f)) continue;
        amp_log_row row = row_of(rand(), f, x);
        assert_round_trip(&row);
    }
}

TEST(the_longest_row_fits)
{
    float f = -1.17549435e-38f;
    double x = -2.2250738585072014e-308;
    char text[AMP_LOG_TEXT];
    amp_log_row row = row_of(9223372036854775807L, f, x);
    row.avg_loss = f;
    row.train_seconds = x;
    assert_true(strlen(amp_log_row_text(&row, text)) < AMP_LOG_TEXT - 1);
    assert_round_trip(&row);
}

TEST(nan_and_inf_are_words_and_what_is_unknown_is_empty)
{
    char text[AMP_LOG_TEXT];
    amp_error error;
    amp_log_row read, row = { .iteration = 7, .loss = NAN, .avg_loss = -NAN, .learning_rate = INFINITY,
        .scale = -INFINITY, .found_inf = 5, .grad_norm = NAN, .images_per_second = 372.5, .load_seconds = NAN,
            .train_seconds = INFINITY,
        .peak_memory_mb = 72, .time = 1795352400.125, .wire = AMP_BF16,
        .spike = AMP_LOG_SPIKE };
    assert_string_equal(amp_log_row_text(&row, text),
                        "7,nan,nan,inf,-inf,1,,372.5,nan,inf,72,1795352400.125,bf16,1");
    assert_int_equal(amp_log_row_read(text, &read, &error), AMP_OK);
    assert_true(read.loss != read.loss && read.avg_loss != read.avg_loss && read.grad_norm != read.grad_norm);
    assert_true(read.load_seconds != read.load_seconds && read.found_inf == 1);
    row.grad_norm = INFINITY;
    assert_string_equal(amp_log_row_text(&row, text),
                        "7,nan,nan,inf,-inf,1,inf,372.5,nan,inf,72,1795352400.125,bf16,1");
    row.images_per_second = NAN;
    row.spike = AMP_LOG_DROPPED;
    assert_string_equal(amp_log_row_text(&row, text),
                        "7,nan,nan,inf,-inf,1,inf,,nan,inf,72,1795352400.125,bf16,skipped");
    assert_int_equal(amp_log_row_read(text, &read, &error), AMP_OK);
    assert_true(read.images_per_second != read.images_per_second && read.spike == AMP_LOG_DROPPED);
}

TEST(numbers_are_short)
{
    char text[AMP_LOG_TEXT];
    amp_log_row row = { .iteration = 100, .loss = 0.1f, .avg_loss = 1, .learning_rate = 0.001f,
        .scale = 65536, .grad_norm = 0.25, .images_per_second = 100.5, .load_seconds = 0.001,
        .train_seconds = 2, .peak_memory_mb = 71.9, .time = 1795352400.5, .wire = -1 };
    assert_string_equal(amp_log_row_text(&row, text),
                        "100,0.1,1,0.001,65536,0,0.25,100.5,0.001,2,71.9,1795352400.5,,0");
}

TEST(other_lines_are_refused)
{
    static const char *const bad[] = { "", ",", AMP_LOG_COLUMNS, "1,2,3,4,5,0,6,7,8,9,10",
        "1,2,3,4,5,0,6,7,8,9,10,11,12,0", "1,2,3,4,5,0,6,7,8,9,10,11,fp32,0,",
        "1,2,3,4,5,0,6,7,8,9,10,11, fp32,0",
        "1,2,3,4,5,0,6,7,8,9,10,,,0", "-1,2,3,4,5,0,6,7,8,9,10,11,,0",
        "1.5,2,3,4,5,0,6,7,8,9,10,11,,0", " 1,2,3,4,5,0,6,7,8,9,10,11,,0", "+1,2,3,4,5,0,6,7,8,9,10,11,,0",
        "1, 2,3,4,5,0,6,7,8,9,10,11,,0", "1,2x,3,4,5,0,6,7,8,9,10,11,,0", "1,0x10,3,4,5,0,6,7,8,9,10,11,,0",
        "1,nan(7),3,4,5,0,6,7,8,9,10,11,,0", "1,infinity,3,4,5,0,6,7,8,9,10,11,,0",
        "1,INF,3,4,5,0,6,7,8,9,10,11,,0",
        "1,,3,4,5,0,6,7,8,9,10,11,,0", "1,2,3,4,5,2,6,7,8,9,10,11,,0", "1,2,3,4,5,01,6,7,8,9,10,11,,0",
        "1,2,3,4,5,,6,7,8,9,10,11,,0", "1,1e39,3,4,5,0,6,7,8,9,10,11,,0", "1,2,3,4,5,0,1e309,7,8,9,10,11,,0",
        "1,2,3,4,5,0,nan,7,8,9,10,11,,0", "1,2,3,4,5,0,6,7,8,9,10,11 ,,0", "1,2,3,4,5,0,6,7,8,9,10,11\r,,0",
        "99999999999999999999,2,3,4,5,0,6,7,8,9,10,11,,0", "1,1e,3,4,5,0,6,7,8,9,10,11,,0",
        "1,1-1,3,4,5,0,6,7,8,9,10,11,,0", "1,--1,3,4,5,0,6,7,8,9,10,11,,0", "1,2,3,4,5,0,6,7,8,9,10,11,",
        "1,2,3,4,5,0,6,7,8,9,10,11,,2",
        "1,2,3,4,5,0,6,7,8,9,10,11,,-1", "1,2,3,4,5,0,6,7,8,9,10,11,,skip", "1;2;3;4;5;0;6;7;8;9;10;11" };
    char longer[4 * AMP_LOG_TEXT];
    amp_log_row row = { .iteration = -5 };
    amp_error error;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (amp_log_row_read(bad[i], &row, &error) != AMP_BAD_CONFIG) fail_msg("'%s' was read", bad[i]);
    memset(longer, '1', sizeof longer);
    longer[sizeof longer - 1] = 0;
    assert_int_equal(amp_log_row_read(longer, &row, &error), AMP_BAD_CONFIG);
    snprintf(longer, sizeof longer, "1,2,3,4,5,0,6,7,8,9,10,%0300d,,0", 1);
    assert_int_equal(amp_log_row_read(longer, &row, &error), AMP_BAD_CONFIG);
    assert_int_equal(row.iteration, -5); /* nothing was half read */
    assert_int_equal(amp_log_row_read("1,2,3,4,5,0,6,7,8,9,10,11,,", &row, &error), AMP_OK);
    assert_int_equal(row.iteration, 1);
    assert_int_equal(row.wire, -1);
    assert_int_equal(row.spike, AMP_LOG_NO_RULE);
}

int main(void) { return run_listed_tests("tests", NULL, NULL); }
