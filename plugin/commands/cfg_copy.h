/* What a command needs to know of a .cfg before it makes a network of it; and copies of a .cfg with other
 * values in [net], for -batch, -iters and the like, so that the user's file is never changed. */
#pragma once

#include "../amp/cfg_check.h"

/* under_amp: -amp considered. The numbers are those of [net]; max_batches is 0 where it does not give it. */
typedef struct amp_cfg_facts {
    int under_amp, batch, subdivisions;
    long max_batches;
    cfg_summary summary;
} amp_cfg_facts;

/* Checks the .cfg, prints warnings, and fills *facts. dtype: -amp's word, or NULL for what the .cfg says.
 * AMP_BAD_CONFIG: the .cfg's first mistake. */
amp_status amp_cfg_look(const char *cfg, const char *dtype, cfg_use use, amp_cfg_facts *, amp_error *);

typedef struct amp_cfg_change { const char *key; double value; } amp_cfg_change;

/* Copies a .cfg. Lines of the changed keys in [net] are left out, and lines with the new values put at the
 * section's start; all other lines, comments too, are copied unchanged. AMP_BAD_CONFIG: `from` cannot be read
 * or has no [net]. AMP_IO_FAILED: `to` cannot be written. */
amp_status amp_cfg_copy(const char *from, const char *to, const amp_cfg_change *changes, int count,
                        amp_error *);

/* Makes a file that lies in memory, in no folder, and disappears when this program ends, however it ends. By
 * its name, programs that this one starts can open it too. */
enum { AMP_MEMORY_FILE = 64 };
FILE *amp_memory_file(char name[AMP_MEMORY_FILE]);
/* amp_cfg_copy into such a file, and a check of the copy. AMP_BAD_CONFIG: the options have made a mistake;
 * the message names `from` and the options, such as "-batch and -size". */
amp_status amp_cfg_copy_in_memory(const char *from, const amp_cfg_change *changes, int count,
                                  const char *options, char name[AMP_MEMORY_FILE], amp_error *);
/* A copy in such a file with amp=0 in the sections of layers that have a flag: those stay in fp32. */
amp_status amp_cfg_keep_in_memory(const char *from, const char *kept, int layers, char name[AMP_MEMORY_FILE],
                                  amp_error *);
