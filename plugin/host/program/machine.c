/* See machine.h. */
#include "machine.h"

#include <omp.h>
#include <string.h>

#include "../fork.h"

const char *const amp_support_names[] = { "none", "storage", "native" };

void amp_machine_describe(const amp_backend *backend, amp_machine *machine)
{
    memset(machine, 0, sizeof *machine);
    for (int k = 0; k < AMP_MACHINE_DTYPES; k++)
        machine->support[k] = backend->supports(backend, (amp_dtype)k, machine->note[k]);
    snprintf(machine->backend, sizeof machine->backend, "%s", backend->description);
    snprintf(machine->description, sizeof machine->description, "%s, threads: %d", machine->backend,
             omp_get_max_threads());
}

amp_status amp_machine_read(amp_machine *machine, amp_error *error)
{
    amp_backend *backend = amp_fork_backend(error);
    if (!backend) return error->status;
    amp_machine_describe(backend, machine);
    backend->destroy(backend);
    return AMP_OK;
}

/* Reads the line "model name	: AMD EPYC ..." of /proc/cpuinfo. */
void amp_machine_processor(char *name, size_t size)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    name[0] = 0;
    while (file && !name[0] && fgets(line, sizeof line, file)) {
        char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !value) continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(name, size, "%s", value + 1 + strspn(value + 1, " "));
    }
    if (file) fclose(file);
}
