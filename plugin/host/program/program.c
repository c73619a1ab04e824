/* See program.h. */
#include "program.h"

#include <string.h>

#include "../fork.h"

static amp_program program = { .cache = -1, .ranks.networks = 1 };

const amp_program *amp_this_program(void) { return &program; }
amp_program *amp_program_to_set(void) { return &program; }

/* ---- its files ---- */

/* Whether a .cfg begins with a section and a .data file with a key: a command line may have them confused. */
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
    if (program.is_darknet && !*kept && is_kind(*out, first)) *kept = *out;
    return AMP_OK;
}

amp_status amp_cfg_document(const char *file, cfg_document **out, amp_error *error)
{
    return take(file, amp_cfg_fork.cfg_syntax, CFG_SECTION, &program.cfg, out, error);
}

amp_status amp_data_document(const char *file, cfg_document **out, amp_error *error)
{
    return take(file, amp_cfg_fork.data_syntax, CFG_OPTION, &program.data, out, error);
}

void amp_document_give_back(cfg_document *d)
{
    if (d != program.cfg && d != program.data) cfg_document_free(d);
}
