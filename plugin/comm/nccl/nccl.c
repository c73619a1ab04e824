/* Ranks that each have a GPU: see amp_comm_nccl in comm.h.
 *
 * A sum is queued on a separate stream, which first waits for an event on the backend's stream. So the sum
 * waits for the gradients that it adds, while backward continues. At sum_end the backend's stream waits for
 * an event after the last sum.
 *
 * If the ranks are threads of one program, they share one CUDA driver. A call that allocates or frees memory,
 * or loads code, may wait for all GPUs of the program, and block the other threads meanwhile. If a GPU then
 * waits in a sum that a blocked thread has not queued yet, there is a deadlock. So before the first sum of a
 * step, each thread finishes all calls of this kind that this sum needs, and waits for the other threads. If
 * any thread may still allocate memory in this step (comm.settled 0), the sums run one by one: all threads
 * wait for each other before each sum, and each then waits until the sum has ended.
 *
 * If another rank is gone, NCCL's kernels never end. The CPU then hangs as soon as it downloads something
 * that was queued after the sums. The engine downloads between sum_end and the next gather or broadcast, so a
 * watchdog covers that time. The watchdog, gather and broadcast also check for errors that NCCL itself has
 * noticed (a broken connection). */
#include <dlfcn.h>
#include <string.h>

#include "../../backend/cuda/state.h"
#include "../watchdog.h"
#include "nccl_calls.h"

typedef struct nccl_comm {
    amp_comm comm, *cpu;
    amp_nccl_calls call;
    char name[160];
    ncclComm_t ranks;       /* NCCL's communicator; NULL until NCCL has started and after its abort */
    cudaStream_t backend, sums;
    cudaEvent_t written, summed; /* written: recorded on `backend` after the data to be summed; summed:
                                    recorded on `sums` after the last sum */
    amp_watchdog *watchdog;
    int met;                /* 1: the threads of one program have waited for each other in agree_to_sum, and
                               have not gathered or broadcast since */
    int one_by_one;         /* 1: a thread was not settled in agree_to_sum, so all threads wait for each
                               sum */
} nccl_comm;

/* ---- errors ---- */

static amp_status fail(const nccl_comm *nccl, ncclResult_t result, const char *call, amp_error *error)
{
    return amp_fail(error, AMP_COMM_FAILED, "ranks: %s failed in %s on rank %d: %s (set NCCL_DEBUG=WARN in "
                                            "the environment for details)", call, nccl->comm.phase,
                    nccl->comm.rank, nccl->call.GetErrorString(result));
}

/* Calls an NCCL function. If it fails, the surrounding function, which must have the variables `nccl` and
 * `error`, returns an error. */
#define TRY(name, ...) do { ncclResult_t result_ = nccl->call.name(__VA_ARGS__); \
        if (result_ != ncclSuccess) return fail(nccl, result_, "nccl" #name, error); \
    } while (0)

/* Fails if NCCL reports an asynchronous error of the sums in progress. */
static amp_status check_sums(const nccl_comm *nccl, amp_error *error)
{
    ncclResult_t of_sums = ncclSuccess;
    TRY(CommGetAsyncError, nccl->ranks, &of_sums);
    if (of_sums == ncclSuccess || of_sums == ncclInProgress) return AMP_OK;
    return fail(nccl, of_sums, "ncclAllReduce", error);
}

static void report_timeout(void *context, const char *phase)
{
    const nccl_comm *nccl = context;
    amp_error error;
    char line[512];
    if (!nccl->ranks || check_sums(nccl, &error) == AMP_OK)
        amp_fail(&error, AMP_COMM_FAILED, "NCCL reports no error");
    snprintf(line, sizeof line, "ranks: %s: rank %d's GPU got no answer from another rank within the time "
             "limit (AMP_COMM_TIMEOUT=SECONDS): that rank is stopped, hangs or cannot be reached; %.200s",
             phase, nccl->comm.rank, error.message);
    nccl->comm.lost(line);
}

static void begin_watch(const nccl_comm *nccl)
{
    amp_watchdog_begin(nccl->watchdog, 0, amp_comm_limits(nccl->cpu), nccl->comm.phase);
}

/* ---- calls on CPU memory ---- */

/* Ends the watch that sum_end began. Returns the comm for CPU memory; NULL after an error of NCCL's sums. */
static amp_comm *cpu_of(amp_comm *comm, amp_error *error)
{
    nccl_comm *nccl = (nccl_comm *)comm;
    amp_watchdog_end(nccl->watchdog, 0);
    nccl->met = 0;
    memcpy(nccl->cpu->phase, comm->phase, sizeof comm->phase);
    return check_sums(nccl, error) == AMP_OK ? nccl->cpu : NULL;
}

static amp_status gather(amp_comm *comm, const void *mine, size_t bytes, void *all, amp_error *error)
{
    amp_comm *cpu = cpu_of(comm, error);
    return cpu ? cpu->gather(cpu, mine, bytes, all, error) : AMP_COMM_FAILED;
}

static amp_status broadcast(amp_comm *comm, void *memory, size_t bytes, int root, amp_error *error)
{
    amp_comm *cpu = cpu_of(comm, error);
    return cpu ? cpu->broadcast(cpu, memory, bytes, root, error) : AMP_COMM_FAILED;
}

/* ---- sums ---- */

/* Waits for the threads of all ranks, and finds out whether all are settled. */
static amp_status agree_to_sum(nccl_comm *nccl, amp_error *error)
{
    char mine = !nccl->comm.settled, all[nccl->comm.size];
    AMP_TRY(gather(&nccl->comm, &mine, sizeof mine, all, error));
    nccl->met = 1;
    nccl->one_by_one = memchr(all, 1, sizeof all) != NULL;
    return AMP_OK;
}

static amp_status wait_for_sum(const nccl_comm *nccl, amp_error *error)
{
    begin_watch(nccl);
    AMP_CUDA_TRY(cudaStreamSynchronize(nccl->sums));
    amp_watchdog_end(nccl->watchdog, 0);
    return AMP_OK;
}

static amp_status sum_begin(amp_comm *comm, float *values, size_t count, amp_dtype wire, amp_error *error)
{
    nccl_comm *nccl = (nccl_comm *)comm;
    if (wire != AMP_FP32) /* NCCL would round at each hop of its ring, but comm.h promises sums in fp32 */
        return amp_fail(error, AMP_UNSUPPORTED, "amp: [amp] wire=%s: GPUs exchange gradients in fp32 only; "
                                                "remove wire=", amp_dtype_name(wire));
    if (comm->one_program && (!nccl->met || nccl->one_by_one)) AMP_TRY(agree_to_sum(nccl, error));
    AMP_CUDA_TRY(cudaEventRecord(nccl->written, nccl->backend));
    AMP_CUDA_TRY(cudaStreamWaitEvent(nccl->sums, nccl->written, 0));
    TRY(AllReduce, values, values, count, ncclFloat32, ncclSum, nccl->ranks, nccl->sums);
    return nccl->one_by_one ? wait_for_sum(nccl, error) : AMP_OK;
}

static amp_status sum_end(amp_comm *comm, amp_error *error)
{
    nccl_comm *nccl = (nccl_comm *)comm;
    AMP_CUDA_TRY(cudaEventRecord(nccl->summed, nccl->sums));
    AMP_CUDA_TRY(cudaStreamWaitEvent(nccl->backend, nccl->summed, 0));
    begin_watch(nccl);
    nccl->cpu->has_summed = 1; /* shortens the time limit of cpu's calls too */
    return check_sums(nccl, error);
}

/* ---- the end ---- */

static int prints_error(amp_comm *comm)
{
    amp_comm *cpu = ((nccl_comm *)comm)->cpu;
    return !cpu->prints_error || cpu->prints_error(cpu);
}

/* First aborts the CPU's comm, which ends processes. NCCL's abort comes second, because it could wait for the
 * GPU. */
static void end_all(amp_comm *comm, int status)
{
    nccl_comm *nccl = (nccl_comm *)comm;
    nccl->cpu->abort(nccl->cpu, status);
    if (nccl->ranks) nccl->call.CommAbort(nccl->ranks);
    nccl->ranks = NULL;
}

/* Frees everything except the CPU's comm; unset fields are NULL. At the program's exit, CUDA may be shut
 * down: then NCCL has nothing left to free. NCCL's library stays loaded: its threads run in it. */
static void release(nccl_comm *nccl)
{
    amp_watchdog_stop(nccl->watchdog);
    if (nccl->ranks && cudaStreamSynchronize(nccl->sums) == cudaSuccess) nccl->call.CommDestroy(nccl->ranks);
    if (nccl->written) cudaEventDestroy(nccl->written);
    if (nccl->summed) cudaEventDestroy(nccl->summed);
    if (nccl->sums) cudaStreamDestroy(nccl->sums);
    free(nccl);
}

static void destroy(amp_comm *comm)
{
    amp_comm *cpu = ((nccl_comm *)comm)->cpu;
    memcpy(cpu->phase, comm->phase, sizeof comm->phase);
    release((nccl_comm *)comm);
    cpu->destroy(cpu);
}

/* ---- the start ---- */

static amp_status find_library(nccl_comm *nccl, amp_error *error)
{
    static const char name[] = "libnccl.so.2";
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    int version;
    if (!library)
        return amp_fail(error, AMP_UNSUPPORTED, "ranks: %s was not found, but GPUs sum gradients with it: "
                        "install NVIDIA's package libnccl2 (or pip's nvidia-nccl-cu12 or -cu13, with its "
                        "folder lib in LD_LIBRARY_PATH), or train on one GPU: %.200s", name, dlerror());
#define FIND(result, function, arguments) \
    *(void **)&nccl->call.function = dlsym(library, "nccl" #function); \
    if (!nccl->call.function) \
        return amp_fail(error, AMP_UNSUPPORTED, \
                        "ranks: %s has no nccl" #function ": install NCCL 2.10 or later", name);
    AMP_NCCL_CALLS(FIND)
#undef FIND
    TRY(GetVersion, &version);
    snprintf(nccl->name, sizeof nccl->name, "NCCL %d.%d.%d, %s", version / 10000, version / 100 % 100,
             version % 100, nccl->cpu->name);
    return AMP_OK;
}

/* For reproducible bits, NCCL must not choose its algorithm by measurement, nor let switches (NVLink SHARP)
 * add in an order that is not fixed. */
static void pin_order(const amp_cuda_backend *cuda)
{
    if (!cuda->settings.deterministic) return;
    setenv("NCCL_NVLS_ENABLE", "0", 0);
    setenv("NCCL_ALGO", "Ring", 0);
    setenv("NCCL_PROTO", "Simple", 0);
}

static amp_status join(nccl_comm *nccl, amp_error *error)
{
    amp_comm *cpu = nccl->cpu;
    ncclComm_t ranks;
    ncclUniqueId id = { 0 };
    if (cpu->rank == 0) TRY(GetUniqueId, &id);
    AMP_TRY(cpu->broadcast(cpu, &id, sizeof id, 0, error));
    AMP_CUDA_TRY(cudaStreamCreateWithFlags(&nccl->sums, cudaStreamNonBlocking));
    AMP_CUDA_TRY(cudaEventCreateWithFlags(&nccl->written, cudaEventDisableTiming));
    AMP_CUDA_TRY(cudaEventCreateWithFlags(&nccl->summed, cudaEventDisableTiming));
    AMP_TRY(amp_watchdog_start(cpu->seconds, report_timeout, nccl, &nccl->watchdog, error));
    begin_watch(nccl);
    TRY(CommInitRank, &ranks, cpu->size, id, cpu->rank);
    nccl->ranks = ranks;
    amp_watchdog_end(nccl->watchdog, 0);
    return AMP_OK;
}

amp_status amp_comm_nccl(amp_comm *cpu, amp_backend *cuda, amp_comm **out, amp_error *error)
{
    nccl_comm *nccl = amp_allocated(calloc(1, sizeof *nccl));
    *out = NULL;
    nccl->cpu = cpu;
    nccl->backend = amp_cuda_of(cuda)->stream;
    nccl->comm = *cpu;
    nccl->comm.name = nccl->name;
    snprintf(nccl->comm.phase, sizeof nccl->comm.phase, "joining the ranks' GPUs");
    memcpy(cpu->phase, nccl->comm.phase, sizeof cpu->phase);
    nccl->comm.sum_begin = sum_begin;
    nccl->comm.sum_end = sum_end;
    nccl->comm.gather = gather;
    nccl->comm.broadcast = broadcast;
    nccl->comm.part = NULL;
    nccl->comm.prints_error = prints_error;
    nccl->comm.abort = end_all;
    nccl->comm.destroy = destroy;
    pin_order(amp_cuda_of(cuda));
    amp_status status = find_library(nccl, error);
    if (status == AMP_OK) status = join(nccl, error);
    if (status == AMP_OK) *out = &nccl->comm;
    else release(nccl);
    return status;
}
