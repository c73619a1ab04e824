/* What a .data file points at: class names, the validation images, and each image's labels.
 *
 * Darknet's own readers end the program with status 0 where a file is missing; these return what was wrong, and where. */
#ifndef AMP_COMMANDS_MAP_DETECTION_DATA_H
#define AMP_COMMANDS_MAP_DETECTION_DATA_H

#include "../../tensor/status.h"
#include "average_precision.h"
#include "../../host/data/text_lines.h"

#include <stddef.h>

typedef struct amp_detection_data {
    amp_lines images; /* paths, as the `valid` list gives them */
    amp_lines names;  /* of the classes in order; empty where the .data file has no `names` */
    amp_lines difficult; /* beside images, from AlexeyAB's `difficult`: paths whose labels are the difficult objects; or empty */
} amp_detection_data;

/* Reads the .data file, its lists and its `names`. AMP_BAD_CONFIG: a file missing, no image listed, or a `difficult` list of
 * another length. On failure too, *data is fit for amp_detection_data_free. */
amp_status amp_detection_data_read(const char *data_file, amp_detection_data *data, amp_error *error);
void amp_detection_data_free(amp_detection_data *data);

typedef struct amp_truths {
    amp_truth *truth; /* boxes relative to the image, 0..1 */
    size_t count, room;
    size_t too_thin;  /* labels left out because training leaves them out */
} amp_truths;

/* Adds the labels of one image, read from where Darknet's training reads them; a missing file means no object there. image: its
 * number, which the truths get. difficult: as what kind they are added.
 * AMP_BAD_CONFIG: a line that is not "class x y w h", or a class outside 0..classes-1. */
amp_status amp_truths_read(const char *image_path, int image, int classes, int difficult, amp_truths *truths,
                           amp_error *error);
void amp_truths_free(amp_truths *truths);

#endif
