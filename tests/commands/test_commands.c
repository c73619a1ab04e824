/* What the commands share: their arguments, JSON, and copies of a .cfg. */
#include "testing.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands/arguments.h"
#include "amp/cfg_text.h"
#include "commands/cfg_copy.h"
#include "commands/json.h"
#include "commands/table.h"
#include "test_folder.h"

/* ---- arguments ---- */

typedef struct wishes {
    const char *cfg, *weights, *json, *points;
    long batch;
    double thresh;
    int clear;
} wishes;

static amp_status read_wishes(wishes *w, int argc, const char *const *argv, amp_error *error)
{
    char *copy[16] = { 0 };
    for (int i = 0; i < argc; i++) copy[i] = (char *)(uintptr_t)argv[i];
    const amp_argument arguments[] = {
        { .name = "CFG", .text = &w->cfg, .about = "a network" },
        { .name = "WEIGHTS", .optional = 1, .text = &w->weights, .about = "its weights" },
        { .name = "-batch", .number = &w->batch, .least = 1, .most = 64, .about = "images" },
        { .name = "-thresh", .real = &w->thresh, .most = 1, .about = "a share" },
        { .name = "-json", .value = "FILE", .text = &w->json, .about = "a file" },
        { .name = "-points", .text = &w->points, .choices = "0|11|101", .about = "one of these" },
        { .name = "-clear", .flag = &w->clear, .about = "no value" }, { 0 } };
    *w = (wishes){ .batch = 5 };
    return amp_arguments_read("amp test", argc, copy, arguments, error);
}

TEST(options_stand_anywhere)
{
    static const char *const argv[] = { "-batch", "8", "a.cfg", "-clear", "b.weights", "-points", "11",
                                        "-thresh", ".25" };
    wishes w;
    assert_int_equal(read_wishes(&w, 9, argv, NULL), AMP_OK);
    assert_string_equal(w.cfg, "a.cfg");
    assert_string_equal(w.weights, "b.weights");
    assert_string_equal(w.points, "11");
    assert_int_equal(w.batch, 8);
    assert_int_equal(w.clear, 1);
    assert_true(w.thresh == .25);
    assert_null(w.json);
}

TEST(what_is_not_given_keeps_its_value)
{
    static const char *const argv[] = { "a.cfg", NULL, "-batch" }; /* NULL: blanked by somebody before */
    wishes w;
    assert_int_equal(read_wishes(&w, 3, argv, NULL), AMP_OK);
    assert_int_equal(w.batch, 5);
    assert_null(w.weights);
}

static const char usage[] = "usage: darknet amp test CFG [WEIGHTS] [options]\n"
                            "  CFG               a network\n"
                            "  WEIGHTS           its weights\n"
                            "  -batch N          images\n"
                            "  -thresh X         a share\n"
                            "  -json FILE        a file\n"
                            "  -points 0|11|101  one of these\n"
                            "  -clear            no value\n";

TEST(mistakes_are_told_with_the_usage)
{
    static const struct { const char *argv[4]; const char *says; } cases[] = {
        { { NULL }, "CFG is missing" }, { { "-batch", "8" }, "CFG is missing" },
        { { "a", "b", "c" }, "c: unexpected argument" },
        { { "a", "-x" }, "-x: unknown option" },
        { { "a", "-tresh", ".5" }, "-tresh: unknown option, did you mean -thresh?" },
        { { "a", "-batch" }, "-batch needs a value" }, { { "a", "-batch", "0" }, "from 1 to 64" },
        { { "a", "-batch", "65" }, "from 1 to 64" }, { { "a", "-batch", "8x" }, "whole number" },
        { { "a", "-batch", "1.5" }, "whole number" },
        { { "a", "-batch", "99999999999999999999" }, "from 1 to 64" },
        { { "a", "-thresh", "nan" }, "from 0 to 1" }, { { "a", "-thresh", "" }, "-thresh needs a value" },
        { { "a", "-points", "1" }, "expected 0|11|101" }, { { "a", "-points", "0|11" }, "expected 0|11|101" },
        { { "a", "-clear", "-clear" }, "given twice" } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wishes w;
        amp_error error;
        int argc = 0;
        while (argc < 4 && cases[i].argv[argc]) ++argc;
        char *printed;
        size_t length;
        FILE *terminal = stderr;
        stderr = open_memstream(&printed, &length);
        amp_status status = read_wishes(&w, argc, cases[i].argv, &error);
        fclose(stderr);
        stderr = terminal;
        assert_int_equal(status, AMP_BAD_CONFIG);
        assert_non_null(strstr(error.message, cases[i].says));
        assert_null(strchr(error.message, '\n'));
        assert_string_equal(printed, usage);
        free(printed);
    }
}

TEST(dtypes_are_read)
{
    static const char *const bad[] = { "", ",", "fp32,", ",fp32", "fp32,,fp16", "fp32,fp16,fp32", "fp8" };
    const amp_machine machine = { .support = { AMP_SUPPORT_NATIVE, AMP_SUPPORT_NATIVE, AMP_SUPPORT_NONE },
                                  .note = { [AMP_BF16] = "too old" } };
    amp_lines list;
    amp_error error;
    assert_int_equal(amp_dtypes_read("fp32,stock,fp16", "fp32", &machine, &list, &error), AMP_OK);
    assert_int_equal(list.count, 3);
    assert_string_equal(list.line[0], "fp32");
    assert_string_equal(list.line[1], "stock");
    assert_string_equal(list.line[2], "fp16");
    amp_lines_free(&list);
    assert_int_equal(amp_dtypes_read(NULL, "fp32,bf16", &machine, &list, &error), AMP_OK);
    assert_int_equal(list.count, 2);
    amp_lines_free(&list);
    assert_int_equal(amp_dtypes_read("bf16", "fp32", &machine, &list, &error), AMP_UNSUPPORTED);
    assert_string_equal(error.message, "-dtypes: this machine cannot run bf16: too old");
    amp_lines_free(&list);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(amp_dtypes_read(bad[i], "fp32", &machine, &list, &error), AMP_BAD_CONFIG);
        assert_non_null(strstr(error.message, "-dtypes"));
        amp_lines_free(&list);
    }
}

/* ---- JSON ---- */

static char *written_json(void (*write)(amp_json *))
{
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);
    assert_non_null(stream);
    amp_json json = amp_json_begin(stream);
    write(&json);
    fclose(stream);
    return text;
}

static void write_nested(amp_json *json)
{
    amp_json_object(json, NULL);
    amp_json_text(json, "name", "a");
    amp_json_array(json, "list");
    amp_json_number(json, NULL, 1.5);
    amp_json_number(json, NULL, NAN);
    amp_json_number(json, NULL, -INFINITY);
    amp_json_boolean(json, NULL, 1);
    amp_json_text(json, NULL, NULL);
    amp_json_close(json);
    amp_json_object(json, "empty");
    amp_json_close(json);
    amp_json_integer(json, "n", -9007199254740993);
    amp_json_close(json);
}

TEST(values_are_nested_and_parted)
{
    char *text = written_json(write_nested);
    assert_string_equal(text, "{\n \"name\": \"a\",\n \"list\": [\n  1.5,\n  null,\n  null,\n  true,\n"
                              "  null\n ],\n \"empty\": {},\n \"n\": -9007199254740993\n}\n");
    free(text);
}

static void write_text(amp_json *json)
{
    amp_json_text(json, NULL,
                  "\"\\\n\x1f caf\xc3\xa9 \xff\xc0\xaf\xed\xa0\x80\xf0\x9f\x8e\x89\xf4\x90\x80\x80\xe2\x82");
}

#define LOST "\xef\xbf\xbd"
TEST(text_is_escaped_and_always_utf8)
{
    char *text = written_json(write_text);
    assert_string_equal(text, "\"\\\"\\\\\\u000a\\u001f caf\xc3\xa9 " LOST LOST LOST LOST LOST LOST
                              "\xf0\x9f\x8e\x89" LOST LOST LOST LOST LOST LOST "\"\n");
    free(text);
}

static double numbers[] = { 0.1, 1. / 3, 1e300, 5e-324, 16777217, -0.0, 65504, 0x1.fffffep127 };
static int which;
static void write_number(amp_json *json) { amp_json_number(json, NULL, numbers[which]); }

TEST(numbers_are_read_back_exactly)
{
    for (which = 0; which < (int)(sizeof numbers / sizeof *numbers); which++) {
        char *text = written_json(write_number);
        double back = strtod(text, NULL);
        assert_memory_equal(&back, &numbers[which], sizeof back);
        free(text);
    }
}

static char *contents(const char *name)
{
    static char text[4096];
    FILE *file = fopen(name, "r");
    if (!file) return NULL;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}

TEST(a_file_is_written_as_a_whole_or_not_at_all)
{
    amp_output out;
    amp_error error;
    put_file("output.txt", "old");
    assert_int_equal(amp_output_begin("output.txt", &out, &error), AMP_OK);
    fputs("half", out.stream);
    fflush(out.stream);
    assert_string_equal(contents("output.txt"), "old");
    assert_int_equal(amp_output_end(&out, AMP_BAD_CONFIG, &error), AMP_BAD_CONFIG);
    assert_string_equal(contents("output.txt"), "old");
    assert_int_equal(amp_output_begin("output.txt", &out, &error), AMP_OK);
    fputs("new", out.stream);
    assert_int_equal(amp_output_end(&out, AMP_OK, &error), AMP_OK);
    assert_string_equal(contents("output.txt"), "new");
    assert_int_equal(access("output.txt.new", F_OK), -1);
    unlink("output.txt");
    assert_int_equal(amp_output_begin("no/such/folder/x", &out, &error), AMP_IO_FAILED);
    assert_non_null(strstr(error.message, "no/such/folder/x"));
}

TEST(a_full_disk_is_told)
{
    amp_output out;
    amp_error error;
    if (access("/dev/full", W_OK)) skip();
    assert_int_equal(amp_output_begin("/dev/full", &out, &error), AMP_OK);
    for (int i = 0; i < 100000; i++) fputs("line\n", out.stream);
    assert_int_equal(amp_output_end(&out, AMP_OK, &error), AMP_IO_FAILED);
    assert_non_null(strstr(error.message, "/dev/full"));
}

/* ---- copies of a .cfg ---- */

static const amp_cfg_change changes[] = { { "batch", 8 }, { "learning_rate", .001 } };

static const char *copied(const char *text)
{
    amp_error error;
    put_file("from.cfg", text);
    if (amp_cfg_copy("from.cfg", "to.cfg", changes, 2, &error) != AMP_OK) return NULL;
    const char *result = contents("to.cfg");
    unlink("from.cfg");
    unlink("to.cfg");
    return result;
}

TEST(only_the_keys_of_net_change)
{
    assert_string_equal(copied("# my net\n[net]\nbatch=64\nwidth=32\n b a t c h = 2\n#batch=3\n"
                               "batch_normalize=1\nlearning_rate=0.1\n[region]\nbatch=9\n"),
                        "# my net\n[net]\nbatch=8\nlearning_rate=0.001\nwidth=32\n#batch=3\n"
                        "batch_normalize=1\n[region]\nbatch=9\n");
}

TEST(other_forms_of_net_are_known)
{
    assert_non_null(strstr(copied("[network]\nbatch=64"), "[network]\nbatch=8\n"));
    assert_non_null(strstr(copied(" [ net ]\r\nbatch=64\r\nwidth=1\r\n"), "batch=8\n"));
    assert_null(strstr(copied("[net]\r\nbatch=64\r\nwidth=1\r\n"), "64"));
    assert_non_null(strstr(copied("[net]\nwidth=1"), "width=1\n")); /* a last line without an end */
    assert_null(copied("[convolutional]\nbatch=64\n"));
    assert_null(copied(""));
}

TEST(a_copy_can_be_in_memory)
{
    char name[AMP_MEMORY_FILE];
    amp_error error;
    put_file("some.cfg", "[net]\nbatch=64\ninputs=4\n[softmax]\n");
    assert_int_equal(amp_cfg_copy_in_memory("some.cfg", changes, 1, "it", name, &error), AMP_OK);
    assert_string_equal(contents(name), "[net]\nbatch=8\ninputs=4\n[softmax]\n");
    put_file("some.cfg", "[net]\nbatch=64\nsubdivisions=16\ninputs=4\n[softmax]\n");
    assert_int_equal(amp_cfg_copy_in_memory("some.cfg", changes, 1, "this -batch", name, &error),
                     AMP_BAD_CONFIG);
    assert_non_null(strstr(error.message, "some.cfg with this -batch: [net] subdivisions = 16: batch = 8"));
    unlink("some.cfg");
    assert_int_equal(amp_cfg_copy_in_memory("no.cfg", changes, 1, "it", name, &error), AMP_BAD_CONFIG);
}

TEST(numbers_of_net_are_read)
{
    amp_error error;
    cfg_document *document;
    put_file("some.cfg", "[net]\n#batch=1\nbatch = 6 4\nbatch=32\n[yolo]\nclasses=3\n");
    assert_int_equal(cfg_document_read("some.cfg", CFG_PLAIN, &document, &error), AMP_OK);
    assert_true(cfg_net_number(document, "batch", 1) == 64);
    assert_true(cfg_net_number(document, "classes", -1) == -1);
    cfg_document_free(document);
    unlink("some.cfg");
}

/* ---- records (table.h) ---- */

typedef struct record { const char *name; char note[32]; int count, state; double rate; } record;

static const char *const state_names[] = { NULL, "done" };
static const amp_field record_fields[] = {
    AMP_FIELD(record, name, .title = "name", .left = 1),
    AMP_FIELD(record, count, .known = AMP_FROM_0, .title = "n", .none = "-"),
    AMP_NAME_AS("state", record, state, state_names),
    AMP_FIELD(record, rate, .known = AMP_ABOVE_0, .title = "rate", .format = "%.1f/s"),
    AMP_FIELD(record, note, .title = "what is said of it", .left = 1), { 0 } };
static const record records[] = { { "a,\"b\"", "", 100000000, 1, 2.5 }, { "c", "two words", -1, 0, 0 } };

/* What one list of fields makes of the records, as text that the caller frees. */
static char *listed(int as_table, int count)
{
    char *text;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (as_table) amp_table_print(stream, 2, record_fields, records, sizeof *records, count, NULL);
    else for (int i = -1; i < count; i++) amp_csv_print(stream, record_fields, i < 0 ? NULL : &records[i]);
    fclose(stream);
    return text;
}

TEST(fields_are_columns_of_csv_and_of_a_table)
{
    char *csv = listed(0, 2), *table = listed(1, 2), *first = listed(1, 1);
    assert_string_equal(csv, "name,count,state,rate,note\n"
                             "\"a,\"\"b\"\"\",100000000,done,2.5,\nc,,,,two words\n");
    assert_string_equal(table, "  name           n   rate  what is said of it\n"
                               "  a,\"b\"  100000000  2.5/s  \n"
                               "  c              -         two words\n");
    assert_null(strstr(first, "what is said")); /* a column without any text */
    free(csv);
    free(table);
    free(first);
}

TEST(what_is_not_known_is_null)
{
    char *text;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    amp_json json = amp_json_begin(stream);
    amp_json_records(&json, NULL, records, sizeof *records, 2, record_fields);
    fclose(stream);
    assert_non_null(strstr(text, "\"count\": 100000000,\n  \"state\": \"done\",\n"
                           "  \"rate\": 2.5,\n  \"note\": null\n"));
    assert_non_null(strstr(text, "\"count\": null,\n  \"state\": null,\n"
                           "  \"rate\": null,\n  \"note\": \"two words\"\n"));
    free(text);
}

int main(void) { return run_listed_tests("tests", NULL, NULL); }
