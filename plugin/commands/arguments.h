/* Reads the command line of a verb. Options may stand anywhere among the files.
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
 * Each entry sets one of text, number, real and flag. The variable of a missing argument is unchanged. */
#pragma once

#include "../host/data/text_lines.h"
#include "../host/program/machine.h"

typedef struct amp_argument {
    const char *name;      /* "-batch"; "CFG" for a file */
    int optional;          /* 1: an optional file; it must be at the start or the end of the list */
    const char **text;     /* the argument's text, in argv */
    long *number;          /* a whole number from least to most */
    double *real;          /* a number from least to most */
    int *flag;             /* set to 1 if the option is given; the option takes no value */
    double least, most;
    const char *choices;   /* the allowed texts, for example "0|11|101"; NULL: any text */
    const char *value;     /* for the usage: a placeholder for the option's value, "FILE" */
    const char *about;     /* for the usage: a description in a few words */
} amp_argument;

/* Reads argv up to argc, or up to a NULL: when Darknet removes an option, it leaves NULLs at the end of argv.
 * `arguments` ends with an entry without a name. AMP_BAD_CONFIG: an unknown or repeated option, a missing
 * value or file, or a value out of range; the usage, with a line for each entry, has been printed on stderr.
 * AMP_HELP_PRINTED: -h was given, and the usage has been printed on stdout. */
amp_status amp_arguments_read(const char *verb, int argc, char **argv, const amp_argument *arguments,
                              amp_error *);

/* Whether `argument` is "-h", "-help" or "--help". argument may be NULL. */
int amp_asks_for_help(const char *argument);

#define AMP_ALL_DTYPES "stock,fp32,bf16,fp16"
/* Splits a list of dtypes: `given` (the value of -dtypes, such as "fp32,bf16"), or `usual` if `given` is
 * NULL. `usual` is not checked. The caller frees the names with amp_lines_free, also after an error.
 * AMP_BAD_CONFIG: a name is not in AMP_ALL_DTYPES, or is repeated. AMP_UNSUPPORTED: the machine cannot run a
 * dtype in `given`. */
amp_status amp_dtypes_read(const char *given, const char *usual, const amp_machine *, amp_lines *,
                           amp_error *);

/* Checks that a file named on the command line can be read. Given an unreadable file, Darknet itself would
 * end with status 0, or hang. AMP_BAD_CONFIG: the file is missing, empty, a folder or a device.
 * what: a description of the file for the message, such as "the .cfg file". */
amp_status amp_readable(const char *file, const char *what, amp_error *);
