/* Runs several programs in turns. All are started, but only one works at a time, for about `slice` seconds;
 * then the next one works. So other work on the machine slows all of them alike, and their times can be
 * compared. The started programs take part through host/program/turns.h. */
#pragma once

#include "../tensor/status.h"

typedef struct amp_turns_end {
    int exited, status;       /* exited 1: the program ended with exit status `status`; 0: the signal
                                 `status` killed it */
    int stopped;              /* 1: the caller had asked the program to stop */
} amp_turns_end;

enum { AMP_TURNS_WORDS = 24 };

/* Initialize it with zeros. Do not move it, because argv may point into seed and device. */
typedef struct amp_turns_program {
    /* the child's arguments from argv[1] on, NULL-terminated; the child runs the parent's executable */
    const char *argv[AMP_TURNS_WORDS];
    int words;
    char seed[16], device[16];
    /* the file for its stdout and stderr, truncated at the start unless append is set. NULL: /dev/null */
    const char *output;
    int append;
    double most_seconds;      /* the program is killed after this time; 0: never */
    amp_turns_end end;        /* set by amp_turns_run when the program has ended */
} amp_turns_program;

/* Adds arguments, up to a NULL. They must stay valid until amp_turns_run has returned. */
__attribute__((sentinel)) void amp_turns_add(amp_turns_program *, ...);
/* Adds -amp ("off" for stock), -seed, and -i with the device of the calling program (-1: the CPU). */
void amp_turns_add_usual(amp_turns_program *, const char *dtype, unsigned seed);

typedef struct amp_turns_watcher {
    void *context;
    /* Called for every line that a program writes to its socket, in order, except "ready". If the call fails,
     * all programs are stopped, and amp_turns_run returns the call's status. NULL: lines are ignored. */
    amp_status (*line)(void *context, int program, const char *line, amp_error *);
    /* Called when a program has ended. May be NULL. */
    amp_status (*ended)(void *context, int program, const amp_turns_end *end, amp_error *);
} amp_turns_watcher;

/* Runs the programs, and returns when all have ended. stop (may be NULL): once it returns nonzero, for
 * example because a signal arrived, each program is asked to stop at its next line. The programs run in
 * process groups of their own, so that Ctrl-C reaches only the caller; if the caller dies, they are killed.
 * AMP_IO_FAILED: a program could not be started. */
amp_status amp_turns_run(amp_turns_program *programs, int count, double slice, int (*stop)(void),
                         const amp_turns_watcher *watcher, amp_error *);

/* From here on SIGINT, SIGTERM and SIGHUP are counted instead of ending the program. amp_turns_interrupted
 * returns their number, and can be the `stop` of amp_turns_run. The third signal ends this program, and with
 * it the programs that it started; two are not enough, because some senders signal both a process and its
 * group. A signal that was ignored at the start (nohup) stays ignored. */
void amp_turns_watch_signals(void);
int amp_turns_interrupted(void);

/* Copies a line of a program's log to `words`; "" if no line fits. sender NULL: copies the last line that may
 * say why the program ended, without a leading "amp: " or "amp bench: ". sender not NULL: copies what follows
 * `sender` in the last line that begins with `sender`. */
void amp_turns_last_message(const char *log, const char *sender, char *words, size_t size);
