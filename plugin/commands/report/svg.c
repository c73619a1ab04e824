/* Charts as plain SVG. */
#include "svg.h"

#include "report_text.h"

#include <math.h>
#include <string.h>

/* ---- axes ---- */

/* 1, 2 or 5 times a power of ten: the least that is at least `rough`. */
static double nice_step(double rough)
{
    double power = pow(10, floor(log10(rough)));
    static const double nice[] = { 1, 2, 5, 10 };
    for (int i = 0; i < 3; ++i)
        if (nice[i] * power >= rough * (1 - 1e-9)) return nice[i] * power;
    return 10 * power;
}

static void make_linear(amp_axis *axis, int ticks)
{
    double middle = fabs(axis->low) > fabs(axis->high) ? fabs(axis->low) : fabs(axis->high);
    if (!(axis->high - axis->low > 1e-9 * middle)) {
        double room = middle > 0 ? .05 * middle : .5;
        axis->low -= room;
        axis->high += room;
    }
    axis->step = nice_step((axis->high / ticks - axis->low / ticks));
    axis->low = floor(axis->low / axis->step + 1e-6) * axis->step;
    axis->high = ceil(axis->high / axis->step - 1e-6) * axis->step;
}

static void make_log2(amp_axis *axis, int ticks)
{
    double low = floor(log2(axis->low) + 1e-9), high = ceil(log2(axis->high) - 1e-9);
    if (high - low < 2) {
        low -= 1;
        high += 1;
    }
    axis->step = ceil((high - low) / ticks);
    axis->low = exp2(high - axis->step * ceil((high - low) / axis->step));
    axis->high = exp2(high);
}

amp_axis amp_axis_make(amp_scale_kind kind, double low, double high, int ticks, double from, double to)
{
    amp_axis axis = { .kind = kind, .low = low, .high = high, .from = from, .to = to, .step = 1 };
    static const double widest = 1e300; /* sums and differences stay finite */
    if (!(low >= -widest && high <= widest && low <= high)) {
        axis.low = 0;
        axis.high = 1;
    }
    if (!(axis.low > 0) || (kind == AMP_LOG10 && !(axis.high > 5 * axis.low))) axis.kind = AMP_LINEAR;
    if (axis.kind == AMP_LINEAR) make_linear(&axis, ticks);
    else if (axis.kind == AMP_LOG2) make_log2(&axis, ticks);
    else axis.step = ticks;
    return axis;
}

double amp_axis_at(const amp_axis *axis, double value)
{
    double share;
    if (axis->kind == AMP_LINEAR) share = (value - axis->low) / (axis->high - axis->low);
    else share = value > 0 ? log(value / axis->low) / log(axis->high / axis->low) : 0;
    if (!(share > 0)) share = 0;
    if (share > 1) share = 1;
    return axis->from + share * (axis->to - axis->from);
}

/* 1, 2 and 5 times the powers of ten if there is room for them, else 1 alone, and of many powers every second, third... */
static int log10_ticks(const amp_axis *axis, double ticks[AMP_TICKS])
{
    int low = (int)floor(log10(axis->low)), high = (int)ceil(log10(axis->high)), count = 0;
    double decades = log10(axis->high / axis->low);
    int fine = decades * 3 <= axis->step * 1.5, every = 1 + (int)(decades / axis->step);
    for (int power = low; power <= high; ++power)
        for (int k = 0; k < (fine ? 3 : 1); ++k) {
            static const double factor[] = { 1, 2, 5 };
            double tick = factor[k] * pow(10, power);
            if (tick < axis->low * (1 - 1e-9) || tick > axis->high * (1 + 1e-9)) continue;
            if ((power - low) % every || count == AMP_TICKS - 1) continue;
            ticks[count++] = tick;
        }
    return count;
}

int amp_axis_ticks(const amp_axis *axis, double ticks[AMP_TICKS])
{
    int count = 0;
    if (axis->kind == AMP_LOG10) return log10_ticks(axis, ticks);
    if (axis->kind == AMP_LOG2) {
        for (double tick = axis->low; tick <= axis->high * 1.001 && count < AMP_TICKS - 1; tick *= exp2(axis->step))
            ticks[count++] = tick;
        return count;
    }
    double first = ceil(axis->low / axis->step - 1e-6);
    for (int i = 0; count < AMP_TICKS - 1; ++i) {
        double tick = (first + i) * axis->step;
        if (tick > axis->high + 1e-6 * axis->step) break;
        ticks[count++] = fabs(tick) < 1e-9 * axis->step ? 0 : tick;
    }
    return count;
}

static const char *power_of_two(double tick, char text[32])
{
    static const char *const digits[] = { "⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹" };
    char power[16];
    size_t at = (size_t)snprintf(text, 32, "2");
    snprintf(power, sizeof power, "%.0f", log2(tick));
    for (const char *p = power; *p; ++p)
        at += (size_t)snprintf(text + at, 32 - at, "%s", *p == '-' ? "⁻" : digits[*p - '0']);
    return text;
}

const char *amp_axis_label(const amp_axis *axis, double tick, char text[32])
{
    double largest = fabs(axis->low) > fabs(axis->high) ? fabs(axis->low) : fabs(axis->high);
    if (axis->kind == AMP_LOG2) {
        if (axis->low < 1 || axis->high > 99999) return power_of_two(tick, text);
        snprintf(text, 32, "%.0f", tick);
    } else if (axis->kind == AMP_LOG10) {
        snprintf(text, 32, tick >= 1e5 || tick < 1e-3 ? "%.0e" : "%g", tick);
    } else if (largest >= 2e6 && largest < 1e9 && axis->step >= 1e5) {
        snprintf(text, 32, tick == 0 ? "0" : "%gM", tick / 1e6);
    } else if (largest >= 1e7 || largest < 1e-4) {
        snprintf(text, 32, "%.4g", tick);
    } else if (largest >= 10000 && axis->step >= 100) {
        snprintf(text, 32, tick == 0 ? "0" : "%gk", tick / 1000);
    } else {
        int decimals = (int)ceil(-log10(axis->step) - 1e-9);
        snprintf(text, 32, "%.*f", decimals > 0 ? decimals : 0, tick);
    }
    return amp_report_minus(text, 32);
}

/* ---- drawing ---- */

amp_svg amp_svg_begin(FILE *stream, const char *id, const char *class_name, double width, double height, const char *title,
                      const char *what)
{
    fprintf(stream, "<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"%s\" class=\"%s\" viewBox=\"0 0 %g %g\" width=\"%g\" "
            "height=\"%g\" role=\"img\" aria-labelledby=\"%s-t %s-d\">\n<title id=\"%s-t\">", id, class_name, width,
            height, width, height, id, id, id);
    amp_html_text(stream, title);
    fprintf(stream, "</title><desc id=\"%s-d\">", id);
    amp_html_text(stream, what);
    fputs("</desc>\n", stream);
    return (amp_svg){ stream, width, height };
}

void amp_svg_end(amp_svg *svg) { fputs("</svg>\n", svg->stream); }

void amp_svg_text(amp_svg *svg, double x, double y, amp_anchor anchor, const char *class_name, const char *text)
{
    static const char *const anchors[] = { "", " text-anchor=\"middle\"", " text-anchor=\"end\"" };
    fprintf(svg->stream, "<text x=\"%.1f\" y=\"%.1f\"%s class=\"%s\">", x, y, anchors[anchor], class_name);
    amp_html_text(svg->stream, text);
    fputs("</text>\n", svg->stream);
}

void amp_svg_line(amp_svg *svg, double x0, double y0, double x1, double y1, const char *class_name)
{
    fprintf(svg->stream, "<path d=\"M%.1f %.1fL%.1f %.1f\" class=\"%s\"/>\n", x0, y0, x1, y1, class_name);
}

void amp_svg_rectangle(amp_svg *svg, double x, double y, double width, double height, const char *class_name)
{
    fprintf(svg->stream, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" class=\"%s\"/>\n", x, y, width, height,
            class_name);
}

void amp_svg_marker(amp_svg *svg, double x, double y, double r, int kind, const char *class_name)
{
    FILE *stream = svg->stream;
    fprintf(stream, "<path class=\"%s\" d=\"M%.1f %.1f", class_name, x, y);
    switch (kind) {
        case 0: fprintf(stream, "m%g 0a%g %g 0 1 0 %g 0a%g %g 0 1 0 %g 0z", -r, r, r, 2 * r, r, r, -2 * r); break;
        case 1: fprintf(stream, "m%g %gh%gv%gh%gz", -.9 * r, -.9 * r, 1.8 * r, 1.8 * r, -1.8 * r); break;
        case 2: fprintf(stream, "m0 %gl%g %gh%gz", -1.1 * r, 1.15 * r, 2 * r, -2.3 * r); break;
        case 3: fprintf(stream, "m0 %gl%g %gl%g %gl%g %gz", -1.2 * r, 1.2 * r, 1.2 * r, -1.2 * r, 1.2 * r, -1.2 * r,
                        -1.2 * r); break;
        default: fprintf(stream, "m%g %gl%g %gm0 %gl%g %g", -.8 * r, -.8 * r, 1.6 * r, 1.6 * r, -1.6 * r, -1.6 * r, 1.6 * r);
    }
    fputs("\"/>\n", stream);
}

static int is_value(double y) { return y - y == 0; } /* neither inf nor NaN */

void amp_svg_curve(amp_svg *svg, const double *x, const double *y, size_t count, const char *class_name)
{
    fprintf(svg->stream, "<path class=\"%s\" d=\"", class_name);
    for (size_t i = 0; i < count; ++i) {
        if (!is_value(y[i])) continue;
        int came = i > 0 && is_value(y[i - 1]), goes_on = i + 1 < count && is_value(y[i + 1]);
        fprintf(svg->stream, "%c%.1f %.1f%s", came ? 'L' : 'M', x[i], y[i], came || goes_on ? "" : "h.1"); /* or it would not be seen */
    }
    fputs("\"/>\n", svg->stream);
}

void amp_svg_y_axis(amp_svg *svg, const amp_axis *axis, double left, double right)
{
    double ticks[AMP_TICKS];
    int count = amp_axis_ticks(axis, ticks);
    for (int i = 0; i < count; ++i) {
        char label[32];
        double y = amp_axis_at(axis, ticks[i]);
        amp_svg_line(svg, left, y, right, y, "grid");
        amp_svg_text(svg, left - 8, y + 4, AMP_END, "tick", amp_axis_label(axis, ticks[i], label));
    }
}

void amp_svg_x_axis(amp_svg *svg, const amp_axis *axis, double top, double bottom, int grid)
{
    double ticks[AMP_TICKS];
    int count = amp_axis_ticks(axis, ticks);
    for (int i = 0; i < count; ++i) {
        char label[32];
        double x = amp_axis_at(axis, ticks[i]);
        amp_svg_line(svg, x, grid ? top : bottom, x, bottom + 5, grid ? "grid" : "axis");
        amp_svg_text(svg, x, bottom + 19, AMP_MIDDLE, "tick", amp_axis_label(axis, ticks[i], label));
    }
}
