/* The report's folder, locked so that only one program works in it.
 *
 *     DIR/comparison.txt     the settings; a call with other settings rejects the folder
 *     DIR/runs/DTYPE-seedS/  one training: copies of the .cfg and the .data file, with which it can be
 *                            repeated by hand; the output of its programs; steps.csv; backup/; and result.txt
 *     DIR/report.html, report.json, report.csv
 *
 * Dtypes and seeds are not among the settings, so that a later call can add some. result.txt:
 *
 *     state done
 *     score mAP@0.5 0.973
 *     score mAP@0.5:0.95 0.612 */
#define _XOPEN_SOURCE 700 /* nftw */
#include "comparison.h"

#include "../cfg_copy.h"
#include "../../files/checksum.h"
#include "../../host/program/cfg.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- names ---- */

static void name_in(const amp_compare *compare, const char *name, char path[AMP_COMPARE_PATH])
{
    snprintf(path, AMP_COMPARE_PATH, "%s/%s", compare->folder, name);
}

/* Rejects names that Darknet cannot use: Darknet removes every blank from a line of a .data file, and has 256
 * bytes for the name of a .weights file. */
static amp_status check_name(const amp_compare *compare, amp_error *error)
{
    enum { DARKNETS_ROOM = 256,
           LONGEST_RUN = sizeof "/runs/stock-seed4294967295/backup/_1000000000.weights.amp.new" };
    size_t length = strlen(compare->folder) + strlen(compare->base) + LONGEST_RUN;
    if (strpbrk(compare->folder, " \t\r\n"))
        return amp_fail(error, AMP_BAD_CONFIG, "-report %s: Darknet cannot find a folder with a blank in its "
                        "name", compare->folder);
    if (length > DARKNETS_ROOM)
        return amp_fail(error, AMP_BAD_CONFIG, "-report %.80s...: Darknet's paths have at most %d bytes, but "
                        "those in this folder need %zu; use a shorter path, or a path relative to the "
                        "current folder",
                        compare->folder, DARKNETS_ROOM, length);
    return AMP_OK;
}

/* ---- settings ---- */

static amp_status add_file(amp_lines *settings, const char *what, const char *file, amp_error *error)
{
    uint64_t sum;
    AMP_TRY(amp_file_checksum(file, &sum, error));
    amp_lines_add(settings, "%s: checksum %016" PRIx64, what, sum);
    return AMP_OK;
}

/* Lists the lines of comparison.txt. The machine and its threads are among them: a training that continued on
 * another machine would have a mixed speed, and weights that neither machine alone would give. */
static amp_status list_settings(const amp_comparison *c, const amp_data_file *data, amp_lines *settings,
                                amp_error *error)
{
    AMP_TRY(add_file(settings, "the .data file", c->data, error));
    AMP_TRY(add_file(settings, "the list of training images", data->train, error));
    AMP_TRY(add_file(settings, "the list of validation images", data->valid, error));
    AMP_TRY(add_file(settings, "the .cfg file", c->cfg, error));
    if (c->weights) AMP_TRY(add_file(settings, "the weights to start from", c->weights, error));
    else amp_lines_add(settings, "random weights to start from");
    amp_lines_add(settings, "-iters %ld", c->iterations);
    amp_lines_add(settings, "the machine: %s", c->machine);
    return AMP_OK;
}

/* Compares the settings in the file with `now`, the settings of this call. AMP_BAD_CONFIG: the file lacks a
 * line of `now`. */
static amp_status compare_settings(const char *file, const amp_lines *now, const amp_compare *compare,
                                   amp_error *error)
{
    amp_lines there = { 0 };
    amp_status status = amp_lines_read(file, "what this folder compares", &there, error);
    for (size_t k = 0; status == AMP_OK && k < now->count; k++) {
        size_t i = 0;
        while (i < there.count && strcmp(there.line[i], now->line[k])) i++;
        if (i == there.count)
            status = amp_fail(error, AMP_BAD_CONFIG, "%s: the comparison in this folder was not made with "
                              "%.400s; choose another folder with -report, or remove this one",
                              compare->folder, now->line[k]);
    }
    amp_lines_free(&there);
    return status;
}

static amp_status write_settings(const char *file, const amp_lines *settings, amp_error *error)
{
    amp_output out;
    AMP_TRY(amp_output_begin(file, &out, error));
    fprintf(out.stream, "# darknet amp compare continues in this folder only with the same settings; files "
            "are compared by checksum.\n");
    for (size_t k = 0; k < settings->count; k++) fprintf(out.stream, "%s\n", settings->line[k]);
    return amp_output_end(&out, AMP_OK, error);
}

/* ---- the folder ---- */

/* Makes a folder unless it exists. *made (may be NULL): whether it was made now. */
static amp_status make_folder(const char *path, int *made, amp_error *error)
{
    int failed = mkdir(path, 0777) != 0;
    if (made) *made = !failed;
    if (!failed || errno == EEXIST) return AMP_OK;
    return amp_fail(error, AMP_IO_FAILED, "%s: cannot make the folder: %s", path, strerror(errno));
}

/* Locks the folder itself, so that no lock file is left behind. */
static amp_status lock_folder(amp_compare *compare, amp_error *error)
{
    compare->lock = open(compare->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (compare->lock < 0)
        return amp_fail(error, AMP_IO_FAILED, "%s: cannot use the folder: %s", compare->folder,
                        strerror(errno));
    if (!flock(compare->lock, LOCK_EX | LOCK_NB)) return AMP_OK;
    if (errno == EWOULDBLOCK)
        return amp_fail(error, AMP_IO_FAILED, "%s: another comparison is running in this folder",
                        compare->folder);
    return AMP_OK; /* the file system has no locks */
}

static amp_status begin_folder(amp_compare *compare, const char *file, const amp_lines *now, amp_error *error)
{
    char runs[AMP_COMPARE_PATH];
    name_in(compare, "runs", runs);
    AMP_TRY(make_folder(runs, &compare->made_runs, error));
    if (!compare->made_runs)
        return amp_fail(error, AMP_BAD_CONFIG, "%s: this folder exists, but %s, which records its settings, "
                        "is missing; choose another folder with -report, or remove this one", runs, file);
    return write_settings(file, now, error);
}

static amp_status open_folder(amp_compare *compare, const amp_lines *now, amp_error *error)
{
    char file[AMP_COMPARE_PATH];
    AMP_TRY(make_folder(compare->folder, &compare->made_folder, error));
    AMP_TRY(lock_folder(compare, error));
    name_in(compare, "comparison.txt", file);
    if (access(compare->folder, W_OK))
        return amp_fail(error, AMP_IO_FAILED, "%s: the report's folder is not writable: %s", compare->folder,
                        strerror(errno));
    return access(file, F_OK) ? begin_folder(compare, file, now, error)
                              : compare_settings(file, now, compare, error);
}

amp_status amp_compare_open(amp_compare *compare, amp_error *error)
{
    amp_lines now = { 0 };
    amp_data_file data;
    AMP_TRY(check_name(compare, error));
    amp_status status = amp_data_file_read(compare->result.data, &data, error);
    if (status == AMP_OK) status = list_settings(&compare->result, &data, &now, error);
    if (status == AMP_OK) status = open_folder(compare, &now, error);
    if (status == AMP_OK) snprintf(compare->list, sizeof compare->list, "%s", amp_file_name(data.train));
    amp_data_file_free(&data);
    amp_lines_free(&now);
    return status;
}

/* ---- the end ---- */

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    return remove(path);
}

void amp_compare_undo(amp_compare *compare)
{
    char path[AMP_COMPARE_PATH];
    if (compare->made_runs) {
        name_in(compare, "runs", path);
        nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        name_in(compare, "comparison.txt", path);
        unlink(path);
    }
    if (compare->made_folder) rmdir(compare->folder); /* fails, as it should, if other files are in it */
}

/* ---- a training: names ---- */

__attribute__((format(printf, 2, 3)))
static void name_it(char path[AMP_COMPARE_PATH], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(path, AMP_COMPARE_PATH, format, args);
    va_end(args);
}

void amp_compare_files(const amp_compare *compare, const amp_run *run, amp_run_files *f)
{
    const char *folder = f->folder, *base = compare->base;
    /* the ending that train_detector or train_classifier adds to the name of the final weights */
    const char *end = compare->result.kind == AMP_COMPARED_DETECTOR ? "_final" : amp_fork_classifier_end;
    name_it(f->folder, "%s/runs/%s-seed%u", compare->folder, run->dtype, run->seed);
    name_it(f->cfg, "%s/%s.cfg", folder, base);
    name_it(f->data, "%s/run.data", folder);
    name_it(f->backup, "%s/backup", folder);
    name_it(f->saved, "%s/backup/%s.backup", folder, base);
    name_it(f->weights, "%s/backup/%s%s.weights", folder, base, end);
    name_it(f->steps, "%s/steps.csv", folder);
    name_it(f->train_log, "%s/train.log", folder);
    name_it(f->valid_log, "%s/valid.log", folder);
    name_it(f->result, "%s/result.txt", folder);
}

/* ---- a training's steps ---- */

void amp_run_add_row(amp_run *run, const amp_log_row *row)
{
    run->rows = amp_grow(run->rows, run->count, &run->room, sizeof *row);
    run->rows[run->count++] = *row;
}

int amp_run_is_over(const amp_compare *compare, const amp_run *run)
{
    return run->count && run->rows[run->count - 1].iteration >= compare->result.iterations;
}

amp_status amp_run_read_steps(const amp_compare *compare, amp_run *run, amp_error *error)
{
    amp_run_files files;
    amp_log_rows rows = { 0 };
    amp_compare_files(compare, run, &files);
    run->count = 0;
    if (access(files.steps, F_OK)) return AMP_OK;
    amp_status status = amp_log_rows_read(files.steps, &rows, error);
    for (size_t i = 0; i < rows.count; i++) amp_run_add_row(run, &rows.row[i]);
    free(rows.row);
    return status;
}

/* ---- a training's result ---- */

amp_status amp_run_keep(const amp_compare *compare, const amp_run *run, amp_error *error)
{
    amp_run_files files;
    amp_output out;
    amp_compare_files(compare, run, &files);
    AMP_TRY(amp_output_begin(files.result, &out, error));
    fprintf(out.stream, "state %s\n", amp_training_state_names[run->state]);
    for (int k = 0; k < 2 && run->state == AMP_RUN_DONE; k++)
        fprintf(out.stream, "score %s %.17g\n", amp_score_name(&compare->result, k), run->score[k]);
    if (run->state == AMP_RUN_FAILED) fprintf(out.stream, "failure %s\n", run->failure);
    return amp_output_end(&out, AMP_OK, error);
}

static void read_result(const amp_lines *lines, amp_run *run)
{
    int scores = 0;
    for (size_t i = 0; i < lines->count; i++) {
        const char *line = lines->line[i];
        for (amp_training_state state = AMP_RUN_TRAINED; state <= AMP_RUN_FAILED; state++)
            if (!strncmp(line, "state ", 6) && !strcmp(line + 6, amp_training_state_names[state]))
                run->state = state;
        if (scores < 2 && sscanf(line, "score %*s %lf", &run->score[scores]) == 1) scores++;
        if (!strncmp(line, "failure ", 8)) snprintf(run->failure, sizeof run->failure, "%s", line + 8);
    }
    if (run->state == AMP_RUN_DONE && scores != 2) run->state = AMP_RUN_TRAINED;
}

static amp_status read_run(const amp_compare *compare, amp_run *run, amp_error *error)
{
    amp_run_files files;
    amp_lines lines = { 0 };
    amp_compare_files(compare, run, &files);
    run->state = AMP_RUN_WAITING;
    AMP_TRY(amp_run_read_steps(compare, run, error));
    if (run->count) run->state = AMP_RUN_TRAINING;
    if (access(files.result, F_OK)) return AMP_OK;
    amp_status status = amp_lines_read(files.result, "the result of a training", &lines, error);
    if (status == AMP_OK) read_result(&lines, run);
    amp_lines_free(&lines);
    int there = !access(files.weights, R_OK);
    if (amp_run_is_trained(run) && !there) run->state = run->count ? AMP_RUN_TRAINING : AMP_RUN_WAITING;
    if (run->state == AMP_RUN_FAILED && there && amp_run_is_over(compare, run))
        run->state = AMP_RUN_TRAINED; /* only its validation failed */
    return status;
}

amp_status amp_runs_read(amp_compare *compare, int first_seed, amp_error *error)
{
    amp_comparison *c = &compare->result;
    for (int d = 0; d < c->dtype_count; d++)
        for (int s = first_seed; s < c->seed_count; s++)
            AMP_TRY(read_run(compare, amp_comparison_run(c, d, s), error));
    return AMP_OK;
}

/* ---- before a training ---- */

static amp_status copy_data(const char *from, const amp_run_files *files, amp_error *error)
{
    cfg_document *data;
    amp_output out;
    AMP_TRY(amp_data_document(from, &data, error));
    amp_status status = amp_output_begin(files->data, &out, error);
    if (status == AMP_OK) {
        fprintf(out.stream, "backup=%s\n", files->backup);
        for (const cfg_item *line = data->items; line < data->items + data->count; line++)
            if (line->kind == CFG_OPTION && strcmp(line->text, "backup"))
                fwrite(line->raw, 1, line->raw_size, out.stream);
        status = amp_output_end(&out, AMP_OK, error);
    }
    amp_document_give_back(data);
    return status;
}

/* With cache=disk all trainings of the comparison share one cache of images, the file LIST.images in runs/.
 * The first training creates this file. In each run's backup folder, the cache's name is a link to it. */
static void link_cache(const amp_compare *compare, const amp_run_files *files)
{
    char target[sizeof compare->list + 16], name[AMP_COMPARE_PATH + sizeof compare->list + 16];
    snprintf(target, sizeof target, "../../%s.images", compare->list);
    snprintf(name, sizeof name, "%s/%s.images", files->backup, compare->list);
    if (symlink(target, name)) return; /* the link exists already, or links cannot be made and each run has
                                          its own cache */
}

/* Whether a run can resume exactly. A run of stock cannot: Darknet saves neither momentum nor the images'
 * order. */
static int can_resume(const amp_run *run, const amp_run_files *files)
{
    char sidecar[AMP_COMPARE_PATH + 8];
    snprintf(sidecar, sizeof sidecar, "%s.amp", files->saved);
    return strcmp(run->dtype, "stock") && !access(files->saved, R_OK) && !access(sidecar, R_OK);
}

static void remove_with_sidecar(const char *weights)
{
    char sidecar[AMP_COMPARE_PATH + 8];
    snprintf(sidecar, sizeof sidecar, "%s.amp", weights);
    unlink(weights);
    unlink(sidecar);
}

static void begin_anew(amp_run *run, const amp_run_files *files)
{
    remove_with_sidecar(files->saved);
    remove_with_sidecar(files->weights);
    unlink(files->steps);
    run->count = 0;
}

amp_status amp_run_prepare(const amp_compare *compare, amp_run *run, int *resumed, amp_error *error)
{
    const amp_comparison *c = &compare->result;
    const amp_cfg_change iterations = { "max_batches", (double)c->iterations };
    amp_run_files files;
    amp_compare_files(compare, run, &files);
    AMP_TRY(make_folder(files.folder, NULL, error));
    AMP_TRY(make_folder(files.backup, NULL, error));
    AMP_TRY(amp_cfg_copy(c->cfg, files.cfg, &iterations, 1, error));
    AMP_TRY(copy_data(c->data, &files, error));
    link_cache(compare, &files);
    unlink(files.result);
    *resumed = can_resume(run, &files);
    if (!*resumed) begin_anew(run, &files);
    run->failure[0] = 0;
    run->state = AMP_RUN_TRAINING;
    return AMP_OK;
}
