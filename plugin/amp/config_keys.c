/* One row per key of [amp], and parsers that accept plain decimal numbers only: strtod alone would also take "nan",
 * "inf", "0x10" and the front half of "2x", and a typing error must never become a loss scale. */
#include "config_keys.h"

#include <float.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tensor/tensor.h"
#include "scaler.h"

static const char *const not_a_number = "not a decimal number";

static size_t digits(const char *text) { return strspn(text, "0123456789"); }

/* [+-]digits[.digits][e[+-]digits], with a digit on at least one side of the point. */
static int is_decimal(const char *text)
{
    text += *text == '+' || *text == '-';
    size_t whole = digits(text), fraction = 0;
    text += whole;
    if (*text == '.') {
        fraction = digits(++text);
        text += fraction;
    }
    if (whole + fraction == 0) return 0;
    if (*text == 'e' || *text == 'E') {
        text++;
        text += *text == '+' || *text == '-';
        if (digits(text) == 0) return 0;
        text += digits(text);
    }
    return *text == '\0';
}

/* end tells the C library's locale from the .cfg's: under a decimal comma strtod stops at the point. */
const char *amp_decimal_parse(const char *value, double *number)
{
    char *end;
    if (!is_decimal(value)) return not_a_number;
    double parsed = strtod(value, &end);
    if (*end != '\0') return not_a_number;
    *number = parsed;
    return NULL;
}

static const char *parse_flag(const char *value, double *number)
{
    if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0) return "neither 0 nor 1";
    *number = value[0] - '0';
    return NULL;
}

int amp_dtype_find(const char *name)
{
    for (int dtype = AMP_FP32; dtype <= AMP_BF16; dtype++)
        if (strcmp(name, amp_dtype_name((amp_dtype)dtype)) == 0) return dtype;
    return -1;
}

static const char *parse_dtype(const char *value, double *number)
{
    int dtype = amp_dtype_find(value);
    if (dtype < 0) return "unknown dtype";
    *number = dtype;
    return NULL;
}

/* Normal numbers of fp32, in which the scale is kept, that have a normal inverse: Darknet is built with -Ofast and runs with
 * flush-to-zero, where any other inverse is 0 and so would be every gradient. */
static const char *parse_scale(const char *value, double *number)
{
    double parsed;
    const char *problem = amp_decimal_parse(value, &parsed);
    if (problem) return problem;
    if (!(parsed > 0)) return "not positive";
    if (parsed < FLT_MIN || parsed > FLT_MAX) return "out of fp32's range";
    if (parsed > 0x1p126) return "above 2^126, its inverse is lost in fp32";
    *number = parsed;
    return NULL;
}

static const char *parse_loss_scale(const char *value, double *number)
{
    if (strcmp(value, "dynamic") == 0) {
        *number = AMP_LOSS_SCALE_DYNAMIC;
        return NULL;
    }
    const char *problem = parse_scale(value, number);
    return problem == not_a_number ? "neither dynamic nor a decimal number" : problem;
}

static const char *parse_growth_factor(const char *value, double *number)
{
    double parsed;
    const char *problem = amp_decimal_parse(value, &parsed);
    if (problem) return problem;
    if (!(parsed > 1)) return "not above 1";
    if (parsed > DBL_MAX) return "not finite";
    *number = parsed;
    return NULL;
}

static const char *parse_backoff_factor(const char *value, double *number)
{
    double parsed;
    const char *problem = amp_decimal_parse(value, &parsed);
    if (problem) return problem;
    if (!(parsed > 0 && parsed < 1)) return "not between 0 and 1";
    *number = parsed;
    return NULL;
}

/* A whole number from 1 to limit. */
static const char *parse_count(const char *value, int limit, double *number)
{
    double parsed;
    const char *problem = amp_decimal_parse(value, &parsed);
    if (problem) return problem;
    if (parsed > 0 && strspn(value, "+0123456789") != strlen(value)) return "not a whole number";
    if (!(parsed >= 1)) return "below 1";
    if (parsed > limit) return "too large";
    *number = parsed;
    return NULL;
}

static const char *parse_interval(const char *value, double *number) { return parse_count(value, INT_MAX, number); }

/* As far as the scaler goes: a longer run of skipped steps ends training. */
static const char *parse_hysteresis(const char *value, double *number)
{
    return parse_count(value, AMP_SCALER_STUCK_LIMIT, number);
}

static const char *parse_clip_norm(const char *value, double *number)
{
    double parsed;
    const char *problem = amp_decimal_parse(value, &parsed);
    if (problem) return problem;
    if (!(parsed >= 0)) return "negative";
    if (parsed > FLT_MAX) return "out of fp32's range";
    *number = parsed;
    return NULL;
}

typedef struct key_row {
    const char *name;
    const char *(*parse)(const char *value, double *number);
    const char *allowed;
} key_row;

static const key_row rows[AMP_KEYS] = {
    [AMP_KEY_AMP] = { "amp", parse_flag, "0, 1" },
    [AMP_KEY_DTYPE] = { "dtype", parse_dtype, "fp16, bf16, fp32" },
    [AMP_KEY_LOSS_SCALE] = { "loss_scale", parse_loss_scale, "dynamic, or a number from 1.2e-38 to 8.5e37" },
    [AMP_KEY_INIT_SCALE] = { "init_scale", parse_scale, "a number from min_scale to max_scale" },
    [AMP_KEY_GROWTH_FACTOR] = { "growth_factor", parse_growth_factor, "a number above 1" },
    [AMP_KEY_BACKOFF_FACTOR] = { "backoff_factor", parse_backoff_factor, "a number above 0 and below 1" },
    [AMP_KEY_GROWTH_INTERVAL] = { "growth_interval", parse_interval, "a whole number from 1 to 2147483647" },
    [AMP_KEY_MIN_SCALE] = { "min_scale", parse_scale, "a number from 1.2e-38 to init_scale" },
    [AMP_KEY_MAX_SCALE] = { "max_scale", parse_scale, "a number from init_scale to 8.5e37" },
    [AMP_KEY_HYSTERESIS] = { "hysteresis", parse_hysteresis, "a whole number from 1 to 100" },
    [AMP_KEY_CLIP_NORM] = { "clip_norm", parse_clip_norm, "0 (off), or a number up to 3.4e38" },
    [AMP_KEY_DEBUG] = { "debug", parse_flag, "0, 1" },
};

amp_key amp_key_find(const char *name)
{
    int key = 0;
    while (key < AMP_KEYS && strcmp(name, rows[key].name) != 0) key++;
    return (amp_key)key;
}

const char *amp_key_name(amp_key key) { return rows[key].name; }
const char *amp_key_allowed(amp_key key) { return rows[key].allowed; }
const char *amp_key_parse(amp_key key, const char *value, double *number) { return rows[key].parse(value, number); }

/* -- Did you mean -- */

enum { NAME_LIMIT = 31 }; /* longer ones are no misspelling of ours */

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

/* Edits (insert, drop, replace, swap two neighbours) that turn a into b, whatever their case: the optimal string
 * alignment distance. */
static int edit_distance(const char *a, const char *b)
{
    int distance[NAME_LIMIT + 1][NAME_LIMIT + 1];
    int height = (int)strlen(a), width = (int)strlen(b);
    for (int i = 0; i <= height; i++) {
        for (int j = 0; j <= width; j++) {
            if (i == 0 || j == 0) {
                distance[i][j] = i + j;
                continue;
            }
            int best = distance[i - 1][j - 1] + (lower(a[i - 1]) != lower(b[j - 1]));
            if (distance[i - 1][j] + 1 < best) best = distance[i - 1][j] + 1;
            if (distance[i][j - 1] + 1 < best) best = distance[i][j - 1] + 1;
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1])
                && distance[i - 2][j - 2] + 1 < best)
                best = distance[i - 2][j - 2] + 1;
            distance[i][j] = best;
        }
    }
    return distance[height][width];
}

/* At most two edits, and one for every three letters: more is another word. */
const char *amp_closest_name(const char *name, const char *const *names, size_t count)
{
    const char *closest = NULL;
    int least = 3;
    if (strlen(name) > NAME_LIMIT) return NULL;
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(names[i]) < strlen(name) ? strlen(names[i]) : strlen(name);
        if (strlen(names[i]) > NAME_LIMIT) continue;
        int distance = edit_distance(name, names[i]);
        if (distance < least && (size_t)distance * 3 <= length) {
            least = distance;
            closest = names[i];
        }
    }
    return closest;
}

const char *amp_did_you_mean(char *text, size_t size, const char *what, const char *name,
                             const char *const *names, size_t count)
{
    const char *meant = amp_closest_name(name, names, count);
    snprintf(text, size, meant ? "%s, did you mean %s?" : "%s", what, meant);
    return meant;
}
