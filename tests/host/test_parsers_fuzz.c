/* The readers of what users and programs write, on spoiled text: rows of a log, labels, .data
 * files, the [amp] section, .cfg files to be copied, command lines. Whatever comes, they take what is right
 * or say in one line what is not. */
#include <float.h>
#include <math.h>
#include "testing.h"
#include <unistd.h>

#include "commands/arguments.h"
#include "amp/cfg_text.h"
#include "commands/cfg_copy.h"
#include "host/data/data_files.h"
#include "host/data/label_file.h"
#include "host/training/training_log.h"
#include "documents.h"
#include "random_numbers.h"
#include "tensor/half.h"
#include "test_folder.h"

enum { ROOM = 2048, ROUNDS = 6000, FILE_ROUNDS = 900 };

/* Pieces that readers stumble over. The last ones only where a file may hold them. */
static const char *const pieces[] = { "", "-", "0", "1e999", "-1e-999", "nan", "inf", "-inf", "nan(1)",
    "0x10", "1e", "+1", ",", ",,", "=", " ", "\t", "\f", "\v", "99999999999999999999", "-9223372036854775808",
    "2147483648", "[", "[net]", "[ n e t ]", "#", ";", "batch", "batch=7", "%s%n",
    "\x7f", "\xff\xfe", "classes=2", "4.9e-324", "1.7976931348623157e308", "\r", "\n", "\n\n", "\n[net]\n" };
enum { PIECES = sizeof pieces / sizeof *pieces, IN_A_LINE = PIECES - 4 };

/* One to four changes: a piece put in or over something, a part left out or repeated, a byte changed.
 * Returns the new length. */
static size_t spoil(const char *seed, char text[ROOM], int is_file)
{
    size_t length = strlen(seed);
    memcpy(text, seed, length + 1);
    for (size_t change = 1 + below(4); change; change--) {
        const char *piece = pieces[below(is_file ? PIECES : IN_A_LINE)];
        size_t at = below(length + 1), left = length - at, cut = left ? below(left < 12 ? left + 1 : 12) : 0,
            put = strlen(piece);
        switch (below(5)) {
        case 0: cut = 0; break;
        case 1: put = 0; break;
        case 2: piece = seed; put = below(strlen(seed) + 1); cut = 0; break;
        case 3:
            if (length) text[below(length)] ^= (char)(1 << below(7));
            put = cut = 0;
            break;
        }
        if (length - cut + put >= ROOM) continue;
        memmove(text + at + put, text + at + cut, left - cut);
        memcpy(text + at, piece, put);
        length += put - cut;
        text[length] = 0;
    }
    for (size_t i = 0; !is_file && i < length; i++) if (text[i] == '\n' || !text[i]) text[i] = '?';
    if (is_file && length && !below(8)) text[below(length)] = 0;
    return length;
}

static void assert_one_line(amp_status status, const amp_error *error)
{
    assert_int_equal(error->status, status);
    if (!error->message[0] || strchr(error->message, '\n')) fail_msg("no line: '%s'", error->message);
}

static const char path[] = "spoiled"; /* in the test's folder */

static void write_file(const char *text, size_t length)
{
    unlink(path); /* overwriting in place would wait for the disk each time */
    put_bytes(path, text, length);
}

TEST(rows_of_a_log)
{
    static const char *const seeds[] = {
        "17,1.5,2.25,0.001,65536,0,3.5,12.25,0.125,0.5,100,1795352400.125,bf16,1",
        "1,nan,inf,-inf,1,1,,0,0,0,1e300,0,," };
    char text[ROOM], written[AMP_LOG_TEXT], again[AMP_LOG_TEXT];
    int taken = 0;
    for (int i = 0; i < ROUNDS; i++) {
        amp_log_row row, read;
        amp_error error = { 0 };
        spoil(seeds[i & 1], text, 0);
        amp_status status = amp_log_row_read(text, &row, &error);
        if (status != AMP_OK) {
            assert_one_line(status, &error);
            continue;
        }
        taken++;
        amp_log_row_text(&row, written);
        if (amp_log_row_read(written, &read, &error) != AMP_OK)
            fail_msg("'%s' became '%s': %s", text, written, error.message);
        assert_string_equal(amp_log_row_text(&read, again), written);
    }
    assert_in_range(taken, ROUNDS / 50, ROUNDS - ROUNDS / 50);
}

static amp_status check_label(void *count, const char *file, unsigned long line, const amp_label *l,
                              int outside, amp_error *error)
{
    (void)file, (void)error;
    assert_true(line > 0 && l->class_id >= 0 && l->class_id < 3);
    const float box[] = { l->x, l->y, l->w, l->h };
    for (int i = 0; i < 4; i++) assert_true(amp_is_finite(box[i]) && box[i] >= -2 && box[i] <= 2);
    if (!outside) assert_true(l->w > 0 && l->h > 0 && (l->x != 0 || l->y != 0));
    ++*(int *)count;
    return AMP_OK;
}

TEST(labels)
{
    static const char seed[] = "0 0.5 0.5 0.25 0.25\n2 .1 .9 1e-1 0.2\n\n1 0 0 0 0\n";
    char text[ROOM];
    int seen = 0, refused = 0;
    for (int i = 0; i < FILE_ROUNDS; i++) {
        amp_error error = { 0 };
        write_file(text, spoil(seed, text, 1));
        amp_status status = amp_labels_read(path, 3, check_label, &seen, &error);
        if (status != AMP_OK) assert_one_line(status, &error);
        refused += status != AMP_OK;
    }
    assert_true(seen > FILE_ROUNDS / 4 && refused > FILE_ROUNDS / 10);
}

TEST(data_files)
{
    static const char seed[] = "classes = 3\ntrain = a b.txt\nvalid=v.txt\n# names = no\nnames=n\n"
        "backup = /b\n";
    char text[ROOM];
    int whole = 0;
    for (int i = 0; i < FILE_ROUNDS; i++) {
        amp_data_file data;
        amp_error error = { 0 };
        write_file(text, spoil(seed, text, 1));
        amp_status status = amp_data_file_read(path, &data, &error);
        if (status != AMP_OK) assert_one_line(status, &error);
        else assert_true(data.classes >= 0);
        whole += status == AMP_OK && data.classes == 3 && data.valid && !strcmp(data.valid, "v.txt");
        amp_data_file_free(&data);
    }
    assert_in_range(whole, FILE_ROUNDS / 50, FILE_ROUNDS - FILE_ROUNDS / 50);
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

TEST(amp_sections)
{
    static const char *const seeds[] = {
        "[net]\nbatch=1\namp=1\ndtype=fp16\nloss_scale=dynamic\n[convolutional]\nfilters=2\namp=0\n"
            "[maxpool]\nsize=2\n[yolo]\nmask=0,1,2\n",
        "[net]\nbatch=1\n[convolutional]\nfilters=2\n[amp]\namp=1\ndtype=bf16\nloss_scale=128\n"
            "init_scale=1024\ngrowth_factor=1.5\nbackoff_factor=.25\ngrowth_interval=7\nmin_scale=1e-3\n"
            "max_scale=1e6\nhysteresis=3\nclip_norm=10.5\ndebug=1\n[softmax]\n",
        "# comment\r\n[network]\r\nwidth = 4 16\r\n[amp]\r\n; none\r\n[conv]\r\nactivation=leaky\r\n" };
    static const char *const arguments[] = { NULL, NULL, NULL, "off", "fp16", "bf17" };
    char text[ROOM];
    int taken = 0;
    for (int i = 0; i < ROUNDS; i++) {
        amp_config *config = NULL;
        amp_error error = { 0 };
        write_file(text, spoil(seeds[below(3)], text, 1));
        amp_status status = config_of(path, CFG_PLAIN, arguments[below(6)], AMP_BF16, &config, &error);
        if (status == AMP_OK) {
            check_config(config);
            amp_config_free(config);
            taken++;
            continue;
        }
        assert_int_equal(status, AMP_BAD_CONFIG);
        assert_null(config);
        assert_one_line(status, &error);
        if (strncmp(error.message, path, strlen(path)) && strncmp(error.message, "command line", 12))
            fail_msg("neither file nor command line is named: %s", error.message);
        for (const char *c = error.message; *c; c++) assert_true((unsigned char)*c >= 0x20 && *c != 0x7f);
    }
    assert_in_range(taken, ROUNDS / 50, ROUNDS - ROUNDS / 50);
}

/* A copy has the new values, whatever else the original holds; and copying the copy changes nothing. */
TEST(copies_of_a_cfg)
{
    static const char seed[] = "# net\n[net]\nbatch = 64\nsubdivisions=8\nwidth=32\n\n[convolutional]\n"
        "batch=1\n[yolo]\nclasses=2";
    const amp_cfg_change changes[] = { { "batch", 24 }, { "subdivisions", 3 } };
    static const char copy[] = "copy", second[] = "second";
    char text[ROOM];
    int copied = 0;
    for (int i = 0; i < FILE_ROUNDS / 3; i++) {
        amp_error error = { 0 };
        size_t length = spoil(seed, text, 1);
        write_file(text, length);
        amp_status status = amp_cfg_copy(path, copy, changes, 2, &error);
        if (status != AMP_OK) {
            assert_one_line(status, &error);
            continue;
        }
        copied++;
        for (int k = 0; k < 2 && !memchr(text, 0, length); k++) {
            cfg_document *document;
            status = cfg_document_read(copy, CFG_PLAIN, &document, &error);
            if (status != AMP_OK) fail_msg("%s in: %s", error.message, text);
            double value = cfg_net_number(document, changes[k].key, -1);
            cfg_document_free(document);
            if (value != changes[k].value) fail_msg("%s is %g in a copy of: %s", changes[k].key, value, text);
        }
        assert_int_equal(amp_cfg_copy(copy, second, changes, 2, &error), AMP_OK);
        size_t in_first, in_other;
        char *first = file_bytes(copy, &in_first), *other = file_bytes(second, &in_other);
        if (in_first != in_other || memcmp(first, other, in_first))
            fail_msg("another copy of the copy of: %s", text);
        free(first);
        free(other);
    }
    assert_in_range(copied, FILE_ROUNDS / 30, FILE_ROUNDS / 3 - 1);
}

TEST(command_lines)
{
    static const char *const seeds[] = { "a.cfg", "-batch", "8", "-share", "0.5", "-json", "x", "-quiet",
                                         "-points", "11" };
    int taken = 0;
    FILE *nowhere = fopen("/dev/null", "w");
    assert_non_null(nowhere);
    for (int i = 0; i < ROUNDS; i++) {
        const char *cfg = NULL, *json = NULL, *points = "0";
        long batch = 5;
        double share = .5;
        int quiet = 0, argc = 1 + below(7);
        char text[8][ROOM], *argv[8];
        const amp_argument arguments[] = { { .name = "CFG", .text = &cfg, .about = "" },
            { .name = "-batch", .number = &batch, .least = 1, .most = 64, .about = "" },
            { .name = "-share", .real = &share, .least = .1, .most = 100, .about = "" },
            { .name = "-json", .text = &json, .about = "" },
            { .name = "-quiet", .flag = &quiet, .about = "" },
            { .name = "-points", .text = &points, .choices = "0|11|101", .about = "" }, { 0 } };
        for (int k = 0; k < argc; k++) {
            const char *seed = seeds[below(sizeof seeds / sizeof *seeds)];
            if (below(8)) strcpy(text[k], seed);
            else spoil(seed, text[k], 0);
            argv[k] = text[k];
        }
        amp_error error = { 0 };
        FILE *terminal = stderr; /* which the usage would flood */
        stderr = nowhere;
        amp_status status = amp_arguments_read("amp test", argc, argv, arguments, &error);
        stderr = terminal;
        if (status == AMP_OK) {
            taken++;
            assert_true(cfg && batch >= 1 && batch <= 64 && share >= .1 && share <= 100);
            assert_true(!strcmp(points, "0") || !strcmp(points, "11") || !strcmp(points, "101"));
        } else if (status != AMP_HELP_PRINTED) {
            assert_one_line(status, &error);
        }
        static const amp_machine machine = { .support = { AMP_SUPPORT_NATIVE, AMP_SUPPORT_NATIVE,
                                                          AMP_SUPPORT_NATIVE } };
        amp_lines list;
        spoil("stock,fp32,bf16", text[0], 0);
        error = (amp_error){ 0 };
        status = amp_dtypes_read(text[0], "fp32", &machine, &list, &error);
        if (status != AMP_OK) assert_one_line(status, &error);
        for (size_t k = 0; k < list.count; k++) assert_true(list.line[k][0] && !strchr(list.line[k], ','));
        amp_lines_free(&list);
    }
    fclose(nowhere);
    assert_in_range(taken, ROUNDS / 50, ROUNDS - ROUNDS / 50);
}

int main(void) { return run_listed_tests("readers of spoiled text", enter_folder, leave_folder); }
