/* Whether a training can begin: its .data file and lists, and whether they fit the network. Images and labels
 * are looked at when they are loaded (loading.h), or all at once by commands/data_scan.h. */
#pragma once

#include "data_files.h"

/* `labels`: at least `classes` of them, none blank. names: the caller's with amp_path_list_free,
 * also after an error. */
amp_status amp_check_labels(const amp_data_file *data, int classes, amp_path_list *labels, amp_error *error);

/* -cache: what cache= of the .data file is overruled by; NULL: it was not given. Another word than there is
 * ends the program. */
void amp_check_wish_cache(const char *word);

/* Before `detector train` or `classifier train` makes anything: if that is under AMP, the .cfg,
 * the .data file, its lists and the folder for backups are looked at. cfg may be NULL. What is
 * wrong ends the program. */
void amp_check_training(const char *data_file, const char *cfg, int classifier);

/* Whether it did: this program is such a training. */
int amp_checks_training(void);
/* Pixels of an image of its training list, the median of some; 0: not known. */
size_t amp_checked_pixels(void);
/* What its loaders hold of them at a time, where a step has so many images. */
size_t amp_checked_picture_bytes(int images);

struct network;
/* After amp_check_training: ends the program if the network does not fit the .data file's classes. */
void amp_check_classes(struct network *);
