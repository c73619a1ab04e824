/* What loader threads do with bad files. An image that cannot be read is named on stderr, once, and another
 * image replaces it in the batch. A bad label ends the program: a training does so when it reaches the batch,
 * which is loaded a step earlier and may never be used. Without a network under AMP Darknet's own behaviour
 * stays.
 *
 * Which image replaces a bad one depends only on the list and on the thread's own random numbers, not on what
 * other threads have found: with -seed N a training with bad images is as reproducible as any other. */
#pragma once

#include "../../tensor/status.h"
#include "label_file.h"

/* Turns this on for the whole program. Called before any loader is started. */
void amp_loading_watch(void);

/* From now on loaders of a training keep the first fault that no training survives, and its loop asks for it
 * (amp_loading_fault) before it uses a batch. Called before any loader is started. */
void amp_loading_keep_faults(void);
/* Called when a job that loads a batch begins; the one before has ended. */
void amp_loading_begin_job(void);
/* The fault of the last job, which has ended (AMP_OK: none), and the seconds that it took. */
amp_status amp_loading_fault(amp_error *error);
double amp_loading_seconds(void);

/* The loop prefetches the next step's batch during a step. During the last step it is not yet known whether
 * that batch will be used: only if the step is skipped. Each loader of a training's batch calls is_wanted,
 * and loads nothing if it returns 0. wanted: 1, 0, or -1 if it is not known yet, and loaders wait. */
void amp_loading_decide(int wanted);
int amp_loading_is_wanted(void);

/* What a thread loads from. list: the `count` images of the training list, from which the replacement for a
 * bad image is drawn, valid until amp_loading_end; NULL: there are no replacements. */
typedef struct amp_loading {
    char **list;
    int count;
    int part;       /* of the job */
    int classes;    /* the network's, for checking labels */
    int boxes;      /* that a step uses per image */
    float least_w, least_h; /* amp_fork_least_box */
} amp_loading;

/* Called when the calling thread begins to load, and when it has finished. */
void amp_loading_begin(const amp_loading *from);
void amp_loading_end(void);

/* Reads the boxes of a label file, *count of them; the caller frees them. NULL: Darknet reads the file
 * itself. */
amp_label *amp_loading_labels(const char *file, int *count);

/* Called at a training's end: prints how many images and boxes were left out, if any were. */
void amp_loading_summary(void);
