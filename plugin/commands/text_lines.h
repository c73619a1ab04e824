/* Lists of lines, as the commands keep them: what validates reads a list so, and files that compare writes. (A training takes the
 * lines of its list as they are: host/data/data_files.h.) */
#ifndef AMP_COMMANDS_TEXT_LINES_H
#define AMP_COMMANDS_TEXT_LINES_H

#include "../host/data/data_files.h"
#include "../tensor/status.h"

#include <stddef.h>

/* The lines of a text file that are not blank, without their line ends. Starts zeroed; freed by amp_lines_free. */
typedef struct amp_lines { char **line; size_t count, room; } amp_lines;

/* `what` names the file in an error: "the list of validation images". */
amp_status amp_lines_read(const char *path, const char *what, amp_lines *lines, amp_error *error);
amp_status amp_lines_add(amp_lines *lines, const char *text, size_t length, amp_error *error);
void amp_lines_free(amp_lines *lines);

/* The images that `valid` lists. AMP_BAD_CONFIG: no such key, or no image. */
amp_status amp_validation_images_read(const amp_data_file *data, amp_lines *images, amp_error *error);

/* Makes room for one more in an array that doubles; NULL where there is no memory. */
void *amp_grow(void *array, size_t count, size_t *room, size_t size);

#endif
