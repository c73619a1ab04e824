/* The .cfg as Darknet's parser reads it: without the lines that only AMP reads. See cfg_stream.h. */
#include "cfg_stream.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "../../amp/cfg_reader.h"
#include "../../include/darknet_amp.h"
#include "../fork.h"
#include "failure.h"
#include "request.h"
#include "sharing.h"

/* The settings of the .cfg that this thread's parser is reading, or NULL. */
static _Thread_local amp_config *reading;
static atomic_int any_asked; /* 1 once any thread has read a .cfg with AMP on */
static amp_cfg_instead instead;

void amp_cfg_read_instead(const amp_cfg_instead *settings) { instead = *settings; }

static void read_options(const char *cfg_file)
{
    amp_error error;
    if (!cfg_file) darknet_amp_refuse("command line: a .cfg file is missing");
    amp_config_free(reading);
    amp_host_check(amp_config_read(cfg_file, amp_host_requested_dtype(), amp_fork_default_dtype(), &reading,
                                   &error),
                   &error);
    if (reading->enabled) any_asked = 1;
    if (instead.recompute && reading->checkpoint == AMP_CHECKPOINT_OFF)
        reading->checkpoint = AMP_CHECKPOINT_AUTO;
    if (instead.memory) reading->memory = (double)instead.memory;
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

int amp_cfg_line_is_ours(char *text, amp_cfg_part *part, int enabled)
{
    cfg_keep_key(text);
    if (*text == '[')
        *part = !strcmp(text, "[amp]") ? AMP_PART_AMP : cfg_is_net(text) ? AMP_PART_NET : AMP_PART_LAYER;
    if (*part == AMP_PART_NET) return amp_config_is_key(text) && (enabled || !is_darknets(text));
    return *part == AMP_PART_AMP || amp_config_is_layer_key(text);
}

FILE *amp_cfg_open(const char *file)
{
    enum { ADDED = 64 }; /* bytes, for subdivisions= */
    read_options(file);
    int subdivisions = reading->enabled ? instead.subdivisions : 0;
    if (reading->enabled && !subdivisions)
        subdivisions = amp_sharing_subdivisions(file, reading->sync_batchnorm);
    FILE *from = fopen(file, "r");
    struct stat status;
    if (!from || fstat(fileno(from), &status) != 0) return from;
    FILE *out = amp_allocated(fmemopen(NULL, (size_t)status.st_size + ADDED, "w+"));
    amp_cfg_part part = AMP_PART_LAYER;
    char *line = NULL;
    size_t room = 0;
    for (ssize_t length; (length = getline(&line, &room, from)) >= 0;) {
        char *text = amp_allocated(strdup(line));
        int hidden = amp_cfg_line_is_ours(text, &part, reading->enabled), in_net = part == AMP_PART_NET;
        if (hidden || (subdivisions && in_net && !strcmp(text, "subdivisions"))) putc('\n', out);
        else fwrite(line, 1, (size_t)length, out);
        if (subdivisions && in_net && *text == '[') fprintf(out, "subdivisions=%d\n", subdivisions);
        free(text);
    }
    free(line);
    fclose(from);
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
int darknet_amp_default_stream(void) { return any_asked; }

amp_config *amp_host_take_config(void)
{
    amp_config *config = reading;
    reading = NULL;
    return config;
}
