/* The .data file and the lists it points at. Darknet's own readers end the program with status 0 where a file is missing; these
 * return what was wrong, and where. */
#ifndef AMP_COMMANDS_DATA_FILE_H
#define AMP_COMMANDS_DATA_FILE_H

#include "../tensor/status.h"

#include <stddef.h>

/* The lines of a text file that are not blank, without their line ends. Starts zeroed; freed by amp_lines_free. */
typedef struct amp_lines { char **line; size_t count, room; } amp_lines;

/* `what` names the file in an error: "the list of validation images". */
amp_status amp_lines_read(const char *path, const char *what, amp_lines *lines, amp_error *error);
amp_status amp_lines_add(amp_lines *lines, const char *text, size_t length, amp_error *error);
void amp_lines_free(amp_lines *lines);

/* One `key = value`: of two of the same key the first counts, as for Darknet. */
typedef struct amp_data_key { const char *key; char *value; } amp_data_key; /* value: NULL where there is none; malloc's */

/* Fills in the values; an entry without a key ends the list. AMP_BAD_CONFIG: the file cannot be read. On failure too, the
 * values are fit for amp_data_keys_free. */
amp_status amp_data_keys_read(const char *data_file, amp_data_key *keys, amp_error *error);
void amp_data_keys_free(amp_data_key *keys);

/* The images that `valid` lists. AMP_BAD_CONFIG: no such key, or no image. valid: the key's value or NULL. */
amp_status amp_validation_images_read(const char *data_file, const char *valid, amp_lines *images, amp_error *error);

/* Makes room for one more in an array that doubles; NULL where there is no memory. */
void *amp_grow(void *array, size_t count, size_t *room, size_t size);

#endif
