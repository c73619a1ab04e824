/* `darknet amp clean`: writes a .cfg without AMP's lines, so that other programs can read it. */
#include <string.h>

#include "../host/program/cfg.h"
#include "arguments.h"
#include "command.h"
#include "json.h"

/* Returns the number of the last line that `clean` removes: the line of the last key of [amp], or its header
 * if [amp] has no keys. Returns 0 if there is no [amp]. Comments after this line stay, because they may
 * describe the next section. */
static unsigned long last_line_of_amp(const cfg_document *cfg)
{
    unsigned long last = 0;
    int inside = 0;
    for (const cfg_item *line = cfg->items; line < cfg->items + cfg->count; line++) {
        if (line->kind == CFG_SECTION) inside = !strcmp(line->text, "[amp]");
        if (inside && line->kind != CFG_NOTHING) last = line->line;
    }
    return last;
}

static void copy_lines(const cfg_document *cfg, FILE *out, int enabled)
{
    amp_cfg_part part = AMP_PART_LAYER;
    unsigned long last = last_line_of_amp(cfg);
    for (const cfg_item *line = cfg->items; line < cfg->items + cfg->count; line++) {
        int ours = amp_cfg_line_is_ours(line, &part, enabled);
        if (part == AMP_PART_AMP) ours = line->line <= last;
        if (!ours) fwrite(line->raw, 1, line->raw_size, out);
    }
}

amp_status amp_command_clean(int argc, char **argv, amp_error *error)
{
    const char *cfg = NULL, *to = "-";
    amp_output out;
    cfg_document *document;
    int enabled;
    const amp_argument arguments[] = {
        { .name = "CFG", .text = &cfg, .about = "the network's .cfg" },
        { .name = "OUT", .text = &to, .optional = 1,
          .about = "the file to write, which may be CFG itself (-: standard output, the default)" },
        { 0 } };
    AMP_TRY(amp_arguments_read("amp clean", argc - 3, argv + 3, arguments, error));
    AMP_TRY(amp_host_is_on(cfg, NULL, &enabled, error));
    AMP_TRY(amp_output_begin(to, &out, error));
    amp_status status = amp_cfg_document(cfg, &document, error);
    if (status == AMP_OK) copy_lines(document, out.stream, enabled);
    amp_document_give_back(document);
    return amp_output_end(&out, status, error);
}
