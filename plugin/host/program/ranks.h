/* The ranks that train one network together, each with its own copy; comm/comm.h describes how they
 * communicate. There are two kinds. Either each rank is a program, and a launcher (mpirun) starts them. Or,
 * with -gpus, each rank is a network of this program and computes its part of a step in its own thread. In
 * the second case only the struct darknet_amp of each network has a communicator, and amp_ranks() below
 * returns NULL (see network/ranks_join.h).
 *
 * Rank 0 prints, logs and saves. sharing.h explains how ranks divide a step's images. exchange.h has the
 * functions with which they exchange numbers. */
#pragma once

#include "../../comm/comm.h"

/* If a launcher has started several copies of this program, joins the others. Then ends the program unless
 * all ranks have the same command and the command can be shared (a training under AMP, or amp bench). From
 * then on all ranks except 0 print only errors. Call it at program start, while the program has only one
 * thread. words: the words of the command line; gpus: the argument of -gpus, or "". */
void amp_ranks_start(const char *const *words, int count, int under_amp, const char *gpus);

/* If Darknet runs on GPUs, the n-th rank on this machine takes the machine's n-th GPU, unless -i, -gpus or
 * -nogpu is given. Call it before any CUDA function. */
void amp_ranks_take_gpu(void);

/* The communicator between programs; NULL: this program is alone. */
amp_comm *amp_ranks(void);
int amp_ranks_count(void);
/* Whether this program is rank 0, or alone. */
int amp_ranks_leads(void);
/* The number of ranks, of either kind, that share a step. */
int amp_ranks_of_step(void);

/* For ranks_start.c and network/ranks_join.c: sets the communicator between programs (or NULL) and the number
 * of networks of this program. */
void amp_ranks_set(amp_comm *, int networks);

/* For amp bench, which measures with 1, 2, ... ranks. amp_ranks_part returns 1 if this rank is one of the
 * first `count` ranks; for these ranks, amp_ranks() then contains only the first `count` ranks, or is NULL if
 * count is 1. In all other ranks amp_ranks_part returns 0, and the next call of this communicator must be
 * another amp_ranks_part, which sleeps until all ranks have called it, or amp_ranks_gather. Call
 * amp_ranks_gather after the last amp_ranks_part; afterwards amp_ranks() contains all ranks again. Free all
 * networks before a call of either function. */
int amp_ranks_part(int count);
void amp_ranks_gather(void);

/* Sets the purpose of the following collective calls (amp_comm.phase), which is printed if one times out. */
__attribute__((format(printf, 1, 2))) void amp_ranks_phase(const char *format, ...);

/* Checks that the ranks agree; defined in exchange.c. note adds a line, for example "-seed 7\n", which an
 * error message quotes after "rank 0 has". note_file adds a line with a file's checksum. agree compares the
 * lines added since its last call with those of the other ranks, and ends the program if they differ. */
__attribute__((format(printf, 1, 2))) void amp_ranks_note(const char *format, ...);
void amp_ranks_note_file(const char *what, const char *name);
void amp_ranks_agree(void);
/* darknet_amp_refuse for an error that every rank has. Rank 0 prints it and ends all ranks; the others wait
 * until they are ended. */
#define amp_ranks_refuse(...) \
    do { if (!amp_ranks_leads()) amp_ranks_await_end(); darknet_amp_refuse(__VA_ARGS__); } while (0)

/* Waits until the other ranks are ending too, then leaves the communicator. A handler calls it at exit(). A
 * program that ends with _exit, which runs no handlers, must call it itself. */
void amp_ranks_leave(void);
/* Sleeps until another rank has ended this one: at most 10 seconds, or 3 if this one has not joined. */
void amp_ranks_await_end(void);
