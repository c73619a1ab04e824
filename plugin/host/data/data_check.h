/* Checks the .data file, its lists, and whether they match the network, before a training begins. Images and
 * labels are checked when they are loaded (loading.h), or all at once by commands/data_scan.h. */
#pragma once

#include "text_lines.h"

struct network;

/* Reads the list of a classifier's labels and checks that it has at least `classes` lines, none of them
 * blank. The caller frees *labels with amp_lines_free, even after an error. */
amp_status amp_check_labels(const amp_data_file *data, int classes, amp_lines *labels, amp_error *error);

/* Checks the paths in a list of images. Looks on disk only for images whose line has a suspicious byte: a
 * byte order mark, a carriage return or blank at the end, or a backslash. AMP_BAD_CONFIG: one of these images
 * is missing, or a path is too long. file: the list's name. */
amp_status amp_check_image_paths(const amp_lines *list, const char *file, amp_error *error);

/* Whether `image` names a regular file that is not empty. */
int amp_is_image_file(const char *image);

/* Looks for images of the list on disk: at most a thousand, evenly spread over the list. AMP_BAD_CONFIG: more
 * than half of them are missing or empty. */
amp_status amp_check_images_there(const amp_lines *list, const char *file, amp_error *error);
/* Looks for labels in the paths of at most a thousand images, evenly spread over the list: Darknet derives an
 * image's class from its path. AMP_BAD_CONFIG: no path contains exactly one of the first `classes` labels. */
amp_status amp_check_paths_name_labels(const amp_lines *list, const amp_lines *labels, int classes,
                                       const char *file, amp_error *error);

/* The data that a training reads from a .data file, for `amp check` and for the start of a training. */
typedef struct amp_training_data {
    const amp_data_file *data;
    const char *cfg;          /* NULL: nothing will be saved, so the folder for backups is not checked */
    int classifier, classes;  /* classes: number of a detector's classes, or of a classifier's truth values */
    /* these are set by amp_check_data: */
    const char *file;         /* the name of the list of images */
    amp_lines list, labels;   /* the lines of `file`; a classifier's labels; empty if unusable */
} amp_training_data;

/* A callback for one mistake. If it returns a status other than AMP_OK, the check ends. */
typedef amp_status amp_mistake_note(void *context, const amp_error *mistake);
/* Applies all rules and calls note for each mistake. If note is NULL, fails at the first mistake. */
amp_status amp_check_data(amp_training_data *, amp_mistake_note *note, void *context, amp_error *error);
/* For a detector, after amp_check_data. Reads label files until it finds a box that training would use.
 * AMP_BAD_CONFIG: no label file has a box of this kind. */
amp_status amp_check_boxes(const amp_training_data *, amp_error *error);
void amp_training_data_free(amp_training_data *);

/* The size of a cache for the training list. bytes: the estimate for all images; scale: cache_scale. */
typedef struct amp_cache_estimate { size_t images, bytes; double scale; } amp_cache_estimate;
amp_status amp_check_cache_size(const char *data_file, const struct network *, int classifier,
                                amp_cache_estimate *out, amp_error *error);

/* Call it before `detector train` or `classifier train` makes anything. Returns whether the training runs
 * under AMP. If so, it first checks the .cfg, the .data file, its lists and the folder for backups; a mistake
 * ends the program. */
int amp_check_training(const char *data_file, const char *cfg, int classifier);

/* Opens the cache of images if one was requested. Call it when the memory needs of the training are known.
 * bytes: the RAM that the training leaves free. */
amp_status amp_check_cache(const struct network *net, size_t bytes, amp_error *error);
/* Estimates the bytes of the decoded images that the loaders hold at the same time, if a step has `images`
 * images with `inputs` floats each. */
size_t amp_checked_picture_bytes(int images, size_t inputs);
