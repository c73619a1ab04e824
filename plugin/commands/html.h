/* Text within HTML and SVG. */
#pragma once

#include <stdio.h>

/* What would end the text as entities; bytes that are not UTF-8, and control characters, as U+FFFD. */
void amp_html_text(FILE *, const char *text);
