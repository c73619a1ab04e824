/* What a training on a new GPU begins with: this program runs `amp selftest CFG` as a child, for at most ten
 * seconds, with its output in a file of the user's cache folder. A child, since Darknet's code ends a program
 * where it fails, and its memory is given back. The file stays as a note that this combination of GPU,
 * driver, libraries and plugin has been seen, unless it is one that must not train. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../files/checksum.h"
#include "../host/network/state.h"
#include "../host/program/clock.h"
#include "../host/program/ranks.h"
#include "../host/program/version.h"
#include "selftest/selftest.h"

enum { MOST_SECONDS = 10 };
enum { PATH = 4096, LINE = 1200 };

extern char **environ;

/* ---- the note ---- */

/* Makes the folder, and the names in it of the note and of the report under way; 0: there can be no such
 * folder. */
static int name_files(const char *description, char note[PATH], char report[PATH])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char folder[PATH - 200];
    amp_checksum key;
    amp_checksum_start(&key);
    amp_checksum_add(&key, AMP_VERSION, strlen(AMP_VERSION));
    amp_checksum_add(&key, description, strlen(description));
    unsigned long long id = amp_checksum_value(&key);
    int length = cache && *cache == '/' ? snprintf(folder, sizeof folder, "%s", cache)
               : home && *home == '/' ? snprintf(folder, sizeof folder, "%s/.cache", home) : -1;
    if (length < 0 || length > (int)sizeof folder - 32) return 0;
    mkdir(folder, 0777);
    strcat(folder, "/darknet-amp");
    if (mkdir(folder, 0777) && errno != EEXIST) return 0;
    snprintf(note, PATH, "%s/selftest-%016llx.txt", folder, id);
    snprintf(report, PATH, "%s/selftest-%016llx-%ld.txt", folder, id, (long)getpid());
    return 1;
}

/* ---- the child ---- */

/* Its exit status; -1: it could not be started, did not end in time, or died. */
static int run_child(char *const argv[], const char *output, double most_seconds)
{
    posix_spawn_file_actions_t files;
    pid_t child;
    int status;
    double began = amp_clock_seconds();
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, output, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    int failed = posix_spawn(&child, argv[0], &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    if (failed) return -1;
    while (waitpid(child, &status, WNOHANG) == 0) {
        nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
        if (amp_clock_seconds() - began < most_seconds) continue;
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The last line of the report that a verb has printed as an error, behind its name; "" where there is
 * none. */
static void last_error(const char *report, char line[LINE])
{
    static const char name[] = "amp selftest: ";
    char read[LINE];
    FILE *in = fopen(report, "r");
    line[0] = 0;
    while (in && fgets(read, sizeof read, in))
        if (!strncmp(read, name, sizeof name - 1)) snprintf(line, LINE, "%s", read + sizeof name - 1);
    line[strcspn(line, "\n")] = 0;
    if (in) fclose(in);
}

static int check(const char *cfg, const char *report, double most_seconds)
{
    char gpu[16];
    snprintf(gpu, sizeof gpu, "%d", amp_fork_device());
    char *const argv[] = { (char *)"/proc/self/exe", (char *)"amp", (char *)"selftest", (char *)cfg,
                           amp_fork_device() < 0 ? NULL : (char *)"-i", gpu, NULL };
    return run_child(argv, report, most_seconds);
}

/* ---- the training ---- */

/* How many seconds it may take; 0: it is left out. */
static int seconds_allowed(void)
{
    const char *asked = getenv("AMP_SELF_CHECK");
    return asked && *asked ? atoi(asked) : MOST_SECONDS;
}

static int is_wanted(const struct darknet_amp *amp)
{
    if (!amp || seconds_allowed() < 1 || amp_ranks_of_step() > 1) return 0;
    return strcmp(amp_engine_backend(amp->engine)->name, "cpu") != 0;
}

void amp_first_check(struct network *net)
{
    const struct darknet_amp *amp = amp_fork_state(net);
    char note[PATH], report[PATH], line[LINE];
    if (!is_wanted(amp)) return;
    if (!name_files(amp_engine_backend(amp->engine)->description, note, report)) return;
    if (access(note, F_OK) == 0) return;
    fprintf(stderr, "amp: the first training on this GPU with this driver, these libraries and this plugin: "
            "a pass is compared with Darknet's own code, for %d seconds at most (AMP_SELF_CHECK=0 leaves it "
            "out)\n", seconds_allowed());
    int status = check(amp->config->file, report, seconds_allowed());
    last_error(report, line);
    if (status == AMP_SELFTEST_WRONG)
        darknet_amp_refuse("amp: on this GPU AMP computes something else than Darknet: %s; the training is "
                           "not started; send %s, or train with -amp off", line, report);
    if (status == AMP_SELFTEST_OFF)
        fprintf(stderr, "amp: warning: AMP's pass is further from Darknet's own than rounding explains: %s; "
                "please send %s\n", line, note);
    else if (status)
        fprintf(stderr, "amp: the pass could not be compared: %s\n",
                line[0] ? line : "it was not done in time, or Darknet's own code ended");
    if (rename(report, note) != 0) unlink(report);
}
