/* The CUDA backend on the doubles of tests/doubles: threads and blocks have their turns in several orders,
 * and the test may not touch memory between an operation's start and the synchronisation after it.
 *
 * Linked with the whole backend it is that backend. With some of its kernels alone it is
 * a backend of these. */
#include "machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/cuda/kernels.h"
#include "doubles/cuda_doubles.h"

amp_backend *amp_cuda_backend_create(amp_error *error) __attribute__((weak));

/* ----------------------------------------------------------------------------------- a backend of kernels */

/* Each operation that is not linked is NULL here, and so in the table. */
#define PRAGMA(text) _Pragma(#text)
#define WEAK(operation) PRAGMA(weak amp_cuda_##operation)
AMP_BACKEND_KERNELS(WEAK)
#pragma weak amp_cuda_tables_destroy

__attribute__((weak)) amp_status amp_cuda_fail(cudaError_t status, const char *call, const char *file,
                                               int line, amp_error *error)
{
    cudaGetLastError(); /* or the next launch would be blamed for this */
    return amp_fail(error, status == cudaErrorMemoryAllocation ? AMP_NO_MEMORY : AMP_BACKEND_FAILED,
                    "%s: %s at %s:%d", call, cudaGetErrorString(status), file, line);
}

__attribute__((weak)) amp_status amp_cuda_scratch(amp_backend *backend, size_t bytes, void **out,
                                                  amp_error *error)
{
    amp_cuda_backend *b = amp_cuda_of(backend);
    if (bytes > b->scratch_bytes) {
        AMP_CUDA_TRY(cudaStreamSynchronize(b->stream));
        AMP_CUDA_TRY(cudaFree(b->scratch));
        b->scratch = NULL, b->scratch_bytes = 0;
        AMP_CUDA_TRY(cudaMalloc(&b->scratch, bytes));
        b->scratch_bytes = bytes;
    }
    *out = b->scratch;
    return AMP_OK;
}

__attribute__((weak)) amp_status amp_cuda_malloc(amp_backend *backend, size_t bytes, const char *what,
                                                 void **out, amp_error *error)
{
    (void)backend, (void)what;
    AMP_CUDA_TRY(cudaMalloc(out, bytes));
    return AMP_OK;
}

__attribute__((weak)) void amp_cuda_release(amp_backend *backend, void *memory)
{
    if (!memory) return;
    cudaStreamSynchronize(amp_cuda_of(backend)->stream);
    cudaFree(memory);
}

static void destroy(amp_backend *backend)
{
    amp_cuda_backend *b = amp_cuda_of(backend);
    if (amp_cuda_tables_destroy) amp_cuda_tables_destroy(b);
    cudaFree(b->scratch);
    cudaStreamDestroy(b->stream);
    free(b);
}

static amp_backend *create_of_kernels(amp_error *error)
{
    amp_cuda_backend *b = calloc(1, sizeof *b);
    if (!b || cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking) != cudaSuccess) {
        amp_fail(error, AMP_NO_MEMORY, "no memory for a backend");
        free(b);
        return NULL;
    }
    b->multiprocessors = 4, b->major = 9;
#define ENTRY(operation) .operation = amp_cuda_##operation,
    b->base = (amp_backend){ .name = "cuda", .destroy = destroy, AMP_BACKEND_KERNELS(ENTRY) };
    return &b->base;
}

/* -------------------------------------------------------------------------------------------- the machine */

static int unreported; /* faults that no operation was blamed for */

static void settle(const char *when)
{
    if (!amp_cuda_faults()) return;
    fprintf(stderr, "%s: %s\n", when, amp_cuda_fault());
    ++unreported;
    amp_cuda_forget_faults();
}

static void at_the_end(void)
{
    settle("at the end");
    if (!unreported) return;
    fprintf(stderr, "%d faults outside of operations\n", unreported);
    _exit(1);
}

enum { MOST_ORDERS = 64 };
static const char *orders[2 + MOST_ORDERS + 1] = { "forward", "backward", "random1" };

/* AMP_CUDA_ORDERS=N: random1 to randomN. */
__attribute__((constructor)) static void choose_orders(void)
{
    static char names[MOST_ORDERS][16];
    const char *text = getenv("AMP_CUDA_ORDERS");
    long count = text ? strtol(text, NULL, 10) : 1;
    for (int i = 0; i < count && i < MOST_ORDERS; i++) {
        snprintf(names[i], sizeof names[i], "random%d", i + 1);
        orders[2 + i] = names[i];
    }
}

/* Whether all tests are to run in it: where races are seen, they are in any order (doubles/cuda_races.cc),
 * and random ones will do. */
static int use_order(const char *name)
{
    amp_shim_order(name ? name : "forward");
    return !amp_cuda_sees_races() || (name && strncmp(name, "random", 6) == 0);
}

static amp_backend *create(amp_error *error)
{
    static int registered;
    if (!registered++) atexit(at_the_end);
    machine.partial = !amp_cuda_backend_create;
    return amp_cuda_backend_create ? amp_cuda_backend_create(error) : create_of_kernels(error);
}

static void *allocate(size_t bytes)
{
    void *memory;
    settle("between operations");
    return cudaMallocManaged(&memory, bytes ? bytes : 1, cudaMemAttachGlobal) == cudaSuccess ? memory : NULL;
}

static void release(void *memory)
{
    if (memory) cudaFree(memory);
}

static void begin(void)
{
    settle("between operations");
    amp_cuda_host_access(0);
}

static const char *finish(amp_backend *backend)
{
    static char text[1000];
    amp_cuda_host_access(1);
    cudaStreamSynchronize(amp_cuda_of(backend)->stream);
    if (!amp_cuda_faults()) return NULL;
    snprintf(text, sizeof text, "%s", amp_cuda_fault());
    amp_cuda_forget_faults();
    return text;
}

static void set_processors(amp_backend *backend, int count)
{
    amp_cuda_of(backend)->multiprocessors = count ? count : 4;
}

conformance_machine machine = { "cuda", orders, use_order, create, allocate, release, NULL, NULL,
    begin, finish, set_processors, NULL, 1, 1, 1, 1 };
