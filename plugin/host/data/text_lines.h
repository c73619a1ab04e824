/* Lists of lines, as the commands keep them: `valid` reads its list so, and `compare` its files. (A training
 * takes the lines of its list as they are: data_files.h.) */
#pragma once

#include "../../tensor/grow.h"
#include "../../tensor/status.h"
#include "data_files.h"

#include <stddef.h>

/* The lines of a text file that are not blank, without their line ends. Starts zeroed; freed by
 * amp_lines_free. */
typedef struct amp_lines { char **line; size_t count, room; } amp_lines;

/* `what` names the file in an error: "the list of validation images". */
amp_status amp_lines_read(const char *path, const char *what, amp_lines *lines, amp_error *error);
__attribute__((format(printf, 2, 3)))
void amp_lines_add(amp_lines *lines, const char *format, ...);
void amp_lines_free(amp_lines *lines);

/* The images that `valid` lists. AMP_BAD_CONFIG: no such key, or no image. */
amp_status amp_validation_images_read(const amp_data_file *data, amp_lines *images, amp_error *error);
