/* What a .data file points at: class names, the validation images, and each image's labels.
 *
 * Darknet's own readers end the program with status 0 where a file is missing; these return what was wrong, and where. */
#ifndef AMP_COMMANDS_DETECTION_DATA_H
#define AMP_COMMANDS_DETECTION_DATA_H

#include "../tensor/status.h"
#include "average_precision.h"

#include <stddef.h>

/* The lines of a text file that are not blank, without their line ends. Starts zeroed; freed by amp_lines_free. */
typedef struct amp_lines { char **line; size_t count, room; } amp_lines;

/* `what` names the file in an error: "the list of validation images". */
amp_status amp_lines_read(const char *path, const char *what, amp_lines *lines, amp_error *error);
void amp_lines_free(amp_lines *lines);

typedef struct amp_detection_data {
    amp_lines images; /* paths, as the `valid` list gives them */
    amp_lines names;  /* of the classes in order; empty where the .data file has no `names` */
} amp_detection_data;

/* Reads the .data file, its `valid` list and its `names`. AMP_BAD_CONFIG: a file missing, or no image listed. On failure
 * too, *data is fit for amp_detection_data_free. */
amp_status amp_detection_data_read(const char *data_file, amp_detection_data *data, amp_error *error);
void amp_detection_data_free(amp_detection_data *data);

typedef struct amp_truths {
    amp_truth *truth; /* boxes relative to the image, 0..1 */
    size_t count, room;
    size_t too_thin;  /* labels left out because training leaves them out */
} amp_truths;

/* Adds the labels of one image, read from where Darknet's training reads them; a missing file means no object there.
 * AMP_BAD_CONFIG: a line that is not "class x y w h", or a class outside 0..classes-1. */
amp_status amp_truths_read(const char *image_path, int image, int classes, amp_truths *truths, amp_error *error);
void amp_truths_free(amp_truths *truths);

#endif
