/* Reads a detector's label files: one line per box, "class x y width height", relative to the image.
 *
 * Darknet's own reader stops at the first text that is not a number and accepts any numbers before it. Its
 * losses use them as indices: with a class that the network does not have, or a box at exactly 0 0, they
 * write outside their arrays. */
#pragma once

#include "../../tensor/status.h"

typedef struct amp_label { int class_id; float x, y, w, h; } amp_label;

typedef enum amp_label_kind {
    AMP_LABEL_BLANK,
    AMP_LABEL_BOX,
    /* Training ignores this box: it lies outside the image, has no area, or its centre is 0 0, which Darknet
     * does not treat as a box. */
    AMP_LABEL_OUTSIDE,
    AMP_LABEL_NO_LABEL,   /* not five numbers and nothing else */
    AMP_LABEL_NOT_FINITE, /* inf or NaN */
    AMP_LABEL_BAD_CLASS,  /* not one of 0 to classes - 1 */
    AMP_LABEL_IN_PIXELS   /* far beyond 0..1 */
} amp_label_kind;

/* Parses one line. Fills *label unless the line is blank or not a label. */
amp_label_kind amp_label_parse(const char *line, int classes, amp_label *label);

/* The size of the buffer for a label file's path, and the length of the longest image path that Darknet's
 * find_replace can turn into a label file's path. */
enum { AMP_LABEL_PATH = 4096, AMP_IMAGE_PATH_MOST = 4000 };

/* Sets path to where Darknet looks for the labels of an image. Returns 0 if the image's path is too long. */
int amp_label_path(const char *image, char path[AMP_LABEL_PATH]);

/* Called for each valid box. outside: the box is of kind AMP_LABEL_OUTSIDE, which training ignores. Any
 * status except AMP_OK ends the reading. */
typedef amp_status (*amp_label_visit)(void *context, const char *file, unsigned long line,
                                      const amp_label *label, int outside, amp_error *error);

/* Calls visit for the boxes of a file. AMP_BAD_CONFIG: the error names file and line of the first bad label,
 * or the file if it cannot be read. */
amp_status amp_labels_read(const char *file, int classes, amp_label_visit visit, void *context,
                           amp_error *error);
