/* `darknet amp clean`: a .cfg without anything of AMP's, to be sent to who has another program. */
#include <errno.h>
#include <string.h>

#include "../amp/cfg_reader.h"
#include "../amp/config.h"
#include "../host/program/cfg_stream.h"
#include "../host/program/failure.h"
#include "arguments.h"
#include "command.h"
#include "json.h"

/* The line of the last key of [amp], of which a .cfg has one at most. What is between its header and that key
 * goes; comments behind the key stay, since they may well be about the section that follows. */
typedef struct amp_section { unsigned long last; int inside; } amp_section;

static amp_status find_end(void *context, const cfg_item *item, amp_error *error)
{
    amp_section *section = context;
    (void)error;
    if (item->kind == CFG_SECTION) section->inside = !strcmp(item->text, "[amp]");
    if (section->inside) section->last = item->line;
    return AMP_OK;
}

static void copy_lines(FILE *in, FILE *out, int enabled, const amp_section *section)
{
    char *line = NULL;
    size_t room = 0;
    amp_cfg_part part = AMP_PART_LAYER;
    ssize_t length;
    for (unsigned long number = 1; (length = getline(&line, &room, in)) >= 0; number++) {
        char *key = amp_allocated(strdup(line));
        int ours = amp_cfg_line_is_ours(key, &part, enabled);
        if (part == AMP_PART_AMP) ours = number <= section->last;
        if (!ours) fwrite(line, 1, (size_t)length, out);
        free(key);
    }
    free(line);
}

static amp_status clean(const char *cfg, FILE *out, int enabled, amp_error *error)
{
    amp_section section = { .last = 0 };
    amp_status status = AMP_OK;
    AMP_TRY(cfg_read(cfg, find_end, &section, error));
    FILE *in = fopen(cfg, "r");
    if (!in)
        return amp_fail(error, AMP_IO_FAILED, "%s: cannot read the .cfg file: %s", cfg, strerror(errno));
    errno = 0;
    copy_lines(in, out, enabled, &section);
    if (ferror(in))
        status = amp_fail(error, AMP_IO_FAILED, "%s: cannot read the .cfg file: %s", cfg, strerror(errno));
    fclose(in);
    return status;
}

amp_status amp_command_clean(int argc, char **argv, amp_error *error)
{
    const char *cfg = NULL, *to = "-";
    const amp_argument arguments[] = {
        { .name = "CFG", .text = &cfg, .about = "the network's .cfg" },
        { .name = "OUT", .text = &to, .optional = 1,
          .about = "the file to write, which may be CFG itself (-: standard output, as without it)" },
        { 0 } };
    amp_config *config;
    amp_output out;
    AMP_TRY(amp_arguments_read("amp clean", argc - 3, argv + 3, arguments, error));
    AMP_TRY(amp_config_read(cfg, NULL, AMP_FP32, &config, error));
    int enabled = config->enabled;
    amp_config_free(config);
    AMP_TRY(amp_output_begin(to, &out, error));
    return amp_output_end(&out, clean(cfg, out.stream, enabled, error), error);
}
