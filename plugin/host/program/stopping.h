/* Handles Ctrl-C, SIGTERM and SIGHUP (the terminal is gone) during a training. The first signal asks the
 * training to end after the current step, with a backup. The second signal ends the program at once. A signal
 * that was ignored when the program started stays ignored (nohup). With ranks, SIGUSR1 has the same effect,
 * and a signal to one rank applies to all. */
#pragma once

void amp_stopping_watch(void);
/* Restores the signal handlers that amp_stopping_watch replaced. */
void amp_stopping_unwatch(void);

/* From here on a failed write returns an error instead of ending the program. This applies to a pipe without
 * a reader (SIGPIPE: `| head`), and to a file that would exceed the maximum size (SIGXFSZ: `ulimit -f`).
 * Handlers that the program itself has installed for these signals stay. */
void amp_stopping_survive_writes(void);
/* Does what amp_stopping_survive_writes does, but only for SIGXFSZ. For a command that should still end when
 * nobody reads its output any more. */
void amp_stopping_survive_large_files(void);

/* amp_stopping_signal returns the signal that this program has received, or 0. amp_stopping_agree returns a
 * signal that any rank has received, or 0; it is collective, so that all ranks stop after the same step. */
int amp_stopping_signal(void);
int amp_stopping_agree(void);
