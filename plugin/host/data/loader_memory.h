/* How many threads load images at a time, and the allocator's settings, while a network is under AMP. */
#pragma once

/* From now on, in the whole program; before any loader is started. */
void amp_loaders_watch(void);

/* How many processors the program may use; and how many threads, at most, decode images at the same time. */
int amp_loaders_processors(void);
int amp_loaders_at_once(void);

/* Threads that load at once, those that wait for their turn too, and bytes of each one's stack; the C library
 * would take what a program's own stack may have, 8 MiB. A thread that has ended keeps its stack until it is
 * joined, which those of a batch are at its end. */
enum { AMP_LOADERS = 64 + 1, AMP_LOADER_STACK = 1 << 20 };
