/* The program's start, and the options that AMP takes out of its arguments before Darknet reads them. */
#define _DEFAULT_SOURCE /* readlink, setenv */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../training/loop.h"
#include "../training/turns.h"
#include "argument.h"
#include "random.h"
#include "state.h"

/* Set by main before any network exists, or by a verb of `darknet amp` before it makes its own. */
static struct { const char *amp, *refusal; } command_line;

/* Darknet's commands that look into a network or train through it in a way that AMP has no buffers for. */
static const struct { const char *command[2], *why; } refused[] = {
    { { "visualize", NULL }, "visualize shows layers' fp32 outputs, which are not kept" },
    { { "classifier", "try" }, "classifier try prints a layer's fp32 output, which is not kept" },
    { { "rnn", "vec" }, "rnn vec prints a layer's fp32 output, which is not kept" },
    { { "lsd", "traingan" }, "lsd trains one network through another's fp32 deltas, which are not kept" },
    { { "lsd", "trainprog" }, "lsd trains one network through another's fp32 deltas, which are not kept" },
    { { "lsd", "traincolor" }, "lsd trains one network through another's fp32 deltas, which are not kept" } };

static const char *why_refused(int argc, char **argv)
{
    const char *command[2];
    if (!amp_host_find_command(argc, argv, command)) return NULL;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (!strcmp(refused[i].command[0], command[0]) && (!refused[i].command[1] || !strcmp(refused[i].command[1], command[1])))
            return refused[i].why;
    return NULL;
}

const char *amp_host_refusal(void) { return command_line.refusal; }

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* A file opened while one of the standard streams is closed would take its place, and get all that is printed. */
static void open_standard_streams(void)
{
    int file;
    do file = open("/dev/null", O_RDWR); while (file >= 0 && file <= STDERR_FILENO);
    if (file >= 0) close(file);
}

void darknet_amp_start(char **argv)
{
    char self[4096];
    open_standard_streams();
    if (!argv[0] || getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT")) return;
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0) return;
    self[length] = 0;
    if (strcmp(last_part(self), last_part(argv[0]))) return; /* started by a loader or under another name */
    if (setenv("OMP_WAIT_POLICY", "passive", 1) == 0) execv(self, argv);
}

void amp_host_wish_dtype(const char *wish) { command_line.amp = wish; }
const char *amp_host_wished_dtype(void) { return command_line.amp; }

static void take_turns(int *argc, char **argv)
{
    amp_error error;
    const char *descriptors = amp_host_take_argument(argc, argv, "-turns", "IN,OUT, two file descriptors");
    if (descriptors) amp_host_check(amp_turns_take(descriptors, &error), &error);
}

int darknet_amp_arguments(int argc, char **argv)
{
    command_line.refusal = why_refused(argc, argv);
    take_turns(&argc, argv);
    command_line.amp = amp_host_take_argument(&argc, argv, "-amp", "off, fp32, fp16, bf16");
    /* Stock's `rnn generate` and its like have a -seed of their own, the text to start with; `amp compare` takes several. */
    int own_seed = argc > 2 && argv[1] && argv[2] && ((!strcmp(argv[1], "rnn") && strcmp(argv[2], "train"))
                                                      || (!strcmp(argv[1], "amp") && !strcmp(argv[2], "compare")));
    const char *seed = own_seed ? NULL : amp_host_take_argument(&argc, argv, "-seed", "0 to 4294967295");
    amp_training_arguments(&argc, argv);
    if (!seed) return argc;
    char *end;
    unsigned long value = strtoul(seed, &end, 10);
    if (!*seed || *end || *seed == '-' || value > 4294967295ul) {
        amp_error error;
        amp_fail(&error, AMP_BAD_CONFIG, "command line: -seed %s is no seed; allowed: 0 to 4294967295", seed);
        amp_host_die(&error);
    }
    amp_random_set_seed((unsigned)value);
    return argc;
}

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

int amp_host_is_wanted(const char *cfg, cfg_use use)
{
    amp_error error;
    amp_config *config;
    amp_host_check(amp_config_read(cfg, command_line.amp, amp_fork_default_dtype(), &config, &error), &error);
    int wanted = config->enabled;
    amp_config_free(config);
    if (wanted) amp_host_check(amp_host_check_cfg(cfg, use, &error), &error);
    return wanted;
}
