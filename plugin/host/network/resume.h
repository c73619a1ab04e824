/* Saves and resumes a training. A .weights file is written together with its sidecar, NAME.amp, in a way that
 * leaves the old or the new pair complete if the program is killed or the disk is full (weights_file.c). A
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

/* Whether a network was loaded, is being trained, or could not be saved.
 *
 *     FRESH, LOADED                --- training begins --->  TRAINING
 *     TRAINING, UNSAVED, STOPPING  --- a file is saved --->  TRAINING; UNSAVED if that fails
 *     TRAINING, UNSAVED            --- asked to stop ----->  STOPPING
 *     any                          --- file is loaded ---->  LOADED, if a training can continue from the file
 *                                                            (can_continue); otherwise LOADED becomes FRESH
 *                                                            and any other phase stays
 *
 * While a file is being saved, save.weights has names. save.sidecar has names if the file gets a sidecar. */
typedef enum amp_phase {
    AMP_FRESH,    /* weights are random, or from a file that a training does not continue from */
    AMP_LOADED,   /* weights are from last_file; the next training continues from its sidecar */
    AMP_TRAINING, /* from here on a file with all layers gets a sidecar */
    AMP_UNSAVED,  /* the training's last save has failed */
    AMP_STOPPING  /* the training was asked to stop: its next save is the last */
} amp_phase;

struct amp_resume {
    amp_phase phase;
    char *last_file;       /* the file that was last saved or loaded whole; NULL: none */
    size_t loaded_seen;    /* `seen` when the weights were loaded */
    amp_run_state went_on; /* the run state of the sidecar that the training resumed from; all 0: none */
    amp_loop loop;
    char *file;            /* the file that was last opened */
    int held;              /* the number of layers, from the first, for which `file` has weights: at most the
                              network's; 0 for a file with averages of weights */
    amp_sidecar_save save; /* the file that is being saved; only save.weights is used without a sidecar */
    float *rank_states;    /* during a save: see amp_run_state.states */
    amp_average *averages; /* up to three per layer: amp_fork_averages */
};

/* Each struct darknet_amp has one. */
struct amp_resume *amp_resume_create(int layers);
void amp_resume_free(struct amp_resume *);

/* Called before each training forward. The first call resumes from the sidecar, unless darknet_amp_resume has
 * done so. Later calls repair the loop's displayed loss after a skipped step. */
void amp_resume_before_forward(struct darknet_amp *, struct network *);

/* amp_resume_loop: the loop begins. If the training resumes, sets the loop's variables to the saved values.
 * amp_resume_loop_ended: the loop has ended. Returns 1 if the last save failed. */
void amp_resume_loop(struct darknet_amp *, float *average_loss, int *loop_count);
int amp_resume_loop_ended(struct darknet_amp *);

/* Called on all ranks when a save begins: collects the recurrent states of all ranks for rank 0's sidecar.
 * Afterwards the network's GPU is the current one again. */
void amp_resume_gather_states(const struct network *);

/* The state that a sidecar of net would have if it were saved now. */
amp_run_state amp_resume_run_state(struct darknet_amp *, const struct network *);
