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
    int optional;          /* a file that may be left out: the first one, or the last ones; options always
                              may */
    const char **text;     /* points into argv */
    long *number;          /* a whole number from least to most */
    double *real;          /* from least to most */
    int *flag;             /* 1 if given; takes no value */
    double least, most;
    const char *choices;   /* the texts that are allowed: "0|11|101"; NULL: any */
    const char *value;     /* for the usage: what the option takes, "FILE" */
    const char *about;     /* for the usage: a few words */
} amp_argument;

/* Reads argv. The list ends with an entry without a name. argv ends at a NULL, if there is one: Darknet
 * leaves NULLs at the end when it removes an option. AMP_BAD_CONFIG: an unknown or repeated option, a missing
 * value or file, or a value out of range; the usage, a line for each entry, has then been printed on stderr.
 * AMP_HELP_PRINTED: -h was given, and the usage is on stdout. */
amp_status amp_arguments_read(const char *verb, int argc, char **argv, const amp_argument *arguments,
                              amp_error *);

/* Whether it is "-h", "-help" or "--help". argument may be NULL. */
int amp_asks_for_help(const char *argument);

#define AMP_ALL_DTYPES "stock,fp32,bf16,fp16"
/* Splits the value of -dtypes, "fp32,bf16", into names; if `given` is NULL, splits `usual`, which is not
 * checked. The caller frees the names with amp_lines_free, also after an error. AMP_BAD_CONFIG: a name is not
 * in AMP_ALL_DTYPES, or is given twice. AMP_UNSUPPORTED: the machine cannot run one of them. */
amp_status amp_dtypes_read(const char *given, const char *usual, const amp_machine *, amp_lines *,
                           amp_error *);

/* Checks that a file of the command line can be read: with another one Darknet would end with status 0, or
 * wait. AMP_BAD_CONFIG: it is missing, empty, a folder or a device; the message calls it `what`: "the .cfg
 * file". */
amp_status amp_readable(const char *file, const char *what, amp_error *);
