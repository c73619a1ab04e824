/* The program's start, and the options that AMP takes out of its arguments before Darknet reads them. */
#define _DEFAULT_SOURCE /* readlink, setenv */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../training/loop.h"
#include "../training/turns.h"
#include "argument.h"
#include "failure.h"
#include "random.h"
#include "request.h"

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* A file opened while one of the standard streams is closed would take its place, and get all that is
 * printed. */
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

static void take_turns(int *argc, char **argv)
{
    amp_error error;
    const char *descriptors = amp_host_take_argument(argc, argv, "-turns", "IN,OUT, two file descriptors");
    if (descriptors) amp_host_check(amp_turns_take(descriptors, &error), &error);
}

int darknet_amp_arguments(int argc, char **argv)
{
    amp_host_note_command(argc, argv);
    take_turns(&argc, argv);
    amp_host_wish_dtype(amp_host_take_argument(&argc, argv, "-amp", "off, fp32, fp16, bf16"));
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
