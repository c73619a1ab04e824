/* The .cfg as Darknet's parser reads it: without the lines that only AMP reads. See cfg_stream.h. */
#include "cfg_stream.h"

#include <string.h>

#include "../../include/darknet_amp.h"
#include "../fork.h"
#include "failure.h"
#include "request.h"
#include "sharing.h"

/* The settings of the .cfg that this thread's parser is reading, or NULL. */
static _Thread_local amp_config *reading;

static void read_options(const char *cfg_file)
{
    amp_error error;
    amp_program *program = amp_program_to_set();
    amp_config_free(reading);
    amp_host_check(amp_host_read_config(cfg_file, program->dtype, &reading, &error), &error);
    if (reading->enabled) program->uses_amp = 1;
    if (program->chosen.recompute && reading->checkpoint == AMP_CHECKPOINT_OFF)
        reading->checkpoint = AMP_CHECKPOINT_AUTO;
    if (program->chosen.memory) reading->memory = (double)program->chosen.memory;
    if (reading->enabled) amp_host_check(amp_host_check_cfg(cfg_file, CFG_FOR_ANYTHING, &error), &error);
}

/* Whether Darknet reads this key of [net] too: loss_scale is both AlexeyAB's and AMP's. */
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

/* subdivisions: instead of the .cfg's, or 0. */
static void write_lines(const cfg_document *cfg, int subdivisions, FILE *out)
{
    amp_cfg_part part = AMP_PART_LAYER;
    for (const cfg_item *line = cfg->items; line < cfg->items + cfg->count; line++) {
        int hidden = amp_cfg_line_is_ours(line, &part, reading->enabled);
        int in_net = subdivisions && part == AMP_PART_NET;
        if (hidden || (in_net && line->kind == CFG_OPTION && !strcmp(line->text, "subdivisions")))
            putc('\n', out);
        else fwrite(line->raw, 1, line->raw_size, out);
        if (in_net && line->kind == CFG_SECTION) fprintf(out, "subdivisions=%d\n", subdivisions);
    }
}

FILE *amp_cfg_open(const char *file)
{
    enum { ADDED = 64 }; /* bytes, for subdivisions= */
    amp_error error;
    cfg_document *cfg;
    if (!file) darknet_amp_refuse("command line: a .cfg file is missing");
    read_options(file);
    amp_host_check(amp_cfg_document(file, &cfg, &error), &error);
    int subdivisions = reading->enabled ? amp_this_program()->chosen.subdivisions : 0;
    if (reading->enabled && !subdivisions)
        subdivisions = amp_sharing_subdivisions(cfg, reading->sync_batchnorm);
    FILE *out = amp_allocated(fmemopen(NULL, cfg->size + ADDED, "w+"));
    write_lines(cfg, subdivisions, out);
    amp_document_give_back(cfg);
    rewind(out);
    return out;
}

void amp_cfg_refuse(const char *reason)
{
    amp_error mistake;
    if (!reading) darknet_amp_refuse("%s", reason);
    if (amp_host_check_cfg(reading->file, CFG_FOR_ANYTHING, &mistake) == AMP_OK)
        darknet_amp_refuse("%s: %s", reading->file, reason);
    darknet_amp_refuse("%s: %s; amp check: %s", reading->file, reason, mistake.message);
}

int amp_host_parser_uses_amp(void) { return reading && reading->enabled; }
int darknet_amp_default_stream(void) { return amp_this_program()->uses_amp; }

amp_config *amp_host_take_config(void)
{
    amp_config *config = reading;
    reading = NULL;
    return config;
}
