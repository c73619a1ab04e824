/* `darknet amp log` summarizes a running or finished training from its -log. An incomplete last row is
 * ignored. */
#include "log.h"

#include "../../files/safe_file.h"
#include "../arguments.h"
#include "../command.h"
#include "../table.h"

#include <math.h>

static void print_quarters(const char *name, const double median[4])
{
    printf("  %-15s median of each quarter of the steps:", name);
    for (int q = 0; q < 4; q++)
        if (isnan(median[q])) printf(" -");
        else printf(" %.4g", median[q]);
    printf("\n");
}

static void print_scale(const amp_log_summary *s)
{
    printf("  %-15s ", "loss scale");
    if (!s->raised && !s->lowered) {
        printf("%g throughout\n", s->first_scale);
        return;
    }
    printf("%g at the start, %g now; raised %zu times, lowered %zu times; lowest %g at iteration %ld, "
           "highest %g at %ld\n", s->first_scale, s->last_scale, s->raised, s->lowered, s->least_scale.value,
           s->least_scale.iteration, s->most_scale.value, s->most_scale.iteration);
}

static void print_skipped(const amp_log_summary *s)
{
    printf("  %-15s ", "skipped steps");
    if (!s->skipped) {
        printf("none\n");
        return;
    }
    printf("%zu of %zu (%.2g %%)", s->skipped, s->rows, 100. * (double)s->skipped / (double)s->rows);
    if (s->largest_cluster < 2) printf(", each by itself\n");
    else printf("; clusters: %zu; the largest: %zu at iterations %ld to %ld\n", s->clusters,
                s->largest_cluster, s->cluster_first, s->cluster_last);
}

static void print_spikes(const amp_log_summary *s)
{
    size_t kept = s->spikes < AMP_SPIKES_KEPT ? s->spikes : AMP_SPIKES_KEPT;
    printf("  %-15s ", "spikes");
    if (!s->spikes) printf("none\n");
    else printf("%zu, %zu dropped%s\n", s->spikes, s->dropped, kept < s->spikes ? "; the largest:" : ":");
    for (size_t i = 0; i < kept; i++) {
        const amp_log_spike *spike = &s->spike[i];
        printf("  %-15s %siteration %ld: %s %.4g", "", spike->dropped ? "after " : "", spike->iteration,
               spike->by_loss ? "loss" : "gradient norm", spike->value);
        if (spike->median > 0)
            printf(", %.3g times the median of the steps before", spike->value / spike->median);
        printf("%s\n", spike->dropped ? "; dropped" : "");
    }
}

static void print_summary(const char *file, const amp_log_summary *s)
{
    printf("%s: %zu steps, iterations %ld to %ld, %.4g seconds\n", file, s->rows, s->first, s->last,
           s->seconds);
    print_quarters("loss", s->loss);
    print_quarters("gradient norm", s->norm);
    if (!isnan(s->largest_norm.value))
        printf("  %-15s largest %.4g at iteration %ld\n", "", s->largest_norm.value,
               s->largest_norm.iteration);
    printf("  %-15s %g to %g, %g now\n", "learning rate", s->least_rate, s->most_rate, s->last_rate);
    printf("  %-15s median %.4g, %.4g in the last quarter; %.3g %% of the time was spent waiting for "
           "images\n", "images/s", s->images_per_second, s->images_lately,
           s->seconds > 0 ? 100 * s->load_seconds / s->seconds : 0);
    print_scale(s);
    print_skipped(s);
    print_spikes(s);
    if (s->scale_falls)
        printf("warning: the loss scale has only fallen over the last 50 steps, to %g: gradients overflow at "
               "ever smaller scales, so they grow; lower learning_rate, or set clip_norm\n", s->last_scale);
    if (s->zero_norms >= AMP_ZERO_NORMS)
        printf("warning: the gradient's norm has been 0 since iteration %ld: nothing is learnt; the layer "
               "before the loss may be saturated or dead, or all images may lack labels\n", s->zero_since);
    if (s->norm_grows > 0)
        printf("warning: the gradient's norm is %.3g times what it was: the training may be diverging; lower "
               "learning_rate, or set clip_norm\n", s->norm_grows);
}

static amp_status draw(const char *svg, const char *file, const amp_log_rows *rows, amp_error *error)
{
    amp_output out;
    AMP_TRY(amp_output_begin(svg, &out, error));
    if (out.stream) amp_log_draw(out.stream, amp_file_name(file), rows->row, rows->count);
    return amp_output_end(&out, AMP_OK, error);
}

amp_status amp_command_log(int argc, char **argv, amp_error *error)
{
    const char *file = NULL, *svg = NULL;
    const amp_argument arguments[] = {
        { .name = "CSV", .text = &file,
          .about = "the log that a running or finished training writes with -log" },
        { .name = "-svg", .value = "FILE", .text = &svg,
          .about = "draws loss, gradient norm and loss scale" },
        { 0 } };
    AMP_TRY(amp_arguments_read("amp log", argc - 3, argv + 3, arguments, error));
    AMP_TRY(amp_readable(file, "the training log", error));
    amp_log_rows rows = { 0 };
    amp_status status = amp_log_rows_read(file, &rows, error);
    if (status == AMP_OK && !rows.count)
        status = amp_fail(error, AMP_BAD_CONFIG, "%.300s: no step is logged there yet", file);
    if (status == AMP_OK) status = draw(svg, file, &rows, error);
    if (status == AMP_OK) {
        amp_log_summary summary;
        amp_log_summarize(rows.row, rows.count, &summary);
        if (!amp_is_stdout(svg)) print_summary(file, &summary);
    }
    free(rows.row);
    return status;
}
