/* The report's folder: the settings of its comparison, and a lock, so that only one program works in it.
 *
 *     DIR/comparison.txt     the settings; with other settings the folder is refused
 *     DIR/runs/DTYPE-seedS/  one training: compare_runs.c
 *     DIR/report.html, report.json, report.csv
 *
 * Dtypes and seeds are not among the settings, so that more of them can be added. */
#define _XOPEN_SOURCE 700 /* nftw */
#include "comparison.h"

#include "../../files/checksum.h"

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

/* Refuses names that Darknet cannot use: it drops every blank in a line of a .data file, and has 256 bytes
 * for names of .weights files. */
static amp_status check_name(const amp_compare *compare, amp_error *error)
{
    enum { DARKNETS_ROOM = 256,
           LONGEST_RUN = sizeof "/runs/stock-seed4294967295/backup/_1000000000.weights.amp.new" };
    size_t length = strlen(compare->folder) + strlen(compare->base) + LONGEST_RUN;
    if (strpbrk(compare->folder, " \t\r\n"))
        return amp_fail(error, AMP_BAD_CONFIG, "-report %s: Darknet cannot find a folder with a blank in its "
                        "name", compare->folder);
    if (length > DARKNETS_ROOM)
        return amp_fail(error, AMP_BAD_CONFIG, "-report %.80s...: Darknet has room for a name of %d bytes, "
                                               "but this needs %zu; use a shorter one, or one relative to "
                                               "the current folder",
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

/* Lists the lines of comparison.txt. The machine and its number of threads are among them: if a training
 * continued on another machine, its speed and its weights would be those of neither. */
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

/* Fails unless the file has all of these lines. */
static amp_status compare_settings(const char *file, const amp_lines *now, const amp_compare *compare,
                                   amp_error *error)
{
    amp_lines there = { 0 };
    amp_status status = amp_lines_read(file, "what this folder compares", &there, error);
    for (size_t k = 0; status == AMP_OK && k < now->count; k++) {
        size_t i = 0;
        while (i < there.count && strcmp(there.line[i], now->line[k])) i++;
        if (i == there.count)
            status = amp_fail(error, AMP_BAD_CONFIG, "%s: the comparison in this folder was made with other "
                                                     "settings, not with %.400s; choose another folder with "
                                                     "-report, or remove this one", compare->folder,
                                                     now->line[k]);
    }
    amp_lines_free(&there);
    return status;
}

static amp_status write_settings(const char *file, const amp_lines *settings, amp_error *error)
{
    amp_output out;
    AMP_TRY(amp_output_begin(file, &out, error));
    fprintf(out.stream, "# darknet amp compare continues in this folder only with the same settings; of "
            "files, their checksums.\n");
    for (size_t k = 0; k < settings->count; k++) fprintf(out.stream, "%s\n", settings->line[k]);
    return amp_output_end(&out, AMP_OK, error);
}

/* ---- the folder ---- */

amp_status amp_compare_make_folder(const char *path, int *made, amp_error *error)
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
    AMP_TRY(amp_compare_make_folder(runs, &compare->made_runs, error));
    if (!compare->made_runs)
        return amp_fail(error, AMP_BAD_CONFIG, "%s: it exists already, but %s, which would name its "
                                               "settings, is missing; choose another folder with -report, or "
                                               "remove it", runs, file);
    return write_settings(file, now, error);
}

static amp_status open_folder(amp_compare *compare, const amp_lines *now, amp_error *error)
{
    char file[AMP_COMPARE_PATH];
    AMP_TRY(amp_compare_make_folder(compare->folder, &compare->made_folder, error));
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
    if (compare->made_folder) rmdir(compare->folder); /* fails if it has other files */
}

void amp_compare_close(amp_compare *compare)
{
    if (compare->lock >= 0) close(compare->lock);
    compare->lock = -1;
}
