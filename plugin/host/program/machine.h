/* The machine's properties, for commands that need them before they make a network. */
#pragma once

#include "../../backend/backend.h"

enum { AMP_MACHINE_DTYPES = 3 };

typedef struct amp_machine {
    char backend[300];                         /* the library and its instruction set, or the GPU */
    char description[400];                     /* `backend` and the number of threads */
    amp_support support[AMP_MACHINE_DTYPES];   /* indexed by amp_dtype */
    char note[AMP_MACHINE_DTYPES][256];        /* why a dtype is not supported natively; may be empty */
} amp_machine;

extern const char *const amp_support_names[]; /* indexed by amp_support */

/* Fills the struct for the device on which Darknet would train now (-i, -nogpu). AMP_UNSUPPORTED: AMP cannot
 * train on it. */
amp_status amp_machine_read(amp_machine *, amp_error *);
/* Fills the struct from an existing backend. */
void amp_machine_describe(const amp_backend *, amp_machine *);

/* Sets name to the processor's model name; empty if the system does not provide it. */
void amp_machine_processor(char *name, size_t size);
