/* A .cfg or .data file, read once: its bytes, and its lines as Darknet's own reader understands them.
 *
 * Darknet drops every blank in a line, so "init_scale = 65 536" is init_scale=65536. A line that then starts
 * with '#' or ';' is a comment (there are no comments after a value). A line that starts with '[' is a
 * section, and any other is key=value. This reader also drops '\r' and '\f', which stock Darknet keeps. It
 * accepts any bytes: an item for a bad line says what is wrong with it. */
#pragma once

#include "cfg_text.h"

/* In bytes. A line or file above its limit is CFG_BROKEN; no valid .cfg needs as much. */
enum { CFG_LINE_LIMIT = 65536, CFG_FILE_LIMIT = 1 << 26 };

/* How a fork of Darknet reads a file. */
typedef enum cfg_syntax {
    CFG_PLAIN,  /* as described above */
    CFG_STRICT, /* how hank-ai's reads a .cfg: a '#' begins a comment anywhere in a line, and a line that
                   begins with ';' is a comment only if it has no '=' */
    CFG_SPACED  /* how hank-ai's reads a .data file: blanks are dropped only around a key and its value, ':'
                   may replace '=', and a line is a comment only if it begins with '#' or ';' */
} cfg_syntax;

typedef enum cfg_kind {
    CFG_NOTHING, /* a blank line or a comment; no text */
    CFG_SECTION, /* text: the whole line, "[amp]" */
    CFG_OPTION,  /* text: the key; value: what follows the first '=', or NULL if there is no '=' */
    CFG_BROKEN   /* text: what is wrong with the line */
} cfg_kind;

typedef struct cfg_item {
    cfg_kind kind;
    unsigned long line;     /* from 1 */
    const char *text, *value;
    const char *raw;        /* the line as it is in the file, with its '\n' */
    size_t raw_size;
    int blanks; /* CFG_OPTION: blanks were dropped inside the value, not only around it */
    int fatal;  /* CFG_BROKEN: Darknet cannot read the rest of the file either; this is the last item */
} cfg_item;

typedef struct cfg_document {
    char *file;      /* the file's name */
    cfg_item *items; /* one for each line, in the file's order */
    size_t count;
    char *bytes, *texts; /* what the items point to */
    size_t size;         /* of the file, in bytes */
} cfg_document;

/* AMP_BAD_CONFIG: the file is missing, unreadable or not a regular file. The caller frees *out. */
amp_status cfg_document_read(const char *file, cfg_syntax syntax, cfg_document **out, amp_error *error);
void cfg_document_free(cfg_document *); /* NULL is fine */

int cfg_is_net(const char *section); /* "[net]" or its other name, "[network]" */

/* The value of `key` in [net], or fallback if it is not given. As in Darknet, the first counts if the key is
 * repeated. */
double cfg_net_number(const cfg_document *, const char *key, double fallback);
