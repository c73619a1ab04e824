/* Ctrl-C, SIGTERM and SIGHUP (the terminal is gone) during a training: the first signal asks the training to
 * end after the current step, with a backup; the second ends the program at once. A signal that was ignored
 * when the program started stays ignored (nohup). With ranks, SIGUSR1 has the same effect, and a signal to
 * one rank applies to all. */
#pragma once

void amp_stopping_watch(void);
/* Restores the handling of these signals from before amp_stopping_watch. */
void amp_stopping_unwatch(void);

/* From here on a write that fails returns an error instead of ending the program: to a pipe without a reader
 * (SIGPIPE: `| head`), or beyond the largest file size (SIGXFSZ: `ulimit -f`). Handlers that the program has
 * installed for these signals stay. */
void amp_stopping_survive_writes(void);
/* The same for SIGXFSZ only, for a command that may end when nobody reads what it prints. */
void amp_stopping_survive_large_files(void);

/* amp_stopping_signal returns the signal that this program has received, or 0. amp_stopping_agree returns a
 * signal that any rank has received, or 0; it is collective, so that all ranks stop after the same step. */
int amp_stopping_signal(void);
int amp_stopping_agree(void);
