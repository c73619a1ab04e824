/* Errors that a program cannot go on with, in hooks that have no way to return them to Darknet. */
#pragma once

#include "../../include/darknet_amp.h" /* darknet_amp_refuse */
#include "../../tensor/status.h"

/* Unless status is AMP_OK, ends the program with the error's line on stderr and status 1. */
void amp_host_check(amp_status status, const amp_error *error);
/* Ends the program in the same way with a ready-made line. Given to a communicator as amp_comm.lost, which it
 * calls when other ranks cannot be reached any more. */
void amp_host_communicator_lost(const char *line);

/* Where the program ends in this way, it removes this file. The name must live until then. */
void amp_host_remove_if_refused(const char *file);

/* Prints a line on stderr about something that only this rank has met, such as an image that cannot be
 * read. */
__attribute__((format(printf, 1, 2))) void amp_host_print(const char *format, ...);

/* Keeps a copy of the descriptor behind stderr for the lines of this header, which then appear even where
 * stderr is redirected later (ranks other than 0 silence theirs). */
void amp_host_keep_error_stream(void);
