/* The verbs of `darknet amp`, each in a file of its own. argv is the program's; what follows `darknet amp
 * <verb>` begins at argv[3]. A verb prints its result on stdout and what it is doing on stderr; the error it
 * returns is printed as one line, and the program ends with status 1. */
#pragma once

#include "../tensor/status.h"

amp_status amp_command_plan(int argc, char **argv, amp_error *);
amp_status amp_command_check(int argc, char **argv, amp_error *);
amp_status amp_command_clean(int argc, char **argv, amp_error *);
amp_status amp_command_bench(int argc, char **argv, amp_error *);
amp_status amp_command_compare(int argc, char **argv, amp_error *);
amp_status amp_command_probe(int argc, char **argv, amp_error *);
amp_status amp_command_log(int argc, char **argv, amp_error *);
amp_status amp_command_valid(int argc, char **argv, amp_error *);
amp_status amp_command_selftest(int argc, char **argv, amp_error *);
amp_status amp_command_version(int argc, char **argv, amp_error *);
/* What `amp version` prints. */
amp_status amp_print_version(FILE *, amp_error *);

/* `darknet detector map`: returns the exit status. */
int amp_detector_map(int argc, char **argv);
