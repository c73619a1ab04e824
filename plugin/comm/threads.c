/* Ranks that are threads of one program. In a collective call each rank publishes a pointer to its array and
 * waits for all ranks. Then it reads or writes the others' arrays, and waits again. */
#include <pthread.h>
#include <string.h>

#include "watchdog.h"
#include "wire.h"

typedef struct team {
    pthread_mutex_t mutex;
    pthread_cond_t all_here;
    int size, here, aborted;
    int holders;           /* reference count: the ranks, and amp_comm_threads while it creates them */
    unsigned long round;   /* number of completed waits (wait_for_all) */
    void **arrays;         /* each rank's array in the current call */
} team;

typedef struct member {
    amp_comm comm;
    team *team;
    amp_watchdog *watchdog;
} member;

static team *team_of(amp_comm *comm) { return ((member *)comm)->team; }

static amp_status wait_for_all(amp_comm *comm, int limits, amp_error *error)
{
    team *t = team_of(comm);
    amp_watchdog *watchdog = ((member *)comm)->watchdog;
    amp_watchdog_begin(watchdog, 0, limits, comm->phase);
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
    amp_watchdog_end(watchdog, 0);
    return failed ? amp_fail(error, AMP_COMM_FAILED, "amp: rank %d of %d: another rank gave up during %s",
                             comm->rank, comm->size, comm->phase) : AMP_OK;
}

static amp_status publish(amp_comm *comm, void *array, int limits, amp_error *error)
{
    team_of(comm)->arrays[comm->rank] = array;
    return wait_for_all(comm, limits, error);
}

/* Waits until no rank accesses another rank's array any more. */
static amp_status end_use(amp_comm *comm, amp_error *error)
{
    return wait_for_all(comm, amp_comm_limits(comm), error);
}

static float as_sent(float x, amp_dtype wire)
{
    float packed, sent;
    amp_wire_pack(&packed, &x, 1, wire);
    amp_wire_unpack(&sent, &packed, 1, wire);
    return sent;
}

/* Each rank sums its part of the elements, in rank order, and writes the sums to every rank's array. */
static amp_status sum_begin(amp_comm *comm, float *values, size_t count, amp_dtype wire, amp_error *error)
{
    float **arrays = (float **)team_of(comm)->arrays;
    size_t rank = (size_t)comm->rank, size = (size_t)comm->size;
    AMP_TRY(publish(comm, values, amp_comm_limits(comm), error));
    for (size_t i = count * rank / size; i < count * (rank + 1) / size; i++) {
        float sum = as_sent(arrays[0][i], wire);
        for (size_t k = 1; k < size; k++) sum += as_sent(arrays[k][i], wire);
        for (size_t k = 0; k < size; k++) arrays[k][i] = as_sent(sum, wire);
    }
    return end_use(comm, error);
}

static amp_status sum_end(amp_comm *comm, amp_error *error)
{
    comm->has_summed = 1;
    return AMP_OK;
}

static amp_status gather(amp_comm *comm, const void *mine, size_t bytes, void *all, amp_error *error)
{
    AMP_TRY(publish(comm, (void *)mine, amp_comm_limits(comm), error));
    for (int k = 0; k < comm->size; k++)
        memcpy((char *)all + (size_t)k * bytes, team_of(comm)->arrays[k], bytes);
    return end_use(comm, error);
}

static amp_status broadcast(amp_comm *comm, void *memory, size_t bytes, int root, amp_error *error)
{
    AMP_TRY(publish(comm, memory, AMP_LIMITS_ALONE, error));
    if (comm->rank != root) memcpy(memory, team_of(comm)->arrays[root], bytes);
    return end_use(comm, error);
}

static void end_all(amp_comm *comm, int status)
{
    team *t = team_of(comm);
    pthread_mutex_lock(&t->mutex);
    t->aborted = 1;
    pthread_cond_broadcast(&t->all_here);
    pthread_mutex_unlock(&t->mutex);
}

static void release(team *t)
{
    pthread_mutex_lock(&t->mutex);
    int left = --t->holders;
    pthread_mutex_unlock(&t->mutex);
    if (left) return;
    pthread_mutex_destroy(&t->mutex);
    pthread_cond_destroy(&t->all_here);
    free(t->arrays);
    free(t);
}

static void destroy(amp_comm *comm)
{
    team *t = team_of(comm);
    amp_watchdog_stop(((member *)comm)->watchdog);
    free(comm);
    release(t);
}

static amp_status add_member(team *t, int rank, double seconds, void (*lost)(const char *line),
                             amp_comm **out, amp_error *error)
{
    member *m = amp_allocated(calloc(1, sizeof *m));
    m->team = t;
    m->comm = (amp_comm){ .name = "threads", .rank = rank, .size = t->size, .local_rank = rank,
                          .local_size = t->size, .one_program = 1, .phase = "the start",
                          .seconds = seconds, .lost = lost, .sum_begin = sum_begin, .sum_end = sum_end,
                          .gather = gather, .broadcast = broadcast, .abort = end_all, .destroy = destroy };
    *out = &m->comm;
    t->holders++;
    return amp_watchdog_start(seconds, amp_comm_report_timeout, m, &m->watchdog, error);
}

amp_status amp_comm_threads(int size, double seconds, void (*lost)(const char *line), amp_comm **ranks,
                            amp_error *error)
{
    team *t = amp_allocated(calloc(1, sizeof *t));
    pthread_mutex_init(&t->mutex, NULL);
    pthread_cond_init(&t->all_here, NULL);
    t->size = size;
    t->holders = 1;
    t->arrays = amp_allocated(calloc((size_t)size, sizeof *t->arrays));
    amp_status status = AMP_OK;
    for (int i = 0; i < size && status == AMP_OK; i++)
        status = add_member(t, i, seconds, lost, &ranks[i], error);
    for (int i = t->holders - 1; status != AMP_OK && i > 0; i--) destroy(ranks[i - 1]);
    release(t);
    return status;
}
