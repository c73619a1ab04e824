/* The folder that a training of detector or classifier saves to: checked before anything is made, and cleared
 * of files that killed saves have left. */
#pragma once

#include "data_files.h"

/* Checks that the folder exists and can be written to, and that the paths of saved files are not too long;
 * remembers it for amp_backups_settle. AMP_IO_FAILED: the error says what is wrong. */
amp_status amp_backups_check(const amp_data_file *data, const char *cfg, amp_error *error);

/* Called once the weights to start from are loaded. A save of this training that was killed is completed if
 * all of it is on the disk, and removed if not; a line on stderr says which. Without amp_backups_check
 * before, it does nothing. */
void amp_backups_settle(void);
