/* Emulates AMX on processors that lack it, so that oneDNN's kernels for it can be tested wherever there is
 * AVX512_BF16. Preload it into any program linked with the library, version 2.6.
 *
 *     LD_PRELOAD=build/cpu/tests/amx_emulator.so build/cpu/bin/darknet amp version
 *
 * The library queries the processor with cpuid and xgetbv. Before it first does so (this object is
 * initialized before all others), those instructions are overwritten with an illegal one of the same length.
 * From then on the handler of SIGILL answers like a fourth-generation Xeon, and executes the bf16 AMX
 * instructions that the library's kernels contain. A signal takes about ten microseconds, so only small
 * shapes are feasible. An unknown instruction ends the program. If the processor has AMX, or the library
 * queries in other places, nothing is changed.
 *
 * Encodings and semantics: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2. */
#define _GNU_SOURCE
#include <cpuid.h>
#include <errno.h>
#include <immintrin.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

/* ---- the simulated processor ---- */

enum { BF16_BIT = 1 << 22, TILE_BIT = 1 << 24, INT8_BIT = 1 << 25 }; /* of edx of leaf 7 */
enum { XCR0_TILES = 3 << 17 };

static void answer_cpuid(greg_t *registers)
{
    unsigned leaf = (unsigned)registers[REG_RAX], part = (unsigned)registers[REG_RCX], a, b, c, d;
    __cpuid_count(leaf, part, a, b, c, d);
    switch (leaf) {
    case 0: /* the last leaf, "GenuineIntel" */
        a = 0x1d, b = signature_INTEL_ebx, c = signature_INTEL_ecx, d = signature_INTEL_edx;
        break;
    case 4: { /* 48 KiB and 2 MiB of cache per core, and 30 MiB, with lines of 64 bytes */
        static const unsigned ways[] = { 12, 16, 15 }, sets[] = { 64, 2048, 32768 };
        a = b = c = d = 0;
        if (part > 2) break;
        a = (part ? 3 : 1) | (part + 1) << 5;
        b = (ways[part] - 1) << 22 | 63;
        c = sets[part] - 1;
        break;
    }
    case 7:
        if (!part) d |= BF16_BIT | TILE_BIT | INT8_BIT;
        break;
    case 0xb: /* one thread per core, and eight cores */
        a = d = 0, b = part ? 8 : 1, c = part | (part + 1) << 8;
        break;
    case 0x1d: /* one palette: eight tiles of 16 rows of 64 bytes */
        a = !part, b = part ? 8 << 16 | 64 : 0, c = part ? 16 : 0, d = 0;
        break;
    }
    registers[REG_RAX] = a, registers[REG_RBX] = b, registers[REG_RCX] = c, registers[REG_RDX] = d;
}

static void answer_xgetbv(greg_t *registers)
{
    unsigned a, d;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    registers[REG_RAX] = a | XCR0_TILES, registers[REG_RDX] = d;
}

/* The kernel's permission to use tiles: arch_prctl's ARCH_GET_XCOMP_PERM and ARCH_REQ_XCOMP_PERM. */
static int emulating;

long syscall(long number, ...)
{
    va_list list;
    long v[6], result;
    va_start(list, number);
    for (int i = 0; i < 6; i++) v[i] = va_arg(list, long);
    va_end(list);
    if (emulating && number == SYS_arch_prctl && (v[0] == 0x1022 || v[0] == 0x1023)) {
        if (v[0] == 0x1022) *(unsigned long *)v[1] = XCR0_TILES;
        return 0;
    }
    register long r10 __asm__("r10") = v[3], r8 __asm__("r8") = v[4], r9 __asm__("r9") = v[5];
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(v[0]), "S"(v[1]), "d"(v[2]), "r"(r10),
                     "r"(r8), "r"(r9) : "rcx", "r11", "memory");
    if (result >= 0 || result < -4095) return result;
    errno = (int)-result;
    return -1;
}

/* ---- tiles ---- */

typedef struct tile_config { /* as ldtilecfg reads it */
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;

static _Thread_local tile_config config;
static _Thread_local uint8_t tiles[8][16][64] __attribute__((aligned(64)));

static void configure(const void *from)
{
    memset(tiles, 0, sizeof tiles);
    if (from) memcpy(&config, from, sizeof config);
    if (!from || !config.palette) memset(&config, 0, sizeof config); /* palette 0 releases the tiles */
}

/* 0: no tiles can have these shapes. */
static int is_valid(const tile_config *c)
{
    for (int i = 0; i < 16; i++)
        if (c->rows[i] > (i < 8 ? 16 : 0) || c->row_bytes[i] > (i < 8 ? 64 : 0)) return 0;
    return c->palette <= 1 && !c->start_row;
}

static void load(int tile, const char *from, int64_t stride)
{
    memset(tiles[tile], 0, sizeof tiles[tile]);
    for (int i = 0; i < config.rows[tile]; i++)
        memcpy(tiles[tile][i], from + i * stride, config.row_bytes[tile]);
}

static void store(int tile, char *to, int64_t stride)
{
    for (int i = 0; i < config.rows[tile]; i++)
        memcpy(to + i * stride, tiles[tile][i], config.row_bytes[tile]);
}

/* to (m,n) += a (m,k,2) · b (k,n,2); 0: their shapes do not fit. */
__attribute__((target("avx512f,avx512bw,avx512bf16"))) static int multiply(int to, int a, int b)
{
    int rows = config.rows[to], pairs = config.row_bytes[a] / 4;
    if (config.rows[a] != rows || config.rows[b] != pairs) return 0;
    if (config.row_bytes[b] != config.row_bytes[to]) return 0;
    for (int m = 0; m < rows; m++) {
        __m512 sum = _mm512_load_ps(tiles[to][m]);
        for (int k = 0; k < pairs; k++) {
            int pair;
            memcpy(&pair, &tiles[a][m][4 * k], 4);
            sum = _mm512_dpbf16_ps(sum, (__m512bh)_mm512_set1_epi32(pair),
                                   (__m512bh)_mm512_load_si512(tiles[b][k]));
        }
        _mm512_store_ps(tiles[to][m], sum);
    }
    return 1;
}

/* ---- instructions ---- */

/* An AMX instruction, which always begins with a three-byte VEX prefix: its tile registers, or its memory
 * operand (base register with displacement, and the scaled index register, which is a stride). */
typedef struct instruction {
    int length, prefix, opcode, in_memory, reg, rm, vvvv;
    char *base;
    int64_t stride;
} instruction;

static int64_t general_register(const greg_t *registers, int number)
{
    static const int names[16] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
        REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15 };
    return registers[names[number]];
}

static int displacement(const uint8_t *bytes)
{
    int32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

/* 0: not an AMX instruction. */
static int decode(const greg_t *registers, instruction *out)
{
    const uint8_t *at = (const uint8_t *)registers[REG_RIP];
    if (at[0] != 0xc4 || (at[1] & 0x1f) != 2 || at[2] & 0x84) return 0; /* VEX.128.0F38.W0 */
    int more_index = at[1] & 0x40 ? 0 : 8, more_base = at[1] & 0x20 ? 0 : 8, mod = at[4] >> 6, rm = at[4] & 7;
    *out = (instruction){ .length = 5, .prefix = at[2] & 3, .opcode = at[3], .in_memory = mod != 3,
        .reg = at[4] >> 3 & 7, .rm = rm, .vvvv = ~at[2] >> 3 & 7 };
    if (mod == 3) return 1;
    int base = rm;
    if (rm == 4) { /* a SIB byte follows */
        int sib = at[out->length++], index = (sib >> 3 & 7) | more_index;
        base = sib & 7;
        if (index != 4) out->stride = (int64_t)((uint64_t)general_register(registers, index) << (sib >> 6));
    }
    if (base == 5 && !mod) return 0; /* no base register: no kernel uses that */
    int64_t address = general_register(registers, base | more_base);
    if (mod == 1) address += (int8_t)at[out->length++];
    if (mod == 2) address += displacement(at + out->length), out->length += 4;
    out->base = (char *)address;
    return 1;
}

/* 0: unknown instruction. */
static int carry_out(const instruction *i)
{
    enum { NONE, P66, PF3, PF2 };
    switch (i->opcode << 4 | i->in_memory << 2 | i->prefix) {
    case 0x494 | NONE: configure(i->base + i->stride); return is_valid(&config);    /* ldtilecfg */
    case 0x494 | P66: memcpy(i->base + i->stride, &config, sizeof config); return 1; /* sttilecfg */
    case 0x490 | NONE: configure(NULL); return 1;                                   /* tilerelease */
    case 0x490 | PF2: memset(tiles[i->reg], 0, sizeof tiles[i->reg]); return 1;     /* tilezero */
    case 0x4b4 | P66:                                                               /* tileloaddt1 */
    case 0x4b4 | PF2: load(i->reg, i->base, i->stride); return 1;                   /* tileloadd */
    case 0x4b4 | PF3: store(i->reg, i->base, i->stride); return 1;                  /* tilestored */
    case 0x5c0 | PF3: return multiply(i->reg, i->rm, i->vvvv);                      /* tdpbf16ps */
    }
    return 0;
}

/* ---- overwritten instructions ---- */

static const uint8_t cpuid_code[] = { 0x0f, 0xa2 }, xgetbv_code[] = { 0x0f, 0x01, 0xd0 },
    illegal_code[] = { 0x0f, 0x0b };
static uint8_t *cpuids[64], *xgetbv;
static int cpuid_count;

static int answer(greg_t *registers)
{
    uint8_t *at = (uint8_t *)registers[REG_RIP];
    for (int i = 0; i < cpuid_count; i++)
        if (at == cpuids[i]) {
            answer_cpuid(registers);
            registers[REG_RIP] += sizeof cpuid_code;
            return 1;
        }
    if (at != xgetbv) return 0;
    answer_xgetbv(registers);
    registers[REG_RIP] += sizeof xgetbv_code;
    return 1;
}

static void on_illegal_instruction(int number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    instruction i;
    int done = answer(registers);
    (void)number, (void)info;
    while (decode(registers, &i) && carry_out(&i)) { /* executing directly following AMX instructions saves
                                                        a signal each */
        registers[REG_RIP] += i.length;
        done = 1;
    }
    if (done) return;
    const uint8_t *at = (const uint8_t *)registers[REG_RIP];
    fprintf(stderr, "amx_emulator: not known: %02x %02x %02x %02x %02x\n", at[0], at[1], at[2], at[3], at[4]);
    abort();
}

/* Whether these bytes are really an instruction: Xbyak, with which the library queries, has all cpuid
 * instructions near its only xgetbv, except those for leaf 0x1d, which follow the number. */
static int is_cpuid(const uint8_t *at)
{
    static const uint8_t leaf_1d[] = { 0x1d, 0, 0, 0, 0x31, 0xc9 }; /* ..., eax; xor ecx, ecx */
    return !memcmp(at, cpuid_code, sizeof cpuid_code)
        && ((at > xgetbv - 2048 && at < xgetbv + 2048) || memmem(at - 32, 32, leaf_1d, sizeof leaf_1d));
}

static void overwrite(uint8_t *start, size_t size)
{
    uint8_t *end = start + size, *page = (uint8_t *)((size_t)start & ~(size_t)4095);
    xgetbv = memmem(start, size, xgetbv_code, sizeof xgetbv_code);
    if (!xgetbv || memmem(xgetbv + 1, (size_t)(end - xgetbv - 1), xgetbv_code, sizeof xgetbv_code)) return;
    if (mprotect(page, (size_t)(end - page), PROT_READ | PROT_WRITE | PROT_EXEC)) return;
    for (uint8_t *at = start + 32; at < end - sizeof cpuid_code && cpuid_count < 64; at++)
        if (is_cpuid(at)) cpuids[cpuid_count++] = memcpy(at, illegal_code, sizeof illegal_code);
    memcpy(xgetbv, illegal_code, sizeof illegal_code);
    mprotect(page, (size_t)(end - page), PROT_READ | PROT_EXEC);
    emulating = 1;
}

static int find_library(struct dl_phdr_info *object, size_t size, void *context)
{
    (void)size, (void)context;
    if (!strstr(object->dlpi_name, "libdnnl.so.2")) return 0;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_LOAD && object->dlpi_phdr[i].p_flags & PF_X)
            overwrite((uint8_t *)object->dlpi_addr + object->dlpi_phdr[i].p_vaddr,
                      object->dlpi_phdr[i].p_memsz);
    return 1;
}

/* Others may not handle SIGILL. */
sighandler_t signal(int number, sighandler_t handler)
{
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART }, before;
    if (number == SIGILL && emulating) return SIG_DFL;
    return sigaction(number, &action, &before) ? SIG_ERR : before.sa_handler;
}

__attribute__((constructor)) static void start(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || d & TILE_BIT) return;
    struct sigaction action = { .sa_sigaction = on_illegal_instruction, .sa_flags = SA_SIGINFO | SA_NODEFER };
    if (!sigaction(SIGILL, &action, NULL)) dl_iterate_phdr(find_library, NULL);
}
