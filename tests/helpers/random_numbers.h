/* Random numbers that are the same on every machine and in every run. */
#pragma once

#include <stdint.h>

/* Knuth's MMIX. */
static uint64_t random_state = 1;

/* 0 to n - 1. */
static inline int below(uint64_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (int)((random_state >> 33) % n);
}

/* splitmix64 */
static inline uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
