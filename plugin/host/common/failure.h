/* Errors that a program cannot go on with, in hooks that have no way to return them to Darknet. */
#pragma once

#include "../../include/darknet_amp.h" /* darknet_amp_refuse */
#include "../../tensor/status.h"

/* Ends the program with the error's line on stderr and status 1. */
_Noreturn void amp_host_die(const amp_error *error);
/* The same with this line: amp_comm.lost. */
void amp_host_lost(const char *line);
/* As amp_host_die, unless status is AMP_OK. */
void amp_host_check(amp_status status, const amp_error *error);

/* memory, unless it is NULL: then the program ends, out of memory. */
void *amp_host_allocated(void *memory);

/* A line on stderr of what this rank alone meets, as images that cannot be read. */
__attribute__((format(printf, 1, 2))) void amp_host_tell(const char *format, ...);

/* What refuses the program, or is told, goes to where stderr leads now, whatever becomes of stderr. */
void amp_host_keep_error_stream(void);
