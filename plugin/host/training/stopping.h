/* Ctrl-C, SIGTERM and SIGHUP (the terminal is gone) during a training: the first asks it to end after the
 * step under way, with a backup; the second one ends the program at once. A signal that was ignored when the
 * program started stays ignored (nohup). With ranks SIGUSR1 does the same, and a signal to one of them is one
 * to all. */
#pragma once

void amp_stopping_watch(void);
/* As it was before, from here on. */
void amp_stopping_unwatch(void);

/* From here on a write that cannot be made fails and ends nothing: into a pipe that nobody reads (SIGPIPE: `|
 * head`), or beyond the size that files may have (SIGXFSZ: `ulimit -f`), which is then as a full disk. Where
 * the program handles them, it goes on to. */
void amp_stopping_survive_writes(void);

/* 0, or the signal that came. agree: to any rank; all call it, and stop after the same step. */
int amp_stopping_signal(void);
int amp_stopping_agree(void);
