/* See program.h. */
#include "program.h"

static amp_program program = { .cache = -1, .ranks.networks = 1 };

static _Thread_local amp_thread_state thread;

const amp_program *amp_this_program(void) { return &program; }
amp_program *amp_program_to_set(void) { return &program; }
amp_thread_state *amp_this_thread(void) { return &thread; }
