/* The machine as its backend knows it, for commands that must ask before they make a network. */
#pragma once

#include "../../backend/backend.h"

enum { AMP_MACHINE_DTYPES = 3 };

typedef struct amp_machine {
    char description[400];                     /* library, instruction set, threads: for the user */
    amp_support support[AMP_MACHINE_DTYPES];   /* indexed by amp_dtype */
    char note[AMP_MACHINE_DTYPES][256];        /* why not, or not natively; may be empty */
} amp_machine;

/* Of the device that Darknet would train on now: -i, -nogpu. AMP_UNSUPPORTED: AMP cannot train there at
 * all. */
amp_status amp_machine_read(amp_machine *, amp_error *);
/* The same of a backend that is there already. */
void amp_machine_describe(const amp_backend *, amp_machine *);

/* The processor's name, as its maker gives it; empty where nothing tells it. */
void amp_machine_processor(char *name, size_t size);
