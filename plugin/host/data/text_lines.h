/* Lists of lines, which were read from a text file or which a command collects. */
#pragma once

#include "../../tensor/status.h"
#include "data_files.h"

#include <stddef.h>

/* Initialize it with zeros; amp_lines_free frees it. bytes: the block that contains the lines of a file;
 * NULL: each line is a block of its own. */
typedef struct amp_lines { char **line; size_t count, room; char *bytes; } amp_lines;

/* Reads the lines of a file without the blanks at their ends. Blank lines are left out. what: describes the
 * file in an error, for example "the list of validation images". */
amp_status amp_lines_read(const char *path, const char *what, amp_lines *lines, amp_error *error);
/* Reads all lines as Darknet's get_paths does: only '\n' is removed, and in AlexeyAB's Darknet "\r\n".
 * AMP_BAD_CONFIG also if all are blank. */
amp_status amp_paths_read(const char *path, const char *what, amp_lines *lines, amp_error *error);
/* Adds a line. Not for lists that were read from a file. */
__attribute__((format(printf, 2, 3)))
void amp_lines_add(amp_lines *lines, const char *format, ...);
void amp_lines_free(amp_lines *lines);

/* Reads the list of images that the key `valid` names. AMP_BAD_CONFIG: the key is missing, or the list is
 * empty. */
amp_status amp_validation_images_read(const amp_data_file *data, amp_lines *images, amp_error *error);
