/* Saves and resumes a training. A .weights file is written together with its sidecar, NAME.amp, in such a way
 * that after a kill or with a full disk either the old pair or the new one is whole (weights_file.c). A
 * training that starts from a pair continues where it was saved (resume.c). darknet_amp.h describes the
 * hooks, ../amp/sidecar_format.h the sidecar's format. */
#pragma once

#include "../../amp/sidecar.h"
#include "state.h"

/* Variables of a training command's loop. average_loss is NULL unless a loop is running. */
typedef struct amp_loop {
    float *average_loss, last_finite; /* last_finite: the last average before the loss was inf or NaN */
    int *count;
} amp_loop;

/* The file that is being written or read. */
typedef struct amp_open_file {
    char *name;
    int loads, whole, with_sidecar; /* whole: with all layers */
    int held;              /* loading: the number of layers, from the first, that it has weights for */
    amp_sidecar_save save; /* without a sidecar only its weights are used */
} amp_open_file;

struct amp_resume {
    char *last_file;      /* the file that was last saved or loaded whole; NULL: none */
    /* loading */
    int pending;          /* last_file was loaded, and no training has begun since */
    size_t loaded_seen;   /* `seen` when the weights were loaded */
    /* training */
    int training;         /* training has begun: from now on a saved file gets a sidecar */
    int quiet;            /* another network of the same training prints the messages */
    amp_run_state went_on; /* the sidecar's run state that the training resumed from; all 0 without one */
    amp_loop loop;
    amp_open_file file;
    float *rank_states;   /* during a save: see amp_run_state.states */
    amp_average *averages; /* up to three per layer: amp_fork_averages */
    int save_failed;      /* the last save */
    int stopping;         /* the training was asked to stop: this save is its last */
};

/* One per struct darknet_amp. */
struct amp_resume *amp_resume_create(int layers);
void amp_resume_free(struct amp_resume *);

/* Called before each training forward. The first call resumes from the sidecar, unless darknet_amp_resume has
 * done so. Later calls repair the loop's displayed loss after a skipped step. */
void amp_resume_before_forward(struct darknet_amp *, struct network *);

/* loop: the loop begins; if the training resumes, sets its variables to the saved values. loop_ended: returns
 * 1 if the last save failed. */
void amp_resume_loop(struct darknet_amp *, float *average_loss, int *loop_count);
int amp_resume_loop_ended(struct darknet_amp *);

/* Called when a save begins: rank 0 collects the other ranks' states for its sidecar. Afterwards the
 * network's GPU is the current one again. */
void amp_resume_gather_states(const struct network *);

/* The state that a sidecar of net would have if it were saved now. */
amp_run_state amp_resume_run_state(struct darknet_amp *, const struct network *);
