/* What the user asks of the networks that this program makes: see request.h. */
#include "request.h"

#include <stdio.h>
#include <string.h>

#include "../fork.h"
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

const char *amp_host_take_argument(int *count, char **argv, const char *name, const char *allowed)
{
    int i = amp_host_find_argument(*count, argv, name);
    const char *value = i && i + 1 < *count ? argv[i + 1] : NULL;
    if (!i) return NULL;
    if (!value) darknet_amp_refuse("command line: %s needs a value; allowed: %s", name, allowed);
    amp_host_remove_arguments(count, argv, i, 2);
    return value;
}

static int is_one_of(const char *word, const char *const *list)
{
    while (*list && strcmp(word, *list)) list++;
    return *list != NULL;
}

int amp_host_command_words(int argc, char **argv, const char **words, int most)
{
    static const char *const valued[] = { "-i", "-prefix", "-thresh", "-hier", "-c", "-s", "-avg", "-gpus",
                                          "-out", "-w", "-h", "-fps", "-t", "-log", "-cache", "-patience",
                                          NULL };
    int found = 0;
    for (int i = 1; i < argc && argv[i] && found < most; i++) {
        if (is_one_of(argv[i], valued)) i++;
        else if (argv[i][0] != '-') words[found++] = argv[i];
    }
    return found;
}

/* ---- what is asked of networks ---- */

/* Set by main before any network exists, or by a verb of `darknet amp` before it makes its own. */
static struct { const char *amp, *refusal; int clear, measures; } request;

/* Darknet's commands that look into a network or train through it in a way that AMP has no buffers for. */
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
    request.measures = 0;
    if (amp_host_command_words(argc, argv, command, 2) < 2) return;
    request.measures = !strncmp(command[1], "valid", 5) || !strcmp(command[1], "map")
        || !strcmp(command[1], "recall");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const char *const *r = refused[i].command;
        if (!strcmp(r[0], command[0]) && (!r[1] || !strcmp(r[1], command[1])))
            request.refusal = refused[i].why;
    }
}

int amp_host_has_clear(void) { return request.clear; }
int amp_host_command_measures(void) { return request.measures; }
const char *amp_host_refusal(void) { return request.refusal; }

void amp_host_request_dtype(const char *dtype) { request.amp = dtype; }
const char *amp_host_requested_dtype(void) { return request.amp; }

static void print_warning(void *context, int is_error, const char *line)
{
    (void)context;
    (void)is_error;
    fprintf(stderr, "warning: %s\n", line);
}

amp_status amp_host_check_cfg(const char *cfg, cfg_use use, amp_error *error)
{
    static int has_warned;
    const cfg_listener printer = { print_warning, NULL };
    cfg_summary summary;
    AMP_TRY(cfg_check(cfg, &amp_cfg_fork, use, NULL, &summary, error));
    if (summary.errors) return amp_fail(error, AMP_BAD_CONFIG, "%s", summary.first_error);
    if (!summary.warnings || has_warned) return AMP_OK;
    has_warned = 1;
    return cfg_check(cfg, &amp_cfg_fork, use, &printer, &summary, error);
}

int amp_host_cfg_uses_amp(const char *cfg, cfg_use use)
{
    amp_error error;
    amp_config *config;
    amp_host_check(amp_config_read(cfg, request.amp, amp_fork_default_dtype(), &config, &error), &error);
    int wanted = config->enabled;
    amp_config_free(config);
    if (wanted) amp_host_check(amp_host_check_cfg(cfg, use, &error), &error);
    return wanted;
}
