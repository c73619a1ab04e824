/* The network's input as page-locked memory.
 *
 * Darknet callocs net->input, and a GPU reads such memory several times slower than what is page-locked,
 * with the host at work or waiting. So it is locked where it lies: at the first training forward, because
 * only trainings are fed through it, and until Darknet frees it. A machine that refuses is no error; a
 * line says so once. Nothing without a GPU. */
#pragma once

#include "darknet.h"

/* What Darknet has allocated as net->input: a command may put memory of its own there for a while, which
 * is never locked. */
typedef struct amp_host_pinned {
    float *input; /* NULL: not known, or to be freed */
    size_t bytes;
    int tried, locked;
} amp_host_pinned;

/* net->input was just allocated: after parsing and after a resize. */
void amp_host_pin_note(amp_host_pinned *, const network *net);
/* Before a forward: locks it if this one trains, and reads what was noted. */
void amp_host_pin(amp_host_pinned *, const network *net);
/* Before it is freed. No copy may be under way; none is between two hooks, as amp_engine_forward ends with
 * uploads_done. */
void amp_host_unpin(amp_host_pinned *);
