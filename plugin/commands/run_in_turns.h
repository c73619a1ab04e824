/* Runs several programs in turns on one machine: all are started, one at a time works, for about slice
 * seconds, then the next. So a busy minute of the machine meets all of them alike. The programs' side:
 * host/training/turns.h. */
#pragma once

#include "../tensor/status.h"

#include <signal.h>

typedef struct amp_turns_program {
    /* arguments of this very program, from argv[1] on, NULL at the end */
    const char *const *argv;
    /* file that takes its stdout and stderr; emptied before, unless append is set. NULL: /dev/null */
    const char *output;
    int append;
} amp_turns_program;

typedef struct amp_turns_end {
    int exited, status;       /* exited: by itself, with this exit status; else killed by signal `status` */
    int stopped;              /* it was told to stop */
} amp_turns_end;

typedef struct amp_turns_watcher {
    void *context;
    /* Every line a program writes but "ready", in the order they come. What is not AMP_OK stops all programs
     * and is returned. */
    amp_status (*line)(void *context, int program, const char *line, amp_error *);
    /* A program ended. */
    amp_status (*ended)(void *context, int program, const amp_turns_end *end, amp_error *);
} amp_turns_watcher;

/* Returns when all have ended. *stop (NULL: never) becomes nonzero, in a signal handler say: all are told to
 * stop at their next line. Programs run in process groups of their own, so that a terminal's Ctrl-C reaches
 * the caller alone; they end when the caller dies. AMP_IO_FAILED: a program could not be started. */
amp_status amp_turns_run(const amp_turns_program *programs, int count, double slice,
                         const volatile sig_atomic_t *stop, const amp_turns_watcher *watcher, amp_error *);

/* The last line of what a program printed that says why it ended; "" where there is none. */
void amp_turns_last_words(const char *log, char *words, size_t size);
