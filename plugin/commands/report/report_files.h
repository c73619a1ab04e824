/* What the files of a comparison's report have in common. */
#ifndef AMP_COMMANDS_REPORT_REPORT_FILES_H
#define AMP_COMMANDS_REPORT_REPORT_FILES_H

#include "../compare/comparison.h"
#include "../json.h"

typedef amp_status amp_report_writer(FILE *, const amp_comparison *, amp_error *);

/* Writes one file, as a whole or not at all (json.h's amp_output). */
amp_status amp_report_write(const amp_comparison *, const char *file, amp_report_writer *write, amp_error *);

/* report.json, which the page holds too. AMP_NO_MEMORY. */
amp_report_writer amp_report_write_json;

#endif
