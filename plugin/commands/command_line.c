/* The start of the program: takes AMP's options out of the arguments before Darknet reads them. */
#define _DEFAULT_SOURCE /* readlink, setenv */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "../files/safe_file.h"
#include "../host/data/data_check.h"
#include "../host/fork.h"
#include "../host/program/cfg.h"
#include "../host/program/failure.h"
#include "../host/program/random.h"
#include "../host/program/ranks.h"
#include "../host/program/request.h"
#include "../host/program/turns.h"
#include "../include/darknet_amp.h"

/* Opens /dev/null as each closed standard stream, so that no file opened later receives its output. */
static void open_standard_streams(void)
{
    int file;
    do file = open("/dev/null", O_RDWR); while (file >= 0 && file <= STDERR_FILENO);
    if (file >= 0) close(file);
}

/* Whether the command trains or measures. If so, spinning OpenMP threads would slow its image loaders. */
static int trains_or_measures(const char *const *words, int count)
{
    static const char *const quick[] = { "check", "clean", "log", "plan", "version" };
    int under_amp = 0, verb = 0, verbs = sizeof quick / sizeof *quick;
    if (count < 2) return 0;
    while (verb < verbs && strcmp(words[1], quick[verb])) verb++;
    if (!strcmp(words[0], "amp")) return verb == verbs;
    if (!strcmp(words[1], "map")) return 1;
    int has_data = !strcmp(words[0], "detector") || !strcmp(words[0], "classifier");
    for (int i = has_data ? 3 : 2; i < count && !strcmp(words[1], "train"); i++) {
        int on;
        if (amp_host_is_on(words[i], amp_this_program()->dtype, &on, NULL) == AMP_OK) under_amp |= on;
    }
    return under_amp;
}

/* Executes the program again with OpenMP threads that do not spin, unless the environment already says how
 * they wait. argv: the original arguments. */
static void start_again(char **argv)
{
    char self[4096];
    if (!argv[0] || getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT")) return;
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0) return;
    self[length] = 0;
    /* do nothing if the program was started by a loader or under another name */
    if (strcmp(argv[0], "/proc/self/exe") && strcmp(amp_file_name(self), amp_file_name(argv[0]))) return;
    if (setenv("OMP_WAIT_POLICY", "passive", 1) == 0) execv(self, argv);
}

static void take_seed(int *argc, char **argv)
{
    /* In stock's `rnn generate` and other commands, -seed is a text to continue. `amp compare` rejects
     * -seed. */
    int own_seed = *argc > 2 && argv[1] && argv[2] && (!strcmp(argv[1], "rnn") ? strcmp(argv[2], "train") != 0
                   : !strcmp(argv[1], "amp") && !strcmp(argv[2], "compare"));
    const char *seed = own_seed ? NULL : amp_host_take_argument(argc, argv, "-seed", "0 to 4294967295");
    if (!seed) return;
    char *end;
    unsigned long value = strtoul(seed, &end, 10);
    if (!*seed || *end || *seed == '-' || value > 4294967295ul)
        darknet_amp_refuse("command line: -seed %s is not a seed; allowed: 0 to 4294967295", seed);
    amp_random_set_seed((unsigned)value);
}

/* Notes the options for amp_ranks_agree, which checks that they are the same on all ranks. Leaves out:
 * options that choose a rank's device; the name of the log, which only rank 0 writes; and words[0..count),
 * because the files that they name are compared instead. */
static void note_options(char **given, const char *const *words, int count)
{
    char line[400] = "";
    for (int i = 1; given[i]; i++) {
        size_t length = strlen(line);
        int is_word = 0;
        for (int k = 0; k < count; k++) is_word |= given[i] == words[k];
        int is_device = !strcmp(given[i], "-i") || !strcmp(given[i], "-gpus");
        if (!is_word && !is_device && strcmp(given[i], "-nogpu"))
            snprintf(line + length, sizeof line - length, " %s", given[i]);
        if (given[i + 1]) i += is_device || !strcmp(given[i], amp_fork_log_option);
    }
    amp_ranks_note("%s%s\n", line[0] ? "the options" : "no options", line);
}

int darknet_amp_start(int argc, char **argv)
{
    amp_error error;
    const char *words[6];
    char *given[argc + 1];
    open_standard_streams();
    memcpy(given, argv, sizeof given);
    amp_program *program = amp_program_to_set();
    program->is_darknet = 1;
    program->ranks.awaited = 1;
    amp_host_note_command(argc, argv);
    program->dtype = amp_host_take_argument(&argc, argv, "-amp", "off, fp32, fp16, bf16");
    take_seed(&argc, argv);
    int takes_long = trains_or_measures(words, amp_host_command_words(argc, argv, words, 6));
    amp_host_take_options(&argc, argv, takes_long);
    int count = amp_host_command_words(argc, argv, words, 5);
    int classifies = count > 1 && !strcmp(words[0], "classifier");
    int trains = count > 1 && !strcmp(words[1], "train") && (classifies || !strcmp(words[0], "detector"));
    if (trains) amp_host_check_options(argc, argv, classifies, takes_long);
    if (takes_long) start_again(given);
    int gpus = amp_host_find_argument(argc, argv, "-gpus");
    int no_gpu = amp_host_find_argument(argc, argv, "-nogpu");
    amp_ranks_start(words, count, takes_long, gpus && gpus + 1 < argc ? argv[gpus + 1] : "");
    if (amp_ranks()) note_options(given, words, strcmp(words[0], "amp") ? count : 2);
    int i = amp_host_find_argument(argc, argv, "-i");
    if (!i && !gpus && !no_gpu) amp_ranks_take_gpu();
    const char *gpu = gpus && gpus + 1 < argc ? argv[gpus + 1] : i && i + 1 < argc ? argv[i + 1] : "0";
    for (; count && !no_gpu && *gpu; gpu += strcspn(gpu, ","), gpu += *gpu == ',')
        if (atoi(gpu) >= 0) amp_host_check(amp_fork_find_gpu(atoi(gpu), &error), &error);
    amp_host_check(amp_turns_take(&error), &error);
    program->trains = trains && count > 2
                      && amp_check_training(words[2], count > 3 ? words[3] : NULL, classifies);
    amp_ranks_agree();
    return argc;
}
