/* Draws a training's steps in three panels with logarithmic axes. Consecutive steps form at most COLUMNS
 * groups. A line shows the groups' medians, and a band shows their smallest and largest values. Values that
 * are not finite, or not above 0, are left out. */
#include "log.h"

#include "../../host/program/failure.h"
#include "../json.h"
#include "../../amp/statistics.h"

#include <math.h>

enum { COLUMNS = 800, HEIGHT = 160, LEFT = 70, TOP = 50, GAP = 50 };

typedef struct panel {
    const char *title, *color;
    double (*value)(const amp_log_row *);
} panel;

static double loss_of(const amp_log_row *row) { return row->loss; }
static double norm_of(const amp_log_row *row) { return row->found_inf ? NAN : row->grad_norm; }
static double scale_of(const amp_log_row *row) { return row->scale; }

static const panel panels[] = { { "loss", "#3465a4", loss_of }, { "gradient norm", "#4e9a06", norm_of },
                                { "loss scale", "#75507b", scale_of } };
enum { PANELS = sizeof panels / sizeof *panels };

typedef struct group { double least, median, most; } group;

static int is_drawn(double value) { return isfinite(value) && value > 0; }

/* Groups a panel's values as decimal logarithms. Returns the number of groups. *low, *high: the axis's
 * ends. */
static size_t group_rows(const panel *p, const amp_log_row *rows, size_t count, group groups[COLUMNS],
                         double *low, double *high)
{
    size_t made = count < COLUMNS ? count : COLUMNS;
    double *values = amp_allocated(malloc((count / made + 2) * sizeof *values));
    *low = HUGE_VAL;
    *high = -HUGE_VAL;
    for (size_t g = 0; g < made; g++) {
        size_t n = 0;
        for (size_t i = g * count / made; i < (g + 1) * count / made; i++) {
            double value = p->value(&rows[i]);
            if (is_drawn(value)) values[n++] = log10(value);
        }
        groups[g].median = amp_median(values, n); /* also sorts them */
        groups[g].least = n ? values[0] : NAN;
        groups[g].most = n ? values[n - 1] : NAN;
        if (n) *low = fmin(*low, values[0]), *high = fmax(*high, values[n - 1]);
    }
    free(values);
    if (*low > *high) *low = *high = 0;
    if (*high - *low < .2) *low -= .1, *high += .1; /* a line of equal values is drawn in the middle */
    return made;
}

static double x_of(size_t g, size_t made)
{
    return LEFT + (made < 2 ? COLUMNS / 2. : (double)g * COLUMNS / (double)(made - 1));
}

/* Writes a point for each group that has a value. which: -1: the group's smallest value; 0: its median; 1:
 * its largest value. back: 1: from the last group to the first. */
static void draw_points(FILE *out, const group *groups, size_t made, int which, int back, double bottom,
                        double low, double high)
{
    for (size_t i = 0; i < made; i++) {
        size_t g = back ? made - 1 - i : i;
        double value = which < 0 ? groups[g].least : which ? groups[g].most : groups[g].median;
        if (!isnan(value))
            fprintf(out, " %.1f,%.1f", x_of(g, made), bottom - HEIGHT * (value - low) / (high - low));
    }
}

static void draw_panel(FILE *out, const panel *p, double top, const amp_log_row *rows, size_t count)
{
    group groups[COLUMNS];
    double low, high, bottom = top + HEIGHT;
    size_t made = group_rows(p, rows, count, groups, &low, &high);
    fprintf(out, "<text x='%d' y='%g' font-weight='bold'>%s</text>\n", LEFT, top - 6, p->title);
    fprintf(out, "<rect x='%d' y='%g' width='%d' height='%d' fill='none' stroke='#888'/>\n", LEFT, top,
            COLUMNS, HEIGHT);
    for (int k = 0; k <= 4; k++) {
        double at = low + k * (high - low) / 4, y = bottom - k * HEIGHT / 4.;
        fprintf(out, "<text x='%d' y='%g' text-anchor='end'>%.3g</text><path d='M%d %gh%d' stroke='#ddd'/>\n",
                LEFT - 6, y + 4, pow(10, at), LEFT, y, COLUMNS);
    }
    fprintf(out, "<polygon fill='%s' fill-opacity='.25' points='", p->color);
    draw_points(out, groups, made, 1, 0, bottom, low, high);
    draw_points(out, groups, made, -1, 1, bottom, low, high);
    fprintf(out, "'/>\n<polyline fill='none' stroke='%s' points='", p->color);
    draw_points(out, groups, made, 0, 0, bottom, low, high);
    fprintf(out, "'/>\n");
}

/* Draws a mark in each column that has a skipped step. */
static void draw_skipped(FILE *out, double top, const amp_log_row *rows, size_t count)
{
    size_t made = count < COLUMNS ? count : COLUMNS;
    for (size_t g = 0; g < made; g++) {
        size_t i = g * count / made, end = (g + 1) * count / made;
        while (i < end && !amp_log_is_skipped(&rows[i])) i++;
        if (i < end) fprintf(out, "<path d='M%.1f %gv%d' stroke='#cc0000'/>\n", x_of(g, made), top, HEIGHT);
    }
}

void amp_log_draw(FILE *out, const char *name, const amp_log_row *rows, size_t count)
{
    const int width = LEFT + COLUMNS + 30, height = TOP + PANELS * (HEIGHT + GAP);
    fprintf(out, "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' width='%d' height='%d' "
            "font-family='sans-serif' font-size='12'>\n<rect width='100%%' height='100%%' fill='white'/>\n"
            "<text x='%d' y='20' font-size='14'>", width, height, width, height, LEFT);
    amp_html_text(out, name);
    fprintf(out, ": iterations %ld to %ld; red: skipped steps</text>\n", rows[0].iteration,
            rows[count - 1].iteration);
    for (int k = 0; k < PANELS; k++) {
        double top = TOP + k * (HEIGHT + GAP);
        if (k == PANELS - 1) draw_skipped(out, top, rows, count);
        draw_panel(out, &panels[k], top, rows, count);
    }
    fprintf(out, "</svg>\n");
}
