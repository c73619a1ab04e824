/* The ranks that train one network together, each with its own copy (comm/comm.h). Without -gpus, each rank
 * is a program that a launcher (mpirun) has started. With -gpus, each rank is a network of this program, with
 * its own thread and its own communicator (network/ranks_join.h), and amp_ranks() returns NULL.
 *
 * Rank 0 prints, logs and saves. sharing.h: how ranks divide a step's images; exchange.h: how they exchange
 * numbers. */
#pragma once

#include "../../comm/comm.h"

/* Joins the other copies of this program that a launcher has started, if any. Ends the program unless all
 * copies were given the same command, and ranks can share this command (a training under AMP, or amp bench).
 * From then on all ranks except 0 print only errors. Call it while the program has only one thread. words:
 * the words of the command line. gpus: the argument of -gpus, or "". */
void amp_ranks_start(const char *const *words, int count, int under_amp, const char *gpus);

/* If Darknet runs on GPUs, the n-th rank on this machine takes the machine's n-th GPU, unless -i, -gpus or
 * -nogpu is given. Call it before any CUDA function. */
void amp_ranks_take_gpu(void);

/* The communicator between programs; NULL: this program is alone. */
amp_comm *amp_ranks(void);
int amp_ranks_count(void);
/* Whether this program is rank 0, or alone. */
int amp_ranks_leads(void);
/* The number of ranks that share a step: programs, or networks of this program (-gpus). */
int amp_ranks_of_step(void);

/* Sets the communicator between programs (or NULL) and the number of networks of this program. */
void amp_ranks_set(amp_comm *, int networks);

/* For amp bench, which measures with 1, 2, ... ranks. amp_ranks_part returns 1 on the first `count` ranks;
 * there, amp_ranks() then contains only these ranks (count=1: it is NULL). On the other ranks amp_ranks_part
 * returns 0. These ranks must next call amp_ranks_part again, which sleeps until all ranks have called it, or
 * amp_ranks_gather. amp_ranks_gather makes amp_ranks() contain all ranks again. Free all networks before you
 * call one of the two functions. */
int amp_ranks_part(int count);
void amp_ranks_gather(void);

/* Sets the purpose of the following collective calls (amp_comm.phase), which is printed if one times out. */
__attribute__((format(printf, 1, 2))) void amp_ranks_phase(const char *format, ...);

/* Checks that the ranks agree (exchange.c). note adds a line, which an error quotes after "rank 0 has";
 * note_file adds a file's checksum. agree ends the program if the lines that were added since its previous
 * call differ between ranks. */
__attribute__((format(printf, 1, 2))) void amp_ranks_note(const char *format, ...);
void amp_ranks_note_file(const char *what, const char *name);
void amp_ranks_agree(void);
/* darknet_amp_refuse for an error that every rank has: rank 0 prints it and ends all ranks. */
#define amp_ranks_refuse(...) \
    do { if (!amp_ranks_leads()) amp_ranks_await_end(); darknet_amp_refuse(__VA_ARGS__); } while (0)

/* Waits until the other ranks end too, then leaves the communicator. Runs at exit(); call it before _exit. */
void amp_ranks_leave(void);
/* Sleeps until another rank has ended this one: at most 10 seconds, or 3 if this rank has not joined the
 * others. */
void amp_ranks_await_end(void);
