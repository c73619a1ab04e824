/* Saves and resumes a training. A .weights file is written together with its sidecar, NAME.amp; after a kill
 * or on a full disk, either the old pair or the new pair is complete (weights_file.c). A training that starts
 * from a pair continues where it was saved (resume.c). The hooks: darknet_amp.h; the sidecar's format:
 * ../../amp/sidecar_format.h. */
#pragma once

#include "../../amp/sidecar.h"
#include "state.h"

/* The variables of a training command's loop. average_loss is NULL unless a loop is running. */
typedef struct amp_loop {
    float *average_loss, last_finite; /* last_finite: the latest average that was neither inf nor NaN */
    int *count;
} amp_loop;

/* The phase of a network. The phase decides whether a training resumes from a sidecar, and whether a saved
 * file gets a sidecar.
 *
 *     FRESH, LOADED                --- training begins --->  TRAINING
 *     TRAINING, UNSAVED, STOPPING  --- a file is saved --->  TRAINING; UNSAVED if that fails
 *     TRAINING, UNSAVED            --- asked to stop ----->  STOPPING
 *     any                          --- file is loaded ---->  LOADED, if a training can continue from the file
 *                                                            (can_continue); otherwise LOADED becomes FRESH
 *                                                            and any other phase stays */
typedef enum amp_phase {
    AMP_FRESH,    /* weights are random, or from a file from which a training cannot continue */
    AMP_LOADED,   /* weights are from last_file, and the next training continues from its sidecar */
    AMP_TRAINING, /* a training has begun; each save of all layers also writes a sidecar */
    AMP_UNSAVED,  /* the training's latest save has failed */
    AMP_STOPPING  /* the training was asked to stop; its next save is its final one */
} amp_phase;

struct amp_resume {
    amp_phase phase;
    char *last_file;       /* the file that was most recently saved or loaded with all layers; NULL: none */
    size_t loaded_seen;    /* `seen` when the weights were loaded */
    amp_run_state went_on; /* state in the sidecar that the training resumed from; all 0: it did not resume */
    amp_loop loop;
    char *file;            /* the file that was most recently opened */
    int held;              /* number of layers, from the first, whose weights `file` has; 0 for averages of
                              weights */
    amp_sidecar_save save; /* the file that is being saved; without a sidecar, only save.weights is used */
    float *rank_states;    /* the recurrent states of all ranks, during a save: see amp_run_state.states */
    amp_average *averages; /* an array with room for three per layer: see amp_fork_averages */
};

struct amp_resume *amp_resume_create(int layers);
void amp_resume_free(struct amp_resume *);

/* Call it before each training forward. The first call resumes from the sidecar, unless darknet_amp_resume
 * has done so. Each call replaces an average loss that is inf or NaN by the latest finite one. */
void amp_resume_before_forward(struct darknet_amp *, struct network *);

/* Call amp_resume_loop when the loop begins. It sets the loop's variables to the saved values if the training
 * resumes. Call amp_resume_loop_ended when the loop has ended. It returns 1 if the latest save failed. */
void amp_resume_loop(struct darknet_amp *, float *average_loss, int *loop_count);
int amp_resume_loop_ended(struct darknet_amp *);

/* Call it on all ranks when a save begins. Collects the recurrent states of all ranks for rank 0's sidecar.
 * Afterwards the network's GPU is the current GPU again. */
void amp_resume_gather_states(const struct network *);

/* Returns the run state that a sidecar of net would contain if it were saved now. */
amp_run_state amp_resume_run_state(struct darknet_amp *, const struct network *);
