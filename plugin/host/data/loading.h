/* Loader threads that meet bad files. An image that cannot be read is named once and another one is trained
 * on in its place; a label that training must not see ends the program. Nothing of this happens in a program
 * without a network under AMP.
 *
 * Which image takes the place of a bad one depends on the loading thread's own random numbers and on the list
 * alone, not on what other threads met before: with -seed N a training with bad images is as reproducible as
 * any. */
#pragma once

#include "../../tensor/status.h"
#include "label_file.h"

/* From now on, in the whole program; before any loader is started. */
void amp_loading_watch(void);

/* The calling thread loads from here on: `classes` is the network's, for labels. list: the images of the
 * training list, of which another may be taken for a bad one; NULL: none may. It stays valid until
 * amp_loading_end. */
void amp_loading_begin(char **list, int count, int classes);
void amp_loading_end(void);

/* The boxes of a label file, *count of them, the caller's; NULL: Darknet is to read the file itself. A label
 * that training must not see ends the program. */
amp_label *amp_loading_labels(const char *file, int *count);

/* The end of a training: lines on stderr for what was left out and for what cache=ram kept, none where
 * nothing was. */
void amp_loading_summary(void);
