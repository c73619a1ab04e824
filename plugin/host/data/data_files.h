/* Reads .data files as Darknet does, but with errors that say what is wrong and where; and opens files. */
#pragma once

#include "../program/request.h"

#include <stddef.h>

/* Whether path is a FIFO, a device or a socket: reading one may hang or never reach an end. 0 for a folder,
 * because reading a folder just fails. */
int amp_is_device(const char *path);

/* Opens a file to read it; the caller closes it. NULL: it is missing, a folder or a device; then *error has
 * status AMP_BAD_CONFIG and a line that calls the file `what` ("the class names"), and errno is set. */
FILE *amp_open_to_read(const char *file, const char *what, amp_error *error);

/* Opens a file for reading and writing, or creates it, and locks it against other programs until it is
 * closed. flags: O_NOFOLLOW, or 0. Returns the descriptor; -1: the file cannot be opened or locked, and errno
 * says why. EWOULDBLOCK: another program held the lock in all `tries` tries, which are `milliseconds`
 * apart. */
int amp_open_locked(const char *name, int flags, int tries, int milliseconds);

/* Says why `file`, the last image that the calling thread has tried to read, cannot be read. The text is
 * valid until the thread reads another image. */
const char *amp_image_file_failure(const char *file);

typedef struct amp_data_file {
    char *name;                                    /* of the .data file itself */
    char *train, *valid, *names, *labels, *backup; /* NULL: the key is not given */
    char *difficult, *leaves, *tree;
    int classes;                                   /* 0: not given */
    /* a classifier's tag=1: labels come from files of their own */
    int tag;
    int cache;                                     /* where decoded images are kept: amp_cache_kind */
    double cache_scale;                            /* how far decoded images are reduced: see amp_reduction */
    char note[512];                                /* about keys given twice or misspelt; else empty */
} amp_data_file;

/* AMP_BAD_CONFIG: the file is missing, not a regular file or not text; it has a line without '='; a path has
 * blanks, which Darknet drops; a number is invalid; or the word for cache= is unknown. The caller frees *data
 * with amp_data_file_free, also after an error. */
amp_status amp_data_file_read(const char *name, amp_data_file *data, amp_error *error);
void amp_data_file_free(amp_data_file *data);

/* The file of class names: `names`, or if that is not given `labels`, as in Darknet's get_metadata; NULL:
 * neither is given. */
const char *amp_data_file_names(const amp_data_file *data);

/* The number of a classifier's labels that a path contains, as Darknet's fill_truth counts them. *class_id:
 * the last of them, which becomes the image's class. */
int amp_labels_in_path(const char *path, char **labels, size_t count, int *class_id);
