/* Whether a training can begin: its .data file and lists, and whether they fit the network. Images and labels
 * are looked at when they are loaded (loading.h), or all at once by commands/data_check.h. */
#ifndef AMP_HOST_DATA_CHECK_H
#define AMP_HOST_DATA_CHECK_H

#include "data_files.h"

/* `labels`: at least `classes` of them, none blank. names: the caller's with amp_path_list_free, also after an error. */
amp_status amp_check_labels(const amp_data_file *data, int classes, amp_path_list *labels, amp_error *error);

struct network;
/* After darknet_amp_check_files: ends the program if the network does not fit the .data file's classes. */
void amp_check_classes(struct network *);

#endif
