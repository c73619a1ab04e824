/* A double of the CUDA runtime: the functions of cuda_runtime_api.h that the CUDA backend uses, on the CPU.
 * See cuda_doubles.h for what it detects and how a test steers it.
 *
 * Work on a stream is only written down. It runs when something waits for it (a synchronisation, a copy
 * into pageable memory, an event another stream waits for), never before: what was not waited for is not
 * there. Device memory cannot be touched while no such work runs, so that the program cannot read or
 * write it, as on a GPU. */
#include "cuda_shim.h"

#include "cuda_doubles.h"

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>

#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define SHUT_REGION(at, bytes) __asan_poison_memory_region(at, bytes)
#define OPEN_REGION(at, bytes) __asan_unpoison_memory_region(at, bytes)
#else
#define SHUT_REGION(at, bytes) (void)(at), (void)(bytes)
#define OPEN_REGION(at, bytes) (void)(at), (void)(bytes)
#endif

namespace {

/* ------------------------------------------------------------------------------------------------ faults */

int fault_count;
std::string first_fault;
cudaError_t sticky = cudaSuccess, last_error = cudaSuccess;

cudaError_t result(cudaError_t status)
{
    if (sticky != cudaSuccess) status = sticky;
    if (status != cudaSuccess && status != cudaErrorNotReady) last_error = status;
    return status;
}

struct injected { int countdown; cudaError_t status; };
std::map<std::string, injected> injections;

/* Counts a call; true if it is the one that shall fail, with *status. */
bool machine_refuses(const char *function, cudaError_t *status);
bool shall_fail(const char *function, cudaError_t *status)
{
    if (machine_refuses(function, status)) return true;
    auto at = injections.find(function);
    if (at == injections.end() || at->second.countdown <= 0 || --at->second.countdown > 0) return false;
    *status = at->second.status;
    return true;
}

#define ENTER(function) do { \
        cudaError_t status_; \
        if (shall_fail(function, &status_)) return result(status_); \
        if (sticky != cudaSuccess) return result(sticky); \
    } while (0)

/* ------------------------------------------------------------------------------------------------ memory */

/* Allocations begin at multiples of 256, as CUDA's do, and of no more. */
enum { GUARD = 256, UNIT = 512 };
const unsigned short GUARD_WORD = 0xffbf; /* NaN in fp16 and bf16, two of it in fp32 */
size_t arena_bytes = (size_t)1 << 36;
const size_t WINDOW = (size_t)16 << 20, STEP = (size_t)2 << 20, KEPT = (size_t)1 << 20;

/* lent: how many of its bytes may be used (amp_cuda_lend), by what is queued now and by what runs now. */
struct allocation { size_t bytes, span; int number; size_t lent_to_queued, lent; };

struct arena {
    char *base, *next;
    char *used;        /* the end of what was ever in use */
    int protection;    /* of base .. used; PROT_NONE behind */
    size_t live;       /* bytes */
    std::map<char *, allocation> blocks; /* live ones, by address */
    std::map<char *, allocation> freed;  /* and what lay there before, for messages */
};

arena device_memory, managed_memory;
std::map<char *, size_t> pinned, registered; /* of cudaMallocHost; of the program's, by cudaHostRegister */
size_t device_limit = (size_t)8 << 30, device_used;
int allocations;
amp_cuda_counts counts;
std::multiset<const char *> pending_copies; /* sources in pinned memory that are still to be read */
int open_count; /* work is running: device memory is accessible */
thread_local int opened_here; /* the same of this thread: another rank's may wait in the middle of its work */
bool pageable;  /* any host memory may be used as device memory, and the other way round */
bool host_access = true; /* to managed memory */
struct { int major, minor, multiprocessors; } device = { 9, 0, 4 };

/* What AMP_DOUBLE_GPU in the environment may name: cuda_doubles.h. */
struct machine {
    const char *name;
    cudaError_t all, context, kernels; /* how all calls fail, those that make a context, and kernels */
    int driver;
    size_t bytes, taken;               /* of the device's memory, and what others have of it */
    const char *gpu;
};
const machine machines[] = {
    { "", cudaSuccess, cudaSuccess, cudaSuccess, CUDART_VERSION, (size_t)8 << 30, 0, "double of a GPU" },
    { "no-gpu", cudaErrorNoDevice, cudaSuccess, cudaSuccess, CUDART_VERSION, 0, 0, "" },
    { "old-driver", cudaErrorInsufficientDriver, cudaSuccess, cudaSuccess, 11040, 0, 0, "" },
    { "taken", cudaSuccess, cudaErrorDevicesUnavailable, cudaSuccess, CUDART_VERSION, (size_t)8 << 30, 0,
      "double of a GPU in exclusive mode" },
    { "other-gpus", cudaSuccess, cudaSuccess, cudaErrorNoKernelImageForDevice, CUDART_VERSION,
      (size_t)8 << 30, 0, "double of a GPU that was not built for" },
    { "full", cudaSuccess, cudaSuccess, cudaSuccess, CUDART_VERSION, (size_t)80 << 30, (size_t)78 << 30,
      "double of a GPU that others use" },
    { "mig", cudaSuccess, cudaSuccess, cudaSuccess, CUDART_VERSION, (size_t)9984 << 20, 0,
      "NVIDIA H100 80GB HBM3 MIG 1g.10gb" },
};
const machine *here = machines;
std::string running; /* for messages */
double work_takes;   /* microseconds, each kernel and each operation of a library */

/* Calls that ask what there is need no context. */
bool machine_refuses(const char *function, cudaError_t *status)
{
    static const char *const asking[] = { "cudaGetDeviceCount", "cudaGetDevice", "cudaGetDeviceProperties" };
    bool asks = false;
    for (const char *one : asking) asks |= !std::strcmp(function, one);
    bool kernel = !std::strcmp(function, "launch") || !std::strcmp(function, "cudaFuncGetAttributes");
    *status = here->all ? here->all : !asks && here->context ? here->context : kernel ? here->kernels
            : cudaSuccess;
    return *status != cudaSuccess;
}

struct from_environment {
    from_environment()
    {
        const char *name = std::getenv("AMP_DOUBLE_GPU"), *takes = std::getenv("AMP_DOUBLE_GPU_TAKES");
        if (takes) work_takes = std::atof(takes);
        if (!name || std::sscanf(name, "%d.%d", &device.major, &device.minor) == 2) return;
        for (const machine &one : machines)
            if (!std::strcmp(one.name, name)) {
                here = &one;
                device_limit = one.bytes;
                return;
            }
        std::fprintf(stderr, "AMP_DOUBLE_GPU=%s: there is no such double\n", name), std::exit(2);
    }
} from_environment;

void protect(arena &a, int how)
{
    if (a.protection == how) return;
    a.protection = how;
    if (a.used > a.base) mprotect(a.base, (size_t)(a.used - a.base), how);
}

/* Who may touch what, now. */
void protect()
{
    bool managed = pageable || open_count || host_access;
    protect(device_memory, pageable || open_count ? PROT_READ | PROT_WRITE : PROT_NONE);
    protect(managed_memory, managed ? PROT_READ | PROT_WRITE : PROT_NONE);
}

struct sigaction previous_handler;

bool within(const arena &a, const void *p)
{
    return a.base && (char *)p >= a.base && (char *)p < a.base + arena_bytes;
}

void touched(int signal, siginfo_t *info, void *context)
{
    void *at = info->si_addr;
    bool ours = within(device_memory, at) || within(managed_memory, at);
    if (open_count)
        amp_cuda_report("%s, block (%u,%u,%u), thread (%u,%u,%u) touched %p, which is no memory",
            running.c_str(), blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z, at);
    else if (ours) amp_cuda_report("the host touched device memory at %p%s", at,
        within(managed_memory, at) ? ", and did not wait for the device" : "");
    if (first_fault.empty()) std::fprintf(stderr, "segmentation fault at %p\n", at);
    else std::fprintf(stderr, "%s\n", first_fault.c_str());
    amp_shim_abandon();
    open_count = opened_here = 0, host_access = true;
    protect();
    sigaction(SIGSEGV, &previous_handler, nullptr);
    if (previous_handler.sa_flags & SA_SIGINFO) previous_handler.sa_sigaction(signal, info, context);
    else if (previous_handler.sa_handler != SIG_DFL && previous_handler.sa_handler != SIG_IGN)
        previous_handler.sa_handler(signal);
    else if (ours) std::abort();
    /* else: the access is tried again, and ends the program */
}

/* Whoever else handles signals may have come in between: see that ours is the handler. */
void watch()
{
    struct sigaction now;
    sigaction(SIGSEGV, nullptr, &now);
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == touched) return;
    previous_handler = now;
    struct sigaction mine;
    std::memset(&mine, 0, sizeof mine);
    mine.sa_sigaction = touched;
    mine.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &mine, nullptr);
}

/* While one lives, device memory is accessible. */
struct opened {
    opened() { ++opened_here; if (open_count++ == 0) protect(); }
    ~opened()
    {
        if (opened_here) --opened_here;
        if (open_count && --open_count == 0) protect();
    }
};

void reserve(arena &a)
{
    if (a.base) return;
    void *p = MAP_FAILED;
    /* Valgrind has less than 64 GiB to give. */
    for (arena_bytes *= 2; p == MAP_FAILED && arena_bytes > (size_t)1 << 32;)
        p = mmap(nullptr, (arena_bytes /= 2) + STEP, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                 -1, 0);
    if (p == MAP_FAILED) std::perror("address space for device memory"), std::abort();
    a.base = a.next = a.used = (char *)(((uintptr_t)p + STEP - 1) / STEP * STEP);
    if (!amp_shim::races_watch(a.base, arena_bytes))
        std::perror("address space to watch device memory"), std::abort();
    madvise(a.base, arena_bytes, MADV_HUGEPAGE); /* where there are any: opening and shutting them is quick */
}

__attribute__((no_sanitize("address"))) void fill_guard(char *at, size_t bytes)
{
    for (size_t i = 0; i + 1 < bytes + 1; i++)
        ((volatile unsigned char *)at)[i] = (unsigned char)(GUARD_WORD >> (i & 1) * 8);
}

__attribute__((no_sanitize("address"))) bool guard_holds(const char *at, size_t bytes)
{
    uint64_t eight;
    size_t i = 0;
    for (; i + sizeof eight <= bytes; i += sizeof eight) {
        __builtin_memcpy(&eight, at + i, sizeof eight);
        if (eight != GUARD_WORD * 0x0001000100010001u) return false;
    }
    for (; i < bytes; i++)
        if (((const unsigned char *)at)[i] != (unsigned char)(GUARD_WORD >> (i & 1) * 8)) return false;
    return true;
}

/* Blocks that lay there before are history. */
void forget_freed(arena &a, char *from, size_t span)
{
    auto at = a.freed.lower_bound(from + span);
    while (at != a.freed.begin()) {
        auto before = std::prev(at);
        if (before->first - GUARD + before->second.span <= from) break;
        at = a.freed.erase(before);
    }
}

/* Memory with guards on both sides. Addresses come back late, so that a use after free meets no one else's
 * memory; but they do, because opening and shutting takes time by the page. */
char *take(arena &a, size_t bytes)
{
    size_t span = (bytes + UNIT - 1) / UNIT * UNIT + 2 * GUARD;
    if ((size_t)(a.next - a.base) > 2 * a.live + WINDOW) a.next = a.base;
    for (int round = 0; round < 2; round++) {
        auto after = a.blocks.lower_bound(a.next);
        while (a.next + span <= a.base + arena_bytes) {
            char *end = after == a.blocks.end() ? a.base + arena_bytes : after->first - GUARD;
            if (a.next + span <= end) break;
            a.next = after->first - GUARD + after->second.span;
            ++after;
        }
        if (a.next + span <= a.base + arena_bytes) {
            char *at = a.next + GUARD;
            a.next += span;
            a.live += span;
            if (a.next > a.used) {
                char *end = a.base + ((size_t)(a.next - a.base) + STEP - 1) / STEP * STEP;
                mprotect(a.used, (size_t)(end - a.used), a.protection);
                a.used = end;
            }
            OPEN_REGION(at - GUARD, span);
            fill_guard(at - GUARD, GUARD);
            std::memset(at, 0xff, bytes);
            fill_guard(at + bytes, span - GUARD - bytes);
            SHUT_REGION(at - GUARD, GUARD);
            SHUT_REGION(at + bytes, span - GUARD - bytes);
            a.blocks[at] = { bytes, span, ++allocations, bytes, bytes };
            amp_shim::races_allocated(at, bytes);
            forget_freed(a, at - GUARD, span);
            return at;
        }
        a.next = a.base;
    }
    return nullptr;
}

void check_guards(char *at, const allocation &b)
{
    if (!guard_holds(at - GUARD, GUARD) || !guard_holds(at + b.bytes, b.span - GUARD - b.bytes)) {
        amp_cuda_report("allocation %d of %zu bytes: something wrote beyond its ends (last ran %s)", b.number,
            b.bytes, running.c_str());
        OPEN_REGION(at - GUARD, b.span);
        fill_guard(at - GUARD, GUARD);
        fill_guard(at + b.bytes, b.span - GUARD - b.bytes);
        SHUT_REGION(at - GUARD, GUARD);
        SHUT_REGION(at + b.bytes, b.span - GUARD - b.bytes);
    }
}

void check_all_guards()
{
    opened o;
    for (arena *a : { &device_memory, &managed_memory })
        for (auto &b : a->blocks) check_guards(b.first, b.second);
}

/* The live allocation that p points into (or to the end of), else NULL. */
const std::pair<char *const, allocation> *find(const arena &a, const void *p)
{
    auto after = a.blocks.upper_bound((char *)p);
    if (after == a.blocks.begin()) return nullptr;
    auto &b = *--after;
    return (char *)p <= b.first + b.second.bytes ? &b : nullptr;
}

/* For races_find. */
[[maybe_unused]] void ends_of(const void *p, char **from, char **to)
{
    const arena *a = within(device_memory, p) ? &device_memory : &managed_memory;
    auto b = find(*a, p);
    if (b) *from = b->first, *to = b->first + b->second.lent;
}

#if AMP_SHIM_RACES
int finds_for_races = (amp_shim::races_find = ends_of, 1);
#endif

const arena *arena_of(const void *p)
{
    return within(device_memory, p) ? &device_memory : within(managed_memory, p) ? &managed_memory : nullptr;
}

bool lies_in(const std::map<char *, size_t> &blocks, const void *p)
{
    auto after = blocks.upper_bound((char *)p);
    return after != blocks.begin() && (char *)p < (--after)->first + after->second;
}

bool is_pinned(const void *p) { return lies_in(pinned, p) || lies_in(registered, p); }

/* Why `bytes` from p on are no device memory; "" if they are. */
std::string refusal(const void *p, size_t bytes)
{
    const arena *a = arena_of(p);
    char text[200];
    if (!a) {
        if (pageable || !p || is_pinned(p)) return ""; /* pinned memory is mapped into the device's space */
        std::snprintf(text, sizeof text, "%p is the host's memory", p);
        return text;
    }
    auto b = find(*a, p);
    if (b) {
        size_t usable = !bytes ? b->second.bytes : opened_here ? b->second.lent : b->second.lent_to_queued;
        if ((char *)p + bytes <= b->first + usable) return "";
        std::snprintf(text, sizeof text, "%zu bytes at offset %zu of allocation %d, which has %zu", bytes,
            (size_t)((char *)p - b->first), b->second.number, usable);
        return text;
    }
    auto after = a->freed.upper_bound((char *)p);
    if (after != a->freed.begin() && (char *)p <= (--after)->first + after->second.bytes)
        std::snprintf(text, sizeof text, "%p lies in allocation %d of %zu bytes, which was freed", p,
            after->second.number, after->second.bytes);
    else std::snprintf(text, sizeof text, "%p belongs to no allocation", p);
    return text;
}

/* ------------------------------------------------------------------------------------------------ streams */

struct stream;

struct operation {
    std::string what;
    std::function<void()> run;
    double queued; /* the host's clock then */
    amp_shim::races_operation of;
};

/* The clocks of the host and of the device, in microseconds. Queuing anything takes the host HOST_CALL; the
 * device takes only what amp_cuda_takes and clock64 say, and waits for what is not queued yet. */
double host_clock, device_clock;
constexpr double HOST_CALL = 4, CYCLE = .0005, LOOK = 1000 * CYCLE; /* LOOK: at clock64 */

/* What a stream captures instead of queuing it. What is illegal meanwhile fails, and the capture with it. */
struct capture {
    std::vector<operation> operations;
    std::vector<const void *> addresses; /* that kernels were given */
    bool broken = false;
};

struct stream {
    std::deque<operation> queue;
    std::unique_ptr<capture> captured; /* while it captures */
    uint64_t done = 0, queued = 0; /* operations, ever */
    bool blocking = true;
    bool at_work = false; /* one of its operations runs, or waits for another rank (nccl_double.h) */
    int number = 0;
    amp_shim::moment before; /* what its next operation comes after */
    std::shared_ptr<const amp_shim::moment> known; /* a copy of that; NULL: it was changed since */
    long of_host = 0;        /* host_moments, when the host's was joined to it */
};

struct event {
    stream *on = nullptr;
    uint64_t at = 0; /* that many operations of `on` must be done */
    double time = 0; /* device_clock when it was reached */
    amp_shim::moment after; /* what is over when it is reached */
};

stream default_stream;
amp_shim::moment host_moment; /* what the host has waited for */
long host_moments;            /* how often that grew */
int of_graph; /* a graph's operation runs */
std::map<void *, std::shared_ptr<capture>> graphs, executables;
std::map<stream *, std::unique_ptr<stream>> streams;
std::map<event *, std::unique_ptr<event>> events;
/* Destroyed ones keep their memory, so that no later one has an address that is out of use. */
std::vector<std::unique_ptr<stream>> destroyed_streams;
std::vector<std::unique_ptr<event>> destroyed_events;
stream *only_stream; /* the one that work is to be on; the first that has any */
bool any_stream;
bool launch_blocking;
bool copies_early; /* work on non-blocking streams is done when it is queued */
int stream_numbers;

/* The stream that captures, or NULL. */
stream *capturing()
{
    for (auto &s : streams)
        if (s.first->captured) return s.first;
    return nullptr;
}

/* Of a call that is illegal while a stream of this thread captures (cudaStreamCaptureModeThreadLocal). */
bool breaks_capture()
{
    stream *s = capturing();
    if (s) s->captured->broken = true;
    return s != nullptr;
}

#define OUTSIDE_CAPTURE() do { \
        if (breaks_capture()) return result(cudaErrorStreamCaptureUnsupported); \
    } while (0)

stream *stream_of(cudaStream_t s)
{
    if (s == nullptr || s == cudaStreamLegacy) return &default_stream;
    auto at = streams.find((stream *)s);
    return at == streams.end() ? nullptr : at->second.get();
}

/* What is over at `of` is over at `at`, too. True: that is news. */
bool join(amp_shim::moment &at, const amp_shim::moment &of)
{
    bool news = false;
    for (auto &o : of) {
        uint64_t &count = at[o.first];
        news = news || count < o.second;
        count = std::max(count, o.second);
    }
    return news;
}

void come_after(stream *s, const amp_shim::moment &what)
{
    if (join(s->before, what)) s->known.reset();
}

/* What is over once `count` of its operations are, of those that are queued. */
amp_shim::moment moment_of(const stream *s, uint64_t count)
{
    amp_shim::moment all = s->before;
    all[s->number] = count;
    return all;
}

void host_waited_for(const amp_shim::moment &what) { host_moments += join(host_moment, what); }

bool alive(stream *s) { return s == &default_stream || streams.count(s); }

/* Runs the stream's work until `count` operations were ever done. */
void run_until(stream *s, uint64_t count)
{
    if (!alive(s) || s->at_work) return;
    opened o;
    watch();
    while (s->done < count && !s->queue.empty()) {
        operation op = std::move(s->queue.front());
        s->queue.pop_front();
        std::string before = running;
        running = op.what;
        s->at_work = true;
        device_clock = std::max(device_clock, op.queued);
        const amp_shim::races_operation *outer = amp_shim::races_run(&op.of);
        if (sticky == cudaSuccess) op.run();
        amp_shim::races_run(outer);
        s->at_work = false;
        running = before.empty() ? op.what : before;
        ++s->done;
    }
}

void run_all(stream *s) { run_until(s, s->queued); }

void run_everything();

/* The host waits for that: work that is not done yet costs it time. */
void wait_until(stream *s, uint64_t count)
{
    if (alive(s) && s->done < count) ++counts.waits;
    run_until(s, count);
    host_waited_for(moment_of(s, count));
    host_clock = std::max(host_clock, device_clock);
}

void wait_for_everything()
{
    bool any = !default_stream.queue.empty();
    for (auto &s : streams) any = any || !s.first->queue.empty();
    if (any) ++counts.waits;
    run_everything();
    host_waited_for(moment_of(&default_stream, default_stream.queued));
    for (auto &s : streams) host_waited_for(moment_of(s.first, s.first->queued));
    for (auto &s : destroyed_streams) host_waited_for(moment_of(s.get(), s->queued));
    host_clock = std::max(host_clock, device_clock);
}

void run_everything()
{
    opened o;
    run_all(&default_stream);
    for (auto &s : streams) run_all(s.first);
    check_all_guards();
}

void push(stream *s, std::string what, std::function<void()> run)
{
    ++s->queued;
    host_clock += HOST_CALL;
    if (s->of_host != host_moments) come_after(s, host_moment), s->of_host = host_moments;
    if (!s->known) s->known = std::make_shared<amp_shim::moment>(s->before);
    s->queue.push_back({ what, std::move(run), host_clock, { s->number, s->queued, s->known, what } });
}

void push_wait(stream *s, stream *other, uint64_t count)
{
    come_after(s, moment_of(other, count));
    if (other->done < count) push(s, "a wait", [=] { run_until(other, count); });
}

/* The default stream waits for the others, except non-blocking ones, and they for it. */
void push_implicit_waits(stream *s)
{
    if (s == &default_stream) {
        for (auto &other : streams)
            if (other.first->blocking) push_wait(s, other.first, other.first->queued);
    } else if (s->blocking) push_wait(s, &default_stream, default_stream.queued);
}

void put(stream *s, std::string what, std::function<void()> run)
{
    if (!only_stream || !alive(only_stream)) only_stream = s;
    if (s != only_stream && !any_stream)
        amp_cuda_report("%s is on stream %d, the work before it on stream %d", what.c_str(), s->number,
                        only_stream->number);
    if (s == &default_stream && breaks_capture())
        amp_cuda_report("%s is on the default stream, while another captures", what.c_str());
    if (s->captured) {
        s->captured->operations.push_back({ std::move(what), std::move(run), 0, {} });
        return;
    }
    push_implicit_waits(s);
    push(s, std::move(what), std::move(run));
    if (launch_blocking || (copies_early && !s->blocking)) run_all(s);
    if (launch_blocking) host_waited_for(moment_of(s, s->queued));
}

bool limits_hold(dim3 grid, dim3 block)
{
    size_t threads = (size_t)block.x * block.y * block.z;
    return grid.x && grid.y && grid.z && threads && threads <= 1024 && block.x <= 1024 && block.y <= 1024
        && block.z <= 64 && grid.x <= 0x7fffffffu && grid.y <= 65535 && grid.z <= 65535;
}

}

namespace amp_shim {

void enqueue(launch l, cudaStream_t on, const std::vector<argument> &arguments)
{
    cudaError_t status;
    ++counts.launches;
    if (shall_fail("launch", &status)) { result(status); return; }
    if (sticky != cudaSuccess) { result(sticky); return; }
    stream *s = stream_of(on);
    if (!s) {
        amp_cuda_report("kernel %s on a stream that does not exist", l.kernel);
        result(cudaErrorInvalidResourceHandle);
        return;
    }
    if (!limits_hold(l.grid, l.block)) { result(cudaErrorInvalidConfiguration); return; }
    int before = fault_count;
    for (size_t i = 0; i < arguments.size(); i++)
        for (size_t at : arguments[i].addresses) {
            void *p;
            std::memcpy(&p, (const char *)arguments[i].bytes + at, sizeof p);
            std::string why = refusal(p, 0);
            if (!why.empty()) amp_cuda_report("kernel %s, argument %zu: %s", l.kernel, i + 1, why.c_str());
            if (s->captured) s->captured->addresses.push_back(p);
        }
    if (fault_count > before) { result(sticky); return; }
    put(s, std::string("kernel ") + l.kernel, [l] {
        device_clock += work_takes;
        if (!run_grid(l)) sticky = cudaErrorLaunchFailure;
    });
}

long long cycles()
{
    device_clock += LOOK;
    return (long long)(device_clock / CYCLE);
}

}

/* ---------------------------------------------------------------------------------------------- for tests */

extern "C" {

void amp_cuda_takes(double microseconds) { device_clock += microseconds; }
void amp_cuda_each_takes(double microseconds) { work_takes = microseconds; }

void amp_cuda_report(const char *format, ...)
{
    char text[600];
    va_list args;
    va_start(args, format);
    std::vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (fault_count++ == 0) first_fault = text;
    sticky = cudaErrorLaunchFailure;
}

int amp_cuda_faults(void) { return fault_count; }
const char *amp_cuda_fault(void) { return first_fault.c_str(); }

void amp_cuda_forget_faults(void)
{
    fault_count = 0;
    first_fault.clear();
    sticky = last_error = cudaSuccess;
}

void amp_cuda_fail_call(const char *function, int nth, int status)
{
    injections[function] = { nth, (cudaError_t)status };
}
void amp_cuda_launch_blocking(int on) { launch_blocking = on != 0; }
void amp_cuda_copies_early(int on) { copies_early = on != 0; }
void amp_cuda_any_stream(int allowed) { any_stream = allowed != 0; }
void amp_cuda_device_is(int major, int minor, int multiprocessors, size_t bytes)
{
    device = { major, minor, multiprocessors };
    device_limit = bytes;
}
void amp_cuda_pageable(int on)
{
    pageable = on != 0;
    protect();
}
void amp_cuda_host_access(int allowed)
{
    host_access = allowed != 0;
    protect();
    watch();
}
long amp_cuda_launches(void) { return counts.launches; }
amp_cuda_counts amp_cuda_counted(void) { return counts; }
int amp_cuda_allocations(void)
{
    return (int)(device_memory.blocks.size() + managed_memory.blocks.size() + pinned.size() +
                 registered.size());
}
int amp_cuda_registered(const void *p) { return lies_in(registered, p); }
int amp_cuda_leaks(void)
{
    int memory = amp_cuda_allocations(), of_streams = (int)streams.size(), of_events = (int)events.size();
    int of_graphs = (int)(graphs.size() + executables.size());
    int all = memory + of_streams + of_events + of_graphs;
    if (all)
        amp_cuda_report("%d allocations, %d streams, %d events and %d graphs are alive", memory, of_streams,
                        of_events, of_graphs);
    return all;
}
size_t amp_cuda_bytes(void) { return device_used; }

int amp_cuda_is_device(const void *p, size_t bytes, const char *what)
{
    std::string why = refusal(p, bytes);
    if (why.empty() && p) return 1;
    amp_cuda_report("%s: %s", what, p ? why.c_str() : "NULL");
    return 0;
}

void amp_cuda_lend(cudaStream_t on, void *block, size_t bytes)
{
    auto at = device_memory.blocks.find((char *)block);
    stream *s = stream_of(on);
    if (!s || at == device_memory.blocks.end()) return;
    if (bytes > at->second.bytes)
        amp_cuda_report("allocation %d of %zu bytes is given to operations as %zu", at->second.number,
            at->second.bytes, bytes);
    at->second.lent_to_queued = bytes;
    int number = at->second.number;
    auto lend = [=] {
        auto then = device_memory.blocks.find((char *)block);
        if (then == device_memory.blocks.end() || then->second.number != number) return;
        then->second.lent = bytes;
        amp_shim::races_freed();
    };
    double clock = host_clock; /* the real one does nothing here, and takes no time for it */
    if (s->captured || s->at_work || !s->queue.empty()) put(s, "a loan", lend);
    else lend();
    host_clock = clock;
}

int amp_cuda_enqueue(cudaStream_t on, const char *what, void (*run)(void *), void *user)
{
    stream *s = stream_of(on);
    if (!s) return amp_cuda_report("%s on a stream that does not exist", what), 0;
    ++counts.library;
    put(s, what, [=] { device_clock += work_takes, run(user); });
    return 1;
}

/* ------------------------------------------------------------------------------------ the runtime: memory */

void (*amp_cuda_before_memory)(const char *function);

static void before_memory(const char *function)
{
    if (amp_cuda_before_memory) amp_cuda_before_memory(function);
}

static cudaError_t allocate_in(arena &a, const char *function, void **out, size_t bytes)
{
    before_memory(function);
    ENTER(function);
    OUTSIDE_CAPTURE();
    if (!out) return result(cudaErrorInvalidValue);
    *out = nullptr;
    if (bytes == 0) return cudaSuccess;
    reserve(a);
    opened o;
    if (device_used + here->taken + bytes > device_limit || bytes > device_limit)
        return result(cudaErrorMemoryAllocation);
    *out = take(a, bytes);
    if (!*out) return result(cudaErrorMemoryAllocation);
    ++counts.allocations;
    device_used += bytes;
    watch();
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    return allocate_in(device_memory, "cudaMalloc", out, bytes);
}

cudaError_t cudaMallocManaged(void **out, size_t bytes, unsigned)
{
    return allocate_in(managed_memory, "cudaMallocManaged", out, bytes);
}

static cudaError_t give_back(void *p)
{
    const arena *where = arena_of(p);
    arena *a = where == &device_memory ? &device_memory : &managed_memory;
    auto at = a->blocks.find((char *)p);
    if (!where || at == a->blocks.end()) {
        std::string why = refusal(p, 0);
        amp_cuda_report("cudaFree: %s", why.empty() ? "not the start of an allocation" : why.c_str());
        return result(cudaErrorInvalidValue);
    }
    opened o;
    allocation b = at->second;
    check_guards(at->first, b);
    OPEN_REGION((char *)p, b.bytes);
    std::memset(p, 0xff, std::min(b.bytes, KEPT));
    if (b.bytes > KEPT) { /* large: the pages go back */
        char *from = (char *)(((uintptr_t)p + KEPT + 4095) & ~(uintptr_t)4095),
            *to = (char *)p + (b.bytes & ~(size_t)4095) - 4096;
        if (to > from) madvise(from, (size_t)(to - from), MADV_DONTNEED);
    }
    SHUT_REGION((char *)p, b.bytes);
    device_used -= b.bytes;
    a->live -= b.span;
    a->blocks.erase(at);
    a->freed[(char *)p] = b;
    amp_shim::races_freed();
    return cudaSuccess;
}

/* Waits for all work, as the real one does in effect. */
cudaError_t cudaFree(void *p)
{
    cudaError_t refused;
    if (machine_refuses("cudaFree", &refused)) return result(refused);
    if (!p) return cudaSuccess;
    before_memory("cudaFree");
    OUTSIDE_CAPTURE();
    opened o;
    ++counts.frees;
    wait_for_everything();
    return give_back(p);
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned)
{
    before_memory("cudaHostAlloc");
    ENTER("cudaHostAlloc");
    OUTSIDE_CAPTURE();
    *out = std::malloc(bytes ? bytes : 1);
    if (!*out) return result(cudaErrorMemoryAllocation);
    std::memset(*out, 0xff, bytes);
    pinned[(char *)*out] = bytes;
    ++counts.allocations;
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **out, size_t bytes)
{
    ENTER("cudaMallocHost");
    return cudaHostAlloc(out, bytes, 0);
}

cudaError_t cudaFreeHost(void *p)
{
    if (!p) return cudaSuccess;
    before_memory("cudaFreeHost");
    OUTSIDE_CAPTURE();
    ++counts.frees;
    wait_for_everything();
    if (!pinned.erase((char *)p)) {
        amp_cuda_report("cudaFreeHost: %p is not pinned memory", p);
        return result(cudaErrorInvalidValue);
    }
    std::free(p);
    return cudaSuccess;
}

/* Memory of the program's becomes pinned where it lies. */
cudaError_t cudaHostRegister(void *p, size_t bytes, unsigned)
{
    before_memory("cudaHostRegister");
    ENTER("cudaHostRegister");
    if (!p || !bytes || arena_of(p)) return result(cudaErrorInvalidValue);
    auto after = registered.lower_bound((char *)p);
    if (is_pinned(p) || (after != registered.end() && after->first < (char *)p + bytes))
        return result(cudaErrorHostMemoryAlreadyRegistered);
    registered[(char *)p] = bytes;
    ++counts.allocations;
    return cudaSuccess;
}

/* Nothing says that it waits: copies that still read the memory or write to it are a fault. */
cudaError_t cudaHostUnregister(void *p)
{
    before_memory("cudaHostUnregister");
    ENTER("cudaHostUnregister");
    auto at = registered.find((char *)p);
    if (at == registered.end()) {
        amp_cuda_report("cudaHostUnregister: %p was not registered", p);
        return result(cudaErrorHostMemoryNotRegistered);
    }
    for (const char *copied : pending_copies)
        if (copied >= at->first && copied < at->first + at->second)
            amp_cuda_report("cudaHostUnregister: a copy of %p is not done", (const void *)copied);
    registered.erase(at);
    ++counts.frees;
    return result(cudaSuccess);
}

/* Under free's name where a program is linked so (--wrap=free). */
void amp_cuda_program_frees(void *p)
{
    if (p && registered.count((char *)p))
        amp_cuda_report("%p is freed while it is registered as pinned memory", p);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    ENTER("cudaMemGetInfo");
    *free_bytes = device_limit - here->taken - device_used;
    *total = device_limit;
    return cudaSuccess;
}

static bool device_side(const void *p) { return arena_of(p) != nullptr; }

/* From pinned memory: read late, when nobody may have written to it since. (Nor a copy into it that
 * was queued before.) */
static void put_late_copy(stream *s, const char *name, void *to, const void *from, size_t bytes)
{
    auto before = std::make_shared<std::vector<char>>((const char *)from, (const char *)from + bytes);
    auto pending = pending_copies.insert((const char *)from);
    put(s, name, [=] {
        pending_copies.erase(pending);
        if (std::memcmp(before->data(), from, bytes))
            amp_cuda_report("%s: its source %p was written to before it was copied", name, from);
        amp_shim::races_use(to, bytes, true);
        std::memcpy(to, from, bytes);
    });
}

static void count_copy(bool to_device, bool from_device, bool pageable_side, size_t bytes)
{
    if (to_device && !from_device) ++counts.uploads, counts.uploaded += bytes;
    if (from_device && !to_device) ++counts.downloads, counts.downloaded += bytes;
    if (to_device != from_device && pageable_side) counts.pageable += bytes;
}

/* One copy, checked; `waits` for cudaMemcpy, which returns when it is done. */
static cudaError_t copy(const char *name, void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                        cudaStream_t on, bool waits)
{
    stream *s = stream_of(on);
    if (!s)
        return amp_cuda_report("%s on a stream that does not exist", name),
            result(cudaErrorInvalidResourceHandle);
    if (bytes == 0) return result(cudaSuccess);
    if (waits || !device_side(to) || !device_side(from)) OUTSIDE_CAPTURE(); /* a copy of the host's memory
        would be legal from some of it, and read what lies there later */
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice
        || (kind == cudaMemcpyDefault && device_side(to));
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice ||
        (kind == cudaMemcpyDefault && device_side(from));
    std::string why;
    if (to_device) why = refusal(to, bytes);
    if (why.empty() && from_device) why = refusal(from, bytes);
    if (why.empty() && !to_device && within(device_memory, to))
        why = "the target is device memory, the kind says it is not";
    if (why.empty() && !from_device && within(device_memory, from))
        why = "the source is device memory, the kind says it is not";
    if (!why.empty()) return amp_cuda_report("%s: %s", name, why.c_str()), result(cudaErrorInvalidValue);
    bool from_pageable = !from_device && !is_pinned(from) && !device_side(from);
    bool to_pageable = !to_device && !is_pinned(to) && !device_side(to);
    count_copy(to_device, from_device, from_pageable || to_pageable, bytes);
    if (from_pageable) { /* staged at once */
        auto staged = std::make_shared<std::vector<char>>((const char *)from, (const char *)from + bytes);
        put(s, name, [=] {
            amp_shim::races_use(to, bytes, true);
            std::memcpy(to, staged->data(), bytes);
        });
    } else if (!device_side(from)) put_late_copy(s, name, to, from, bytes);
    else put(s, name, [=] {
        amp_shim::races_use(from, bytes, false);
        amp_shim::races_use(to, bytes, true);
        std::memmove(to, from, bytes);
    });
    if (waits || to_pageable) wait_until(s, s->queued);
    return result(cudaSuccess);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t on)
{
    ENTER("cudaMemcpyAsync");
    return copy("cudaMemcpyAsync", to, from, bytes, kind, on, false);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    ENTER("cudaMemcpy");
    return copy("cudaMemcpy", to, from, bytes, kind, nullptr, true);
}

static cudaError_t set_bytes(const char *name, void *at, int value, size_t bytes, cudaStream_t on)
{
    stream *s = stream_of(on);
    if (!s)
        return amp_cuda_report("%s on a stream that does not exist", name),
            result(cudaErrorInvalidResourceHandle);
    if (bytes == 0) return result(cudaSuccess);
    if (!amp_cuda_is_device(at, bytes, name)) return result(cudaErrorInvalidValue);
    put(s, name, [=] {
        amp_shim::races_use(at, bytes, true);
        std::memset(at, value, bytes);
    });
    return result(cudaSuccess);
}

cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t on)
{
    ENTER("cudaMemsetAsync");
    return set_bytes("cudaMemsetAsync", at, value, bytes, on);
}

cudaError_t cudaMemset(void *at, int value, size_t bytes)
{
    ENTER("cudaMemset");
    return set_bytes("cudaMemset", at, value, bytes, nullptr);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *out, const void *p)
{
    ENTER("cudaPointerGetAttributes");
    ++counts.questions;
    std::memset(out, 0, sizeof *out);
    out->type = within(device_memory, p) ? cudaMemoryTypeDevice
        : within(managed_memory, p) ? cudaMemoryTypeManaged
        : is_pinned(p) ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
    if (out->type == cudaMemoryTypeDevice || out->type == cudaMemoryTypeManaged)
        out->devicePointer = (void *)p;
    if (out->type == cudaMemoryTypeHost || out->type == cudaMemoryTypeManaged) out->hostPointer = (void *)p;
    return cudaSuccess;
}

/* ------------------------------------------------------------------------------------- streams and events */

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int)
{
    ENTER("cudaStreamCreate");
    stream *s = new stream();
    s->blocking = !(flags & cudaStreamNonBlocking);
    s->number = ++stream_numbers;
    streams[s].reset(s);
    *out = (cudaStream_t)s;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    return cudaStreamCreateWithPriority(out, flags, 0);
}
cudaError_t cudaStreamCreate(cudaStream_t *out) { return cudaStreamCreateWithPriority(out, 0, 0); }

/* The stream's work is still done. */
cudaError_t cudaStreamDestroy(cudaStream_t on)
{
    stream *s = stream_of(on);
    if (!s || s == &default_stream)
        return amp_cuda_report("cudaStreamDestroy of no stream"), result(cudaErrorInvalidResourceHandle);
    run_all(s);
    if (only_stream == s) only_stream = nullptr;
    destroyed_streams.push_back(std::move(streams[s]));
    streams.erase(s);
    return result(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t on)
{
    ENTER("cudaStreamSynchronize");
    OUTSIDE_CAPTURE();
    stream *s = stream_of(on);
    if (!s)
        return amp_cuda_report("cudaStreamSynchronize of no stream"), result(cudaErrorInvalidResourceHandle);
    opened o;
    wait_until(s, s->queued);
    check_all_guards();
    return result(cudaSuccess);
}

/* Each question moves the stream on by one operation, so that a program that polls ends. */
cudaError_t cudaStreamQuery(cudaStream_t on)
{
    ENTER("cudaStreamQuery");
    OUTSIDE_CAPTURE();
    stream *s = stream_of(on);
    if (!s) return amp_cuda_report("cudaStreamQuery of no stream"), result(cudaErrorInvalidResourceHandle);
    if (s->queue.empty()) return host_waited_for(moment_of(s, s->queued)), cudaSuccess;
    run_until(s, s->done + 1);
    return result(cudaErrorNotReady);
}

cudaError_t cudaDeviceSynchronize(void)
{
    ENTER("cudaDeviceSynchronize");
    OUTSIDE_CAPTURE();
    wait_for_everything();
    return result(cudaSuccess);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned)
{
    ENTER("cudaEventCreate");
    event *e = new event();
    events[e].reset(e);
    *out = (cudaEvent_t)e;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *out) { return cudaEventCreateWithFlags(out, 0); }

static event *event_of(cudaEvent_t e)
{
    auto at = events.find((event *)e);
    if (at != events.end()) return at->first;
    amp_cuda_report("an event that does not exist");
    return nullptr;
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    event *it = event_of(e);
    if (!it) return result(cudaErrorInvalidResourceHandle);
    if (it->on && alive(it->on)) run_until(it->on, it->at);
    destroyed_events.push_back(std::move(events[it]));
    events.erase(it);
    return result(cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t on)
{
    ENTER("cudaEventRecord");
    event *it = event_of(e);
    stream *s = stream_of(on);
    if (!s) amp_cuda_report("cudaEventRecord on a stream that does not exist");
    if (!it || !s) return result(cudaErrorInvalidResourceHandle);
    if (s->captured) OUTSIDE_CAPTURE(); /* legal, but nothing here needs it */
    put(s, "cudaEventRecord", [=] { if (events.count(it)) it->time = device_clock; });
    it->on = s;
    it->at = s->queued;
    it->after = moment_of(s, s->queued);
    return result(cudaSuccess);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t on, cudaEvent_t e, unsigned)
{
    ENTER("cudaStreamWaitEvent");
    event *it = event_of(e);
    stream *s = stream_of(on);
    if (!s) amp_cuda_report("cudaStreamWaitEvent on a stream that does not exist");
    if (!it || !s) return result(cudaErrorInvalidResourceHandle);
    if (s->captured) { /* no event is of the capture */
        s->captured->broken = true;
        return result(cudaErrorStreamCaptureIsolation);
    }
    if (it->on && it->on != s) come_after(s, it->after), push_wait(s, it->on, it->at);
    return cudaSuccess;
}

static bool pending(event *e) { return e->on && alive(e->on) && e->on->done < e->at; }

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    ENTER("cudaEventSynchronize");
    OUTSIDE_CAPTURE();
    event *it = event_of(e);
    if (!it) return result(cudaErrorInvalidResourceHandle);
    if (pending(it)) wait_until(it->on, it->at);
    host_waited_for(it->after);
    return result(cudaSuccess);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    ENTER("cudaEventElapsedTime");
    event *a = event_of(from), *b = event_of(to);
    if (!a || !b || !a->on || !b->on) return result(cudaErrorInvalidResourceHandle);
    if (pending(a) || pending(b)) return result(cudaErrorNotReady);
    *ms = (float)((b->time - a->time) / 1000);
    return cudaSuccess;
}

/* ------------------------------------------------------------------------------------------------- graphs */

int amp_cuda_of_graph(void) { return of_graph; }

cudaError_t cudaStreamBeginCapture(cudaStream_t on, cudaStreamCaptureMode mode)
{
    ENTER("cudaStreamBeginCapture");
    stream *s = stream_of(on);
    if (!s || s == &default_stream || s->captured || mode != cudaStreamCaptureModeThreadLocal)
        return amp_cuda_report("cudaStreamBeginCapture of a stream that cannot, or in a mode that the double "
                               "does not know"), result(cudaErrorIllegalState);
    s->captured.reset(new capture());
    return result(cudaSuccess);
}

/* Ends the capture even when it fails. */
cudaError_t cudaStreamEndCapture(cudaStream_t on, cudaGraph_t *out)
{
    cudaError_t status = cudaSuccess;
    stream *s = stream_of(on);
    *out = nullptr;
    if (!s || !s->captured)
        return amp_cuda_report("cudaStreamEndCapture of no capture"), result(cudaErrorIllegalState);
    std::shared_ptr<capture> made(s->captured.release());
    if (shall_fail("cudaStreamEndCapture", &status)) return result(status);
    if (made->broken) return result(cudaErrorStreamCaptureInvalidated);
    *out = (cudaGraph_t)made.get();
    graphs[made.get()] = made;
    return result(cudaSuccess);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long)
{
    ENTER("cudaGraphInstantiate");
    auto at = graphs.find(graph);
    if (at == graphs.end())
        return amp_cuda_report("cudaGraphInstantiate of no graph"), result(cudaErrorInvalidValue);
    std::shared_ptr<capture> made = std::make_shared<capture>(*at->second);
    *out = (cudaGraphExec_t)made.get();
    executables[made.get()] = made;
    ++counts.recorded;
    return result(cudaSuccess);
}

static cudaError_t drop_graph(std::map<void *, std::shared_ptr<capture>> &from, void *graph)
{
    if (from.erase(graph)) return result(cudaSuccess);
    return amp_cuda_report("a graph that does not exist is destroyed"), result(cudaErrorInvalidValue);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return drop_graph(graphs, graph); }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) { return drop_graph(executables, graph); }

/* What the calls were given is used again as it was: memory that was freed since is a fault. */
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t on)
{
    ENTER("cudaGraphLaunch");
    OUTSIDE_CAPTURE();
    stream *s = stream_of(on);
    auto at = executables.find(graph);
    if (!s || at == executables.end())
        return amp_cuda_report("cudaGraphLaunch of no graph, or on no stream"), result(cudaErrorInvalidValue);
    std::shared_ptr<capture> what = at->second;
    for (const void *p : what->addresses) {
        std::string why = refusal(p, 0);
        if (!why.empty()) amp_cuda_report("cudaGraphLaunch: a kernel's argument: %s", why.c_str());
    }
    ++counts.graphs;
    put(s, "a graph", [what] {
        ++of_graph;
        for (const operation &one : what->operations) {
            running = one.what;
            if (sticky == cudaSuccess) one.run();
        }
        --of_graph;
    });
    return result(sticky);
}

/* ------------------------------------------------------------------------------------- errors and devices */

cudaError_t cudaGetLastError(void)
{
    cudaError_t status = sticky != cudaSuccess ? sticky : last_error;
    last_error = cudaSuccess;
    return status;
}

cudaError_t cudaPeekAtLastError(void) { return sticky != cudaSuccess ? sticky : last_error; }

static const struct { cudaError_t status; const char *name, *text; } known_errors[] = {
#define KNOWN(name, text) { name, #name, text },
    KNOWN(cudaSuccess, "no error")
    KNOWN(cudaErrorInvalidValue, "invalid argument")
    KNOWN(cudaErrorMemoryAllocation, "out of memory")
    KNOWN(cudaErrorInvalidConfiguration, "invalid configuration argument")
    KNOWN(cudaErrorInvalidResourceHandle, "invalid resource handle")
    KNOWN(cudaErrorInvalidDevice, "invalid device ordinal")
    KNOWN(cudaErrorNotReady, "device not ready")
    KNOWN(cudaErrorNoDevice, "no CUDA-capable device is detected")
    KNOWN(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version")
    KNOWN(cudaErrorDevicesUnavailable, "CUDA-capable device(s) is/are busy or unavailable")
    KNOWN(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device")
    KNOWN(cudaErrorLaunchFailure, "unspecified launch failure")
    KNOWN(cudaErrorIllegalAddress, "an illegal memory access was encountered")
    KNOWN(cudaErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped")
    KNOWN(cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region")
    KNOWN(cudaErrorNotSupported, "operation not supported")
};

const char *cudaGetErrorName(cudaError_t status)
{
    for (auto &one : known_errors) if (one.status == status) return one.name;
    return "cudaErrorUnknown";
}

const char *cudaGetErrorString(cudaError_t status)
{
    if (status == cudaErrorLaunchFailure && fault_count) return first_fault.c_str();
    for (auto &one : known_errors) if (one.status == status) return one.text;
    return "unknown error";
}

int amp_cuda_device_count = 1;

cudaError_t cudaGetDeviceCount(int *count)
{
    ENTER("cudaGetDeviceCount");
    *count = amp_cuda_device_count;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *id)
{
    ENTER("cudaGetDevice");
    *id = 0;
    return cudaSuccess;
}

/* Of a kernel: whether it is there. */
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *out, const void *)
{
    ENTER("cudaFuncGetAttributes");
    *out = cudaFuncAttributes();
    return cudaSuccess;
}

/* Of the numbers that a GPU's limits follow from: one that moves 2 TB/s at 1 GHz. */
cudaError_t cudaDeviceGetAttribute(int *out, cudaDeviceAttr which, int)
{
    ENTER("cudaDeviceGetAttribute");
    *out = which == cudaDevAttrGlobalMemoryBusWidth ? 8000 : 1000000;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int id)
{
    ENTER("cudaSetDevice");
    return result(id == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaDriverGetVersion(int *version) { return *version = here->driver, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int *version) { return *version = CUDART_VERSION, cudaSuccess; }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int id)
{
    ENTER("cudaGetDeviceProperties");
    if (id != 0) return result(cudaErrorInvalidDevice);
    std::memset(out, 0, sizeof *out);
    std::strcpy(out->name, here->gpu);
    out->major = device.major, out->minor = device.minor;
    out->multiProcessorCount = device.multiprocessors;
    out->totalGlobalMem = device_limit;
    out->warpSize = 32;
    out->maxThreadsPerBlock = 1024;
    out->maxThreadsPerMultiProcessor = 2048;
    out->sharedMemPerBlock = 48 << 10;
    out->regsPerBlock = 65536;
    out->managedMemory = 1;
    out->pageableMemoryAccess = pageable;
    out->unifiedAddressing = 1;
    return cudaSuccess;
}

}
