/* See data_files.h. */
#define _DEFAULT_SOURCE /* flock */
#include "data_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../program/cfg.h"
#include "../program/failure.h"

int amp_is_device(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

FILE *amp_open_to_read(const char *file, const char *what, amp_error *error)
{
    struct stat status;
    int is_device = amp_is_device(file), is_folder = stat(file, &status) == 0 && S_ISDIR(status.st_mode);
    FILE *stream = is_device || is_folder ? NULL : fopen(file, "r");
    int why = is_device ? EINVAL : is_folder ? EISDIR : errno;
    if (stream) return stream;
    amp_fail(error, AMP_BAD_CONFIG, "%.600s: cannot read %s: %s", file, what,
             is_device ? "not a regular file" : strerror(why));
    errno = why;
    return NULL;
}

/* One try of amp_open_locked. */
static int open_locked(const char *name, int flags)
{
    struct stat mine, now;
    int file = open(name, flags | O_RDWR | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0666);
    int locked = file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0;
    int held = file >= 0 && !locked && errno == EWOULDBLOCK;
    /* another program has removed the file and given up its lock between our open and flock: try again */
    if (locked && fstat(file, &mine) == 0 && (stat(name, &now) != 0 || mine.st_ino != now.st_ino)) held = 1;
    if (locked && !held) return file;
    int why = held ? EWOULDBLOCK : errno;
    if (file >= 0) close(file);
    errno = why;
    return -1;
}

int amp_open_locked(const char *name, int flags, int tries, int milliseconds)
{
    int file;
    while ((file = open_locked(name, flags)) < 0 && errno == EWOULDBLOCK && --tries > 0)
        nanosleep(&(struct timespec){ .tv_nsec = milliseconds * 1000000L }, NULL);
    return file;
}

/* ---- the .data file ---- */

/* Adds "FILE:LINE: KEY what" to data->note, as far as there is room. */
static amp_status note(amp_data_file *data, const cfg_item *item, const char *what)
{
    char file[100], key[40];
    size_t length = strlen(data->note);
    cfg_printable(file, sizeof file, data->name);
    cfg_printable(key, sizeof key, item->text);
    snprintf(data->note + length, sizeof data->note - length, "%s%s:%lu: %s%s", length ? "; " : "", file,
             item->line, key, what);
    return AMP_OK;
}

/* Notes a key that is given twice. Darknet uses the first line (option_find in option_list.c). */
static amp_status note_second(amp_data_file *data, const cfg_item *item)
{
    return note(data, item, " is given twice; the first line is used");
}

/* Notes an unknown key if it looks like a misspelling of a known one. */
static amp_status note_unknown(amp_data_file *data, const cfg_item *item)
{
    static const char *const known[] = { "train", "valid", "names", "labels", "backup", "difficult", "leaves",
                                         "tree", "classes", "tag", "cache", "cache_scale", "eval", "results",
                                         "map", "top" };
    enum { KNOWN = sizeof known / sizeof *known };
    char guess[100];
    for (int i = 0; i < KNOWN; i++)
        if (!strcmp(item->text, known[i])) return AMP_OK;
    if (!cfg_did_you_mean(guess, sizeof guess, ": unknown key", item->text, known, KNOWN)) return AMP_OK;
    return note(data, item, guess);
}

static cfg_place place_of(const amp_data_file *data, const cfg_item *item)
{
    return (cfg_place){ .file = data->name, .line = item->line, .key = item->text, .value = item->value };
}

static amp_status keep(amp_data_file *data, char **where, const cfg_item *item, amp_error *error)
{
    if (item->blanks)
        return cfg_fail(error, place_of(data, item), "there are blanks in this path, and Darknet drops them",
                        "paths without blanks; rename the folder or the file, or make a link to it");
    if (*where) return note_second(data, item);
    *where = amp_allocated(strdup(item->value));
    return AMP_OK;
}

static const double CACHE_SCALE = 2; /* the default of cache_scale */

/* Stores the key's value in *where, which is -1 until then. */
static amp_status keep_number(amp_data_file *data, int *where, const cfg_item *item, long least,
                              const char *allowed, amp_error *error)
{
    char *end;
    errno = 0;
    long value = strtol(item->value, &end, 10);
    if (!*item->value || *end || errno || value < least || value > INT_MAX)
        return cfg_fail(error, place_of(data, item), "not a valid number", allowed);
    if (*where >= 0) return note_second(data, item);
    *where = (int)value;
    return AMP_OK;
}

/* Stores the kind of cache in *where, which is -1 until then. */
static amp_status keep_cache(amp_data_file *data, int *where, const cfg_item *item, amp_error *error)
{
    int value = amp_cache_word(item->value);
    if (value < 0) return cfg_fail(error, place_of(data, item), "unknown", AMP_CACHE_WORDS);
    if (*where >= 0) return note_second(data, item);
    *where = value;
    return AMP_OK;
}

static amp_status keep_scale(amp_data_file *data, double *where, const cfg_item *item, amp_error *error)
{
    double value;
    const char *wrong = cfg_parse_number(item->value, &value);
    if (!wrong && value != 0 && (value < .1 || value > 100)) wrong = "out of range";
    if (wrong) return cfg_fail(error, place_of(data, item), wrong, "0 for whole images, or .1 to 100");
    if (*where >= 0) return note_second(data, item);
    *where = value;
    return AMP_OK;
}

/* The keys that name a file or a folder, and the fields that keep their values. */
static const struct { const char *key; size_t offset; } paths[] = {
#define PATH(name) { #name, offsetof(amp_data_file, name) }
    PATH(train), PATH(valid), PATH(names), PATH(labels), PATH(backup), PATH(difficult), PATH(leaves),
        PATH(tree) };
enum { PATHS = sizeof paths / sizeof *paths };

static char **path_at(amp_data_file *data, int i) { return (char **)((char *)data + paths[i].offset); }

static amp_status take(amp_data_file *data, const cfg_item *item, amp_error *error)
{
    cfg_place place = { .file = data->name, .line = item->line };
    if (item->kind == CFG_BROKEN) return cfg_fail(error, place, item->text, NULL);
    if (item->line == 1 && cfg_begins_with_mark(item->text))
        return cfg_fail(error, place, "the file begins with a byte order mark", "UTF-8 without one");
    place.key = item->text;
    if (item->kind == CFG_SECTION)
        return cfg_fail(error, place, "a .data file has no sections: is this a .cfg file?",
                        "KEY = VALUE");
    if (!item->value || !*item->value) return cfg_fail(error, place, "no value", "KEY = VALUE");
    for (int i = 0; i < PATHS; i++)
        if (!strcmp(item->text, paths[i].key)) return keep(data, path_at(data, i), item, error);
    if (!strcmp(item->text, "classes"))
        return keep_number(data, &data->classes, item, 1, "a whole number from 1 up", error);
    if (!strcmp(item->text, "tag")) return keep_number(data, &data->tag, item, 0, "0, 1", error);
    if (!strcmp(item->text, "cache")) return keep_cache(data, &data->cache, item, error);
    if (!strcmp(item->text, "cache_scale")) return keep_scale(data, &data->cache_scale, item, error);
    return note_unknown(data, item);
}

amp_status amp_data_file_read(const char *name, amp_data_file *data, amp_error *error)
{
    struct stat status;
    *data = (amp_data_file){ .name = amp_allocated(strdup(name)), .classes = -1, .tag = -1,
                             .cache = -1, .cache_scale = -1 };
    if (stat(name, &status) != 0) /* amp_data_document's messages would call it a .cfg file */
        return amp_fail(error, AMP_BAD_CONFIG, "%.700s: cannot read the .data file: %s", name,
                        strerror(errno));
    if (amp_is_device(name))
        return amp_fail(error, AMP_BAD_CONFIG,
                        "%.700s: not a regular file: a .data file is read more than once, so a pipe does not "
                        "work", name);
    cfg_document *document;
    amp_status read = amp_data_document(name, &document, error);
    for (size_t i = 0; read == AMP_OK && i < document->count; i++)
        if (document->items[i].kind != CFG_NOTHING) read = take(data, &document->items[i], error);
    amp_document_give_back(document);
    if (data->classes < 0) data->classes = 0;
    if (data->tag < 0) data->tag = 0;
    if (data->cache < 0) data->cache = AMP_CACHE_OFF;
    if (data->cache_scale < 0) data->cache_scale = CACHE_SCALE;
    return read;
}

void amp_data_file_free(amp_data_file *data)
{
    free(data->name);
    for (int i = 0; i < PATHS; i++) free(*path_at(data, i));
    *data = (amp_data_file){ 0 };
}

const char *amp_data_file_names(const amp_data_file *data) { return data->names ? data->names
                                                             : data->labels; }

int amp_labels_in_path(const char *path, char **labels, size_t count, int *class_id)
{
    int found = 0;
    for (size_t i = 0; i < count; i++) {
        if (!strstr(path, labels[i])) continue;
        *class_id = (int)i;
        found++;
    }
    return found;
}
