/* Free memory, and memory used. */
#pragma once

#include <stddef.h>

typedef struct amp_available_memory {
    size_t bytes;     /* that this program may still take; 0: unknown. In an address space, room for the
                         stacks of loader threads is already subtracted */
    size_t all;       /* the total; 0: unknown */
    const char *what; /* "RAM", "GPU memory", or the limit that is lower: the control group's or the address
                         space's */
    size_t resident;  /* the program's resident memory, if only touched memory counts against the limit; 0 if
                         untouched memory counts too */
} amp_available_memory;

static inline double amp_mib(size_t bytes) { return (double)bytes / 0x1p20; }

/* Free memory of the device on which networks are made from now on: the GPU's if one is used, else RAM. */
amp_available_memory amp_host_available_memory(void);

/* Free RAM. Each rank on a machine gets an equal part. */
amp_available_memory amp_host_available_ram(void);

/* The smallest of three: the machine's free memory (MemAvailable); what the program's control group and its
 * parents allow, in version 1 or 2; and what is left of its address space (RLIMIT_AS). The first two are
 * divided by `programs`, the number of ranks that share them. root: "", or in tests a folder with its own
 * /proc and /sys. */
amp_available_memory amp_available_ram(const char *root, int programs);

/* The peak of this program's RAM so far, in MB of 2^20 bytes. */
double amp_host_peak_resident_mb(void);

/* Estimates the bytes that this program takes in a training besides the network's memory. This is 16 MiB, of
 * which 12 MiB are mapped files (code and libraries). Resident pages of files beyond 12 MiB, as with
 * OpenCV's large libraries, count 1.75 times: such libraries also have data, and a training touches more of
 * their pages. (Measured: 62 MiB of files before a training; during it 75 MiB of files, 102 MiB in all.) */
size_t amp_host_program_bytes(void);

/* The maximum number of loader threads that exist at the same time, including those that wait for their turn,
 * and the stack size of each in bytes. (The C library's default is 8 MiB.) A thread that has ended keeps its
 * stack until it is joined at the end of its batch. */
enum { AMP_LOADERS = 64 + 1, AMP_LOADER_STACK = 1 << 20 };
