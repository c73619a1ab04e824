/* Replacing a file so that at any moment, whatever is killed, its name stands for the old content or for the
 * new, never for a part: write to a temporary name in the same folder, flush to the disk, rename.
 *
 *     amp_safe_file file;
 *     AMP_TRY(amp_safe_file_begin(name, &file, error));
 *     ... write to file.temporary ...
 *     status = written ? amp_safe_file_commit(&file, error) : ...;
 *     amp_safe_file_end(&file);
 *
 * The file keeps its permissions, and its owner where the system allows it; a symbolic link stays one, and
 * what it points to is replaced. A device or a FIFO cannot be replaced and is written directly. As with any
 * rename, hard links to the old file keep the old content, and the folder must be writable. */
#pragma once

#include "../tensor/status.h"

typedef struct amp_safe_file {
    char *target;    /* what name stands for, symbolic links followed */
    char *temporary; /* where to write: target.new, always the same name; target itself if direct */
    int direct;      /* no regular file: nothing to flush or rename */
    int pending;     /* the temporary file is ours to rename or to remove */
    int locked;      /* pending: its descriptor, which holds the lock */
} amp_safe_file;

/* Finds the names and touches nothing. AMP_IO_FAILED: a folder, or a circle of links. */
amp_status amp_safe_file_locate(const char *name, amp_safe_file *out, amp_error *);

/* The same, and makes an empty temporary file in place of one that an interrupted save left. AMP_IO_FAILED:
 * the target is write-protected, another program is saving it now, the temporary file cannot be made, or one
 * of the program's descriptors 0 to 2 is closed. After a failure there is nothing to end. */
amp_status amp_safe_file_begin(const char *name, amp_safe_file *out, amp_error *);

/* Whether somebody, this program included, has begun to save it and not ended. */
int amp_safe_file_busy(const amp_safe_file *);

/* Removes the temporary file that an interrupted save left, if there is one. AMP_IO_FAILED: somebody is
 * saving it now, or it cannot be removed. */
amp_status amp_safe_file_remove_leftover(const amp_safe_file *, amp_error *);

/* Flush the temporary file to the disk; then put it in place, which lasts through a power failure once it
 * returns. */
amp_status amp_safe_file_flush(const amp_safe_file *, amp_error *);
amp_status amp_safe_file_place(amp_safe_file *, amp_error *);
amp_status amp_safe_file_commit(amp_safe_file *, amp_error *); /* both */

/* The temporary file stays where it is, for the caller to put in place later. */
void amp_safe_file_leave(amp_safe_file *);

/* Removes the temporary file if it was not put in place, and frees the names. */
void amp_safe_file_end(amp_safe_file *);

/* Put `temporary` in the place of `target`, as amp_safe_file_place does. */
amp_status amp_replace_file(const char *temporary, const char *target, amp_error *);

/* Whether there is a file, or anything else, of this name; name_is_taken: or a link that leads to none. */
int amp_file_exists(const char *path);
int amp_name_is_taken(const char *path);
/* Whether two names stand for one file; whether the file at a was written after that at b. Both are 0 where
 * one of them is missing. */
int amp_is_same_file(const char *a, const char *b);
int amp_is_younger(const char *a, const char *b);
/* What follows the last slash of a path; all of it where there is none. */
const char *amp_file_name(const char *path);
