/* Writes a comparison as an HTML page with charts: the errors of outputs, deltas and weights' gradients by
 * layer, on a logarithmic axis. Lines show the errors of the whole pass, dots the errors that each layer adds
 * itself. */
#include "probe_comparison.h"

#include <math.h>

enum { WIDTH = 900, HEIGHT = 240, LEFT = 60, TOP = 30, BOTTOM = 40, LEAST_EXPONENT = -9, MOST_EXPONENT = 1,
       LABELLED_LAYERS = 30 };

static const struct { amp_dtype dtype; const char *name, *color; } lines[] = {
    { AMP_FP32, "fp32 against Darknet's own code", "#3465a4" }, { AMP_BF16, "bf16 against fp32", "#cc5500" },
    { AMP_FP16, "fp16 against fp32", "#4e9a06" } };
enum { LINES = sizeof lines / sizeof *lines };

static double x_of(const amp_probe_comparison *c, int layer)
{
    return LEFT + (layer + .5) * WIDTH / c->network.count;
}

/* Errors beyond the axis, and inf, are drawn at its ends. */
static double y_of(double error)
{
    double exponent = error > 0 ? log10(error) : LEAST_EXPONENT;
    exponent = fmin(fmax(exponent, LEAST_EXPONENT), MOST_EXPONENT);
    return TOP + HEIGHT * (MOST_EXPONENT - exponent) / (MOST_EXPONENT - LEAST_EXPONENT);
}

static void draw_axes(const amp_probe_comparison *c, FILE *out)
{
    for (int e = LEAST_EXPONENT; e <= MOST_EXPONENT; e++) {
        double y = y_of(pow(10, e));
        fprintf(out, "<path d='M%d %.1fh%d' stroke='#ddd'/><text x='%d' y='%.1f' text-anchor='end'>1e%d"
                "</text>\n", LEFT, y, WIDTH, LEFT - 6, y + 4, e);
    }
    int every = c->network.count / LABELLED_LAYERS + 1;
    for (int i = 0; i < c->network.count; i += every)
        fprintf(out, "<text x='%.1f' y='%d' text-anchor='middle'>%d</text>\n", x_of(c, i),
                TOP + HEIGHT + 16, i);
    fprintf(out, "<text x='%d' y='%d' text-anchor='middle'>layer</text>\n", LEFT + WIDTH / 2,
            TOP + HEIGHT + 34);
}

static void draw_line(const amp_probe_comparison *c, const amp_probe_run *r, amp_trace_kind kind,
                      const char *color, FILE *out)
{
    fprintf(out, "<polyline fill='none' stroke='%s' points='", color);
    for (int i = 0; i < c->network.count; i++) {
        double error = amp_difference_error(&r->whole[i][kind]);
        if (!isnan(error)) fprintf(out, " %.1f,%.1f", x_of(c, i), y_of(error));
    }
    fputs("'/>\n", out);
    for (int i = 0; i < c->network.count; i++) {
        double error = amp_difference_error(&r->added[i][kind]);
        if (!isnan(error))
            fprintf(out, "<circle cx='%.1f' cy='%.1f' r='2.5' fill='%s'><title>layer %d [%s]: adds %.2g, has "
                    "%.2g</title></circle>\n", x_of(c, i), y_of(error), color, i, c->network.layers[i].type,
                    error, amp_difference_error(&r->whole[i][kind]));
    }
}

static void draw(const amp_probe_comparison *c, amp_trace_kind kind, FILE *out)
{
    int width = LEFT + WIDTH + 20, height = TOP + HEIGHT + BOTTOM;
    fprintf(out, "<h2>Error of the %s, by layer</h2>\n<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 "
            "%d %d' width='%d' height='%d' font-family='sans-serif' font-size='11'>\n", amp_trace_names[kind],
            width, height, width, height);
    draw_axes(c, out);
    for (int k = 0, at = LEFT; k < LINES; k++) {
        const amp_probe_run *r = &c->runs[lines[k].dtype];
        if (!r->ran) continue;
        fprintf(out, "<text x='%d' y='16' fill='%s'>%s</text>\n", at, lines[k].color, lines[k].name);
        at += 220;
        draw_line(c, r, kind, lines[k].color, out);
    }
    fputs("</svg>\n", out);
}

void amp_probe_write_page(FILE *out, const void *comparison)
{
    const amp_probe_comparison *c = comparison;
    fputs("<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'><title>", out);
    amp_html_text(out, c->cfg);
    fputs(" layer by layer</title><style>body{font-family:sans-serif;max-width:1000px;margin:2em auto}"
          "pre{overflow-x:auto;font-size:12px}</style></head><body>\n<h1>", out);
    amp_html_text(out, c->cfg);
    fputs(" in fp32, bf16 and fp16, layer by layer</h1>\n<pre>\n", out);
    amp_html_written(out, amp_probe_print_verdict, c);
    fputs("</pre>\n<p>Lines show the error of the whole pass, and dots the error that each layer adds "
          "itself. The axis is logarithmic; values beyond its ends are drawn at the ends.</p>\n", out);
    for (int kind = AMP_TRACE_OUTPUT; kind <= AMP_TRACE_WEIGHTS; kind++) draw(c, (amp_trace_kind)kind, out);
    fputs("<h2>All figures</h2>\n<pre>", out);
    amp_html_written(out, amp_probe_print_comparison, c);
    fputs("</pre>\n</body></html>\n", out);
}
