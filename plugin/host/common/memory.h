/* Memory: what is free, and what was used. */
#pragma once

#include <stddef.h>

struct network;

/* How many bytes this program may still take, of how many in all, and of what: "RAM", "GPU memory", or what
 * allows less than the machine has. bytes and all are 0 where that is not known. resident: how much of it the
 * program has in use, where untouched memory does not count; else 0. Of an address space the stacks
 * of loader threads are taken off. */
typedef struct amp_available_memory {
    size_t bytes, all;
    const char *what;
    size_t resident;
} amp_available_memory;

/* Where networks made from here on will lie: of the GPU in use, else of RAM. */
amp_available_memory amp_host_available_memory(void);

/* RAM, of which each rank on this machine has a part. */
amp_available_memory amp_host_available_ram(void);

/* The least of what the machine has (MemAvailable), what the program's control group and those above it
 * allow, of either version, and what is left of its address space (RLIMIT_AS). root: "", or a folder with a
 * test's own /proc and /sys. programs: how many share all but the address space, each a part of it. */
amp_available_memory amp_available_ram(const char *root, int programs);

/* The most RAM that this program has had at any time since its start, in MB of 2^20 bytes. */
double amp_host_peak_resident_mb(void);

/* In MB of 2^20 bytes: on a GPU what is in use on net's now, by whatever program; else
 * amp_host_peak_resident_mb. */
double amp_host_memory_mb(const struct network *net);
