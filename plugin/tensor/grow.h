/* Arrays that grow by doubling. */
#pragma once

#include <stddef.h>

#include "status.h"

/* Makes room for one more element of `size` bytes in an array of `count`. Returns the array, which may have
 * moved. */
static inline void *amp_grow(void *array, size_t count, size_t *room, size_t size)
{
    if (count < *room) return array;
    *room = *room ? 2 * *room : 64;
    return amp_allocated(realloc(array, *room * size));
}
