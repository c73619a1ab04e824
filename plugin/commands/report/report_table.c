/* The report for the terminal. */
#include "../compare/compare.h"

#include "report_text.h"

#include <string.h>

/* printf counts bytes; a dash of three has the width of one. */
static void column(FILE *stream, int width, const char *text)
{
    int letters = 0;
    for (const char *p = text; *p; ++p) letters += (*p & 0xc0) != 0x80;
    fprintf(stream, "%*s%s", width > letters ? width - letters : 0, "", text);
}

static void ratio(FILE *stream, int width, int shown, double value)
{
    char text[AMP_REPORT_NUMBER + 8] = "";
    if (shown && amp_is_number(value) && value > 0) snprintf(text, sizeof text, "%.2fx", value);
    column(stream, width, text);
}

static void print_dtype(FILE *stream, const amp_comparison *c, int d)
{
    const amp_dtype_summary *one = &c->summaries[d];
    char text[AMP_REPORT_NUMBER];
    int compared = d != c->reference;
    long skipped = 0;
    for (int s = 0; s < c->seed_count; ++s) skipped += amp_comparison_run(c, d, s)->skipped;
    fprintf(stream, "%-6s", c->dtypes[d]);
    for (int i = 0; i < 2; ++i) {
        column(stream, 14, amp_report_percent(amp_mean_value(&one->score[i]), text));
        column(stream, 8, compared ? amp_report_points(one->difference[i].mean, text) : "");
    }
    column(stream, 10, amp_report_amount(amp_mean_value(&one->images_per_second), text));
    ratio(stream, 7, compared, one->speedup.ratio);
    column(stream, 13, amp_report_amount(amp_mean_value(&one->compute_images_per_second), text));
    ratio(stream, 7, compared, one->compute_speedup.ratio);
    column(stream, 10, amp_report_amount(amp_mean_value(&one->peak_memory_mb), text));
    ratio(stream, 7, compared, one->memory_ratio.ratio);
    fprintf(stream, "%9ld", skipped);
    if (one->failed) fprintf(stream, "  %d of %d failed", one->failed, c->seed_count);
    putc('\n', stream);
}

void amp_report_table(const amp_comparison *c, FILE *stream)
{
    fprintf(stream, "%-6s", "dtype");
    for (int i = 0; i < 2; ++i) fprintf(stream, "%14s%8s", amp_score_name(c, i), "points");
    fprintf(stream, "%10s%7s%13s%7s%10s%7s%9s\n", "images/s", "", "no loading", "", "peak MB", "", "skipped");
    for (int d = 0; d < c->dtype_count; ++d) print_dtype(stream, c, d);
    if (c->verdict_count) putc('\n', stream);
    for (int i = 0; i < c->verdict_count; ++i) fprintf(stream, "%s\n", c->verdict[i]);
}
