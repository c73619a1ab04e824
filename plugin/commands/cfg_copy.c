/* Looking at a .cfg, and copying it with other values in [net]. */
#define _GNU_SOURCE /* memfd_create */
#include "cfg_copy.h"

#include "../amp/cfg_reader.h"
#include "../host/fork.h"
#include "../host/program/failure.h"
#include "../host/program/request.h"
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

/* What a copy has instead of what `from` has. kept: a flag for each layer's section, which gets amp=0. */
typedef struct edits { const amp_cfg_change *changes; int count; const char *kept; int layers; } edits;

/* Without an exponent, which not every Darknet reads. */
static void write_value(FILE *out, const amp_cfg_change *change)
{
    enum { DIGITS = 20 };
    char value[32];
    snprintf(value, sizeof value, "%.17g", change->value);
    if (strchr(value, 'e')) fprintf(out, "%s=%.*f\n", change->key, DIGITS, change->value);
    else fprintf(out, "%s=%s\n", change->key, value);
}

/* A last line without an end is ended, so that what follows is a line of its own. 1: [net] was found. */
static int copy_lines(FILE *in, FILE *out, const edits *e)
{
    char *line = NULL;
    size_t room = 0;
    int in_net = 0, found = 0, layer = -1, is_kept = 0;
    for (ssize_t length; (length = getline(&line, &room, in)) >= 0;) {
        char *key = amp_allocated(strdup(line));
        cfg_keep_key(key);
        int begins = cfg_is_net(key);
        if (*key == '[') {
            in_net = begins;
            is_kept = !begins && strcmp(key, "[amp]") && ++layer < e->layers && e->kept[layer];
        }
        int starts_kept = is_kept && *key == '[';
        int dropped = (in_net && is_changed(key, e->changes, e->count)) || (is_kept && !strcmp(key, "amp"));
        free(key);
        if (dropped) continue;
        fwrite(line, 1, (size_t)length, out); /* a NUL too: it is for the copy's reader to refuse */
        if (line[length - 1] != '\n') putc('\n', out);
        for (int i = 0; begins && !found && i < e->count; i++) write_value(out, &e->changes[i]);
        if (starts_kept) fprintf(out, "amp=0\n");
        found |= begins;
    }
    free(line);
    return found;
}

static amp_status copy(const char *from, FILE *out, const edits *e, amp_error *error)
{
    amp_status status = AMP_OK;
    FILE *in = fopen(from, "r");
    if (!in)
        return amp_fail(error, AMP_IO_FAILED, "%s: cannot read the .cfg file: %s", from, strerror(errno));
    errno = 0;
    int found = copy_lines(in, out, e);
    if (ferror(in))
        status = amp_fail(error, AMP_IO_FAILED, "%s: cannot read the .cfg file: %s", from, strerror(errno));
    else if (!found)
        status = amp_fail(error, AMP_BAD_CONFIG, "%s: has no [net] section; is it a .cfg file?", from);
    fclose(in);
    return status;
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
    if (amp_host_check_cfg(name, CFG_FOR_ANYTHING, &cause) == AMP_OK) return AMP_OK;
    const char *what = strchr(cause.message + strlen(name), ' '); /* behind the file and line of the copy */
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
    amp_config *config;
    double batch, subdivisions, max_batches;
    AMP_TRY(amp_config_read(cfg, dtype, amp_fork_default_dtype(), &config, error));
    *facts = (amp_cfg_facts){ .under_amp = config->enabled };
    amp_config_free(config);
    AMP_TRY(amp_host_look_at_cfg(cfg, use, &facts->summary, error));
    AMP_TRY(cfg_net_number(cfg, "batch", 1, &batch, error));
    AMP_TRY(cfg_net_number(cfg, "subdivisions", 1, &subdivisions, error));
    AMP_TRY(cfg_net_number(cfg, "max_batches", 0, &max_batches, error));
    facts->batch = (int)batch;
    facts->subdivisions = (int)subdivisions;
    facts->max_batches = (long)max_batches;
    return AMP_OK;
}
