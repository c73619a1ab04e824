/* Checks before a training begins: its .data file, the lists that it names, and whether they fit the
 * network. Images and labels are checked when they are loaded (loading.h), or all at once by
 * commands/data_scan.h. */
#pragma once

#include "text_lines.h"

struct network;

/* Reads the file of class labels and checks that it has at least `classes` lines, none of them blank. The
 * caller frees *labels with amp_lines_free, also after an error. */
amp_status amp_check_labels(const amp_data_file *data, int classes, amp_lines *labels, amp_error *error);

/* Checks that each line of a list of images can be a path. Looks on disk only for images whose line has a
 * suspicious byte: a byte order mark, a carriage return or a blank at its end, or a backslash.
 * AMP_BAD_CONFIG: an image of this kind is missing, or a path is too long; the error gives the line. file:
 * the list's name. */
amp_status amp_check_image_paths(const amp_lines *list, const char *file, amp_error *error);

/* Whether `image` is a regular file that is not empty. */
int amp_is_image_file(const char *image);

/* AMP_BAD_CONFIG: more than half of the list's images are missing or empty. At most a thousand images are
 * tried, spread evenly over the list. */
amp_status amp_check_images_there(const amp_lines *list, const char *file, amp_error *error);
/* AMP_BAD_CONFIG: none of the paths of these images (at most a thousand) contains exactly one of the first
 * `classes` labels. */
amp_status amp_check_paths_name_labels(const amp_lines *list, const amp_lines *labels, int classes,
                                       const char *file, amp_error *error);

/* What a training takes from a .data file. `amp check` and the start of a training apply the same rules. */
typedef struct amp_training_data {
    const amp_data_file *data;
    const char *cfg;          /* NULL: nothing will be saved, so the folder for backups is not checked */
    int classifier, classes;  /* classes: a detector's classes, or a classifier's truth values */
    /* set by amp_check_data: */
    const char *file;         /* the name of the list of images */
    amp_lines list, labels;   /* the list's lines, and a classifier's labels; empty if they are wrong */
} amp_training_data;

/* Called for each mistake; any status except AMP_OK ends the check. */
typedef amp_status amp_mistake_note(void *context, const amp_error *mistake);
/* Calls note for each mistake. If note is NULL, fails with the first mistake. */
amp_status amp_check_data(amp_training_data *, amp_mistake_note *note, void *context, amp_error *error);
/* Called after amp_check_data; for a detector only. Reads labels until it finds a box that training would
 * use. AMP_BAD_CONFIG: it finds no box. */
amp_status amp_check_boxes(const amp_training_data *, amp_error *error);
void amp_training_data_free(amp_training_data *);

/* The size of a cache of the training list (cache= in the .data file): the number of images, the estimated
 * bytes of all of them, and cache_scale, by which they are reduced for a network. */
typedef struct amp_cache_estimate { size_t images, bytes; double scale; } amp_cache_estimate;
amp_status amp_check_cache_size(const char *data_file, const struct network *, int classifier,
                                amp_cache_estimate *out, amp_error *error);

/* Called before `detector train` or `classifier train` makes anything. If the training is under AMP, checks
 * the .cfg, the .data file, its lists and the folder for backups, and sets `trains` in amp_program. A mistake
 * ends the program. */
void amp_check_training(const char *data_file, const char *cfg, int classifier);

/* Opens the cache of images if one was requested. Called when it is known how many bytes of RAM the training
 * of net leaves free: `bytes`. */
amp_status amp_check_cache(const struct network *net, size_t bytes, amp_error *error);
/* Estimates the bytes of decoded images that the loaders hold at the same time, for steps of `images` images
 * with `inputs` floats each. */
size_t amp_checked_picture_bytes(int images, size_t inputs);
