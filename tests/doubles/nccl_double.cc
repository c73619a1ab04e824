#include "nccl_double.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "comm/nccl/nccl_calls.h"
#include "cuda_doubles.h"

nccl_double_state nccl_double;

namespace {

const ncclResult_t OK = ncclSuccess, SYSTEM = (ncclResult_t)2, BAD = (ncclResult_t)4,
    REMOTE = (ncclResult_t)6;

pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
std::map<std::string, int> calls; /* "ncclAllReduce 1": of rank 1 */

struct communicator;
struct group;

struct sum {
    communicator *of;
    size_t number;
    float *values;
    size_t count;
    std::vector<float> read; /* what it is of, where the stream has read it early */
    bool was_read, arrived, done; /* the stream has come to it, and goes on */
};

struct communicator {
    group *all;
    int rank;
    cudaStream_t stream = nullptr;
    std::vector<std::unique_ptr<sum>> sums; /* asked for, ever */
};

/* Ranks of one unique id. What they were stays, for those that still look at each other, until the reset. */
struct group {
    int size = 0, joined = 0;
    bool broken = false;
    std::vector<std::unique_ptr<communicator>> ranks;
};

std::map<std::string, group> groups; /* by id */
std::set<communicator *> communicators;
int ids;

ncclResult_t told_to_fail(const char *name, int rank)
{
    int nth = ++calls[std::string(name) + " " + std::to_string(rank)];
    bool fails = nccl_double.fails && !strcmp(nccl_double.fails, name) && nccl_double.of_rank == rank;
    return fails && nth == nccl_double.nth ? SYSTEM : OK;
}

#define MAY_FAIL(name, rank) do { if (told_to_fail(name, rank) != OK) return SYSTEM; } while (0)

/* Waits for GPUs so far; and those of others, while this thread did not have the turn. */
long waits() { return amp_cuda_counted().waits; }
thread_local long given_at, of_others;

void wait()
{
    long before = waits();
    pthread_cond_wait(&changed, &turn);
    of_others += waits() - before;
}
void tell() { pthread_cond_broadcast(&changed); }

bool is_alive(communicator *c, const char *name)
{
    if (communicators.count(c)) return true;
    amp_cuda_report("%s of no communicator", name);
    return false;
}

/* The device of another rank goes on by itself; but until its host has asked for its part, and while that
 * one's thread is on the way to it, this one waits. */
void await(const sum *mine, communicator *other)
{
    group *all = mine->of->all;
    size_t n = mine->number;
    while (!all->broken) {
        if (other->sums.size() <= n || (other != mine->of && n && !other->sums[n - 1]->done)) wait();
        else if (!other->sums[n]->arrived) cudaStreamQuery(other->stream);
        else return;
    }
}

void add_up(const group *all, size_t number)
{
    const sum *first = all->ranks[0]->sums[number].get();
    for (int r = 1; r < all->size; r++)
        if (all->ranks[(size_t)r]->sums[number]->count != first->count)
            return amp_cuda_report("ncclAllReduce %zu: %zu floats on rank 0, %zu on rank %d", number,
                                   first->count, all->ranks[(size_t)r]->sums[number]->count, r);
    for (size_t i = 0; i < first->count; i++) {
        float total = 0;
        for (auto &c : all->ranks) total += c->sums[number]->values[i];
        for (auto &c : all->ranks) c->sums[number]->values[i] = total;
    }
}

/* An idle stream begins as soon as it may: what is not written by then was not waited for. */
void read_early(void *user)
{
    sum *s = (sum *)user;
    s->read.assign(s->values, s->values + s->count);
    s->was_read = true;
}

/* The stream has come to it. Who comes last adds up. */
void make_sum(void *user)
{
    sum *mine = (sum *)user;
    group *all = mine->of->all;
    bool last = true;
    if (nccl_double.breaks) all->broken = true;
    if (!mine->read.empty() && memcmp(mine->read.data(), mine->values, mine->read.size() * sizeof(float)))
        amp_cuda_report("ncclAllReduce: what it sums was written to after it had begun");
    mine->arrived = true;
    for (auto &c : all->ranks)
        last = last && c->sums.size() > mine->number && c->sums[mine->number]->arrived;
    if (last && !all->broken) add_up(all, mine->number);
    tell();
    for (auto &c : all->ranks) await(mine, c.get());
    mine->done = true;
    tell();
}

/* A sum that one rank's GPU has begun ends when all ranks' threads have asked for it. CUDA may let none of
 * them ask while one takes memory, and that one wait for the sum. */
void see_that_no_sum_waits(const char *function)
{
    for (auto &g : groups) {
        if (g.second.broken || g.second.joined < g.second.size) continue;
        size_t least = (size_t)-1, most = 0;
        for (auto &c : g.second.ranks) {
            least = std::min(least, c->sums.size());
            most = std::max(most, c->sums.size());
        }
        if (least < most)
            amp_cuda_report("%s while ncclAllReduce %zu waits for another thread", function, least);
    }
}

void drop(communicator *c)
{
    communicators.erase(c);
    nccl_double.communicators--;
    tell();
}

}

extern "C" {

void nccl_double_reset(void)
{
    nccl_double = nccl_double_state();
    calls.clear();
    groups.clear();
    amp_cuda_before_memory = see_that_no_sum_waits;
}

void nccl_double_take_turn(void)
{
    pthread_mutex_lock(&turn);
    of_others += waits() - given_at;
}

void nccl_double_give_turn(void)
{
    given_at = waits();
    pthread_mutex_unlock(&turn);
}

long nccl_double_own_waits(void) { return waits() - of_others; }

void nccl_double_is_gone(void)
{
    for (auto &g : groups) g.second.broken = true;
    tell();
}

static ncclResult_t ncclGetVersion(int *version)
{
    MAY_FAIL("ncclGetVersion", 0);
    *version = 23203;
    return OK;
}

static ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    MAY_FAIL("ncclGetUniqueId", 0);
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "number %d", ++ids);
    groups[id->internal];
    return OK;
}

static ncclResult_t ncclCommInitRank(ncclComm_t *out, int size, ncclUniqueId id, int rank)
{
    MAY_FAIL("ncclCommInitRank", rank);
    auto at = groups.find(id.internal);
    if (at == groups.end() || rank < 0 || rank >= size || (at->second.size && at->second.size != size))
        return amp_cuda_report("ncclCommInitRank: rank %d of %d, with an id of nobody's", rank, size), BAD;
    group *all = &at->second;
    all->size = size;
    all->ranks.resize((size_t)size);
    if (all->ranks[(size_t)rank]) return amp_cuda_report("ncclCommInitRank: rank %d twice", rank), BAD;
    communicator *c = new communicator { all, rank, nullptr, {} };
    all->ranks[(size_t)rank].reset(c);
    all->joined++;
    communicators.insert(c);
    nccl_double.communicators++;
    tell();
    while (all->joined < size && !all->broken) wait();
    if (all->joined < size) return drop(c), REMOTE;
    *out = (ncclComm_t)c;
    return OK;
}

static ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                                  ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream)
{
    communicator *c = (communicator *)comm;
    if (!is_alive(c, "ncclAllReduce")) return BAD;
    MAY_FAIL("ncclAllReduce", c->rank);
    if (from != to || type != ncclFloat32 || operation != ncclSum || !count)
        return amp_cuda_report("ncclAllReduce: not a sum of floats in place"), BAD;
    if (!amp_cuda_is_device(to, count * sizeof(float), "ncclAllReduce")) return BAD;
    if (c->stream && c->stream != stream) return amp_cuda_report("ncclAllReduce: on two streams"), BAD;
    c->stream = stream;
    sum *s = new sum { c, c->sums.size(), (float *)to, count, {}, false, false, false };
    bool idle = c->sums.empty() || c->sums.back()->done;
    c->sums.emplace_back(s);
    nccl_double.sums++;
    if (idle && !amp_cuda_enqueue(stream, "ncclAllReduce", read_early, s)) return BAD;
    while (idle && !s->was_read && cudaStreamQuery(stream) == cudaErrorNotReady) {}
    if (!amp_cuda_enqueue(stream, "ncclAllReduce", make_sum, s)) return BAD;
    tell();
    return OK;
}

static ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    communicator *c = (communicator *)comm;
    if (!is_alive(c, "ncclCommGetAsyncError")) return BAD;
    MAY_FAIL("ncclCommGetAsyncError", c->rank);
    *error = c->all->broken ? REMOTE : OK;
    return OK;
}

static ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    communicator *c = (communicator *)comm;
    if (!is_alive(c, "ncclCommAbort")) return BAD;
    nccl_double.aborts++;
    c->all->broken = true;
    drop(c);
    return OK;
}

static ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    communicator *c = (communicator *)comm;
    if (!is_alive(c, "ncclCommDestroy")) return BAD;
    for (auto &s : c->sums)
        if (!s->arrived && !c->all->broken) amp_cuda_report("ncclCommDestroy: sums are under way");
    drop(c);
    return OK;
}

static const char *ncclGetErrorString(ncclResult_t result)
{
    return result == REMOTE ? "remote process exited or there was a network error"
        : result == SYSTEM ? "unhandled system error" : "invalid argument";
}

/* ---- the library's place ---- */

void *__real_dlopen(const char *name, int flags);
void *__real_dlsym(void *library, const char *name);
void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlsym(void *library, const char *name);

void *__wrap_dlopen(const char *name, int flags)
{
    if (!name || strcmp(name, "libnccl.so.2")) return __real_dlopen(name, flags);
    return nccl_double.missing ? __real_dlopen("/nonexistent/libnccl.so.2", flags) : &nccl_double;
}

void *__wrap_dlsym(void *library, const char *name)
{
    static const struct { const char *name; void *function; } all[] = {
#define ENTRY(result, function, arguments) { "nccl" #function, (void *)nccl##function },
        AMP_NCCL_CALLS(ENTRY)
#undef ENTRY
    };
    if (library != &nccl_double) return __real_dlsym(library, name);
    if (nccl_double.lacks && !strcmp(nccl_double.lacks, name)) return nullptr;
    for (auto &entry : all) if (!strcmp(entry.name, name)) return entry.function;
    return nullptr;
}

}
