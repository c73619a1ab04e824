/* Ctrl-C and SIGTERM during a training: the first asks it to end after the step under way, with a backup; the second one ends
 * the program at once. A signal that was ignored when the program started stays ignored (nohup). */
#ifndef AMP_HOST_STOPPING_H
#define AMP_HOST_STOPPING_H

void amp_stopping_watch(void);
/* As it was before, from here on. */
void amp_stopping_unwatch(void);

/* 0, or the signal that came. */
int amp_stopping_signal(void);

#endif
