/* The sidecar NAME.amp beside a .weights file NAME: what exact resumption needs and a .weights file does not
 * hold.
 *
 * It holds the scaler's state, momentum or Adam's moments, arrays that Darknet's format leaves out, gradient
 * sums when a batch is half done, and the host's counters. Its format is versioned, carries a checksum of
 * itself, and names the .weights file it belongs to by that file's checksum. Reading takes nothing on trust:
 * a file that is damaged, truncated, foreign or of a later version is refused with the reason, before
 * anything is changed. */
#pragma once

#include <stdint.h>

#include "../files/safe_file.h"
#include "engine.h"

enum { AMP_RANDOM_STATE_BYTES = 128 };

/* An average over steps of weights, which the host keeps (ema_alpha), in the program's memory. */
typedef struct amp_average { float *values; size_t count; } amp_average;

/* The host's part: what the program around the engine carries from step to step. */
typedef struct amp_run_state {
    uint64_t seen;            /* images trained on: Darknet's network.seen */
    int64_t t;                /* optimizer steps: network.t */
    uint64_t steps, skipped;  /* of the whole training */
    int32_t width, height;    /* of the network's input: random=1 moves them */
    int32_t batch, subdivisions; /* a window goes on only where both are what they were */
    int32_t window;           /* subdivisions done of the batch under way; 0 between steps */
    int32_t seeded;           /* trained with -seed: seed, next_job and random are valid */
    uint32_t seed;
    uint64_t next_job;        /* number of the loading job whose images are trained on next */
    unsigned char random[AMP_RANDOM_STATE_BYTES]; /* the main thread's generator */
    int32_t looped;           /* saved by a training command's loop: count and average_loss are valid */
    int32_t loop_count;
    float average_loss;
    /* Of several ranks that trained together: how many (0, 1: one), what gradients travelled in (an
     * amp_dtype), sync_batchnorm of the .cfg (either is -1 if it was not saved), and what each carries from
     * batch to batch (amp_sidecar_states), one after the other: the caller's; NULL where that is
     * nothing. */
    int32_t ranks, wire, sync_batchnorm;
    const float *states;
    const amp_average *averages; /* the caller's, average_count of them */
    int average_count;
} amp_run_state;

typedef struct amp_sidecar amp_sidecar;

/* Writes a sidecar to path and flushes it to the disk; the caller renames it into place. weights_checksum:
 * amp_file_checksum of the .weights file it goes with. AMP_IO_FAILED: the file at path is removed.
 * AMP_DIVERGED: masters or optimizer state hold inf or NaN, and nothing is written. */
amp_status amp_sidecar_write(const char *path, amp_engine *, const amp_run_state *,
                                uint64_t weights_checksum, amp_error *);

/* Reads and checks a whole sidecar. *out belongs to the caller. AMP_BAD_SIDECAR and a line with the reason
 * if it is not a sound one. parse is the same for bytes in memory, which it copies; name is for messages. */
amp_status amp_sidecar_read(const char *path, amp_sidecar **out, amp_error *);
amp_status amp_sidecar_parse(const void *bytes, size_t size, const char *name, amp_sidecar **out,
                                amp_error *);
void amp_sidecar_free(amp_sidecar *);

/* What recurrent layers carry from batch to batch, which is a rank's own: how many floats, and those. */
size_t amp_sidecar_state_count(const amp_engine *);
amp_status amp_sidecar_states(const amp_engine *, float *states, amp_error *);

/* states and averages are NULL here: amp_sidecar_fit_rank and amp_sidecar_fit_averages read them. */
const amp_run_state *amp_sidecar_run(const amp_sidecar *);
uint64_t amp_sidecar_weights(const amp_sidecar *); /* the checksum of its .weights file */
int amp_sidecar_adam(const amp_sidecar *);         /* trained with Adam; else SGD */
const amp_scaler *amp_sidecar_scaler(const amp_sidecar *);

/* Puts the engine into the state saved. Refuses a sidecar of another network (AMP_BAD_SIDECAR) before it
 * changes anything. note (may come out empty): what the user should know, as when the optimizer or the loss
 * scaling was changed since; settings of the .cfg win over saved ones (growth_factor and its like), state is
 * the saved one (scale, trackers, counters). Any other status: the backend's memory cannot be written, and
 * the engine is of no more use. */
amp_status amp_sidecar_apply(const amp_sidecar *, amp_engine *, char note[256], amp_error *);

/* After that: the engine is rank `rank` of `ranks`, and recurrent layers go on from what just this rank
 * carried; from an empty state, with a note, where there were more or fewer ranks. */
amp_status amp_sidecar_fit_rank(const amp_sidecar *, amp_engine *, int rank, int ranks, char note[256],
                                   amp_error *);

/* After that: fills averages with those of the file; as they are, where it has none. AMP_BAD_SIDECAR, and
 * nothing is changed: it has others. */
amp_status amp_sidecar_fit_averages(const amp_sidecar *, const amp_average *averages, int count,
                                       amp_error *);

/* After that too, of a rank of several: adds to note that they trained with another wire= or
 * sync_batchnorm=. */
void amp_sidecar_fit_ranks(const amp_sidecar *, amp_dtype wire, int sync_batchnorm, char note[256]);

/* Darknet's momentum is of gradients summed over the batch, and so are Adam's moments. If the
 * batch had another number of images then, they are made what sums over `images` would be. Adds to note. */
void amp_sidecar_fit_batch(const amp_sidecar *, amp_engine *, int images, char note[256]);

/* NAME.amp, the caller's. */
char *amp_sidecar_name(const char *weights);

/* Saving the pair, NAME and its sidecar NAME.amp, so that a kill at any moment leaves a pair that matches:
 * the old one, or the new one after amp_sidecar_recover. What NAME points to, if it is a symbolic link, is
 * where both lie.
 *
 *     amp_sidecar_save save;
 *     AMP_TRY(amp_sidecar_begin(name, &save, error));
 *     ... write the .weights to save.weights.temporary, and see that all of it was written ...
 *     status = amp_sidecar_finish(&save, engine, run, error);
 *     or, when that failed, amp_sidecar_cancel(&save)
 *
 * finish ends the save also when it fails; then the pair before is whole and in place, unless the message
 * says where the new one is. A device or a FIFO is written directly (save.weights.direct) and gets no
 * sidecar. */
typedef struct amp_sidecar_save { amp_safe_file weights, sidecar; } amp_sidecar_save;

amp_status amp_sidecar_begin(const char *name, amp_sidecar_save *, amp_error *);
amp_status amp_sidecar_finish(amp_sidecar_save *, amp_engine *, const amp_run_state *,
                                 amp_error *);
void amp_sidecar_cancel(amp_sidecar_save *);

/* To be called before a training loads NAME: ends a save of NAME that was killed when all of it was on the
 * disk, and reads the sidecar. *out, the caller's: the sidecar of just this .weights file; NULL if there is
 * none, or no NAME; with it, what killed saves left is removed. note (may come out empty): what was ended.
 * AMP_BAD_SIDECAR: the sidecar is not sound, or belongs to other weights. Not for programs that only look
 * at the weights: another one may be saving them. */
amp_status amp_sidecar_recover(const char *name, amp_sidecar **out, char note[256], amp_error *);

/* The same for a NAME that this training saves itself and does not begin from: what cannot be ended is
 * removed, and told in note if there is no older NAME. */
amp_status amp_sidecar_settle(const char *name, char note[256], amp_error *);
