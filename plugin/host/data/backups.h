/* The folder that a training of detector or classifier saves to: checked before anything is made, held by one
 * training of a name, and cleared of files that killed saves have left. */
#pragma once

#include "data_files.h"

/* The folder that a training saves to. */
const char *amp_backups_folder(const amp_data_file *data);

/* Checks that the folder exists and can be written to, and that the paths of saved files are not too long.
 * AMP_IO_FAILED: the error says what is wrong. */
amp_status amp_backups_check(const amp_data_file *data, const char *cfg, amp_error *error);
/* After these checks: holds the folder, and remembers it for amp_backups_settle. */
amp_status amp_backups_take(const amp_data_file *data, const char *cfg, amp_error *error);

/* Holds the names FOLDER/BASE* for this program until amp_backups_let_go, or until the program ends or is
 * killed: locks FOLDER/.BASE.lock, which names this process. Does nothing if the program already holds such a
 * lock, or if the file cannot be locked. AMP_IO_FAILED: another training holds it; the error names that
 * one. */
amp_status amp_backups_hold(const char *folder, const char *base, amp_error *error);
/* Removes the lock file. An error that ends the program removes it as well. */
void amp_backups_let_go(void);

/* Called when the weights to start from are loaded. Completes each killed save of this training if all of it
 * is on the disk, else removes what it left; a line on stderr says which. Does nothing unless
 * amp_backups_take was called. */
void amp_backups_settle(void);
