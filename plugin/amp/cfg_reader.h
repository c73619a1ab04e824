/* Reads a Darknet .cfg line by line, as Darknet's own read_cfg does, but survives any file at all.
 *
 * Darknet drops every blank of a line, so "init_scale = 65 536" is init_scale=65536; a line that then starts
 * with '#' or ';' is a comment (there are no comments behind a value), with '[' a section, else key=value.
 * The reader also drops '\r' and '\f', which stock Darknet keeps, refuses what is not text, and knows each
 * item's line number. What the items mean is not its business: see config.c. */
#pragma once

#include "../tensor/status.h"

#define CFG_LINE_LIMIT 65536 /* bytes of one line; nothing a .cfg can say needs more */

typedef enum cfg_kind {
    CFG_SECTION, /* text: the whole line, "[amp]" */
    CFG_OPTION,  /* text: the key; value: what follows the first '=', NULL if there is none */
    CFG_BROKEN   /* text: what is wrong with the line, which is skipped */
} cfg_kind;

typedef struct cfg_item {
    cfg_kind kind;
    unsigned long line; /* from 1 */
    const char *text, *value; /* valid until take returns */
    int blanks; /* CFG_OPTION: blanks were dropped from within the value, not around it */
    int fatal; /* CFG_BROKEN: Darknet itself loses track of the file here */
} cfg_item;

typedef amp_status cfg_take(void *context, const cfg_item *item, amp_error *error);

/* Hands every item that is neither a comment nor blank to take, in the file's order. It ends behind a fatal
 * item, with the file, and with what take returns other than AMP_OK, which cfg_read returns too.
 * AMP_BAD_CONFIG: the file is missing, unreadable or not a regular file. */
amp_status cfg_read(const char *file, cfg_take *take, void *context, amp_error *error);
/* cfg_read for a .data file. spaced: as hank-ai's Darknet reads it. Blanks are dropped only around a key and
 * its value, a ':' may replace the '=', and a line is a comment only if it begins with '#' or ';'. */
amp_status cfg_read_data(const char *file, int spaced, cfg_take *take, void *context, amp_error *error);

/* Where an error lies; section, key and value may be NULL. */
typedef struct cfg_place {
    const char *file;
    unsigned long line; /* 0: the file as a whole */
    const char *section, *key, *value;
} cfg_place;

/* Fails with the one line "FILE:LINE: [section] key = value: problem; allowed: allowed" (allowed may be
 * NULL). What came from the file is shortened and cleaned of control characters, so that the line stays one
 * line. */
amp_status cfg_fail(amp_error *error, cfg_place place, const char *problem, const char *allowed);

/* What a message says is allowed where a section's name is wrong. */
#define CFG_SECTIONS_ALLOWED "the layers of Darknet, [net] first, and [amp]"

/* For who copies a file's lines: leaves of a line its section or its key, as cfg_read hands them over. */
void cfg_keep_key(char *line);

int cfg_is_net(const char *section); /* "[net]" or its other name, "[network]" */

/* The whole number that `key` has in [net], as Darknet reads it: of two, the first. fallback where it is not
 * given. */
amp_status cfg_net_number(const char *cfg, const char *key, double fallback, double *value, amp_error *);

/* A plain decimal number: strtod alone would also take "nan", "inf", "0x10" and the front half of "2x".
 * Returns NULL, or what is wrong with value; *number is then of no meaning. */
const char *cfg_parse_number(const char *value, double *number);

/* Writes "WHAT, did you mean NAME?" to text[size] with the one of names[count] that `name` is probably a
 * misspelling of; WHAT alone, and returns 0, where none is close. */
int cfg_did_you_mean(char *text, size_t size, const char *what, const char *name, const char *const *names,
                     size_t count);

int cfg_begins_with_mark(const char *text); /* with UTF-8's byte order mark, as some editors begin a text */

/* Copies text to out[size], shortened to size - 1 bytes with "..." at its end, control characters replaced by
 * '?'. */
void cfg_printable(char *out, size_t size, const char *text);
