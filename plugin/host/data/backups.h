/* The folder in which `detector train` or `classifier train` saves its files. It is checked before the
 * training makes anything. Only one training at a time may save there under a given name. Files left behind
 * by killed saves are removed. */
#pragma once

#include "data_files.h"

/* Returns the folder in which a training saves. */
const char *amp_backups_folder(const amp_data_file *data);

/* Checks that the folder exists and can be written to, and that the paths of saved files are not too long.
 * AMP_IO_FAILED: the error says what is wrong. */
amp_status amp_backups_check(const amp_data_file *data, const char *cfg, amp_error *error);
/* Call after amp_backups_check. Locks the name (amp_backups_hold) and remembers the folder for
 * amp_backups_settle. */
amp_status amp_backups_take(const amp_data_file *data, const char *cfg, amp_error *error);

/* Reserves the file names FOLDER/BASE* for this program until amp_backups_let_go, or until the program ends
 * or is killed. To do so, it locks FOLDER/.BASE.lock and writes this process's id to it. Does nothing if the
 * program already holds a lock. If the file cannot be locked, only warns. AMP_IO_FAILED: another training
 * holds the lock; the error names its process. */
amp_status amp_backups_hold(const char *folder, const char *base, amp_error *error);
/* Removes the lock file. An error that ends the program removes it too. */
void amp_backups_let_go(void);

/* Call it when the weights to start from are loaded. Looks for saves during which an earlier program of this
 * training was killed. Completes a save if all its bytes are on the disk, otherwise removes its files; a line
 * on stderr says which of the two. Does nothing unless amp_backups_take was called. */
void amp_backups_settle(void);
