/* The folder of backups.h. */
#include "backups.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <regex.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../amp/cfg_reader.h"
#include "../../amp/checkpoint.h"
#include "../common/state.h"

static const char FOLDER_UNLESS_GIVEN[] = "/backup/"; /* train_detector, train_classifier */
static const char LONGEST_END[] = "_2147483647.weights.amp.new"; /* after the .cfg's name */

/* A program runs one such training. */
static struct { char *folder, *base; } backups;

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
                        "amp: %.300s: what is saved is named after it, and with up to %zu bytes "
                        "behind it that is too long: a name may have %ld bytes; give the .cfg a shorter name",
                        cfg, strlen(LONGEST_END), longest);
    if (strlen(folder) + 1 + length >= AMP_FORK_PATH)
        return amp_fail(error, AMP_IO_FAILED,
                        "amp: backup = %.300s...: a path may have %d bytes with the file's name; "
                        "name a folder that is less deep", folder, AMP_FORK_PATH - 1);
    return AMP_OK;
}

amp_status amp_backups_check(const amp_data_file *data, const char *cfg, amp_error *error)
{
    char file[300];
    cfg_printable(file, sizeof file, data->name);
    const char *folder = data->backup ? data->backup : FOLDER_UNLESS_GIVEN;
    int why = folder_problem(folder);
    if (why)
        return amp_fail(
            error, AMP_IO_FAILED,
            "%s: backup = %.300s%s: nothing can be saved there: %s; make this folder, or name another", file,
            folder, data->backup ? "" : ", as Darknet has it where the key is not given", strerror(why));
    free(backups.folder);
    free(backups.base);
    backups.folder = amp_host_allocated(strdup(folder));
    backups.base = amp_fork_base_name(cfg);
    return check_names(backups.base, folder, cfg, error);
}

/* ---- what killed saves left ---- */

/* After the .cfg's name: what a killed save of one of this training's own files left. The first part is what
 * belongs to the file's own name. Nothing else is looked at, since a folder may be shared. */
static const char LEFT_BEHIND[] = "^(\\.backup|(_([0-9]+|final|best))?\\.weights)(\\.amp)?\\.new$";

void amp_backups_settle(void)
{
    DIR *folder = backups.folder ? opendir(backups.folder) : NULL;
    regex_t pattern;
    if (!folder) return;
    if (regcomp(&pattern, LEFT_BEHIND, REG_EXTENDED)) amp_host_allocated(NULL);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char name[AMP_FORK_PATH + NAME_MAX], note[256];
        regmatch_t parts[2];
        amp_error error;
        size_t base = strlen(backups.base);
        if (strncmp(entry->d_name, backups.base, base)
            || regexec(&pattern, entry->d_name + base, 2, parts, 0)) continue;
        snprintf(name, sizeof name, "%s/%.*s", backups.folder, (int)base + (int)parts[1].rm_eo,
                 entry->d_name);
        if (amp_checkpoint_settle(name, note, &error) != AMP_OK) fprintf(stderr, "amp: %s\n", error.message);
        else if (note[0]) fprintf(stderr, "amp: %s\n", note);
    }
    regfree(&pattern);
    closedir(folder);
}
