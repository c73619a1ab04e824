/* A program that takes turns with others: its environment names two file descriptors that it was started
 * with. Several trainings or benchmarks on one machine are compared fairly only if its busy moments slow all:
 * commands/run_in_turns.h starts them and lets one work at a time, for a tenth of a second to a second.
 *
 * The program writes "ready" and waits; after each step it writes a line of its own and waits again. For each
 * line it gets one byte: 'g', go on, or 's', stop here. The time it waited is not its own: whoever measures
 * takes amp_turns_waited out. */
#pragma once

#include "../../tensor/status.h"

#define AMP_TURNS "DARKNET_AMP_TURNS" /* the variable: "IN,OUT" */

/* Reads the variable and removes it; then this program is killed when the one that started it ends.
 * AMP_BAD_CONFIG: not two descriptors that are open. */
amp_status amp_turns_take(amp_error *);
int amp_turns_taken(void);  /* whether the variable was set */

/* Both send a line and wait until it is this program's turn: ready before the first step, yield after each
 * step. The line has no newline and at most 4000 bytes. They return 1 if the program is to stop, also where
 * the other side is gone. Without the variable they return 0 at once. */
int amp_turns_ready(void);
__attribute__((format(printf, 1, 2))) int amp_turns_yield(const char *format, ...);

/* Sends a line, such as a result, without waiting. The other side knows it by the blank before it. */
__attribute__((format(printf, 1, 2))) void amp_turns_send(const char *format, ...);

/* Seconds spent waiting so far. */
double amp_turns_waited(void);
