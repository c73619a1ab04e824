/* The words and options of the command line: see request.h. */
#include "request.h"

#include <string.h>

#include "../../amp/cfg_text.h"
#include "../../files/safe_file.h"
#include "../fork.h"
#include "failure.h"

/* ---- words ---- */

int amp_host_find_argument(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++) if (argv[i] && !strcmp(argv[i], name)) return i;
    return 0;
}

void amp_host_remove_arguments(int *argc, char **argv, int at, int count)
{
    for (int k = at; k < *argc; k++) argv[k] = k + count < *argc ? argv[k + count] : NULL;
    *argc -= count;
}

/* Ends the program if the option is given as NAME=VALUE: in Darknet an option's value is the next word. */
static void refuse_equals_sign(int argc, char **argv, const char *name)
{
    char shown[64];
    size_t length = strlen(name);
    for (int i = 1; i < argc && argv[i]; i++) {
        if (strncmp(argv[i], name, length) || argv[i][length] != '=') continue;
        cfg_printable(shown, sizeof shown, argv[i] + length + 1);
        darknet_amp_refuse("command line: %s=%s: write a space instead of '=', as in '%s %s'", name, shown,
                           name, shown);
    }
}

int amp_host_take_flag(int *count, char **argv, const char *name)
{
    refuse_equals_sign(*count, argv, name);
    int i = amp_host_find_argument(*count, argv, name);
    if (!i) return 0;
    amp_host_remove_arguments(count, argv, i, 1);
    if (amp_host_find_argument(*count, argv, name))
        darknet_amp_refuse("command line: %s is given twice", name);
    return i;
}

const char *amp_host_take_argument(int *count, char **argv, const char *name, const char *allowed)
{
    int i = amp_host_take_flag(count, argv, name);
    const char *value = i ? argv[i] : NULL;
    if (!i) return NULL;
    if (!value) darknet_amp_refuse("command line: %s needs a value; allowed: %s", name, allowed);
    amp_host_remove_arguments(count, argv, i, 1);
    return value;
}

/* AMP's own options. They are removed from argv before Darknet reads it, some only for certain commands. */
const amp_fork_option amp_host_own_options[] = {
    { "-amp", 1, 1, 1 }, { "-seed", 1, 1, 1 }, { amp_fork_log_option, 1, 1, 1 }, { "-cache", 1, 1, 1 },
    { "-map", 0, 1, 0 }, { "-patience", 1, 1, 0 },
    { "-fit", 0, 1, 1 }, { 0 } };
static const amp_fork_option *const option_lists[] = { amp_host_own_options, amp_fork_options };
enum { LISTS = sizeof option_lists / sizeof *option_lists };

static const amp_fork_option *find_option(const char *word)
{
    for (int i = 0; i < LISTS; i++)
        for (const amp_fork_option *o = option_lists[i]; o->name; o++) if (!strcmp(word, o->name)) return o;
    return NULL;
}

int amp_host_command_words(int argc, char **argv, const char **words, int most)
{
    int found = 0;
    for (int i = 1; i < argc && argv[i] && found < most; i++) {
        const amp_fork_option *option = find_option(argv[i]);
        if (option && option->has_value) i++;
        else if (argv[i][0] != '-') words[found++] = argv[i];
    }
    return found;
}

static int is_of(const amp_fork_option *option, int classifier)
{
    return classifier ? option->of_classifier : option->of_detector;
}

/* Whether the option at argv[i] is given twice or lacks its value. If so, text says which. */
static int is_misused(int argc, char **argv, int i, const amp_fork_option *option, char *text, size_t size)
{
    const char *how = NULL;
    if (amp_host_find_argument(argc - i, argv + i, argv[i])) how = "is given twice";
    else if (option->has_value && (i + 1 >= argc || !argv[i + 1])) how = "needs a value";
    if (how) snprintf(text, size, "%s %s", argv[i], how);
    return how != NULL;
}

static int may_be_meant_as_option(const char *word)
{
    return word[0] == '-' && word[1] && !strchr(".0123456789", word[1]) && !amp_file_exists(word);
}

/* Sets text to a message that this option is unknown. Returns whether the option resembles a known one. An
 * option that resembles none may belong to a modified Darknet. */
static int name_unknown(const char *word, int classifier, char *text, size_t size)
{
    enum { MOST = 64 };
    const char *names[MOST];
    char shown[64], what[128];
    size_t count = 0;
    for (int i = 0; i < LISTS; i++)
        for (const amp_fork_option *o = option_lists[i]; o->name; o++)
            if (is_of(o, classifier) && count < MOST) names[count++] = o->name;
    cfg_printable(shown, sizeof shown, word);
    snprintf(what, sizeof what, "%s: unknown option of %s train", shown,
             classifier ? "classifier" : "detector");
    return cfg_did_you_mean(text, size, what, word, names, count);
}

void amp_host_check_options(int argc, char **argv, int classifier, int refuses)
{
    char text[256];
    for (int i = 1; i < argc && argv[i]; i++) {
        const amp_fork_option *option = find_option(argv[i]);
        int known = option && is_of(option, classifier), mistaken = 0;
        *text = 0;
        if (known) mistaken = is_misused(argc, argv, i, option, text, sizeof text);
        else if (may_be_meant_as_option(argv[i]))
            mistaken = name_unknown(argv[i], classifier, text, sizeof text);
        if (mistaken && refuses) darknet_amp_refuse("command line: %s", text);
        if (*text) fprintf(stderr, "warning: command line: %s\n", text);
        if (option && option->has_value) i++;
    }
}

/* ---- the options of a training ---- */

/* Converts an option's value to a count; 0: the word is not a count. */
static long count_of(const char *word)
{
    char *end;
    long count = strtol(word, &end, 10);
    return *word && !*end && count >= 1 && count <= 1000000000 ? count : 0;
}

/* Stores -map, and the number that may follow it, in *program. Removes both words from argv. */
static void take_map(amp_program *program, int *argc, char **argv)
{
    int i = amp_host_take_flag(argc, argv, "-map");
    const char *value = i && argv[i] ? argv[i] : "";
    program->has_map = i > 0;
    if (!*value || strspn(value, "-0123456789") != strlen(value)) return;
    if (!(program->map.every = count_of(value)))
        darknet_amp_refuse("command line: -map: its value, if given, is a number of iterations, 1 or more");
    amp_host_remove_arguments(argc, argv, i, 1);
}

/* The value of an option that modifies -map; NULL: not given, or not an option of this Darknet's `detector`.
 * Leaves it in argv, because Darknet reads it too. */
static const char *map_option(int argc, char **argv, const char *name)
{
    const amp_fork_option *option = amp_fork_options;
    while (option->name && strcmp(option->name, name)) option++;
    int i = option->name && option->of_detector ? amp_host_find_argument(argc, argv, name) : 0;
    return i && i + 1 < argc ? argv[i + 1] : NULL;
}

static double fraction_option(int argc, char **argv, const char *name, double least, double usual)
{
    char *end;
    const char *value = map_option(argc, argv, name);
    double number = value ? strtod(value, &end) : usual;
    if (value && (!*value || *end || !(number >= least) || !(number < 1)))
        darknet_amp_refuse("command line: %s %s: expected a number of at least %g and below 1", name, value,
                           least);
    return number;
}

static void read_map_options(amp_program *program, int argc, char **argv)
{
    const char *epochs = map_option(argc, argv, "-mAP_epochs"), *points = map_option(argc, argv, "-points");
    program->map.epochs = epochs ? count_of(epochs) : 4;
    if (!program->map.epochs)
        darknet_amp_refuse("command line: -mAP_epochs %s: expected a number of epochs, 1 or more", epochs);
    if (epochs && program->map.every)
        darknet_amp_refuse("command line: -mAP_epochs: -map %ld already says when to measure; give one of "
                           "the two", program->map.every);
    if (points && strcmp(points, "101"))
        darknet_amp_refuse("command line: -points %s: -map under AMP always measures with 101 points; remove "
                           "-points", points);
    program->map.iou = fraction_option(argc, argv, "-iou_thresh", .01, .5);
    program->map.confidence = fraction_option(argc, argv, "-thresh", 0, .25);
}

static void take_patience(amp_program *program, int *argc, char **argv, int under_amp)
{
    const char *value = amp_host_take_argument(argc, argv, "-patience", "a number of measurements");
    if (!value) return;
    if (!(program->map.patience = count_of(value)))
        darknet_amp_refuse("command line: -patience %s: expected a number of measurements, 1 or more", value);
    if (!program->has_map)
        darknet_amp_refuse("command line: -patience counts measurements of -map; add -map [N]%s",
                           under_amp || !amp_fork_knows_map() ? "" : ", and -amp");
}

static void take_fit(amp_program *program, int *argc, char **argv, int under_amp)
{
    if (!amp_host_take_flag(argc, argv, "-fit")) return;
    if (!under_amp)
        darknet_amp_refuse("command line: -fit works only in a training under AMP; add -amp to the command, "
                           "or a section [amp] to the .cfg");
    program->fit = AMP_FIT_ASKED;
}

int amp_cache_word(const char *word)
{
    return !strcmp(word, "ram") ? AMP_CACHE_RAM : !strcmp(word, "disk") ? AMP_CACHE_DISK
         : !strcmp(word, "off") ? AMP_CACHE_OFF : -1;
}

static void take_cache(amp_program *program, int *argc, char **argv)
{
    char shown[64];
    const char *word = amp_host_take_argument(argc, argv, "-cache", AMP_CACHE_WORDS);
    program->cache = word ? amp_cache_word(word) : -1;
    if (!word || program->cache >= 0) return;
    cfg_printable(shown, sizeof shown, word);
    darknet_amp_refuse("command line: -cache %s: unknown; allowed: " AMP_CACHE_WORDS, shown);
}

void amp_host_take_options(int *argc, char **argv, int under_amp)
{
    const char *command[2];
    amp_program *program = amp_program_to_set();
    if (amp_host_command_words(*argc, argv, command, 2) < 2 || strcmp(command[1], "train")) return;
    program->is_detector = !strcmp(command[0], "detector");
    if (!program->is_detector && strcmp(command[0], "classifier")) return;
    program->log = amp_host_take_argument(argc, argv, amp_fork_log_option, "a file's name");
    take_cache(program, argc, argv);
    if (under_amp || !amp_fork_knows_map()) take_map(program, argc, argv);
    if (program->has_map) read_map_options(program, *argc, argv);
    take_patience(program, argc, argv, under_amp);
    take_fit(program, argc, argv, under_amp);
    if (program->has_map && !program->is_detector)
        darknet_amp_refuse("command line: -map measures only detectors; to measure a classifier, use "
                           "`classifier valid`");
}

/* ---- the command, and whether it works with AMP ---- */

/* Darknet's commands that cannot run under AMP, because they need buffers that AMP does not keep. */
#define LSD "`lsd` trains one network through another's fp32 deltas, which AMP does not keep"
static const struct { const char *command[2], *why; } refused[] = {
    { { "visualize", NULL }, "`visualize` shows layers' fp32 outputs, which AMP does not keep" },
    { { "classifier", "try" }, "`classifier try` prints a layer's fp32 output, which AMP does not keep" },
    { { "rnn", "vec" }, "`rnn vec` prints a layer's fp32 output, which AMP does not keep" },
    { { "lsd", "traingan" }, LSD },
    { { "lsd", "trainprog" }, LSD },
    { { "lsd", "traincolor" }, LSD } };

void amp_host_note_command(int argc, char **argv)
{
    const char *command[2];
    amp_program *program = amp_program_to_set();
    program->refusal = NULL;
    program->clear = amp_host_find_argument(argc, argv, "-clear") > 0;
    program->measures = program->maps = 0;
    if (amp_host_command_words(argc, argv, command, 2) < 2) return;
    program->maps = !strcmp(command[1], "map");
    program->measures = program->maps || !strncmp(command[1], "valid", 5) || !strcmp(command[1], "recall");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const char *const *r = refused[i].command;
        if (!strcmp(r[0], command[0]) && (!r[1] || !strcmp(r[1], command[1])))
            program->refusal = refused[i].why;
    }
}
