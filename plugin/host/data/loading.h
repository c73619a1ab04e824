/* What loader threads do with bad files. An image that cannot be read is named on stderr, once, and another
 * image takes its place in the batch. A bad label ends the program. Without a network under AMP Darknet's own
 * behaviour stays.
 *
 * Which image takes the place of a bad one depends only on the list and on the thread's own random numbers,
 * not on what other threads have met: with -seed N a training with bad images is as reproducible as any
 * other. */
#pragma once

#include "../../tensor/status.h"
#include "label_file.h"

/* Begins this, for the whole program. Called before any loader is started. */
void amp_loading_watch(void);

/* The calling thread begins to load. list: the `count` images of the training list, from which a replacement
 * for a bad one is drawn; it must stay valid until amp_loading_end. NULL: there are no replacements. classes:
 * the network's, by which labels are checked. */
void amp_loading_begin(char **list, int count, int classes);
void amp_loading_end(void);

/* Reads the boxes of a label file, *count of them; the caller frees them. NULL: Darknet is to read the file
 * itself. A bad label ends the program. */
amp_label *amp_loading_labels(const char *file, int *count);

/* Called at a training's end: prints how many images and boxes were left out, if any were. */
void amp_loading_summary(void);
