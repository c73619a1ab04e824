/* Checks a whole data set before hours are spent on training: the lists, whether their images exist, and
 * every label. */
#pragma once

#include "../amp/cfg_check.h"

/* Oddities that do not end a training: an image that is missing or empty (another one is used instead); a box
 * that lies outside its image, or is smaller than Darknet's minimum (it is ignored); more boxes in an image
 * than a step uses; a detector's validation image without a label file (it counts as empty); a classifier's
 * image whose path does not contain exactly one label. */
enum { AMP_SCAN_MISSING, AMP_SCAN_OUTSIDE, AMP_SCAN_SMALL, AMP_SCAN_CROWDED, AMP_SCAN_UNLABELLED,
       AMP_SCAN_MISLABELLED, AMP_SCAN_KINDS };

/* The result for one list. If a classifier has very many paths and labels, only some paths are checked. */
typedef struct amp_scanned_list {
    long images, boxes, paths;                            /* how many were checked */
    /* for each kind of oddity; first: the file of the first one, or "FILE:LINE" */
    struct { long count; char first[512]; } odd[AMP_SCAN_KINDS];
} amp_scanned_list;

typedef struct amp_data_scan {
    /* Set by the caller. cfg: the network to be trained; NULL: nothing will be saved in the backup folder. w,
     * h: the size of the network's input. boxes: how many boxes of an image a detector's step uses. classes:
     * the classes of a detector's last layer, or the numbers of truth of a classifier. measures: `valid` is
     * needed. listener: called for the first 20 mistakes (at most one for each label file, and one for all
     * missing label files together); the error is then the number of mistakes. Without a listener the error
     * is the first mistake. */
    const char *data_file, *cfg;
    int classifier, classes, w, h, boxes, measures;
    const cfg_listener *listener;
    /* Set by amp_scan_data. warning: how the .data file and the network differ in names or classes; "" if
     * they do not. */
    amp_scanned_list train, valid;
    char warning[512];
} amp_data_scan;

/* Checks the data set. No image is decoded: some 100,000 images with labels take a second or two.
 * AMP_BAD_CONFIG, with file, line and what to do: a training would not begin, or would end at a label. */
amp_status amp_scan_data(amp_data_scan *, amp_error *error);

/* Prints a line on stderr for the warning and for each kind of oddity that was found. Returns how many. */
int amp_scan_print(const amp_data_scan *);
