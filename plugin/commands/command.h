/* The verbs of `darknet amp`, each in a file of its own. argv is the whole command line; the verb's arguments
 * begin at argv[3]. A verb prints its result on stdout and its progress on stderr. If it returns an error,
 * the error is printed as one line, and the program ends with status 1. */
#pragma once

#include "../tensor/status.h"

typedef amp_status amp_verb(int argc, char **argv, amp_error *);

amp_verb amp_command_plan, amp_command_check, amp_command_clean, amp_command_bench, amp_command_compare,
    amp_command_probe, amp_command_log, amp_command_valid, amp_command_selftest, amp_command_version;
/* Exit statuses of `amp selftest CFG`. WRONG: a result of AMP's fp32 is not finite, or off by more than 1 %.
 * OFF: a result's error is larger than rounding explains. 0: all results are right. 1: no pass could be
 * made. */
enum { AMP_SELFTEST_WRONG = 3, AMP_SELFTEST_OFF = 4 };
/* Called before the first step of a training, except with several ranks. Runs `amp selftest CFG` on a GPU
 * that has not been tested yet (first_check.c), and ends the program if the result is AMP_SELFTEST_WRONG. */
struct network;
void amp_first_check(struct network *);
/* Prints the output of `amp version`. */
amp_status amp_print_version(FILE *, amp_error *);

/* `darknet detector map`: returns the exit status. */
int amp_detector_map(int argc, char **argv);
