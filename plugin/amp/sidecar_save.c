/* Saves NAME and NAME.amp as a pair, finds the sidecar of a .weights file, and completes a save that was
 * killed. The steps of a save:
 *
 *     1  the weights are written to NAME.new and flushed to disk
 *     2  the sidecar is written to NAME.amp.new and flushed
 *     3  NAME.amp.new is renamed to NAME.amp, and the folder flushed
 *     4  NAME.new is renamed to NAME, and the folder flushed
 *
 * Call the old files W (weights) and A (sidecar), if they exist, and the new ones W' and A'. A sidecar
 * contains the checksum of its weights. After a kill:
 *
 *     before step 3 is done   NAME and NAME.amp are W and A, a matching pair, and *.new are leftovers. If
 *                             there is no NAME, and W' and A' are complete, recovery does 3 and 4.
 *     between 3 and 4         NAME.amp is A', NAME is W or missing, and NAME.new is W', complete because it
 *                             was flushed before 3. Recovery does 4.
 *     after 4                 NAME and NAME.amp are W' and A'.
 *
 * After a power failure, on a disk that cannot flush folders, the disk may have step 4 without step 3: NAME
 * is W', NAME.amp is A or missing, and NAME.amp.new is A', complete. Recovery does 3.
 *
 * If recovery itself is killed, the next recovery continues. Once NAME and NAME.amp are a matching pair,
 * files left behind by killed saves are removed. Recovery replaces a file only by one that a valid sidecar
 * identifies by checksum. It never replaces a NAME that is newer than NAME.new, because then someone has put
 * other weights there. A new save would overwrite NAME.new, so it first completes a killed save. */
#include "sidecar_format.h"

#include <sys/stat.h>

#include "../files/checksum.h"

/* ---- recovering ---- */

char *amp_sidecar_name(const char *weights)
{
    size_t room = strlen(weights) + sizeof ".amp";
    char *name = amp_allocated(malloc(room));
    snprintf(name, room, "%s.amp", weights);
    return name;
}

static int is_there(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* Finds the names of both files. A device has no sidecar. If `reads` is 1, a FIFO, a device, a folder or a
 * dangling link in the sidecar's place is an error. The caller frees the names with amp_sidecar_cancel, even
 * after a failure. */
static amp_status locate(const char *name, int reads, amp_sidecar_save *pair, amp_error *error)
{
    amp_sidecar *c = NULL;
    *pair = (amp_sidecar_save){ 0 };
    AMP_TRY(amp_safe_file_locate(name, &pair->weights, error));
    if (pair->weights.direct) return AMP_OK;
    char *sidecar = amp_sidecar_name(pair->weights.target);
    amp_status status = AMP_OK;
    if (reads && amp_name_is_taken(sidecar) && !is_there(sidecar))
        status = amp_sidecar_read(sidecar, &c, error);
    if (status == AMP_OK) status = amp_safe_file_locate(sidecar, &pair->sidecar, error);
    amp_sidecar_free(c);
    free(sidecar);
    return status;
}

void amp_sidecar_cancel(amp_sidecar_save *pair)
{
    amp_safe_file_end(&pair->weights);
    amp_safe_file_end(&pair->sidecar);
}

/* Whether the file at path has the checksum `sum`. */
static int is_file_of(const char *path, uint64_t sum)
{
    uint64_t found;
    return is_there(path) && amp_file_checksum(path, &found, NULL) == AMP_OK && found == sum;
}

/* Returns the sidecar at path if it is valid and belongs to the file `weights`, else NULL. */
static amp_sidecar *sidecar_of(const char *path, const char *weights)
{
    amp_sidecar *c;
    if (!is_there(path) || amp_sidecar_read(path, &c, NULL) != AMP_OK) return NULL;
    if (is_file_of(weights, c->weights)) return c;
    amp_sidecar_free(c);
    return NULL;
}

static amp_status other_weights(const amp_safe_file *w, const amp_sidecar *c, int left_behind,
                                amp_error *error)
{
    if (!left_behind)
        return amp_fail(error, AMP_BAD_SIDECAR,
                        "%s: this sidecar does not belong to %.200s; " AMP_SIDECAR_REMEDY, c->name,
                        w->target);
    return amp_fail(error, AMP_BAD_SIDECAR,
                    "%.200s: this sidecar belongs to %.140s, which an interrupted save left behind; %.140s "
                    "is newer; " AMP_SIDECAR_REMEDY ", or rename %.140s to %.140s to continue from the "
                    "interrupted save", c->name, w->temporary, w->target, w->temporary, w->target);
}

/* Recovers as this file's opening comment describes. *out: the pair's sidecar, or NULL. *ended: 1 if the
 * killed save lacked a rename; the status says whether it now succeeded. */
static amp_status end_killed_save(const amp_sidecar_save *pair, amp_sidecar **out, int *ended,
                                  amp_error *error)
{
    const amp_safe_file *w = &pair->weights, *s = &pair->sidecar;
    amp_sidecar *c = NULL, *newer = NULL;
    amp_status status = AMP_OK;
    *out = NULL;
    *ended = 0;
    if (is_there(s->target)) AMP_TRY(amp_sidecar_read(s->target, &c, error));
    int new_pair = !is_there(w->target), matches = c && is_file_of(w->target, c->weights);
    int left_behind = c && !matches && is_file_of(w->temporary, c->weights);
    int too_old = left_behind && amp_is_younger(w->target, w->temporary);
    if (!matches && (!left_behind || too_old))
        newer = sidecar_of(s->temporary, new_pair ? w->temporary : w->target);
    int lacks_3 = newer != NULL, lacks_4 = newer ? new_pair : left_behind && !too_old;
    if ((left_behind || lacks_4) && amp_safe_file_busy(w)) {
        status = amp_fail(error, AMP_IO_FAILED, "%.500s: another program is saving it now; start again when "
                                                "that is done", w->target);
    } else if (lacks_3 || lacks_4) {
        *ended = 1;
        if (lacks_3) status = amp_replace_file(s->temporary, s->target, error);
        if (lacks_4 && status == AMP_OK) status = amp_replace_file(w->temporary, w->target, error);
    } else if (c && !matches && !new_pair) {
        status = other_weights(w, c, left_behind, error);
    }
    if (status == AMP_OK) *out = newer ? newer : matches || left_behind ? c : NULL;
    if (*out != c) amp_sidecar_free(c);
    if (*out != newer) amp_sidecar_free(newer);
    return status;
}

/* Completes a killed save. Then, if the sidecar matches the weights or `own` is 1, removes files left behind
 * by killed saves. own: 1 if this training saves NAME but does not start from it. */
static amp_status settle(const amp_sidecar_save *pair, int own, amp_sidecar **out, char note[256],
                         amp_error *error)
{
    const amp_safe_file *w = &pair->weights;
    int ended;
    AMP_TRY(end_killed_save(pair, out, &ended, error));
    if (*out && ended) snprintf(note, 256, "%.159s: completed a save that was killed", (*out)->name);
    if ((!own && !*out) || amp_safe_file_busy(w)) return AMP_OK; /* a running save removes its own files */
    if (own && !is_there(w->target) && is_there(w->temporary))
        snprintf(note, 256,
                 "%.159s: removed, since a training was killed before this file was complete",
                 w->temporary);
    amp_safe_file_remove_leftover(&pair->sidecar, NULL); /* ignores failures: a leftover does no harm */
    amp_safe_file_remove_leftover(w, NULL);
    return AMP_OK;
}

amp_status amp_sidecar_recover(const char *name, amp_sidecar **out, char note[256], amp_error *error)
{
    amp_sidecar_save pair;
    amp_sidecar *found = NULL;
    note[0] = 0;
    amp_status status = locate(name, 1, &pair, error);
    if (status == AMP_OK && !pair.weights.direct) status = settle(&pair, !out, &found, note, error);
    amp_sidecar_cancel(&pair);
    if (out) *out = found;
    else amp_sidecar_free(found);
    return status;
}

/* ---- saving ---- */

/* Completes a killed save of NAME, because a new save would overwrite the files that it left behind. While a
 * save is still running, does nothing: amp_safe_file_begin then rejects the new save. */
static amp_status end_earlier_save(const char *name, amp_error *error)
{
    amp_sidecar_save pair;
    amp_sidecar *found = NULL;
    int ended = 0;
    amp_status status = locate(name, 0, &pair, error), ending = AMP_OK;
    if (status == AMP_OK && !pair.weights.direct
        && (is_there(pair.weights.temporary) || is_there(pair.sidecar.temporary))
        && !amp_safe_file_busy(&pair.weights)) /* busy: a save is still running */
        ending = end_killed_save(&pair, &found, &ended, error);
    amp_sidecar_free(found);
    amp_sidecar_cancel(&pair);
    return ended ? ending : status;
}

amp_status amp_sidecar_begin(const char *name, amp_sidecar_save *save, amp_error *error)
{
    *save = (amp_sidecar_save){ 0 };
    AMP_TRY(end_earlier_save(name, error));
    AMP_TRY(amp_safe_file_begin(name, &save->weights, error));
    if (save->weights.direct) return AMP_OK;
    char *sidecar = amp_sidecar_name(save->weights.target);
    amp_status status = amp_safe_file_begin(sidecar, &save->sidecar, error);
    free(sidecar);
    if (status == AMP_OK && save->sidecar.direct) /* a FIFO would wait for a reader, a device would not keep
                                                     the data */
        status = amp_fail(error, AMP_IO_FAILED, "cannot write %.500s: it is not a regular file; remove it",
                          save->sidecar.target);
    if (status != AMP_OK) amp_sidecar_cancel(save);
    return status;
}

static amp_status write_pair(amp_sidecar_save *save, amp_engine *engine, const amp_run_state *run,
                             amp_error *error)
{
    uint64_t sum;
    AMP_TRY(amp_safe_file_flush(&save->weights, error));
    AMP_TRY(amp_file_checksum(save->weights.temporary, &sum, error));
    return amp_sidecar_write(save->sidecar.temporary, engine, run, sum, error);
}

/* First renames the sidecar into place, which cannot be undone; then the weights. If the second rename fails,
 * the weights keep their temporary name, under which recovery finds them. */
static amp_status place_pair(amp_sidecar_save *save, amp_error *error)
{
    amp_error why;
    amp_status status = amp_safe_file_place(&save->sidecar, error);
    if (status != AMP_OK && save->sidecar.pending) return status;
    if (amp_safe_file_place(&save->weights, &why) == AMP_OK) return status;
    if (!save->weights.pending) return amp_fail(error, why.status, "%.900s", why.message);
    amp_safe_file_leave(&save->weights);
    return amp_fail(error, why.status, "%.700s; the complete weights are in %.200s", why.message,
                    save->weights.temporary);
}

amp_status amp_sidecar_finish(amp_sidecar_save *save, amp_engine *engine,
                                 const amp_run_state *run, amp_error *error)
{
    amp_status status = AMP_OK;
    if (!save->weights.direct) {
        status = write_pair(save, engine, run, error);
        if (status == AMP_OK) status = place_pair(save, error);
    }
    amp_sidecar_cancel(save);
    return status;
}
