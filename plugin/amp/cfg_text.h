/* The words and numbers of .cfg and .data files: messages about them, and what counts as a number or as a
 * misspelling. */
#pragma once

#include "../tensor/status.h"

/* Where an error is; section, key and value may be NULL. */
typedef struct cfg_place {
    const char *file;
    unsigned long line; /* 0: the file as a whole */
    const char *section, *key, *value;
} cfg_place;

/* Fails with the line "FILE:LINE: [section] key = value: problem; allowed: allowed" (allowed may be NULL).
 * Text from the file is shortened and control characters are replaced, so that the message stays one line. */
amp_status cfg_fail(amp_error *error, cfg_place place, const char *problem, const char *allowed);

/* What a message lists as allowed if a section's name is wrong. */
#define CFG_SECTIONS_ALLOWED "the layers of Darknet, [net] first, and [amp]"

/* Parses a plain decimal number: strtod alone would also accept "nan", "inf", "0x10" and the start of "2x".
 * Returns NULL, or what is wrong with value; then *number is undefined. */
const char *cfg_parse_number(const char *value, double *number);

/* Writes "WHAT, did you mean NAME?" to text[size], where NAME is the one of names[count] that `name` probably
 * misspells. If none is close, writes only WHAT and returns 0. */
int cfg_did_you_mean(char *text, size_t size, const char *what, const char *name, const char *const *names,
                     size_t count);

/* Whether the text begins with the byte order mark of UTF-8, which some editors write. */
int cfg_begins_with_mark(const char *text);

/* Copies text to out[size], truncated to size - 1 bytes with "..." at its end, control characters replaced by
 * '?'. */
void cfg_printable(char *out, size_t size, const char *text);
