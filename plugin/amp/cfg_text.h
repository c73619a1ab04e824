/* For .cfg and .data files: error messages, parsing of numbers, and suggestions for misspelt names. */
#pragma once

#include "../tensor/status.h"

/* The place of an error. section, key and value may be NULL. */
typedef struct cfg_place {
    const char *file;
    unsigned long line; /* 0: the file as a whole */
    const char *section, *key, *value;
} cfg_place;

/* Sets *error to "FILE:LINE: [section] key = value: problem; allowed: allowed" (allowed may be NULL), and
 * returns AMP_BAD_CONFIG. Text from the file is made printable and shortened to fit one line. */
amp_status cfg_fail(amp_error *error, cfg_place place, const char *problem, const char *allowed);

/* The allowed sections, for messages about an unknown section. */
#define CFG_SECTIONS_ALLOWED "the layers of Darknet, [net] first, and [amp]"

/* Parses a plain decimal number; strtod alone would accept "nan", "inf", "0x10" and the start of "2x".
 * Returns NULL, or what is wrong. */
const char *cfg_parse_number(const char *value, double *number);

/* Writes "WHAT, did you mean NAME?" to text[size] and returns 1. NAME is the entry of names[count] that is
 * closest to `name`. If no entry is close, writes only WHAT and returns 0. */
int cfg_did_you_mean(char *text, size_t size, const char *what, const char *name, const char *const *names,
                     size_t count);

/* Whether text begins with the UTF-8 byte order mark, which some editors write. */
int cfg_begins_with_mark(const char *text);

/* Copies text to out[size], with '?' for each control character, and "..." at the end if it does not fit. */
void cfg_printable(char *out, size_t size, const char *text);
