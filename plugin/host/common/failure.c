#include "failure.h"

#include <stdio.h>
#include <unistd.h>

_Noreturn void amp_host_die(const amp_error *error)
{
    fflush(stdout);
    fprintf(stderr, "%s\n", error->message);
    _exit(1); /* not exit: other threads may be training or loading, and would meet what its handlers have torn down */
}

void amp_host_check(amp_status status, const amp_error *error)
{
    if (status != AMP_OK) amp_host_die(error);
}

void *amp_host_allocated(void *memory)
{
    amp_error error;
    if (!memory) amp_host_check(amp_fail(&error, AMP_NO_MEMORY, "amp: out of memory"), &error);
    return memory;
}
