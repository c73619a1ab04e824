/* The ranks that train together with this program, each with a network of its own: see comm/comm.h.
 *
 * Rank 0 prints, logs and saves. How they share a step's images: sharing.h. */
#ifndef AMP_HOST_RANKS_H
#define AMP_HOST_RANKS_H

#include "../../backend/backend.h"
#include "../../comm/comm.h"

struct network;

/* Before the arguments are read: amp_ranks_start follows. Until it has joined the others, or has seen that
 * there are none to join, amp_ranks_is_awaited. */
void amp_ranks_await(void);
int amp_ranks_is_awaited(void);

/* For the program's start, before there are threads: joins the others if a launcher has started several of a
 * training, which is then refused unless it is under AMP and all have been given the same. words: of the
 * command line. All ranks but 0 are silent from here on, but for errors. */
void amp_ranks_start(const char *const *words, int count, int under_amp);

/* Gives this rank the GPU of its number among the ranks on this machine, where Darknet runs on GPUs. Before
 * CUDA is called; not where -i or -gpus says which, or -nogpu that none is used. */
void amp_ranks_take_gpu(void);
/* The engine's sums will be of this backend's memory. Once, where that is a GPU's. */
amp_status amp_ranks_use(amp_backend *, amp_error *);

/* NULL: the program is alone. */
amp_comm *amp_ranks(void);
int amp_ranks_count(void);
/* Whether this is rank 0, or alone. */
int amp_ranks_leads(void);

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

/* The training has ended as it should. Otherwise a program that ends takes all others along. */
void amp_ranks_over(void);
/* Waits for the others to end too, and leaves them: before the program ends without exit. */
void amp_ranks_leave(void);
/* Sleeps until another rank has ended this one, 10 seconds at most. */
void amp_ranks_await_end(void);

#endif
