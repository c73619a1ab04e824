/* What the command line asks of this program's networks: see request.h. */
#include "request.h"

#include <string.h>

#include "../../amp/cfg_text.h"
#include "../../files/safe_file.h"
#include "../fork.h"
#include "documents.h"
#include "failure.h"

/* ---- the command line ---- */

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

/* In Darknet an option's value is the next word. */
static void refuse_equals_sign(int argc, char **argv, const char *name)
{
    char shown[64];
    size_t length = strlen(name);
    for (int i = 1; i < argc && argv[i]; i++) {
        if (strncmp(argv[i], name, length) || argv[i][length] != '=') continue;
        cfg_printable(shown, sizeof shown, argv[i] + length + 1);
        darknet_amp_refuse("command line: %s=%s: expected a blank instead of =: %s %s", name, shown, name,
                           shown);
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

/* Removed from the arguments before Darknet reads them; some only by certain commands. */
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

/* Whether the option at argv[i] is misused; text: how. */
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

/* Returns whether it is similar to a known option. If not, a modified copy of Darknet may know it. */
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

/* ---- requirements for networks ---- */

/* What the command asks of the networks. Set before the first network is made: at program start, or by a verb
 * of `darknet amp`. */
static struct { const char *amp, *refusal; int clear, measures, maps; } request;

/* Darknet's commands that inspect a network or train through it in a way for which AMP has no buffers. */
static const struct { const char *command[2], *why; } refused[] = {
    { { "visualize", NULL }, "visualize shows layers' fp32 outputs, which are not kept" },
    { { "classifier", "try" }, "classifier try prints a layer's fp32 output, which is not kept" },
    { { "rnn", "vec" }, "rnn vec prints a layer's fp32 output, which is not kept" },
    { { "lsd", "traingan" }, "lsd trains one network through another's fp32 deltas, which are not kept" },
    { { "lsd", "trainprog" }, "lsd trains one network through another's fp32 deltas, which are not kept" },
    { { "lsd", "traincolor" }, "lsd trains one network through another's fp32 deltas, which are not kept" } };

void amp_host_note_command(int argc, char **argv)
{
    const char *command[2];
    request.refusal = NULL;
    request.clear = amp_host_find_argument(argc, argv, "-clear") > 0;
    request.measures = request.maps = 0;
    if (amp_host_command_words(argc, argv, command, 2) < 2) return;
    request.maps = !strcmp(command[1], "map");
    request.measures = request.maps || !strncmp(command[1], "valid", 5) || !strcmp(command[1], "recall");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const char *const *r = refused[i].command;
        if (!strcmp(r[0], command[0]) && (!r[1] || !strcmp(r[1], command[1])))
            request.refusal = refused[i].why;
    }
}

int amp_host_has_clear(void) { return request.clear; }
int amp_host_command_measures(void) { return request.measures; }
int amp_host_command_maps(void) { return request.maps; }
const char *amp_host_refusal(void) { return request.refusal; }

void amp_host_request_dtype(const char *dtype) { request.amp = dtype; }
const char *amp_host_requested_dtype(void) { return request.amp; }

amp_status amp_host_read_config(const char *cfg, const char *dtype, amp_config **out, amp_error *error)
{
    cfg_document *document;
    AMP_TRY(amp_cfg_document(cfg, &document, error));
    amp_status status = amp_config_read(document, dtype, amp_fork_default_dtype(), out, error);
    amp_document_give_back(document);
    return status;
}

amp_status amp_host_is_on(const char *cfg, const char *dtype, int *on, amp_error *error)
{
    amp_config *config;
    AMP_TRY(amp_host_read_config(cfg, dtype, &config, error));
    *on = config->enabled;
    amp_config_free(config);
    return AMP_OK;
}

static void print_warning(void *context, int is_error, const char *line)
{
    (void)context;
    (void)is_error;
    fprintf(stderr, "warning: %s\n", line);
}

amp_status amp_host_look_at_cfg(const char *cfg, cfg_use use, cfg_summary *summary, amp_error *error)
{
    static int has_warned;
    const cfg_listener printer = { print_warning, NULL };
    cfg_document *document;
    AMP_TRY(amp_cfg_document(cfg, &document, error));
    cfg_check(document, &amp_cfg_fork, use, NULL, summary);
    if (!summary->errors && summary->warnings && !has_warned) {
        has_warned = 1;
        cfg_check(document, &amp_cfg_fork, use, &printer, summary);
    }
    amp_document_give_back(document);
    return summary->errors ? amp_fail(error, AMP_BAD_CONFIG, "%s", summary->first_error) : AMP_OK;
}

amp_status amp_host_check_cfg(const char *cfg, cfg_use use, amp_error *error)
{
    cfg_summary summary;
    return amp_host_look_at_cfg(cfg, use, &summary, error);
}

int amp_host_cfg_uses_amp(const char *cfg, cfg_use use, cfg_summary *summary)
{
    amp_error error;
    int wanted = 0;
    amp_host_check(amp_host_is_on(cfg, request.amp, &wanted, &error), &error);
    if (wanted) amp_host_check(amp_host_look_at_cfg(cfg, use, summary, &error), &error);
    return wanted;
}
