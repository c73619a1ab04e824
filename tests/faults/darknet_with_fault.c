/* Linked into Darknet's program: its CPU backend has the fault that AMP_FAULT names (fault_in_backend.h). */
#include "backend/backend.h"
#include "fault_in_backend.h"

/* The linker sends the host's calls of amp_cpu_backend_create to the second. */
amp_backend *__real_amp_cpu_backend_create(amp_error *error);
amp_backend *__wrap_amp_cpu_backend_create(amp_error *error);
amp_backend *__wrap_amp_cpu_backend_create(amp_error *error)
{
    amp_backend *made = __real_amp_cpu_backend_create(error);
    if (made) put_fault(made);
    return made;
}
