/* Races, seen as they happen. The compiler puts a call before each access of a kernel's (-fsanitize=thread;
 * its runtime is not linked, the calls end here), and each is held against the last ones to the same two
 * bytes: if another thread has written there, or this one writes what another has read, something must order
 * the two. An order is made by
 *   - __syncthreads, between the threads of a block;
 *   - __syncwarp, between the lanes that it names (a shuffle or a ballot orders no memory: CUDA C++
 *     Programming Guide, "Warp Shuffle Functions" and "Warp Vote Functions");
 *   - a __threadfence before an atomic and one behind an atomic that reads what that one wrote, between any;
 *   - the end of a launch, for what comes later on its stream; between streams, events and the host's waits.
 * Two atomics need no order. So it does not matter in which order threads ran, nor whether the result was
 * right.
 *
 * A thread's accesses between two barriers are a segment, which has a number; segments are numbered as they
 * run. Each two bytes of device and shared memory have a cell: the segment that wrote them last, and two that
 * have read them since. Of two threads that use one byte each, the last is remembered; of more readers those
 * are kept which are furthest apart: of different blocks, else of different warps. What ran before the
 * present launch is looked up by the operation that it was part of.
 *
 * Accesses are also checked to lie within an allocation, and, as -fsanitize=alignment sees it, to be aligned
 * as their types demand. */
#include "cuda_races.h"

#if AMP_SHIM_RACES

#include "cuda_shim.h"

#include "cuda_doubles.h"

#include <algorithm>
#include <set>
#include <vector>

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

namespace amp_shim {

namespace {

enum { CELL = 2 }; /* bytes */

/* The place in the program, and which of the two bytes, and whether by an atomic. */
const uint32_t PLACE = (1u << 29) - 1, FIRST = 1u << 29, SECOND = 1u << 30, BOTH = FIRST | SECOND,
    ATOMIC = 1u << 31;

struct use { uint32_t segment, where; }; /* 0: nobody's */
struct cell { use written, read[2]; };

struct shadow {
    uintptr_t base;
    size_t bytes;
    cell *cells;
};

shadow arenas[2], shared;
int arena_count;
races_bytes written; /* of shared memory, since races_written_shared was asked */
bool hooked;         /* the program's kernels were compiled with hooks */

cell *map_cells(size_t bytes)
{
    void *at = mmap(nullptr, (bytes / CELL + 1) * sizeof(cell), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return nullptr;
    madvise(at, (bytes / CELL + 1) * sizeof(cell), MADV_HUGEPAGE); /* page faults cost most */
    return (cell *)at;
}

/* ---- who runs ---- */

struct segment { int block, thread; uint32_t epoch, clock; };

/* What a thread knows to be over, of other blocks: all before a barrier of a block, all before a clock of a
 * thread's. */
struct knowledge {
    std::map<int, uint32_t> epochs;
    std::map<std::pair<int, int>, uint32_t> clocks;
    void join(const knowledge &other)
    {
        for (auto &e : other.epochs) epochs[e.first] = std::max(epochs[e.first], e.second);
        for (auto &c : other.clocks) clocks[c.first] = std::max(clocks[c.first], c.second);
    }
};
typedef std::shared_ptr<const knowledge> known;

known joined(const known &a, const known &b)
{
    if (!a || a == b) return b;
    if (!b) return a;
    auto both = std::make_shared<knowledge>(*a);
    both->join(*b);
    return both;
}

struct thread_state {
    uint32_t clock = 1;     /* goes on with each __syncwarp and fence */
    known knows, published; /* at its last fence */
    known read;             /* by atomics since */
};

struct {
    const char *kernel = nullptr, *file; /* NULL: none runs */
    int line, block = -1, thread;
    uint32_t epoch;
    uint32_t first, block_first; /* segments of the launch, of the block */
    std::vector<segment> segments;
    std::vector<thread_state> threads;
    std::vector<uint32_t> lanes; /* 32 for each thread: the clocks of its warp that it knows; or empty */
    std::map<const void *, known> released; /* by atomics there */
    bool fenced, reported;
} now;

uint32_t next = 1, mine; /* mine: 0 until the running thread uses something */

struct past { uint32_t first; int stream; uint64_t number; const std::string *what; };
std::vector<past> operations; /* that used memory, in the order of their segments */
std::set<std::string> names;
const races_operation *operation;
bool listed; /* the running one is in `operations` */
struct { uint32_t from, to; bool ordered; } last_looked_up; /* segments of one operation; none if from = to */

const past *operation_of(uint32_t s)
{
    auto after = std::upper_bound(operations.begin(), operations.end(), s,
                                  [](uint32_t at, const past &o) { return at < o.first; });
    return after == operations.begin() ? nullptr : &*--after;
}

bool past_is_over(uint32_t s)
{
    const past *o = operation_of(s);
    if (!o || !operation) return true; /* forgotten long ago */
    bool ordered = o->stream == operation->stream;
    if (!ordered && operation->before) {
        auto at = operation->before->find(o->stream);
        ordered = at != operation->before->end() && at->second >= o->number;
    }
    last_looked_up = { o->first, o == &operations.back() ? s + 1 : o[1].first, ordered };
    return ordered;
}

bool looked_up_is_over(uint32_t s)
{
    if (s < now.first || !now.kernel) return past_is_over(s);
    const segment &other = now.segments[s - now.first];
    const thread_state &self = now.threads[(size_t)now.thread];
    if (other.block == now.block) {
        if (other.thread == now.thread || other.epoch < now.epoch) return true;
        return other.thread / 32 == now.thread / 32 && !now.lanes.empty()
            && other.clock <= now.lanes[(size_t)now.thread * 32 + (size_t)other.thread % 32];
    }
    if (!self.knows) return false;
    auto epoch = self.knows->epochs.find(other.block);
    if (epoch != self.knows->epochs.end() && other.epoch < epoch->second) return true;
    auto clock = self.knows->clocks.find({ other.block, other.thread });
    return clock != self.knows->clocks.end() && other.clock <= clock->second;
}

inline bool is_over(uint32_t s)
{
    if (s == mine) return true;
    if (s - last_looked_up.from < last_looked_up.to - last_looked_up.from) return last_looked_up.ordered;
    return looked_up_is_over(s);
}

void forget_everything()
{
    for (int i = 0; i < arena_count; i++)
        madvise(arenas[i].cells, (arenas[i].bytes / CELL + 1) * sizeof(cell), MADV_DONTNEED);
    if (shared.cells) std::memset(shared.cells, 0, shared.bytes / CELL * sizeof(cell));
    operations.clear();
    next = 1, listed = false;
    last_looked_up = { 0, 0, false };
}

void begin_segment()
{
    if (!listed && operation) {
        operations.push_back({ next, operation->stream, operation->number,
                               &*names.insert(operation->what).first });
        listed = true;
    }
    mine = next++;
    if (now.kernel)
        now.segments.push_back({ now.block, now.thread, now.epoch, now.threads[(size_t)now.thread].clock });
}

/* ---- what is said ---- */

/* "norm.cu:217", by the program's debugging information: of the frames that were inlined there the first that
 * is not this double's. */
std::string place_of(uint32_t where)
{
    char program[4096], command[4400], line[1024];
    std::string found;
    where &= PLACE;
    if (!where) return "";
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length < 0 ? 0 : length] = '\0';
    std::snprintf(command, sizeof command, "addr2line -i -e '%s' %#lx 2> /dev/null", program,
                  (unsigned long)where - 1);
    FILE *from = popen(command, "r");
    while (from && std::fgets(line, sizeof line, from)) {
        line[std::strcspn(line, " \n")] = '\0';
        const char *name = std::strrchr(line, '/');
        name = name ? name + 1 : line;
        if (found.empty() && *name != '?' && std::strncmp(name, "cuda_shim.h", 11)) found = name;
    }
    if (from) pclose(from);
    if (found.empty()) std::snprintf(line, sizeof line, "%#x of the program", where), found = line;
    return found;
}

std::string object_of(uintptr_t at)
{
    char text[100], *from = nullptr, *to;
    if (at - shared.base < shared.bytes) return "shared memory";
    if (races_find) races_find((const void *)at, &from, &to);
    std::snprintf(text, sizeof text, "byte %zu of an allocation of %zu",
                  from ? (size_t)(at - (uintptr_t)from) : 0, from ? (size_t)(to - from) : 0);
    return text;
}

uint3 place_in(int index, dim3 d)
{
    unsigned i = (unsigned)index;
    return uint3{ i % d.x, i / d.x % d.y, i / d.x / d.y };
}

std::string name_of(int block, int thread, const std::string &where)
{
    char text[600];
    uint3 b = place_in(block, gridDim), t = place_in(thread, blockDim);
    std::snprintf(text, sizeof text, "block (%u,%u,%u), thread (%u,%u,%u) at %s", b.x, b.y, b.z, t.x, t.y,
                  t.z, where.c_str());
    return text;
}

std::string short_place(const char *file, int line)
{
    const char *slash = std::strrchr(file, '/');
    return std::string(slash ? slash + 1 : file) + ":" + std::to_string(line);
}

std::string self_name(const std::string &where)
{
    if (!now.kernel) return operation ? operation->what : "?";
    return std::string("kernel ") + now.kernel + " (" + short_place(now.file, now.line) + "), "
        + name_of(now.block, now.thread, where);
}

void report(uintptr_t at, const use &other, bool other_wrote, bool writes, uint32_t where)
{
    if (now.reported) return;
    now.reported = true;
    std::string self = self_name(place_of(where)), what = object_of(at), before;
    if (other.segment >= now.first && now.kernel) {
        const segment &s = now.segments[other.segment - now.first];
        before = name_of(s.block, s.thread, place_of(other.where)) + ", and no barrier is between";
    } else {
        const past *o = operation_of(other.segment);
        before = o ? *o->what : std::string("?");
        if (other.where & PLACE) before += " at " + place_of(other.where);
        before += " on another stream, and nothing makes the one wait for the other";
    }
    amp_cuda_report("race: %s %s %s, which was %s%s by %s", self.c_str(), writes ? "writes" : "reads",
        what.c_str(), other_wrote ? "written" : "read", other.where & ATOMIC ? " (atomically)" : "",
        before.c_str());
}

/* ---- accesses ---- */

inline bool conflicts(const use &u, uint32_t where)
{
    return u.segment && u.segment != mine && (u.where & where & BOTH) && !(u.where & where & ATOMIC)
        && !is_over(u.segment);
}

int distance(uint32_t a, uint32_t b)
{
    if (a < now.first || b < now.first || !now.kernel) return 3;
    const segment &x = now.segments[a - now.first], &y = now.segments[b - now.first];
    return x.block != y.block ? 2 : x.thread / 32 != y.thread / 32;
}

/* Of two threads that use one byte each of a cell, the last is remembered. */
void note(use *u, uint32_t where)
{
    *u = { mine, u->segment == mine ? where | (u->where & BOTH) : where };
}

void note_reader(cell *c, uint32_t where)
{
    for (use &u : c->read)
        if (!u.segment || is_over(u.segment)) return note(&u, where);
    if (distance(c->read[0].segment, mine) > distance(c->read[0].segment, c->read[1].segment))
        note(&c->read[1], where);
}

inline void use_cell(cell *c, uintptr_t at, bool writes, uint32_t where)
{
    if (!writes && c->read[0].segment == mine && !(where & BOTH & ~c->read[0].where)) return;
    if (conflicts(c->written, where)) report(at, c->written, true, writes, where);
    if (!writes) return note_reader(c, where);
    for (use &u : c->read) {
        if (conflicts(u, where)) report(at, u, false, true, where);
        if (!(u.where & BOTH & ~where)) u = { 0, 0 };
    }
    note(&c->written, where);
}

inline bool same(const cell &a, const cell &b) { return !std::memcmp(&a, &b, sizeof a); }

void use_cells(cell *c, uintptr_t at, size_t bytes, bool writes, uint32_t where)
{
    if (at & 1) use_cell(c++, at, writes, where | SECOND), ++at, --bytes;
    while (bytes > 1) {
        const cell before = *c;
        use_cell(c, at, writes, where | BOTH);
        const cell *first = c; /* cells that were like it become like it */
        do c++, at += CELL, bytes -= CELL;
        while (bytes > 1 && same(*c, before) && (*c = *first, true));
    }
    if (bytes) use_cell(c, at, writes, where | FIRST);
}

/* Ends of the allocation that a unit of memory lies in, as they were found the last time. */
struct { uintptr_t unit; char *from, *to; } looked_up[256];
enum { UNIT = 256 }; /* the runtime's double begins allocations at multiples of it */

void check_ends(uintptr_t at, size_t bytes, bool writes, uint32_t where)
{
    auto &l = looked_up[at / UNIT % 256];
    if (l.unit != at / UNIT) {
        l.unit = at / UNIT, l.from = l.to = nullptr;
        if (races_find) races_find((const void *)at, &l.from, &l.to);
    }
    if (l.from && at >= (uintptr_t)l.from && at + bytes <= (uintptr_t)l.to) return;
    if (now.reported) return;
    now.reported = true;
    amp_cuda_report("%s %s %zu bytes at %p, which are not all within an allocation",
                    self_name(place_of(where)).c_str(), writes ? "writes" : "reads", bytes, (void *)at);
}

inline void access(uintptr_t at, size_t bytes, bool writes, uint32_t where)
{
    for (int i = 0; i < arena_count; i++)
        if (at - arenas[i].base < arenas[i].bytes) {
            if (!mine) begin_segment();
            if (now.kernel) check_ends(at, bytes, writes, where);
            use_cells(&arenas[i].cells[(at - arenas[i].base) / CELL], at, bytes, writes, where);
            return;
        }
    if (at - shared.base < shared.bytes && now.kernel) {
        char *p = (char *)at;
        if (writes) written = { std::min(written.from, p), std::max(written.to, p + bytes) };
        if (!mine) begin_segment();
        cell *c = &shared.cells[(at - shared.base) / CELL];
        size_t count = ((at & 1) + bytes + 1) / CELL;
        for (size_t i = 0; i < count; i++) { /* of another block: that memory was its own */
            if (c[i].written.segment < now.block_first) c[i].written = { 0, 0 };
            for (use &u : c[i].read)
                if (u.segment < now.block_first) u = { 0, 0 };
        }
        use_cells(c, at, bytes, writes, where);
    }
}

/* Where the program lies: its debugging information counts from there. */
uintptr_t find_program()
{
    uintptr_t base = 0;
    dl_iterate_phdr([](dl_phdr_info *info, size_t, void *out) {
        *(uintptr_t *)out = info->dlpi_addr;
        return 1; /* the first is the program */
    }, &base);
    return base;
}

inline uint32_t place(void *pc)
{
    static const uintptr_t program = find_program();
    return (uint32_t)((uintptr_t)pc - program);
}

inline bool is_watched(uintptr_t at)
{
    return (arena_count > 0 && at - arenas[0].base < arenas[0].bytes) ||
        (arena_count > 1 && at - arenas[1].base < arenas[1].bytes) || at - shared.base < shared.bytes;
}

void of_kernel(const void *p, size_t bytes, bool writes, void *pc)
{
    if (is_watched((uintptr_t)p)) access((uintptr_t)p, bytes, writes, place(pc)); /* not the thread's own */
}

}

/* ---- the runtime's double ---- */

void (*races_find)(const void *, char **, char **);

bool races_watch(char *base, size_t bytes)
{
    cell *cells = map_cells(bytes);
    if (!cells || arena_count == 2) return false;
    arenas[arena_count++] = { (uintptr_t)base, bytes, cells };
    return true;
}

void races_watch_shared(char *base, size_t bytes)
{
    shared = { (uintptr_t)base, bytes, map_cells(bytes) };
    written = { base, base + bytes };
    if (!shared.cells) std::perror("cells of shared memory"), std::abort();
}

races_bytes races_written_shared()
{
    races_bytes since = written;
    written = { (char *)shared.base + shared.bytes, (char *)shared.base };
    return since;
}

void races_allocated(char *at, size_t bytes)
{
    std::memset(looked_up, 0, sizeof looked_up);
    for (int i = 0; i < arena_count; i++) {
        size_t first = ((uintptr_t)at - arenas[i].base) / CELL, count = bytes / CELL + 1;
        if ((uintptr_t)at - arenas[i].base >= arenas[i].bytes) continue;
        char *from = (char *)&arenas[i].cells[first], *to = (char *)&arenas[i].cells[first + count];
        char *page = (char *)(((uintptr_t)from + 4095) & ~(uintptr_t)4095),
            *last = (char *)((uintptr_t)to & ~(uintptr_t)4095);
        if (last - page < 64 << 10) {
            std::memset(from, 0, (size_t)(to - from));
            continue;
        }
        std::memset(from, 0, (size_t)(page - from));
        madvise(page, (size_t)(last - page), MADV_DONTNEED);
        std::memset(last, 0, (size_t)(to - last));
    }
}

void races_freed() { std::memset(looked_up, 0, sizeof looked_up); }

const races_operation *races_run(const races_operation *o)
{
    const races_operation *before = operation;
    if (next > 0xf0000000u) forget_everything();
    if (operations.size() > 1 << 20) operations.erase(operations.begin(), operations.begin() + (1 << 19));
    operation = o;
    mine = 0, listed = false;
    last_looked_up = { 0, 0, false };
    now.kernel = nullptr, now.reported = false;
    return before;
}

void races_use(const void *at, size_t bytes, bool writes)
{
    if (operation) access((uintptr_t)at, bytes, writes, 0);
}

/* ---- the kernels' double ---- */

void races_grid(const char *kernel, const char *file, int line)
{
    now.kernel = kernel, now.file = file, now.line = line;
    mine = 0, now.reported = false, now.fenced = false;
    now.block = -1;
    now.first = next;
    now.segments.clear();
    now.released.clear();
    if (!hooked) written = { (char *)shared.base, (char *)shared.base + shared.bytes }; /* nobody knows */
}

void races_block(size_t threads)
{
    now.block = (int)((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x);
    now.block_first = next;
    now.epoch = 1;
    now.lanes.clear();
    now.threads.assign(threads, thread_state());
}

void races_thread(int thread)
{
    now.thread = thread;
    mine = 0;
}

void races_block_barrier()
{
    ++now.epoch;
    if (!now.fenced) return;
    known all;
    for (auto &t : now.threads) all = joined(all, t.knows);
    for (auto &t : now.threads) t.knows = all;
}

bool races_seen() { return hooked; }

void races_warp_barrier(int first, unsigned lanes)
{
    uint32_t clocks[32] = {};
    known all;
    now.lanes.resize(now.threads.size() * 32);
    for (int i = 0; i < 32; i++) {
        if (!(lanes >> i & 1)) continue;
        uint32_t *knows = &now.lanes[(size_t)(first + i) * 32];
        knows[i] = now.threads[(size_t)(first + i)].clock++;
        for (int k = 0; k < 32; k++) clocks[k] = std::max(clocks[k], knows[k]);
        all = joined(all, now.threads[(size_t)(first + i)].knows);
    }
    for (int i = 0; i < 32; i++) {
        if (!(lanes >> i & 1)) continue;
        std::copy(clocks, clocks + 32, &now.lanes[(size_t)(first + i) * 32]);
        now.threads[(size_t)(first + i)].knows = all;
    }
}

/* What this thread knows to be over is told by its next atomics; what its last atomics were told it knows. */
void races_fence()
{
    if (!now.kernel) return;
    thread_state &self = now.threads[(size_t)now.thread];
    self.knows = joined(self.knows, self.read);
    auto all = self.knows ? std::make_shared<knowledge>(*self.knows) : std::make_shared<knowledge>();
    int warp = now.thread / 32 * 32;
    all->epochs[now.block] = now.epoch;
    for (int i = 0; !now.lanes.empty() && i < 32; i++)
        all->clocks[{ now.block, warp + i }] = now.lanes[(size_t)now.thread * 32 + (size_t)i];
    all->clocks[{ now.block, now.thread }] = self.clock++;
    self.published = all;
    now.fenced = true;
    mine = 0;
}

void races_atomic(const void *at, size_t bytes)
{
    if (!now.kernel) return;
    access((uintptr_t)at, bytes, true, place(__builtin_return_address(0)) | ATOMIC);
    if (!now.fenced) return;
    thread_state &self = now.threads[(size_t)now.thread];
    known &released = now.released[at];
    self.read = joined(self.read, released);
    released = joined(released, self.published);
}

void *races_copy(void *to, const void *from, size_t bytes)
{
    uint32_t where = place(__builtin_return_address(0));
    access((uintptr_t)from, bytes, false, where);
    access((uintptr_t)to, bytes, true, where);
    return std::memmove(to, from, bytes);
}

}

/* ---- what the compiler calls ---- */

extern "C" {

using namespace amp_shim;

#define HOOKS(bytes) \
    void __tsan_read##bytes(void *p) { of_kernel(p, bytes, false, __builtin_return_address(0)); } \
    void __tsan_write##bytes(void *p) { of_kernel(p, bytes, true, __builtin_return_address(0)); } \
    void __tsan_unaligned_read##bytes(void *p) { of_kernel(p, bytes, false, __builtin_return_address(0)); } \
    void __tsan_unaligned_write##bytes(void *p) { of_kernel(p, bytes, true, __builtin_return_address(0)); }
HOOKS(1) HOOKS(2) HOOKS(4) HOOKS(8) HOOKS(16)
void __tsan_read_range(void *p, long n) { of_kernel(p, (size_t)n, false, __builtin_return_address(0)); }
void __tsan_write_range(void *p, long n) { of_kernel(p, (size_t)n, true, __builtin_return_address(0)); }
void __tsan_init() { hooked = true; }

/* Of -fsanitize=alignment: what is at p does not lie as its type demands. */
void __ubsan_handle_type_mismatch_v1(void *about, void *p)
{
    struct data { const char *file; uint32_t line, column; void *type; unsigned char log_alignment; };
    const data *d = (const data *)about;
    if (!now.kernel || now.reported) return;
    now.reported = true;
    amp_cuda_report("%s: %p is no multiple of %u, which what is moved there must be at",
                    self_name(short_place(d->file, (int)d->line)).c_str(), p, 1u << d->log_alignment);
}

}

#endif
