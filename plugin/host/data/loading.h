/* Handles bad files in loader threads. If an image cannot be read, its name is printed on stderr, once, and
 * another image replaces it in the batch. A bad label ends the program. A training ends only when it reaches
 * the batch with the bad label, because a batch is loaded one step ahead and may never be used. In a program
 * without a network under AMP, bad files are handled as in stock Darknet.
 *
 * The replacement for a bad image depends only on the list and on the thread's own random numbers, not on
 * what other threads have found. So with -seed N a training with bad images is as reproducible as any
 * other. */
#pragma once

#include "../../tensor/status.h"
#include "label_file.h"

/* Turns this handling on for the whole program. Call it before any loader starts. */
void amp_loading_watch(void);

/* From now on a fatal fault in a training's loader does not end the program at once. It is stored, and the
 * training's loop asks for it (amp_loading_fault) before it uses the batch. Call it before any loader
 * starts. */
void amp_loading_keep_faults(void);
/* Call it when a job that loads a batch begins, after the previous job has ended. */
void amp_loading_begin_job(void);
/* The fault of the last job (AMP_OK: it had no fault), and the seconds that the job took. Call them after the
 * job has ended. */
amp_status amp_loading_fault(amp_error *error);
double amp_loading_seconds(void);

/* During each step the loop prefetches the next step's batch. The batch prefetched during the last step is
 * used only if the last step is skipped, which is not known until this step ends. amp_loading_decide sets
 * whether the prefetched batch is wanted: 1, 0, or -1 (not known yet; loaders wait in amp_loading_is_wanted).
 * Each loader of a training's batch calls amp_loading_is_wanted, and loads nothing if it returns 0. */
void amp_loading_decide(int wanted);
int amp_loading_is_wanted(void);

/* What a thread loads. list: the `count` images of the training list, from which the replacement for a bad
 * image is drawn; it stays valid until amp_loading_end. NULL: bad images are not replaced. */
typedef struct amp_loading {
    char **list;
    int count;
    int part;       /* the number of the job's part that this thread loads */
    int classes;    /* the network's number of classes, for checking labels */
    int boxes;      /* the maximum number of boxes that a step uses per image */
    float least_w, least_h; /* the smallest box that Darknet uses: amp_fork_least_box */
} amp_loading;

/* A thread calls begin before it loads images, and end when it has finished. */
void amp_loading_begin(const amp_loading *from);
void amp_loading_end(void);

/* Reads a label file. Returns its *count boxes, which the caller frees. NULL: Darknet must read the file
 * itself. */
amp_label *amp_loading_labels(const char *file, int *count);

/* Prints at the end of a training how many images and boxes were left out, if any were. */
void amp_loading_summary(void);
