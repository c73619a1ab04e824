/* Replaces a file so that its name always refers to the complete old or the complete new content, even if the
 * program is killed: write to a temporary name in the same folder, flush to disk, rename.
 *
 *     amp_safe_file file;
 *     AMP_TRY(amp_safe_file_begin(name, &file, error));
 *     ... write to file.temporary ...
 *     status = written ? amp_safe_file_commit(&file, error) : ...;
 *     amp_safe_file_end(&file);
 *
 * The file keeps its permissions and its owner if the system allows it. A symbolic link stays a link, and its
 * target is replaced. A device or a FIFO cannot be replaced and is written directly. As with any rename,
 * hard links to the old file keep the old content, and the folder must be writable. */
#pragma once

#include "../tensor/status.h"

typedef struct amp_safe_file {
    char *target;    /* the file to replace: `name` after following symbolic links */
    char *temporary; /* where the caller writes: target.new, or target itself if direct is 1 */
    int direct;      /* 1: target is not a regular file, so nothing is flushed or renamed */
    int pending;     /* 1: the temporary file still has to be renamed or removed */
    int locked;      /* the descriptor that holds the lock on the temporary file; valid if pending is 1 */
} amp_safe_file;

/* Fills in the names, and does nothing else. AMP_IO_FAILED: `name` is a folder, or its links form a loop. */
amp_status amp_safe_file_locate(const char *name, amp_safe_file *out, amp_error *);

/* Fills in the names and creates an empty temporary file. Replaces the temporary file of an interrupted save.
 * AMP_IO_FAILED: amp_safe_file_locate fails, the target is write-protected, another program is saving it
 * now, the temporary file cannot be created, or one of the program's descriptors 0 to 2 is closed. After a
 * failure, amp_safe_file_end need not be called. */
amp_status amp_safe_file_begin(const char *name, amp_safe_file *out, amp_error *);

/* Whether any program, including this one, is saving the file now. */
int amp_safe_file_busy(const amp_safe_file *);

/* Removes an interrupted save's temporary file, if any. AMP_IO_FAILED: it is in use, or removing fails. */
amp_status amp_safe_file_remove_leftover(const amp_safe_file *, amp_error *);

/* flush: flushes the temporary file to disk. place: durably renames it to its target. commit: does both. */
amp_status amp_safe_file_flush(const amp_safe_file *, amp_error *);
amp_status amp_safe_file_place(amp_safe_file *, amp_error *);
amp_status amp_safe_file_commit(amp_safe_file *, amp_error *);

/* Releases the lock, and keeps the temporary file for a later rename. */
void amp_safe_file_leave(amp_safe_file *);

/* Removes the temporary file unless it was renamed into place, and frees the names. */
void amp_safe_file_end(amp_safe_file *);

/* Renames `temporary` to `target`, durably, like amp_safe_file_place. */
amp_status amp_replace_file(const char *temporary, const char *target, amp_error *);

/* Returns AMP_IO_FAILED, with the message "cannot write PATH: " and the text of the errno value `why`. */
amp_status amp_cannot_write(const char *path, int why, amp_error *);

/* Whether a file of any type has this name. For a dangling link, only amp_name_is_taken returns 1. */
int amp_file_exists(const char *path);
int amp_name_is_taken(const char *path);
/* amp_is_same_file: whether both names refer to one file. amp_is_younger: whether a was written after b. Both
 * return 0 if a file is missing. */
int amp_is_same_file(const char *a, const char *b);
int amp_is_younger(const char *a, const char *b);
/* The part of a path after its last slash, or the whole path. */
const char *amp_file_name(const char *path);
