/* Lists of lines that were read from a text file, or that a command collects. */
#pragma once

#include "../../tensor/status.h"
#include "data_files.h"

#include <stddef.h>

/* A list of lines. Initialize it with zeros; free it with amp_lines_free. bytes: the block that contains all
 * lines of a file; NULL: each line is a block of its own. */
typedef struct amp_lines { char **line; size_t count, room; char *bytes; } amp_lines;

/* Reads a file's lines without blanks at their ends and without blank lines. what: its name in errors. */
amp_status amp_lines_read(const char *path, const char *what, amp_lines *lines, amp_error *error);
/* Reads all lines as Darknet's get_paths does: removes only '\n', or "\r\n" in AlexeyAB's and hank-ai's
 * Darknet. AMP_BAD_CONFIG: the file cannot be read or is not text, or all lines are blank. */
amp_status amp_paths_read(const char *path, const char *what, amp_lines *lines, amp_error *error);
/* Adds a line. Do not use it for a list that was read from a file. */
__attribute__((format(printf, 2, 3)))
void amp_lines_add(amp_lines *lines, const char *format, ...);
void amp_lines_free(amp_lines *lines);

/* Reads the list of images that the key `valid` names. AMP_BAD_CONFIG: the key is missing, or the list is
 * empty. */
amp_status amp_validation_images_read(const amp_data_file *data, amp_lines *images, amp_error *error);
