/* Checks before a training begins: its .data file, the lists that this names, and whether they fit the
 * network. Images and labels are checked when they are loaded (loading.h), or all at once by
 * commands/data_scan.h. */
#pragma once

#include "text_lines.h"

/* Reads the file of class labels and checks that it has at least `classes` lines, none of them blank. The
 * caller frees *labels with amp_lines_free, also after an error. */
amp_status amp_check_labels(const amp_data_file *data, int classes, amp_lines *labels, amp_error *error);

/* Whether the file of class names is one that Darknet trains a detector of so many classes with. */
amp_status amp_check_names(const amp_data_file *data, int classes, amp_error *error);

/* Whether each path of a list of images can be one. No image is looked for, unless its path ends in a
 * carriage return, which Darknet leaves there. AMP_BAD_CONFIG, with the line: that image is not there, or a
 * path is too long. file: the list's. */
amp_status amp_check_image_paths(const amp_lines *list, const char *file, amp_error *error);

/* Sets what -cache says ("ram" or "off"; NULL: not given), which overrules cache= of the .data file. Any
 * other word ends the program. */
void amp_check_request_cache(const char *word);

/* Called before `detector train` or `classifier train` makes anything. If the training is under AMP, checks
 * the .cfg (unless cfg is NULL), the .data file, its lists and the folder for backups; a mistake ends the
 * program. */
void amp_check_training(const char *data_file, const char *cfg, int classifier);

/* Whether amp_check_training has checked: this program is such a training. */
int amp_checks_training(void);
/* Pixels of a typical image of the training list: the median of a sample; 0: not known. */
size_t amp_checked_pixels(void);
/* Bytes of decoded images that the loaders hold at the same time, for steps of `images` images of `inputs`
 * floats. */
size_t amp_checked_picture_bytes(int images, size_t inputs);

struct network;
/* After amp_check_training: ends the program if the network does not fit the .data file's classes. */
void amp_check_classes(struct network *);
