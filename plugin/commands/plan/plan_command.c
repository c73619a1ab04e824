/* `darknet amp plan CFG`: which layers run in half and why, what memory they take, and what stands in the
 * way. Nothing is trained and nothing is read but the .cfg: the network is made with weights of 0, and the
 * engine's own plan of it is printed. */
#include "../command.h"

#include "../arguments.h"
#include "../json.h"
#include "plan_report.h"

amp_status amp_command_plan(int argc, char **argv, amp_error *error)
{
    const char *cfg = NULL, *json = NULL;
    long batch = 0, subdivisions = 0;
    const amp_argument arguments[] = {
        { .name = "CFG", .text = &cfg, .about = "the network's .cfg" },
        { .name = "-batch", .number = &batch, .least = 1, .most = 1 << 20,
          .about = "the batch to plan for (the .cfg's)" },
        { .name = "-subdivisions", .number = &subdivisions, .least = 1, .most = 1 << 20,
          .about = "the number of passes that a batch is made in (the .cfg's)" },
        { .name = "-json", .value = "FILE", .text = &json,
          .about = "also writes everything as JSON; - is standard output" },
        { 0 } };
    amp_plan_report report;
    AMP_TRY(amp_arguments_read("amp plan", argc - 3, argv + 3, arguments, error));
    amp_status status = amp_plan_gather(cfg, batch, subdivisions, &report, error);
    if (status == AMP_OK) status = amp_output_write(json, amp_plan_write_json, &report, error);
    if (status == AMP_OK && !amp_is_stdout(json)) amp_plan_print_table(&report, stdout);
    amp_plan_report_free(&report);
    return status;
}
