/* See cfg.h. */
#include "cfg.h"

#include <string.h>

#include "../../include/darknet_amp.h"
#include "../fork.h"
#include "failure.h"
#include "program.h"
#include "sharing.h"

/* ---- documents ---- */

/* Whether the document's first item, after blank lines and comments, is of kind `first`: a section in a .cfg,
 * a key in a .data file. If not, the user may have swapped the two files on the command line. */
static int is_kind(const cfg_document *d, cfg_kind first)
{
    size_t i = 0;
    while (i < d->count && d->items[i].kind == CFG_NOTHING) i++;
    return i < d->count && d->items[i].kind == first;
}

static amp_status take(const char *file, cfg_syntax syntax, cfg_kind first, cfg_document **kept,
                       cfg_document **out, amp_error *error)
{
    *out = *kept;
    if (*kept && !strcmp((*kept)->file, file)) return AMP_OK;
    AMP_TRY(cfg_document_read(file, syntax, out, error));
    if (amp_this_program()->is_darknet && !*kept && is_kind(*out, first)) *kept = *out;
    return AMP_OK;
}

amp_status amp_cfg_document(const char *file, cfg_document **out, amp_error *error)
{
    return take(file, amp_cfg_fork.cfg_syntax, CFG_SECTION, &amp_program_to_set()->cfg, out, error);
}

amp_status amp_data_document(const char *file, cfg_document **out, amp_error *error)
{
    return take(file, amp_cfg_fork.data_syntax, CFG_OPTION, &amp_program_to_set()->data, out, error);
}

void amp_document_give_back(cfg_document *d)
{
    if (d != amp_this_program()->cfg && d != amp_this_program()->data) cfg_document_free(d);
}

/* ---- settings and mistakes ---- */

amp_status amp_host_read_config(const char *cfg, const char *dtype, amp_config **out, amp_error *error)
{
    cfg_document *document;
    AMP_TRY(amp_cfg_document(cfg, &document, error));
    amp_status status = amp_config_read(document, dtype, amp_fork_default_dtype(), out, error);
    amp_document_give_back(document);
    return status;
}

amp_status amp_host_is_on(const char *cfg, const char *dtype, int *on, amp_error *error)
{
    amp_config *config;
    AMP_TRY(amp_host_read_config(cfg, dtype, &config, error));
    *on = config->enabled;
    amp_config_free(config);
    return AMP_OK;
}

static void print_warning(void *context, int is_error, const char *line)
{
    fprintf(stderr, "warning: %s\n", line);
}

amp_status amp_host_check_cfg(const char *cfg, cfg_use use, cfg_summary *found, amp_error *error)
{
    int *has_warned = &amp_program_to_set()->has_warned;
    const cfg_listener printer = { print_warning, NULL };
    cfg_summary own, *summary = found ? found : &own;
    cfg_document *document;
    AMP_TRY(amp_cfg_document(cfg, &document, error));
    cfg_check(document, &amp_cfg_fork, use, NULL, summary);
    if (!summary->errors && summary->warnings && !*has_warned) {
        *has_warned = 1;
        cfg_check(document, &amp_cfg_fork, use, &printer, summary);
    }
    amp_document_give_back(document);
    return summary->errors ? amp_fail(error, AMP_BAD_CONFIG, "%s", summary->first_error) : AMP_OK;
}

int amp_host_cfg_uses_amp(const char *cfg, cfg_use use, cfg_summary *summary)
{
    amp_error error;
    int wanted = 0;
    amp_host_check(amp_host_is_on(cfg, amp_this_program()->dtype, &wanted, &error), &error);
    if (wanted) amp_host_check(amp_host_check_cfg(cfg, use, summary, &error), &error);
    return wanted;
}

/* ---- the .cfg as Darknet's parser reads it: without the lines that only AMP reads ---- */

static const amp_config *read_options(const char *cfg_file)
{
    amp_error error;
    amp_config *reading;
    amp_program *program = amp_program_to_set();
    amp_config_free(amp_host_take_config());
    amp_host_check(amp_host_read_config(cfg_file, program->dtype, &reading, &error), &error);
    amp_this_thread()->reading = reading;
    if (reading->enabled) program->uses_amp = 1;
    if (program->chosen.recompute && reading->checkpoint == AMP_CHECKPOINT_OFF)
        reading->checkpoint = AMP_CHECKPOINT_AUTO;
    if (program->chosen.memory) reading->memory = (double)program->chosen.memory;
    if (reading->enabled)
        amp_host_check(amp_host_check_cfg(cfg_file, CFG_FOR_ANYTHING, NULL, &error), &error);
    return reading;
}

/* Whether Darknet also reads this key of [net]: AlexeyAB's Darknet reads loss_scale. */
static int is_darknets(const char *key)
{
    const cfg_section_kind *net = &amp_cfg_fork.kinds[0];
    int k = 0;
    while (k < net->count && strcmp(net->keys[k].name, key)) k++;
    return k < net->count;
}

int amp_cfg_line_is_ours(const cfg_item *line, amp_cfg_part *part, int enabled)
{
    if (line->kind == CFG_SECTION)
        *part = !strcmp(line->text, "[amp]") ? AMP_PART_AMP : cfg_is_net(line->text) ? AMP_PART_NET
                                                                                      : AMP_PART_LAYER;
    if (*part == AMP_PART_AMP || line->kind != CFG_OPTION) return *part == AMP_PART_AMP;
    if (*part == AMP_PART_LAYER) return amp_config_is_layer_key(line->text);
    return amp_config_is_key(line->text) && (enabled || !is_darknets(line->text));
}

/* Writes the .cfg, with AMP's own lines blank. subdivisions: replaces the .cfg's number; 0: keeps it. */
static void write_lines(const cfg_document *cfg, int enabled, int subdivisions, FILE *out)
{
    amp_cfg_part part = AMP_PART_LAYER;
    for (const cfg_item *line = cfg->items; line < cfg->items + cfg->count; line++) {
        int hidden = amp_cfg_line_is_ours(line, &part, enabled);
        int in_net = subdivisions && part == AMP_PART_NET;
        if (hidden || (in_net && line->kind == CFG_OPTION && !strcmp(line->text, "subdivisions")))
            putc('\n', out);
        else fwrite(line->raw, 1, line->raw_size, out);
        if (in_net && line->kind == CFG_SECTION) fprintf(out, "subdivisions=%d\n", subdivisions);
    }
}

FILE *amp_cfg_open(const char *file)
{
    enum { ADDED = 64 }; /* bytes for the line subdivisions=N */
    amp_error error;
    cfg_document *cfg;
    if (!file) darknet_amp_refuse("command line: a .cfg file is missing");
    const amp_config *reading = read_options(file);
    amp_host_check(amp_cfg_document(file, &cfg, &error), &error);
    int subdivisions = reading->enabled ? amp_this_program()->chosen.subdivisions : 0;
    if (reading->enabled && !subdivisions)
        subdivisions = amp_sharing_subdivisions(cfg, reading->sync_batchnorm);
    FILE *out = amp_allocated(fmemopen(NULL, cfg->size + ADDED, "w+"));
    write_lines(cfg, reading->enabled, subdivisions, out);
    amp_document_give_back(cfg);
    rewind(out);
    return out;
}

void amp_cfg_refuse(const char *reason)
{
    amp_error mistake;
    const amp_config *reading = amp_this_thread()->reading;
    if (!reading) darknet_amp_refuse("%s", reason);
    if (amp_host_check_cfg(reading->file, CFG_FOR_ANYTHING, NULL, &mistake) == AMP_OK)
        darknet_amp_refuse("%s: %s", reading->file, reason);
    darknet_amp_refuse("%s: %s; amp check: %s", reading->file, reason, mistake.message);
}

int amp_host_parser_uses_amp(void)
{
    const amp_config *reading = amp_this_thread()->reading;
    return reading && reading->enabled;
}

int darknet_amp_default_stream(void) { return amp_this_program()->uses_amp; }

amp_config *amp_host_take_config(void)
{
    amp_config *config = amp_this_thread()->reading;
    amp_this_thread()->reading = NULL;
    return config;
}
