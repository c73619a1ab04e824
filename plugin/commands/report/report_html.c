/* The report as one HTML page that needs nothing else: no network, no fonts, no scripts. It is well-formed XML too. */
#include "../compare/comparison.h"

#include "../json.h"
#include "report_charts.h"
#include "report_style.h"
#include "report_tables.h"
#include "report_text.h"

static void write_head(FILE *stream, const amp_comparison *c)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n<meta charset=\"utf-8\"/>\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>", stream);
    amp_html_text(stream, c->title);
    fputs(" – Darknet AMP</title>\n<style>\n", stream);
    for (size_t i = 0; i < sizeof amp_report_style / sizeof *amp_report_style; ++i) fputs(amp_report_style[i], stream);
    fputs("</style>\n</head>\n", stream);
}

static void write_top(FILE *stream, const amp_comparison *c)
{
    fputs("<header>\n<h1>", stream);
    for (int d = 0; d < c->dtype_count; ++d) {
        if (d) fputs(d + 1 < c->dtype_count ? ", " : " and ", stream);
        amp_html_text(stream, c->dtypes[d]);
    }
    fputs(c->dtype_count > 1 ? " compared</h1>\n<p class=\"soft\">" : "</h1>\n<p class=\"soft\">", stream);
    amp_html_text(stream, c->title);
    fputs(c->date ? " · <span class=\"date\">" : "<span>", stream);
    amp_html_text(stream, c->date);
    fputs("</span></p>\n</header>\n", stream);
}

static void write_warnings(FILE *stream, const amp_comparison *c)
{
    int failed = amp_runs_in_state(c, AMP_RUN_FAILED), runs = c->dtype_count * c->seed_count;
    if (c->interrupted)
        fprintf(stream, "<p class=\"warning\"><strong>Interrupted:</strong> %d of %d runs are done. What follows is of the "
                "steps so far; the same command again continues.</p>\n", amp_runs_in_state(c, AMP_RUN_DONE), runs);
    if (failed)
        fprintf(stream, "<p class=\"warning\"><strong>%d of %d runs failed.</strong> Why is told in the table of runs.</p>\n",
                failed, runs);
}

static void write_verdict(FILE *stream, const amp_comparison *c)
{
    if (c->verdict_count < 1) return;
    fputs("<section class=\"verdict\" aria-labelledby=\"verdict\">\n<h2 id=\"verdict\">Verdict</h2>\n<ul>\n", stream);
    for (int i = 0; i < c->verdict_count; ++i) {
        char sentence[1200];
        snprintf(sentence, sizeof sentence, "%s", c->verdict[i]);
        fputs("<li>", stream);
        amp_html_text(stream, amp_report_minus(sentence, sizeof sentence));
        fputs("</li>\n", stream);
    }
    fputs("</ul>\n</section>\n", stream);
}

static void write_charts(FILE *stream, const amp_comparison *c, const amp_curves *curves)
{
    fputs("<h2>Charts</h2>\n", stream);
    amp_chart_legend(stream, c);
    fputs("<div class=\"charts\">\n", stream);
    amp_chart_loss(stream, c, curves);
    amp_chart_scale(stream, c, curves);
    for (int i = 0; i < 2; ++i) amp_chart_score(stream, c, i);
    amp_chart_throughput(stream, c);
    amp_chart_memory(stream, c);
    fputs("</div>\n", stream);
}

static void write_method(FILE *stream, const amp_comparison *c)
{
    fputs("<h2>How it was measured</h2>\n"
          "<p>The trainings of one seed begin with the same weights and see the same augmented batches in the same order, so "
          "that they differ by precision alone. They ran in turns of about a second, so that a busy machine met all of them alike; "
          "the time a training waited for its turn is not counted. Skipped steps change nothing in the network.</p>\n<p>", stream);
    if (c->kind == AMP_COMPARED_DETECTOR)
        fputs("mAP is the mean over the classes of the average precision on the validation images: at an overlap (IoU) of 0.5, "
              "and as the mean over 0.5, 0.55, … 0.95.", stream);
    else
        fputs("Top-1 and top-5: the share of validation images whose class comes first, or among the first five.", stream);
    fputs("</p>\n", stream);
}

static void write_page(FILE *stream, const amp_comparison *c, const amp_curves *curves)
{
    write_head(stream, c);
    fputs("<body>\n", stream);
    write_top(stream, c);
    fputs("<main>\n", stream);
    write_warnings(stream, c);
    write_verdict(stream, c);
    fputs("<h2>Results per dtype</h2>\n", stream);
    amp_html_dtypes(stream, c);
    write_charts(stream, c, curves);
    fputs("<h2>Results per run</h2>\n", stream);
    amp_html_runs(stream, c);
    fputs("<h2>Settings</h2>\n", stream);
    amp_html_facts(stream, c);
    write_method(stream, c);
    fputs("</main>\n<footer>Darknet AMP ", stream);
    amp_html_text(stream, c->version);
    fputs("</footer>\n</body>\n</html>\n", stream);
}

amp_status amp_report_html(const amp_comparison *c, const char *file, amp_error *error)
{
    return amp_curves_write(c, file, write_page, error);
}
