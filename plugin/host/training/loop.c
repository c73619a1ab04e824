/* The hooks of the training loops: see loop.h.
 *
 * A step's time has two parts: waiting for the images (and, with random=1, resizing), until Darknet prints
 * "Loaded"; and the step itself. Neither contains what follows the step's line: saving, -map, and waiting for
 * a turn. */
#include "loop.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "../../tensor/half.h"
#include "../data/backups.h"
#include "../data/image_cache.h"
#include "../data/images.h"
#include "../data/loader_memory.h"
#include "../data/loading.h"
#include "../network/ranks_join.h"
#include "../network/resume.h"
#include "../network/state.h"
#include "../network/weights_check.h"
#include "../program/clock.h"
#include "../program/exchange.h"
#include "../program/memory.h"
#include "../program/ranks.h"
#include "../program/request.h"
#include "../program/stopping.h"
#include "../program/turns.h"
#include "training_log.h"
#include "waits.h"

enum { ENDING = 128, LINE = 1024, PATH_BYTES = 4096 };

/* The state of the running loop. A program runs one loop at a time, in its main thread. */
static struct {
    struct network **nets; /* the loop's networks; NULL: no loop runs */
    int count;            /* number of networks that make their own steps; 1 under AMP, even with -gpus */
    int w, h;             /* the input size in the .cfg */
    const char *folder, *base; /* folder and base name of the files that are saved */
    int looped;           /* 1: the loop's first step has begun */
    long first_iteration;
    double began, loaded; /* CLOCK_MONOTONIC seconds at which the step began, and its images were loaded */
    atomic_int waits;     /* 1: the step has no images yet; several networks' threads may clear it */
    amp_waits waits_for_images;
    double load;          /* seconds that the step's images took to load */
    double peak_memory_mb;
    amp_log_file log;
    char ending[ENDING]; /* the text that AMP adds to the step's line */
    char scale[ENDING];  /* `ending` without the speed, for the chart */
    char row[AMP_LOG_TEXT]; /* the step's row of the log */
    int fault_told;         /* 1: the reason why the loss is not finite was printed (tell_fault) */
} training = { .log = { .descriptor = -1 } };

void amp_training_input(int *w, int *h)
{
    *w = training.w;
    *h = training.h;
}

void amp_training_exclude_seconds(double seconds)
{
    for (int i = 0; i < training.count; i++)
        if (amp_fork_state(training.nets[i])) amp_fork_state(training.nets[i])->started += seconds;
}

/* ---- the loop ---- */

/* Prints a line if the weights have seen all steps of this .cfg; Darknet itself would print nothing. */
static void tell_nothing_left(const struct network *net)
{
    amp_view view = amp_fork_view(net);
    int endless = !amp_this_program()->is_detector && !view.max_batches;
    if (!amp_ranks_leads() || endless || view.batch_number < view.max_batches) return;
    fflush(stdout);
    if (!view.max_batches)
        fprintf(stderr, "amp: nothing is trained: max_batches in the .cfg is 0 or missing; set it to the "
                "number of steps\n");
    else
        fprintf(stderr, "amp: nothing is left to train: these weights are of iteration %ld, and the .cfg has "
                "max_batches=%ld; raise it, or start at iteration 0 with -clear\n", (long)view.batch_number,
                (long)view.max_batches);
}

/* Reads counters and settings only from nets[0], the network that is saved. */
void amp_training_begin(struct network **nets, int count, float *average_loss, int *loop_count)
{
    struct darknet_amp *amp = amp_fork_state(nets[0]);
    amp_view view = amp_fork_view(nets[0]);
    training.nets = nets;
    training.count = count;
    training.looped = 0;
    training.waits_for_images = (amp_waits){ 0 };
    training.w = amp ? amp->w : view.w;
    training.h = amp ? amp->h : view.h;
    training.first_iteration = view.batch_number;
    if (amp) amp_resume_loop(amp, average_loss, loop_count);
    if (amp) tell_nothing_left(nets[0]);
    if (amp_this_program()->log && amp_ranks_leads())
        amp_log_resume(&training.log, amp_this_program()->log, training.first_iteration, amp ? amp->steps : 0,
                       amp ? amp->skipped : 0);
    if (amp) amp_stopping_watch();
}

int amp_training_runs(void) { return training.nets != NULL; }

/* In a loop under AMP, copies the rows to input, frees them and returns 1; otherwise Darknet copies them. */
int darknet_amp_fill(float *input, float **rows, int count, int floats)
{
    if (atomic_exchange(&training.waits, 0)) training.loaded = amp_clock_seconds();
    amp_images_filled(input, rows, count);
    if (!training.looped || !training.nets || !amp_fork_state(training.nets[0])) return 0;
    amp_filling_copy(input, rows, count, (size_t)floats);
    return 1;
}

/* Rounds to a multiple of 1 / parts, because a measured number is not more precise. */
static double rounded(double value, double parts) { return round(value * parts) / parts; }

static amp_log_spike_word spike_of(const struct darknet_amp *amp)
{
    if (!(amp->config->spike_factor > 0)) return AMP_LOG_NO_RULE;
    if (!amp->step_spike.found) return AMP_LOG_NO_SPIKE;
    return amp->step_spike.dropped ? AMP_LOG_DROPPED : AMP_LOG_SPIKE;
}

static int images_of_step(const struct network *net)
{
    amp_view view = amp_fork_view(net);
    return view.batch * view.subdivisions * training.count;
}

static amp_log_row row_of(const struct network *net, float loss, float average_loss)
{
    const struct darknet_amp *amp = amp_fork_state(net);
    amp_view view = amp_fork_view(net);
    double load = fmax(training.loaded - training.began, 0);
    double train = fmax(amp_clock_seconds() - training.loaded, 0);
    int images = images_of_step(net), is_read = amp_this_program()->log || amp_turns_taken();
    double memory = is_read ? amp_fork_gpu_memory_in_use_mb(net) : 0; /* a query takes time */
    if (memory < 0) memory = amp_host_peak_resident_mb();
    if (memory > training.peak_memory_mb) training.peak_memory_mb = memory;
    return (amp_log_row){ .iteration = view.batch_number, .loss = loss, .avg_loss = average_loss,
        /* computing some rates calls rand(), and an additional call would change a training without AMP */
        .learning_rate = amp || !view.draws_rate ? amp_fork_rate(net) : NAN,
        .scale = amp ? amp->step_scale : 1,
        .found_inf = amp ? amp->step_skipped && !amp->step_spike.dropped : 0,
        .grad_norm = amp ? amp->step_gradient_norm : NAN,
        .images_per_second = rounded(amp_clock_rate(images, load + train), 1e2),
        .load_seconds = rounded(load, 1e6),
        .train_seconds = rounded(train, 1e6),
        .peak_memory_mb = rounded(training.peak_memory_mb, 1e1),
        .time = rounded(amp_clock_read(CLOCK_REALTIME), 1e3),
        .wire = amp && amp_ranks_of_step() > 1 ? (int)amp->config->wire : -1,
        .spike = amp ? spike_of(amp) : AMP_LOG_NO_RULE };
}

/* If steps wait long for their images, AMP gains little. Prints one line about this and about what would
 * help. */
static void tell_waiting(const amp_log_row *row, double images)
{
    char rates[AMP_WAITS_TEXT];
    amp_waits *waits = &training.waits_for_images;
    if (!amp_waits_add(waits, images, row->load_seconds, row->train_seconds) || !amp_waits_is_slow(waits)
        || !amp_ranks_leads()) return;
    fflush(stdout);
    fprintf(stderr, "amp: loading is slower than computing: %s; what helps: %smore cores, smaller photos\n",
            amp_waits_text(waits, amp_ranks_of_step() > 1 ? 0 : amp_loaders_processors(), rates),
            amp_image_cache_is_used() ? "" : AMP_CACHE_HELPS " in the .data file, ");
}

/* Writes the step's row, before its backup is saved: there must never be a backup without its row. */
static void log_step(float loss, float average_loss)
{
    if (!training.nets) return;
    const struct network *net = training.nets[0];
    const struct darknet_amp *amp = amp_fork_state(net);
    if (!amp && !amp_this_program()->log && !amp_turns_taken()) return;
    amp_log_row row = row_of(net, loss, average_loss);
    amp_log_row_text(&row, training.row);
    amp_log_file_add(&training.log, training.row);
    if (!amp) return;
    tell_waiting(&row, images_of_step(net));
    if (!amp_fork_view(net).on_gpu)
        amp_loaders_adapt(row.load_seconds, row.load_seconds + row.train_seconds, training.load);
    snprintf(training.scale, ENDING, ", scale %g, %lu skipped", (double)row.scale, amp->skipped);
    int length = snprintf(training.ending, ENDING, "%s", training.scale);
    if (row.images_per_second > 0)
        snprintf(training.ending + length, ENDING - (size_t)length, ", %.1f images/s",
                 row.images_per_second);
}

const char *darknet_amp_chart_ending(void) { return training.scale; }

/* Replaces the loss by its mean over the ranks, and computes the average loss again from this mean with
 * Darknet's formula. */
void darknet_amp_mean_loss(float *loss, float *average_loss)
{
    if (!training.nets || !amp_fork_state(training.nets[0])) return;
    amp_sharing_end_step(training.nets[0]);
    if (!amp_ranks()) return;
    float before = amp_fork_state(training.nets[0])->resume->loop.last_finite;
    *loss = amp_exchange_mean(*loss, "the loss of a step");
    if (before < 0) before = *loss;
    *average_loss = (float)((double)before * .9 + (double)*loss * .1);
}

/* Without AMP nothing stops a training whose loss is inf or NaN. Prints the cause once if it is known. */
static void tell_fault(float loss)
{
    const struct network *net = training.nets ? training.nets[0] : NULL;
    if (!net || amp_fork_state(net) || amp_is_finite(loss) || training.fault_told) return;
    char text[256];
    const char *fault = amp_fork_fault(net, text);
    if (fault)
        fprintf(stderr, "amp: the loss of step %ld is not finite: %s\n", amp_fork_view(net).batch_number,
                fault);
    training.fault_told = fault != NULL;
}

void amp_training_step(float loss, float average_loss, const char *format, va_list args)
{
    char line[LINE];
    log_step(loss, average_loss);
    int length = vsnprintf(line, sizeof line, format, args);
    if (length > 0 && length < LINE && line[length - 1] == '\n') line[length - 1] = 0;
    printf("%s%s\n", line, training.ending);
    tell_fault(loss);
}

static void name_backup(char name[PATH_BYTES], const char *folder, const char *base)
{
    snprintf(name, PATH_BYTES, "%s/%s.backup", folder, base);
}

/* Whether the existing backup is of a later step than this training has reached. The user may then have
 * forgotten to pass this backup to the command, so a training that is stopped does not overwrite it. */
static int is_further(const char *backup, const struct network *net)
{
    return amp_weights_file_seen(backup) > amp_fork_counters(net).seen;
}

static void tell_further_backup(const struct network *net)
{
    char name[PATH_BYTES];
    name_backup(name, training.folder, training.base);
    if (!amp_fork_state(net) || !amp_ranks_leads() || !is_further(name, net)) return;
    fprintf(stderr, "amp: this training begins at step %ld, but %s is from a later step; to continue from "
            "that file, stop with Ctrl-C, which leaves the file unchanged, and give it to the same command\n",
            amp_fork_view(net).batch_number, name);
}

static void name_snapshot(char name[PATH_BYTES])
{
    snprintf(name, PATH_BYTES, "%s/%s_%ld.weights", training.folder, training.base,
             amp_fork_view(training.nets[0]).batch_number);
}

/* Whether this training resumed from a backup at a step for which a snapshot is also due, but the snapshot is
 * missing or older than the backup. */
static int lacks_snapshot(const char *backup, const char *snapshot)
{
    const struct network *net = training.nets[0];
    const struct amp_resume *resume = amp_fork_state(net)->resume;
    const amp_run_state *run = &resume->went_on;
    return amp_this_program()->is_detector && run->looped && !run->window
        && amp_fork_snapshot_follows_backup(amp_fork_view(net).batch_number)
        && amp_is_same_file(backup, resume->last_file)
        && (!amp_file_exists(snapshot) || amp_is_younger(backup, snapshot));
}

static void save_lost_snapshot(void)
{
    char backup[PATH_BYTES], name[PATH_BYTES];
    struct network *net = training.nets[0];
    int lost = 0;
    if (!amp_fork_state(net)) return;
    name_backup(backup, training.folder, training.base);
    name_snapshot(name);
    if (amp_ranks_leads()) lost = lacks_snapshot(backup, name);
    amp_exchange_broadcast(&lost, sizeof lost, "saving a snapshot");
    if (!lost) return;
    if (amp_ranks_leads())
        fprintf(stderr, "amp: %s, which belongs to the same step as %s, is missing because the training was "
                        "killed before it was saved; it is saved now\n", name, backup);
    amp_fork_save_weights(net, name);
}

/* Saves a backup, or a snapshot if the existing backup is of a later step. Returns whether it was saved. */
static int save_backup(char name[PATH_BYTES])
{
    struct network *net = training.nets[0];
    struct darknet_amp *amp = amp_fork_state(net);
    if (amp) amp->resume->phase = AMP_STOPPING;
    name_backup(name, training.folder, training.base);
    int further = amp && amp_ranks_leads() && is_further(name, net);
    amp_exchange_broadcast(&further, sizeof further, "saving a backup");
    if (further) name_snapshot(name);
    amp_fork_save_weights(net, name);
    fflush(stdout);
    return !amp || amp->resume->phase != AMP_UNSAVED;
}

static void stop_with_backup(void)
{
    char name[PATH_BYTES];
    if (save_backup(name) && amp_stopping_signal())
        fprintf(stderr, "amp: stopped after step %ld; to continue, give %s to the same command\n",
                amp_fork_view(training.nets[0]).batch_number, name);
}

int amp_training_takes_batch(amp_error *error)
{
    char name[PATH_BYTES];
    amp_status mine = amp_loading_fault(error);
    training.load = amp_loading_seconds();
    amp_status outcome = amp_exchange_outcome(mine, "the loading of a step's images", error);
    amp_view view = amp_fork_view(training.nets[0]);
    long step = view.batch_number;
    if (outcome == AMP_OK) {
        /* -1: this is the final step, so the next batch is needed only if this step is skipped */
        if (view.max_batches > 0 && step + 1 >= view.max_batches) amp_loading_decide(-1);
        return 0;
    }
    if (step > training.first_iteration && save_backup(name)) {
        size_t length = strlen(error->message);
        snprintf(error->message + length, sizeof error->message - length,
                 "; step %ld is saved: once this is fixed, give %s to the same command to continue", step,
                 name);
    }
    return 1;
}

int amp_training_goes_on(struct network **nets, int enough, const char *backup_folder, const char *base)
{
    amp_error error;
    double waited = amp_turns_waited();
    int is_first = !training.looped;
    /* has no effect with AMP, because the name has been locked since the program's start */
    if (is_first && amp_ranks_leads()) amp_host_check(amp_backups_hold(backup_folder, base, &error), &error);
    amp_ranks_phase("deciding what follows step %ld", amp_fork_view(nets[0]).batch_number);
    int stop = is_first ? amp_turns_ready() : amp_turns_yield("%s", training.row) || amp_stopping_agree();
    stop = stop || enough;
    training.nets = nets;
    training.folder = backup_folder;
    training.base = base;
    training.looped = 1;
    amp_training_exclude_seconds(amp_turns_waited() - waited);
    if (is_first) save_lost_snapshot();
    if (is_first) tell_further_backup(nets[0]);
    amp_loading_decide(!amp_fork_is_over(nets[0]));
    training.began = training.loaded = amp_clock_seconds();
    training.waits = 1;
    /* A training that has made all its steps ends by itself, with its final weights. */
    if (!stop || (!is_first && amp_fork_is_over(nets[0]))) return 1;
    if (!is_first) stop_with_backup();
    return 0;
}

int amp_training_end(struct network **nets)
{
    struct darknet_amp *amp = amp_fork_state(nets[0]);
    training.nets = NULL;
    amp_loading_decide(1); /* the program may train again, or load for another reason */
    amp_log_file_close(&training.log);
    amp_stopping_unwatch();
    amp_program_to_set()->ranks.over = 1;
    amp_backups_let_go();
    return amp ? amp_resume_loop_ended(amp) : 0;
}
