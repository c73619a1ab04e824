/* Labels, .data files and lists as the plugin reads them, the prescan over all of them, and the
 * size of .weights files. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "testing.h"
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "darknet.h"
#include "image.h"
#include "utils.h"

#include "amp/cfg_text.h"
#include "commands/data_scan.h"
#include "host/data/data_check.h"
#include "host/data/text_lines.h"
#include "host/data/images.h"
#include "host/data/label_file.h"
#include "host/data/loader_memory.h"
#include "host/data/loading.h"
#include "host/fork.h"
#include "host/network/weights_check.h"
#include "child.h"
#include "test_folder.h"

image get_segmentation_image(char *path, int w, int h, int classes); /* data.c */

static int enter_with_folders(void **state)
{
    return enter_folder(state) || mkdir("images", 0700) || mkdir("labels", 0700);
}

/* ---- labels ---- */

TEST(a_line_is_a_box_or_says_what_it_is)
{
    const struct { const char *line; amp_label_kind kind; } lines[] = {
        { "0 .5 .5 .2 .2", AMP_LABEL_BOX }, { "  1\t0.5 0.5 1 1 \r", AMP_LABEL_BOX },
        { "+1 5e-1 .5 .2 .2", AMP_LABEL_BOX },
        { "1 1.0005 .5 .2 .2", AMP_LABEL_BOX }, { "1 -.05 .5 .2 .2", AMP_LABEL_BOX },
        { "0 0 .5 .2 .2", AMP_LABEL_BOX }, { "", AMP_LABEL_BLANK }, { " \t\r", AMP_LABEL_BLANK },
        { "2 .5 .5 .2 .2", AMP_LABEL_BAD_CLASS }, { "-1 .5 .5 .2 .2", AMP_LABEL_BAD_CLASS },
        { "4294967296 .5 .5 .2 .2", AMP_LABEL_BAD_CLASS },
        { "99999999999999999999 .5 .5 .2 .2", AMP_LABEL_BAD_CLASS },
        { "0 nan .5 .2 .2", AMP_LABEL_NOT_FINITE }, { "0 .5 -inf .2 .2", AMP_LABEL_NOT_FINITE },
        { "0 .5 .5 1e39 .2", AMP_LABEL_NOT_FINITE }, { "0 .5 .5 .2 NAN(7)", AMP_LABEL_NOT_FINITE },
        { "0 100 80 20 30", AMP_LABEL_IN_PIXELS }, { "0 .5 .5 2.5 .2", AMP_LABEL_IN_PIXELS },
        { "0 -7 .5 .2 .2", AMP_LABEL_IN_PIXELS },
        { "0 0 0 0 0", AMP_LABEL_OUTSIDE }, { "0 0 0 1 1", AMP_LABEL_OUTSIDE },
        { "0 .5 .5 0 .2", AMP_LABEL_OUTSIDE },
        { "0 .5 .5 .2 -.2", AMP_LABEL_OUTSIDE }, { "0 1.5 .5 .2 .2", AMP_LABEL_OUTSIDE },
        { "0 .5 -.5 .2 .2", AMP_LABEL_OUTSIDE },
        { "0 .5 .5 .2", AMP_LABEL_NO_LABEL }, { "0 .5 .5 .2 .2 .9", AMP_LABEL_NO_LABEL },
        { "round .5 .5 .2 .2", AMP_LABEL_NO_LABEL },
        { "0.0 .5 .5 .2 .2", AMP_LABEL_NO_LABEL }, { "0 0,5 0,5 0,2 0,2", AMP_LABEL_NO_LABEL },
        { "0 .5 .5 .2 .2x", AMP_LABEL_NO_LABEL },
        { "0", AMP_LABEL_NO_LABEL }, { "\xef\xbb\xbf" "0 .5 .5 .2 .2", AMP_LABEL_NO_LABEL } };
    for (size_t i = 0; i < COUNT(lines); i++) {
        amp_label label;
        if (amp_label_parse(lines[i].line, 2, &label) != lines[i].kind)
            fail_msg("'%s' is not %d", lines[i].line, lines[i].kind);
    }
}

typedef struct kept { amp_label label[100]; int count, outside; } kept;

static amp_status keep(void *context, const char *file, unsigned long line, const amp_label *label,
                       int outside, amp_error *error)
{
    kept *k = context;
    (void)file;
    (void)line;
    (void)error;
    if (outside) k->outside++;
    else k->label[k->count++] = *label;
    return AMP_OK;
}

/* Good files must train to the same bytes as ever. */
TEST(good_files_give_the_numbers_that_stock_reads)
{
    FILE *file = fopen("good.txt", "w");
    srand(3);
    for (int i = 0; i < 60; i++)
        fprintf(file, i % 2 ? "%d %.17g %.9g %.6f %e%s" : " %d  %.3f\t%.9g %.20f %g %s", i % 5,
                (1 + rand() % 999) / 1000., (1 + rand() % 99) / 100., (1 + rand() % 999) / 1000.,
                (1 + rand() % 777) / 777., i % 3 ? "\n" : "\r\n\n");
    fclose(file);
    int count = 0;
    kept k = { .count = 0 };
    box_label *stock = read_boxes("good.txt", &count);
    amp_error error;
    assert_int_equal(amp_labels_read("good.txt", 5, keep, &k, &error), AMP_OK);
    assert_int_equal(k.count, count);
    assert_int_equal(count, 60);
    for (int i = 0; i < count; i++) {
        assert_int_equal(k.label[i].class_id, stock[i].id);
        assert_memory_equal(&k.label[i].x, &stock[i].x, 4 * sizeof(float));
    }
    free(stock);
}

static void refused(const char *text, size_t length, const char *expected)
{
    amp_error error;
    put_bytes("bad.txt", text, length);
    assert_int_equal(amp_labels_read("bad.txt", 2, NULL, NULL, &error), AMP_BAD_CONFIG);
    if (!strstr(error.message, expected)) fail_msg("no '%s' in: %s", expected, error.message);
    assert_null(strchr(error.message, '\n'));
}

TEST(the_file_and_line_of_a_bad_label_are_named)
{
    char long_line[5000];
    refused("0 .5 .5 .2 .2\n\n7 .5 .5 .2 .2\n", 29, "bad.txt:3: label '7 .5 .5 .2 .2' has a class");
    refused("\0\0\0\0", 4, "bad.txt:1: label '\\x00' is not");
    refused("0 .5 .5 .2 .2\n0 .5\0 .5\n", 24, "bad.txt:2: label '0 .5\\x00' is not");
    refused("\xef\xbb\xbf" "0 .5 .5 .2 .2\n", 17, "bad.txt:1: label '\\xef\\xbb\\xbf0 .5 .5 .2 .2' is not");
    memset(long_line, '1', sizeof long_line);
    refused(long_line, sizeof long_line, "bad.txt:1: label '1111");
    refused("0 \x1b[31m\n", 8, "label '0 \\x1b[31m'");
    amp_error error;
    assert_int_equal(amp_labels_read("nowhere.txt", 2, NULL, NULL, &error), AMP_BAD_CONFIG);
    assert_non_null(strstr(error.message, "nowhere.txt: cannot read this label file: No such file"));
    assert_int_equal(amp_labels_read("images", 2, NULL, NULL, &error), AMP_BAD_CONFIG);
    assert_non_null(strstr(error.message, "Is a directory"));
}

TEST(labels_lie_where_stock_looks)
{
    char path[AMP_LABEL_PATH], too_long[5000];
    assert_int_equal(amp_label_path("/d/images/a.jpg", path), 1);
    assert_string_equal(path, "/d/labels/a.txt");
    assert_int_equal(amp_label_path("/d/JPEGImages/raw/a.JPEG", path), 1);
    assert_string_equal(path, "/d/labels/labels/a.txt");
    memset(too_long, 'a', sizeof too_long - 1);
    too_long[sizeof too_long - 1] = 0;
    assert_int_equal(amp_label_path(too_long, path), 0);
}

/* ---- the .data file and lists ---- */

static amp_data_file read_data(const char *text, const char *note)
{
    amp_error error;
    amp_data_file data;
    put_file("my.data", text);
    assert_int_equal(amp_data_file_read("my.data", &data, &error), AMP_OK);
    assert_string_equal(data.note, note);
    return data;
}

TEST(a_data_file_is_read_as_stock_reads_it)
{
    amp_data_file data = read_data("# comment\n classes = 3\r\ntrain= a.txt\nvalid =b.txt\nlabels=l\n"
                                   "names=n\nbackup=back\ntrain=second\ntop=5\n",
                                   "my.data:8: train is given twice; the first line is used");
    assert_int_equal(data.classes, 3);
    assert_string_equal(data.train, "a.txt");
    assert_string_equal(data.valid, "b.txt");
    assert_string_equal(data.backup, "back");
    assert_string_equal(amp_data_file_names(&data), "n");
    amp_data_file_free(&data);
    data = read_data("classes = 3 \ntrain = a=b.txt\t\ntag=0\ntag=1\n",
                     "my.data:4: tag is given twice; the first line is used");
    assert_string_equal(data.train, "a=b.txt");
    assert_int_equal(data.tag, 0);
    amp_data_file_free(&data);
    data = read_data("classes=3\ntrain=a.txt\n", "");
    assert_true(data.cache == AMP_CACHE_OFF && data.cache_scale == 2);
    amp_data_file_free(&data);
    data = read_data("cache = disk\ncache=off\ncache_scale = 1.5\n",
                     "my.data:2: cache is given twice; the first line is used");
    assert_true(data.cache == AMP_CACHE_DISK && data.cache_scale == 1.5);
    amp_data_file_free(&data);
    data = read_data("eval=voc\nother=1\nvaild=a.txt\nclases=3\n",
                     "my.data:3: vaild: unknown key, did you mean valid?; "
                     "my.data:4: clases: unknown key, did you mean classes?");
    amp_data_file_free(&data);
}

static void data_reads_as(cfg_syntax syntax, const char *items)
{
    amp_error error;
    cfg_document *document;
    char text[256] = "";
    assert_int_equal(cfg_document_read("my.data", syntax, &document, &error), AMP_OK);
    for (const cfg_item *item = document->items; item < document->items + document->count; item++)
        if (item->kind != CFG_NOTHING)
            sprintf(text + strlen(text), "%lu<%s|%s>", item->line, item->text,
                    item->value ? item->value : "-");
    cfg_document_free(document);
    assert_string_equal(text, items);
}

TEST(a_data_file_of_hank_ais_keeps_blanks)
{
    put_file("my.data", "\t# a = b\n train = my sets/#1 a=b.txt \r\nvalid: C:/v.txt\n; no\n\nnames\n"
             "backup =\n");
    data_reads_as(CFG_SPACED, "2<train|my sets/#1 a=b.txt>3<valid|C:/v.txt>6<names|->7<backup|>");
    data_reads_as(CFG_PLAIN, "2<train|mysets/#1a=b.txt>3<valid:C:/v.txt|->6<names|->7<backup|>");
}

TEST(a_broken_data_file_is_one_line)
{
    const struct { const char *text, *expected; } files[] = { { "train\n", "bad.data:1: train: no value" },
                  { "\ntrain=\n", "bad.data:2: train: no value" },
                  { "classes=many\n", "bad.data:1: classes = many: not a valid number" },
                  { "classes=0\n", "classes = 0: not a valid" },
                  { "\ncache=disc\n", "bad.data:2: cache = disc: unknown; allowed: ram, disk, off" },
                  { "cache_scale=half\n", "cache_scale = half: not a decimal number; allowed: 0 for" },
                  { "cache_scale=.05\n", "cache_scale = .05: out of range" },
                  { "classes=99999999999\n", "not a valid number" },
                  { "[net]\nbatch=1\n", "bad.data:1: [net]: a .data file has no sections" },
                  { "classes=1\nbackup = my backups\n",
                    "bad.data:2: backup = mybackups: there are blanks in this path, and Darknet drops them; "
                    "allowed: paths without blanks" },
                  { "train=a =b\n", "bad.data:1: train = a=b: there are blanks" },
                  { "valid=a\tb\n", "blanks" } };
    amp_error error;
    amp_data_file data;
    for (size_t i = 0; i < COUNT(files); i++) {
        put_file("bad.data", files[i].text);
        assert_int_equal(amp_data_file_read("bad.data", &data, &error), AMP_BAD_CONFIG);
        amp_data_file_free(&data);
        if (!strstr(error.message, files[i].expected))
            fail_msg("no '%s' in: %s", files[i].expected, error.message);
    }
    assert_int_equal(amp_data_file_read("nowhere.data", &data, &error), AMP_BAD_CONFIG);
    amp_data_file_free(&data);
    assert_int_equal(amp_data_file_read("images", &data, &error), AMP_BAD_CONFIG);
    amp_data_file_free(&data);
}

/* Opening the FIFO would wait for ever. */
TEST(what_is_no_regular_file_is_not_opened)
{
    amp_error error;
    amp_data_file data;
    amp_lines list;
    assert_int_equal(mkfifo("fifo", 0600), 0);
    assert_true(amp_is_device("fifo") && amp_is_device("/dev/zero") && !amp_is_device("images") &&
                !amp_is_device("none"));
    assert_int_equal(symlink("fifo", "fifo_link"), 0);
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "fifo_link" : "fifo";
        assert_int_equal(amp_data_file_read(name, &data, &error), AMP_BAD_CONFIG);
        amp_data_file_free(&data);
        assert_non_null(
            strstr(error.message, ": not a regular file: a .data file is read more than once"));
        assert_int_equal(amp_paths_read(name, "the list", &list, &error), AMP_BAD_CONFIG);
        assert_non_null(strstr(error.message, ": cannot read the list: not a regular file"));
        assert_int_equal(amp_labels_read(name, 2, NULL, NULL, &error), AMP_BAD_CONFIG);
        assert_non_null(strstr(error.message, ": cannot read this label file: not a regular file"));
    }
    assert_int_equal(amp_paths_read("/dev/zero", "the list", &list, &error), AMP_BAD_CONFIG);
}

/* ---- Darknet's buffers ---- */

static char long_path[6000];

static void replaces(void *none)
{
    (void)none;
    find_replace(long_path, "a", "labels", (char[4096]){ 0 });
}

static void scans(void *none)
{
    (void)none;
    free_image(get_segmentation_image("images/mask.jpg", 8, 8, 2));
}

static void saves_image(void *none)
{
    (void)none;
    image im = make_image(1, 1, 3);
    save_image(im, long_path);
}

/* Under AMP what a loader cannot have ends the program; in other programs NULL comes back, as ever. */
static void wants_too_much(void *none)
{
    (void)none;
    amp_loaders_watch(0);
    darknet_amp_calloc((size_t)1 << 46, 4, "m.cols");
}

static void *loads_nothing(void *job) { return job; }

/* *jobs: how many batches a training has begun to load. */
static void starts_a_loader(void *jobs)
{
    pthread_t thread;
    amp_error error;
    amp_loading_watch();
    amp_loading_keep_faults();
    for (int i = 0; i < *(int *)jobs; i++) amp_loading_begin_job();
    setrlimit(RLIMIT_AS, &(struct rlimit){ 1 << 20, 1 << 20 });
    darknet_amp_start_loader(&thread, loads_nothing, NULL);
    pthread_join(thread, NULL);
    if (amp_loading_fault(&error) != AMP_OK) fprintf(stderr, "kept: %s\n", error.message);
    amp_loading_begin_job();
    if (amp_loading_fault(&error) == AMP_OK) fprintf(stderr, "forgotten\n");
}

TEST(a_loader_without_memory_or_threads_ends_the_program)
{
    static const struct { void (*run)(void *); int jobs, status; const char *says; } cases[] = {
        { wants_too_much, 0, 1, "no memory for 268435456.0 MiB more; " },
        { starts_a_loader, 1, 1, "no thread that loads images can be started: " },
        { starts_a_loader, 2, 0, "\nforgotten\n" } };
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* whose address space and allocator are others */
#endif
    assert_null(darknet_amp_calloc((size_t)1 << 46, 4, "m.cols"));
    for (size_t i = 0; i < COUNT(cases); i++) {
        char said[1000];
        int jobs = cases[i].jobs, status = in_child(cases[i].run, &jobs, said, sizeof said);
        int lines = 0, is_kept = !strncmp(said, "kept: ", 6);
        for (const char *c = said; *c; c++) lines += *c == '\n';
        if (status != cases[i].status || !strstr(said, cases[i].says) || lines != (status ? 1 : 2)
            || is_kept != !status)
            fail_msg("%d jobs: %d: %s", jobs, status, said);
    }
}

/* Whoever copies them, rows lie one behind the other, and are freed. */
TEST(rows_are_copied_by_any_number_of_threads)
{
    const struct { int count; size_t floats; } sizes[] = { { 1, 5 }, { 3, 1 << 10 }, { 40, 1 << 17 } };
    for (size_t k = 0; k < COUNT(sizes); k++) {
        int count = sizes[k].count;
        size_t floats = sizes[k].floats, bytes = floats * sizeof(float);
        float *rows[40], *input = malloc((size_t)count * bytes + 1);
        ((char *)input)[(size_t)count * bytes] = 77;
        for (int i = 0; i < count; i++) {
            rows[i] = malloc(bytes);
            for (size_t j = 0; j < floats; j++) rows[i][j] = (float)((size_t)i * floats + j);
        }
        amp_filling_copy(input, rows, count, floats);
        for (size_t j = 0; j < (size_t)count * floats; j++)
            if (input[j] != (float)j)
                fail_msg("%d rows of %zu: %zu is %g", count, floats, j, (double)input[j]);
        assert_int_equal(((char *)input)[(size_t)count * bytes], 77);
        for (int i = 0; i < count; i++) assert_null(rows[i]);
        free(input);
    }
}

/* In a program that runs no such loop a batch may be made of the same rows again. */
TEST(outside_the_loop_darknet_copies_its_rows_itself)
{
    float row[2] = { 1, 2 }, *rows[1] = { row }, input[2] = { 0 };
    assert_int_equal(darknet_amp_fill(input, rows, 1, 2), 0);
    assert_ptr_equal(rows[0], row);
}

/* As many parts of batches at a time as amp_loaders_at_once says, whoever starts how many; as many of these
 * as there are processors hold a photo. */
static atomic_int parts_now, parts_most, parts_done, photos_now, photos_most;

static void count_one_more(atomic_int *count, atomic_int *largest)
{
    int now = atomic_fetch_add(count, 1) + 1, most = *largest;
    while (now > most && !atomic_compare_exchange_weak(largest, &most, now)) { }
    sched_yield();
}

static void *loads_a_part(void *job)
{
    amp_loaders_begin_part();
    count_one_more(&parts_now, &parts_most);
    if (!amp_loaders_begin_turn("no such photo")) _exit(5);
    count_one_more(&photos_now, &photos_most);
    atomic_fetch_sub(&photos_now, 1);
    amp_loaders_end_turn();
    atomic_fetch_sub(&parts_now, 1);
    amp_loaders_end_part();
    atomic_fetch_add(&parts_done, 1);
    return job;
}

static void loads_a_batch(void *none)
{
    (void)none;
    enum { PARTS = 1000 };
    static pthread_t threads[PARTS];
    amp_loaders_watch(0);
    for (int i = 0; i < PARTS; i++) darknet_amp_start_loader(&threads[i], loads_a_part, &threads[i]);
    for (int i = 0; i < PARTS; i++) {
        void *result = NULL;
        if (pthread_join(threads[i], &result) || result != &threads[i]) _exit(2);
    }
    if (photos_most > amp_loaders_processors()) _exit(6);
    _exit(parts_done != PARTS ? 3 : parts_most > amp_loaders_at_once() ? 4 : 0);
}

TEST(only_some_parts_of_a_batch_are_loaded_at_a_time)
{
    char said[1000];
    assert_int_equal(in_child(loads_a_batch, NULL, said, sizeof said), 0);
}

/* find_replace has 4096 bytes: each of its callers' and its own; it makes "labels" of the path's one "a".
 * save_image is one of many with 256, which Darknet fills with sprintf: it adds ".jpg". */
TEST(a_path_longer_than_darknets_buffers_ends_the_program)
{
    static const struct { void (*run)(void *); int room, added; } users[] = { { replaces, 4096, 5 },
                                                                              { saves_image, 256, 4 } };
    char said[1000], expected[100];
    for (size_t u = 0; u < COUNT(users); u++) {
        int room = users[u].room;
        snprintf(expected, sizeof expected, "bytes, but Darknet has room for %d; shorten the folder",
                 room - 1);
        for (int length = room - 11; length < room + 4; length++) {
            memset(long_path, 'x', sizeof long_path);
            long_path[100] = 'a';
            long_path[length] = 0;
            int status = in_child(users[u].run, NULL, said, sizeof said);
            if (status != (length + users[u].added >= room) || (status && !strstr(said, expected)))
                fail_msg("room for %d, a path of %d: status %d, %s", room, length, status, said);
        }
    }
}

/* A mask is a line of "class runs"; Darknet has 32788 bytes for the runs, and an image of 8x8 for what they
 * say. */
TEST(a_mask_stays_within_its_image)
{
    static const char *const good[] = { "0 10,4,50\n1 64\n", "0 1000000,1,1000000\n",
                                        "-1 10,10\n9 10,10\n2000000 1,63\n", "" };
    char said[1000];
    int status;
    assert_true(mkdir("mask", 0700) == 0);
    for (size_t i = 0; i < COUNT(good); i++) {
        put_file("mask/mask.txt", good[i]);
        status = in_child(scans, NULL, said, sizeof said);
        if (status || *said) fail_msg("%s: status %d: %s", good[i], status, said);
    }
    char *text = malloc(60001);
    for (int length = 32780; length <= 60000; length += length < 32795 ? 1 : 9000) {
        memset(text, '1', 60000);
        memcpy(text, "0 ", 2);
        for (int i = 3; i < length; i += 2) text[i] = ',';
        text[length] = 0;
        put_file("mask/mask.txt", text);
        status = in_child(scans, NULL, said, sizeof said);
        if (status != (length - 2 >= 32787) || (*said != 0) != status)
            fail_msg("%d bytes: status %d: %s", length - 2, status, said);
        if (status)
            assert_non_null(strstr(
                said, "mask/mask.txt: a mask of more than 32786 bytes, for which Darknet has no room"));
    }
    free(text);
}

/* The last is longer than any buffer. */
TEST(a_list_has_stocks_lines)
{
    static char many[500000];
    const char *texts[] = { "a\nb\n", "a\nb", "\na\n\n", "a", "a b\r\n c \n", many };
    amp_error error;
    for (int i = 0, at = 0; i < 20000; i++) at += sprintf(many + at, "images/%d.jpg\n", i);
    for (size_t i = 0; i < COUNT(texts); i++) {
        put_file("list.txt", texts[i]);
        amp_lines list;
        assert_int_equal(amp_paths_read("list.txt", "the list", &list, &error), AMP_OK);
        struct list *stock = get_paths("list.txt");
        char **line = (char **)list_to_array(stock);
        assert_int_equal(list.count, stock->size);
        for (int k = 0; k < stock->size; k++) {
            assert_string_equal(list.line[k], line[k]);
            free(line[k]);
        }
        free(line);
        free_list(stock);
        amp_lines_free(&list);
    }
}

TEST(an_empty_list_is_refused)
{
    const char *texts[] = { "", "\n", " \r\n\n" };
    amp_error error;
    amp_lines list;
    for (size_t i = 0; i < COUNT(texts); i++) {
        put_file("list.txt", texts[i]);
        assert_int_equal(amp_paths_read("list.txt", "the list", &list, &error), AMP_BAD_CONFIG);
        assert_string_equal(error.message, "list.txt: the list is empty");
        amp_lines_free(&list);
    }
    assert_int_equal(amp_paths_read("images", "the list", &list, &error), AMP_BAD_CONFIG);
    assert_string_equal(error.message, "images: cannot read the list: Is a directory");
    amp_lines_free(&list);
}

/* ---- the scan of all data ---- */

static void small_set(void)
{
    put_file("my.data",
               "classes=2\ntrain=train.txt\nvalid=valid.txt\nnames=my.names\nlabels=my.names\nbackup=.\n");
    put_file("my.names", "round\nsquare\n");
    put_file("train.txt", "images/1.round.jpg\nimages/2.square.jpg\nimages/3.round.jpg\n");
    put_file("valid.txt", "images/4.square.jpg\nimages/1.round.jpg\n");
    const char *names[] = { "1.round", "2.square", "3.round", "4.square" };
    char file[64];
    for (int i = 0; i < 4; i++) {
        snprintf(file, sizeof file, "images/%s.jpg", names[i]);
        put_file(file, "an image");
        snprintf(file, sizeof file, "labels/%s.txt", names[i]);
        put_file(file, "0 .5 .5 .2 .2\n1 .5 .5 .2 .2\n");
    }
    put_file("images/5.away.jpg", "an image");
    put_file("labels/5.away.txt", "0 1.5 .5 .2 .2\n1 0 0 1 1\n");
    put_file("images/6.empty.jpg", "an image");
    put_file("labels/6.empty.txt", "\n");
    put_file("images/7.round.square.jpg", "an image");
#define ANY_CFG "[net]\namp=1\nwidth=32\nheight=32\nchannels=3\nbatch=4\nmax_batches=9\n[convolutional]\n"
    put_file("detector.cfg", ANY_CFG "filters=7\n[yolo]\nclasses=2\nnum=1\nanchors=1,2\n");
    put_file("classifier.cfg", ANY_CFG "filters=2\n[avgpool]\n[softmax]\n");
    put_file("third.cfg", ANY_CFG "filters=3\n[avgpool]\n[softmax]\n");
}

/* The start of a training, in a child. */
typedef struct start { const char *cfg; int classifier; } start;
static void starts(void *context)
{
    const start *s = context;
    amp_check_training("my.data", s->cfg, s->classifier);
}
static void at_start(int classifier, int classes, const char *expected)
{
    char said[4000];
    start s = { !classifier ? "detector.cfg" : classes == 2 ? "classifier.cfg" : "third.cfg", classifier };
    int status = in_child(starts, &s, said, sizeof said);
    if (status != (expected != NULL) || (expected && !strstr(said, expected)))
        fail_msg("the start: status %d, and no '%s' in: %s", status, expected ? expected : "", said);
}

static amp_data_scan scanned(int classifier, int classes, amp_status expected, amp_error *error)
{
    amp_data_scan scan = { .data_file = "my.data", .cfg = "my.cfg", .classifier = classifier,
                           .classes = classes, .w = 32, .h = 32, .boxes = 2 };
    assert_int_equal(amp_scan_data(&scan, error), expected);
    return scan;
}

TEST(a_good_set_is_counted)
{
    amp_error error;
    small_set();
    for (int classifier = 0; classifier < 2; classifier++) {
        amp_data_scan scan = scanned(classifier, 2, AMP_OK, &error);
        assert_int_equal(scan.train.images, 3);
        assert_int_equal(scan.valid.images, 2);
        assert_int_equal(scan.train.boxes, classifier ? 0 : 6);
        for (int k = 0; k < AMP_SCAN_KINDS; k++)
            assert_int_equal(scan.train.odd[k].count + scan.valid.odd[k].count, 0);
        assert_string_equal(scan.warning, "");
        at_start(classifier, 2, NULL);
    }
    put_file("my.data", "classes=2\ntrain=train.txt\nlabels=my.names\nbackup=.\n"); /* `valid` is for -map */
    scanned(0, 2, AMP_OK, &error);
    amp_data_scan measures = { .data_file = "my.data", .classes = 2, .measures = 1 };
    assert_int_equal(amp_scan_data(&measures, &error), AMP_BAD_CONFIG);
    assert_string_equal(error.message, "my.data: `valid = FILE` is missing; FILE must list the "
                        "validation images");
}

TEST(what_a_training_survives_is_counted_and_named)
{
    amp_error error;
    small_set();
    unlink("images/2.square.jpg");
    put_file("labels/3.round.txt", "0 .5 .5 .2 .2\n1 1.5 .5 .2 .2\n");
    unlink("labels/4.square.txt");
    put_file("my.names", "round\nsquare\nthird\n");
    amp_data_scan scan = scanned(0, 2, AMP_OK, &error);
    assert_int_equal(scan.train.odd[AMP_SCAN_MISSING].count, 1);
    assert_string_equal(scan.train.odd[AMP_SCAN_MISSING].first, "images/2.square.jpg");
    assert_int_equal(scan.train.odd[AMP_SCAN_OUTSIDE].count, 1);
    assert_string_equal(scan.train.odd[AMP_SCAN_OUTSIDE].first, "labels/3.round.txt:2");
    assert_int_equal(scan.valid.odd[AMP_SCAN_UNLABELLED].count, 1);
    assert_string_equal(scan.valid.odd[AMP_SCAN_UNLABELLED].first, "images/4.square.jpg");
    assert_string_equal(scan.warning, "my.names: 3 class names, but the network has 2 classes");
    put_file("train.txt",
               "images/1.round.jpg\nimages/3.round.jpg\nimages/5.plain.jpg\nimages/5.plain.jpg\n");
    put_file("images/5.plain.jpg", "an image");
    scan = scanned(1, 2, AMP_OK, &error);
    assert_int_equal(scan.train.odd[AMP_SCAN_MISLABELLED].count, 2);
    assert_int_equal(scan.train.paths, 4);
    assert_string_equal(scan.train.odd[AMP_SCAN_MISLABELLED].first, "images/5.plain.jpg");
}

/* starts: the training begins all the same, and ends where it comes to that label, or needs that file. */
TEST(what_a_training_does_not_survive_is_an_error)
{
    char missing[2000 * 6 + 1] = "", unclear[1500 * 26 + 1] = "";
    for (int i = 0; i < 2000; i++) strcpy(missing + i * 6, "a.jpg\n");
    for (int i = 0; i < 1500; i++) strcpy(unclear + i * 26, "images/7.round.square.jpg\n");
    const struct { const char *file, *text; int classifier, starts; const char *expected; } cases[] = {
        { "my.data", "valid=train.txt\nbackup=.\n", 0, 0,
          "data/train.list: cannot read the list of training images (`train` in my.data): No such file" },
        { "my.data", "train=nowhere.txt\nbackup=.\n", 0, 0,
          "nowhere.txt: cannot read the list of training images (`train` in my.data): No such file" },
        { "my.data", "train=train.txt\nbackup=nowhere\n", 0, 0,
          "my.data: backup = nowhere: nothing can be saved there: No such file" },
        { "my.data", "train=train.txt\nnames=no.names\nbackup=.\n", 0, 1,
          "no.names: cannot read the class names: No such file" },
        { "my.data", "train=train.txt\nlabels=no.labels\nbackup=.\n", 1, 0,
          "no.labels: cannot read the list of labels (`labels` in my.data): No such file" },
        { "valid.txt", "\n", 0, 1, "valid.txt: the list of images (`valid` in my.data) is empty" },
        { "valid.txt", "a.jpg\n", 0, 1, "valid.txt: none of the 1 images of this list was found" },
        { "train.txt", "a.jpg\nb.jpg\n", 0, 0,
          "train.txt: none of the 2 images of this list was found; the first is 'a.jpg'" },
        { "train.txt", missing, 0, 0,
          "train.txt: none of the 1000 images checked (this list has 2000) was found; the first is 'a." },
        { "train.txt", "images/1.round.jpg\na.jpg\nb.jpg\n", 0, 0,
          "train.txt: 2 of the 3 images of this list are missing or empty; the first is 'a.jpg'" },
        { "train.txt", "images/1.round.jpg\na.jpg\nb.jpg\n", 1, 0,
          "train.txt: 2 of the 3 images of this list are missing or empty; the first is 'a.jpg'" },
        { "train.txt", "images/1.round.jpg\r\nimages/2.square.jpg\r\n", 0, 0,
          "train.txt:1: image 'images/1.round.jpg' was not found: the line ends in a carriage return: write "
          "the list with Unix line ends" },
        { "train.txt", "images/1.round.jpg\nimages/2.square.jpg\r\n", 1, 0,
          "train.txt:2: image 'images/2.square.jpg' was not found: the line ends" },
        { "train.txt", "images/1.round.jpg\nimages/2.square.jpg \n", 0, 0,
          "train.txt:2: image 'images/2.square.jpg ' was not found: the line ends in a blank: remove it" },
        { "train.txt", "images/1.round.jpg\nimages\\2.square.jpg\n", 1, 0,
          "train.txt:2: image 'images\\2.square.jpg' was not found: its path has backslashes: write it "
          "with /" },
        { "train.txt", "\xef\xbb\xbfimages/1.round.jpg\nimages/2.square.jpg\n", 0, 0,
          "train.txt:1: image '\xef\xbb\xbfimages/1.round.jpg' was not found: the list begins with a byte "
          "order mark: write it as UTF-8 without one" },
        { "my.data", "\xef\xbb\xbf" "classes=2\ntrain=train.txt\nbackup=.\n", 0, 0,
          "my.data:1: the file begins with a byte order mark; allowed: UTF-8 without one" },
        { "train.txt", "1.webp\n", 0, 0,
          "1.webp: Darknet would read this image as its own label file, because it replaces only these image "
          "endings by .txt: .jpg, .png, .JPG, .JPEG; rename the image" },
        { "train.txt", "images/5.away.jpg\nimages/6.empty.jpg\n", 0, 0,
          "train.txt: none of the 2 images has a label that overlaps it: there is nothing to learn; the last "
          "label file read was labels/6.empty.txt" },
        { "train.txt", "images/7.round.square.jpg\n", 0, 0,
          "labels/7.round.square.txt: cannot read this label file: No such file" },
        { "labels/2.square.txt", "0 .5 .5 .2 .2\n2 .5 .5 .2 .2\n", 0, 1,
          "labels/2.square.txt:2: label '2 .5 .5 .2 .2' has a class" },
        { "labels/4.square.txt", "0 .5 .5 inf .2\n", 0, 1,
          "labels/4.square.txt:1: label '0 .5 .5 inf .2' holds inf or NaN" },
        { "my.names", "round\n", 1, 0, "my.names: holds 1 labels, but my.data has classes = 2" },
        { "my.names", "round\n\n", 1, 0, "my.names:2: this line is blank" },
        { "my.names", "cat\ndog\n", 1, 0, "train.txt: none of the 3 paths of this list contains exactly" },
        { "train.txt", "images/7.round.square.jpg\n", 1, 0,
          "train.txt: none of the 1 paths of this list contains exactly one of the 2 labels, but "
          "Darknet takes an image's class from the label in its path; the last path contains 2: "
          "'images/7.round.square.jpg'" },
        { "train.txt", unclear, 1, 0,
          "train.txt: none of the 1000 paths checked (this list has 1500) contains exactly one of the" } };
    amp_error error;
    put_file("1.webp", "RIFF");
    for (size_t i = 0; i < COUNT(cases); i++) {
        small_set();
        put_file(cases[i].file, cases[i].text);
        scanned(cases[i].classifier, 2, AMP_BAD_CONFIG, &error);
        if (!strstr(error.message, cases[i].expected))
            fail_msg("no '%s' in: %s", cases[i].expected, error.message);
        at_start(cases[i].classifier, 2, cases[i].starts ? NULL : cases[i].expected);
    }
    for (int given = 0; given < 2; given++) {
        const char *expected = given ? "my.data: the network has 3 classes, but the .data file has classes = "
                                       "2; they must be equal"
            : "classes = 2, Darknet's default; they must be equal";
        small_set();
        if (!given) put_file("my.data", "train=train.txt\nvalid=valid.txt\nlabels=my.names\nbackup=.\n");
        scanned(1, 3, AMP_BAD_CONFIG, &error);
        assert_non_null(strstr(error.message, expected));
        at_start(1, 3, expected);
    }
    unlink("labels/1.round.txt");
    scanned(0, 2, AMP_BAD_CONFIG, &error);
    assert_non_null(strstr(error.message, "labels/1.round.txt: cannot read this label file"));
}

/* ---- weights ---- */

/* One section of every kind that has weights, but local, which has no place in a training. */
static const char EVERY_KIND[] =
    "[net]\nbatch=1\nheight=8\nwidth=8\nchannels=3\ntime_steps=1\n"
    "[convolutional]\nbatch_normalize=1\nfilters=4\nsize=3\nstride=1\npad=1\n"
    "[convolutional]\nfilters=6\ngroups=2\nsize=1\nstride=1\n"
    "[local]\nfilters=2\nsize=3\nstride=1\npad=1\n"
    "[batchnorm]\n"
    "[deconvolutional]\nfilters=2\nsize=2\nstride=2\nbatch_normalize=1\n"
    "[crnn]\nbatch_normalize=1\nhidden_filters=2\noutput_filters=3\n"
    "[connected]\noutput=6\nbatch_normalize=1\n"
    "[rnn]\noutput=5\nbatch_normalize=1\n"
    "[lstm]\noutput=4\nbatch_normalize=1\n"
    "[gru]\noutput=3\n"
    "[connected]\noutput=2\n[softmax]\n";

static network *network_of_every_kind(void)
{
    put_file("every.cfg", EVERY_KIND);
    return parse_network_cfg("every.cfg");
}

static void free_whole(network *net)
{
    free(net->workspace); /* free_network does not */
    free_network(net);
}

static long file_size(const char *name)
{
    struct stat status;
    assert_int_equal(stat(name, &status), 0);
    return (long)status.st_size;
}

/* Darknet's own writer says how long a file of the first n layers is. */
TEST(a_layer_reads_as_many_bytes_as_its_writer_writes)
{
    network *net = network_of_every_kind();
    save_weights_upto(net, "upto.weights", 0);
    long before = file_size("upto.weights");
    for (int i = 0; i < net->n; i++) {
        save_weights_upto(net, "upto.weights", i + 1);
        long now = file_size("upto.weights");
        if ((size_t)(now - before) != amp_fork_weights_bytes(net, i))
            fail_msg("layer %d: %ld bytes written, %zu expected", i, now - before,
                     amp_fork_weights_bytes(net, i));
        before = now;
    }
    free_whole(net);
}

TEST(weights_end_where_a_layer_does)
{
    amp_error error;
    int held;
    network *net = network_of_every_kind();
    save_weights_upto(net, "my.weights", 2);
    const long two = file_size("my.weights");
    save_weights(net, "my.weights");
    const long whole = file_size("my.weights");
    const int all = net->n;
    /* `cutoff` layers are wanted of a file of `bytes`: it holds `held`, or is refused. */
    const struct { long bytes; int cutoff, held; const char *expected; } files[] = {
        { whole, all, all, NULL }, { two, all, 2, NULL }, { 20, all, 0, NULL }, { whole + 4, 2, all, NULL },
        { two - 4, all, 0, "my.weights: ends in the middle of layer 1, which lacks 4 of its" },
        { whole + 4, all, 0, "my.weights: 4 bytes longer than what this network's" },
        { 13, all, 0, "my.weights: 13 bytes are too few" },
        { 0, all, 0, "my.weights: 0 bytes are too few" } };
    for (size_t i = 0; i < COUNT(files); i++) {
        save_weights(net, "my.weights");
        assert_int_equal(truncate("my.weights", files[i].bytes), 0);
        amp_status status = amp_check_weights_size(net, "my.weights", 0, files[i].cutoff, &held, &error);
        if (status != (files[i].expected ? AMP_BAD_CONFIG : AMP_OK))
            fail_msg("%ld bytes: status %d", files[i].bytes, status);
        if (!files[i].expected) assert_int_equal(held, files[i].held);
        else if (!strstr(error.message, files[i].expected))
            fail_msg("no '%s' in: %s", files[i].expected, error.message);
    }
    assert_int_equal(amp_check_weights_size(net, "nowhere.weights", 0, all, &held, &error), AMP_BAD_CONFIG);
    assert_non_null(strstr(error.message, "nowhere.weights: cannot read these weights: No such file"));
    assert_int_equal(amp_check_weights_size(net, "images", 0, all, &held, &error), AMP_BAD_CONFIG);
    free_whole(net);
}

TEST(a_negative_variance_gives_other_weights_away)
{
    amp_error error;
    network *net = network_of_every_kind();
    assert_int_equal(amp_check_weights_sense(net, "my.weights", &error), AMP_OK);
    net->layers[6].rolling_variance[3] = -.01f;
    assert_int_equal(amp_check_weights_sense(net, "my.weights", &error), AMP_BAD_CONFIG);
    assert_non_null(strstr(error.message, "my.weights: layer 6 gets a rolling variance of -0.01"));
    free_whole(net);
}

int main(void) { return run_listed_tests("tests", enter_with_folders, leave_folder); }
