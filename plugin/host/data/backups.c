/* See backups.h. */
#define _DEFAULT_SOURCE /* gethostname */
#include "backups.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <regex.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../amp/cfg_text.h"
#include "../../amp/sidecar.h"
#include "../fork.h"
#include "../program/failure.h"
#include "../program/program.h"

static const char FOLDER_UNLESS_GIVEN[] = "/backup/"; /* Darknet's default */
static const char LONGEST_END[] = "_2147483647.weights.amp.new"; /* the longest suffix of a saved file */

/* ---- before the training ---- */

static int folder_problem(const char *folder)
{
    struct stat status;
    if (stat(folder, &status) != 0) return errno;
    if (!S_ISDIR(status.st_mode)) return ENOTDIR;
    return access(folder, W_OK | X_OK) == 0 ? 0 : errno;
}

static amp_status check_names(const char *base, const char *folder, const char *cfg, amp_error *error)
{
    long longest = pathconf(folder, _PC_NAME_MAX);
    size_t length = strlen(base) + strlen(LONGEST_END);
    if (longest < 0) longest = NAME_MAX;
    if (length > (size_t)longest)
        return amp_fail(error, AMP_IO_FAILED,
                        "amp: %.300s: names of saved files are up to %zu bytes longer than this name, and so "
                        "exceed the limit of %ld bytes; give the .cfg a shorter name",
                        cfg, strlen(LONGEST_END), longest);
    if (strlen(folder) + 1 + length >= AMP_FORK_PATH)
        return amp_fail(error, AMP_IO_FAILED,
                        "amp: backup = %.300s...: a path may have at most %d bytes, including the file's "
                        "name; use a folder with a shorter path", folder, AMP_FORK_PATH - 1);
    return AMP_OK;
}

const char *amp_backups_folder(const amp_data_file *data)
{
    return data->backup ? data->backup : FOLDER_UNLESS_GIVEN;
}

amp_status amp_backups_check(const amp_data_file *data, const char *cfg, amp_error *error)
{
    char file[300];
    cfg_printable(file, sizeof file, data->name);
    const char *folder = amp_backups_folder(data);
    int why = folder_problem(folder);
    if (why)
        return amp_fail(
            error, AMP_IO_FAILED,
            "%s: backup = %.300s%s: nothing can be saved there: %s; make this folder, or name another", file,
            folder, data->backup ? "" : ", Darknet's default", strerror(why));
    char *base = amp_fork_base_name(cfg);
    amp_status status = check_names(base, folder, cfg, error);
    free(base);
    return status;
}

amp_status amp_backups_take(const amp_data_file *data, const char *cfg, amp_error *error)
{
    struct amp_backups *b = &amp_program_to_set()->backups;
    free(b->folder);
    free(b->base);
    b->folder = amp_allocated(strdup(amp_backups_folder(data)));
    b->base = amp_fork_base_name(cfg);
    return amp_backups_hold(b->folder, b->base, error);
}

/* ---- only one training at a time saves under a given name ---- */

/* The number of tries to lock, and the time between two tries. A program that was killed may still hold its
 * lock for a moment. */
enum { TRIES = 20, MILLISECONDS = 100 };
enum { HOLDER = 400 };

static void read_holder(const char *name, char holder[HOLDER])
{
    FILE *in = fopen(name, "r");
    if (!in || !fgets(holder, HOLDER, in)) snprintf(holder, HOLDER, "another program");
    if (in) fclose(in);
    holder[strcspn(holder, "\n")] = 0;
}

amp_status amp_backups_hold(const char *folder, const char *base, amp_error *error)
{
    char name[AMP_FORK_PATH], holder[HOLDER], shown[HOLDER], host[256] = "";
    struct amp_backups *b = &amp_program_to_set()->backups;
    if (b->lock) return AMP_OK;
    snprintf(name, sizeof name, "%s/.%s.lock", folder, base);
    int is_device = amp_is_device(name);
    int file = is_device ? -1 : amp_open_locked(name, O_NOFOLLOW, TRIES, MILLISECONDS);
    if (file < 0 && !is_device && errno == EWOULDBLOCK) {
        read_holder(name, holder);
        cfg_printable(shown, sizeof shown, holder);
        return amp_fail(error, AMP_IO_FAILED, "amp: %s is saving to %.300s/%.100s; give each training its "
                                              "own backup folder, or wait until that training has ended",
                        shown,
                                              folder, base);
    }
    if (file < 0 && !b->has_warned++)
        fprintf(stderr, "amp: %s cannot be locked: %s; make sure that no other training saves under this "
                "name\n", name, is_device ? "not a regular file" : strerror(errno));
    if (file < 0) return AMP_OK;
    gethostname(host, sizeof host - 1);
    if (ftruncate(file, 0) == 0) dprintf(file, "process %ld on %s\n", (long)getpid(), host);
    b->lock = amp_allocated(strdup(name));
    amp_host_remove_if_refused(b->lock); /* the descriptor stays open, so the lock lasts */
    return AMP_OK;
}

void amp_backups_let_go(void)
{
    if (amp_this_program()->backups.lock) unlink(amp_this_program()->backups.lock);
}

/* ---- files left behind by killed saves ---- */

/* A killed save leaves a file behind. Its name is the .cfg's base name plus a suffix that matches this
 * pattern: the saved file's suffix (the first group), .amp for a sidecar, and .new. Other files are not
 * touched, because several trainings may use one folder. */
static const char LEFT_BEHIND[] = "^(\\.backup|(_([0-9]+|final|best|last|ema))?\\.weights)(\\.amp)?\\.new$";

void amp_backups_settle(void)
{
    const struct amp_backups *b = &amp_this_program()->backups;
    DIR *folder = b->folder ? opendir(b->folder) : NULL;
    regex_t pattern;
    if (!folder) return;
    if (regcomp(&pattern, LEFT_BEHIND, REG_EXTENDED)) amp_out_of_memory();
    for (struct dirent *entry; (entry = readdir(folder));) {
        char name[AMP_FORK_PATH + NAME_MAX], note[256];
        regmatch_t parts[2];
        amp_error error;
        size_t base = strlen(b->base);
        if (strncmp(entry->d_name, b->base, base)
            || regexec(&pattern, entry->d_name + base, 2, parts, 0)) continue;
        snprintf(name, sizeof name, "%s/%.*s", b->folder, (int)base + (int)parts[1].rm_eo, entry->d_name);
        int failed = amp_sidecar_recover(name, NULL, note, &error) != AMP_OK;
        if (failed || note[0]) fprintf(stderr, "amp: %s\n", failed ? error.message : note);
    }
    regfree(&pattern);
    closedir(folder);
}
