/* The sidecar NAME.amp beside a .weights file NAME contains what an exact resume needs in addition: the
 * scaler's state, momentum or Adam's moments, arrays that Darknet's format leaves out, gradient sums of an
 * unfinished batch, and the host's counters.
 *
 * It has a version, a checksum, and the checksum of its .weights file. The reader trusts nothing: a file that
 * is damaged, truncated, of another network or of a later version is rejected, with the reason, before
 * anything is changed. */
#pragma once

#include <stdint.h>

#include "../files/safe_file.h"
#include "engine.h"

enum { AMP_RANDOM_STATE_BYTES = 128 };

/* A running average of the weights (ema_alpha), in main memory. */
typedef struct amp_average { float *values; size_t count; } amp_average;

/* What the program around the engine carries from step to step. */
typedef struct amp_run_state {
    uint64_t seen;            /* number of images trained on: Darknet's network.seen */
    int64_t t;                /* number of optimizer steps: Darknet's network.t */
    uint64_t steps, skipped;  /* numbers of steps and skipped steps in the whole training */
    int32_t width, height;    /* size of the network's input; random=1 changes it */
    int32_t batch, subdivisions; /* an unfinished batch is continued only if both are unchanged */
    int32_t window;           /* subdivisions done in the current batch */
    int32_t seeded;           /* 1: the training uses -seed, so seed, next_job and random are valid */
    uint32_t seed;
    uint64_t next_job;        /* the loading job whose images come next */
    unsigned char random[AMP_RANDOM_STATE_BYTES]; /* state of the main thread's random number generator */
    int32_t looped;           /* 1: saved by a training command's loop: loop_count, average_loss are valid */
    int32_t loop_count;
    float average_loss;
    /* ranks: the number of ranks that train; 0 or 1: one. wire: the type in which ranks send gradients (an
     * amp_dtype). sync_batchnorm: the .cfg's setting. In a file saved by one rank, wire and sync_batchnorm
     * are not saved, and read as -1. */
    int32_t ranks, wire, sync_batchnorm;
    const float *states;      /* states of the recurrent layers of all ranks, in rank order
                                 (amp_sidecar_states). Owned by the caller; NULL: none */
    const amp_average *averages; /* average_count averages; owned by the caller */
    int average_count;
} amp_run_state;

typedef struct amp_sidecar amp_sidecar;

/* Writes a sidecar and flushes it to disk; the caller renames it. weights_checksum: amp_file_checksum of its
 * .weights file. AMP_IO_FAILED: writing failed, and the file at path was removed. AMP_DIVERGED: masters or
 * optimizer state contain inf or NaN; nothing was written. */
amp_status amp_sidecar_write(const char *path, amp_engine *, const amp_run_state *,
                                uint64_t weights_checksum, amp_error *);

/* Reads and checks a sidecar file, or its bytes (from malloc); amp_sidecar_parse takes ownership of the bytes
 * even if it fails. name: for messages. The caller owns *out. AMP_BAD_SIDECAR: the error says why. */
amp_status amp_sidecar_read(const char *path, amp_sidecar **out, amp_error *);
amp_status amp_sidecar_parse(unsigned char *bytes, size_t size, const char *name, amp_sidecar **out,
                             amp_error *);
void amp_sidecar_free(amp_sidecar *);

/* The state that recurrent layers carry from batch to batch. The first function returns its number of floats
 * for one rank; the second fills an array of that size with this rank's state. */
size_t amp_sidecar_state_count(const amp_engine *);
amp_status amp_sidecar_states(const amp_engine *, float *states, amp_error *);

/* The host's part of the state. The fields `states` and `averages` are NULL; amp_sidecar_fit_rank and
 * amp_sidecar_fit_averages restore them from the file. */
const amp_run_state *amp_sidecar_run(const amp_sidecar *);
int amp_sidecar_adam(const amp_sidecar *);         /* 1: the saved training used Adam or AdamW; 0: SGD */

/* Restores scale, trackers, counters and arrays; the engine keeps its .cfg's settings. note (may be empty):
 * what the user should know, for example that the optimizer has changed. AMP_BAD_SIDECAR: the sidecar is of
 * another network; nothing was changed. Any other error: the backend's memory cannot be written; do not use
 * the engine any more. */
amp_status amp_sidecar_apply(const amp_sidecar *, amp_engine *, char note[256], amp_error *);

/* Call after amp_sidecar_apply. The engine's recurrent layers continue from what this rank saved. If the
 * number of ranks has changed, they start from an empty state, and a sentence about this is appended to
 * `note`. */
amp_status amp_sidecar_fit_rank(const amp_sidecar *, amp_engine *, int rank, int ranks, char note[256],
                                   amp_error *);

/* Call after amp_sidecar_apply. Fills averages[count] if the file has averages. AMP_BAD_SIDECAR: the file's
 * averages differ in number or size; nothing was changed. */
amp_status amp_sidecar_fit_averages(const amp_sidecar *, const amp_average *averages, int count,
                                       amp_error *);

/* Call after amp_sidecar_apply with several ranks. If wire= or sync_batchnorm= has changed, appends a
 * sentence about this to `note`. */
void amp_sidecar_fit_ranks(const amp_sidecar *, amp_dtype wire, int sync_batchnorm, char note[256]);

/* Momentum and Adam's moments refer to gradients summed over the batch, as in Darknet. If the saved batch had
 * a different number of images, rescales momentum and moments to a batch of `images` images, and appends a
 * sentence about this to `note`. Fails only if the device fails. */
amp_status amp_sidecar_fit_batch(const amp_sidecar *, amp_engine *, int images, char note[256], amp_error *);

/* `weights` followed by ".amp". The caller frees it. */
char *amp_sidecar_name(const char *weights);

/* Saves the pair NAME and NAME.amp. If a save is killed, either the old pair is still in place, or
 * amp_sidecar_recover puts the new pair in place. If NAME is a symbolic link, both files are beside its
 * target.
 *
 *     amp_sidecar_save save;
 *     AMP_TRY(amp_sidecar_begin(name, &save, error));
 *     ... write the .weights to save.weights.temporary, and check that all of it was written ...
 *     status = amp_sidecar_finish(&save, engine, run, error);
 *     or, if writing failed, amp_sidecar_cancel(&save)
 *
 * After a failure of amp_sidecar_finish the old pair is in place, unless the error message says where the new
 * pair is. A device or a FIFO is written directly (save.weights.direct) and gets no sidecar. */
typedef struct amp_sidecar_save { amp_safe_file weights, sidecar; } amp_sidecar_save;

amp_status amp_sidecar_begin(const char *name, amp_sidecar_save *, amp_error *);
amp_status amp_sidecar_finish(amp_sidecar_save *, amp_engine *, const amp_run_state *,
                                 amp_error *);
void amp_sidecar_cancel(amp_sidecar_save *);

/* Call before a training loads NAME. Completes a save of NAME that was killed after all its data was on disk,
 * and reads the sidecar.
 *
 * *out, owned by the caller: the sidecar of exactly this .weights file; NULL: NAME has none or does not
 * exist. If there is a sidecar, files left behind by killed saves have been removed. note (may be empty):
 * which save was completed. AMP_BAD_SIDECAR: the sidecar is not valid, or belongs to other weights.
 *
 * Call with out = NULL for a NAME that this training saves but does not start from. If a killed save of NAME
 * cannot be completed, the files that it left behind are removed. If there is no file NAME either, note says
 * what was removed.
 *
 * A program that reads weights without training may call this only if NAME is missing: another program may be
 * saving an existing NAME. */
amp_status amp_sidecar_recover(const char *name, amp_sidecar **out, char note[256], amp_error *);
