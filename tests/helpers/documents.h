/* Settings and checks of a .cfg by its name, as a Darknet of one syntax reads it. */
#pragma once

#include "amp/cfg_check.h"
#include "amp/config.h"

static inline amp_status config_of(const char *file, cfg_syntax syntax, const char *command_line,
                                   amp_dtype default_dtype, amp_config **out, amp_error *error)
{
    cfg_document *document;
    *out = NULL;
    AMP_TRY(cfg_document_read(file, syntax, &document, error));
    amp_status status = amp_config_read(document, command_line, default_dtype, out, error);
    cfg_document_free(document);
    return status;
}

static inline void check_file(const char *file, const cfg_fork *fork, cfg_use use,
                              const cfg_listener *listener, cfg_summary *summary)
{
    amp_error error;
    cfg_document *document;
    if (cfg_document_read(file, fork->cfg_syntax, &document, &error) != AMP_OK) fail_msg("%s", error.message);
    cfg_check(document, fork, use, listener, summary);
    cfg_document_free(document);
}
