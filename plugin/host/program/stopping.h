/* Ctrl-C, SIGTERM and SIGHUP (the terminal is gone) during a training: the first asks it to end after the
 * step under way, with a backup; the second one ends the program at once. A signal that was ignored when the
 * program started stays ignored (nohup). With ranks SIGUSR1 does the same, and a signal to one of them is one
 * to all. */
#pragma once

void amp_stopping_watch(void);
/* Handles these signals again as before amp_stopping_watch. */
void amp_stopping_unwatch(void);

/* From here on a write that cannot be made returns an error instead of ending the program: into a pipe that
 * nobody reads (SIGPIPE: `| head`), or beyond the largest file size (SIGXFSZ: `ulimit -f`). Handlers that the
 * program has set for these signals stay. */
void amp_stopping_survive_writes(void);
/* The second of these alone, for a command that may end when nobody reads what it prints. */
void amp_stopping_survive_large_files(void);

/* The signal that came, or 0. agree: the signal that came to any rank; collective, so that all ranks stop
 * after the same step. */
int amp_stopping_signal(void);
int amp_stopping_agree(void);
