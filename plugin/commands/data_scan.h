/* All of a data set looked at before hours are spent on it: the lists, whether their images are there, and
 * every label. */
#pragma once

#include "../amp/cfg_check.h"

/* What does not end a training: images that are missing or empty files (another one is trained on); boxes
 * without any part in their image (left out); validation images of a detector without a label file (nothing
 * is on them); a classifier's images whose path does not hold exactly one label. */
enum { AMP_SCAN_MISSING, AMP_SCAN_OUTSIDE, AMP_SCAN_UNLABELLED, AMP_SCAN_MISLABELLED, AMP_SCAN_KINDS };

/* Of one list. A classifier's paths and labels may be so many that only some paths are looked at. */
typedef struct amp_scanned_list {
    long images, boxes, paths;                            /* that were looked at */
    struct { long count; char first[512]; } odd[AMP_SCAN_KINDS]; /* the first: its name, or "FILE:LINE" */
} amp_scanned_list;

typedef struct amp_data_scan {
    /* What is asked. classes: of the network (a detector's last layer; a classifier's output). A listener is
     * told of the first 20 mistakes (one of a label file, one for all label files that are missing), and the
     * error is how many there are; without one (NULL) it is the first mistake. */
    const char *data_file;
    int classifier, classes;
    const cfg_listener *listener;
    /* What is found. warning: names or classes of the .data file that do not fit the network; else empty. */
    amp_scanned_list train, valid;
    char warning[512];
} amp_data_scan;

/* No image is decoded: some 100,000 images with labels take a second or two.
 *
 * AMP_BAD_CONFIG, with file, line and what to do: the .data file or a list missing or empty; no image of a
 * list there; a label that is no label, holds inf or NaN, has a class the network does not know, or is in
 * pixels; a training image without a label file; a classifier whose labels are missing, fewer than its
 * classes, or held by no path. */
amp_status amp_scan_data(amp_data_scan *, amp_error *error);

/* One line on stderr for the warning and for each kind that was counted, none where nothing was. */
void amp_scan_print(const amp_data_scan *);
