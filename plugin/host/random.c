/* Random numbers that do not depend on how threads take turns.
 *
 * Darknet's loader threads share the C library's generator: with one seed, each thread still draws other numbers in
 * each run. With -seed N every part of every loading job gets a stream of its own, a function of (N, job, part) alone.
 * The main thread has no stream and keeps rand(), which nobody else draws from any more, so that it is reproducible
 * too. Without -seed all of this is the C library, as in stock Darknet.
 *
 * A stream is SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014): a counter,
 * and a mixer that makes neighbouring counters look unrelated. */
#include "host_random.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "../include/darknet_amp.h"

/* Set once, while the process has one thread; read by all. */
static struct {
    int set;
    unsigned value;
} seed;

static atomic_ulong jobs;

static _Thread_local struct {
    int begun;
    uint64_t counter;
} stream;

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void amp_random_set_seed(unsigned value)
{
    seed.value = value;
    seed.set = 1;
}

unsigned darknet_amp_seed(void)
{
    return seed.set ? seed.value : (unsigned)time(0);
}

unsigned long darknet_amp_next_job(void)
{
    return atomic_fetch_add(&jobs, 1) + 1; /* 0 is a job without a number */
}

void darknet_amp_begin_job(unsigned long job, int part)
{
    if (!seed.set) return;
    stream.begun = 1;
    stream.counter = mix(mix(mix(seed.value + 1u) + job) + (uint64_t)part);
}

int darknet_amp_rand(void)
{
    if (!stream.begun) return rand();
    stream.counter += 0x9e3779b97f4a7c15u;
    return (int)(mix(stream.counter) % ((uint64_t)RAND_MAX + 1));
}
