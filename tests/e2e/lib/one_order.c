/* Preloaded into stock Darknet, which seeds itself with the time and whose loader threads race for rand():
 * makes the time stand still and gives each thread a generator of its own, numbered in the order in which
 * threads are made. With ONE_ORDER_LOG=FILE, it says in FILE at the end in how many threads that have begun,
 * the main one among them, the processor does not take subnormal numbers for 0. (Not how many threads do:
 * stock ends while its last loaders have not begun.) */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static atomic_uint threads, keeping;
static _Thread_local unsigned long long state;

struct start {
    void *(*function)(void *);
    void *argument;
    unsigned number;
};

static void look_at_processor(void)
{
    volatile float subnormal = 1e-40f;
    if (subnormal * 2 != 0) keeping++;
}

__attribute__((destructor)) static void tell(void)
{
    const char *name = getenv("ONE_ORDER_LOG");
    FILE *file = name ? fopen(name, "w") : NULL;
    if (!file) return;
    look_at_processor();
    fprintf(file, "threads that keep subnormal numbers: %u\n", keeping);
    fclose(file);
}

static void *numbered(void *pointer)
{
    look_at_processor();
    struct start start = *(struct start *)pointer;
    free(pointer);
    srand(start.number);
    return start.function(start.argument);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
                   void *argument)
{
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
    struct start *start = malloc(sizeof *start);
    *start = (struct start){function, argument, ++threads};
    return create(thread, attributes, numbered, start);
}

time_t time(time_t *out)
{
    if (out) *out = 1000000000;
    return 1000000000;
}

void srand(unsigned seed)
{
    state = seed + 1ull;
}

int rand(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)(state >> 33);
}
