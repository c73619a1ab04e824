/* A copy of a .cfg with other values in its [net] section: -batch, -iters and the like, without touching the
 * user's file. */
#pragma once

#include "../amp/cfg_reader.h"

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
/* amp_cfg_copy into such a file. */
amp_status amp_cfg_copy_in_memory(const char *from, const amp_cfg_change *changes, int count,
                                  char name[AMP_MEMORY_FILE], amp_error *);

/* Whether a line of a .cfg or .data file gives this key, as Darknet reads it: blanks do not count. */
int amp_line_has_key(const char *line, const char *key);
