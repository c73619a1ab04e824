/* See threads.h. A collective call is: say where one's array is, wait for all, read (or write) the others',
 * wait for all. */
#include "threads.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "wire.h"

typedef struct team {
    pthread_mutex_t mutex;
    pthread_cond_t all_here;
    int size, here, alive, aborted;
    unsigned long round;   /* of waiting for each other */
    void **arrays;         /* a rank's, in the call under way */
} team;

typedef struct member {
    amp_comm comm;
    team *team;
} member;

static team *team_of(amp_comm *comm) { return ((member *)comm)->team; }

static amp_status wait_for_all(amp_comm *comm, amp_error *error)
{
    team *t = team_of(comm);
    pthread_mutex_lock(&t->mutex);
    unsigned long round = t->round;
    if (++t->here == t->size) {
        t->here = 0;
        t->round++;
        pthread_cond_broadcast(&t->all_here);
    }
    while (t->round == round && !t->aborted) pthread_cond_wait(&t->all_here, &t->mutex);
    int failed = t->aborted;
    pthread_mutex_unlock(&t->mutex);
    return failed ? amp_fail(error, AMP_COMM_FAILED, "amp: rank %d of %d: another rank gave up during %s",
                             comm->rank, comm->size, comm->phase) : AMP_OK;
}

static amp_status show(amp_comm *comm, void *array, amp_error *error)
{
    team_of(comm)->arrays[comm->rank] = array;
    return wait_for_all(comm, error);
}

static float as_sent(float x, amp_dtype wire)
{
    float packed, sent;
    amp_wire_pack(&packed, &x, 1, wire);
    amp_wire_unpack(&sent, &packed, 1, wire);
    return sent;
}

/* Each rank adds up a part of the elements, in the order of ranks, and writes it to all. */
static amp_status sum_begin(amp_comm *comm, float *values, size_t count, amp_dtype wire, amp_error *error)
{
    float **arrays = (float **)team_of(comm)->arrays;
    size_t rank = (size_t)comm->rank, size = (size_t)comm->size;
    AMP_TRY(show(comm, values, error));
    for (size_t i = count * rank / size; i < count * (rank + 1) / size; i++) {
        float sum = as_sent(arrays[0][i], wire);
        for (size_t k = 1; k < size; k++) sum += as_sent(arrays[k][i], wire);
        for (size_t k = 0; k < size; k++) arrays[k][i] = as_sent(sum, wire);
    }
    return wait_for_all(comm, error);
}

static amp_status sum_end(amp_comm *comm, amp_error *error)
{
    (void)comm;
    (void)error;
    return AMP_OK;
}

static amp_status gather(amp_comm *comm, const void *mine, size_t bytes, void *all, amp_error *error)
{
    AMP_TRY(show(comm, (void *)mine, error));
    for (int k = 0; k < comm->size; k++)
        memcpy((char *)all + (size_t)k * bytes, team_of(comm)->arrays[k], bytes);
    return wait_for_all(comm, error);
}

static amp_status broadcast(amp_comm *comm, void *memory, size_t bytes, int root, amp_error *error)
{
    AMP_TRY(show(comm, memory, error));
    if (comm->rank != root) memcpy(memory, team_of(comm)->arrays[root], bytes);
    return wait_for_all(comm, error);
}

static void end_all(amp_comm *comm, int status)
{
    team *t = team_of(comm);
    (void)status;
    pthread_mutex_lock(&t->mutex);
    t->aborted = 1;
    pthread_cond_broadcast(&t->all_here);
    pthread_mutex_unlock(&t->mutex);
}

static void destroy(amp_comm *comm)
{
    team *t = team_of(comm);
    pthread_mutex_lock(&t->mutex);
    int left = --t->alive;
    pthread_mutex_unlock(&t->mutex);
    free(comm);
    if (left) return;
    pthread_mutex_destroy(&t->mutex);
    pthread_cond_destroy(&t->all_here);
    free(t->arrays);
    free(t);
}

amp_status amp_comm_threads(int size, amp_comm **ranks, amp_error *error)
{
    team *t = calloc(1, sizeof *t);
    void **arrays = calloc((size_t)size, sizeof *arrays);
    int made = 0;
    for (; t && arrays && made < size; made++) {
        member *m = calloc(1, sizeof *m);
        if (!m) break;
        m->team = t;
        m->comm = (amp_comm){ .name = "threads", .rank = made, .size = size, .local_rank = made,
                              .local_size = size, .phase = "the start", .sum_begin = sum_begin,
                              .sum_end = sum_end, .gather = gather, .broadcast = broadcast,
                              .abort = end_all, .destroy = destroy };
        ranks[made] = &m->comm;
    }
    if (made < size || size < 1) {
        for (int i = 0; i < made; i++) free(ranks[i]);
        free(arrays);
        free(t);
        return amp_fail(error, AMP_NO_MEMORY, "amp: out of memory for %d ranks", size);
    }
    pthread_mutex_init(&t->mutex, NULL);
    pthread_cond_init(&t->all_here, NULL);
    t->size = t->alive = size;
    t->arrays = arrays;
    return AMP_OK;
}
