/* Handles the folder in which `detector train` or `classifier train` saves files: checks it, lets only one
 * training at a time save under a given name, and completes or removes killed saves. */
#pragma once

#include "data_files.h"

/* Returns the folder: the value of `backup` in the .data file, or Darknet's default. */
const char *amp_backups_folder(const amp_data_file *data);

/* Checks that the folder exists and can be written to, and that the paths of saved files are not too long.
 * AMP_IO_FAILED: the error says what is wrong. */
amp_status amp_backups_check(const amp_data_file *data, const char *cfg, amp_error *error);
/* After amp_backups_check: locks the name (amp_backups_hold) and remembers the folder for
 * amp_backups_settle. */
amp_status amp_backups_take(const amp_data_file *data, const char *cfg, amp_error *error);

/* Reserves the file names FOLDER/BASE* until amp_backups_let_go or the program's end, by locking the file
 * FOLDER/.BASE.lock. The file's text names this process. Does nothing if the program already holds a lock. If
 * the system cannot lock the file, only warns. AMP_IO_FAILED: another training holds the lock; the error
 * names this training. */
amp_status amp_backups_hold(const char *folder, const char *base, amp_error *error);
/* Removes the lock file. An error that ends the program removes it too. */
void amp_backups_let_go(void);

/* Call it when the weights to start from are loaded. Completes each killed save of this training if all its
 * bytes are on the disk; if not, removes its files. Prints a line for each save. Does nothing unless
 * amp_backups_take was called. */
void amp_backups_settle(void);
