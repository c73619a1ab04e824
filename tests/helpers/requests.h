/* Tracks what the program requests from malloc and has not freed. The linker replaces malloc with these
 * functions (--wrap, see CMakeLists.txt) in everything that is linked into the program; shared libraries keep
 * the real ones. How the allocator rounds or caches is not counted. For one thread. */
#ifndef REQUESTS_H
#define REQUESTS_H

#include <stdlib.h>

static struct { void *at; size_t bytes; } *requests; /* those not freed */
static size_t request_count, request_room;
static size_t requests_alive, requests_most; /* requested bytes not freed; their peak */
static int requests_counted;

void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
void *__real_realloc(void *, size_t);
void *__real_aligned_alloc(size_t, size_t);
void __real_free(void *);

static void requests_begin(void)
{
    request_count = requests_alive = requests_most = 0;
    requests_counted = 1;
}

/* Bytes requested since then and not freed. */
static size_t requests_end(void)
{
    requests_counted = 0;
    return requests_alive;
}

static void *note_request(void *at, size_t bytes)
{
    if (!requests_counted || !at) return at;
    if (request_count == request_room) {
        request_room = 2 * request_room + 1000;
        requests = __real_realloc(requests, request_room * sizeof *requests);
        if (!requests) abort();
    }
    requests[request_count].at = at;
    requests[request_count++].bytes = bytes;
    requests_alive += bytes;
    if (requests_alive > requests_most) requests_most = requests_alive;
    return at;
}

static void forget_request(void *at)
{
    size_t i = requests_counted ? request_count : 0;
    while (i && requests[i - 1].at != at) i--;
    if (!i) return;
    requests_alive -= requests[i - 1].bytes;
    requests[i - 1] = requests[--request_count];
}

void *__wrap_malloc(size_t);
void *__wrap_calloc(size_t, size_t);
void *__wrap_realloc(void *, size_t);
void *__wrap_aligned_alloc(size_t, size_t);
void __wrap_free(void *);

void *__wrap_malloc(size_t bytes) { return note_request(__real_malloc(bytes), bytes); }
void *__wrap_calloc(size_t count, size_t size)
{
    return note_request(__real_calloc(count, size), count * size);
}
void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return note_request(__real_aligned_alloc(alignment, bytes), bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    forget_request(old);
    return note_request(__real_realloc(old, bytes), bytes);
}

void __wrap_free(void *at)
{
    forget_request(at);
    __real_free(at);
}

#endif
