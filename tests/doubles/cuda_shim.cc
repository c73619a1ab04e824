/* Runs a grid: one block after the other, each of its threads as a fibre. See cuda_shim.h.
 *
 * A fibre is a stack. It runs one thread of the block after the other to their ends; only when a thread has
 * to wait at a barrier does it stay with that thread, and another fibre goes on with the rest. So a kernel
 * without barriers costs no switch at all. When no thread can go on, the barriers that are complete open: a
 * warp's first, the block's last. */
#include "cuda_shim.h"

#include "cuda_doubles.h"

#include <memory>

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace amp_shim {

/* ------------------------------------------------------------------------------------------------ fibres */

struct fibre {
    char *stack;
    size_t number; /* of those that were made before it */
    int thread; /* of the block; -1: free */
    void *asan_stack;
#if defined(__x86_64__)
    void *sp;
#else
    ucontext_t context;
#endif
};

static const size_t STACK = 256 << 10;

static fibre home; /* the stack that called run_grid */

static void fibre_main();

#if defined(__x86_64__)
extern "C" void amp_shim_switch(void **save, void *to);
asm(R"(
    .text
    .type amp_shim_switch, @function
amp_shim_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size amp_shim_switch, .-amp_shim_switch
)");

static void prepare(fibre *f)
{
    /* Stacks begin at page borders: without an offset of their own their tops would share the same few sets
     * of the caches, and each switch would wait for memory. */
    char *end = f->stack + STACK - f->number % 64 * 832;
    /* So that fibre_main finds its stack aligned as a call leaves it. */
    void **top = (void **)end - 1;
    *top = nullptr; /* where a return address would be: fibre_main never returns */
    *--top = (void *)fibre_main;
    for (int i = 0; i < 6; i++) *--top = nullptr;
    f->sp = top;
}

static void jump(fibre *from, fibre *to) { amp_shim_switch(&from->sp, to->sp); }
#else
static void prepare(fibre *f)
{
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = STACK;
    f->context.uc_link = nullptr;
    makecontext(&f->context, fibre_main, 0);
}

static void jump(fibre *from, fibre *to) { swapcontext(&from->context, &to->context); }
#endif

#ifdef __SANITIZE_ADDRESS__
static const void *home_bottom;
static size_t home_size;

static void entered(fibre *self)
{
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(self->asan_stack, &bottom, &size);
    if (self != &home && !home_bottom) home_bottom = bottom, home_size = size;
}

static void change(fibre *from, fibre *to)
{
    if (from == &home) home_bottom = nullptr;
    __sanitizer_start_switch_fiber(&from->asan_stack, to == &home ? home_bottom : to->stack,
                                   to == &home ? home_size : STACK);
    jump(from, to);
    entered(from);
}
#else
static void entered(fibre *) {}
static void change(fibre *from, fibre *to) { jump(from, to); }
#endif

/* -------------------------------------------------------------------------------------- the running block */

enum class state : unsigned char { fresh, ready, waiting, ended };

struct thread {
    state now;
    sync how;
    unsigned mask, value, result;
    int source, line;
    const char *file;
    fibre *on;
};

static struct {
    const launch *what;
    std::vector<thread> threads;
    std::vector<int> order, blocks; /* of the threads, of the grid's blocks */
    size_t started;
    int running;
    fibre *current;
    std::vector<std::unique_ptr<fibre>> pool;
    std::vector<fibre *> idle;
    std::vector<int> warp_waits; /* lanes that wait for their warp */
    int block_waits, ended;
    bool failed, active, abandoned;
} block;

static struct { enum { forward, backward, random } how; uint64_t state; bool set; } order;

static uint32_t random_below(uint32_t n)
{
    order.state = order.state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((order.state >> 33) % n);
}

static void shuffle(std::vector<int> &list)
{
    for (size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[random_below((uint32_t)i)]);
}

static void arrange(std::vector<int> &list, size_t n)
{
    if (list.size() == n && order.how != order.random) return; /* still in order */
    list.resize(n);
    for (size_t i = 0; i < n; i++) list[i] = (int)(order.how == order.backward ? n - 1 - i : i);
    if (order.how == order.random) shuffle(list);
}

static uint3 place(unsigned i, dim3 d)
{
    if (i < d.x) return uint3{ i, 0, 0 }; /* divisions would be much of a thread's time */
    return uint3{ i % d.x, i / d.x % d.y, i / d.x / d.y };
}

static void become(int t)
{
    block.running = t;
    threadIdx = place((unsigned)t, blockDim);
    races_thread(t);
}

static void fibre_main()
{
    fibre *self = block.current;
    entered(self);
    for (;;) {
        while (block.started < block.order.size()) {
            int t = block.order[block.started++];
            self->thread = t;
            block.threads[t].now = state::ready;
            become(t);
            block.what->body();
            block.threads[self->thread].now = state::ended;
            ++block.ended;
        }
        self->thread = -1;
        block.idle.push_back(self);
        change(self, &home);
    }
}

static void resume(fibre *f)
{
    block.current = f;
    change(&home, f);
}

int lane() { return block.running & 31; }
unsigned taken() { return block.threads[block.running].result; }

void wait(sync how, unsigned mask, unsigned value, int source, const char *file, int line)
{
    if (!block.active) {
        std::fprintf(stderr, "%s:%d: a barrier outside of a kernel\n", file, line);
        std::abort();
    }
    thread &t = block.threads[block.running];
    fibre *self = block.current;
    t.now = state::waiting;
    t.how = how, t.mask = mask, t.value = value, t.file = file, t.line = line, t.on = self;
    t.source = source < 0 ? block.running : (block.running & ~31) + source;
    if (how == sync::block) ++block.block_waits;
    else ++block.warp_waits[block.running / 32];
    change(self, &home);
}

/* ------------------------------------------------------------------------------------------ barriers open */

static const char *short_name(const char *file)
{
    const char *slash = std::strrchr(file, '/');
    return slash ? slash + 1 : file;
}

static void fault(const char *what, int t)
{
    uint3 i = place((unsigned)t, blockDim);
    const thread &w = block.threads[t];
    amp_cuda_report("kernel %s (%s:%d), block (%u,%u,%u), thread (%u,%u,%u) at %s:%d: %s", block.what->kernel,
        short_name(block.what->file), block.what->line, blockIdx.x, blockIdx.y, blockIdx.z, i.x, i.y, i.z,
        w.file ? short_name(w.file) : "?", w.line, what);
    block.failed = true;
}

/* If all live lanes that thread t's barrier names are there, open it. */
static bool open_group(int t)
{
    const thread &first = block.threads[t];
    int base = t & ~31, count = (int)block.threads.size();
    if (!(first.mask >> (t - base) & 1)) return fault("its own lane is not in the mask", t), false;
    for (int i = 0; i < 32; i++) {
        if (!(first.mask >> i & 1)) continue;
        if (base + i >= count) return fault("the mask names a lane that the block does not have", t), false;
        const thread &w = block.threads[base + i];
        if (w.now == state::ended) continue;
        if (w.now != state::waiting || w.how != first.how || w.mask != first.mask || w.line != first.line)
            return false;
    }
    for (int i = 0; i < 32; i++) {
        if (!(first.mask >> i & 1) || block.threads[base + i].now != state::waiting) continue;
        thread &w = block.threads[base + i];
        if (w.how != sync::exchange) continue;
        if (w.source >= count || block.threads[w.source].now != state::waiting
            || !(first.mask >> (w.source & 31) & 1))
            return fault("shuffles from a lane that does not take part", base + i), false;
        w.result = block.threads[w.source].value;
    }
    unsigned lanes = 0;
    for (int i = 0; i < 32; i++) {
        if (!(first.mask >> i & 1) || block.threads[base + i].now != state::waiting) continue;
        block.threads[base + i].now = state::ready;
        --block.warp_waits[base / 32];
        lanes |= 1u << i;
    }
    if (first.how == sync::warp) races_warp_barrier(base, lanes);
    return true;
}

static bool open_warp(int warp)
{
    int end = std::min<int>((warp + 1) * 32, (int)block.threads.size());
    bool opened = false;
    for (int t = warp * 32; t < end && !block.failed; t++)
        if (block.threads[t].now == state::waiting && block.threads[t].how != sync::block)
            opened |= open_group(t);
    return opened;
}

/* Nobody can go on: open a warp's barrier, or else the block's. False when that leads nowhere. */
static bool open_barriers()
{
    int warps = (int)block.warp_waits.size(),
        from = order.how == order.random ? (int)random_below((uint32_t)warps) : 0;
    for (int i = 0; i < warps; i++) {
        int warp = order.how == order.backward ? warps - 1 - i : (from + i) % warps;
        if (block.warp_waits[warp] && open_warp(warp)) return true;
        if (block.failed) return false;
    }
    int first = -1;
    for (size_t t = 0; t < block.threads.size(); t++) {
        thread &w = block.threads[t];
        if (w.now != state::waiting) continue;
        if (w.how != sync::block) {
            fault(w.how == sync::warp ? "__syncwarp waits for lanes that do not come" :
                  "a shuffle waits for lanes that do not come", (int)t);
            return false;
        }
        if (first < 0) first = (int)t;
        else if (w.line != block.threads[first].line ||
            (w.file != block.threads[first].file && std::strcmp(w.file, block.threads[first].file))) {
            fault("divergent barrier: other threads of the block wait at another one", (int)t);
            return false;
        }
    }
    if (block.ended && first >= 0) {
        fault("divergent barrier: other threads of the block have ended", first);
        return false;
    }
    for (auto &w : block.threads)
        if (w.now == state::waiting) w.now = state::ready;
    block.block_waits = 0;
    races_block_barrier();
    if (order.how == order.random) shuffle(block.order);
    return true;
}

/* ------------------------------------------------------------------------------------------ shared memory */

struct range { char *at; size_t bytes; };

/* The sections of shared memory, as this program's file names them. */
static std::vector<range> find_shared()
{
    std::vector<range> found;
    ElfW(Addr) base = 0;
    dl_iterate_phdr([](dl_phdr_info *info, size_t, void *out) {
        *(ElfW(Addr) *)out = info->dlpi_addr;
        return 1; /* the first is the program */
    }, &base);
    int fd = open("/proc/self/exe", O_RDONLY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st)) std::perror("/proc/self/exe"), std::abort();
    char *file = (char *)mmap(nullptr, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (file == MAP_FAILED) std::perror("/proc/self/exe"), std::abort();
    const ElfW(Ehdr) *elf = (const ElfW(Ehdr) *)file;
    const ElfW(Shdr) *sections = (const ElfW(Shdr) *)(file + elf->e_shoff);
    const char *names = file + sections[elf->e_shstrndx].sh_offset;
    for (int i = 0; i < elf->e_shnum; i++)
        if (!std::strncmp(names + sections[i].sh_name, "amp_shared_", 11))
            found.push_back({ (char *)base + sections[i].sh_addr, sections[i].sh_size });
    munmap(file, (size_t)st.st_size);
    char *from = nullptr, *to = nullptr;
    for (const range &r : found) {
        from = from && from < r.at ? from : r.at;
        to = std::max(to, r.at + r.bytes);
    }
    if (from) races_watch_shared(from, (size_t)(to - from));
    return found;
}

/* What may have been written since the last time; where kernels have no hooks, all, once a launch. */
__attribute__((no_sanitize("address"))) static void poison_shared()
{
    static const std::vector<range> shared = find_shared();
    [[maybe_unused]] const races_bytes written = races_written_shared();
    for (const range &r : shared) { /* NaN in every dtype, -1 as an integer */
#ifdef __SANITIZE_ADDRESS__
        volatile char *at = r.at; /* memset would be told of the gaps between arrays */
        for (size_t i = 0; i < r.bytes; i++) at[i] = (char)0xff;
#else
        char *from = std::max(r.at, written.from), *to = std::min(r.at + r.bytes, written.to);
        if (from < to) std::memset(from, 0xff, (size_t)(to - from));
#endif
    }
}

/* ------------------------------------------------------------------------------------------------ blocks */

static fibre *free_fibre()
{
    if (!block.idle.empty()) {
        fibre *f = block.idle.back();
        block.idle.pop_back();
        return f;
    }
    block.pool.emplace_back(new fibre());
    fibre *f = block.pool.back().get();
    f->stack = (char *)mmap(nullptr, STACK, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (f->stack == MAP_FAILED) std::perror("a fibre's stack"), std::abort();
    f->number = block.pool.size();
    f->thread = -1;
    prepare(f);
    return f;
}

/* After a fault fibres hang in the middle of a kernel: they start anew. */
static void reset_fibres()
{
    block.idle.clear();
    for (auto &owned : block.pool) {
        fibre *f = owned.get();
#ifdef __SANITIZE_ADDRESS__
        __asan_unpoison_memory_region(f->stack, STACK);
#endif
        f->asan_stack = nullptr;
        f->thread = -1;
        prepare(f);
        block.idle.push_back(f);
    }
}

static void run_block(unsigned index)
{
    blockIdx = place(index, gridDim);
    size_t n = (size_t)blockDim.x * blockDim.y * blockDim.z;
    block.threads.assign(n, thread());
    block.warp_waits.assign((n + 31) / 32, 0);
    arrange(block.order, n);
    block.started = 0, block.block_waits = block.ended = 0;
    races_block(n);
    poison_shared();
    for (;;) {
        while (block.started < n) resume(free_fibre());
        for (size_t i = 0; i < n; i++) {
            thread &t = block.threads[block.order[i]];
            if (t.now != state::ready) continue;
            become(block.order[i]);
            resume(t.on);
        }
        if (block.ended == (int)n || !open_barriers()) break;
    }
}

/* A GPU keeps subnormals, whatever the program around has set. */
struct float_mode {
#if defined(__x86_64__)
    unsigned before = __builtin_ia32_stmxcsr();
    float_mode() { __builtin_ia32_ldmxcsr(0x1f80); }
    ~float_mode() { __builtin_ia32_ldmxcsr(before); }
#else
    float_mode() {}
#endif
};

bool run_grid(const launch &l)
{
    if (!order.set) amp_shim_order(std::getenv("AMP_CUDA_ORDER") ? std::getenv("AMP_CUDA_ORDER") : "forward");
    if (block.active) std::fprintf(stderr, "a kernel that launches a kernel\n"), std::abort();
    if (block.abandoned) reset_fibres();
    block.abandoned = false;
    float_mode mode;
    gridDim = l.grid, blockDim = l.block;
    block.what = &l;
    block.failed = false, block.active = true;
    races_grid(l.kernel, l.file, l.line);
    arrange(block.blocks, (size_t)l.grid.x * l.grid.y * l.grid.z);
    for (size_t i = 0; i < block.blocks.size() && !block.failed; i++) run_block((unsigned)block.blocks[i]);
    if (block.failed) reset_fibres();
    block.active = false;
    return !block.failed;
}

}

void amp_shim_order(const char *text)
{
    using namespace amp_shim;
    order.set = true;
    order.how = !std::strcmp(text, "backward") ? order.backward
        : !std::strncmp(text, "random", 6) ? order.random : order.forward;
    order.state = order.how == order.random ? std::strtoull(text + 6, nullptr, 10) * 0x9e3779b97f4a7c15u + 1
        : 0;
    block.order.clear();
    block.blocks.clear();
}

int amp_cuda_sees_races(void) { return amp_shim::races_seen(); }

void amp_shim_abandon(void)
{
    amp_shim::block.abandoned |= amp_shim::block.active;
    amp_shim::block.active = false;
}
