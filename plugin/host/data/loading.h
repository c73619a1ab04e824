/* Handles bad files in loader threads. An image that cannot be read is named on stderr, once, and another
 * image replaces it in the batch. A bad label ends the program. A training ends only when it reaches the
 * batch with the bad label, since the batch is loaded a step earlier and may never be used. Without a network
 * under AMP, Darknet's own behaviour stays.
 *
 * Which image replaces a bad one depends only on the list and on the thread's own random numbers, not on what
 * other threads have found: with -seed N a training with bad images is as reproducible as any other. */
#pragma once

#include "../../tensor/status.h"
#include "label_file.h"

/* Turns this handling on for the whole program. Called before any loader is started. */
void amp_loading_watch(void);

/* From now on a fatal fault in a loader of a training does not end the program at once. It is kept, and the
 * training's loop asks for it (amp_loading_fault) before it uses the batch. Called before any loader is
 * started. */
void amp_loading_keep_faults(void);
/* Called when a job that loads a batch begins. The job before has ended. */
void amp_loading_begin_job(void);
/* The fault of the last job, which has ended (AMP_OK: it had none), and the seconds that the job took. */
amp_status amp_loading_fault(amp_error *error);
double amp_loading_seconds(void);

/* The loop prefetches the next step's batch during a step. During the last step it is not yet known whether
 * that batch will be used; it will only if the step is skipped. wanted: 1, 0, or -1 (not known yet: loaders
 * wait in is_wanted). Each loader of a training's batch calls is_wanted and loads nothing if that returns
 * 0. */
void amp_loading_decide(int wanted);
int amp_loading_is_wanted(void);

/* What a thread loads from. list: the `count` images of the training list, valid until amp_loading_end, from
 * which the replacement for a bad image is drawn; NULL: there are no replacements. */
typedef struct amp_loading {
    char **list;
    int count;
    int part;       /* the part of the job that this thread loads */
    int classes;    /* the network's number of classes, for checking labels */
    int boxes;      /* the maximum number of boxes that a step uses per image */
    float least_w, least_h; /* the smallest box that Darknet uses: amp_fork_least_box */
} amp_loading;

/* Called when the calling thread begins to load, and when it has finished. */
void amp_loading_begin(const amp_loading *from);
void amp_loading_end(void);

/* Reads the *count boxes of a label file; the caller frees them. NULL: Darknet must read the file itself. */
amp_label *amp_loading_labels(const char *file, int *count);

/* Called at a training's end: prints how many images and boxes were left out, if any were. */
void amp_loading_summary(void);
