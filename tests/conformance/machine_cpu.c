/* The CPU backend: memory is the program's, work is done when a call returns, every
 * instruction set has its turn. */
#include "machine.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/onednn_primitive.h"
#include "backend/cpu/rows.h"

static const char *const instruction_sets[] = { "sse2", "neon", "avx2", "avx512", NULL };

static int use_instruction_set(const char *name)
{
    if (!name) return unsetenv("AMP_CPU_ISA") == 0;
    setenv("AMP_CPU_ISA", name, 1);
    return !strcmp(amp_cpu_rows_best()->name, name);
}

static void *allocate(size_t bytes) { return malloc(bytes ? bytes : 1); }

static void *allocate_by_backend(amp_backend *backend, size_t bytes)
{
    void *memory = NULL;
    amp_error error;
    return backend->allocate(backend, bytes, &memory, &error) == AMP_OK ? memory : NULL;
}

static void nothing(void) {}

static const char *done(amp_backend *backend)
{
    (void)backend;
    return NULL;
}

static void release_by_backend(amp_backend *backend, void *memory) { backend->release(backend, memory); }

static void set_processors(amp_backend *backend, int count)
{
    static int at_the_start;
    (void)backend;
    if (!at_the_start) at_the_start = omp_get_max_threads();
    omp_set_num_threads(count ? count : at_the_start);
}

static int compute_halves(amp_backend *backend)
{
    const char **why = amp_cpu_library(backend)->why_stored;
    int stored = why[AMP_FP16] || why[AMP_BF16];
    why[AMP_FP16] = why[AMP_BF16] = NULL;
    return stored;
}

conformance_machine machine = { "cpu", instruction_sets, use_instruction_set, amp_cpu_backend_create,
    allocate, free, allocate_by_backend, release_by_backend, nothing, done, set_processors, compute_halves,
    0, 0, 0, 0 };
