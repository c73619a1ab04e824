/* Fatal errors: for hooks, which cannot return an error to Darknet. */
#pragma once

#include "../../include/darknet_amp.h" /* darknet_amp_refuse */
#include "../../tensor/status.h"

/* Unless status is AMP_OK, ends the program with the error's line on stderr and status 1. */
void amp_host_check(amp_status status, const amp_error *error);
/* The callback amp_comm.lost, called when other ranks cannot be reached any more. Ends the program in the
 * same way, with `line` on stderr. */
void amp_host_communicator_lost(const char *line);

/* Sets the file that is removed if the program ends with an error. The string must stay valid. */
void amp_host_remove_if_refused(const char *file);

/* Prints a line on stderr about an event on this rank. Works on every rank. */
__attribute__((format(printf, 1, 2))) void amp_host_print(const char *format, ...);

/* Keeps a duplicate of stderr for the functions above. A rank other than 0 calls it before it redirects
 * stderr to /dev/null. */
void amp_host_keep_error_stream(void);
