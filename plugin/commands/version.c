/* `darknet amp version`: the versions of the program and its libraries, and the machine, for a bug report. */
#include "../host/program/version.h"

#include "../image/jpeg.h"
#include "arguments.h"
#include "command.h"
#include "plan/plan_report.h"

#ifdef __clang__
#define COMPILER __VERSION__ /* begins with "Clang" */
#else
#define COMPILER "gcc " __VERSION__
#endif

amp_status amp_print_version(FILE *stream, amp_error *error)
{
    char processor[256];
    amp_machine machine;
    amp_machine_processor(processor, sizeof processor);
    fprintf(stream, "Darknet AMP %s\n", AMP_VERSION);
    fprintf(stream, "  Darknet   %s\n", amp_fork_name);
    fprintf(stream, "  compiler  %s\n", COMPILER);
    fprintf(stream, "  JPEGs     %s\n", amp_jpeg_library());
    fprintf(stream, "  CPU       %s\n", processor[0] ? processor : "unknown");
    /* Not an error: the user's bug report may be about a machine that AMP cannot train on. */
    if (amp_machine_read(&machine, error) == AMP_OK) amp_plan_print_machine(&machine, stream);
    else fprintf(stream, "\nDevice\n  none: %s\n", error->message);
    return AMP_OK;
}

amp_status amp_command_version(int argc, char **argv, amp_error *error)
{
    static const amp_argument none[] = { { 0 } };
    AMP_TRY(amp_arguments_read("amp version", argc - 3, argv + 3, none, error));
    return amp_print_version(stdout, error);
}
