/* Loads and saves weights under AMP. Decides whether a file has all layers and whether it gets a sidecar, and
 * reports failed loads and saves. */
#include "resume.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "../program/exchange.h"
#include "../program/ranks.h"
#include "weights_check.h"

static void set_name(char **slot, const char *file)
{
    if (*slot && !strcmp(*slot, file)) return; /* `file` may be *slot itself */
    char *copy = amp_allocated(strdup(file));
    free(*slot);
    *slot = copy;
}

/* ---- loading ---- */

/* Completes a killed save of `file`, but only if `file` itself is missing: a program that only reads weights
 * must not touch files that a running training saves. resume.c completes other killed saves. */
static void recover_missing(const char *file)
{
    amp_error error;
    amp_sidecar *saved = NULL;
    char note[256];
    if (!amp_ranks_leads() || amp_file_exists(file) || errno != ENOENT) return;
    if (amp_sidecar_recover(file, &saved, note, &error) != AMP_OK)
        fprintf(stderr, "%s\n", error.message);
    else if (note[0]) fprintf(stderr, "amp: %s\n", note);
    amp_sidecar_free(saved);
}

static void check_weights_file(amp_status status, const amp_error *error)
{
    if (status != AMP_OK) darknet_amp_refuse("amp: %s", error->message);
}

static int is_partial(const struct network *net)
{
    return amp_fork_state(net)->resume->held < amp_fork_view(net).layers;
}

static int has_sidecar(const char *file)
{
    char *sidecar = amp_sidecar_name(file);
    int has = amp_name_is_taken(sidecar);
    free(sidecar);
    return has;
}

/* Whether a training can continue from the file that is being loaded. whole: the caller asks for all layers.
 * A file that ends early has the first layers of another network (darknet53.conv.74). But if it has a
 * sidecar, it was truncated; the result is then 1, so that the training compares the file with the sidecar
 * and rejects the file. */
static int can_continue(const struct network *net, const char *file, int whole)
{
    return whole && amp_fork_one_sided_layer(net) < 0 && (!is_partial(net) || has_sidecar(file));
}

/* Call it when other weights are loaded into a network that has trained. Drops all state of its training, so
 * that the next step depends only on these weights. */
static void end_training(struct network *net)
{
    amp_error error;
    struct darknet_amp *amp = amp_fork_state(net);
    amp_fork_use_device(net);
    amp->steps = amp->skipped = 0;
    amp_fork_set_counters(net, (amp_counters){ .seen = amp_fork_counters(net).seen, .t = 0 });
    amp_host_check(amp_engine_start_anew(amp->engine, &error), &error);
}

static FILE *open_to_load(struct network *net, const char *file, int first, int layers)
{
    amp_error error;
    struct amp_resume *resume = amp_fork_state(net)->resume;
    int whole = first == 0 && layers >= amp_fork_view(net).layers, *held = &resume->held;
    *held = 0;
    recover_missing(file);
    amp_exchange_broadcast(held, sizeof *held, "loading weights"); /* only to wait for rank 0, which may be
                                                                      completing a killed save */
    check_weights_file(amp_check_weights_size(net, file, first, layers, held, &error), &error);
    if (is_partial(net))
        fprintf(stderr, "amp: %s holds the weights of layers 0 to %d; layers after them, up to layer %d, "
                        "start from random weights\n", file, *held - 1, amp_fork_view(net).layers - 1);
    if (can_continue(net, file, whole)) {
        if (resume->phase >= AMP_TRAINING) end_training(net);
        resume->phase = AMP_LOADED;
    } else if (resume->phase == AMP_LOADED) resume->phase = AMP_FRESH;
    return fopen(file, "rb");
}

int darknet_amp_held_layers(const struct network *net) { return amp_fork_state(net)->resume->held; }

static void close_loaded(struct network *net, FILE *stream)
{
    struct amp_resume *resume = amp_fork_state(net)->resume;
    amp_error error;
    check_weights_file(amp_check_weights_sense(net, resume->file, &error), &error);
    resume->loaded_seen = amp_fork_counters(net).seen;
    if (resume->phase == AMP_LOADED) set_name(&resume->last_file, resume->file);
    fclose(stream);
    darknet_amp_weights_changed(net);
}

/* ---- saving ---- */

/* Whether the loop asks for the same save again only because the latest step was skipped: a skipped step does
 * not advance the batch number. */
static int is_asked_again(const struct darknet_amp *amp, const struct network *net)
{
    return amp->resume->loop.average_loss && amp->step_skipped && !amp_fork_is_over(net)
        && amp->resume->phase != AMP_STOPPING;
}

/* After a failed save, a training continues, and any other command ends here. A training that is over also
 * ends here, unless a loop runs: the loop may save more than once at its end (see amp_resume_loop_ended). */
static void print_failed_save(struct darknet_amp *amp, const struct network *net, const amp_error *error)
{
    struct amp_resume *resume = amp->resume;
    const char *file = resume->file, *kept = resume->last_file;
    const char *what_is_left = "nothing has been saved so far";
    int trains = resume->phase >= AMP_TRAINING;
    if (kept) what_is_left = amp_file_exists(kept) ? "the last good file is kept: "
                                                   : "the last good file is gone as well: ";
    fflush(stdout);
    if (!trains) fprintf(stderr, "amp: %s could not be written: %s\n", file, error->message);
    else
        fprintf(stderr, "amp: %s could not be written: %s; training %s, %s%s\n", file, error->message,
                amp_fork_is_over(net) ? "is over" : resume->phase == AMP_STOPPING ? "ends here" : "continues",
                what_is_left, kept ? kept : "");
    if (!trains || (amp_fork_is_over(net) && !resume->loop.average_loss)) exit(1);
    resume->phase = AMP_UNSAVED;
}

/* Rejects useless weights: the file that they would replace is better. */
static amp_status check_weights(struct darknet_amp *amp, const struct network *net, amp_error *error)
{
    amp_anomaly bad;
    if (amp->resume->phase < AMP_TRAINING
        || !amp_parameters_bad_master(&amp->engine->parameters, &bad))
        return AMP_OK;
    return amp_fail(error, AMP_DIVERGED, "%s of layer %d are inf, NaN or beyond 1e19 after step %ld",
                    bad.tensor, bad.layer, amp_fork_view(net).batch_number);
}

static amp_status open_file(amp_sidecar_save *save, const char *name, int with_sidecar, FILE **out,
                            amp_error *error)
{
    *save = (amp_sidecar_save){ 0 };
    AMP_TRY(with_sidecar ? amp_sidecar_begin(name, save, error)
                         : amp_safe_file_begin(name, &save->weights, error));
    *out = fopen(save->weights.temporary, "wb");
    if (*out) return AMP_OK;
    amp_status status = amp_cannot_write(save->weights.temporary, errno, error);
    amp_sidecar_cancel(save);
    return status;
}

/* Ends a save. Rank 0 broadcasts whether it failed, so that all ranks continue or end together. error: on
 * rank 0, the reason why the save failed. */
static void end_save(struct darknet_amp *amp, const struct network *net, int failed, amp_error *error)
{
    struct amp_resume *resume = amp->resume;
    free(resume->rank_states);
    resume->rank_states = NULL;
    amp_exchange_broadcast(&failed, sizeof failed, "saving weights");
    if (failed) {
        if (!amp_ranks_leads()) amp_fail(error, AMP_IO_FAILED, "rank 0 could not write it");
        print_failed_save(amp, net, error);
        return;
    }
    if (resume->phase >= AMP_TRAINING) resume->phase = AMP_TRAINING;
    if (!is_partial(net) && resume->phase != AMP_LOADED) set_name(&resume->last_file, resume->file);
}

static FILE *open_to_save(struct network *net, const char *file, int first, int layers)
{
    struct darknet_amp *amp = amp_fork_state(net);
    struct amp_resume *resume = amp->resume;
    amp_error error;
    FILE *out = NULL;
    if (is_asked_again(amp, net)) return NULL;
    amp_fork_use_device(net);
    resume->held = first == 0 ? layers : 0;
    int with_sidecar = !is_partial(net) && resume->phase >= AMP_TRAINING;
    if (with_sidecar) amp_resume_gather_states(net);
    if (!amp_ranks_leads())
        end_save(amp, net, 0, &error);
    else if (check_weights(amp, net, &error) != AMP_OK
             || open_file(&resume->save, file, with_sidecar, &out, &error) != AMP_OK)
        end_save(amp, net, 1, &error);
    errno = 0;
    return out;
}

static amp_status close_stream(FILE *stream, const char *name, amp_error *error)
{
    /* open_to_save cleared errno, so errno is now the error of an fwrite */
    int why = ferror(stream) ? errno ? errno : EIO : 0;
    if (fflush(stream) != 0) why = errno;
    if (fclose(stream) != 0 && !why) why = errno;
    return why ? amp_cannot_write(name, why, error) : AMP_OK;
}

/* Commits a file without a sidecar, then removes the old file's sidecar: in this order, the old file never
 * exists without its sidecar. A kill between the two leaves the new file with the old sidecar; the next
 * training rejects this pair. */
static amp_status put_alone(amp_safe_file *weights, amp_error *error)
{
    amp_status status = AMP_OK;
    AMP_TRY(amp_safe_file_commit(weights, error));
    if (weights->direct) return AMP_OK;
    char *sidecar = amp_sidecar_name(weights->target);
    if (unlink(sidecar) != 0 && errno != ENOENT)
        status = amp_fail(error, AMP_IO_FAILED,
                          "cannot remove %.500s, the sidecar of the file that was just replaced: %s; remove "
                          "it", sidecar, strerror(errno));
    free(sidecar);
    return status;
}

static amp_status close_saved(struct darknet_amp *amp, const struct network *net, FILE *stream,
                              amp_error *error)
{
    amp_sidecar_save *save = &amp->resume->save;
    amp_status status = close_stream(stream, amp->resume->file, error);
    if (status == AMP_OK && save->sidecar.target) {
        amp_run_state run = amp_resume_run_state(amp, net);
        return amp_sidecar_finish(save, amp->engine, &run, error);
    }
    if (status == AMP_OK) status = put_alone(&save->weights, error);
    amp_sidecar_cancel(save); /* removes temporary files that were not moved into place */
    return status;
}

FILE *darknet_amp_open_weights(struct network *net, const char *file, const char *mode, int first, int layers)
{
    set_name(&amp_fork_state(net)->resume->file, file);
    return (*mode == 'r' ? open_to_load : open_to_save)(net, file, first, layers);
}

void darknet_amp_close_weights(struct network *net, FILE *file)
{
    struct darknet_amp *amp = amp_fork_state(net);
    amp_error error;
    amp_fork_use_device(net);
    if (!amp->resume->save.weights.target) close_loaded(net, file);
    else end_save(amp, net, close_saved(amp, net, file, &error) != AMP_OK, &error);
}
