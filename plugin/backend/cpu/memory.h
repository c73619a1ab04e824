/* Memory of the CPU backend, for what its files take themselves. */
#ifndef AMP_BACKEND_CPU_MEMORY_H
#define AMP_BACKEND_CPU_MEMORY_H

#include "../backend.h"

/* `bytes` of 64-byte aligned memory with undefined contents; freed with free(). *out is NULL for 0 bytes. */
amp_status amp_cpu_memory(size_t bytes, void **out, amp_error *error);

#endif
