/* How the report writes text and numbers. */
#include "report_text.h"

#include "../compare/compare.h"
#include "../json.h"

#include <math.h>
#include <string.h>

static const char DASH[] = "–", NOT_UTF8[] = "\xef\xbf\xbd";

const char *amp_score_name(const amp_comparison *c, int i)
{
    static const char *const names[2][2] = { { "mAP@0.5", "mAP@0.5:0.95" }, { "top-1", "top-5" } };
    return names[c->kind == AMP_COMPARED_CLASSIFIER][i];
}

static const char *entity(char c)
{
    switch (c) {
        case '<': return "&lt;";
        case '>': return "&gt;";
        case '&': return "&amp;";
        case '"': return "&quot;";
        case '\'': return "&#39;";
        default: return NULL;
    }
}

/* XML has no control characters but these three, and neither U+FFFE nor U+FFFF. */
static int is_allowed(const char *text, int bytes)
{
    if (bytes == 1) return (unsigned char)*text >= 0x20 ? *text != 0x7f : *text == '\t' || *text == '\n' || *text == '\r';
    return bytes > 0 && strncmp(text, "\xef\xbf\xbe", 3) && strncmp(text, "\xef\xbf\xbf", 3);
}

void amp_html_text(FILE *stream, const char *text)
{
    while (text && *text) {
        int bytes = amp_utf8_bytes(text);
        if (!is_allowed(text, bytes)) fputs(NOT_UTF8, stream);
        else if (entity(*text)) fputs(entity(*text), stream);
        else fwrite(text, 1, (size_t)bytes, stream);
        text += bytes ? bytes : 1;
    }
}

const char *amp_report_number(double value, int decimals, char text[AMP_REPORT_NUMBER])
{
    if (!amp_is_number(value)) return DASH;
    snprintf(text, AMP_REPORT_NUMBER, fabs(value) < 1e15 ? "%.*f" : "%.*e", decimals, value);
    return text;
}

const char *amp_report_amount(double value, char text[AMP_REPORT_NUMBER])
{
    if (!(value > 0)) return DASH;
    if (value >= 1e6 && value < 1e15) {
        snprintf(text, AMP_REPORT_NUMBER, "%.*fM", value < 99.95e6 ? 1 : 0, value / 1e6);
        return text;
    }
    return amp_report_number(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, text);
}

const char *amp_report_percent(double share, char text[AMP_REPORT_NUMBER])
{
    if (!amp_is_number(share)) return DASH;
    snprintf(text, AMP_REPORT_NUMBER, "%.2f %%", 100 * share);
    return text;
}

const char *amp_report_points(double points, char text[AMP_REPORT_NUMBER])
{
    if (!amp_is_number(points)) return DASH;
    snprintf(text, AMP_REPORT_NUMBER, "%+.2f", points);
    return strcmp(text + 1, "0.00") ? text : text + 1;
}

double amp_mean_value(const amp_mean *mean) { return mean->count > 0 ? mean->mean : (double)NAN; }

int amp_run_has_score(const amp_run *run) { return run->state == AMP_RUN_DONE; }
