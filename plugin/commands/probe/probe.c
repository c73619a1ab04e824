/* The command `darknet amp probe DATA CFG [WEIGHTS]`: see probe_comparison.h. */
#include "probe_comparison.h"

#include "../arguments.h"
#include "../command.h"

/* Makes and prints the comparison, and writes it to the files `json` and `page` (may be NULL). After all
 * output, returns AMP_DIVERGED if AMP's fp32 differs from Darknet's. */
static amp_status compare(amp_probe_comparison *c, const char *json, const char *page, amp_error *error)
{
    char text[AMP_FAULT_TEXT];
    amp_status status = amp_probe_compare(c, error);
    if (status == AMP_OK && json) status = amp_output_write(json, amp_probe_write_comparison, c, error);
    if (status == AMP_OK && page) status = amp_output_write(page, amp_probe_write_page, c, error);
    if (status == AMP_OK && !amp_is_stdout(json) && !amp_is_stdout(page))
        amp_probe_print_comparison(stdout, c);
    if (status == AMP_OK && amp_probe_is_wrong(c))
        status = amp_fail(error, AMP_DIVERGED, "AMP's fp32 differs from Darknet's: %s; please report it with "
                          "the output above and `darknet amp version`",
                          amp_probe_fault_text(c, c->runs[AMP_FP32].faults, text));
    amp_probe_comparison_free(c);
    return status;
}

amp_status amp_command_probe(int argc, char **argv, amp_error *error)
{
    const char *json = NULL, *page = NULL;
    int compares = 0; /* -compare is still accepted: earlier versions compared only with this option */
    amp_probe_comparison c = { 0 };
    const amp_argument arguments[] = {
        { .name = "DATA", .text = &c.data, .about = "the .data file of the training" },
        { .name = "CFG", .text = &c.cfg, .about = "the network's .cfg" },
        { .name = "WEIGHTS", .text = &c.source.weights, .optional = 1,
          .about = "the weights that the training starts from (random weights)" },
        { .name = "-images", .number = &c.images, .least = 1, .most = 65536,
          .about = "number of images in the pass (as many as in a pass of the training)" },
        { .name = "-json", .value = "FILE", .text = &json,
          .about = "also writes everything as JSON; - is standard output" },
        { .name = "-report", .value = "FILE", .text = &page,
          .about = "also writes a page with pictures (HTML); - is standard output" },
        { .name = "-compare", .flag = &compares, .about = "changes nothing; earlier versions needed it" },
        { 0 } };
    AMP_TRY(amp_arguments_read("amp probe", argc - 3, argv + 3, arguments, error));
    AMP_TRY(amp_readable(c.data, "the .data file", error));
    if (c.source.weights) AMP_TRY(amp_readable(c.source.weights, "the weights", error));
    return compare(&c, json, page, error);
}
