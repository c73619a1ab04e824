/* The command line of a verb: files by their place, options by name, anywhere among them.
 *
 *     const char *cfg = NULL, *json = NULL;
 *     long batch = 0;
 *     const amp_argument arguments[] = {
 *         { .name = "CFG", .text = &cfg, .about = "the network" },
 *         { .name = "-batch", .number = &batch, .least = 1, .most = 65536, .about = "images of a pass" },
 *         { .name = "-json", .value = "FILE", .text = &json, .about = "writes all of it as JSON" },
 *         { 0 } };
 *     AMP_TRY(amp_arguments_read("amp plan", argc - 3, argv + 3, arguments, error));
 *
 * Exactly one of text, number, real and flag is set. What is not given keeps its value. */
#pragma once

#include "../host/data/text_lines.h"
#include "../host/program/machine.h"

typedef struct amp_argument {
    const char *name;      /* "-batch", or "CFG" for a file that is given by its place */
    int optional;          /* a place that may stay empty: the first, before one that may not, or the last
                              ones. Options always may */
    const char **text;     /* points into argv */
    long *number;          /* a whole number from least to most */
    double *real;          /* from least to most */
    int *flag;             /* 1 if given; takes no value */
    double least, most;
    const char *choices;   /* of a text: "0|11|101"; NULL: anything */
    const char *value;     /* for the usage: what a text is, "FILE" */
    const char *about;     /* for the usage: a few words */
} amp_argument;

/* The list ends with an entry without a name. AMP_BAD_CONFIG: an unknown or repeated option, a missing value
 * or file, a value out of range; then the usage, a line for each entry, is on stderr already.
 * AMP_HELP_PRINTED: -h was given, and the usage is on stdout. A NULL in argv ends it: Darknet blanks the end
 * when it takes an option out. */
amp_status amp_arguments_read(const char *verb, int argc, char **argv, const amp_argument *arguments,
                              amp_error *);

/* "-h", "-help" or "--help". NULL is none. */
int amp_asks_for_help(const char *argument);

#define AMP_ALL_DTYPES "stock,fp32,bf16,fp16"
/* The names that -dtypes gives, "fp32,bf16", each once; or the usual ones, where it is NULL. The caller frees
 * them with amp_lines_free, also on failure. AMP_BAD_CONFIG: a name that is not in AMP_ALL_DTYPES, or stands
 * there twice. AMP_UNSUPPORTED: the machine cannot run one of those given; usual ones are not checked. */
amp_status amp_dtypes_read(const char *given, const char *usual, const amp_machine *, amp_lines *,
                           amp_error *);

/* Whether a file that the command line names can be read. AMP_BAD_CONFIG: it is missing, empty, a folder or a
 * device; the message calls it `what`: "the .cfg file". Darknet would end with status 0, or wait. */
amp_status amp_readable(const char *file, const char *what, amp_error *);
