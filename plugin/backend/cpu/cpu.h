/* What the rooms of the CPU backend share: the backend object itself and its memory. */
#ifndef AMP_BACKEND_CPU_CPU_H
#define AMP_BACKEND_CPU_CPU_H

#include "../backend.h"
#include "onednn.h"

/* The object behind the amp_backend that amp_cpu_backend_create hands out. */
typedef struct amp_cpu_backend {
    amp_backend base; /* first: an amp_backend * of this backend is an amp_cpu_backend * */
    amp_onednn *library;
    amp_cpu_products *products; /* NULL until the first in half */
} amp_cpu_backend;

static inline amp_onednn *amp_cpu_library(amp_backend *backend) { return ((amp_cpu_backend *)backend)->library; }

/* bytes of 64-byte aligned memory with undefined contents; freed with free(). *out is NULL for 0 bytes. */
amp_status amp_cpu_memory(size_t bytes, void **out, amp_error *error);

#endif
