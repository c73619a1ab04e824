/* A cache of factors, rounded to their dtype, that serve one matrix product after the other
 * (amp_factor.version), the same on every backend: a list, in memory of the backend's allocate. There is one
 * for each array of weights, so few that a list will do. */
#pragma once

#include "backend.h"

typedef struct amp_factor_copy {
    struct amp_factor_copy *next;
    const float *from;
    size_t count;          /* elements, in the order they lie in */
    amp_dtype dtype;       /* that they were rounded to */
    size_t bytes;          /* of the copy: they may be stored in a wider one */
    unsigned long version; /* of the elements that the copy holds; 0: none yet */
    void *copy;
} amp_factor_copy;

/* *out: the entry for a copy of these elements, `bytes` large; created if there is none, with version 0. The
 * caller fills the copy and sets its version. */
static inline amp_status amp_factor_copy_find(amp_factor_copy **list, amp_backend *backend,
                                              const float *from, size_t count, amp_dtype dtype, size_t bytes,
                                              amp_factor_copy **out, amp_error *error)
{
    for (*out = *list; *out; *out = (*out)->next)
        if ((*out)->from == from && (*out)->count == count && (*out)->dtype == dtype
            && (*out)->bytes == bytes)
            return AMP_OK;
    amp_factor_copy *entry = (amp_factor_copy *)amp_allocated(malloc(sizeof *entry));
    *entry = (amp_factor_copy){ .next = *list, .from = from, .count = count, .dtype = dtype, .bytes = bytes };
    amp_status status = backend->allocate(backend, bytes, &entry->copy, error);
    if (status == AMP_OK) *out = *list = entry;
    else free(entry);
    return status;
}

static inline void amp_factor_copies_free(amp_factor_copy **list, amp_backend *backend)
{
    while (*list) {
        amp_factor_copy *next = (*list)->next;
        backend->release(backend, (*list)->copy);
        free(*list);
        *list = next;
    }
}
