/* Copies of factors that a backend keeps from one matrix product to the next (amp_factor.version), the same
 * on every backend: a list, in memory of the backend's allocate. Few are kept, one for each array of weights,
 * so a list will do. */
#pragma once

#include <stdlib.h>

#include "backend.h"

typedef struct amp_kept {
    struct amp_kept *next;
    const float *from;
    size_t count;          /* elements, in the order they lie in */
    amp_dtype dtype;       /* that they were rounded to */
    size_t bytes;          /* of the copy: they may be stored in a wider one */
    unsigned long version; /* of the elements that the copy holds; 0: none yet */
    void *copy;
} amp_kept;

/* *out: the place for a copy of these elements, `bytes` large, new if there is none. Whoever fills it sets
 * its version. */
static inline amp_status amp_kept_place(amp_kept **list, amp_backend *backend, const float *from,
                                        size_t count, amp_dtype dtype, size_t bytes, amp_kept **out,
                                        amp_error *error)
{
    for (*out = *list; *out; *out = (*out)->next)
        if ((*out)->from == from && (*out)->count == count && (*out)->dtype == dtype
            && (*out)->bytes == bytes)
            return AMP_OK;
    amp_kept *place = malloc(sizeof *place);
    if (!place) return amp_fail(error, AMP_NO_MEMORY, "no memory for the record of a copy of weights");
    *place = (amp_kept){ .next = *list, .from = from, .count = count, .dtype = dtype, .bytes = bytes };
    amp_status status = backend->allocate(backend, bytes, &place->copy, error);
    if (status == AMP_OK) *out = *list = place;
    else free(place);
    return status;
}

static inline void amp_kept_drop(amp_kept **list, amp_backend *backend)
{
    while (*list) {
        amp_kept *next = (*list)->next;
        backend->release(backend, (*list)->copy);
        free(*list);
        *list = next;
    }
}
