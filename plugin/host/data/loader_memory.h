/* Limits how many threads load images at a time, and tunes the allocator, once a network is under AMP. */
#pragma once

/* Turns these limits on for the whole program. Called before any loader is started. is_training: the program
 * is a training, so the C library's allocator may be tuned. */
void amp_loaders_watch(int is_training);

/* The number of processors that the program may use, and the maximum number of threads that load images at
 * the same time. */
int amp_loaders_processors(void);
int amp_loaders_at_once(void);

/* Called before and after a loader thread loads a part of a batch. begin waits until fewer threads load than
 * are allowed: amp_loaders_at_once(), or a smaller number after amp_loaders_adapt. Both do nothing without a
 * network under AMP. */
void amp_loaders_begin_part(void);
void amp_loaders_end_part(void);

/* On a CPU, loaders compete with the step for processors, so only as many threads are allowed as the step
 * needs. adapt is called after each step. step: the seconds that the step took; waited: those of them in
 * which it waited for its images; load: the seconds that loading these images had taken. needed returns how
 * many of at most `most` threads adapt then allows, if `threads` were allowed so far. The images do not
 * depend on this number, since each part of a batch has its own random numbers. */
void amp_loaders_adapt(double waited, double step, double load);
int amp_loaders_needed(int threads, int most, double waited, double step, double load);

/* Called before a loader thread decodes a photo. Asks the system to read `file` ahead, and waits for a turn.
 * A thread that has a turn may hold a decoded photo; there are as many turns as processors. Returns 1: the
 * thread has a turn, which it ends with amp_loaders_end_turn. Returns 0: no network is under AMP, and there
 * are no turns. */
int amp_loaders_begin_turn(const char *file);
void amp_loaders_end_turn(void);
