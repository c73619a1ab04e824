/* The folder that a training of detector or classifier saves to: checked before anything is made, held by one
 * training of a name, and cleared of files that killed saves have left. */
#pragma once

#include "data_files.h"

/* The folder that a training saves to. */
const char *amp_backups_folder(const amp_data_file *data);

/* Checks that the folder exists and can be written to, and that the paths of saved files are not too long.
 * AMP_IO_FAILED: the error says what is wrong. */
amp_status amp_backups_check(const amp_data_file *data, const char *cfg, amp_error *error);
/* Makes these checks, holds the folder, and remembers it for amp_backups_settle. */
amp_status amp_backups_take(const amp_data_file *data, const char *cfg, amp_error *error);

/* Holds FOLDER/BASE* for this program until amp_backups_let_go, or until it ends, however that be: locks
 * FOLDER/.BASE.lock, which names this process. Does nothing in a program that holds one already, nor where
 * nothing can be locked. AMP_IO_FAILED: another training holds it; the error names that one. */
amp_status amp_backups_hold(const char *folder, const char *base, amp_error *error);
/* Removes that file, as an error that ends the program does. */
void amp_backups_let_go(void);

/* Called once the weights to start from are loaded. A save of this training that was killed is completed if
 * all of it is on the disk, and removed if not; a line on stderr says which. Without amp_backups_take
 * before, it does nothing. */
void amp_backups_settle(void);
