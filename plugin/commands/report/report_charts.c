/* The charts over the steps: loss, and loss scale with the skipped steps. */
#include "report_charts.h"

#include "report_text.h"
#include "svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One of the two drawings. */
typedef struct shape {
    const char *name;
    double width, height, left, right; /* the last two: margins */
    int x_ticks;
} shape;

static const shape shapes[] = { { "wide", 1000, 340, 62, 68, 10 }, { "narrow", 358, 280, 52, 68, 4 } };
enum { SHAPES = 2, TOP = 12, BOTTOM = 44, LABEL_HEIGHT = 17, STRIP = 22, STRIP_GAP = 18, SCALE_BOTTOM = 196 };

int amp_chart_slot(const char *dtype)
{
    static const char *const known[] = { "fp32", "bf16", "fp16", "stock" };
    int slot = 0;
    while (slot < 4 && strcmp(dtype, known[slot])) ++slot;
    return slot;
}

static const char *slot_class(const char *dtype, const char *more, char text[32])
{
    snprintf(text, 32, "k%d %s", amp_chart_slot(dtype), more);
    return text;
}

void amp_chart_head(FILE *stream, const char *class_name, const char *title, const char *explanation)
{
    fprintf(stream, "<figure class=\"%s\">\n<figcaption><h3>", class_name);
    amp_html_text(stream, title);
    fputs("</h3>\n<p>", stream);
    amp_html_text(stream, explanation);
    fputs("</p></figcaption>\n", stream);
}

void amp_chart_legend(FILE *stream, const amp_comparison *c)
{
    fputs("<ul class=\"legend\" aria-label=\"Legend\">\n", stream);
    for (int d = 0; d < c->dtype_count; ++d) {
        char class_name[32];
        amp_svg svg = { stream, 44, 14 };
        fputs("<li><svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 44 14\" width=\"44\" height=\"14\" "
              "aria-hidden=\"true\">", stream);
        amp_svg_line(&svg, 1, 7, 43, 7, slot_class(c->dtypes[d], "line", class_name));
        amp_svg_marker(&svg, 22, 7, 5, amp_chart_slot(c->dtypes[d]), slot_class(c->dtypes[d], "mark", class_name));
        fputs("</svg> ", stream);
        amp_html_text(stream, c->dtypes[d]);
        fputs(d == c->reference && c->dtype_count > 1 ? " (reference)</li>\n" : "</li>\n", stream);
    }
    fputs("</ul>\n", stream);
}

/* ---- what both have in common ---- */

static amp_axis step_axis(const amp_curves *curves, const shape *s)
{
    amp_axis axis = amp_axis_make(AMP_LINEAR, 0, (double)curves->steps, s->x_ticks, s->left, s->width - s->right);
    if (axis.step < 1) axis.step = 1;
    axis.low = 0;
    axis.high = curves->steps ? (double)curves->steps : 1;
    return axis;
}

static void draw_steps(amp_svg *svg, const amp_axis *x, double bottom)
{
    amp_svg_line(svg, x->from, bottom, x->to, bottom, "axis");
    amp_svg_x_axis(svg, x, bottom, bottom, 0);
    amp_svg_text(svg, (x->from + x->to) / 2, bottom + 38, AMP_MIDDLE, "name", "training step");
}

/* A point's place in the drawing; room holds count of x and then count of y. */
static void draw_curve(amp_svg *svg, const amp_axis *x, const amp_axis *y, const amp_points *points, int row, double *room,
                       const char *class_name)
{
    const double *value = amp_points_of(points, row);
    double *to_x = room, *to_y = room + points->count;
    int any = 0;
    for (size_t i = 0; i < points->count; ++i) {
        to_x[i] = amp_axis_at(x, points->step[i]);
        to_y[i] = amp_is_number(value[i]) ? amp_axis_at(y, value[i]) : (double)NAN;
        any |= amp_is_number(value[i]);
    }
    if (any) amp_svg_curve(svg, to_x, to_y, points->count, class_name);
}

/* ---- names at the lines' ends ---- */

typedef struct end_label { int dtype; double x, y, at; } end_label; /* at: y, moved away from the others */

static int by_height(const void *a, const void *b)
{
    double x = ((const end_label *)a)->y, y = ((const end_label *)b)->y;
    return (x > y) - (x < y);
}

static void part_labels(end_label *labels, int count, double top, double bottom)
{
    qsort(labels, (size_t)count, sizeof *labels, by_height);
    for (int i = 0; i < count; ++i) {
        labels[i].at = labels[i].y;
        if (labels[i].at < top) labels[i].at = top;
        if (i && labels[i].at < labels[i - 1].at + LABEL_HEIGHT) labels[i].at = labels[i - 1].at + LABEL_HEIGHT;
    }
    for (int i = count - 1; i >= 0; --i) {
        double most = i == count - 1 ? bottom : labels[i + 1].at - LABEL_HEIGHT;
        if (labels[i].at > most) labels[i].at = most;
    }
}

static void draw_labels(amp_svg *svg, const amp_comparison *c, end_label *labels, int count, const shape *s, double bottom)
{
    double edge = s->width - s->right;
    part_labels(labels, count, TOP + 4, bottom);
    for (int i = 0; i < count; ++i) {
        char class_name[32];
        const char *dtype = c->dtypes[labels[i].dtype];
        amp_svg_line(svg, labels[i].x, labels[i].y, edge + 6, labels[i].at, slot_class(dtype, "leader", class_name));
        amp_svg_marker(svg, edge + 12, labels[i].at, 4.5, amp_chart_slot(dtype), slot_class(dtype, "mark", class_name));
        amp_svg_text(svg, edge + 20, labels[i].at + 4, AMP_START, "label", dtype);
    }
}

/* ---- loss ---- */

/* What failed has often gone to 1e30 before: it may stretch the axis tenfold and no further, as the others would be a flat
 * line. *cut: it would have. 0: no run has a loss. */
static int loss_range(const amp_comparison *c, const amp_curves *curves, double *low, double *high, int *cut)
{
    double others = 0;
    int whole = 0, any = amp_points_range(&curves->loss, 0, c->dtype_count * c->seed_count, low, high);
    for (int r = 0; r < c->dtype_count * c->seed_count; ++r) {
        double l, h;
        if (c->runs[r].state == AMP_RUN_FAILED || !amp_points_range(&curves->loss, r, 1, &l, &h)) continue;
        if (!whole || h > others) others = h;
        whole = 1;
    }
    *cut = whole && others > 0 && *high > 10 * others;
    if (*cut) *high = 10 * others;
    return any;
}

static amp_axis loss_axis(const amp_comparison *c, const amp_curves *curves, double bottom, int *any, int *cut)
{
    double low = 0, high = 1;
    *any = loss_range(c, curves, &low, &high, cut);
    amp_scale_kind kind = low > 0 && high / low > 20 ? AMP_LOG10 : AMP_LINEAR;
    if (kind == AMP_LINEAR && low > 0 && low < .4 * high) low = 0;
    return amp_axis_make(kind, low, high, 6, bottom, TOP);
}

/* The last point of a dtype's line. 0: it has none. */
static int line_end(const amp_points *points, int row, const amp_axis *x, const amp_axis *y, end_label *out)
{
    for (size_t i = points->count; i-- > 0;)
        if (amp_is_number(amp_points_of(points, row)[i])) {
            out->x = amp_axis_at(x, points->step[i]);
            out->y = amp_axis_at(y, amp_points_of(points, row)[i]);
            return 1;
        }
    return 0;
}

static void draw_loss(FILE *stream, const amp_comparison *c, const amp_curves *curves, const shape *s, double *room,
                      end_label *labels)
{
    char id[32], what[256], class_name[32];
    int any, cut, count = 0;
    double bottom = s->height - BOTTOM;
    amp_axis x = step_axis(curves, s), y = loss_axis(c, curves, bottom, &any, &cut);
    snprintf(id, sizeof id, "loss-%s", s->name);
    snprintf(what, sizeof what, "Lines over %zu training steps, one per dtype and seed; their last values are in the table of "
             "runs.", curves->steps);
    amp_svg svg = amp_svg_begin(stream, id, s->name, s->width, s->height, "Loss over the training steps", what);
    amp_svg_y_axis(&svg, &y, x.from, x.to);
    draw_steps(&svg, &x, bottom);
    for (int r = 0; r < c->dtype_count * c->seed_count && c->seed_count > 1; ++r)
        draw_curve(&svg, &x, &y, &curves->loss, r, room, slot_class(c->runs[r].dtype, "seed", class_name));
    for (int d = 0; d < c->dtype_count; ++d) {
        draw_curve(&svg, &x, &y, &curves->middle, d, room, slot_class(c->dtypes[d], "line", class_name));
        labels[count].dtype = d;
        count += line_end(&curves->middle, d, &x, &y, &labels[count]);
    }
    draw_labels(&svg, c, labels, count, s, bottom);
    amp_svg_end(&svg);
}

void amp_chart_loss(FILE *stream, const amp_comparison *c, const amp_curves *curves)
{
    char explanation[320], points[80] = "", lines[120] = "";
    int any, cut;
    double *room = calloc(2 * curves->loss.count + 1, sizeof *room);
    end_label *labels = calloc((size_t)c->dtype_count + 1, sizeof *labels);
    amp_axis y = loss_axis(c, curves, 0, &any, &cut);
    if (curves->loss.per_point > 1)
        snprintf(points, sizeof points, " Each point is the median of %zu steps.", curves->loss.per_point);
    if (c->seed_count > 1) snprintf(lines, sizeof lines, " Thin lines are single seeds, the thick one is their median.");
    snprintf(explanation, sizeof explanation, "Of each batch, as Darknet prints it%s.%s%s%s",
             y.kind == AMP_LOG10 ? "; logarithmic axis" : "", points, lines,
             cut ? " A run that failed goes beyond the upper edge." : "");
    amp_chart_head(stream, "chart full", "Loss", any ? explanation : "No step has a loss that is a number.");
    for (int i = 0; i < SHAPES && any && room && labels; ++i) draw_loss(stream, c, curves, &shapes[i], room, labels);
    fputs("</figure>\n", stream);
    free(room);
    free(labels);
}

/* ---- loss scale ---- */

/* Of a step; NaN where it is none. */
static double scale_of(const amp_run *run, size_t i)
{
    double scale = (double)run->rows[i].scale;
    return amp_is_number(scale) && scale > 0 ? scale : (double)NAN;
}

/* Widens low..high by the scales of all runs of a dtype. 0: it had none but 1. */
static int scale_range(const amp_comparison *c, int dtype, double *low, double *high)
{
    double l = INFINITY, h = -INFINITY;
    for (int s = 0; s < c->seed_count; ++s) {
        const amp_run *run = amp_comparison_run(c, dtype, s);
        for (size_t i = 0; i < run->count; ++i) {
            double scale = scale_of(run, i);
            if (scale < l) l = scale;
            if (scale > h) h = scale;
        }
    }
    if (!(l <= h) || (l == 1 && h == 1)) return 0;
    if (l < *low) *low = l;
    if (h > *high) *high = h;
    return 1;
}

static int moves_scale(const amp_comparison *c, int dtype)
{
    double low = INFINITY, high = -INFINITY;
    return scale_range(c, dtype, &low, &high);
}

static long skipped_of(const amp_comparison *c, int dtype)
{
    long sum = 0;
    for (int s = 0; s < c->seed_count; ++s) {
        const amp_run *run = amp_comparison_run(c, dtype, s);
        for (size_t i = 0; i < run->count; ++i) sum += run->rows[i].found_inf != 0;
    }
    return sum;
}

/* Where a step is drawn: there are two columns in a unit of the drawing, which is all that can be told apart. */
static int column_of(const amp_axis *x, size_t step) { return (int)lround(2 * amp_axis_at(x, (double)step)); }

/* The steps from `first` on that share its column: their first, highest, lowest and last heights in the drawing, NaN without a
 * scale. Returns where the next column begins. */
static size_t column_heights(const amp_run *run, const amp_axis *x, const amp_axis *y, size_t first, double height[4])
{
    size_t i = first;
    height[0] = (double)NAN;
    for (; i < run->count && column_of(x, i + 1) == column_of(x, first + 1); ++i) {
        double scale = scale_of(run, i), here = amp_axis_at(y, scale);
        if (!amp_is_number(scale)) continue;
        if (!amp_is_number(height[0])) height[0] = height[1] = height[2] = here;
        if (here < height[1]) height[1] = here;
        if (here > height[2]) height[2] = here;
        height[3] = here;
    }
    return i;
}

/* A line of steps with all changes that can be seen: the first scale, and what goes up and down within a column, are in it. */
static void draw_scale_line(amp_svg *svg, const amp_axis *x, const amp_axis *y, const amp_run *run, const char *class_name)
{
    double height[4], pen = 0, at = 0;
    int is_open = 0;
    fprintf(svg->stream, "<path class=\"%s\" d=\"", class_name);
    for (size_t i = 0, end; i < run->count; i = end) {
        end = column_heights(run, x, y, i, height);
        if (!amp_is_number(height[0])) {
            if (is_open) fprintf(svg->stream, "H%g", at + .5);
            is_open = 0;
            continue;
        }
        at = .5 * column_of(x, i + 1);
        if (!is_open) fprintf(svg->stream, "M%g %.1f", at, pen = height[0]);
        for (int k = 0, is_there = !is_open; k < 4; ++k) {
            if (!(height[k] < pen) && !(height[k] > pen)) continue;
            if (!is_there++) fprintf(svg->stream, "H%g", at);
            fprintf(svg->stream, "V%.1f", pen = height[k]);
        }
        is_open = 1;
    }
    if (is_open) fprintf(svg->stream, "H%g", at + .5);
    fputs("\"/>\n", svg->stream);
}

/* A strip with a tick for each step of this dtype that was skipped, whatever the seed; those of one column are one. */
static void draw_skips(amp_svg *svg, const amp_comparison *c, const amp_axis *x, int dtype, double y)
{
    char class_name[32], count[32], drawn[2048] = { 0 };
    amp_svg_rectangle(svg, x->from, y, x->to - x->from, STRIP - 6, "strip");
    fprintf(svg->stream, "<path class=\"%s\" d=\"", slot_class(c->dtypes[dtype], "skip", class_name));
    for (int s = 0; s < c->seed_count; ++s) {
        const amp_run *run = amp_comparison_run(c, dtype, s);
        for (size_t i = 0; i < run->count; ++i) {
            int column = column_of(x, i + 1);
            if (!run->rows[i].found_inf || drawn[column]++) continue;
            fprintf(svg->stream, "M%g %.1fv%d", .5 * column, y + 1, STRIP - 8);
        }
    }
    fputs("\"/>\n", svg->stream);
    amp_svg_text(svg, x->from - 8, y + 12, AMP_END, "label", c->dtypes[dtype]);
    snprintf(count, sizeof count, "%ld", skipped_of(c, dtype));
    amp_svg_text(svg, x->to + 8, y + 12, AMP_START, "label", count);
}

/* *any: whether a dtype's scale was ever another than 1. */
static amp_axis scale_axis(const amp_comparison *c, double bottom, int *any)
{
    double low = INFINITY, high = -INFINITY;
    *any = 0;
    for (int d = 0; d < c->dtype_count; ++d) *any |= scale_range(c, d, &low, &high);
    return amp_axis_make(AMP_LOG2, *any ? low : 1, *any ? high : 1, 6, bottom, TOP);
}

/* Where the line of a dtype's first seed that has a scale ends. */
static int scale_end(const amp_comparison *c, int dtype, const amp_axis *x, const amp_axis *y, end_label *out)
{
    for (int s = 0; s < c->seed_count; ++s) {
        const amp_run *run = amp_comparison_run(c, dtype, s);
        for (size_t i = run->count; i-- > 0;) {
            if (!amp_is_number(scale_of(run, i))) continue;
            *out = (end_label){ .dtype = dtype, .x = amp_axis_at(x, (double)i + 1), .y = amp_axis_at(y, scale_of(run, i)) };
            return 1;
        }
    }
    return 0;
}

static void draw_scale(FILE *stream, const amp_comparison *c, const amp_curves *curves, const shape *s, end_label *labels)
{
    char id[32], class_name[32];
    int any, count = 0, strips = 0;
    for (int d = 0; d < c->dtype_count; ++d) strips += skipped_of(c, d) > 0;
    double bottom = SCALE_BOTTOM;
    amp_axis x = step_axis(curves, s), y = scale_axis(c, bottom, &any);
    if (!any) bottom = 0;
    double strips_top = bottom + (any ? STRIP_GAP : 4), end = strips ? strips_top + strips * STRIP : bottom;
    snprintf(id, sizeof id, "scale-%s", s->name);
    amp_svg svg = amp_svg_begin(stream, id, s->name, s->width, end + BOTTOM, "Loss scale over the training steps, and skipped "
                                "steps", "The number of skipped steps is in the tables too.");
    if (any) amp_svg_y_axis(&svg, &y, x.from, x.to);
    for (int d = 0; d < c->dtype_count && any; ++d) {
        if (!moves_scale(c, d)) continue;
        for (int k = 0; k < c->seed_count; ++k)
            draw_scale_line(&svg, &x, &y, amp_comparison_run(c, d, k), slot_class(c->dtypes[d], "scale", class_name));
        count += scale_end(c, d, &x, &y, &labels[count]);
    }
    draw_labels(&svg, c, labels, count, s, bottom);
    for (int d = 0; d < c->dtype_count; ++d) {
        if (!skipped_of(c, d)) continue;
        draw_skips(&svg, c, &x, d, strips_top);
        strips_top += STRIP;
    }
    draw_steps(&svg, &x, end);
    amp_svg_end(&svg);
}

/* "fp32, bf16": those without a skipped step, or with scale 1 all the time. */
static void name_dtypes(const amp_comparison *c, int skipping, char *text, size_t size)
{
    size_t at = 0;
    text[0] = 0;
    for (int d = 0; d < c->dtype_count && at + 20 < size; ++d) {
        if (skipping ? skipped_of(c, d) == 0 : !moves_scale(c, d))
            at += (size_t)snprintf(text + at, size - at, "%s%.16s", at ? ", " : "", c->dtypes[d]);
    }
}

void amp_chart_scale(FILE *stream, const amp_comparison *c, const amp_curves *curves)
{
    char explanation[512], constant[128], clean[128];
    int any, skips = 0;
    end_label *labels = calloc((size_t)c->dtype_count + 1, sizeof *labels);
    scale_axis(c, 0, &any);
    for (int d = 0; d < c->dtype_count; ++d) skips += skipped_of(c, d) > 0;
    name_dtypes(c, 0, constant, sizeof constant);
    name_dtypes(c, 1, clean, sizeof clean);
    int at = snprintf(explanation, sizeof explanation, any ? "A line per seed; the axis doubles."
                                                          : "The loss scale was 1 all the time.");
    if (any && constant[0])
        at += snprintf(explanation + at, sizeof explanation - (size_t)at, " Scale 1 all the time: %s.", constant);
    if (skips) at += snprintf(explanation + at, sizeof explanation - (size_t)at, " Strips below: steps that were skipped because "
                              "a gradient was inf or NaN, and how many over all seeds.");
    if (skips && clean[0]) snprintf(explanation + at, sizeof explanation - (size_t)at, " None: %s.", clean);
    if (!skips) snprintf(explanation + at, sizeof explanation - (size_t)at, " No step was skipped.");
    amp_chart_head(stream, "chart full", "Loss scale and skipped steps", explanation);
    for (int i = 0; i < SHAPES && (any || skips) && labels; ++i) draw_scale(stream, c, curves, &shapes[i], labels);
    fputs("</figure>\n", stream);
    free(labels);
}
