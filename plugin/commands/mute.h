/* Darknet's layers print to stdout while they train. */
#pragma once

/* From now on what is written to stdout is dropped; returns what amp_restore_stdout takes. */
int amp_mute_stdout(void);
void amp_restore_stdout(int kept);
