/* Work in several threads at once. Include testing.h first. */
#ifndef THREADS_H
#define THREADS_H

#include <pthread.h>

/* Calls work with each of n parts, an array of elements of `size` bytes, in a thread of its own, and waits
 * for all. With a size of 0 all get the same. */
static inline void in_threads(void *(*work)(void *), void *parts, size_t size, int n)
{
    pthread_t threads[8];
    assert_true(n <= (int)COUNT(threads));
    for (int i = 0; i < n; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, (char *)parts + (size_t)i * size), 0);
    for (int i = 0; i < n; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
}

#endif
