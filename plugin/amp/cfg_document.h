/* A .cfg or .data file in memory: its bytes, and its lines as Darknet's own reader understands them.
 *
 * Darknet removes every blank from a line, so "init_scale = 65 536" means init_scale=65536. Then a line that
 * starts with '#' or ';' is a comment, a line that starts with '[' begins a section, and any other line is
 * key=value. This reader also removes '\r' and '\f', which stock Darknet keeps. It accepts any bytes: a bad
 * line becomes an item that says what is wrong. */
#pragma once

#include "cfg_text.h"

/* Limits in bytes. A longer line or file results in a CFG_BROKEN item. */
enum { CFG_LINE_LIMIT = 65536, CFG_FILE_LIMIT = 1 << 26 };

/* How a fork of Darknet reads a file. */
typedef enum cfg_syntax {
    CFG_PLAIN,  /* as described above */
    CFG_STRICT, /* how the hank-ai fork reads a .cfg: a '#' begins a comment anywhere in a line, and a line
                   that begins with ';' is a comment only if it has no '=' */
    CFG_SPACED  /* hank-ai's .data file: only blanks around a key and its value are removed, ':' may replace
                   '=', and a line is a comment only if it begins with '#' or ';' */
} cfg_syntax;

typedef enum cfg_kind {
    CFG_NOTHING, /* a blank line or a comment; no text */
    CFG_SECTION, /* text: the whole line, "[amp]" */
    CFG_OPTION,  /* text: the key; value: what follows the first '=', or NULL if there is no '=' */
    CFG_BROKEN   /* text: what is wrong with the line */
} cfg_kind;

typedef struct cfg_item {
    cfg_kind kind;
    unsigned long line;     /* number of the line, from 1 */
    const char *text, *value;
    const char *raw;        /* the line as it is in the file, including its '\n'; not terminated */
    size_t raw_size;
    int blanks; /* 1: blanks were removed inside the value of a CFG_OPTION, not only around it */
    int fatal;  /* 1: this CFG_BROKEN line is the final item, because reading has stopped here */
} cfg_item;

typedef struct cfg_document {
    char *file;      /* the file's name */
    cfg_item *items; /* one for each line, in the file's order */
    size_t count;
    char *bytes, *texts; /* the memory into which the items point */
    size_t size;         /* number of bytes read */
} cfg_document;

/* The caller frees *out. AMP_BAD_CONFIG: the file is missing, unreadable or not regular; *out is NULL. */
amp_status cfg_document_read(const char *file, cfg_syntax syntax, cfg_document **out, amp_error *error);
void cfg_document_free(cfg_document *); /* NULL is fine */

int cfg_is_net(const char *section); /* "[net]" or its other name, "[network]" */

/* The value of `key` in [net], or `fallback`. A repeated key's first value counts, as in Darknet. */
double cfg_net_number(const cfg_document *, const char *key, double fallback);
