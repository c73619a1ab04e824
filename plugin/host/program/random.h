/* Reproducible random numbers for Darknet: see darknet_amp_seed and its neighbours in darknet_amp.h. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The mixer of SplitMix64: makes consecutive numbers look unrelated. To get a random sequence, mix the values
 * of a counter that grows by AMP_RANDOM_STEP. */
#define AMP_RANDOM_STEP 0x9e3779b97f4a7c15u
uint64_t amp_random_mix(uint64_t);

/* Sets the seed of -seed N. Call it before any network is made and before any thread is started. */
void amp_random_set_seed(unsigned seed);

/* Returns the number of a new loading job. Called in the thread that starts the job. */
unsigned long amp_random_next_job(void);
/* Starts the calling thread's random stream for part `part` of job `job`. Does nothing without -seed. */
void amp_random_begin_job(unsigned long job, int part);

/* The number of the loading job that was begun most recently; jobs are numbered from 1. */
unsigned long amp_random_jobs_begun(void);
/* Sets the number that the next loading job gets (>= 1). */
void amp_random_set_next_job(unsigned long job);

/* Draws `count` numbers in the main thread and discards them, because they are for other ranks. */
void amp_random_skip(size_t count);
/* Gives the calling thread its own copy of the main thread's generator, advanced by `skipped` numbers. The
 * main thread must not draw meanwhile. Works only after -seed. */
void amp_random_branch(size_t skipped);

/* Save and restore the main thread's generator. Return 0 without -seed, or if the C library does not support
 * it; restore also returns 0, and changes nothing, if the bytes are not a valid state. */
enum { AMP_HOST_RANDOM_BYTES = 128 };
int amp_random_save(unsigned char state[AMP_HOST_RANDOM_BYTES]);
int amp_random_restore(const unsigned char state[AMP_HOST_RANDOM_BYTES]);
