/* Whether a training fits into the memory that there is: asked before anything large is taken. */
#pragma once

#include "../../tensor/status.h"

struct network;

/* Compares what a training of the network takes at its largest input size with the free memory. Too little:
 * AMP_NO_MEMORY, and the error gives both numbers and the fewest subdivisions that would fit. Hardly enough:
 * a warning on stderr.
 *
 * It is called twice. First with roughly=1, before the backend allocates anything, because libraries crash
 * when an allocation fails: what only a library knows (workspaces, layouts of weights) is then estimated or
 * left out, and with checkpoint=auto, which is decided later, so are activations. Then with roughly=0,
 * exactly; the memory that remains is offered to the cache of decoded images (cache=ram). */
amp_status amp_host_check_fits(struct network *, int roughly, amp_error *);

/* Tells the engine which layers backward computes again, by checkpoint= and memory= of [amp]. With
 * checkpoint=auto that is the cheapest choice with which a training of this network fits into memory=, or
 * into the free memory. The engine drops the plans it has made so far. */
amp_status amp_host_choose_recompute(struct network *, amp_error *);

/* ---- -fit of `detector train` and `classifier train` ----
 *
 * The training runs with the number of subdivisions, and with the activation checkpointing, with which it
 * fits into memory and is fastest by the planner's estimate. The batch of a step stays, and so does all
 * mathematics but batch norm's, which sees the images of one pass. */

/* What is chosen of a training. Bytes. */
typedef struct amp_fitting {
    int subdivisions;
    double again;        /* what checkpoint=auto repeats, as a share of a forward's arithmetic; 0: nothing */
    size_t limit;        /* what the choice was made for, and checkpoint=auto is to keep to; 0: not known */
    size_t needs, given; /* what the training takes so, and as the .cfg has it */
    size_t there;        /* what it may take in all; 0: not known */
} amp_fitting;

/* Of a network that was made with one image a pass, before its first pass: the number of subdivisions, from
 * `least` on, and of layers that backward computes again, with which the training fits and is fastest by the
 * planner's estimate. *what: the kind of memory, "RAM". AMP_NO_MEMORY: nothing fits; the error is that of
 * amp_host_check_fits. All ranks call it, and get rank 0's choice. */
amp_status amp_host_choose_fit(struct network *, int least, amp_fitting *, const char **what, amp_error *);

/* fitting.c: -fit was given. */
void amp_fitting_request(void);
/* fitting.c: whether the network that is being made is the one that is made to choose: what it takes is not
 * checked. */
int amp_fitting_looks(void);
