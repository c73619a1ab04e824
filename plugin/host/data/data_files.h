/* What a .data file names, read as Darknet reads it, but with errors that say what is wrong and where. */
#pragma once

#include "../program/request.h"

#include <stddef.h>

/* Whether path is a FIFO, a device or a socket, whose reader may wait forever or never reach an end. 0 for
 * a folder: reading it just fails. */
int amp_is_device(const char *path);

/* Opens a file to read it; the caller closes it. NULL: it is missing, a folder or a device; then *error has
 * status AMP_BAD_CONFIG and a line that calls the file `what` ("the class names"), and errno is set. */
FILE *amp_open_to_read(const char *file, const char *what, amp_error *error);

/* Opens a file for reading and writing, or creates it, and locks it against other programs until it is
 * closed. flags: O_NOFOLLOW, or 0. Returns the descriptor; -1: it cannot be opened or locked, and errno says
 * why. EWOULDBLOCK: another program held it in all of these tries, which are `milliseconds` apart. */
int amp_open_locked(const char *name, int flags, int tries, int milliseconds);

/* Why the image that the calling thread has tried to read cannot be read. Valid until it reads another. */
const char *amp_image_file_failure(const char *file);

typedef struct amp_data_file {
    char *name;                                    /* of the .data file itself */
    char *train, *valid, *names, *labels, *backup; /* NULL: the key is not given */
    char *difficult, *leaves, *tree;
    int classes;                                   /* 0: not given */
    /* a classifier's tag=1: labels come from files of their own */
    int tag;
    int cache;                                     /* where decoded images are kept: amp_cache_kind */
    double cache_scale;                            /* the factor by which they are reduced: amp_reduction */
    char note[512];                                /* about keys given twice or misspelt; else empty */
} amp_data_file;

/* AMP_BAD_CONFIG: the file is missing or not a regular one, not text, has a line without '=', a path with
 * blanks where Darknet drops them, `classes` or cache_scale that is not a number, or an unknown word for
 * cache=. *data may be freed after an error too. */
amp_status amp_data_file_read(const char *name, amp_data_file *data, amp_error *error);
void amp_data_file_free(amp_data_file *data);

/* The file of its class names: `names`, or else `labels`, by the rule of Darknet's get_metadata; NULL:
 * neither is given. */
const char *amp_data_file_names(const amp_data_file *data);

/* The number of a classifier's labels that a path contains, as Darknet's fill_truth counts them. *class_id:
 * the last of them, which becomes the image's class. */
int amp_labels_in_path(const char *path, char **labels, size_t count, int *class_id);
