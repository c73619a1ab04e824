/* `-probe`: what fp16 and bf16 lose of each layer's numbers in the network that was just trained. */
#include "compare.h"

#include "../probe/probe.h"

/* Trained weights to look at: fp16's, since their sidecar knows the loss scale; else the reference's, else any; else those
 * given. */
static const amp_run *run_to_probe(const amp_comparison *c)
{
    const amp_run *best = NULL;
    for (int i = c->dtype_count * c->seed_count - 1; i >= 0; --i) {
        const amp_run *run = &c->runs[i];
        if (run->state != AMP_RUN_DONE) continue;
        int is_fp16 = !strcmp(run->dtype, "fp16"), is_reference = i / c->seed_count == c->reference;
        if (!best || is_fp16 || (is_reference && strcmp(best->dtype, "fp16"))) best = run;
    }
    return best;
}

amp_status amp_compare_probe(const amp_compare *compare, amp_error *error)
{
    const amp_comparison *c = &compare->result;
    const amp_run *run = run_to_probe(c);
    amp_run_files files;
    amp_probe_request request = { .data = c->data, .cfg = c->cfg, .weights = c->weights, .iterations = AMP_PROBE_ITERATIONS,
                                  .share = AMP_PROBE_SHARE };
    amp_probe_result *result;
    char file[AMP_COMPARE_PATH];
    if (run) {
        amp_compare_files(compare, run, &files);
        request.weights = files.weights;
    }
    AMP_TRY(amp_probe_run(&request, &result, error));
    printf("\nnumerics, from %s:\n", request.weights ? request.weights : "random weights");
    amp_probe_print(result, stdout);
    fflush(stdout);
    snprintf(file, sizeof file, "%s/probe.json", compare->folder);
    amp_status status = amp_probe_write(result, file, error);
    amp_probe_free(result);
    return status;
}
