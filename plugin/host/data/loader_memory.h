/* How many threads load images at a time, and the allocator's settings, while a network is under AMP. */
#ifndef AMP_HOST_LOADER_MEMORY_H
#define AMP_HOST_LOADER_MEMORY_H

#include <stddef.h>

/* From now on, in the whole program; before any loader is started. */
void amp_loaders_watch(void);

/* How many threads, at most, decode images at the same time. */
int amp_loaders_at_once(void);

/* Bytes of the address space that their stacks take. */
size_t amp_loaders_stacks(void);

#endif
