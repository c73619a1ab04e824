/* Runs several programs in turns: all are started, but only one works at a time, for about `slice` seconds,
 * and then the next. So a minute in which the machine is busy slows all of them alike, and their times can be
 * compared. The programs' side is host/program/turns.h. */
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
    int stopped;              /* it was stopped before its end */
} amp_turns_end;

typedef struct amp_turns_watcher {
    void *context;
    /* Called for every line that a program writes, except "ready", in order. Another status than AMP_OK stops
     * all programs, and amp_turns_run returns it. */
    amp_status (*line)(void *context, int program, const char *line, amp_error *);
    /* Called when a program has ended. */
    amp_status (*ended)(void *context, int program, const amp_turns_end *end, amp_error *);
} amp_turns_watcher;

/* Runs them, and returns when all have ended. stop (may be NULL): once *stop is nonzero, set by a signal
 * handler for example, each program gets the order to stop at its next line. The programs run in process
 * groups of their own, so that Ctrl-C reaches the caller alone; if the caller dies, they are killed.
 * AMP_IO_FAILED: a program could not be started. */
amp_status amp_turns_run(const amp_turns_program *programs, int count, double slice,
                         const volatile sig_atomic_t *stop, const amp_turns_watcher *watcher, amp_error *);

/* Finds the last line in a program's log that says why it ended; "" where there is none. */
void amp_turns_last_message(const char *log, char *words, size_t size);
