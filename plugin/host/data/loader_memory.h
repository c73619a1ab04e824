/* In a program with a network under AMP, limits how many threads load images at the same time, and tunes the
 * allocator. */
#pragma once

/* Turns these limits on for the whole program. Call it before any loader starts. is_training=1: the program
 * is a training, so the C library's allocator may be tuned. */
void amp_loaders_watch(int is_training);

/* amp_loaders_processors: the number of processors that the program may use. amp_loaders_at_once: the maximum
 * number of threads that load images at the same time. */
int amp_loaders_processors(void);
int amp_loaders_at_once(void);

/* Call them before and after a loader thread loads a part of a batch. begin waits until the number of loading
 * threads is below the limit. The limit is amp_loaders_at_once(), or a smaller number after
 * amp_loaders_adapt. Both do nothing without a network under AMP. */
void amp_loaders_begin_part(void);
void amp_loaders_end_part(void);

/* On a CPU, loaders compete with the training step for processors, so only as many threads are allowed as the
 * step needs. Call amp_loaders_adapt after each step; it sets the number of allowed threads to the result of
 * amp_loaders_needed. threads: the current number; most: the largest number that may be returned. Times in
 * seconds: `step` is the time of the whole step, `waited` the part of it spent waiting for images, `load` the
 * time that loading these images took. The number of threads does not change the images, because each part of
 * a batch has its own random numbers. */
void amp_loaders_adapt(double waited, double step, double load);
int amp_loaders_needed(int threads, int most, double waited, double step, double load);

/* Call it before a loader thread decodes a photo. Asks the system to read `file` ahead, and waits for a turn.
 * Only a thread that has a turn may hold a decoded photo; there are as many turns as processors. Returns 1 if
 * the thread got a turn, which it must end with amp_loaders_end_turn. Returns 0 if no network is under AMP;
 * then there are no turns. */
int amp_loaders_begin_turn(const char *file);
void amp_loaders_end_turn(void);
