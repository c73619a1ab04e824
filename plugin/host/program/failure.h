/* Fatal errors, in hooks that cannot return them to Darknet. */
#pragma once

#include "../../include/darknet_amp.h" /* darknet_amp_refuse */
#include "../../tensor/status.h"

/* Unless status is AMP_OK, ends the program with the error's line on stderr and status 1. */
void amp_host_check(amp_status status, const amp_error *error);
/* Ends the program in the same way with a ready-made line. Used as amp_comm.lost, which a communicator calls
 * when other ranks cannot be reached any more. */
void amp_host_communicator_lost(const char *line);

/* When the program ends in this way, it removes this file. The string must stay valid until then. */
void amp_host_remove_if_refused(const char *file);

/* Prints a line on stderr about an event of this rank only, such as an image that cannot be read. */
__attribute__((format(printf, 1, 2))) void amp_host_print(const char *format, ...);

/* Keeps a copy of stderr's descriptor for the lines of this header, which then appear even if stderr is
 * redirected later (ranks other than 0 silence theirs). */
void amp_host_keep_error_stream(void);
