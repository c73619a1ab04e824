/* A .cfg or .data file, read once: its bytes, and its lines as Darknet's own reader takes them.
 *
 * Darknet drops every blank in a line, so "init_scale = 65 536" is init_scale=65536. A line that then starts
 * with '#' or ';' is a comment (there are no comments after a value), one with '[' a section, and any other
 * is key=value. This reader also drops '\r' and '\f', which stock Darknet keeps, and survives any file:
 * what is wrong with a line is kept in its place. */
#pragma once

#include "cfg_text.h"

/* Larger lines and files are broken; no valid .cfg needs more. */
enum { CFG_LINE_LIMIT = 65536, CFG_FILE_LIMIT = 1 << 26 };

/* How a Darknet reads a file. PLAIN: as above. hank-ai's reads a .cfg as STRICT: a '#' begins a comment
 * anywhere in a line, and a line that begins with ';' is a comment only if it has no '='. It reads a .data
 * file as SPACED: blanks are dropped only around a key and its value, ':' may replace '=', and a line is a
 * comment only if it begins with '#' or ';'. */
typedef enum cfg_syntax { CFG_PLAIN, CFG_STRICT, CFG_SPACED } cfg_syntax;

typedef enum cfg_kind {
    CFG_NOTHING, /* a blank line or a comment; no text */
    CFG_SECTION, /* text: the whole line, "[amp]" */
    CFG_OPTION,  /* text: the key; value: what follows the first '=', or NULL without one */
    CFG_BROKEN   /* text: what is wrong with the line */
} cfg_kind;

typedef struct cfg_item {
    cfg_kind kind;
    unsigned long line;     /* from 1 */
    const char *text, *value;
    const char *raw;        /* the line as it is in the file, with its end */
    size_t raw_size;
    int blanks; /* CFG_OPTION: blanks were dropped inside the value, not only around it */
    int fatal;  /* CFG_BROKEN: Darknet itself loses track of the file here; it is the last item */
} cfg_item;

typedef struct cfg_document {
    char *file;      /* the name it was read by */
    cfg_item *items; /* one for each line, in the file's order */
    size_t count;
    char *bytes, *texts; /* what the items point to */
    size_t size;         /* of the file, in bytes */
} cfg_document;

/* AMP_BAD_CONFIG: the file is missing, unreadable or not a regular file. The caller frees *out. */
amp_status cfg_document_read(const char *file, cfg_syntax syntax, cfg_document **out, amp_error *error);
void cfg_document_free(cfg_document *); /* NULL is fine */

int cfg_is_net(const char *section); /* "[net]" or its other name, "[network]" */

/* The value of `key` in [net], as Darknet reads it: the first, if it is repeated. fallback if it is not
 * given. */
double cfg_net_number(const cfg_document *, const char *key, double fallback);
