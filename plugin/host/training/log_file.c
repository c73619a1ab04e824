/* Opens a log, keeps the rows of an existing one that are still valid, and adds rows: see log_file.h. */
#define _DEFAULT_SOURCE /* flock */
#include "log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../program/failure.h"

static amp_status cannot(const char *what, const char *name, amp_error *error)
{
    return amp_fail(error, AMP_IO_FAILED, "cannot %s %.500s: %s", what, name, strerror(errno));
}

/* Writes the whole line or, if the disk is full, nothing. Returns 0 if it was not written. */
static int add_line(amp_log_file *f, const char *text)
{
    int length = (int)strlen(text) + 1;
    if (dprintf(f->descriptor, "%s\n", text) == length) {
        f->end += length;
        return 1;
    }
    int why = errno;
    if (f->regular && ftruncate(f->descriptor, f->end) == 0) lseek(f->descriptor, f->end, SEEK_SET);
    errno = why;
    return 0;
}

/* ---- existing rows ---- */

/* Returns a line without its newline, or NULL at the end. An incomplete last line is ignored. */
static char *next_line(FILE *in, char **line, size_t *room)
{
    ssize_t length = getline(line, room, in);
    if (length < 1 || (*line)[length - 1] != '\n') return NULL;
    (*line)[length - 1] = 0;
    return strlen(*line) == (size_t)length - 1 ? *line : NULL;
}

static amp_status mismatch(const amp_log_file *f, const char *what, const char *header, amp_error *error)
{
    return amp_fail(error, AMP_BAD_CONFIG,
                    "%.300s exists and is not a %s (its first line is not %s); it is left unchanged: move "
                    "it, or use another name", f->name, what, header);
}

/* Reads the header and all rows. (*ends)[n] is the offset at which row n (from 1) ends, and (*ends)[0] the
 * offset at which the header ends. The caller owns the array. */
static amp_status read_rows(amp_log_file *f, FILE *in, const char *what, const char *header,
                            const amp_log_reader *reader, off_t **ends, size_t *rows, amp_error *error)
{
    char *line = NULL;
    size_t room = 0, places = 0;
    amp_error reason;
    amp_status status = AMP_OK;
    if (!next_line(in, &line, &room) || strcmp(line, header)) status = mismatch(f, what, header, error);
    for (*rows = 0; status == AMP_OK; ++*rows) {
        *ends = amp_grow(*ends, *rows, &places, sizeof **ends);
        (*ends)[*rows] = ftello(in);
        if (!next_line(in, &line, &room)) break;
        if (reader->row(reader->context, line, &reason) != AMP_OK)
            status = amp_fail(error, AMP_BAD_CONFIG,
                              "%.300s:%zu: %.500s; it is left unchanged: fix or move it, or use "
                              "another name", f->name, *rows + 2, reason.message);
    }
    free(line);
    return status;
}

static amp_status keep_rows(amp_log_file *f, const char *what, const char *header,
                            const amp_log_reader *reader, size_t *dropped, amp_error *error)
{
    size_t rows = 0;
    off_t *ends = NULL;
    int copy = dup(f->descriptor);
    FILE *in = copy >= 0 ? fdopen(copy, "r") : NULL;
    if (!in) {
        amp_status status = cannot("read", f->name, error);
        if (copy >= 0) close(copy);
        return status;
    }
    amp_status status = read_rows(f, in, what, header, reader, &ends, &rows, error);
    if (status == AMP_OK && ferror(in)) status = cannot("read", f->name, error);
    size_t kept = status == AMP_OK ? reader->keep(reader->context) : 0;
    if (status == AMP_OK) f->end = ends[kept];
    free(ends);
    fclose(in);
    *dropped = rows - kept;
    if (status == AMP_OK && (ftruncate(f->descriptor, f->end) != 0
                             || lseek(f->descriptor, f->end, SEEK_SET) < 0))
        status = cannot("write", f->name, error);
    return status;
}

/* ---- opening ---- */

static amp_status take(amp_log_file *f, const char *what, const char *header, const amp_log_reader *reader,
                       size_t *dropped, amp_error *error)
{
    struct stat found;
    if (fstat(f->descriptor, &found) != 0) return cannot("read", f->name, error);
    f->regular = S_ISREG(found.st_mode);
    if (f->regular && flock(f->descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return amp_fail(error, AMP_IO_FAILED, "cannot write %.500s: another training is writing it", f->name);
    if (f->regular && found.st_size > 0) return keep_rows(f, what, header, reader, dropped, error);
    return add_line(f, header) ? AMP_OK : cannot("write", f->name, error);
}

amp_status amp_log_file_open(amp_log_file *f, const char *name, const char *what, const char *header,
                             const amp_log_reader *reader, size_t *dropped, amp_error *error)
{
    *dropped = 0;
    *f = (amp_log_file){ .name = amp_allocated(strdup(name)), .descriptor = -1 };
    f->descriptor = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    /* some files can only be written, for example a device */
    if (f->descriptor < 0 && errno == EACCES) f->descriptor = open(name, O_WRONLY | O_CLOEXEC);
    amp_status status = f->descriptor < 0 ? cannot("write", name, error)
        : take(f, what, header, reader, dropped, error);
    if (status != AMP_OK) amp_log_file_close(f);
    return status;
}

void amp_log_file_add(amp_log_file *f, const char *row)
{
    int failed = f->descriptor >= 0 && !add_line(f, row);
    if (failed && !f->failing) {
        int why = errno;
        fflush(stdout);
        fprintf(stderr, "log: cannot write %s: %s; training continues, and rows are left out until it can be "
                "written again\n", f->name, strerror(why));
    }
    f->failing |= failed;
}

void amp_log_file_close(amp_log_file *f)
{
    if (f->descriptor >= 0 && close(f->descriptor) != 0)
        fprintf(stderr, "log: cannot write %s: %s; its last rows may be missing\n", f->name, strerror(errno));
    free(f->name);
    *f = (amp_log_file){ .descriptor = -1 };
}
