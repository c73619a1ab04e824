/* Ranks that are threads of the test's program, each with a network on the CUDA double; one of them runs at a
 * time (doubles/nccl_double.h). For programs linked with --wrap=amp_comm_threads and --wrap=pthread_create,
 * and with a Darknet built with GPU=1. */
#pragma once

#include "testing.h"

#include <omp.h>
#include <pthread.h>

#include "backend/backend.h"
#include "comm/comm.h"
#include "doubles/cuda_doubles.h"
#include "doubles/nccl_double.h"
#include "darknet.h"

enum { RANKS = 2 };

typedef struct rank {
    amp_comm host, *threads, *comm; /* between CPUs, and between these threads; NCCL's, which wraps that */
    void (*live)(struct rank *);
    amp_backend *backend;
    network *net;
    amp_status status;
    amp_error error;
    char lost[512];
} rank;

static rank ranks[RANKS];

#define WHILE_OTHERS_RUN(call) do { \
        nccl_double_give_turn(); \
        amp_status status_ = (call); \
        nccl_double_take_turn(); \
        return status_; \
    } while (0)

static amp_status gather(amp_comm *comm, const void *mine, size_t bytes, void *all, amp_error *error)
{
    amp_comm *threads = ((rank *)comm)->threads;
    WHILE_OTHERS_RUN(threads->gather(threads, mine, bytes, all, error));
}

static amp_status broadcast(amp_comm *comm, void *memory, size_t bytes, int root, amp_error *error)
{
    amp_comm *threads = ((rank *)comm)->threads;
    WHILE_OTHERS_RUN(threads->broadcast(threads, memory, bytes, root, error));
}

static void end_all(amp_comm *comm, int status)
{
    ((rank *)comm)->threads->abort(((rank *)comm)->threads, status);
    nccl_double_is_gone();
}

static void destroy(amp_comm *comm) { ((rank *)comm)->threads->destroy(((rank *)comm)->threads); }

/* The program is linked with --wrap of these two: the plugin gets the ranks of make_ranks, and the threads in
 * which Darknet trains networks take turns too. */
typedef void lost(const char *line);
amp_status __real_amp_comm_threads(int size, double, lost *, amp_comm **out, amp_error *error);
amp_status __wrap_amp_comm_threads(int size, double, lost *, amp_comm **out, amp_error *error);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *, void *(*work)(void *), void *context);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *, void *(*work)(void *), void *context);
#ifdef DARKNET_AMP_ALEXEYAB
void *train_thread(void *) __asm__("_Z12train_threadPv"); /* in a C++ file */
#else
void *train_thread(void *); /* Darknet's */
#endif

static void *train_in_turn(void *context)
{
    omp_set_num_threads(1);
    nccl_double_take_turn();
    train_thread(context);
    nccl_double_give_turn();
    return NULL;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*work)(void *),
                          void *context)
{
    return __real_pthread_create(thread, attributes, work == train_thread ? train_in_turn : work, context);
}

static void make_ranks(double seconds, lost *lose)
{
    amp_comm *threads[RANKS];
    amp_error error;
    assert_int_equal(__real_amp_comm_threads(RANKS, seconds, lose, threads, &error), AMP_OK);
    for (int i = 0; i < RANKS; i++) {
        memset(&ranks[i], 0, sizeof ranks[i]);
        ranks[i].threads = threads[i];
        ranks[i].host = *threads[i];
        ranks[i].host.gather = gather;
        ranks[i].host.broadcast = broadcast;
        ranks[i].host.abort = end_all;
        ranks[i].host.destroy = destroy;
    }
}

amp_status __wrap_amp_comm_threads(int size, double seconds, lost *lose, amp_comm **out, amp_error *error)
{
    (void)error;
    assert_int_equal(size, RANKS);
    make_ranks(seconds, lose);
    for (int i = 0; i < RANKS; i++) out[i] = &ranks[i].host;
    return AMP_OK;
}
