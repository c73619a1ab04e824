/* Checks before a training begins: its .data file, the lists that it names, and whether they fit the
 * network. Images and labels are checked when they are loaded (loading.h), or all at once by
 * commands/data_scan.h. */
#pragma once

#include "text_lines.h"

struct network;

/* Reads the file of class labels and checks that it has at least `classes` lines, none of them blank. The
 * caller frees *labels with amp_lines_free, also after an error. */
amp_status amp_check_labels(const amp_data_file *data, int classes, amp_lines *labels, amp_error *error);

/* Checks that each line of a list of images can be a path. On disk it looks only for images whose path ends
 * in a carriage return, which Darknet does not remove. AMP_BAD_CONFIG, with the line: that image is missing,
 * or a path is too long. file: the list's name. */
amp_status amp_check_image_paths(const amp_lines *list, const char *file, amp_error *error);

/* A regular file that is not empty. */
int amp_is_image_file(const char *image);

/* AMP_BAD_CONFIG: more than half of the list's images (at most a thousand are tried, spread evenly) are
 * missing. */
amp_status amp_check_images_there(const amp_lines *list, const char *file, amp_error *error);
/* AMP_BAD_CONFIG: no path in the list (of the same thousand at most) contains exactly one of these labels. */
amp_status amp_check_paths_name_labels(const amp_lines *list, const amp_lines *labels, int classes,
                                       const char *file, amp_error *error);

/* What a training takes from a .data file. `amp check` and the start of a training apply the same rules. */
typedef struct amp_training_data {
    const amp_data_file *data;
    const char *cfg;          /* NULL: nothing is to be saved */
    int classifier, classes;  /* classes: of a detector, its classes; of a classifier, its truth values */
    const char *file;         /* set by amp_check_data: the name of the list of images, */
    amp_lines list, labels;   /* its lines, and a classifier's labels; empty if they are wrong */
} amp_training_data;

/* Called for each mistake; any status except AMP_OK ends the check. */
typedef amp_status amp_mistake_note(void *context, const amp_error *mistake);
/* Calls note for each mistake. If note is NULL, fails with the first mistake. */
amp_status amp_check_data(amp_training_data *, amp_mistake_note *note, void *context, amp_error *error);
/* After amp_check_data, of a detector: AMP_BAD_CONFIG: no image has a label that training would keep. Reads
 * labels until it finds one. */
amp_status amp_check_boxes(const amp_training_data *, amp_error *error);
void amp_training_data_free(amp_training_data *);

/* The size of a cache of the training list (cache= in the .data file): the number of images, their estimated
 * bytes, and cache_scale, by which they are reduced for a network. */
typedef struct amp_cache_estimate { size_t images, bytes; double scale; } amp_cache_estimate;
amp_status amp_check_cache_size(const char *data_file, const struct network *, int classifier,
                                amp_cache_estimate *out, amp_error *error);

/* Called before `detector train` or `classifier train` makes anything. If the training is under AMP, checks
 * the .cfg, the .data file, its lists and the folder for backups, and sets `trains` in amp_program; a mistake
 * ends the program. */
void amp_check_training(const char *data_file, const char *cfg, int classifier);

/* Called when it is known how many bytes of RAM the training of net leaves free: opens the cache of images,
 * if one was requested. */
amp_status amp_check_cache(const struct network *net, size_t bytes, amp_error *error);
/* Bytes of decoded images that the loaders hold at the same time, for steps of `images` images of `inputs`
 * floats. */
size_t amp_checked_picture_bytes(int images, size_t inputs);
