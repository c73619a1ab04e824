/* A detector's label files: one line per box, "class x y width height", relative to the image.
 *
 * Darknet's own reader stops at the first text that is not a number, and its losses use what it did read as
 * an index: a class that the network does not have, or a box at exactly 0 0, writes outside their arrays. */
#pragma once

#include "../../tensor/status.h"

typedef struct amp_label { int class_id; float x, y, w, h; } amp_label;

typedef enum amp_label_kind {
    AMP_LABEL_BLANK,
    AMP_LABEL_BOX,
    /* The box lies outside the image, or has no area, or its centre is 0 0, which Darknet treats as no box:
     * training ignores it. */
    AMP_LABEL_OUTSIDE,
    AMP_LABEL_NO_LABEL,   /* not five numbers and nothing else */
    AMP_LABEL_NOT_FINITE, /* inf or NaN */
    AMP_LABEL_BAD_CLASS,  /* not one of 0 to classes - 1 */
    AMP_LABEL_IN_PIXELS   /* far beyond 0..1 */
} amp_label_kind;

/* Fills *label, unless the line is blank or not a label. */
amp_label_kind amp_label_parse(const char *line, int classes, amp_label *label);

/* The buffer for a label file's path, and the longest image path that Darknet's find_replace can turn into
 * one. */
enum { AMP_LABEL_PATH = 4096, AMP_IMAGE_PATH_MOST = 4000 };

/* Where Darknet looks for the labels of an image. 0: the path is too long. */
int amp_label_path(const char *image, char path[AMP_LABEL_PATH]);

/* Called for each valid box. outside: it is outside the image, and training leaves it out. Any status except
 * AMP_OK ends the reading. */
typedef amp_status (*amp_label_visit)(void *context, const char *file, unsigned long line,
                                      const amp_label *label, int outside, amp_error *error);

/* Calls visit for the boxes of a file. AMP_BAD_CONFIG: the error names file and line of the first bad label,
 * or the file if it cannot be read. */
amp_status amp_labels_read(const char *file, int classes, amp_label_visit visit, void *context,
                           amp_error *error);
