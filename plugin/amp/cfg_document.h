/* A .cfg or .data file in memory: its bytes, and its lines as Darknet's own reader understands them.
 *
 * Darknet first removes every blank from a line, so "init_scale = 65 536" means init_scale=65536. After that,
 * a line that starts with '#' or ';' is a comment (a comment cannot follow a value), a line that starts with
 * '[' is a section, and any other line is key=value. This reader also removes '\r' and '\f', which stock
 * Darknet keeps. It accepts any bytes: a bad line becomes an item that says what is wrong with the line. */
#pragma once

#include "cfg_text.h"

/* Limits in bytes. A line or file above its limit results in a CFG_BROKEN item. No valid .cfg is that
 * large. */
enum { CFG_LINE_LIMIT = 65536, CFG_FILE_LIMIT = 1 << 26 };

/* How a fork of Darknet reads a file. */
typedef enum cfg_syntax {
    CFG_PLAIN,  /* as described above */
    CFG_STRICT, /* how the hank-ai fork reads a .cfg: a '#' begins a comment anywhere in a line, and a line
                   that begins with ';' is a comment only if it has no '=' */
    CFG_SPACED  /* how the hank-ai fork reads a .data file: blanks are removed only around a key and around
                   its value, ':' may replace '=', and a line is a comment only if it begins with '#' or
                   ';' */
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
    const char *raw;        /* the line as it is in the file, including its '\n'; not terminated */
    size_t raw_size;
    int blanks; /* CFG_OPTION: 1 if blanks were removed inside the value, not only around it */
    int fatal;  /* CFG_BROKEN: 1 if this is the last item, because Darknet cannot read the rest of the
                   file either */
} cfg_item;

typedef struct cfg_document {
    char *file;      /* the file's name */
    cfg_item *items; /* one for each line, in the file's order */
    size_t count;
    char *bytes, *texts; /* the memory into which the items point */
    size_t size;         /* number of bytes read */
} cfg_document;

/* Reads a file. The caller frees *out. AMP_BAD_CONFIG: the file is missing, unreadable or not a regular file;
 * *out is NULL. */
amp_status cfg_document_read(const char *file, cfg_syntax syntax, cfg_document **out, amp_error *error);
void cfg_document_free(cfg_document *); /* NULL is fine */

int cfg_is_net(const char *section); /* whether the section is "[net]" or "[network]", its other name */

/* The value of `key` in [net], or `fallback` if the key is not given. If the key is repeated, its first value
 * counts, as in Darknet. */
double cfg_net_number(const cfg_document *, const char *key, double fallback);
