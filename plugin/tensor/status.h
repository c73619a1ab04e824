/* How the plugin reports a failure: a status that names the cause, and a message of one line for the user.
 *
 * A function that can fail returns amp_status and takes an amp_error, which it fills only on failure. The
 * message says what is wrong, where (file, line, layer) and what to do. */
#pragma once

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

typedef enum amp_status {
    AMP_OK = 0,
    AMP_BAD_CONFIG,     /* a key, value or section of the .cfg or the command line */
    AMP_BAD_NETWORK,    /* shapes or connections that no layer supports */
    AMP_UNSUPPORTED,    /* this machine or this build lacks the feature */
    AMP_NO_MEMORY,
    AMP_BACKEND_FAILED, /* a library that the backend uses reported an error */
    AMP_DIVERGED,       /* gradients or weights stay inf or NaN: training must end */
    AMP_BAD_SIDECAR,    /* a sidecar is damaged, or belongs to other weights or to another network */
    AMP_IO_FAILED,      /* a file could not be read or written */
    AMP_COMM_FAILED,    /* a rank is gone, or the communication library reported an error */
    AMP_HELP_PRINTED    /* no failure: help was asked for, and printed */
} amp_status;

typedef struct amp_error {
    amp_status status;
    char message[1024];
} amp_error;

/* Fills *error (may be NULL) and returns status. */
__attribute__((format(printf, 3, 4)))
static inline amp_status amp_fail(amp_error *error, amp_status status, const char *format, ...)
{
    if (error) {
        va_list args;
        va_start(args, format);
        error->status = status;
        vsnprintf(error->message, sizeof error->message, format, args);
        va_end(args);
    }
    return status;
}

/* Prints a line and ends the program. The definition in host/program/failure.c also ends the other ranks and
 * removes temporary files. A program that is linked without that file uses the weak definition below. */
#ifdef __cplusplus
extern "C"
#endif
__attribute__((noreturn)) void amp_out_of_memory(void);
#ifndef AMP_DEFINES_OUT_OF_MEMORY
__attribute__((weak)) void amp_out_of_memory(void)
{
    fflush(stdout);
    fputs("amp: out of memory\n", stderr);
    _Exit(1);
}
#endif

/* Returns `memory` from malloc, strdup, open_memstream and the like, or ends the program with a line if it is
 * NULL. For small blocks: functions that allocate large ones (tensors, buffers) return AMP_NO_MEMORY. */
static inline void *amp_allocated(void *memory)
{
    if (!memory) amp_out_of_memory();
    return memory;
}

/* Makes room for one more element of `size` bytes in an array that has `count` elements and space for *room
 * elements. Doubles the space of a full array. Returns the array, which may have moved. */
static inline void *amp_grow(void *array, size_t count, size_t *room, size_t size)
{
    if (count < *room) return array;
    *room = *room ? 2 * *room : 64;
    return amp_allocated(realloc(array, *room * size));
}

/* Returns from the calling function with the status of a failed call. */
#define AMP_TRY(call) do { amp_status amp_try_ = (call); if (amp_try_ != AMP_OK) return amp_try_; } while (0)
