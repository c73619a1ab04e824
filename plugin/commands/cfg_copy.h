/* Reads what a command must know about a .cfg before it makes the network. Copies a .cfg with other values in
 * [net], for -batch, -iters and similar options. */
#pragma once

#include "../amp/cfg_check.h"

/* The values in [net]; max_batches is 0 if missing. under_amp: 1 if the .cfg or -amp turns AMP on. */
typedef struct amp_cfg_facts {
    int under_amp, batch, subdivisions;
    long max_batches;
    cfg_summary summary;
} amp_cfg_facts;

/* Checks the .cfg, prints warnings, and fills *facts. dtype: the argument of -amp; NULL: the .cfg's setting.
 * AMP_BAD_CONFIG: the .cfg has a mistake. */
amp_status amp_cfg_look(const char *cfg, const char *dtype, cfg_use use, amp_cfg_facts *, amp_error *);

typedef struct amp_cfg_change { const char *key; double value; } amp_cfg_change;

/* Copies a .cfg. Lines in [net] with changed keys are dropped, and the new values are added at the section's
 * start; all other lines, including comments, are copied unchanged. AMP_BAD_CONFIG: `from` cannot be read or
 * has no [net]. AMP_IO_FAILED: `to` cannot be written. */
amp_status amp_cfg_copy(const char *from, const char *to, const amp_cfg_change *changes, int count,
                        amp_error *);

/* Makes a file in memory and opens it for writing; failure ends the program. The file disappears when this
 * program ends, even if killed. Child programs can open it by `name`. */
enum { AMP_MEMORY_FILE = 64 };
FILE *amp_memory_file(char name[AMP_MEMORY_FILE]);
/* Like amp_cfg_copy, but copies into a file in memory and checks the copy. AMP_BAD_CONFIG: the changes caused
 * a mistake. The message then names `from` and the text `options`, such as "this -batch and -size". */
amp_status amp_cfg_copy_in_memory(const char *from, const amp_cfg_change *changes, int count,
                                  const char *options, char name[AMP_MEMORY_FILE], amp_error *);
/* Makes a copy in memory, with amp=0 in the section of each layer i for which kept[i] is set. */
amp_status amp_cfg_keep_in_memory(const char *from, const char *kept, int layers, char name[AMP_MEMORY_FILE],
                                  amp_error *);
