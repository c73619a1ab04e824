/* A CSV file with a header line, to which a training adds rows: the log of its steps (-log) or the log of
 * what -map measures.
 *
 * A training that resumes from a backup also continues its CSV file. Rows of steps later than the backup are
 * removed first, so that the file reads as if the training had never been interrupted. */
#pragma once

#include "../../tensor/status.h"

#include <sys/types.h>

typedef struct amp_log_file {
    char *name;
    int descriptor;  /* of the open, locked file; -1: no file is open */
    int regular;     /* 1: a regular file, whose rows can be read and removed; 0: a pipe or a device */
    int failing;     /* 1: writing a row has failed, and the message about this was printed; it is not printed
                        again */
    off_t end;       /* the offset in bytes at which the last complete row ends */
} amp_log_file;

/* Callbacks for the rows of an existing file. row: called for each complete row, in order, without its
 * newline; a status other than AMP_OK rejects the file. keep: called after the last row; returns the number
 * of rows, from the first, that stay in the file. */
typedef struct amp_log_reader {
    void *context;
    amp_status (*row)(void *context, const char *text, amp_error *);
    size_t (*keep)(void *context);
} amp_log_reader;

/* Opens the file, or creates it. what: the file's kind for messages, for example "training log". *dropped:
 * the number of rows that were removed. AMP_BAD_CONFIG: the existing file is of another kind; it is left
 * unchanged. AMP_IO_FAILED: the file cannot be written, or another program is writing it. After an error
 * there is nothing to close. */
amp_status amp_log_file_open(amp_log_file *, const char *name, const char *what, const char *header,
                             const amp_log_reader *, size_t *dropped, amp_error *);

/* Writes a row without buffering. If that fails, one line on stderr says so, and rows are left out until one
 * can be written again. */
void amp_log_file_add(amp_log_file *, const char *row);

void amp_log_file_close(amp_log_file *); /* does nothing if no file is open */
