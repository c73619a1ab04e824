/* Random numbers that do not depend on thread scheduling.
 *
 * Darknet's loader threads share the C library's generator, so even with a fixed seed each thread draws
 * different numbers in each run. With -seed N every part of every loading job gets its own stream, which
 * depends only on (N, job, part). Only the main thread keeps using rand(), so its numbers are reproducible
 * too. Without -seed all numbers come from the C library, as in stock Darknet.
 *
 * With -seed, rand() uses a state buffer of our own, which is saved for a resumed training. This relies on
 * two facts: glibc's rand() is its random(), and the sequence after srand(N) is the same for any state buffer
 * of 128 bytes.
 *
 * A stream is SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014): a
 * counter and a mixer. */
#define _DEFAULT_SOURCE /* initstate, setstate */
#include "random.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../include/darknet_amp.h"
#include "program.h"

static atomic_ulong jobs; /* number of image loading jobs begun */

/* This thread's random stream. begun: this thread has begun its part of a loading job. */
static _Thread_local struct {
    int begun;
    uint64_t counter;
} stream;

uint64_t amp_random_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* ---- the main thread's generator ---- */

/* The layout of a state of glibc's random(): the first word is KINDS * place + KIND. KIND is the generator's
 * kind; place is its position in the ring of RING words. */
enum { KINDS = 5, KIND = 3, RING = 31 };

static struct {
    int ours;
    int32_t words[AMP_HOST_RANDOM_BYTES / sizeof(int32_t)];
} generator;

int amp_random_save(unsigned char state[AMP_HOST_RANDOM_BYTES])
{
    /* setstate is called only because it stores the current position in the state's first word */
    if (!generator.ours || !setstate((char *)generator.words)) return 0;
    memcpy(state, generator.words, AMP_HOST_RANDOM_BYTES);
    return 1;
}

int amp_random_restore(const unsigned char state[AMP_HOST_RANDOM_BYTES])
{
    int32_t head, scratch[AMP_HOST_RANDOM_BYTES / sizeof(int32_t)];
    memcpy(&head, state, sizeof head);
    if (!generator.ours || head < 0 || head % KINDS != KIND || head / KINDS >= RING) return 0;
    /* switch to a scratch state first, because setstate writes to the first word of the state in use */
    if (!initstate(1, (char *)scratch, sizeof scratch)) return 0;
    memcpy(generator.words, state, AMP_HOST_RANDOM_BYTES);
    return setstate((char *)generator.words) != NULL;
}

void amp_random_set_seed(unsigned value)
{
    amp_program *program = amp_program_to_set();
    program->seed = value;
    program->is_seeded = 1;
    if (!generator.ours)
        generator.ours = initstate(1, (char *)generator.words, sizeof generator.words) != NULL;
}

void amp_random_skip(size_t count)
{
    for (size_t i = 0; i < count; i++) (void)rand();
}

/* This thread's own copy of the main thread's generator. */
static _Thread_local struct {
    int begun;
    unsigned char state[AMP_HOST_RANDOM_BYTES];
    struct random_data reader;
} branch;

void amp_random_branch(size_t skipped)
{
    static pthread_mutex_t saving = PTHREAD_MUTEX_INITIALIZER;
    char scratch[AMP_HOST_RANDOM_BYTES];
    int32_t number;
    pthread_mutex_lock(&saving); /* amp_random_save writes to the generator's first word */
    int saved = amp_random_save(branch.state);
    pthread_mutex_unlock(&saving);
    if (!saved) return;
    memset(&branch.reader, 0, sizeof branch.reader);
    initstate_r(1, scratch, sizeof scratch, &branch.reader);
    branch.begun = setstate_r((char *)branch.state, &branch.reader) == 0;
    for (size_t i = 0; branch.begun && i < skipped; i++) random_r(&branch.reader, &number);
}

static int drawn(void)
{
    int32_t number;
    return branch.begun && random_r(&branch.reader, &number) == 0 ? number : rand();
}

/* ---- networks without weights ---- */

int darknet_amp_draws_nothing;

/* ---- jobs and their streams ---- */

int darknet_amp_is_seeded(void) { return amp_this_program()->is_seeded; }

unsigned darknet_amp_seed(void)
{
    return amp_this_program()->is_seeded ? amp_this_program()->seed : (unsigned)time(0);
}

/* Job numbers start at 1; 0 means that a job has no number. */
unsigned long amp_random_next_job(void) { return atomic_fetch_add(&jobs, 1) + 1; }

unsigned long amp_random_jobs_begun(void) { return atomic_load(&jobs); }
void amp_random_set_next_job(unsigned long job) { atomic_store(&jobs, job - 1); }

void amp_random_begin_job(unsigned long job, int part)
{
    const amp_program *program = amp_this_program();
    if (!program->is_seeded) return;
    stream.begun = 1;
    stream.counter = amp_random_mix(amp_random_mix(amp_random_mix(program->seed + 1u) + job)
                                    + (uint64_t)part);
}

int darknet_amp_rand(void)
{
    if (!stream.begun) return drawn();
    stream.counter += AMP_RANDOM_STEP;
    return (int)(amp_random_mix(stream.counter) % ((uint64_t)RAND_MAX + 1));
}
