/* Lets several trainings or benchmarks share one machine fairly: each runs for 0.1 to 1 second, then the next
 * one runs, so that other load on the machine slows all of them. commands/run_in_turns.h starts them and
 * decides whose turn it is. A program that takes turns finds the numbers of two inherited file descriptors in
 * an environment variable.
 *
 * The program writes "ready" and waits; after each step it writes a line of its own and waits again. For each
 * line it gets one byte: 'g' (go on) or 's' (stop here). Measurements must subtract the time that the program
 * waited (amp_turns_waited). */
#pragma once

#include "../../tensor/status.h"

#define AMP_TURNS "DARKNET_AMP_TURNS" /* the environment variable; its value is "IN,OUT" */

/* Reads the variable and removes it; from then on this program is killed when the one that started it ends.
 * AMP_BAD_CONFIG: not two open descriptors. */
amp_status amp_turns_take(amp_error *);
int amp_turns_taken(void);  /* whether the variable was set */

/* Both functions send a line and wait for this program's turn. Call ready before the first step, and yield
 * after each step. The line has no newline and at most 4000 bytes. They return 1 if the program must stop,
 * also if the other side is gone. Without the variable they return 0 at once. */
int amp_turns_ready(void);
__attribute__((format(printf, 1, 2))) int amp_turns_yield(const char *format, ...);

/* Sends a line, such as a result, without waiting. The leading blank marks it for the other side. */
__attribute__((format(printf, 1, 2))) void amp_turns_send(const char *format, ...);

/* Seconds spent waiting so far. */
double amp_turns_waited(void);
