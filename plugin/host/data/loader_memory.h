/* With a network under AMP, limits how many threads load images at a time, and tunes the memory allocator. */
#pragma once

/* Turns the limit on for the whole program; with is_training=1, also tunes the allocator. Call it before any
 * loader starts. */
void amp_loaders_watch(int is_training);

/* The number of processors that the program may use; the most threads that load images at a time. */
int amp_loaders_processors(void);
int amp_loaders_at_once(void);

/* Call them before and after a loader thread loads a part of a batch. begin waits until fewer threads are
 * loading than the limit: amp_loaders_at_once(), or less after amp_loaders_adapt. */
void amp_loaders_begin_part(void);
void amp_loaders_end_part(void);

/* On a CPU, loaders compete with the step for processors. So amp_loaders_adapt, called after each step,
 * limits the loader threads to the result of amp_loaders_needed. threads: the current limit; most: the
 * largest possible result. The other arguments are seconds: `step` is the time of the whole step, `waited` is
 * the part of it in which the step waited for images, and `load` is the time that loading these images took.
 * The images do not depend on the number of threads, because each part of a batch has its own random
 * numbers. */
void amp_loaders_adapt(double waited, double step, double load);
int amp_loaders_needed(int threads, int most, double waited, double step, double load);

/* Call it before a loader thread decodes a photo. Asks the system to read `file` ahead, and waits for a turn:
 * only a thread with a turn may hold a decoded photo, and there are as many turns as processors. Returns 1 if
 * the thread must call amp_loaders_end_turn; 0 without a network under AMP. */
int amp_loaders_begin_turn(const char *file);
void amp_loaders_end_turn(void);
