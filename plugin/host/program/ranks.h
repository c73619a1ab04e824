/* The ranks that train one network together, each with its own copy; comm/comm.h describes how they
 * communicate. There are two kinds. Either each rank is a program, started by a launcher (mpirun). Or, with
 * -gpus, each rank is a network of this program, which computes its part of a step in its own thread; then
 * only that network's struct darknet_amp has the communicator, and amp_ranks() below is NULL: see
 * network/ranks_join.h.
 *
 * Rank 0 prints, logs and saves. sharing.h explains how ranks divide a step's images, exchange.h has the
 * numbers they exchange. */
#pragma once

#include "../../comm/comm.h"

/* If a launcher has started several programs, joins the others, and then ends the program unless the command
 * is the same on all ranks and can be shared (a training under AMP, or amp bench). From here on all ranks
 * except 0 print only errors. Called at program start, while there are no other threads. words: the words of
 * the command line; gpus: the argument of -gpus, or "". */
void amp_ranks_start(const char *const *words, int count, int under_amp, const char *gpus);

/* If Darknet runs on GPUs: the n-th rank of this machine takes the machine's n-th GPU, unless -i, -gpus or
 * -nogpu is given. Call it before any CUDA function. */
void amp_ranks_take_gpu(void);

/* The communicator between programs; NULL: this one is alone. */
amp_comm *amp_ranks(void);
int amp_ranks_count(void);
/* Whether this program is rank 0, or alone. */
int amp_ranks_leads(void);
/* The number of ranks, of either kind, that share a step. */
int amp_ranks_of_step(void);

/* For ranks_start.c and network/ranks_join.c: sets the communicator between programs (or NULL) and the number
 * of networks of this program. */
void amp_ranks_set(amp_comm *, int networks);

/* For amp bench, which measures with 1, 2, ... ranks. After part, amp_ranks() contains only the first `count`
 * of all ranks; it is NULL if count is 1. part returns whether this rank is one of them. If not, this rank
 * must call part or gather next; it sleeps in that call until the others arrive there. After gather,
 * amp_ranks() contains all ranks again; call it after the last part. All networks must have been freed before
 * either call. */
int amp_ranks_part(int count);
void amp_ranks_gather(void);

/* Sets the purpose of the following collective calls (amp_comm.phase), which is printed if one times out. */
__attribute__((format(printf, 1, 2))) void amp_ranks_phase(const char *format, ...);

/* exchange.c checks what must be the same on all ranks. note: adds a line such as "-seed 7\n", which a
 * message quotes after "rank 0 has". note_file: adds a file's checksum. agree: compares the lines added since
 * its last call with the other ranks' lines, and ends the program if they differ. */
__attribute__((format(printf, 1, 2))) void amp_ranks_note(const char *format, ...);
void amp_ranks_note_file(const char *what, const char *name);
void amp_ranks_agree(void);
/* darknet_amp_refuse for an error that every rank has: rank 0 prints it and ends all ranks; the others wait
 * until they are ended. */
#define amp_ranks_refuse(...) \
    do { if (!amp_ranks_leads()) amp_ranks_await_end(); darknet_amp_refuse(__VA_ARGS__); } while (0)

/* Waits until the others have ended too, and leaves the communicator. For a program that ends with _exit,
 * which runs no handlers. */
void amp_ranks_leave(void);
/* Sleeps until another rank has ended this one: at most 10 seconds, or 3 if this one has not joined. */
void amp_ranks_await_end(void);
