/* The machine as its backend knows it, for commands that must ask before they make a network. */
#pragma once

#include "../../backend/backend.h"

enum { AMP_MACHINE_DTYPES = 3 };

typedef struct amp_machine {
    char backend[300];                         /* library and instruction set, or GPU: for the user */
    char description[400];                     /* the same and the number of threads */
    amp_support support[AMP_MACHINE_DTYPES];   /* indexed by amp_dtype */
    char note[AMP_MACHINE_DTYPES][256];        /* why not, or not natively; may be empty */
} amp_machine;

extern const char *const amp_support_names[]; /* indexed by amp_support */

/* Describes the device that Darknet would train on now, by -i and -nogpu. AMP_UNSUPPORTED: AMP cannot train
 * on it at all. */
amp_status amp_machine_read(amp_machine *, amp_error *);
/* Fills the struct from a backend that exists already. */
void amp_machine_describe(const amp_backend *, amp_machine *);

/* The processor's name as its maker gives it; empty where the system does not give it. */
void amp_machine_processor(char *name, size_t size);
