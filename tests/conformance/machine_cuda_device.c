/* The CUDA backend on a GPU: memory is the program's, page-locked, which the GPU reads and writes where it
 * lies, so that the test may do so between operations. A plain allocation: no page of it moves.
 *
 * AMP_TEST_GUARD=1 puts a guard behind each piece of memory and looks at it on release, for where
 * compute-sanitizer cannot run; without it each is of exactly its size, for compute-sanitizer. */
#include "machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/cuda/state.h"

enum { GUARD = 256, PATTERN = 0xa5 };

typedef struct piece {
    struct piece *next;
    unsigned char *memory;
    size_t bytes;
} piece;

static piece *pieces;
static int overrun; /* pieces of memory written behind */

static size_t guard(void) { return getenv("AMP_TEST_GUARD") ? GUARD : 0; }

static void at_the_end(void)
{
    if (!overrun) return;
    fprintf(stderr, "%d pieces of memory were written behind\n", overrun);
    _exit(1);
}

static void *allocate(size_t bytes)
{
    void *memory = NULL;
    piece *p = malloc(sizeof *p);
    if (!p) return NULL;
    cudaError_t status = cudaHostAlloc(&memory, (bytes ? bytes : 1) + guard(), cudaHostAllocDefault);
    if (status != cudaSuccess) {
        fprintf(stderr, "cudaHostAlloc of %zu bytes: %s\n", bytes, cudaGetErrorString(status));
        free(p);
        return NULL;
    }
    *p = (piece){ pieces, memory, bytes };
    pieces = p;
    memset(p->memory + bytes, PATTERN, guard());
    return memory;
}

static void release(void *memory)
{
    if (!memory) return;
    cudaDeviceSynchronize();
    for (piece **p = &pieces; *p; p = &(*p)->next) {
        piece *found = *p;
        if (found->memory != memory) continue;
        for (size_t i = 0; i < guard(); i++) {
            if (found->memory[found->bytes + i] == PATTERN) continue;
            fprintf(stderr, "byte %zu behind %zu bytes was written\n", i, found->bytes);
            ++overrun;
            break;
        }
        *p = found->next;
        free(found);
        break;
    }
    cudaFreeHost(memory);
}

static const char *const only[] = { "device", NULL };

static int use(const char *variant)
{
    (void)variant;
    return 1;
}

static int multiprocessors; /* of the device */

static amp_backend *create(amp_error *error)
{
    static int registered;
    if (!registered++) atexit(at_the_end);
    amp_backend *backend = amp_cuda_backend_create(error);
    if (backend) multiprocessors = amp_cuda_of(backend)->multiprocessors;
    return backend;
}

static void set_processors(amp_backend *backend, int count)
{
    amp_cuda_of(backend)->multiprocessors = count ? count : multiprocessors;
}

static void begin(void) {}

/* Also what an operation left behind without a word: a launch that failed, an address that is none. */
static const char *finish(amp_backend *backend)
{
    (void)backend;
    cudaError_t status = cudaDeviceSynchronize(), left = cudaGetLastError();
    if (status == cudaSuccess) status = left;
    return status == cudaSuccess ? NULL : cudaGetErrorString(status);
}

conformance_machine machine = { "cuda", only, use, create, allocate, release, NULL, NULL,
    begin, finish, set_processors, NULL, 0, 1, 1, 0 };
