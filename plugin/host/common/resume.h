/* Files of a training, on the host's side: .weights files are written so that a kill or a full disk leaves
 * the old or the new one whole, each with its sidecar (weights_file.c), and a training that starts from such
 * a pair goes on where it was saved (resume.c). The hooks are described in darknet_amp.h, the sidecar in
 * ../amp/checkpoint.h. */
#pragma once

#include "../../amp/checkpoint.h"
#include "state.h"

/* What a training command's loop carries. average_loss is NULL unless a loop runs now. */
typedef struct amp_loop {
    float *average_loss, last_finite; /* last_finite: before a skipped batch made the average inf or NaN */
    int *count;
} amp_loop;

/* The file that is written or read now. */
typedef struct amp_open_file {
    char *name;
    int loads, whole, with_sidecar; /* whole: of all layers */
    amp_checkpoint_save save; /* without a sidecar only its weights are used */
} amp_open_file;

struct amp_resume {
    char *last_file;      /* saved or loaded whole; NULL: none. While pending, what training begins from */
    /* loading */
    int pending;          /* last_file was loaded, and training has not begun since */
    size_t loaded_seen;   /* seen as loaded */
    /* training */
    int training;         /* it began: a saved file gets a sidecar */
    int quiet;            /* another network of the same training speaks */
    amp_run_state went_on; /* what the sidecar said; all 0 without one */
    amp_loop loop;
    amp_open_file file;
    float *rank_states;   /* while a save is under way: see amp_run_state.states */
    amp_average *averages; /* room for a network's */
    int save_failed;      /* the last one */
    int stopping;         /* the loop ends here, before its time: this save is its last */
};

/* One per struct darknet_amp. */
struct amp_resume *amp_resume_create(void);
void amp_resume_free(struct amp_resume *);

/* Before each training forward: goes on from the sidecar, unless darknet_amp_resume did so before, and
 * repairs the loop's displayed loss after a skipped batch. */
void amp_resume_before_forward(struct darknet_amp *, struct network *);

/* The loop begins: what it carried when it was saved, if it goes on; and ends: 1 if the last save failed. */
void amp_resume_loop(struct darknet_amp *, float *average_loss, int *loop_count);
int amp_resume_loop_ended(struct darknet_amp *);

/* For a save that begins: rank 0 gets what the others carry, for its sidecar. The GPU in use is the
 * network's again. */
void amp_resume_gather_states(const struct network *);

/* What a sidecar of net says now. */
amp_run_state amp_resume_run_state(struct darknet_amp *, const struct network *);

/* The file that was last saved or loaded as a whole, or NULL. Lives until the next save or load. */
const char *amp_host_last_checkpoint(struct darknet_amp *);
