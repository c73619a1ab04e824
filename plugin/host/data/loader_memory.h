/* How many threads load images at a time, and the allocator's settings, while a network is under AMP. */
#pragma once

/* From now on, in the whole program; before any loader is started. is_training: the program is a training,
 * whose allocator may be set. */
void amp_loaders_watch(int is_training);

/* How many processors the program may use; and how many threads, at most, decode images at the same time. */
int amp_loaders_processors(void);
int amp_loaders_at_once(void);

/* The calling thread is to hold a photo, of this file: waits until fewer threads than processors do. 1: it
 * has a turn, which amp_loaders_end_turn ends; 0: the program trains no network under AMP. */
int amp_loaders_begin_turn(const char *file);
void amp_loaders_end_turn(void);

/* Threads that load at once, those that wait for their turn too, and bytes of each one's stack; the C library
 * would take what a program's own stack may have, 8 MiB. A thread that has ended keeps its stack until it is
 * joined, which those of a batch are at its end. */
enum { AMP_LOADERS = 64 + 1, AMP_LOADER_STACK = 1 << 20 };
