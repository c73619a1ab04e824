/* The reader of cfg_reader.h. It needs only a fixed buffer of one line, however large or odd the file is. */
#include "cfg_reader.h"

#include "cfg_check.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

typedef struct cfg_reader {
    FILE *stream;
    int spaced; /* keep blanks within a line */
    unsigned long line;
    char problem[128];
    char text[CFG_LINE_LIMIT + 1];
} cfg_reader;

void cfg_printable(char *out, size_t size, const char *text)
{
    size_t length = strlen(text), kept = length;
    if (length >= size) {
        kept = size - 4;
        /* do not cut a UTF-8 character */
        while (kept > 0 && ((unsigned char)text[kept] & 0xc0) == 0x80) kept--;
    }
    for (size_t i = 0; i < kept; i++) {
        unsigned char c = (unsigned char)text[i];
        out[i] = c < 0x20 || c == 0x7f ? '?' : text[i];
    }
    strcpy(out + kept, kept < length ? "..." : "");
}

/* Of a long path, keeps the end. */
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

static FILE *open_file(const char *file, amp_error *error)
{
    cfg_place place = { .file = file };
    struct stat status;
    const char *wrong = NULL, *allowed = "a .cfg file";
    FILE *stream = NULL;
    if (stat(file, &status) != 0) wrong = strerror(errno);
    else if (S_ISDIR(status.st_mode)) wrong = strerror(EISDIR);
    else if (!S_ISREG(status.st_mode)) {
        /* Darknet reads the file again after this reader: a pipe would be empty by then. */
        wrong = "not a regular file, and a .cfg is read more than once";
        allowed = "a .cfg file (write the pipe's output to one first)";
    } else if (!(stream = fopen(file, "rb"))) {
        wrong = strerror(errno);
        allowed = "a .cfg file that can be read";
    }
    if (wrong) cfg_fail(error, place, wrong, allowed);
    return stream;
}

/* Records what is wrong with the line, unless something was recorded before. */
__attribute__((format(printf, 4, 5)))
static void break_item(cfg_reader *reader, cfg_item *item, int fatal, const char *format, ...)
{
    va_list args;
    if (item->kind == CFG_BROKEN && !fatal) return;
    va_start(args, format);
    vsnprintf(reader->problem, sizeof reader->problem, format, args);
    va_end(args);
    *item = (cfg_item){ .kind = CFG_BROKEN, .line = reader->line, .text = reader->problem, .fatal = fatal };
}

static const char BLANKS[] = " \t\r\f";

/* Reads one line into reader->text without its blanks. Returns 0 at the end of the file. The line's first
 * problem goes to *item. A NUL byte stops reading: the file is not text, and may have any size. */
static int read_line(cfg_reader *reader, cfg_item *item)
{
    size_t bytes = 0, kept = 0;
    int c, equals = 0, blank = 0; /* equals: 1 just after the first =, 2 within the value; blank: one was
                                     just read */
    *item = (cfg_item){ .line = ++reader->line };
    while ((c = getc(reader->stream)) != EOF && c != '\n') {
        bytes++;
        if (c == 0) {
            break_item(reader, item, 1, "byte %zu of the line is NUL: this is not a text file", bytes);
            return 1;
        }
        if (!reader->spaced && strchr(BLANKS, c)) {
            blank = 1;
            continue;
        }
        item->blanks |= blank && equals == 2;
        equals = equals ? 2 : c == '=';
        blank = 0;
        if ((c < 0x20 || c == 0x7f) && !strchr(BLANKS, c))
            break_item(reader, item, 0, "byte %zu of the line is the control character 0x%02x", bytes,
                       (unsigned)c);
        if (kept < CFG_LINE_LIMIT) reader->text[kept++] = (char)c;
    }
    if (bytes > CFG_LINE_LIMIT) break_item(reader, item, 0, "a line of more than %d bytes", CFG_LINE_LIMIT);
    reader->text[kept] = '\0';
    return c != EOF || bytes > 0;
}

/* A strict parser ends a line at a # and knows no other comment: it reads ;batch=4 as a key. */
static void cut_line(char *text)
{
    if (amp_cfg_fork.strict) text[strcspn(text, "#")] = 0;
}

/* Interprets the line in reader->text; 0: there is nothing in it. */
static int read_item(cfg_reader *reader, cfg_item *item)
{
    char *text = reader->text, *equals;
    if (item->kind == CFG_BROKEN) return 1;
    cut_line(text);
    if (text[0] == '\0' || text[0] == '#') return 0;
    if (text[0] == ';' && !(amp_cfg_fork.strict && strchr(text, '='))) return 0;
    item->kind = text[0] == '[' ? CFG_SECTION : CFG_OPTION;
    item->text = text;
    if (item->kind == CFG_SECTION || !(equals = strchr(text, '='))) return 1;
    *equals = '\0';
    item->value = equals + 1;
    return 1;
}

static char *trimmed(char *text)
{
    text += strspn(text, BLANKS);
    for (char *end = text + strlen(text); end > text && strchr(BLANKS, end[-1]);) *--end = 0;
    return text;
}

/* read_item for a line that still has its blanks. */
static int read_spaced_item(cfg_reader *reader, cfg_item *item)
{
    char *text = trimmed(reader->text), *parted;
    if (item->kind == CFG_BROKEN) return 1;
    if (!*text || *text == '#' || *text == ';') return 0;
    item->kind = *text == '[' ? CFG_SECTION : CFG_OPTION;
    if (item->kind == CFG_OPTION && (parted = strpbrk(text, ":="))) {
        *parted = 0;
        item->value = trimmed(parted + 1);
    }
    item->text = trimmed(text);
    return 1;
}

amp_status cfg_read_data(const char *file, int spaced, cfg_take *take, void *context, amp_error *error)
{
    cfg_item item = { 0 };
    amp_status status = AMP_OK;
    FILE *stream = open_file(file, error);
    if (!stream) return AMP_BAD_CONFIG;
    cfg_reader *reader = amp_allocated(malloc(sizeof *reader));
    *reader = (cfg_reader){ .stream = stream, .spaced = spaced };
    while (status == AMP_OK && !item.fatal && read_line(reader, &item))
        if ((spaced ? read_spaced_item : read_item)(reader, &item)) status = take(context, &item, error);
    if (status == AMP_OK && ferror(stream))
        status = cfg_fail(error, (cfg_place){ .file = file, .line = reader->line }, strerror(errno), NULL);
    free(reader);
    fclose(stream);
    return status;
}

amp_status cfg_read(const char *file, cfg_take *take, void *context, amp_error *error)
{
    return cfg_read_data(file, 0, take, context, error);
}

void cfg_keep_key(char *line)
{
    char *kept = line;
    for (const char *c = line; *c; c++) if (!strchr(" \t\r\f\n", *c)) *kept++ = *c;
    *kept = 0;
    cut_line(line);
    if (*line != '[') line[strcspn(line, "=")] = 0;
}

int cfg_begins_with_mark(const char *text) { return !strncmp(text, "\xef\xbb\xbf", 3); }

int cfg_is_net(const char *section) { return !strcmp(section, "[net]") || !strcmp(section, "[network]"); }

typedef struct wanted { const char *key; double *value; int in_net, found; } wanted;

static amp_status take_number(void *context, const cfg_item *item, amp_error *error)
{
    wanted *w = context;
    (void)error;
    if (item->kind == CFG_SECTION) w->in_net = cfg_is_net(item->text);
    if (item->kind != CFG_OPTION || !w->in_net || !item->value || w->found || strcmp(item->text, w->key))
        return AMP_OK;
    *w->value = strtod(item->value, NULL);
    w->found = 1;
    return AMP_OK;
}

amp_status cfg_net_number(const char *cfg, const char *key, double fallback, double *value, amp_error *error)
{
    *value = fallback;
    return cfg_read(cfg, take_number, &(wanted){ .key = key, .value = value }, error);
}

/* ---- numbers ---- */

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

const char *cfg_parse_number(const char *value, double *number)
{
    char *end;
    *number = strtod(value, &end);
    /* In a locale with a decimal comma strtod stops at the point. */
    return is_decimal(value) && !*end ? NULL : "not a decimal number";
}

/* ---- did you mean ---- */

enum { NAME_LIMIT = 31 }; /* longer names are not misspellings */

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

static int least(int a, int b) { return a < b ? a : b; }

/* Edits (insert, drop, replace, swap two neighbours) that turn a into b, ignoring case: the optimal string
 * alignment distance. */
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

/* Allows two edits at most, and one per three letters: beyond that it is another word. */
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
