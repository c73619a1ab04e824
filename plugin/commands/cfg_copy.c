/* Checks a .cfg, and copies it with other values in [net]. */
#define _GNU_SOURCE /* memfd_create */
#include "cfg_copy.h"

#include "../host/program/cfg.h"
#include "../host/program/failure.h"
#include "json.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int is_changed(const char *key, const amp_cfg_change *changes, int count)
{
    for (int i = 0; i < count; i++) if (!strcmp(key, changes[i].key)) return 1;
    return 0;
}

/* What a copy changes. kept: a flag for each layer; amp=0 is set in the sections of the flagged layers. */
typedef struct edits { const amp_cfg_change *changes; int count; const char *kept; int layers; } edits;

/* Writes the value without an exponent, because some Darknets cannot read one. */
static void write_value(FILE *out, const amp_cfg_change *change)
{
    enum { DIGITS = 20 };
    char value[32];
    snprintf(value, sizeof value, "%.17g", change->value);
    if (strchr(value, 'e')) fprintf(out, "%s=%.*f\n", change->key, DIGITS, change->value);
    else fprintf(out, "%s=%s\n", change->key, value);
}

/* Copies a line unchanged. A malformed line is rejected when the copy is read. Adds a missing line end. */
static void copy_line(const cfg_item *line, FILE *out)
{
    fwrite(line->raw, 1, line->raw_size, out);
    if (line->raw[line->raw_size - 1] != '\n') putc('\n', out);
}

/* Copies all lines with the edits. Returns 1 if [net] was found. */
static int copy_lines(const cfg_document *from, FILE *out, const edits *e)
{
    int in_net = 0, found = 0, layer = -1, is_kept = 0;
    for (const cfg_item *line = from->items; line < from->items + from->count; line++) {
        int is_option = line->kind == CFG_OPTION, starts = line->kind == CFG_SECTION;
        if (starts) {
            in_net = cfg_is_net(line->text);
            is_kept = !in_net && strcmp(line->text, "[amp]") && ++layer < e->layers && e->kept[layer];
        }
        if (is_option && ((in_net && is_changed(line->text, e->changes, e->count))
                          || (is_kept && !strcmp(line->text, "amp"))))
            continue;
        copy_line(line, out);
        if (!starts) continue;
        for (int i = 0; in_net && !found && i < e->count; i++) write_value(out, &e->changes[i]);
        if (is_kept) fprintf(out, "amp=0\n");
        found |= in_net;
    }
    return found;
}

static amp_status copy(const char *from, FILE *out, const edits *e, amp_error *error)
{
    cfg_document *document;
    AMP_TRY(amp_cfg_document(from, &document, error));
    int found = copy_lines(document, out, e);
    amp_document_give_back(document);
    return found ? AMP_OK : amp_fail(error, AMP_BAD_CONFIG, "%s: has no [net] section; is it a .cfg file?",
                                     from);
}

amp_status amp_cfg_copy(const char *from, const char *to, const amp_cfg_change *changes, int count,
                        amp_error *error)
{
    amp_output out;
    AMP_TRY(amp_output_begin(to, &out, error));
    const edits e = { .changes = changes, .count = count };
    return amp_output_end(&out, copy(from, out.stream, &e, error), error);
}

FILE *amp_memory_file(char name[AMP_MEMORY_FILE])
{
    int file = memfd_create("amp", MFD_CLOEXEC);
    FILE *stream = file < 0 ? NULL : fdopen(file, "w");
    snprintf(name, AMP_MEMORY_FILE, "/proc/%ld/fd/%d", (long)getpid(), file);
    if (!stream) darknet_amp_refuse("cannot make a file in memory: %s", strerror(errno));
    return stream;
}

static amp_status copy_in_memory(const char *from, const edits *e, char name[AMP_MEMORY_FILE],
                                 amp_error *error)
{
    FILE *out = amp_memory_file(name);
    AMP_TRY(copy(from, out, e, error));
    if (!fflush(out)) return AMP_OK;
    return amp_fail(error, AMP_IO_FAILED, "%s: cannot write a copy of the .cfg file: %s", from,
                    strerror(errno));
}

amp_status amp_cfg_copy_in_memory(const char *from, const amp_cfg_change *changes, int count,
                                  const char *options, char name[AMP_MEMORY_FILE], amp_error *error)
{
    amp_error cause;
    const edits e = { .changes = changes, .count = count };
    AMP_TRY(copy_in_memory(from, &e, name, error));
    if (amp_host_check_cfg(name, CFG_FOR_ANYTHING, NULL, &cause) == AMP_OK) return AMP_OK;
    const char *what = strchr(cause.message + strlen(name), ' '); /* skips file name and line number */
    return amp_fail(error, AMP_BAD_CONFIG, "%.300s with %s:%s", from, options, what ? what : "");
}

amp_status amp_cfg_keep_in_memory(const char *from, const char *kept, int layers, char name[AMP_MEMORY_FILE],
                                  amp_error *error)
{
    const edits e = { .kept = kept, .layers = layers };
    return copy_in_memory(from, &e, name, error);
}

amp_status amp_cfg_look(const char *cfg, const char *dtype, cfg_use use, amp_cfg_facts *facts,
                        amp_error *error)
{
    cfg_document *document;
    *facts = (amp_cfg_facts){ .batch = 0 };
    AMP_TRY(amp_host_is_on(cfg, dtype, &facts->under_amp, error));
    AMP_TRY(amp_host_check_cfg(cfg, use, &facts->summary, error));
    AMP_TRY(amp_cfg_document(cfg, &document, error));
    facts->batch = (int)cfg_net_number(document, "batch", 1);
    facts->subdivisions = (int)cfg_net_number(document, "subdivisions", 1);
    facts->max_batches = (long)cfg_net_number(document, "max_batches", 0);
    amp_document_give_back(document);
    return AMP_OK;
}
