/* Reads the command line of a verb. */
#include "arguments.h"

#include <errno.h>
#include <string.h>

#include "../amp/cfg_text.h"

enum { MOST_ARGUMENTS = 32 };

static int is_option(const amp_argument *a) { return a->name[0] == '-'; }

/* The placeholder after an option's name in the usage: "N" in "-batch N". */
static const char *value_of(const amp_argument *a)
{
    return a->value ? a->value : a->choices ? a->choices : a->number ? "N" : a->real ? "X" : "";
}

static int width_of(const amp_argument *a) { return (int)(strlen(a->name) + 1 + strlen(value_of(a))); }

static void print_usage(FILE *stream, const char *verb, const amp_argument *arguments)
{
    int width = 0, options = 0;
    fprintf(stream, "usage: darknet %s", verb);
    for (const amp_argument *a = arguments; a->name; a++) {
        if (!is_option(a)) fprintf(stream, a->optional ? " [%s]" : " %s", a->name);
        if (width_of(a) > width) width = width_of(a);
        options |= is_option(a);
    }
    fprintf(stream, options ? " [options]\n" : "\n");
    for (const amp_argument *a = arguments; a->name; a++)
        fprintf(stream, "  %s %-*s  %s\n", a->name, width - (int)strlen(a->name) - 1, value_of(a), a->about);
}

static int is_choice(const char *choices, const char *value)
{
    size_t length = strlen(value);
    for (const char *c = choices; *c; c += strcspn(c, "|"), c += *c == '|')
        if (strcspn(c, "|") == length && !strncmp(c, value, length)) return 1;
    return 0;
}

static amp_status read_value(const amp_argument *a, const char *value, amp_error *error)
{
    char *end = NULL;
    if (a->text) {
        if (a->choices && !is_choice(a->choices, value))
            return amp_fail(error, AMP_BAD_CONFIG, "%s %s: expected %s", a->name, value, a->choices);
        *a->text = value;
        return AMP_OK;
    }
    double number = a->number ? (double)strtol(value, &end, 10) : strtod(value, &end);
    if (end == value || *end || !(number >= a->least && number <= a->most))
        return amp_fail(error, AMP_BAD_CONFIG, "%s %s: expected a%s number from %.10g to %.10g", a->name,
                        value, a->number ? " whole" : "", a->least, a->most);
    if (a->number) *a->number = (long)number;
    else *a->real = number;
    return AMP_OK;
}

/* Sets option a, whose name is argv[*i]. If the option takes a value, advances *i to the value. */
static amp_status read_option(const amp_argument *a, int argc, char **argv, int *i, amp_error *error)
{
    if (a->flag) {
        *a->flag = 1;
        return AMP_OK;
    }
    const char *value = *i + 1 < argc ? argv[*i + 1] : NULL;
    if (!value || !*value) return amp_fail(error, AMP_BAD_CONFIG, "%s needs a value", a->name);
    ++*i;
    return read_value(a, value, error);
}

static int find_option(const amp_argument *arguments, const char *name)
{
    for (int k = 0; arguments[k].name; k++)
        if (is_option(&arguments[k]) && !strcmp(arguments[k].name, name)) return k;
    return -1;
}

static amp_status no_such_option(const amp_argument *arguments, const char *name, amp_error *error)
{
    const char *names[MOST_ARGUMENTS];
    char shown[64], what[128], text[256];
    size_t count = 0;
    for (const amp_argument *a = arguments; a->name; a++) if (is_option(a)) names[count++] = a->name;
    cfg_printable(shown, sizeof shown, name);
    snprintf(what, sizeof what, "%s: unknown option", shown);
    cfg_did_you_mean(text, sizeof text, what, name, names, count);
    return amp_fail(error, AMP_BAD_CONFIG, "%s", text);
}

static int next_place(const amp_argument *arguments, int from)
{
    while (arguments[from].name && is_option(&arguments[from])) ++from;
    return from;
}

static amp_status read_all(int argc, char **argv, const amp_argument *arguments, amp_error *error)
{
    char given[MOST_ARGUMENTS] = { 0 };
    int place = next_place(arguments, 0), first = place;
    for (int i = 0; i < argc && argv[i]; i++) {
        if (argv[i][0] == '-' && argv[i][1]) {
            int k = find_option(arguments, argv[i]);
            if (k < 0) return no_such_option(arguments, argv[i], error);
            if (given[k]++) return amp_fail(error, AMP_BAD_CONFIG, "%s is given twice", argv[i]);
            AMP_TRY(read_option(&arguments[k], argc, argv, &i, error));
        } else if (!arguments[place].name) {
            return amp_fail(error, AMP_BAD_CONFIG, "%s: unexpected argument", argv[i]);
        } else {
            AMP_TRY(read_value(&arguments[place], argv[i], error));
            place = next_place(arguments, place + 1);
        }
    }
    if (place > first && arguments[first].optional && arguments[place].name && !arguments[place].optional) {
        *arguments[place].text = *arguments[first].text; /* the first file is optional, and was left out */
        *arguments[first].text = NULL;
        place = next_place(arguments, place + 1);
    }
    while (arguments[place].name && arguments[place].optional) place = next_place(arguments, place + 1);
    if (arguments[place].name)
        return amp_fail(error, AMP_BAD_CONFIG, "%s is missing", arguments[place].name);
    return AMP_OK;
}

int amp_asks_for_help(const char *argument)
{
    return argument && (!strcmp(argument, "-h") || !strcmp(argument, "-help") || !strcmp(argument, "--help"));
}

amp_status amp_arguments_read(const char *verb, int argc, char **argv, const amp_argument *arguments,
                              amp_error *error)
{
    for (int i = 0; i < argc; i++) {
        if (!amp_asks_for_help(argv[i])) continue;
        print_usage(stdout, verb, arguments);
        return AMP_HELP_PRINTED;
    }
    amp_status status = read_all(argc, argv, arguments, error);
    if (status != AMP_OK) print_usage(stderr, verb, arguments);
    return status;
}

static amp_status check_dtype(const char *name, const amp_lines *before, const amp_machine *machine,
                              amp_error *error)
{
    int dtype = amp_dtype_find(name);
    for (size_t i = 0; i < before->count; i++)
        if (!strcmp(before->line[i], name))
            return amp_fail(error, AMP_BAD_CONFIG, "-dtypes: %s is listed twice", name);
    if (!*name) return amp_fail(error, AMP_BAD_CONFIG, "-dtypes: the list has an empty name");
    if (dtype < 0 && strcmp(name, "stock"))
        return amp_fail(error, AMP_BAD_CONFIG, "-dtypes: unknown dtype %s; allowed: " AMP_ALL_DTYPES,
                        name);
    if (dtype >= 0 && machine->support[dtype] == AMP_SUPPORT_NONE)
        return amp_fail(error, AMP_UNSUPPORTED, "-dtypes: this machine cannot run %s: %s", name,
                        machine->note[dtype]);
    return AMP_OK;
}

amp_status amp_dtypes_read(const char *given, const char *usual, const amp_machine *machine,
                           amp_lines *list, amp_error *error)
{
    *list = (amp_lines){ 0 };
    for (const char *at = given ? given : usual; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ","), at);
        if (given) AMP_TRY(check_dtype(name, list, machine, error));
        amp_lines_add(list, "%s", name);
    }
    return AMP_OK;
}

amp_status amp_readable(const char *file, const char *what, amp_error *error)
{
    FILE *opened = amp_open_to_read(file, what, error);
    if (!opened) return AMP_BAD_CONFIG;
    int ends = fgetc(opened) == EOF; /* a folder can be opened, but not read */
    const char *why = ends && ferror(opened) ? strerror(errno) : "it is empty";
    fclose(opened);
    return ends ? amp_fail(error, AMP_BAD_CONFIG, "%.500s: cannot read %s: %s", file, what, why) : AMP_OK;
}
