/* Reads a Darknet .cfg line by line, as Darknet's own read_cfg does, but survives any file.
 *
 * Darknet drops every blank in a line, so "init_scale = 65 536" is init_scale=65536. A line that then starts
 * with '#' or ';' is a comment (there are no comments after a value), one with '[' a section, and any other
 * is key=value. This reader also drops '\r' and '\f', which stock Darknet keeps, rejects what is not text,
 * and reports each item's line number. config.c interprets the items. */
#pragma once

#include "../tensor/status.h"

#define CFG_LINE_LIMIT 65536 /* bytes of one line; no valid .cfg needs more */

typedef enum cfg_kind {
    CFG_SECTION, /* text: the whole line, "[amp]" */
    CFG_OPTION,  /* text: the key; value: what follows the first '=', NULL if there is none */
    CFG_BROKEN   /* text: what is wrong with the line, which is skipped */
} cfg_kind;

typedef struct cfg_item {
    cfg_kind kind;
    unsigned long line; /* from 1 */
    const char *text, *value; /* valid until take returns */
    int blanks; /* CFG_OPTION: blanks were dropped inside the value, not only around it */
    int fatal; /* CFG_BROKEN: Darknet itself loses track of the file here */
} cfg_item;

typedef amp_status cfg_take(void *context, const cfg_item *item, amp_error *error);

/* Passes every item except comments and blank lines to take, in file order. It stops after a fatal item, at
 * the end of the file, or if take returns something other than AMP_OK, which cfg_read then returns.
 * AMP_BAD_CONFIG: the file is missing, unreadable or not a regular file. */
amp_status cfg_read(const char *file, cfg_take *take, void *context, amp_error *error);
/* cfg_read for a .data file. spaced: read it as hank-ai's Darknet does: blanks are dropped only around a key
 * and its value, ':' may replace '=', and a line is a comment only if it begins with '#' or ';'. */
amp_status cfg_read_data(const char *file, int spaced, cfg_take *take, void *context, amp_error *error);

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

/* For programs that copy a file's lines: reduces a line to its section or key, as cfg_read delivers them. */
void cfg_keep_key(char *line);

int cfg_is_net(const char *section); /* "[net]" or its other name, "[network]" */

/* The integer value of `key` in [net], as Darknet reads it: the first, if it is repeated. fallback if it is
 * not given. */
amp_status cfg_net_number(const char *cfg, const char *key, double fallback, double *value, amp_error *);

/* Parses a plain decimal number: strtod alone would also accept "nan", "inf", "0x10" and the start of "2x".
 * Returns NULL, or what is wrong with value; then *number is undefined. */
const char *cfg_parse_number(const char *value, double *number);

/* Writes "WHAT, did you mean NAME?" to text[size], where NAME is the one of names[count] that `name` probably
 * misspells. If none is close, writes only WHAT and returns 0. */
int cfg_did_you_mean(char *text, size_t size, const char *what, const char *name, const char *const *names,
                     size_t count);

/* Whether the text begins with UTF-8's byte order mark, which some editors write. */
int cfg_begins_with_mark(const char *text);

/* Copies text to out[size], truncated to size - 1 bytes with "..." at its end, control characters replaced by
 * '?'. */
void cfg_printable(char *out, size_t size, const char *text);
