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

/* Ends the wait before the first step; then after each. line: without newline, at most 4000 bytes. 1: stop,
 * also if the other side is gone. Without the variable both return 0 at once. */
int amp_turns_ready(void);
int amp_turns_pass(const char *line);

/* Something to tell, without waiting: a result. (It goes out with a blank before it, by which
 * the other side knows.) */
void amp_turns_tell(const char *line);

/* Seconds spent waiting so far. */
double amp_turns_waited(void);
