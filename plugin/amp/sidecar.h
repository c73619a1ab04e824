/* The sidecar NAME.amp beside a .weights file NAME holds what an exact resume needs and a .weights file does
 * not have: the scaler's state, momentum or Adam's moments, arrays that Darknet's format leaves out, gradient
 * sums of an unfinished batch, and the host's counters.
 *
 * The format has a version and a checksum, and contains the checksum of the .weights file it belongs to. The
 * reader trusts nothing: it rejects a file that is damaged, truncated, of another network or of a later
 * version, and gives the reason, before anything is changed. */
#pragma once

#include <stdint.h>

#include "../files/safe_file.h"
#include "engine.h"

enum { AMP_RANDOM_STATE_BYTES = 128 };

/* A running average of the weights over steps, which the host keeps (ema_alpha) in main memory. */
typedef struct amp_average { float *values; size_t count; } amp_average;

/* The host's part: what the program around the engine carries from step to step. */
typedef struct amp_run_state {
    uint64_t seen;            /* images trained on: Darknet's network.seen */
    int64_t t;                /* optimizer steps: network.t */
    uint64_t steps, skipped;  /* of the whole training */
    int32_t width, height;    /* of the network's input: random=1 changes them */
    int32_t batch, subdivisions; /* an unfinished batch is continued only if both are unchanged */
    int32_t window;           /* subdivisions done of the current batch; 0 between steps */
    int32_t seeded;           /* trained with -seed: seed, next_job and random are valid */
    uint32_t seed;
    uint64_t next_job;        /* number of the loading job whose images are trained on next */
    unsigned char random[AMP_RANDOM_STATE_BYTES]; /* state of the main thread's random number generator */
    int32_t looped;           /* saved by the loop of a training command: count and average_loss are valid */
    int32_t loop_count;
    float average_loss;
    /* For a training with several ranks: their number (0 or 1: one rank), the type gradients are sent in
     * (an amp_dtype), the .cfg's sync_batchnorm (-1 in either: not saved), and the state that each rank
     * carries from batch to batch (amp_sidecar_states), rank after rank; owned by the caller; NULL if
     * there is none. */
    int32_t ranks, wire, sync_batchnorm;
    const float *states;
    const amp_average *averages; /* average_count averages; owned by the caller */
    int average_count;
} amp_run_state;

typedef struct amp_sidecar amp_sidecar;

/* Writes a sidecar to path and flushes it to disk; the caller renames it into place. weights_checksum:
 * amp_file_checksum of the .weights file it belongs to. AMP_IO_FAILED: the file at path is removed.
 * AMP_DIVERGED: masters or optimizer state hold inf or NaN, and nothing is written. */
amp_status amp_sidecar_write(const char *path, amp_engine *, const amp_run_state *,
                                uint64_t weights_checksum, amp_error *);

/* Reads and checks a whole sidecar. The caller owns *out. AMP_BAD_SIDECAR, with the reason, if the file is
 * not valid. parse does the same for a file's bytes, from malloc, which it owns from then on, also after a
 * failure; `name` is used in messages. */
amp_status amp_sidecar_read(const char *path, amp_sidecar **out, amp_error *);
amp_status amp_sidecar_parse(unsigned char *bytes, size_t size, const char *name, amp_sidecar **out,
                             amp_error *);
void amp_sidecar_free(amp_sidecar *);

/* The state that recurrent layers carry from batch to batch, different for each rank: the number of floats,
 * and the floats. */
size_t amp_sidecar_state_count(const amp_engine *);
amp_status amp_sidecar_states(const amp_engine *, float *states, amp_error *);

/* states and averages are NULL here; amp_sidecar_fit_rank and amp_sidecar_fit_averages read them. */
const amp_run_state *amp_sidecar_run(const amp_sidecar *);
int amp_sidecar_adam(const amp_sidecar *);         /* trained with Adam; else SGD */

/* Restores the saved state in the engine. Rejects a sidecar of another network (AMP_BAD_SIDECAR) before it
 * changes anything. The .cfg's settings are kept (growth_factor and the like); the state is the saved one
 * (scale, trackers, counters). note (may be empty): what the user should know, for example that the optimizer
 * or the loss scaling has changed. Any other status: the backend's memory cannot be written, and the engine
 * must not be used further. */
amp_status amp_sidecar_apply(const amp_sidecar *, amp_engine *, char note[256], amp_error *);

/* Call after amp_sidecar_apply. The engine is rank `rank` of `ranks`: its recurrent layers continue from the
 * state this rank saved, or from an empty state, with a note, if the number of ranks has changed. */
amp_status amp_sidecar_fit_rank(const amp_sidecar *, amp_engine *, int rank, int ranks, char note[256],
                                   amp_error *);

/* Call after amp_sidecar_apply. Fills averages from the file; leaves them unchanged if the file has none.
 * AMP_BAD_SIDECAR, and nothing is changed, if number or sizes differ. */
amp_status amp_sidecar_fit_averages(const amp_sidecar *, const amp_average *averages, int count,
                                       amp_error *);

/* Call after amp_sidecar_apply, with several ranks. Adds to note if they trained with another wire= or
 * sync_batchnorm=. */
void amp_sidecar_fit_ranks(const amp_sidecar *, amp_dtype wire, int sync_batchnorm, char note[256]);

/* Darknet's momentum, and so Adam's moments, are of gradients summed over the batch. If the saved batch had
 * another number of images, this rescales them to sums over `images`, and adds to note. */
void amp_sidecar_fit_batch(const amp_sidecar *, amp_engine *, int images, char note[256]);

/* NAME.amp, owned by the caller. */
char *amp_sidecar_name(const char *weights);

/* Saves the pair NAME and NAME.amp so that a kill at any moment leaves a matching pair: the old one, or the
 * new one after amp_sidecar_recover. If NAME is a symbolic link, both files are beside its target.
 *
 *     amp_sidecar_save save;
 *     AMP_TRY(amp_sidecar_begin(name, &save, error));
 *     ... write the .weights to save.weights.temporary, and check that all of it was written ...
 *     status = amp_sidecar_finish(&save, engine, run, error);
 *     or, when that failed, amp_sidecar_cancel(&save)
 *
 * finish ends the save even if it fails: then the old pair is whole and in place, unless the message says
 * where the new one is. A device or a FIFO is written directly (save.weights.direct) and gets no sidecar. */
typedef struct amp_sidecar_save { amp_safe_file weights, sidecar; } amp_sidecar_save;

amp_status amp_sidecar_begin(const char *name, amp_sidecar_save *, amp_error *);
amp_status amp_sidecar_finish(amp_sidecar_save *, amp_engine *, const amp_run_state *,
                                 amp_error *);
void amp_sidecar_cancel(amp_sidecar_save *);

/* Call before a training loads NAME. Completes a save of NAME that was killed after all its data was on disk,
 * and reads the sidecar. *out, owned by the caller: the sidecar of exactly this .weights file, or NULL if
 * there is none or NAME does not exist. If there is one, leftovers of killed saves are removed. note (may be
 * empty): what was completed. AMP_BAD_SIDECAR: the sidecar is not valid, or belongs to other weights. A
 * program that reads weights without training may call it if NAME is missing; if NAME exists, another program
 * may be saving it.
 *
 * out is NULL for a NAME that this training saves but does not start from: then what cannot be completed
 * is removed as well, and reported in note if there is no older NAME. */
amp_status amp_sidecar_recover(const char *name, amp_sidecar **out, char note[256], amp_error *);
