/* How many threads load images at a time, and the allocator's settings, while a network is under AMP. */
#pragma once

/* Turns this on for the whole program. Called before any loader is started. is_training: the program is a
 * training, for which the C library's allocator may be tuned. */
void amp_loaders_watch(int is_training);

/* How many processors the program may use; and the most threads that load images at the same time. */
int amp_loaders_processors(void);
int amp_loaders_at_once(void);

/* Called before and after a loader thread loads a part of a batch: begin waits while as many threads as are
 * allowed are at work: amp_loaders_at_once, or fewer after amp_loaders_adapt. Both do nothing without a
 * network under AMP. */
void amp_loaders_begin_part(void);
void amp_loaders_end_part(void);

/* On a CPU loaders compete with the step for its processors: only as many are allowed as keep it fed. adapt:
 * called after a step that took `step` seconds, of which it waited `waited` for its images, which had taken
 * `load` seconds to load. needed: how many threads adapt then allows, if it has allowed `threads` so far. A
 * batch's bytes do not depend on it, since each of its parts has its own random numbers. */
void amp_loaders_adapt(double waited, double step, double load);
int amp_loaders_needed(int threads, int most, double waited, double step, double load);

/* Called before a loader thread decodes a photo: waits until fewer threads than there are processors hold a
 * decoded photo, and asks the system to read `file` meanwhile. Returns 1: the thread has a turn, which it
 * ends with amp_loaders_end_turn. Returns 0: no network is under AMP, and there are no turns. */
int amp_loaders_begin_turn(const char *file);
void amp_loaders_end_turn(void);
