/* Handles Ctrl-C, SIGTERM and SIGHUP (the terminal is gone) during a training. The first signal ends the
 * training after the current step, with a backup; the second ends the program at once. Signals that were
 * ignored at the start stay ignored (nohup). With ranks, SIGUSR1 has the same effect, and a signal to one
 * rank applies to all. */
#pragma once

void amp_stopping_watch(void);
/* Restores the signal handlers that amp_stopping_watch replaced. */
void amp_stopping_unwatch(void);

/* From here on a write to a pipe without a reader (SIGPIPE) or beyond the maximum file size (SIGXFSZ) returns
 * an error instead of ending the program. The program's own handlers of these signals stay. */
void amp_stopping_survive_writes(void);
/* Does the same only for SIGXFSZ: for a command that should end when nobody reads its output any more. */
void amp_stopping_survive_large_files(void);

/* amp_stopping_signal returns the signal that this program has received, or 0. amp_stopping_agree returns a
 * signal that any rank has received, or 0; it is collective, so that all ranks stop after the same step. */
int amp_stopping_signal(void);
int amp_stopping_agree(void);
