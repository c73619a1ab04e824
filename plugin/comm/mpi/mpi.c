/* Ranks that are processes started by mpirun: see comm.h.
 *
 * The main thread gathers and broadcasts. A second thread makes the sums, one after the other, with blocking
 * calls on its own communicator, so that sums progress while the main thread computes. (MPI libraries
 * progress only inside their own calls, so MPI_Iallreduce would overlap with nothing.)
 *
 * A sum takes two exchanges. First, each of N ranks receives one N-th of the floats from all other ranks, and
 * adds them up in fp32, in rank order. Then each rank sends its sums to all others. This sends no more data
 * than the best MPI_Allreduce, but the sum is always ((r0 + r1) + r2) + ..., for every MPI library and number
 * of floats. Values sent in 16 bits are rounded only twice. */
#include <limits.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../watchdog.h"
#include "../wire.h"

const int amp_comm_is_here = 1;

/* Thread numbers for the watchdog. */
enum { MAIN, SUMS };

enum {
    CHUNK = 1 << 18,    /* floats per exchange: few enough that received floats stay in the CPU's cache */
    ABORT_SECONDS = 10  /* seconds after which a process ends itself if the launcher has not ended it */
};

typedef struct sum {
    float *values;
    size_t count;
    amp_dtype wire;
    int limits; /* timeout of the sum, as a multiple of the time limit of a call */
    char phase[AMP_PHASE];
} sum;

typedef struct mpi_comm {
    amp_comm comm;
    char library[64];
    MPI_Comm calls, sums, machine; /* private communicators: for the main thread, for sums, for the ranks on
                                      this machine */
    int is_part;            /* 1: created by `part`, so destroy does not finalize MPI */
    amp_watchdog *watchdog;
    MPI_Win window;         /* memory shared by the ranks on this machine; holds *printed_error */
    atomic_int *printed_error; /* 1: a rank on this machine prints why the program ends; NULL: not shared */

    pthread_t thread;       /* the thread that makes the sums */
    pthread_mutex_t lock;   /* guards the fields from `stopping` to `error` */
    pthread_cond_t begun, made;
    int stopping;
    sum *queue;
    size_t queued, next, room; /* number of sums begun since the last sum_end; index of the first one not
                                  done; number of allocated entries */
    amp_status status;      /* the first failure of the sums since the last sum_end; AMP_OK: none */
    amp_error error;

    /* Scratch memory of the thread that makes the sums: values to be sent in 16 bits, received values, and
     * each rank's counts and offsets for MPI_Alltoallv and MPI_Allgatherv. */
    amp_half_bits *halves;
    void *arrived;
    int *counts, *offsets, *my_counts, *my_offsets;
} mpi_comm;

/* ---- errors ---- */

static amp_status check(int result, const char *phase, amp_error *error)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (result == MPI_SUCCESS) return AMP_OK;
    MPI_Error_string(result, text, &length);
    return amp_fail(error, AMP_COMM_FAILED, "ranks: MPI failed in %s: %.600s", phase, text);
}

/* ---- sums ---- */

static amp_status make_sum(mpi_comm *mpi, float *values, int count, amp_dtype wire, const char *phase,
                           amp_error *error)
{
    const amp_comm *comm = &mpi->comm;
    MPI_Datatype type = wire == AMP_FP32 ? MPI_FLOAT : MPI_UINT16_T;
    void *sent = wire == AMP_FP32 ? (void *)values : mpi->halves;
    for (int r = 0; r < comm->size; r++) {
        mpi->offsets[r] = (int)((long long)count * r / comm->size);
        mpi->counts[r] = (int)((long long)count * (r + 1) / comm->size) - mpi->offsets[r];
    }
    int mine = mpi->counts[comm->rank], at = mpi->offsets[comm->rank];
    for (int r = 0; r < comm->size; r++) {
        mpi->my_counts[r] = mine;
        mpi->my_offsets[r] = r * mine;
    }
    amp_wire_pack(sent, values, (size_t)count, wire);
    AMP_TRY(check(MPI_Alltoallv(sent, mpi->counts, mpi->offsets, type, mpi->arrived, mpi->my_counts,
                                mpi->my_offsets, type, mpi->sums), phase, error));
    size_t bytes = (size_t)mine * amp_dtype_size(wire);
    amp_wire_unpack(values + at, mpi->arrived, (size_t)mine, wire);
    for (int r = 1; r < comm->size; r++)
        amp_wire_add(values + at, (const char *)mpi->arrived + (size_t)r * bytes, (size_t)mine, wire);
    amp_wire_pack((char *)sent + (size_t)at * amp_dtype_size(wire), values + at, (size_t)mine, wire);
    AMP_TRY(check(MPI_Allgatherv(MPI_IN_PLACE, 0, type, sent, mpi->counts, mpi->offsets, type, mpi->sums),
                  phase, error));
    amp_wire_unpack(values, sent, (size_t)count, wire);
    return AMP_OK;
}

static amp_status make_sums(mpi_comm *mpi, const sum *s, amp_error *error)
{
    amp_status status = AMP_OK;
    for (size_t at = 0; status == AMP_OK && at < s->count; at += CHUNK) {
        amp_watchdog_begin(mpi->watchdog, SUMS, s->limits, s->phase);
        status = make_sum(mpi, s->values + at, (int)(s->count - at < CHUNK ? s->count - at : CHUNK), s->wire,
                          s->phase, error);
        amp_watchdog_end(mpi->watchdog, SUMS);
    }
    return status;
}

static void *keep_summing(void *context)
{
    mpi_comm *mpi = context;
    pthread_mutex_lock(&mpi->lock);
    for (;;) {
        while (mpi->next == mpi->queued && !mpi->stopping) pthread_cond_wait(&mpi->begun, &mpi->lock);
        if (mpi->next == mpi->queued) break;
        sum s = mpi->queue[mpi->next];
        int failed = mpi->status != AMP_OK;
        amp_error error;
        pthread_mutex_unlock(&mpi->lock);
        amp_status status = failed ? AMP_OK : make_sums(mpi, &s, &error);
        pthread_mutex_lock(&mpi->lock);
        if (status != AMP_OK) {
            mpi->status = status;
            mpi->error = error;
        }
        if (++mpi->next == mpi->queued) pthread_cond_signal(&mpi->made);
    }
    pthread_mutex_unlock(&mpi->lock);
    return NULL;
}

static amp_status sum_begin(amp_comm *comm, float *values, size_t count, amp_dtype wire, amp_error *error)
{
    mpi_comm *mpi = (mpi_comm *)comm;
    pthread_mutex_lock(&mpi->lock);
    mpi->queue = amp_grow(mpi->queue, mpi->queued, &mpi->room, sizeof *mpi->queue);
    sum *s = &mpi->queue[mpi->queued++];
    *s = (sum){ .values = values, .count = count, .wire = wire, .limits = amp_comm_limits(comm) };
    snprintf(s->phase, sizeof s->phase, "%s", comm->phase);
    pthread_cond_signal(&mpi->begun);
    pthread_mutex_unlock(&mpi->lock);
    return AMP_OK;
}

static amp_status sum_end(amp_comm *comm, amp_error *error)
{
    mpi_comm *mpi = (mpi_comm *)comm;
    double began = MPI_Wtime();
    pthread_mutex_lock(&mpi->lock);
    while (mpi->next < mpi->queued) pthread_cond_wait(&mpi->made, &mpi->lock);
    comm->waited += MPI_Wtime() - began;
    comm->has_summed |= mpi->queued > 0;
    mpi->next = mpi->queued = 0;
    amp_status status = mpi->status;
    mpi->status = AMP_OK;
    pthread_mutex_unlock(&mpi->lock);
    if (status != AMP_OK && error) *error = mpi->error;
    return status;
}

/* ---- the main thread's calls ---- */

static amp_status gather(amp_comm *comm, const void *mine, size_t bytes, void *all, amp_error *error)
{
    mpi_comm *mpi = (mpi_comm *)comm;
    if (bytes > INT_MAX) /* MPI's counts are int. `bytes` is the same in all ranks, so all of them fail */
        return amp_fail(error, AMP_COMM_FAILED, "ranks: %s: %zu bytes per rank are more than MPI sends in "
                                                "one call; use more ranks, or run with a single rank",
                        comm->phase, bytes);
    amp_watchdog_begin(mpi->watchdog, MAIN, amp_comm_limits(comm), comm->phase);
    int result = MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, mpi->calls);
    amp_watchdog_end(mpi->watchdog, MAIN);
    return check(result, comm->phase, error);
}

static amp_status broadcast(amp_comm *comm, void *memory, size_t bytes, int root, amp_error *error)
{
    enum { MOST = 1 << 30 }; /* MPI's counts are int */
    mpi_comm *mpi = (mpi_comm *)comm;
    int result = MPI_SUCCESS;
    amp_watchdog_begin(mpi->watchdog, MAIN, AMP_LIMITS_ALONE, comm->phase);
    for (size_t at = 0; result == MPI_SUCCESS && at < bytes; at += MOST)
        result = MPI_Bcast((char *)memory + at, (int)(bytes - at < MOST ? bytes - at : MOST), MPI_BYTE, root,
                           mpi->calls);
    amp_watchdog_end(mpi->watchdog, MAIN);
    return check(result, comm->phase, error);
}

/* ---- the end ---- */

static int prints_error(amp_comm *comm)
{
    const mpi_comm *mpi = (const mpi_comm *)comm;
    return !mpi->printed_error || !atomic_exchange(mpi->printed_error, 1);
}

/* If the launcher cannot be reached, for example over a broken link, the alarm ends this process. */
static void end_all(amp_comm *comm, int status)
{
    signal(SIGALRM, SIG_DFL);
    alarm(ABORT_SECONDS);
    MPI_Abort(MPI_COMM_WORLD, status);
}

static void stop_summing(mpi_comm *mpi)
{
    pthread_mutex_lock(&mpi->lock);
    mpi->stopping = 1;
    pthread_cond_signal(&mpi->begun);
    pthread_mutex_unlock(&mpi->lock);
    pthread_join(mpi->thread, NULL);
}

static void destroy(amp_comm *comm)
{
    mpi_comm *mpi = (mpi_comm *)comm;
    amp_watchdog_begin(mpi->watchdog, MAIN, AMP_LIMITS_ALONE, comm->phase);
    MPI_Barrier(mpi->calls); /* a launcher may kill the others once one rank has exited with an error */
    stop_summing(mpi);
    if (mpi->printed_error) MPI_Win_free(&mpi->window);
    MPI_Comm_free(&mpi->machine);
    MPI_Comm_free(&mpi->sums);
    MPI_Comm_free(&mpi->calls);
    if (!mpi->is_part) MPI_Finalize();
    amp_watchdog_end(mpi->watchdog, MAIN);
    amp_watchdog_stop(mpi->watchdog);
    free(mpi->queue);
    free(mpi->halves);
    free(mpi->arrived);
    free(mpi->counts);
    free(mpi);
}

/* ---- the start ---- */

/* Writes the library's name and version, such as "Open MPI v4.1.4": MPI's text up to a comma or line end. */
static void find_library(char *name, size_t room)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;
    MPI_Get_library_version(text, &length);
    text[strcspn(text, ",\n")] = 0;
    for (char *c = text; *c; c++) if (*c == '\t') *c = ' ';
    snprintf(name, room, "%s", text);
}

static void share_with_machine(mpi_comm *mpi)
{
    void *memory;
    MPI_Aint size;
    int unit;
    MPI_Comm_split_type(mpi->calls, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &mpi->machine);
    MPI_Comm_rank(mpi->machine, &mpi->comm.local_rank);
    MPI_Comm_size(mpi->machine, &mpi->comm.local_size);
    MPI_Comm_set_errhandler(mpi->machine, MPI_ERRORS_RETURN);
    if (MPI_Win_allocate_shared(mpi->comm.local_rank ? 0 : sizeof *mpi->printed_error, 1, MPI_INFO_NULL,
                                mpi->machine, &memory, &mpi->window) != MPI_SUCCESS) return;
    MPI_Win_shared_query(mpi->window, 0, &size, &unit, &memory);
    mpi->printed_error = memory;
    if (!mpi->comm.local_rank) atomic_store(mpi->printed_error, 0);
    MPI_Barrier(mpi->machine);
}

static amp_status start_summing(mpi_comm *mpi, amp_error *error)
{
    size_t size = (size_t)mpi->comm.size;
    mpi->halves = amp_allocated(malloc(CHUNK * sizeof *mpi->halves));
    mpi->arrived = amp_allocated(malloc((CHUNK + size) * sizeof(float)));
    mpi->counts = amp_allocated(calloc(4 * size, sizeof *mpi->counts));
    mpi->offsets = mpi->counts + size;
    mpi->my_counts = mpi->counts + 2 * size;
    mpi->my_offsets = mpi->counts + 3 * size;
    pthread_mutex_init(&mpi->lock, NULL);
    pthread_cond_init(&mpi->begun, NULL);
    pthread_cond_init(&mpi->made, NULL);
    return amp_start_helper(&mpi->thread, keep_summing, mpi, error);
}

static void set_communicators(mpi_comm *mpi, MPI_Comm ranks)
{
    find_library(mpi->library, sizeof mpi->library);
    MPI_Comm_dup(ranks, &mpi->calls);
    MPI_Comm_dup(ranks, &mpi->sums);
    MPI_Comm_set_errhandler(mpi->calls, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(mpi->sums, MPI_ERRORS_RETURN);
    MPI_Comm_rank(mpi->calls, &mpi->comm.rank);
    MPI_Comm_size(mpi->calls, &mpi->comm.size);
    share_with_machine(mpi);
}

static amp_status part(amp_comm *, int size, amp_comm **out, amp_error *);

/* Creates a comm that has no ranks yet. */
static amp_status create(double seconds, void (*lost)(const char *line), mpi_comm **out, amp_error *error)
{
    mpi_comm *mpi = *out = amp_allocated(calloc(1, sizeof *mpi));
    mpi->comm = (amp_comm){ .name = mpi->library, .phase = "the start", .seconds = seconds, .lost = lost,
                            .sum_begin = sum_begin, .sum_end = sum_end, .gather = gather,
                            .broadcast = broadcast, .part = part, .prints_error = prints_error,
                            .abort = end_all, .destroy = destroy };
    return amp_watchdog_start(seconds, amp_comm_report_timeout, mpi, &mpi->watchdog, error);
}

/* MPI_Barrier would busy-wait and take CPU time from ranks that still work. */
static amp_status sleep_until_all_are_here(mpi_comm *mpi, amp_error *error)
{
    const struct timespec pause = { .tv_nsec = 1000000 };
    MPI_Request request;
    int are_here = 0, result = MPI_Ibarrier(mpi->calls, &request);
    while (result == MPI_SUCCESS && !are_here) {
        result = MPI_Test(&request, &are_here, MPI_STATUS_IGNORE);
        if (!are_here) nanosleep(&pause, NULL);
    }
    return check(result, mpi->comm.phase, error);
}

static amp_status part(amp_comm *comm, int size, amp_comm **out, amp_error *error)
{
    mpi_comm *all = (mpi_comm *)comm, *mpi;
    MPI_Comm ranks;
    *out = NULL;
    AMP_TRY(sleep_until_all_are_here(all, error));
    int is_in = size > 1 && comm->rank < size;
    AMP_TRY(check(MPI_Comm_split(all->calls, is_in ? 0 : MPI_UNDEFINED, comm->rank, &ranks), comm->phase,
                  error));
    if (!is_in) return AMP_OK;
    AMP_TRY(create(comm->seconds, comm->lost, &mpi, error));
    mpi->is_part = 1;
    set_communicators(mpi, ranks);
    MPI_Comm_free(&ranks);
    *out = &mpi->comm;
    return start_summing(mpi, error);
}

/* Sets two options of Open MPI, unless the user has set them. */
static void set_up_library(void)
{
    char bytes[32];
    /* Threads that wait yield the CPU. */
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    /* Open MPI's eager limit for TCP: the size in bytes, headers included, up to which a message is sent at
     * once. Before a longer message, Open MPI asks the receiver. The question and its answer would queue
     * behind data that is already being sent, so the two directions of a link would send in turns instead of
     * at the same time. So the limit is set to the longest message of a sum. */
    snprintf(bytes, sizeof bytes, "%zu", CHUNK / 2 * sizeof(float) + 4096);
    setenv("OMPI_MCA_btl_tcp_eager_limit", bytes, 0);
}

amp_status amp_comm_join(void (*lost)(const char *line), amp_comm **out, amp_error *error)
{
    int granted;
    double seconds;
    amp_error of_limit;
    mpi_comm *mpi;
    *out = NULL;
    amp_status limited = amp_comm_time_limit(&seconds, &of_limit);
    AMP_TRY(create(seconds, lost, &mpi, error));
    mpi->comm.rank = amp_comm_launched_rank(); /* for messages until MPI has started */
    amp_watchdog_begin(mpi->watchdog, MAIN, 1, "joining (a rank that was started with another command, or "
                                               "without MPI, never joins)");
    set_up_library();
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &granted);
    set_communicators(mpi, MPI_COMM_WORLD);
    amp_watchdog_end(mpi->watchdog, MAIN);
    *out = &mpi->comm; /* from here on prints_error can be used: only one rank per machine prints the error */
    if (granted < MPI_THREAD_MULTIPLE)
        return amp_fail(error, AMP_UNSUPPORTED, "ranks: %s was built without MPI_THREAD_MULTIPLE, which is "
                        "needed to overlap sums of gradients with backward; use an MPI that has it",
                        mpi->library);
    if (limited == AMP_OK) return start_summing(mpi, error);
    *error = of_limit;
    return limited;
}
