/* Opens files, and reads .data files as Darknet does, but with errors that say what is wrong and where. */
#pragma once

#include "../program/request.h"

#include <stddef.h>

/* Whether path is a FIFO, a device or a socket. Reading one of these may hang or never end. */
int amp_is_device(const char *path);

/* Opens a file for reading; the caller closes it. NULL: it is missing, a folder or a device; errno is set,
 * and *error has AMP_BAD_CONFIG and a message that calls the file `what`. */
FILE *amp_open_to_read(const char *file, const char *what, amp_error *error);

/* Opens or creates a file for reading and writing, and locks it until it is closed. flags: O_NOFOLLOW, or 0.
 * Tries `tries` times, every `milliseconds` milliseconds. Returns the descriptor, or -1 with errno;
 * EWOULDBLOCK: another program held the lock each time. */
int amp_open_locked(const char *name, int flags, int tries, int milliseconds);

/* Returns why the image `file` cannot be read. Call it in the thread that has just tried to read the image.
 * Valid until the thread reads another image. */
const char *amp_image_file_failure(const char *file);

typedef struct amp_data_file {
    char *name;                                    /* the .data file's own name */
    char *train, *valid, *names, *labels, *backup; /* NULL: the key is not given */
    char *difficult, *leaves, *tree;
    int classes;                                   /* 0: not given */
    /* 1: a classifier reads each image's labels from a label file, not from the image's path (tag=1) */
    int tag;
    int cache;                                     /* where decoded images are kept: an amp_cache_kind */
    double cache_scale;                            /* `scale` of amp_reduction */
    char note[512];                                /* a note about repeated or misspelt keys; may be empty */
} amp_data_file;

/* Reads a .data file. AMP_BAD_CONFIG: it cannot be read, or a line is not a valid KEY = VALUE. (A path with
 * blanks is not valid, because Darknet would drop the blanks.) The caller frees *data with
 * amp_data_file_free, even after an error. */
amp_status amp_data_file_read(const char *name, amp_data_file *data, amp_error *error);
void amp_data_file_free(amp_data_file *data);

/* The file of class names: `names`, else `labels`, as in Darknet's get_metadata; NULL: neither is given. */
const char *amp_data_file_names(const amp_data_file *data);

/* Returns how many of a classifier's labels a path contains, counted as in Darknet's fill_truth. *class_id:
 * the last of these labels, which becomes the image's class. */
int amp_labels_in_path(const char *path, char **labels, size_t count, int *class_id);
