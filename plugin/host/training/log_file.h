/* A CSV file with a header line, to which a training adds rows: the log of its steps (-log) or the log of
 * what -map measures.
 *
 * A training that resumes from a backup first removes the rows of later steps. */
#pragma once

#include "../../tensor/status.h"

#include <sys/types.h>

typedef struct amp_log_file {
    char *name;
    int descriptor;  /* descriptor of the open, locked file; -1: no file is open */
    int regular;     /* 1: a regular file, whose rows can be read and removed; 0: a pipe or a device */
    int failing;     /* 1: writing a row has failed, and a message was printed */
    off_t end;       /* the offset in bytes at which the last complete row ends */
} amp_log_file;

/* Callbacks for an existing file. row: called for each complete row, in order, without its newline; a status
 * other than AMP_OK rejects the file. keep: called last; returns how many rows, from the first, stay. */
typedef struct amp_log_reader {
    void *context;
    amp_status (*row)(void *context, const char *text, amp_error *);
    size_t (*keep)(void *context);
} amp_log_reader;

/* Opens or creates the file. what: its kind, for messages. *dropped: the number of removed rows.
 * AMP_BAD_CONFIG: the existing file is of another kind and is left unchanged. AMP_IO_FAILED: it cannot be
 * written, or another program is writing it. After an error there is nothing to close. */
amp_status amp_log_file_open(amp_log_file *, const char *name, const char *what, const char *header,
                             const amp_log_reader *, size_t *dropped, amp_error *);

/* Writes a row without buffering. If that fails, prints one line on stderr; rows are then lost until one can
 * be written again. */
void amp_log_file_add(amp_log_file *, const char *row);

void amp_log_file_close(amp_log_file *); /* does nothing if no file is open */
