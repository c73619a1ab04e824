/* Memory: what is free, and what was used. */
#ifndef AMP_HOST_MEMORY_H
#define AMP_HOST_MEMORY_H

#include <stddef.h>

#include "darknet.h"

/* Bytes that are free where networks made from here on will lie, and the words for it: "RAM", or of the GPU in use. 0: not
 * known. */
size_t amp_host_free_memory(const char **where);

/* The most RAM that this program has had at any time since its start, in MB of 2^20 bytes. */
double amp_host_peak_resident_mb(void);

/* In MB of 2^20 bytes: on a GPU what is in use on net's now, by whatever program; else amp_host_peak_resident_mb. */
double amp_host_memory_mb(const network *net);

#endif
