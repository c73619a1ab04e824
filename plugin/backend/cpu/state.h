/* The amp_backend that amp_cpu_backend_create returns is the first member of this object. */
#pragma once

#include "../backend.h"

struct amp_onednn;
struct amp_cpu_products;

typedef struct amp_cpu_backend {
    amp_backend base; /* first member: an amp_backend * of this backend is an amp_cpu_backend * */
    struct amp_onednn *library;
    struct amp_cpu_products *products; /* NULL until the first product in half; owned by onednn_gemm.c */
} amp_cpu_backend;

static inline struct amp_onednn *amp_cpu_library(amp_backend *backend)
{
    return ((amp_cpu_backend *)backend)->library;
}
