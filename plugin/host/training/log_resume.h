/* Which rows of a training's log stay when it is resumed. */
#pragma once

#include "log_file.h"

/* Opens or makes the log of a training that goes on behind `iteration`: rows of later steps are dropped.
 * steps, skipped: what the backup counts; 0 where the training begins. A log that cannot be used ends the
 * program. */
void amp_log_resume(amp_log_file *, const char *name, long iteration, unsigned long steps,
                    unsigned long skipped);
