/* Lets several trainings or benchmarks take turns on one machine. A turn lasts 0.1 to 1 second, so that other
 * load on the machine slows all of them equally. commands/run_in_turns.h starts the programs, decides whose
 * turn it is, and passes two open file descriptors to each program. An environment variable contains their
 * numbers.
 *
 * The program writes "ready" and waits. After each step it writes a line of its own and waits again. For each
 * line it gets one byte: 'g' (go on) or 's' (stop). Measurements must subtract amp_turns_waited. */
#pragma once

#include "../../tensor/status.h"

#define AMP_TURNS "DARKNET_AMP_TURNS" /* the environment variable; its value is "IN,OUT" */

/* Reads the environment variable and removes it. From then on this program is killed when the program that
 * started it ends. AMP_BAD_CONFIG: the value is not two open descriptors. */
amp_status amp_turns_take(amp_error *);
int amp_turns_taken(void);  /* whether the environment variable was set */

/* Send a line (at most 4000 bytes, no newline) and wait for this program's turn: amp_turns_ready before the
 * first step, amp_turns_yield after each step. Return 1 if the program must stop or the other side is gone.
 * If the environment variable was not set, they return 0 at once. */
int amp_turns_ready(void);
__attribute__((format(printf, 1, 2))) int amp_turns_yield(const char *format, ...);

/* Sends a line without waiting. The line begins with a blank, which tells the other side to send no
 * answer. */
__attribute__((format(printf, 1, 2))) void amp_turns_send(const char *format, ...);

/* Seconds spent waiting so far. */
double amp_turns_waited(void);
