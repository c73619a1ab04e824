/* Handles bad files in loader threads, in a program with a network under AMP. An unreadable image is named on
 * stderr, once, and another image replaces it. A bad label ends the program; a training ends only when it
 * reaches the batch with the label, because a batch is loaded one step ahead and may never be used.
 *
 * The replacement depends only on the list and on the thread's own random numbers, so that -seed N stays
 * reproducible. */
#pragma once

#include "../../tensor/status.h"
#include "label_file.h"

/* Turns this handling on for the whole program. Call it before any loader starts. */
void amp_loading_watch(void);

/* From now on a fatal fault in a training's loader is only stored. The loop asks for the fault with
 * amp_loading_fault before it uses the batch. Call it before any loader starts. */
void amp_loading_keep_faults(void);
/* Call it when a job that loads a batch begins, after the previous job has ended. */
void amp_loading_begin_job(void);
/* Return the latest job's fault (AMP_OK: none), and the seconds that the job took. Call them when the job has
 * ended. */
amp_status amp_loading_fault(amp_error *error);
double amp_loading_seconds(void);

/* amp_loading_decide sets whether the batch that the loop prefetches is wanted: 1, 0, or -1 (not known yet,
 * because the batch prefetched during the final step is used only if the final step is skipped). A loader
 * calls amp_loading_is_wanted, which waits while the value is -1; if it returns 0, the loader loads
 * nothing. */
void amp_loading_decide(int wanted);
int amp_loading_is_wanted(void);

/* What a thread loads. list: the `count` images of the training list, from which the replacement for a bad
 * image is drawn; the list must stay valid until amp_loading_end. NULL: bad images are not replaced. */
typedef struct amp_loading {
    char **list;
    int count;
    int part;       /* the number of the job's part that this thread loads */
    int classes;    /* the network's number of classes, for checking labels */
    int boxes;      /* the maximum number of boxes that a step uses per image */
    float least_w, least_h; /* the smallest box that Darknet uses: amp_fork_least_box */
} amp_loading;

/* A thread calls begin before it loads images, and end afterwards. */
void amp_loading_begin(const amp_loading *from);
void amp_loading_end(void);

/* Returns the *count boxes of a label file, which the caller frees; NULL: Darknet must read it itself. */
amp_label *amp_loading_labels(const char *file, int *count);

/* Prints at the end of a training how many images and boxes were left out, if any were. */
void amp_loading_summary(void);
