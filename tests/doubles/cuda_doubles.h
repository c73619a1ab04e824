/* How a test steers the doubles of CUDA (cuda_shim.h, cuda_runtime_double.cc), and asks
 * what they saw. Plain C. */
#ifndef AMP_CUDA_DOUBLES_H
#define AMP_CUDA_DOUBLES_H

#include <stddef.h>

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A fault of the code under test: what a GPU would do wrong with, silently or loudly. The first one's text is
 * kept, all are counted, and each makes the CUDA runtime's double return an error from there on. */
__attribute__((format(printf, 1, 2))) void amp_cuda_report(const char *format, ...);
int amp_cuda_faults(void);             /* how many since the last amp_cuda_forget_faults */
const char *amp_cuda_fault(void);      /* the first, "" if none */
void amp_cuda_forget_faults(void);

/* Whether races are faults (cuda_races.cc): not in a build with a sanitizer of the compiler's, nor between
 * threads of kernels that were compiled without hooks. */
int amp_cuda_sees_races(void);

/* In which order threads and blocks run: "forward" (as at the start), "backward", or "random" and a number,
 * "random7". The environment's AMP_CUDA_ORDER chooses what it starts with. */
void amp_shim_order(const char *order);
/* The running kernel will not go on: control left it by longjmp. */
void amp_shim_abandon(void);

extern int amp_cuda_device_count; /* what cudaGetDeviceCount returns: 1 unless a test changes it */
/* The nth call (1: the next) of a runtime function returns this status and does nothing: "cudaMalloc",
 * "cudaMemcpyAsync", ...; "launch" for kernels. */
void amp_cuda_fail_call(const char *function, int nth, int status);
/* All work is to be on one stream, that of the first work; 1 allows others. */
void amp_cuda_any_stream(int allowed);
/* What the device is: at the start 9.0, 4 multiprocessors, 8 GiB. The environment's AMP_DOUBLE_GPU makes it
 * one of another compute capability ("7.5"), or a machine that something is the matter with:
 *   no-gpu      none that CUDA may use
 *   old-driver  it is too old for the runtime
 *   taken       another program has it to itself (compute mode EXCLUSIVE_PROCESS)
 *   other-gpus  the program has no code for it
 *   full        others use 78 of its 80 GiB
 *   mig         a part of a GPU */
void amp_cuda_device_is(int major, int minor, int multiprocessors, size_t bytes);
/* 1: the device reads and writes any host memory, and the host may touch device memory, as some machines have
 * it. Work is done as late as ever. */
void amp_cuda_pageable(int on);
/* 1: work is done as soon as it is queued, as the real one does it with CUDA_LAUNCH_BLOCKING=1. */
void amp_cuda_launch_blocking(int on);
/* 1: work on non-blocking streams is done as soon as it is queued, and of other streams only what it waits
 * for: whatever may come early does. */
void amp_cuda_copies_early(int on);
/* Managed memory is for both (1, as at the start), or for the device alone (0), as while it
 * may be at work there. */
void amp_cuda_host_access(int allowed);

long amp_cuda_launches(void);          /* kernels launched, ever */
int amp_cuda_allocations(void);        /* live ones, device, managed, pinned and registered as pinned */
/* Whether memory of the program's is pinned now, by cudaHostRegister. */
int amp_cuda_registered(const void *);
/* Reports allocations, streams and events that are still alive as a fault, and returns how many there are. */
int amp_cuda_leaks(void);
size_t amp_cuda_bytes(void);           /* of live device and managed memory */

/* What the program asked for, ever. The device of the double is as slow as can be: nothing is done
 * before somebody waits. */
typedef struct amp_cuda_counts {
    long waits;                   /* calls that the host came back from only after work had been done */
    long allocations, frees;      /* of device, managed and pinned memory; registering is one as well */
    /* Copies from the host's memory to the device, and back; not those on one side. */
    long uploads, downloads;
    size_t uploaded, downloaded;  /* their bytes, */
    /* And how many of both on the host's side were not pinned: several times slower. */
    size_t pageable;
    long launches, library;       /* kernels, and calls that doubles of libraries queued */
    long questions;               /* cudaPointerGetAttributes */
    long recorded, graphs;        /* graphs instantiated, and launched */
} amp_cuda_counts;
amp_cuda_counts amp_cuda_counted(void);

/* The program frees this, which must not be registered as pinned memory: for tests that are
 * linked with --wrap=free. */
void amp_cuda_program_frees(void *);

/* For the doubles of libraries: is this live device memory? Reports it if not. And work for a stream, to be
 * run late; 0 if there is no such stream. */
int amp_cuda_is_device(const void *p, size_t bytes, const char *what);
int amp_cuda_enqueue(cudaStream_t stream, const char *what, void (*run)(void *), void *user);
/* Work that is queued from now on may use only the first `bytes` of this block: its owner lends out a larger
 * allocation than was asked for. */
void amp_cuda_lend(cudaStream_t stream, void *block, size_t bytes);
/* While work runs: whether it is a graph's, which may be launched again. */
int amp_cuda_of_graph(void);
/* Called, unless it is NULL, before memory is taken or given back, or page-locked: the real one may wait for
 * all GPUs of the program then. */
extern void (*amp_cuda_before_memory)(const char *function);
/* ... which takes the device so long, while it runs. Events tell times of a clock that knows nothing else,
 * and 4 microseconds of the host's for whatever is queued. */
void amp_cuda_takes(double microseconds);
/* And what it takes for each kernel and each operation of a library: at the start AMP_DOUBLE_GPU_TAKES of the
 * environment, or 0. */
void amp_cuda_each_takes(double microseconds);

#ifdef __cplusplus
}
#endif
#endif
