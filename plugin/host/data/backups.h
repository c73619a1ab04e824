/* Where a training of detector or classifier saves: looked at before anything is made, and rid of what killed
 * saves left. */
#pragma once

#include "data_files.h"

/* The .data file's folder is there and can be written, and the names of what is saved there are not too long.
 * Remembers it for amp_backups_settle. AMP_IO_FAILED says what is wrong. */
amp_status amp_backups_check(const amp_data_file *data, const char *cfg, amp_error *error);

/* Once the weights to start from are loaded: of each file that this training may have been saving when it was
 * killed, the save is ended if all of it is on the disk, and removed if not. A line tells of either. Without
 * amp_backups_check it does nothing. */
void amp_backups_settle(void);
