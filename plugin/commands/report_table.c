/* A comparison for the terminal. */
#include "comparison.h"
#include "json.h"

static void print_mean(FILE *out, amp_mean mean, double factor, const char *format)
{
    char text[40] = "-";
    if (mean.count) snprintf(text, sizeof text, format, factor * mean.mean);
    fprintf(out, "  %14s", text);
}

void amp_report_table(const amp_comparison *c, FILE *out)
{
    fprintf(out, "%-6s  %14s  %14s  %14s  %14s  %14s  %14s\n", "dtype", amp_score_name(c, 0), amp_score_name(c, 1), "loss", "images/s",
            "memory MB", "skipped");
    for (int d = 0; d < c->dtype_count; ++d) {
        const amp_dtype_summary *s = &c->summaries[d];
        fprintf(out, "%-6s", s->dtype);
        print_mean(out, s->score[0], 100, "%.2f %%");
        print_mean(out, s->score[1], 100, "%.2f %%");
        print_mean(out, s->loss, 1, "%.4g");
        print_mean(out, s->images_per_second, 1, "%.1f");
        print_mean(out, s->peak_memory_mb, 1, "%.0f");
        print_mean(out, s->skipped, 1, "%.1f");
        fprintf(out, "\n");
    }
    for (int i = 0; i < c->verdict_count; ++i) fprintf(out, "%s\n", c->verdict[i]);
}

static amp_status note(const char *file, const char *text, amp_error *error)
{
    struct amp_output *out;
    FILE *stream;
    AMP_TRY(amp_output_begin(file, &out, &stream, error));
    fputs(text, stream);
    return amp_output_end(out, error);
}

amp_status amp_report_html(const amp_comparison *c, const char *file, amp_error *error) { return note(file, c->title, error); }
amp_status amp_report_json(const amp_comparison *c, const char *file, amp_error *error) { return note(file, c->title, error); }
amp_status amp_report_csv(const amp_comparison *c, const char *file, amp_error *error) { return note(file, c->title, error); }
