/* The ranks that train one network together, each with a copy of its own: see comm/comm.h. They are programs
 * that a launcher has started, or with -gpus the networks of this one, each in a thread while a step is made.
 * Of the latter only what is in a struct darknet_amp knows: to all else such a program is alone.
 *
 * Rank 0 prints, logs and saves. How they share a step's images: sharing.h. */
#pragma once

#include "../../comm/comm.h"

struct network;
struct darknet_amp;

/* Before the arguments are read: amp_ranks_start follows. Until it has joined the others, or has seen that
 * there are none to join, amp_ranks_is_awaited. */
void amp_ranks_await(void);
int amp_ranks_is_awaited(void);

/* For the program's start, before there are threads: joins the others if a launcher has started several of a
 * training, which is then refused unless it is under AMP and all have been given the same. words: of the
 * command line; gpus: what follows -gpus there, or "". All ranks but 0 are silent from here on, but for
 * errors. */
void amp_ranks_start(const char *const *words, int count, int under_amp, const char *gpus);

/* Gives this rank the GPU of its number among the ranks on this machine, where Darknet runs on GPUs. Before
 * CUDA is called; not where -i or -gpus says which, or -nogpu that none is used. */
void amp_ranks_take_gpu(void);
/* The network will be trained together with those of the other programs, if there are any: amp->comm. */
amp_status amp_ranks_use(struct darknet_amp *, amp_error *);

/* Networks of this program become ranks of each other: amp->comm. join: of such a network, at its first
 * training pass, in the thread that makes it, while others make theirs. Does nothing for all others. forget:
 * the network will be freed. network: of a rank; the array `nets` stays. */
void amp_ranks_unite(struct network **nets, int count);
void amp_ranks_join(struct darknet_amp *);
struct network *amp_ranks_network(int rank);
void amp_ranks_forget(struct darknet_amp *);
/* Whether it is rank 0's network, or alone: what is said of a step is said once. */
int amp_ranks_speaks_for(const struct darknet_amp *);

/* The programs. NULL: this one is alone. */
amp_comm *amp_ranks(void);
int amp_ranks_count(void);
/* Whether this is rank 0, or alone. */
int amp_ranks_leads(void);
/* How many share a step: programs, or networks of this one. */
int amp_ranks_of_step(void);

/* For ranks_start.c and ranks_join.c: which programs there are, or NULL, and how many
 * networks of this one. */
void amp_ranks_set(amp_comm *, int networks);

/* For measuring: from here on the first `count` of the ranks are together, and amp_ranks is these, or NULL
 * for one. Returns whether this is one of them; the others must call part or gather next, in which they
 * sleep. All networks that the ranks had are freed before. gather: all are together again; where no other
 * part is to follow. */
int amp_ranks_part(int count);
void amp_ranks_gather(void);

/* What the calls between ranks are made for from here on: amp_comm.phase. */
__attribute__((format(printf, 1, 2))) void amp_ranks_phase(const char *format, ...);

/* A line of what all ranks must have alike, as "-seed 7\n", to be read behind "rank 0 has"; and that a file
 * is the same. agree: compares all lines since the last time with those of the others; the program ends if
 * they differ. agree_to_train: the same of the network, with what it was loaded with. */
__attribute__((format(printf, 1, 2))) void amp_ranks_note(const char *format, ...);
void amp_ranks_note_file(const char *what, const char *name);
void amp_ranks_agree(void);
void amp_ranks_agree_to_train(struct network *);
/* For what all ranks refuse alike: rank 0 prints the line and ends all, the others wait for that. */
__attribute__((noreturn, format(printf, 1, 2))) void amp_ranks_refuse(const char *format, ...);

/* The training has ended as it should. Otherwise a program that ends takes all others along. */
void amp_ranks_over(void);
/* Waits for the others to end too, and leaves them: before the program ends without exit. */
void amp_ranks_leave(void);
/* Sleeps until another rank has ended this one, 10 seconds at most. */
void amp_ranks_await_end(void);
