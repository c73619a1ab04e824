/* Keeps rounded copies of factors for several matrix products (amp_factor.version). There is one entry per
 * array of weights, so a linked list is fast enough. The copies are in memory from the backend's allocate. */
#pragma once

#include "backend.h"

typedef struct amp_factor_copy {
    struct amp_factor_copy *next;
    const float *from;
    size_t count;          /* elements from the factor's first to its last, including gaps between rows */
    amp_dtype dtype;       /* the dtype that the elements were rounded to */
    size_t bytes;          /* size of the copy, whose elements may be stored in a wider dtype */
    unsigned long version; /* amp_factor.version of the copied elements; 0: the copy is not filled yet */
    void *copy;
} amp_factor_copy;

/* Sets *out to the entry for these arguments, or to a new entry with version 0. If the entry
 * has another version than the factor, the caller fills the copy and sets the entry's version. */
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
