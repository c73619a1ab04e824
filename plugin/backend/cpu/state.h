/* The CPU backend's object. amp_cpu_backend_create returns a pointer to its first member. */
#pragma once

#include "../backend.h"

struct amp_onednn;
struct amp_cpu_products;

typedef struct amp_cpu_backend {
    amp_backend base; /* must be first, so that a pointer to it can be cast to amp_cpu_backend * */
    struct amp_onednn *library;
    struct amp_cpu_products *products; /* NULL until the first product in fp16 or bf16; owned by
                                          onednn_gemm.c */
} amp_cpu_backend;

static inline struct amp_onednn *amp_cpu_library(amp_backend *backend)
{
    return ((amp_cpu_backend *)backend)->library;
}
