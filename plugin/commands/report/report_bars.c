/* The charts with a row per dtype: scores as dots, throughput and memory as bars. */
#include "report_charts.h"

#include "report_text.h"
#include "svg.h"

#include <math.h>

typedef struct shape { const char *name; double width; int ticks; } shape;
static const shape shapes[] = { { "wide", 490, 5 }, { "narrow", 358, 4 } };
enum { SHAPES = 2, TOP = 8, ROW = 46, BAR = 14, BOTTOM = 44, LEFT = 80, RIGHT = 112, SCORE_RIGHT = 90, BREAK = 20 };

static const char *slot_class(const char *dtype, const char *more, char text[32])
{
    snprintf(text, 32, "k%d %s", amp_chart_slot(dtype), more);
    return text;
}

static double row_middle(int dtype) { return TOP + ROW * (dtype + .5); }

static void draw_row_names(amp_svg *svg, const amp_comparison *c)
{
    for (int d = 0; d < c->dtype_count; ++d) {
        char class_name[32];
        amp_svg_marker(svg, LEFT - 20, row_middle(d), 4.5, amp_chart_slot(c->dtypes[d]),
                       slot_class(c->dtypes[d], "mark", class_name));
        amp_svg_text(svg, LEFT - 31, row_middle(d) + 4, AMP_END, "label", c->dtypes[d]);
    }
}

static amp_svg begin(FILE *stream, const amp_comparison *c, const shape *s, const char *kind, const char *title,
                     const char *what)
{
    char id[48];
    snprintf(id, sizeof id, "%s-%s", kind, s->name);
    amp_svg svg = amp_svg_begin(stream, id, s->name, s->width, (double)(TOP + ROW * c->dtype_count + BOTTOM), title, what);
    draw_row_names(&svg, c);
    return svg;
}

static void draw_x(amp_svg *svg, const amp_comparison *c, const amp_axis *x, const char *name)
{
    double bottom = TOP + ROW * c->dtype_count;
    amp_svg_x_axis(svg, x, TOP, bottom, 1);
    amp_svg_line(svg, x->from, bottom, x->to, bottom, "axis");
    amp_svg_text(svg, (x->from + x->to) / 2, bottom + 38, AMP_MIDDLE, "name", name);
}

/* ---- scores ---- */

/* In percent; at least two points wide, and within 0..100. 0: there is no score. */
static int score_range(const amp_comparison *c, int score, double *low, double *high)
{
    int any = 0;
    for (int r = 0; r < c->dtype_count * c->seed_count; ++r) {
        double value = 100 * c->runs[r].score[score];
        if (!amp_run_has_score(&c->runs[r]) || !amp_is_number(value)) continue;
        if (!any || value < *low) *low = value;
        if (!any || value > *high) *high = value;
        any = 1;
    }
    if (any && *high - *low < 2) {
        double middle = (*low + *high) / 2;
        *low = middle - 1 > 0 ? middle - 1 : 0;
        *high = *low + 2 < 100 ? *low + 2 : 100;
        if (*high == 100) *low = 98;
    }
    return any;
}

static amp_axis score_axis(const amp_comparison *c, int score, const shape *s, int *any)
{
    double low = 0, high = 100;
    *any = score_range(c, score, &low, &high);
    if (low < .3 * high) low = 0;
    amp_axis axis = amp_axis_make(AMP_LINEAR, low, high, s->ticks, LEFT, s->width - SCORE_RIGHT);
    if (axis.low > 0) axis.from += BREAK;
    return axis;
}

/* The axis does not begin at 0: it goes on to the left of its first tick, with a gap that nobody overlooks and no mark lies on. */
static void draw_break(amp_svg *svg, double x, double y)
{
    amp_svg_line(svg, x - BREAK, y, x - 12, y, "axis");
    amp_svg_line(svg, x - 15, y + 6, x - 9, y - 6, "axis");
    amp_svg_line(svg, x - 9, y + 6, x - 3, y - 6, "axis");
    amp_svg_line(svg, x - 6, y, x, y, "axis");
}

static void draw_score_row(amp_svg *svg, const amp_comparison *c, const amp_axis *x, int dtype, int score)
{
    char class_name[32], number[AMP_REPORT_NUMBER], spread[64];
    const amp_mean *mean = &c->summaries[dtype].score[score];
    double y = row_middle(dtype), low = 0, high = 0;
    int count = 0;
    for (int s = 0; s < c->seed_count; ++s) {
        const amp_run *run = amp_comparison_run(c, dtype, s);
        double value = 100 * run->score[score];
        if (!amp_run_has_score(run) || !amp_is_number(value)) continue;
        if (!count || value < low) low = value;
        if (!count || value > high) high = value;
        ++count;
    }
    if (count > 1)
        amp_svg_line(svg, amp_axis_at(x, low), y, amp_axis_at(x, high), y, slot_class(c->dtypes[dtype], "range", class_name));
    for (int s = 0; s < c->seed_count; ++s) {
        const amp_run *run = amp_comparison_run(c, dtype, s);
        if (!amp_run_has_score(run) || !amp_is_number(run->score[score])) continue;
        amp_svg_marker(svg, amp_axis_at(x, 100 * run->score[score]), y, 4.5, amp_chart_slot(c->dtypes[dtype]),
                       slot_class(c->dtypes[dtype], "dot", class_name));
    }
    double value = 100 * amp_mean_value(mean);
    if (amp_is_number(value)) {
        double at = amp_axis_at(x, value);
        amp_svg_line(svg, at, y - 13, at, y + 13, slot_class(c->dtypes[dtype], "mean", class_name));
    }
    amp_svg_text(svg, x->to + 10, y + (mean->count > 1 ? -2 : 4), AMP_START, "value",
                 amp_report_percent(amp_mean_value(mean), number));
    if (mean->count < 2 || !amp_is_number(mean->spread)) return;
    snprintf(spread, sizeof spread, "spread %.2f", 100 * mean->spread);
    amp_svg_text(svg, x->to + 10, y + 13, AMP_START, "tick", spread);
}

void amp_chart_score(FILE *stream, const amp_comparison *c, int score)
{
    char explanation[256], title[32], kind[32], name[64], begins[64] = "";
    int any;
    amp_axis x = score_axis(c, score, &shapes[0], &any);
    if (any && x.low > 0) snprintf(begins, sizeof begins, " The axis begins at %g %%, not at 0.", x.low);
    snprintf(title, sizeof title, "%s", amp_score_name(c, score));
    snprintf(explanation, sizeof explanation, any ? "A mark per seed, a bar at their mean.%s"
                                                  : "No run has been validated.%s", begins);
    amp_chart_head(stream, "chart", title, explanation);
    snprintf(kind, sizeof kind, "score%d", score);
    snprintf(name, sizeof name, "%s in %%", title);
    for (int i = 0; i < SHAPES && any; ++i) {
        double low = x.low;
        x = score_axis(c, score, &shapes[i], &any);
        if (x.low != low) { /* the caption is about both */
            x.low = low;
            while (x.high - x.low > 8 * x.step) x.step *= 2;
        }
        amp_svg svg = begin(stream, c, &shapes[i], kind, title, "The means and spreads are in the table of dtypes.");
        draw_x(&svg, c, &x, name);
        if (x.low > 0) draw_break(&svg, x.from, TOP + ROW * c->dtype_count);
        for (int d = 0; d < c->dtype_count; ++d) draw_score_row(&svg, c, &x, d, score);
        amp_svg_end(&svg);
    }
    fputs("</figure>\n", stream);
}

/* ---- bars ---- */

static double positive(double value) { return amp_is_number(value) && value > 0 ? value : 0; }

/* With the ratio to the reference behind it; nothing measured: a dash. */
static void draw_bar(amp_svg *svg, const amp_comparison *c, const amp_axis *x, int dtype, double y, double value, double ratio,
                     const char *kind)
{
    char class_name[32], number[AMP_REPORT_NUMBER], text[96];
    double length = positive(value) > 0 ? amp_axis_at(x, value) - x->from : 0;
    if (length > 0) amp_svg_rectangle(svg, x->from, y, length, BAR, slot_class(c->dtypes[dtype], kind, class_name));
    if (dtype != c->reference && amp_is_number(ratio) && ratio > 0 && length > 0)
        snprintf(text, sizeof text, "%s (%.2f×)", amp_report_amount(value, number), ratio);
    else
        snprintf(text, sizeof text, "%s", amp_report_amount(value, number));
    amp_svg_text(svg, x->from + length + 6, y + 11, AMP_START, "value", text);
}


static void draw_throughput(FILE *stream, const amp_comparison *c, const shape *s, double most)
{
    amp_axis x = amp_axis_make(AMP_LINEAR, 0, most, s->ticks, LEFT, s->width - RIGHT);
    amp_svg svg = begin(stream, c, s, "throughput", "Images per second", "The numbers are in the table of dtypes.");
    draw_x(&svg, c, &x, "images/s");
    for (int d = 0; d < c->dtype_count; ++d) {
        const amp_dtype_summary *one = &c->summaries[d];
        draw_bar(&svg, c, &x, d, row_middle(d) - BAR - 2, amp_mean_value(&one->images_per_second),
                 one->speedup.ratio, "bar");
        draw_bar(&svg, c, &x, d, row_middle(d) + 2, amp_mean_value(&one->compute_images_per_second),
                 one->compute_speedup.ratio, "bar light");
    }
    amp_svg_end(&svg);
}

void amp_chart_throughput(FILE *stream, const amp_comparison *c)
{
    double most = 0;
    for (int d = 0; d < c->dtype_count; ++d) {
        double two[] = { positive(amp_mean_value(&c->summaries[d].images_per_second)),
                         positive(amp_mean_value(&c->summaries[d].compute_images_per_second)) };
        for (int i = 0; i < 2; ++i) if (two[i] > most) most = two[i];
    }
    amp_chart_head(stream, "chart", "Throughput", most > 0 ? "Full bars: images per second with loading. Light bars: without. "
                   "In brackets: times the reference." : "No run got far enough to measure it.");
    for (int i = 0; i < SHAPES && most > 0; ++i) draw_throughput(stream, c, &shapes[i], most);
    fputs("</figure>\n", stream);
}

void amp_chart_memory(FILE *stream, const amp_comparison *c)
{
    double most = 0;
    for (int d = 0; d < c->dtype_count; ++d) {
        double value = positive(amp_mean_value(&c->summaries[d].peak_memory_mb));
        if (value > most) most = value;
    }
    amp_chart_head(stream, "chart", "Peak memory", most > 0 ? "In MB, of the GPU or, without one, of the whole process. In "
                   "brackets: times the reference." : "No run got far enough to measure it.");
    for (int i = 0; i < SHAPES && most > 0; ++i) {
        const shape *s = &shapes[i];
        amp_axis x = amp_axis_make(AMP_LINEAR, 0, most, s->ticks, LEFT, s->width - RIGHT);
        amp_svg svg = begin(stream, c, s, "memory", "Peak memory in MB", "The numbers are in the table of dtypes.");
        draw_x(&svg, c, &x, "MB");
        for (int d = 0; d < c->dtype_count; ++d)
            draw_bar(&svg, c, &x, d, row_middle(d) - BAR / 2., amp_mean_value(&c->summaries[d].peak_memory_mb),
                     c->summaries[d].memory_ratio.ratio, "bar");
        amp_svg_end(&svg);
    }
    fputs("</figure>\n", stream);
}
