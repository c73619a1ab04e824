/* The folder that `detector train` or `classifier train` saves to. It is checked before anything is made.
 * Only one training at a time may save there under a name. Files that killed saves have left are removed. */
#pragma once

#include "data_files.h"

/* The folder that a training saves to. */
const char *amp_backups_folder(const amp_data_file *data);

/* Checks that the folder exists and can be written to, and that the paths of saved files are not too long.
 * AMP_IO_FAILED: the error says what is wrong. */
amp_status amp_backups_check(const amp_data_file *data, const char *cfg, amp_error *error);
/* Called after these checks: locks the name (amp_backups_hold) and remembers the folder for
 * amp_backups_settle. */
amp_status amp_backups_take(const amp_data_file *data, const char *cfg, amp_error *error);

/* Reserves the file names FOLDER/BASE* for this program until amp_backups_let_go, or until the program ends
 * or is killed. To do so, it locks FOLDER/.BASE.lock and writes this process's id to it. Does nothing if the
 * program already holds a lock of this kind; only warns if the file cannot be locked. AMP_IO_FAILED: another
 * training holds the lock; the error names that training's process. */
amp_status amp_backups_hold(const char *folder, const char *base, amp_error *error);
/* Removes the lock file. An error that ends the program removes it as well. */
void amp_backups_let_go(void);

/* Called when the weights to start from are loaded. For each killed save of this training: completes it if
 * all its bytes are on the disk, otherwise removes its files; a line on stderr says which. Does nothing
 * unless amp_backups_take was called. */
void amp_backups_settle(void);
