/* Runs several programs in turns: all are started, but only one works at a time, for about `slice` seconds,
 * and then the next. So a minute in which the machine is busy slows all of them alike, and their times can be
 * compared. The programs' side is host/program/turns.h. */
#pragma once

#include "../tensor/status.h"

typedef struct amp_turns_end {
    int exited, status;       /* exited: by itself, with this exit status; else killed by signal `status` */
    int stopped;              /* it was stopped before its end */
} amp_turns_end;

typedef struct amp_turns_program {
    /* arguments of this very program, from argv[1] on, NULL at the end */
    const char *const *argv;
    /* file that takes its stdout and stderr; emptied before, unless append is set. NULL: /dev/null */
    const char *output;
    int append;
    double most_seconds;      /* after so many it is killed; 0: it may take as long as it needs */
    amp_turns_end end;        /* set by amp_turns_run once it has ended */
} amp_turns_program;

/* What argv is made of. Starts zeroed; some words lie in it, so that it stays where it is. */
enum { AMP_TURNS_WORDS = 24 };
typedef struct amp_turns_words {
    const char *argv[AMP_TURNS_WORDS];
    int count;
    char seed[16], device[16];
} amp_turns_words;

/* Adds words, up to a NULL; they are the caller's. */
__attribute__((sentinel)) void amp_turns_add(amp_turns_words *, ...);
/* Adds -amp ("off" for stock), -seed, and with -i the device of this program, -1 for the CPU. */
void amp_turns_add_usual(amp_turns_words *, const char *dtype, unsigned seed);

typedef struct amp_turns_watcher {
    void *context;
    /* Called for every line that a program writes, except "ready", in order. Another status than AMP_OK stops
     * all programs, and amp_turns_run returns it. NULL: they write none. */
    amp_status (*line)(void *context, int program, const char *line, amp_error *);
    /* Called when a program has ended; or NULL. */
    amp_status (*ended)(void *context, int program, const amp_turns_end *end, amp_error *);
} amp_turns_watcher;

/* Runs them, and returns when all have ended. stop (may be NULL): once it returns nonzero, since a signal
 * has come for example, each program gets the order to stop at its next line. The programs run in process
 * groups of their own, so that Ctrl-C reaches the caller alone; if the caller dies, they are killed.
 * AMP_IO_FAILED: a program could not be started. */
amp_status amp_turns_run(amp_turns_program *programs, int count, double slice, int (*stop)(void),
                         const amp_turns_watcher *watcher, amp_error *);

/* Finds the last line in a program's log that says why it ended, or, unless sender is NULL, the last one that
 * begins with it; without who says it. "" where there is none. */
void amp_turns_last_message(const char *log, const char *sender, char *words, size_t size);
