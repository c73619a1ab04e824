/* Reads the whole file into memory, then splits it into lines. */
#include "cfg_document.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* ---- the bytes ---- */

static FILE *open_file(const char *file, amp_error *error)
{
    cfg_place place = { .file = file };
    struct stat status;
    const char *wrong = NULL, *allowed = "a .cfg file";
    FILE *stream = NULL;
    if (stat(file, &status) != 0) wrong = strerror(errno);
    else if (S_ISDIR(status.st_mode)) wrong = strerror(EISDIR);
    else if (!S_ISREG(status.st_mode)) {
        /* The program may restart itself (command_line.c) and read the file again: a pipe would be empty. */
        wrong = "not a regular file: a .cfg is read more than once, so a pipe does not work";
        allowed = "a .cfg file (write the pipe's output to a file first)";
    } else if (!(stream = fopen(file, "rb"))) {
        wrong = strerror(errno);
        allowed = "a .cfg file that can be read";
    }
    if (wrong) cfg_fail(error, place, wrong, allowed);
    return stream;
}

/* Stops after CFG_FILE_LIMIT bytes, or after a NUL: a file with a NUL is not text, and may be huge. */
static amp_status read_bytes(cfg_document *d, amp_error *error)
{
    FILE *stream = open_file(d->file, error);
    size_t room = 0;
    const char *nul;
    if (!stream) return AMP_BAD_CONFIG;
    do {
        room = room ? 2 * room : CFG_LINE_LIMIT;
        d->bytes = amp_allocated(realloc(d->bytes, room));
        char *end = d->bytes + d->size;
        size_t read = fread(end, 1, room - d->size, stream);
        nul = memchr(end, 0, read);
        d->size += nul ? (size_t)(nul + 1 - end) : read;
    } while (!nul && d->size == room && room <= CFG_FILE_LIMIT);
    amp_status status = AMP_OK;
    if (ferror(stream)) status = cfg_fail(error, (cfg_place){ .file = d->file }, strerror(errno), NULL);
    fclose(stream);
    return status;
}

/* ---- a line ---- */

static const char BLANKS[] = " \t\r\f";

/* Marks the item as broken. If it is already broken, it keeps its first problem. */
__attribute__((format(printf, 3, 4)))
static void break_item(cfg_item *item, int fatal, const char *format, ...)
{
    char problem[128];
    va_list args;
    if (item->kind == CFG_BROKEN) return;
    va_start(args, format);
    vsnprintf(problem, sizeof problem, format, args);
    va_end(args);
    item->kind = CFG_BROKEN;
    item->fatal = fatal;
    item->text = amp_allocated(strdup(problem));
}

/* Copies the line to `text`, without blanks unless the syntax is CFG_SPACED. Returns the number of bytes
 * written, including the final 0. */
static size_t copy_line(cfg_item *item, cfg_syntax syntax, char *text)
{
    size_t kept = 0;
    int equals = 0, blank = 0; /* equals: 0 before the first '=', 1 directly after it, 2 inside the value;
                                  blank: the previous character was a blank */
    if (!item->raw[item->raw_size - 1])
        break_item(item, 1, "byte %zu of the line is NUL: this is not a text file", item->raw_size);
    for (size_t i = 0; i < item->raw_size && item->raw[i] != '\n'; i++) {
        unsigned char c = (unsigned char)item->raw[i];
        int is_blank = c && strchr(BLANKS, c);
        if (is_blank && syntax != CFG_SPACED) {
            blank = 1;
            continue;
        }
        item->blanks |= blank && equals == 2;
        equals = equals ? 2 : c == '=';
        blank = 0;
        if ((c < 0x20 || c == 0x7f) && !is_blank)
            break_item(item, 0, "byte %zu of the line is the control character 0x%02x", i + 1, (unsigned)c);
        text[kept++] = (char)c;
    }
    if (item->raw_size - (item->raw[item->raw_size - 1] == '\n') > CFG_LINE_LIMIT)
        break_item(item, 0, "a line of more than %d bytes", CFG_LINE_LIMIT);
    text[kept] = 0;
    return kept + 1;
}

static char *trimmed(char *text)
{
    text += strspn(text, BLANKS);
    for (char *end = text + strlen(text); end > text && strchr(BLANKS, end[-1]);) *--end = 0;
    return text;
}

/* Fills *item from the line that copy_line wrote. */
static void take_item(cfg_item *item, cfg_syntax syntax, char *text)
{
    if (syntax == CFG_STRICT) text[strcspn(text, "#")] = 0;
    text = trimmed(text);
    if (!*text || *text == '#') return;
    if (*text == ';' && !(syntax == CFG_STRICT && strchr(text, '='))) return;
    item->kind = *text == '[' ? CFG_SECTION : CFG_OPTION;
    char *parted = item->kind == CFG_OPTION ? strpbrk(text, syntax == CFG_SPACED ? ":=" : "=") : NULL;
    if (parted) {
        *parted = 0;
        item->value = trimmed(parted + 1);
    }
    item->text = trimmed(text);
}

/* ---- the document ---- */

static void take_lines(cfg_document *d, cfg_syntax syntax)
{
    char *text = d->texts = amp_allocated(malloc(d->size + 2)); /* each line's copy ends with a 0 in place of
                                                                   the '\n' */
    size_t room = 0, length;
    for (const char *raw = d->bytes, *end = raw + d->size; raw < end; raw += length) {
        const char *newline = memchr(raw, '\n', (size_t)(end - raw));
        length = newline ? (size_t)(newline + 1 - raw) : (size_t)(end - raw);
        d->items = amp_grow(d->items, d->count, &room, sizeof *d->items);
        cfg_item *item = &d->items[d->count++];
        *item = (cfg_item){ .line = d->count, .raw = raw, .raw_size = length };
        if (raw + length - d->bytes > CFG_FILE_LIMIT)
            break_item(item, 1, "a file of more than %d bytes", CFG_FILE_LIMIT);
        char *own = text;
        text += copy_line(item, syntax, own);
        if (item->fatal) return;
        if (item->kind != CFG_BROKEN) take_item(item, syntax, own);
    }
}

amp_status cfg_document_read(const char *file, cfg_syntax syntax, cfg_document **out, amp_error *error)
{
    cfg_document *d = amp_allocated(calloc(1, sizeof *d));
    *out = NULL;
    d->file = amp_allocated(strdup(file));
    amp_status status = read_bytes(d, error);
    if (status == AMP_OK) take_lines(d, syntax);
    if (status == AMP_OK) *out = d;
    else cfg_document_free(d);
    return status;
}

void cfg_document_free(cfg_document *d)
{
    if (!d) return;
    for (size_t i = 0; i < d->count; i++)
        if (d->items[i].kind == CFG_BROKEN) free((char *)d->items[i].text);
    free(d->items);
    free(d->bytes);
    free(d->texts);
    free(d->file);
    free(d);
}

int cfg_is_net(const char *section) { return !strcmp(section, "[net]") || !strcmp(section, "[network]"); }

double cfg_net_number(const cfg_document *d, const char *key, double fallback)
{
    int in_net = 0;
    for (const cfg_item *item = d->items; item < d->items + d->count; item++) {
        if (item->kind == CFG_SECTION) in_net = cfg_is_net(item->text);
        if (item->kind == CFG_OPTION && in_net && item->value && !strcmp(item->text, key))
            return strtod(item->value, NULL);
    }
    return fallback;
}
