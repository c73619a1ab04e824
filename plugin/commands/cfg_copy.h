/* What a command asks of a .cfg before it makes a network of it, and copies with other values in [net]:
 * -batch, -iters and the like, without touching the user's file. */
#pragma once

#include "../amp/cfg_check.h"

/* What [net] says; 0 where it says nothing of the last three. */
typedef struct amp_cfg_facts {
    int under_amp, batch, subdivisions, width, height;
    long max_batches;
} amp_cfg_facts;

/* dtype: as -amp names it, or NULL: as the .cfg has it. AMP_BAD_CONFIG: the .cfg's first mistake. Its
 * warnings are printed. */
amp_status amp_cfg_look(const char *cfg, const char *dtype, cfg_use use, amp_cfg_facts *, amp_error *);

typedef struct amp_cfg_change { const char *key; double value; } amp_cfg_change;

/* Every line of these keys in [net] is left out, and the new ones are put at the section's start; all other
 * lines, comments too, are copied as they are. AMP_BAD_CONFIG: `from` has no [net]. AMP_IO_FAILED: one of the
 * files. */
amp_status amp_cfg_copy(const char *from, const char *to, const amp_cfg_change *changes, int count,
                        amp_error *);

/* A file that lies in no folder and is gone with this program, whatever ends it; under its name, the programs
 * that this one starts can open it too. */
enum { AMP_MEMORY_FILE = 64 };
FILE *amp_memory_file(char name[AMP_MEMORY_FILE]);
/* amp_cfg_copy into such a file, and a check of what it says then: AMP_BAD_CONFIG names `from` and `options`,
 * which have made the mistake: "-batch and -size". */
amp_status amp_cfg_copy_in_memory(const char *from, const amp_cfg_change *changes, int count,
                                  const char *options, char name[AMP_MEMORY_FILE], amp_error *);
