/* The generator behind every picture: splitmix64, integers only, so that one seed gives one
 * data set on every machine.
 *
 * Each picture has its own stream, named by (seed, set, index): adding pictures never changes
 * those already there. */
#ifndef SHAPES_RANDOM_H
#define SHAPES_RANDOM_H

#include <stdint.h>

typedef struct shapes_random { uint64_t state; } shapes_random;

/* Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014. */
static inline uint64_t random_next(shapes_random *random)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline shapes_random random_stream(uint64_t seed, uint64_t set, uint64_t index)
{
    shapes_random random = {seed};
    random.state = random_next(&random) ^ set;
    random.state = random_next(&random) ^ index;
    return random;
}

/* Uniform over low..high, both included. */
static inline int random_between(shapes_random *random, int low, int high)
{
    uint64_t count = (uint64_t)(high - low) + 1;
    return low + (int)(((random_next(random) >> 32) * count) >> 32);
}

#endif
