/* The conformance tests know a backend by its vtable only; this is what they must know of the machine
 * beneath it: how to make a backend, where memory comes from that both the backend and the test may touch,
 * and when the work is done.
 *
 * One machine_*.c is linked into each test program: machine_cpu.c, machine_cuda_double.c,
 * machine_cuda_device.c (on a GPU). */
#ifndef CONFORMANCE_MACHINE_H
#define CONFORMANCE_MACHINE_H

#include "backend/backend.h"

typedef struct conformance_machine {
    const char *name;                    /* the backend's */
    /* The ways to run all tests, one after the other (instruction sets, orders of threads); ends with NULL.
     * select chooses one; 0: this machine cannot. NULL ends the last. */
    const char *const *variants;
    int (*select)(const char *variant);
    amp_backend *(*create)(amp_error *);
    /* Memory of exactly that many bytes, so that a checker sees one byte too many; aligned as malloc's. */
    void *(*allocate)(size_t bytes);
    void (*release)(void *);
    /* Memory as the backend's allocate gives it; NULL: as above. */
    void *(*allocate_tensor)(amp_backend *, size_t bytes);
    void (*release_tensor)(amp_backend *, void *);
    /* Around each operation: from begin to finish the test touches none of that memory. finish waits for the
     * work, and returns what the machine saw go wrong, or NULL. */
    void (*begin)(void);
    const char *(*finish)(amp_backend *);
    /* Of how many processors to make use: results must not depend on it. 0: as at the start. */
    void (*set_processors)(amp_backend *, int count);
    /* Has the backend compute in the halves that it would only store, because fp32 is faster here. 0: there
     * are none. NULL: there never are. */
    int (*compute_halves)(amp_backend *);
    /* The backend is not whole: tests of operations it lacks are skipped. */
    int partial;
    /* What one call adds to a convolution's dw was rounded to the dtype before. */
    int rounds_weight_gradients;
    /* A convolution's sum is rounded to the dtype before its bias is added. */
    int rounds_before_bias;
    /* It runs thread by thread: tests keep small what they compute. */
    int slow;
} conformance_machine;

extern conformance_machine machine;

static inline void *allocate_tensor(amp_backend *backend, size_t bytes)
{
    return machine.allocate_tensor ? machine.allocate_tensor(backend, bytes) : machine.allocate(bytes);
}

static inline void release_tensor(amp_backend *backend, void *memory)
{
    if (machine.release_tensor) machine.release_tensor(backend, memory);
    else machine.release(memory);
}

#endif
