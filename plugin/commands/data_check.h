/* All of a data set looked at before hours are spent on it: the lists, whether their images are there, and
 * every label. */
#pragma once

#include "../amp/cfg_check.h"

/* Of one list. What is counted here does not end a training; the names are those of the first. */
typedef struct amp_list_counts {
    long images;          /* lines of the list */
    long missing;         /* images that are not there, or are empty files: another image is trained on */
    char first_missing[512];
    long boxes, boxes_outside; /* detectors; outside: no part of the box is in the image: it is left out */
    char first_outside[512];   /* "FILE:LINE" */
    long unlabelled;      /* validation images of a detector without a label file: nothing is on them */
    /* a classifier's images whose path does not hold exactly one label; of `looked_at` */
    long mislabelled;
    long looked_at;       /* all, unless paths and labels are so many that it would take long */
    char first_mislabelled[512];
} amp_list_counts;

typedef struct amp_data_counts {
    amp_list_counts train, valid;
    /* names or classes of the .data file that do not fit the network; empty if they do */
    char warning[512];
} amp_data_counts;

/* classes: of the network (a detector's last layer; a classifier's output). counts may be NULL. No image is
 * decoded: some 100,000 images with labels take a second or two.
 *
 * Without a listener (NULL) *error is the first mistake. A listener is told of the first 20 mistakes (one of
 * a label file, one for all label files that are missing), and *error is how many there are.
 *
 * AMP_BAD_CONFIG, with file, line and what to do: the .data file or a list missing or empty; no image of a
 * list there; a label that is no label, holds inf or NaN, has a class the network does not know, or is in
 * pixels; a training image without a label file; a classifier whose labels are missing, fewer than its
 * classes, or held by no path. */
amp_status amp_check_data(const char *data_file, int classifier, int classes, const cfg_listener *listener,
                          amp_data_counts *counts, amp_error *error);

/* One line on stderr for each thing that was counted, none where nothing was. */
void amp_data_counts_print(const amp_data_counts *counts);
