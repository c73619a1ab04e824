/* `darknet amp plan CFG`: prints which layers run in half precision and why, the memory of a training, and
 * what could be improved. All of it comes from the engine's own plan. The network has weights of 0 and reads
 * no images. */
#include "../command.h"

#include "../arguments.h"
#include "../json.h"
#include "plan_report.h"

typedef struct plan_request {
    const char *cfg, *data, *dtype, *json;
    long batch, subdivisions; /* 0: as in the .cfg */
    amp_plan_link link;
} plan_request;

static amp_status read_arguments(int argc, char **argv, plan_request *w, amp_error *error)
{
    const amp_argument arguments[] = {
        { .name = "CFG", .text = &w->cfg, .about = "the network's .cfg" },
        { .name = "DATA", .text = &w->data, .optional = 1,
          .about = "a .data file: also shows what a cache of its training images takes" },
        { .name = "-dtype", .text = &w->dtype, .choices = "fp16|bf16|fp32",
          .about = "the precision to plan for (the .cfg's)" },
        { .name = "-batch", .number = &w->batch, .least = 1, .most = 1 << 20,
          .about = "the batch to plan for (the .cfg's)" },
        { .name = "-subdivisions", .number = &w->subdivisions, .least = 1, .most = 1 << 20,
          .about = "the number of passes that a batch is split into (the .cfg's)" },
        { .name = "-ranks", .number = &w->link.ranks, .least = 2, .most = AMP_PLAN_MOST_RANKS,
          .about = "also shows what a training on that many ranks takes" },
        { .name = "-link", .real = &w->link.gbit, .least = .001, .most = 1e5,
          .about = "the rate of the links between ranks, in Gbit/s (10)" },
        { .name = "-step", .real = &w->link.step_ms, .least = .001, .most = 1e9,
          .about = "ms of a step of one rank, from `amp bench`; needed for the ranks' efficiency" },
        { .name = "-json", .value = "FILE", .text = &w->json,
          .about = "also writes everything as JSON; - is standard output" },
        { 0 } };
    AMP_TRY(amp_arguments_read("amp plan", argc - 3, argv + 3, arguments, error));
    if (!w->link.ranks && (w->link.gbit > 0 || w->link.step_ms > 0))
        return amp_fail(error, AMP_BAD_CONFIG, "%s needs -ranks N", w->link.gbit > 0 ? "-link" : "-step");
    if (w->link.gbit <= 0) w->link.gbit = 10;
    return AMP_OK;
}

amp_status amp_command_plan(int argc, char **argv, amp_error *error)
{
    plan_request w = { 0 };
    amp_plan_report report;
    AMP_TRY(read_arguments(argc, argv, &w, error));
    amp_status status = amp_plan_gather(w.cfg, w.batch, w.subdivisions, w.dtype, &report, error);
    if (status == AMP_OK && w.data)
        status = amp_check_cache_size(w.data, report.net, amp_fork_box_classes(report.net) < 0, &report.cache,
                                      error);
    if (status == AMP_OK) {
        amp_plan_advise(&report);
        amp_plan_share(&report, w.link);
        status = amp_output_write(w.json, amp_plan_write_json, &report, error);
    }
    if (status == AMP_OK && !amp_is_stdout(w.json)) amp_plan_print_table(&report, stdout);
    amp_plan_report_free(&report);
    return status;
}
