/* The commands that the plugin adds to Darknet: `darknet amp VERB` and `darknet detector map`. */
#include "command.h"

#include "arguments.h"
#include "../host/program/request.h"
#include "../host/program/stopping.h"
#include "../host/fork.h"
#include "../include/darknet_amp.h"

#include <errno.h>
#include <string.h>

static const struct {
    const char *name, *what;
    amp_verb *run;
} verbs[] = {
    { "plan", "which layers run in half, why, and what memory a training takes", amp_command_plan },
    { "check", "mistakes in a .cfg, and in a .data file with all its labels", amp_command_check },
    { "bench", "how fast a training step is in each dtype, and whether half precision is worth it",
      amp_command_bench },
    { "compare", "trains a network in several dtypes side by side: accuracy, speed, memory",
      amp_command_compare },
    { "probe", "whether AMP computes what Darknet does, and what half precision loses, layer by layer",
      amp_command_probe },
    { "selftest", "whether this machine computes correctly: every kind of layer, in all dtypes",
      amp_command_selftest },
    { "log", "how a training is doing, from what -log writes: loss, gradient norm, scale, skipped steps",
      amp_command_log },
    { "valid", "mAP of a detector, top-1 and top-5 accuracy of a classifier", amp_command_valid },
    { "clean", "a .cfg without anything of AMP's, for other programs", amp_command_clean },
    { "version", "what a bug report needs: versions, compiler, processor, how half precision runs here",
      amp_command_version },
};

enum { VERBS = sizeof verbs / sizeof *verbs };

static void print_usage(FILE *stream)
{
    fprintf(stream, "usage: darknet amp VERB ...\n");
    for (int i = 0; i < VERBS; i++) fprintf(stream, "  %-8s %s\n", verbs[i].name, verbs[i].what);
    fprintf(stream, "`darknet amp VERB -h` explains what a verb takes.\n");
}

static int run_verb(int argc, char **argv)
{
    amp_stopping_survive_large_files();
    if (argc < 3 || !argv[2]) {
        print_usage(stderr);
        return 1;
    }
    if (!strcmp(argv[2], "help") || amp_asks_for_help(argv[2])) {
        print_usage(stdout);
        return 0;
    }
    int shows = amp_host_find_argument(argc, argv, "-dont_show"); /* drop it: no verb shows a window */
    if (shows && amp_fork_dont_show) amp_host_remove_arguments(&argc, argv, shows, 1);
    for (int i = 0; i < VERBS; i++) {
        amp_error error;
        if (strcmp(argv[2], verbs[i].name)) continue;
        amp_status status = verbs[i].run(argc, argv, &error);
        if (status == AMP_OK || status == AMP_HELP_PRINTED) return 0;
        fflush(stdout);
        fprintf(stderr, "amp %s: %s\n", verbs[i].name, error.message);
        return 1;
    }
    print_usage(stderr);
    fprintf(stderr, "darknet amp %s: unknown verb\n", argv[2]);
    return 1;
}

/* Returns status. If stdout could not be written (disk full), prints a message and returns 1 instead of 0. */
static int check_output(int status)
{
    errno = 0;
    if (!(fflush(stdout) | ferror(stdout)) || status) return status;
    fprintf(stderr, "amp: cannot write what this command prints: %s\n",
            errno ? strerror(errno) : "the disk is full, or the program that reads it has ended");
    return 1;
}

int darknet_amp_command(int argc, char **argv, int *status)
{
    if (argc < 2 || !argv[1]) return 0;
    if (!strcmp(argv[1], "amp")) *status = run_verb(argc, argv);
    else if (argc > 2 && argv[2] && !strcmp(argv[1], "detector") && !strcmp(argv[2], "map"))
        *status = amp_detector_map(argc, argv);
    else return 0;
    *status = check_output(*status);
    return 1;
}
