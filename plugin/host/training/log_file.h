/* A file that training adds a row to now and then, CSV with a header line: the log of its steps, and
 * of what -map measures.
 *
 * A training that goes on from a backup goes on with its file as well: rows of steps that the
 * backup does not know are dropped first, so that however often a training was killed, its file
 * reads as if it had not been. */
#pragma once

#include "../../tensor/status.h"

#include <sys/types.h>

typedef struct amp_log_file {
    char *name;
    int descriptor;  /* of the open file, locked; -1: none */
    int regular;     /* else a pipe or a device: nothing was read or can be cut */
    int failing;     /* a row could not be written, which was said: once, or other rows would have it said
                        again and again */
    off_t end;       /* behind the last whole row */
} amp_log_file;

/* Who reads the rows that are there. row: each whole row in its order, without its newline; what is not
 * AMP_OK refuses the file.
 * keep: after the last, how many of them stay. */
typedef struct amp_log_reader {
    void *context;
    amp_status (*row)(void *context, const char *text, amp_error *);
    size_t (*keep)(void *context);
} amp_log_reader;

/* Opens or makes the file. what: "training log". AMP_BAD_CONFIG: something else is there under this
 * name; it stays as it is.
 * AMP_IO_FAILED: it cannot be written, or another program writes it now. *dropped: rows that did not stay. On
 * failure there is nothing to close. */
amp_status amp_log_file_open(amp_log_file *, const char *name, const char *what, const char *header,
                             const amp_log_reader *, size_t *dropped, amp_error *);

/* Adds a row, in the system's hands when this returns. A full disk is one line on stderr, and rows are left
 * out until there is room. */
void amp_log_file_add(amp_log_file *, const char *row);

void amp_log_file_close(amp_log_file *); /* one that is not open is fine */
