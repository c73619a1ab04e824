/* Measures free memory, and the memory that this program uses. */
#pragma once

#include <stddef.h>

typedef struct amp_available_memory {
    size_t bytes;     /* bytes that this program may still allocate; 0: unknown. For an address space limit,
                         the stacks of loader threads are already subtracted */
    size_t all;       /* bytes in all: of RAM, of GPU memory, or of the limit; 0: unknown */
    const char *what; /* "RAM", "GPU memory", or the name of a lower limit (control group, address space) */
    size_t resident;  /* resident bytes of the program that count against the limit; 0: unknown, because the
                         limit counts allocated memory instead (ulimit -v, a GPU) */
} amp_available_memory;

static inline double amp_mib(size_t bytes) { return (double)bytes / 0x1p20; }

/* Free memory of the device on which networks are made now. */
amp_available_memory amp_host_available_memory(void);

/* The free RAM for this program. The ranks on a machine get equal parts. */
amp_available_memory amp_host_available_ram(void);

/* Returns the smallest of three amounts: the machine's free memory (MemAvailable); what the control groups
 * (version 1 or 2) leave; and the remaining address space (RLIMIT_AS). The first two are divided by
 * `programs`, the number of ranks on this machine. root: ""; in tests, a folder with its own /proc and
 * /sys. */
amp_available_memory amp_available_ram(const char *root, int programs);

/* The peak of this program's resident memory so far, in MB of 2^20 bytes. */
double amp_host_peak_resident_mb(void);

/* Estimates the bytes that this program takes in a training in addition to the network's memory: 16 MiB, of
 * which 12 MiB are resident mapped files (code and libraries). If more files are resident (OpenCV), 1.75
 * times the excess is added, because libraries also allocate data, and a training touches more of their
 * pages. (Measured: 62 MiB of files before a training; 75 MiB of files and 102 MiB in all during it.) */
size_t amp_host_program_bytes(void);

/* The maximum number of loader threads at one time; the bytes of each thread's stack (the C library's default
 * is 8 MiB). A thread keeps its stack until it is joined at the end of its batch. */
enum { AMP_LOADERS = 64 + 1, AMP_LOADER_STACK = 1 << 20 };
