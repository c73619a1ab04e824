/* Saves and resumes a training. A .weights file is written together with its sidecar, NAME.amp, so that after
 * a kill or with a full disk either the old pair or the new one is complete (weights_file.c). A training that
 * starts from a pair continues where it was saved (resume.c). darknet_amp.h describes the hooks,
 * ../amp/sidecar_format.h the sidecar's format. */
#pragma once

#include "../../amp/sidecar.h"
#include "state.h"

/* Variables of a training command's loop. average_loss is NULL unless a loop is running. */
typedef struct amp_loop {
    float *average_loss, last_finite; /* last_finite: the last average before the loss was inf or NaN */
    int *count;
} amp_loop;

/* Where a network is between its files and its training.
 *
 *     FRESH, LOADED                --- training begins --->  TRAINING
 *     TRAINING, UNSAVED, STOPPING  --- a file is saved --->  TRAINING; UNSAVED if that fails
 *     TRAINING, UNSAVED            --- asked to stop ----->  STOPPING
 *     any                          --- file is loaded ---->  LOADED, if a training can continue from the file
 *                                                            (can_continue); else LOADED becomes FRESH, and
 *                                                            the others stay
 *
 * While a file is open, save.weights has names if it is being saved, and save.sidecar if it gets one. */
typedef enum amp_phase {
    AMP_FRESH,    /* random, or of a file that a training does not continue from */
    AMP_LOADED,   /* of last_file: the training that begins next continues from its sidecar */
    AMP_TRAINING, /* from here on a whole file gets a sidecar */
    AMP_UNSAVED,  /* the training's last save has failed */
    AMP_STOPPING  /* the training was asked to stop: its next save is the last */
} amp_phase;

struct amp_resume {
    amp_phase phase;
    char *last_file;       /* the file that was last saved or loaded whole; NULL: none */
    size_t loaded_seen;    /* `seen` when the weights were loaded */
    amp_run_state went_on; /* the sidecar's run state that the training resumed from; all 0 without one */
    amp_loop loop;
    char *file;            /* the file that was last opened */
    int held;              /* the number of layers, from the first, that it has weights for, the network's or
                              fewer; averages of weights count as none */
    amp_sidecar_save save; /* the file that is being saved: without a sidecar only its weights are used */
    float *rank_states;    /* during a save: see amp_run_state.states */
    amp_average *averages; /* up to three per layer: amp_fork_averages */
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
