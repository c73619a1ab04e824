/* How the report writes text and numbers. */
#include "report_text.h"

#include "../json.h"

#include <math.h>
#include <string.h>

static const char DASH[] = "–", MINUS[] = "−", NOT_UTF8[] = "\xef\xbf\xbd";

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

/* A sign stands before a digit, and at the beginning: not in 1e-05, a name or a date. */
static int is_minus(const char *text, const char *at)
{
    return *at == '-' && at[1] >= '0' && at[1] <= '9' && (at == text || at[-1] == ' ' || at[-1] == '(');
}

const char *amp_report_minus(char *text, size_t size)
{
    size_t length = strlen(text);
    for (char *at = text; *at; ++at) {
        if (!is_minus(text, at) || length + strlen(MINUS) > size) continue;
        memmove(at + strlen(MINUS), at + 1, length - (size_t)(at - text));
        memcpy(at, MINUS, strlen(MINUS));
        length += strlen(MINUS) - 1;
    }
    return text;
}

const char *amp_report_number(double value, int decimals, char text[AMP_REPORT_NUMBER])
{
    if (!amp_is_number(value)) return DASH;
    snprintf(text, AMP_REPORT_NUMBER, fabs(value) < 1e15 ? "%.*f" : "%.*e", decimals, value);
    return amp_report_minus(text, AMP_REPORT_NUMBER);
}

const char *amp_report_small(double value, char text[AMP_REPORT_NUMBER])
{
    if (!amp_is_number(value)) return DASH;
    double size = fabs(value);
    int decimals = size > 0 ? 2 - (int)floor(log10(size)) : 0;
    if (size > 0 && (size < 1e-4 || size >= 1e6)) snprintf(text, AMP_REPORT_NUMBER, "%.2e", value);
    else snprintf(text, AMP_REPORT_NUMBER, "%.*f", decimals > 0 ? decimals : 0, value);
    return amp_report_minus(text, AMP_REPORT_NUMBER);
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
    return strcmp(text + 1, "0.00") ? amp_report_minus(text, AMP_REPORT_NUMBER) : text + 1;
}

double amp_mean_value(const amp_mean *mean) { return mean->count > 0 ? mean->mean : (double)NAN; }

const char *amp_run_state_name(const amp_run *run)
{
    switch (run->state) {
        case AMP_RUN_WAITING: return "not begun";
        case AMP_RUN_TRAINING: return "interrupted";
        case AMP_RUN_TRAINED: return "not validated yet";
        case AMP_RUN_DONE: return "done";
        case AMP_RUN_FAILED: return "failed";
    }
    return "unknown";
}

int amp_run_has_score(const amp_run *run) { return run->state == AMP_RUN_DONE; }

int amp_runs_in_state(const amp_comparison *c, amp_training_state state)
{
    int count = 0;
    for (int i = 0; i < c->dtype_count * c->seed_count; ++i) count += c->runs[i].state == state;
    return count;
}
