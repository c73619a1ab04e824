/* Charts as plain SVG: axes and their ticks, text, lines, bars and markers, written to a stream as they come. What is drawn
 * has classes and no colours: those are the style sheet's of the page around it (report_style.h). */
#ifndef AMP_COMMANDS_REPORT_SVG_H
#define AMP_COMMANDS_REPORT_SVG_H

#include <stddef.h>
#include <stdio.h>

/* ---- axes ---- */

enum { AMP_TICKS = 32 }; /* an axis has fewer */

typedef enum amp_scale_kind { AMP_LINEAR, AMP_LOG10, AMP_LOG2 } amp_scale_kind;

/* Values low..high lie at from..to in the drawing; low < high. */
typedef struct amp_axis {
    amp_scale_kind kind;
    double low, high, from, to;
    double step;        /* between ticks; AMP_LOG2: doublings */
} amp_axis;

/* An axis for the values low..high that ends at ticks, of which there are about `ticks`. Not finite, or high < low: 0..1. Of
 * one value alone it gets room on both sides. A logarithmic axis needs values above 0, AMP_LOG10 a ratio of 5 too, and is
 * linear without. AMP_LOG10 does not end at ticks, as they would be far. */
amp_axis amp_axis_make(amp_scale_kind kind, double low, double high, int ticks, double from, double to);
double amp_axis_at(const amp_axis *, double value); /* in the drawing; not beyond its ends */
int amp_axis_ticks(const amp_axis *, double ticks[AMP_TICKS]);
/* What stands at a tick: with as many decimals as the step needs; 20k; AMP_LOG2: 1024, or 2¹⁷ on an axis with longer values. */
const char *amp_axis_label(const amp_axis *, double tick, char text[32]);

/* ---- drawing ---- */

typedef struct amp_svg {
    FILE *stream;
    double width, height;
} amp_svg;

/* class_name goes into the <svg> tag. id must be the page's only one; title and what (a sentence or more for those who do not
 * see the chart) are escaped. */
amp_svg amp_svg_begin(FILE *, const char *id, const char *class_name, double width, double height, const char *title,
                      const char *what);
void amp_svg_end(amp_svg *);

typedef enum amp_anchor { AMP_START, AMP_MIDDLE, AMP_END } amp_anchor;
/* y is the text's base line. The text is escaped. */
void amp_svg_text(amp_svg *, double x, double y, amp_anchor, const char *class_name, const char *text);
void amp_svg_line(amp_svg *, double x0, double y0, double x1, double y1, const char *class_name);
void amp_svg_rectangle(amp_svg *, double x, double y, double width, double height, const char *class_name);
/* Shapes differ by kind, so that they can be told apart without colours: circle, square, triangle, diamond, cross. */
void amp_svg_marker(amp_svg *, double x, double y, double radius, int kind, const char *class_name);
/* A line through points; where y is NaN it is broken. */
void amp_svg_curve(amp_svg *, const double *x, const double *y, size_t count, const char *class_name);

/* Grid lines across the area at the ticks, with their labels to the left (of y) or below (x). */
void amp_svg_y_axis(amp_svg *, const amp_axis *, double left, double right);
void amp_svg_x_axis(amp_svg *, const amp_axis *, double top, double bottom, int grid);

#endif
