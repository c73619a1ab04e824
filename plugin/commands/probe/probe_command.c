/* `darknet amp probe DATA CFG [WEIGHTS]`. */
#include "../arguments.h"
#include "../command.h"
#include "probe.h"

amp_status amp_command_probe(int argc, char **argv, amp_error *error)
{
    const char *json = NULL;
    double percent = 100 * AMP_PROBE_SHARE;
    amp_probe_request request = { .iterations = AMP_PROBE_ITERATIONS };
    const amp_argument arguments[] = {
        { .name = "DATA", .text = &request.data, .about = "the .data file of the training" },
        { .name = "CFG", .text = &request.cfg, .about = "the network's .cfg" },
        { .name = "WEIGHTS", .text = &request.weights, .optional = 1,
          .about = "what the training begins with (random weights)" },
        { .name = "-iters", .number = &request.iterations, .least = 1, .most = AMP_PROBE_MOST_ITERATIONS,
          .about = "steps to train (20)" },
        { .name = "-share", .real = &percent, .least = .1, .most = 100,
          .about = "percent of a layer's numbers that is too much to lose (1)" },
        { .name = "-json", .value = "FILE", .text = &json,
          .about = "also writes everything as JSON; - is standard output" },
        { 0 } };
    AMP_TRY(amp_arguments_read("amp probe", argc - 3, argv + 3, arguments, error));
    request.share = percent / 100;
    amp_probe_result *result;
    AMP_TRY(amp_probe_run(&request, &result, error));
    amp_status status = AMP_OK;
    int only_json = json && json[0] == '-' && !json[1];
    if (json) status = amp_probe_write(result, json, error);
    if (status == AMP_OK && !only_json) amp_probe_print(result, stdout);
    amp_probe_free(result);
    return status;
}
