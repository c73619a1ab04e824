/* How the report writes text and numbers: escaped, and a dash for what was not measured. */
#ifndef AMP_COMMANDS_REPORT_REPORT_TEXT_H
#define AMP_COMMANDS_REPORT_REPORT_TEXT_H

#include "../compare/comparison.h"

/* For HTML and XML, content and attributes: <>&"' as entities; bytes that are not UTF-8, and control characters, which XML
 * does not have, as U+FFFD. NULL writes nothing. */
void amp_html_text(FILE *, const char *text);

/* Room for one number's text. */
enum { AMP_REPORT_NUMBER = 48 };

/* "–" for inf and NaN. */
const char *amp_report_number(double value, int decimals, char text[AMP_REPORT_NUMBER]);
/* With three digits or more: 12.3M, 1234, 123, 12.3, 1.23. "–" also for 0 and less, which no rate and no memory is. */
const char *amp_report_amount(double value, char text[AMP_REPORT_NUMBER]);
/* 0.9739: "97.39 %" */
const char *amp_report_percent(double share, char text[AMP_REPORT_NUMBER]);
/* In points, with its sign: "+0.12", "-0.30", "0.00". */
const char *amp_report_points(double points, char text[AMP_REPORT_NUMBER]);

/* Of a summary's mean: NaN without values. */
double amp_mean_value(const amp_mean *);

int amp_run_has_score(const amp_run *);

#endif
