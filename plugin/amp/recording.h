/* graphs=1 (off by default): the forward and the backward of a training are recorded once and then replayed
 * as a whole, if the backend supports it (backend.h, pass_begin).
 *
 * A replay repeats the operations with the same addresses and scalar arguments. So a pass is recorded again
 * if one of these has changed: the address of the images (a GPU has two blocks for them, each with its own
 * recording), the address of the labels, the loss scale. When another plan becomes active, all recordings are
 * dropped. A plan's first pass is never recorded, because backends allocate memory in it. A replay does not
 * mark which forms of each value are valid (amp_value.data_valid). These marks are the same after every
 * forward of the plan, so they are saved with the recordings, and restored after a replay.
 *
 * A pass is not recorded if a layer does work that a backend does not queue (the host's own layers, dropout's
 * random numbers), if an observer looks at each layer, or if several ranks train. If recording fails, the
 * pass runs again without it, recording is turned off, and `line` says why. */
#pragma once

#include "plan.h"

/* The recordings of passes that read one block of images, and the arguments of these passes. */
typedef struct amp_recorded {
    const float *image, *labels;
    float scale;
    amp_recorded_pass *forward, *backward; /* NULL: not recorded yet */
} amp_recorded;

typedef struct amp_recording {
    int on;                    /* 1: graphs=1, and no recording has failed */
    int warm;                  /* 1: the active plan has run a forward and a backward */
    amp_recorded blocks[2];
    amp_recorded *current;     /* the current pass's entry of `blocks`; NULL: the pass is not recorded */
    amp_value *values, image;  /* copies of the plan's values after a forward; owned */
    char line[400];            /* a message for the user; empty: no message */
    int line_is_new;           /* 1: `line` is not printed yet; the host clears this */
} amp_recording;

/* Whether passes of this plan cannot be recorded. Writes the first reason to `line`, unless the reason is
 * graphs=0 or image_delta. looks: what observes each layer ("debug=1"), or NULL. ranks: whether several ranks
 * train. */
int amp_recording_is_off(amp_recording *, const amp_plan *, const amp_backend *, const char *looks,
                         int ranks);
/* Call when a training's forward begins. Sets `current`, or clears it if this pass must not be recorded. */
void amp_recording_choose(amp_recording *, const amp_plan *, const amp_call *, const float *image);
/* amp_recording_keep_values saves which forms of the plan's values are valid; call it after a forward that
 * was not replayed. amp_recording_put_values restores what was saved; call it after a forward was replayed,
 * and also before a backward runs again because its recording failed. */
void amp_recording_keep_values(amp_recording *, const amp_plan *);
void amp_recording_put_values(const amp_recording *, amp_plan *);
/* Call when another plan becomes active. */
void amp_recording_drop(amp_recording *, amp_backend *);
/* Frees all recordings, turns recording off for the rest of this training, and sets `line` to the reason. */
void amp_recording_fail(amp_recording *, amp_backend *, const amp_error *why);
