/* The second door to a Darknet: what the commands (plugin/commands) need beside fork.h. Each fork's folder implements it, as it
 * does fork.h; a network is an opaque pointer here too, and a layer its number. */
#ifndef AMP_HOST_FORK_COMMANDS_H
#define AMP_HOST_FORK_COMMANDS_H

#include "fork.h"

/* ---- making a network ---- */

/* Darknet's parser ends the program with status 0, by an assertion or by a crash where it cannot make a network; this ends it with
 * one line that names `name` (the file as the user knows it) and status 1. draws: the weights are drawn as always; else the
 * network is only looked at, and made in a tenth of the time: weights are 0, and a GPU's engines are not timed. While no other
 * thread runs. */
struct network *amp_fork_make_network(const char *cfg, const char *name, int draws);
/* With all that Darknet's free_network forgets. NULL is fine. */
void amp_fork_free_network(struct network *);

#endif
