/* The tables of the HTML report. */
#ifndef AMP_COMMANDS_REPORT_REPORT_TABLES_H
#define AMP_COMMANDS_REPORT_REPORT_TABLES_H

#include "../compare/comparison.h"

void amp_html_dtypes(FILE *, const amp_comparison *);
void amp_html_runs(FILE *, const amp_comparison *);
void amp_html_facts(FILE *, const amp_comparison *); /* settings, machine, version */

#endif
