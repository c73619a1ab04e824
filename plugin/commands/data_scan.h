/* Checks a whole data set before a long training: the lists, whether their images exist, and every label. */
#pragma once

#include "../amp/cfg_check.h"

/* Oddities that do not end a training. */
enum {
    AMP_SCAN_MISSING,    /* an image is missing or empty; another one is used instead */
    AMP_SCAN_OUTSIDE,    /* a box lies outside its image; it is ignored */
    AMP_SCAN_SMALL,      /* a box is smaller than Darknet's minimum; it is ignored */
    AMP_SCAN_CROWDED,    /* an image has more boxes than a step uses */
    AMP_SCAN_UNLABELLED, /* a detector's validation image has no label file; it counts as empty */
    AMP_SCAN_MISLABELLED, /* the path of a classifier's image does not contain exactly one label */
    AMP_SCAN_KINDS
};

/* The result for one list of images. If there are very many paths, only some are checked for labels. */
typedef struct amp_scanned_list {
    long images, boxes, paths;                            /* how many of each were checked */
    /* for each kind of oddity: how often it was found, and the first place ("FILE" or "FILE:LINE") */
    struct { long count; char first[512]; } odd[AMP_SCAN_KINDS];
} amp_scanned_list;

typedef struct amp_data_scan {
    /* ---- set by the caller ---- */
    const char *data_file,
        *cfg;        /* the network to be trained; NULL: do not check the backup folder */
    int classifier,  /* 1: a classifier; 0: a detector */
        classes,     /* detector: number of classes of the last layer; classifier: truth values per image */
        w, h,        /* the size of the network's input */
        boxes,       /* detector: how many boxes per image a step uses at most */
        measures;    /* 1: the .data file must have a `valid` list */
    /* Receives the first 20 mistakes: at most one for each label file, and one for all missing label files.
     * The error of amp_scan_data then tells the number of mistakes. If `listener` is NULL, that error tells
     * the first mistake. */
    const cfg_listener *listener;
    /* ---- set by amp_scan_data ---- */
    amp_scanned_list train, valid;
    char warning[512]; /* how the .data file and the network differ in names or classes; "" if they agree */
} amp_data_scan;

/* Checks the data set. No image is decoded: 100,000 images with labels take a second or two. AMP_BAD_CONFIG:
 * a training would not begin, or would end at a bad label; the message has the place and what to do. */
amp_status amp_scan_data(amp_data_scan *, amp_error *error);

/* Prints the warning and each kind of oddity found on stderr. Returns the number of lines. */
int amp_scan_print(const amp_data_scan *);
