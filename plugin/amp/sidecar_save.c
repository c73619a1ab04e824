/* Saves NAME and NAME.amp as a pair, and completes a save that was killed.
 *
 * A save has these steps. W and A are the old files (or none), W' and A' the new ones. A sidecar contains
 * the checksum of its weights, which shows which files belong together:
 *
 *     1  W' is written to NAME.new and flushed to disk
 *     2  A' is written to NAME.amp.new and flushed
 *     3  NAME.amp.new is renamed to NAME.amp, and the folder flushed
 *     4  NAME.new is renamed to NAME, and the folder flushed
 *
 * Killed before 3 is done: NAME and NAME.amp are W and A, a matching pair, and *.new are leftovers. If
 * there is no NAME, and W' and A' are complete, recovery does 3 and 4, because nothing else exists. Killed
 * between 3 and 4: NAME.amp is A', NAME is W or missing, and NAME.new is W', complete because it was
 * flushed before 3. Recovery does 4. Killed after 4: W' and A'. If recovery itself is killed, it has
 * either changed nothing or finished.
 *
 * After a power failure, a disk that cannot flush folders may have done 4 but not 3: NAME is W', NAME.amp
 * is A or missing, and NAME.amp.new is A', complete. Recovery does 3.
 *
 * Leftovers are removed once there is a pair without them.
 *
 * A new save would overwrite the NAME.new that recovery needs, so it recovers first.
 *
 * Recovery replaces a file only by one that a valid sidecar identifies by checksum, and NAME only if it is
 * not newer than NAME.new: otherwise someone has put other weights there since, and we must not replace
 * them. */
#include "sidecar_format.h"

#include <sys/stat.h>

#include "../files/checksum.h"

static void end_both(amp_safe_file *weights, amp_safe_file *sidecar)
{
    amp_safe_file_end(weights);
    amp_safe_file_end(sidecar);
}

char *amp_sidecar_name(const char *weights)
{
    size_t room = strlen(weights) + sizeof ".amp";
    char *name = amp_allocated(malloc(room));
    snprintf(name, room, "%s.amp", weights);
    return name;
}

/* Applies `find` to the sidecar's name, which it derives from the weights'. */
static amp_status with_sidecar(const amp_safe_file *weights,
                               amp_status (*find)(const char *, amp_safe_file *, amp_error *),
                               amp_safe_file *sidecar, amp_error *error)
{
    char *name = amp_sidecar_name(weights->target);
    amp_status status = find(name, sidecar, error);
    free(name);
    return status;
}

static int is_there(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* Whether the file at path has the checksum sum. */
static int is_file_of(const char *path, uint64_t sum)
{
    uint64_t found;
    return is_there(path) && amp_file_checksum(path, &found, NULL) == AMP_OK && found == sum;
}

/* ---- recovery ---- */

/* The sidecar at path if it is valid and belongs to the file `weights`, else NULL. */
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
                        "%s: it belongs to other weights than %.200s; " AMP_SIDECAR_REMEDY, c->name,
                        w->target);
    return amp_fail(error, AMP_BAD_SIDECAR,
                    "%.200s: it belongs to %.150s, which a killed save left, but %.150s was "
                    "written after that; " AMP_SIDECAR_REMEDY ", or rename %.150s to continue from that",
                    c->name, w->temporary, w->target, w->temporary);
}

/* The cases of the opening comment. *ended: a missing rename was done. */
static amp_status settle(const amp_safe_file *w, const amp_safe_file *s, amp_sidecar **out, int *ended,
                         amp_error *error)
{
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
    if ((left_behind || (newer && new_pair)) && amp_safe_file_busy(w)) {
        status = amp_fail(error, AMP_IO_FAILED, "%.500s: another program is saving it now; start again when "
                          "it has", w->target);
    } else if (newer) {
        *ended = 1;
        status = amp_replace_file(s->temporary, s->target, error);
        if (new_pair && status == AMP_OK) status = amp_replace_file(w->temporary, w->target, error);
    } else if (left_behind && !too_old) {
        *ended = 1;
        status = amp_replace_file(w->temporary, w->target, error);
    } else if (c && !matches && !new_pair) {
        status = other_weights(w, c, left_behind, error);
    }
    if (status == AMP_OK) *out = newer ? newer : matches || left_behind ? c : NULL;
    if (*out != c) amp_sidecar_free(c);
    if (*out != newer) amp_sidecar_free(newer);
    return status;
}

/* A program that is saving now removes them itself. A leftover that cannot be removed does no harm. */
static void remove_leftovers(const amp_safe_file *w, const amp_safe_file *s)
{
    if (amp_safe_file_busy(w)) return;
    amp_safe_file_remove_leftover(s, NULL);
    amp_safe_file_remove_leftover(w, NULL);
}

/* If the sidecar's name is taken by a FIFO, a device, a folder or a dangling link, fails: continuing as if
 * there were no sidecar would be wrong. */
static amp_status check_sidecars_name(const amp_safe_file *weights, amp_error *error)
{
    amp_sidecar *c = NULL;
    char *name = amp_sidecar_name(weights->target);
    amp_status status = AMP_OK;
    if (amp_name_is_taken(name) && !is_there(name)) status = amp_sidecar_read(name, &c, error);
    amp_sidecar_free(c);
    free(name);
    return status;
}

/* own: NAME is one of this training's own files, so leftovers are removed even without a pair. */
static amp_status recover(const char *name, int own, amp_sidecar **out, char note[256], amp_error *error)
{
    amp_safe_file weights, sidecar = { 0 };
    int ended = 0;
    *out = NULL;
    note[0] = 0;
    AMP_TRY(amp_safe_file_locate(name, &weights, error));
    amp_status status = AMP_OK;
    if (!weights.direct) status = check_sidecars_name(&weights, error);
    if (!weights.direct && status == AMP_OK)
        status = with_sidecar(&weights, amp_safe_file_locate, &sidecar, error);
    if (!weights.direct && status == AMP_OK) status = settle(&weights, &sidecar, out, &ended, error);
    if (*out && ended) snprintf(note, 256, "%.159s: ended a save that was killed", (*out)->name);
    if (own && status == AMP_OK && !is_there(weights.target) && is_there(weights.temporary) &&
        !amp_safe_file_busy(&weights))
        snprintf(note, 256,
                 "%.159s: it was being saved when a training was killed, and is not whole: removed",
                 weights.temporary);
    if (status == AMP_OK && (own || *out)) remove_leftovers(&weights, &sidecar);
    end_both(&weights, &sidecar);
    return status;
}

amp_status amp_sidecar_recover(const char *name, amp_sidecar **out, char note[256], amp_error *error)
{
    return recover(name, 0, out, note, error);
}

amp_status amp_sidecar_settle(const char *name, char note[256], amp_error *error)
{
    amp_sidecar *found;
    amp_status status = recover(name, 1, &found, note, error);
    amp_sidecar_free(found);
    return status;
}

/* ---- saving ---- */

/* Completes a killed save whose leftovers recovery would need. Other leftovers may be overwritten. */
static amp_status end_killed_save(const amp_safe_file *w, const amp_safe_file *s, amp_error *error)
{
    amp_sidecar *c;
    int ended;
    if (!is_there(w->temporary) && !is_there(s->temporary)) return AMP_OK;
    if (amp_safe_file_busy(w)) return AMP_OK; /* still running, not killed: amp_safe_file_begin rejects
                                                 this save */
    amp_status status = settle(w, s, &c, &ended, error);
    amp_sidecar_free(c);
    return ended ? status : AMP_OK;
}

amp_status amp_sidecar_begin(const char *name, amp_sidecar_save *save, amp_error *error)
{
    amp_safe_file weights, sidecar = { 0 };
    *save = (amp_sidecar_save){ .weights.direct = 1 };
    AMP_TRY(amp_safe_file_locate(name, &weights, error));
    amp_status status = weights.direct ? AMP_OK : with_sidecar(&weights, amp_safe_file_locate, &sidecar,
                                                               error);
    if (status == AMP_OK && !weights.direct) status = end_killed_save(&weights, &sidecar, error);
    if (status == AMP_OK) status = amp_safe_file_begin(weights.target, &save->weights, error);
    if (status == AMP_OK && !weights.direct)
        status = with_sidecar(&weights, amp_safe_file_begin, &save->sidecar, error);
    if (status == AMP_OK && save->sidecar.direct) /* a FIFO would wait for a reader, and a device would not
                                                     keep the data */
        status = amp_fail(error, AMP_IO_FAILED, "cannot write %.500s: it is not a regular file; remove it",
                          save->sidecar.target);
    if (status != AMP_OK) amp_sidecar_cancel(save);
    end_both(&weights, &sidecar);
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

/* After the sidecar is renamed there is no way back: the weights are renamed too, or stay where recovery
 * finds them. */
static amp_status place_pair(amp_sidecar_save *save, amp_error *error)
{
    amp_error why;
    amp_status status = amp_safe_file_place(&save->sidecar, error);
    if (status != AMP_OK && save->sidecar.pending) return status;
    if (amp_safe_file_place(&save->weights, &why) == AMP_OK) return status;
    if (!save->weights.pending) return amp_fail(error, why.status, "%.900s", why.message);
    amp_safe_file_leave(&save->weights);
    return amp_fail(error, why.status, "%.700s; the weights are whole in %.200s", why.message,
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

void amp_sidecar_cancel(amp_sidecar_save *save) { end_both(&save->weights, &save->sidecar); }
