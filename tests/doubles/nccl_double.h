/* A double of NCCL: the calls that comm/nccl makes, on memory and streams of the CUDA runtime's double
 * (cuda_doubles.h). A sum is work of its stream, done late; it begins when the streams of all ranks have come
 * to it, as on GPUs. Programs are linked with --wrap=dlopen and --wrap=dlsym: libnccl.so.2 is found here.
 *
 * Ranks are threads of the test. The runtime's double is for one thread, so that one of them runs at a time:
 * who has the turn. What waits for another rank gives it away meanwhile. Reported by amp_cuda_report are
 * misuse, and memory that a rank takes or gives back while a sum waits for another one's thread. */
#ifndef AMP_NCCL_DOUBLE_H
#define AMP_NCCL_DOUBLE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct nccl_double_state {
    /* For the test to set. */
    const char *fails;    /* this function, as "ncclAllReduce", returns ncclSystemError (2), */
    int of_rank, nth;     /* ... when this rank calls it for the nth time, counted from 1 */
    int breaks;           /* sums fail when they are made, which ncclCommGetAsyncError tells */
    int missing;          /* there is no library */
    const char *lacks;    /* ... or it has no such function */
    /* For the test to look at. */
    int communicators;    /* live ones */
    long sums;            /* asked for, by all ranks */
    int aborts;
} nccl_double_state;

extern nccl_double_state nccl_double;

void nccl_double_reset(void);
/* For a thread that is a rank. */
void nccl_double_take_turn(void);
void nccl_double_give_turn(void);
/* How often the thread that has the turn has waited for its GPU, up to a constant. */
long nccl_double_own_waits(void);
/* A rank's process is no more: for the others the connection breaks. With the turn. */
void nccl_double_is_gone(void);

#ifdef __cplusplus
}
#endif
#endif
