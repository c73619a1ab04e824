/* The functions of cfg_text.h. */
#include "cfg_text.h"

#include <string.h>

void cfg_printable(char *out, size_t size, const char *text)
{
    size_t length = strlen(text), kept = length;
    if (length >= size) {
        kept = size - 4;
        /* do not cut inside a UTF-8 character */
        while (kept > 0 && ((unsigned char)text[kept] & 0xc0) == 0x80) kept--;
    }
    for (size_t i = 0; i < kept; i++) {
        unsigned char c = (unsigned char)text[i];
        out[i] = c < 0x20 || c == 0x7f ? '?' : text[i];
    }
    strcpy(out + kept, kept < length ? "..." : "");
}

/* Like cfg_printable, but truncates the path at its start. */
static void printable_path(char *out, size_t size, const char *path)
{
    size_t length = strlen(path);
    if (length < size) {
        cfg_printable(out, size, path);
        return;
    }
    const char *end = path + length - (size - 4);
    while (((unsigned char)*end & 0xc0) == 0x80) end++;
    memcpy(out, "...", 3);
    cfg_printable(out + 3, size - 3, end);
}

amp_status cfg_fail(amp_error *error, cfg_place place, const char *problem, const char *allowed)
{
    char file[300], line[32] = "", section[48] = "", key[48] = "", value[64] = "";
    printable_path(file, sizeof file, place.file);
    if (place.line) snprintf(line, sizeof line, ":%lu", place.line);
    if (place.section) cfg_printable(section, sizeof section, place.section);
    if (place.key) cfg_printable(key, sizeof key, place.key);
    if (place.value) cfg_printable(value, sizeof value, place.value);
    return amp_fail(error, AMP_BAD_CONFIG, "%s%s: %s%s%s%s%s%s%s%s%s", file, line,
                    section, *section && *key ? " " : "", key, place.value ? " = " : "", value,
                    *section || *key ? ": " : "", problem, allowed ? "; allowed: " : "",
                    allowed ? allowed : "");
}

int cfg_begins_with_mark(const char *text) { return !strncmp(text, "\xef\xbb\xbf", 3); }

/* ---- numbers ---- */

static size_t digits(const char *text) { return strspn(text, "0123456789"); }

/* Whether text is [+-]digits[.digits][e[+-]digits], with a digit on one side of the point. */
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

const char *cfg_parse_number(const char *value, double *number)
{
    char *end;
    *number = strtod(value, &end);
    /* In a locale with a decimal comma, strtod stops at the point. */
    return is_decimal(value) && !*end ? NULL : "not a decimal number";
}

/* ---- did you mean ---- */

enum { NAME_LIMIT = 31 }; /* longer names are not compared */

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

static int least(int a, int b) { return a < b ? a : b; }

/* The number of edits (insert, drop, replace, swap two neighbours) that turn a into b, ignoring case: the
 * optimal string alignment distance. */
static int edit_distance(const char *a, const char *b)
{
    int d[NAME_LIMIT + 1][NAME_LIMIT + 1];
    int height = (int)strlen(a), width = (int)strlen(b);
    for (int i = 0; i <= height; i++)
        for (int j = 0; j <= width; j++) {
            d[i][j] = i + j;
            if (i == 0 || j == 0) continue;
            d[i][j] = least(d[i - 1][j - 1] + (lower(a[i - 1]) != lower(b[j - 1])),
                            least(d[i - 1][j], d[i][j - 1]) + 1);
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[height][width];
}

/* A name is close if it differs by at most two edits, and by at most one per three letters. */
int cfg_did_you_mean(char *text, size_t size, const char *what, const char *name, const char *const *names,
                     size_t count)
{
    const char *closest = NULL;
    int fewest = 3;
    for (size_t i = 0; i < count && strlen(name) <= NAME_LIMIT; i++) {
        if (strlen(names[i]) > NAME_LIMIT) continue;
        int distance = edit_distance(name, names[i]);
        if (distance >= fewest || distance * 3 > least((int)strlen(names[i]), (int)strlen(name))) continue;
        fewest = distance;
        closest = names[i];
    }
    snprintf(text, size, closest ? "%s, did you mean %s?" : "%s", what, closest);
    return closest != NULL;
}
