/* The report's charts. Each is a <figure> with two drawings of the same, one of which the style sheet shows: for a page of a
 * desk's width and for a phone's, where the first would have letters too small to read. */
#ifndef AMP_COMMANDS_REPORT_REPORT_CHARTS_H
#define AMP_COMMANDS_REPORT_REPORT_CHARTS_H

#include "report_curves.h"

void amp_chart_loss(FILE *, const amp_comparison *, const amp_curves *);
void amp_chart_scale(FILE *, const amp_comparison *, const amp_curves *);
void amp_chart_score(FILE *, const amp_comparison *, int score);
void amp_chart_throughput(FILE *, const amp_comparison *);
void amp_chart_memory(FILE *, const amp_comparison *);

/* What a dtype is drawn with, everywhere: class k<slot> for its colour and dashes, and svg.h's marker of that kind. */
int amp_chart_slot(const char *dtype);
void amp_chart_legend(FILE *, const amp_comparison *);

/* Heading and explanation; the drawings and </figure> follow. class_name is the figure's. */
void amp_chart_head(FILE *, const char *class_name, const char *title, const char *explanation);

#endif
