/* Before the first training on a new GPU, runs `amp selftest CFG` for at most ten seconds. It runs in a child
 * process, because Darknet's code ends its process when it fails, and the end of a process frees its memory.
 *
 * The child writes its output to a file in the user's cache folder, called the report. When the child has
 * ended, the report is renamed, and is called the note from then on. The note's name contains a checksum of
 * GPU, driver, libraries and plugin; if the note exists, this combination has been tested. After
 * AMP_SELFTEST_WRONG the report keeps its name, so the next training tests again. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../files/checksum.h"
#include "../host/network/state.h"
#include "../host/program/ranks.h"
#include "../host/program/version.h"
#include "command.h"
#include "run_in_turns.h"

enum { MOST_SECONDS = 10 };
enum { PATH = 4096, LINE = 1200 };

/* ---- the note ---- */

/* Makes the cache folder, and the file names of note and report. Returns 0 if no folder can be made. */
static int name_files(const char *description, char note[PATH], char report[PATH])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char folder[PATH - 200], key[PATH];
    snprintf(key, sizeof key, AMP_VERSION "%s", description);
    unsigned long long id = amp_checksum_of(key, strlen(key));
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

/* ---- the training ---- */

/* Runs the child. Returns its exit status; -1: it could not be started, did not end in time, or died. */
static int check(const char *cfg, const char *report, int seconds)
{
    static const amp_turns_watcher nobody;
    amp_error error;
    char gpu[16];
    snprintf(gpu, sizeof gpu, "%d", amp_fork_device());
    amp_turns_program child = { .output = report, .most_seconds = seconds };
    amp_turns_add(&child, "amp", "selftest", cfg, amp_fork_device() < 0 ? NULL : "-i", gpu, NULL);
    amp_turns_run(&child, 1, 0, NULL, &nobody, &error);
    return child.end.exited ? child.end.status : -1;
}

void amp_first_check(struct network *net)
{
    const struct darknet_amp *amp = amp_fork_state(net);
    const char *asked = getenv("AMP_SELF_CHECK");
    int seconds = asked && *asked ? atoi(asked) : MOST_SECONDS;
    char note[PATH], report[PATH], line[LINE];
    if (!amp || seconds < 1 || amp_ranks_of_step() > 1) return;
    const amp_backend *backend = amp->engine->backend;
    if (!strcmp(backend->name, "cpu") || !name_files(backend->description, note, report)) return;
    if (access(note, F_OK) == 0) return;
    fprintf(stderr, "amp: this is the first training on this GPU with this driver, these libraries and this "
            "plugin: a pass is compared with Darknet's own code, for at most %d seconds (AMP_SELF_CHECK=0 "
            "skips this check)\n", seconds);
    int status = check(amp->config->file, report, seconds);
    amp_turns_last_message(report, "amp selftest: ", line, sizeof line);
    if (status == AMP_SELFTEST_WRONG)
        darknet_amp_refuse("amp: on this GPU AMP's results differ from Darknet's: %s; the training is not "
                           "started; please report it with the file %s, or train with -amp off",
                           line, report);
    if (status == AMP_SELFTEST_OFF)
        fprintf(stderr, "amp: warning: AMP's pass differs from Darknet's own by more than rounding explains: "
                "%s; please report it with the file %s\n", line, note);
    else if (status || line[0])
        fprintf(stderr, "amp: AMP's pass could not be compared with Darknet's own: %s\n",
                line[0] ? line : "it did not finish in time, or Darknet's own code ended the program");
    if (rename(report, note) != 0) unlink(report);
}
