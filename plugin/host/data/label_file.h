/* Reads a detector's label files. Each line is a box, "class x y width height", relative to the image.
 *
 * Darknet's own reader accepts any numbers, and Darknet's losses use them as indices: with an unknown class,
 * or a box at exactly 0 0, they write outside their arrays. */
#pragma once

#include "../../tensor/status.h"

typedef struct amp_label { int class_id; float x, y, w, h; } amp_label;

typedef enum amp_label_kind {
    AMP_LABEL_BLANK,
    AMP_LABEL_BOX,
    /* a box that training ignores: it lies outside the image, has no area, or has its centre at 0 0, which
     * Darknet does not treat as a box */
    AMP_LABEL_OUTSIDE,
    AMP_LABEL_NO_LABEL,   /* not exactly five numbers */
    AMP_LABEL_NOT_FINITE, /* inf or NaN */
    AMP_LABEL_BAD_CLASS,  /* the class is not one of 0 to classes - 1 */
    AMP_LABEL_IN_PIXELS   /* coordinates are far outside 0..1 */
} amp_label_kind;

/* Parses one line. Fills *label unless the line is blank or not a label. */
amp_label_kind amp_label_parse(const char *line, int classes, amp_label *label);

/* The size of a buffer for a label file's path; the maximum length of an image's path that Darknet's
 * find_replace can turn into a label file's path. */
enum { AMP_LABEL_PATH = 4096, AMP_IMAGE_PATH_MOST = 4000 };

/* Sets path to the label file that Darknet reads for an image. Returns 0 if the image's path is too long. */
int amp_label_path(const char *image, char path[AMP_LABEL_PATH]);

/* A callback for each box. outside=1: it is AMP_LABEL_OUTSIDE. Any status but AMP_OK ends the reading. */
typedef amp_status (*amp_label_visit)(void *context, const char *file, unsigned long line,
                                      const amp_label *label, int outside, amp_error *error);

/* Reads a file and calls visit for each box. AMP_BAD_CONFIG: the file cannot be read, or has a bad label; the
 * error names the file, and the line of the first bad label. */
amp_status amp_labels_read(const char *file, int classes, amp_label_visit visit, void *context,
                           amp_error *error);
