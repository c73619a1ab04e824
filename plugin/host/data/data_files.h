/* Opens files, and reads .data files as Darknet does, but with errors that say what is wrong and where. */
#pragma once

#include "../program/request.h"

#include <stddef.h>

/* Whether path is a FIFO, a device or a socket: reading one may hang or never end. Returns 0 for a folder,
 * because reading a folder simply fails. */
int amp_is_device(const char *path);

/* Opens a file for reading; the caller closes it. Returns NULL if it is missing, a folder or a device. Then
 * errno is set, and *error has the status AMP_BAD_CONFIG and a message that describes the file as `what`, for
 * example "the class names". */
FILE *amp_open_to_read(const char *file, const char *what, amp_error *error);

/* Opens or creates a file for reading and writing, and locks it against other programs until it is closed.
 * flags: O_NOFOLLOW, or 0. Returns the descriptor, or -1 with errno if the file cannot be opened or locked.
 * It tries `tries` times, every `milliseconds` milliseconds; EWOULDBLOCK: another program held the lock each
 * time. */
int amp_open_locked(const char *name, int flags, int tries, int milliseconds);

/* Returns the reason why `file`, the last image that the calling thread tried to read, cannot be read. The
 * text is valid until the thread reads another image. */
const char *amp_image_file_failure(const char *file);

typedef struct amp_data_file {
    char *name;                                    /* the .data file's own name */
    char *train, *valid, *names, *labels, *backup; /* NULL: the key is not given */
    char *difficult, *leaves, *tree;
    int classes;                                   /* 0: not given */
    /* 1: a classifier reads each image's labels from a label file, not from the image's path (tag=1) */
    int tag;
    int cache;                                     /* an amp_cache_kind: where decoded images are kept */
    double cache_scale;                            /* how far decoded images are reduced: `scale` of
                                                      amp_reduction */
    char note[512];                                /* a note about repeated or misspelt keys; may be empty */
} amp_data_file;

/* Reads a .data file. AMP_BAD_CONFIG: the file is missing, not a regular file or not text; a line lacks '=';
 * a path has blanks, which Darknet would drop; a number is invalid; or the word for cache= is unknown. The
 * caller frees *data with amp_data_file_free, even after an error. */
amp_status amp_data_file_read(const char *name, amp_data_file *data, amp_error *error);
void amp_data_file_free(amp_data_file *data);

/* Returns the file of class names: `names` or, if that is not given, `labels`, as in Darknet's get_metadata.
 * NULL: neither is given. */
const char *amp_data_file_names(const amp_data_file *data);

/* Returns how many of a classifier's labels a path contains, counted as in Darknet's fill_truth. *class_id:
 * the last of these labels, which becomes the image's class. */
int amp_labels_in_path(const char *path, char **labels, size_t count, int *class_id);
