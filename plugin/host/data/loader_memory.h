/* How many threads load images at a time, and the allocator's settings, while a network is under AMP. */
#pragma once

/* Begins this, for the whole program. Called before any loader is started. is_training: the program is a
 * training, for which the C library's allocator may be tuned. */
void amp_loaders_watch(int is_training);

/* How many processors the program may use; and the most threads that load images at the same time. */
int amp_loaders_processors(void);
int amp_loaders_at_once(void);

/* Called before and after a loader thread loads a part of a batch: begin waits until fewer threads than
 * amp_loaders_at_once are at work. Without a network under AMP they do nothing. */
void amp_loaders_begin_part(void);
void amp_loaders_end_part(void);

/* Called before a loader thread decodes a photo: waits until fewer threads than there are processors hold a
 * decoded photo, and asks the system to read `file` meanwhile. Returns 1: the thread has a turn, which it
 * ends with amp_loaders_end_turn. Returns 0: no network is under AMP, and there are no turns. */
int amp_loaders_begin_turn(const char *file);
void amp_loaders_end_turn(void);
