/* Linked into Darknet's program built for the CPU: its backend is CUDA's, over the doubles. The device's
 * memory is the host's here, and its work is done at once, so that Darknet's own CPU code computes the fp32
 * layers between. When the program ends, a line tells what the doubles did; if they saw a fault, the
 * program's status is 1. The environment's AMP_FAULT is fault_in_backend.h's. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "backend/backend.h"
#include "doubles/cublas_double.h"
#include "doubles/cuda_doubles.h"
#include "doubles/cudnn_double.h"
#include "../faults/fault_in_backend.h"

static void report(void)
{
    fprintf(stderr, "doubles: %ld kernels, %d convolutions, %d products, %d faults\n", amp_cuda_launches(),
            cudnn_double.executions, cublas_double.products, amp_cuda_faults());
    if (!amp_cuda_faults()) return;
    fprintf(stderr, "doubles: %s\n", amp_cuda_fault());
    _exit(1);
}

/* The linker sends the host's calls of amp_cpu_backend_create here. */
amp_backend *__wrap_amp_cpu_backend_create(amp_error *error);
amp_backend *__wrap_amp_cpu_backend_create(amp_error *error)
{
    static int registered;
    if (!registered++) atexit(report);
    amp_cuda_pageable(1);
    amp_cuda_launch_blocking(1);
    amp_backend *made = amp_cuda_backend_create(error);
    if (made) put_fault(made);
    return made;
}
