/* See documents.h. */
#include "documents.h"

#include <string.h>

#include "../fork.h"

enum { CFG, DATA };

static struct { int keeps; cfg_document *kept[2]; } documents;

void amp_documents_keep(void) { documents.keeps = 1; }

/* Whether a .cfg begins with a section and a .data file with a key: a command line may have them confused. */
static int is_kind(const cfg_document *d, int kind)
{
    size_t i = 0;
    while (i < d->count && d->items[i].kind == CFG_NOTHING) i++;
    return i < d->count && d->items[i].kind == (kind == CFG ? CFG_SECTION : CFG_OPTION);
}

static amp_status take(const char *file, int kind, cfg_document **out, amp_error *error)
{
    cfg_document **kept = &documents.kept[kind];
    cfg_syntax syntax = kind == CFG ? amp_cfg_fork.cfg_syntax : amp_cfg_fork.data_syntax;
    *out = *kept;
    if (*kept && !strcmp((*kept)->file, file)) return AMP_OK;
    AMP_TRY(cfg_document_read(file, syntax, out, error));
    if (documents.keeps && !*kept && is_kind(*out, kind)) *kept = *out;
    return AMP_OK;
}

amp_status amp_cfg_document(const char *file, cfg_document **out, amp_error *error)
{
    return take(file, CFG, out, error);
}

amp_status amp_data_document(const char *file, cfg_document **out, amp_error *error)
{
    return take(file, DATA, out, error);
}

void amp_document_give_back(cfg_document *d)
{
    if (d != documents.kept[CFG] && d != documents.kept[DATA]) cfg_document_free(d);
}
