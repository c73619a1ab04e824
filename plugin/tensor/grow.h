/* Arrays that grow by doubling. */
#pragma once

#include <stddef.h>
#include <stdlib.h>

/* Makes room for one more element of `size` bytes in an array of `count`. Returns the array, which may have
 * moved; NULL without memory, and the old array is then as it was. */
static inline void *amp_grow(void *array, size_t count, size_t *room, size_t size)
{
    if (count < *room) return array;
    size_t larger = *room ? 2 * *room : 64;
    void *grown = realloc(array, larger * size);
    if (grown) *room = larger;
    return grown;
}
