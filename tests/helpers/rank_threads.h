/* Ranks that are threads of the test's program, each with a network on the double of CUDA; one of them runs
 * at a time (doubles/nccl_double.h). For programs that are linked with --wrap=amp_comm_threads and
 * --wrap=pthread_create, and with a Darknet built with GPU=1. */
#pragma once

#include "testing.h"

#include <omp.h>
#include <pthread.h>

#include "backend/backend.h"
#include "comm/threads.h"
#include "doubles/cuda_doubles.h"
#include "doubles/nccl_double.h"
#include "darknet.h"

enum { RANKS = 2 };

typedef struct rank {
    amp_comm host, *threads, *comm; /* the hosts', and that of these; NCCL's over it */
    void (*live)(struct rank *);
    amp_backend *backend;
    network *net;
    amp_status status;
    amp_error error;
    char lost[512];
} rank;

static rank ranks[RANKS];

static _Thread_local long others_waits; /* for GPUs, while this thread did not run */

#define WHILE_OTHERS_RUN(call) do { \
        long before_ = amp_cuda_counted().waits; \
        nccl_double_give_turn(); \
        amp_status status_ = (call); \
        nccl_double_take_turn(); \
        others_waits += amp_cuda_counted().waits - before_; \
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

/* The program is linked with --wrap of these two: what the plugin gets are the ranks of make_ranks, and the
 * threads that Darknet trains networks in take turns too. */
typedef void lost(const char *line);
amp_status __real_amp_comm_threads(int size, double, lost *, amp_comm **out, amp_error *error);
amp_status __wrap_amp_comm_threads(int size, double, lost *, amp_comm **out, amp_error *error);
#ifdef DARKNET_AMP_HANK_AI
/* In its threads, which are std::thread's, a network's first call is cuda_set_device and the last is
 * train_network, which no others call: the program is linked with --wrap of both. */
#include "hank_ai/mangled.h"

#define TRAIN_NETWORK(kind) __##kind##__Z13train_networkRN7Darknet7NetworkE4data
void __real_cuda_set_device(int number);
void __wrap_cuda_set_device(int number);
float TRAIN_NETWORK(real)(network *net, data d);
float TRAIN_NETWORK(wrap)(network *net, data d);
static pthread_t first_thread;
static _Thread_local int has_turn;

__attribute__((constructor)) static void note_first_thread(void) { first_thread = pthread_self(); }

void __wrap_cuda_set_device(int number)
{
    if (!has_turn && !pthread_equal(pthread_self(), first_thread)) {
        omp_set_num_threads(1);
        nccl_double_take_turn();
        has_turn = 1;
    }
    __real_cuda_set_device(number);
}

float TRAIN_NETWORK(wrap)(network *net, data d)
{
    float loss = TRAIN_NETWORK(real)(net, d);
    if (has_turn) nccl_double_give_turn();
    has_turn = 0;
    return loss;
}
#else
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *, void *(*work)(void *), void *context);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *, void *(*work)(void *), void *context);
#ifdef DARKNET_AMP_ALEXEYAB
void *train_thread(void *) __asm__("_Z12train_threadPv"); /* in a file of C++ */
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
#endif

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
