/* Continues a training from the sidecar of the weights that were loaded. */
#include "resume.h"

#include <string.h>

#include "../../tensor/half.h"
#include "../data/backups.h"
#include "../data/image_cache.h"
#include "../data/loading.h"
#include "../program/exchange.h"
#include "../program/random.h"
#include "../program/ranks.h"
#include "ranks_join.h"

struct amp_resume *amp_resume_create(int layers)
{
    struct amp_resume *resume = amp_allocated(calloc(1, sizeof *resume));
    resume->averages = amp_allocated(calloc(3 * (size_t)layers + 1, sizeof *resume->averages));
    return resume;
}

void amp_resume_free(struct amp_resume *resume)
{
    if (!resume) return;
    free(resume->last_file);
    free(resume->file);
    free(resume->rank_states);
    free(resume->averages);
    free(resume);
}

/* ---- the run's state in a sidecar ---- */

static float shown_loss(const amp_loop *loop)
{
    return amp_is_finite(*loop->average_loss) ? *loop->average_loss : loop->last_finite;
}

static int32_t window_of(const amp_view *view, size_t seen)
{
    return (int32_t)(seen / (size_t)view->batch % (size_t)view->subdivisions);
}

/* Gives every rank the recurrent states of all ranks. This is cheap, because few layers are recurrent. */
void amp_resume_gather_states(const struct network *net)
{
    amp_error error;
    struct darknet_amp *amp = amp_fork_state(net);
    size_t count = amp_sidecar_state_count(amp->engine);
    if (!amp->comm || !count) return;
    int here = amp->united ? amp->comm->size : 1; /* number of this program's networks */
    float *states = amp_allocated(malloc((size_t)here * count * sizeof *states));
    for (int i = 0; i < here; i++) {
        const struct network *of = amp->united ? amp->united[i] : net;
        amp_fork_use_device(of);
        amp_host_check(amp_sidecar_states(amp_fork_state(of)->engine, states + (size_t)i * count, &error),
                       &error);
    }
    amp_fork_use_device(net);
    amp_exchange_join((void **)&states, &count, sizeof *states, "saving recurrent states");
    free(amp->resume->rank_states);
    amp->resume->rank_states = states;
}

amp_run_state amp_resume_run_state(struct darknet_amp *amp, const struct network *net)
{
    const amp_loop *loop = &amp->resume->loop;
    amp_view view = amp_fork_view(net);
    amp_counters counters = amp_fork_counters(net);
    amp_run_state run = {
        .seen = counters.seen, .t = counters.t, .steps = amp->steps, .skipped = amp->skipped,
        .width = view.w, .height = view.h, .batch = view.batch, .subdivisions = view.subdivisions,
        .window = window_of(&view, counters.seen), .ranks = amp->comm ? amp->comm->size : 1,
        .wire = (int32_t)amp->config->wire, .sync_batchnorm = amp->config->sync_batchnorm,
        .states = amp->resume->rank_states, .averages = amp->resume->averages,
        .average_count = amp_fork_averages(net, 1, amp->resume->averages) };
    if (!loop->average_loss) return run;
    run.looped = 1;
    run.loop_count = *loop->count;
    run.average_loss = shown_loss(loop);
    if (!darknet_amp_is_seeded() || !amp_random_save(run.random)) return run;
    run.seeded = 1;
    run.seed = darknet_amp_seed();
    run.next_job = amp_random_jobs_begun(); /* the loop has one job under way: the next step's */
    return run;
}

/* ---- resuming ---- */

#define ANEW "remove the sidecar to start with a fresh loss scale and momentum"

/* With -gpus only rank 0's network prints, because all networks would print the same. */
static int is_quiet(const struct darknet_amp *amp) { return amp->united && amp->comm->rank > 0; }

#define print_note(net, ...) (is_quiet(amp_fork_state(net)) ? 0 : fprintf(stderr, __VA_ARGS__))

/* Whether a loop with random=1 may have chosen this width or height of the input. largest: the limit of this
 * .cfg. The sidecar may also be from another .cfg, with a limit of at most LARGEST_SIZE. */
enum { LARGEST_SIZE = 4096 };
static int is_size(int32_t side, int step, int largest)
{
    return side > 0 && (side <= largest || side <= LARGEST_SIZE) && side % step == 0;
}

/* Restores what only the loop of `detector train` or `classifier train` needs. */
static amp_status restore_loop(struct network *net, const amp_run_state *run, const char *sidecar,
                               amp_error *error)
{
    amp_view view = amp_fork_view(net);
    amp_fork_state(net)->resume->went_on = *run;
    if (run->loop_count <= 0 || !view.size_step || (run->width == view.w && run->height == view.h))
        return AMP_OK;
    if (!is_size(run->width, view.size_step, view.largest_w)
        || !is_size(run->height, view.size_step, view.largest_h))
        return amp_fail(error, AMP_BAD_SIDECAR,
                        "%s: this sidecar was saved with an input of %dx%d, which random=1 never chooses; "
                        ANEW, sidecar, (int)run->width, (int)run->height);
    amp_fork_resize(net, run->width, run->height);
    return AMP_OK;
}

static int same_seed(const amp_run_state *run)
{
    return run->seeded && darknet_amp_is_seeded() && run->seed == darknet_amp_seed();
}

static amp_status restore_data_order(const amp_run_state *run, const char *sidecar, amp_error *error)
{
    if (!same_seed(run)) return AMP_OK;
    if (run->next_job == 0 || !amp_random_restore(run->random))
        return amp_fail(error, AMP_BAD_SIDECAR, "%s: this sidecar's random state is invalid; " ANEW,
                        sidecar);
    amp_random_set_next_job((unsigned long)run->next_job);
    return AMP_OK;
}

static void print_resumed(const struct network *net, const amp_run_state *run, size_t seen,
                          const char *sidecar, int in_loop)
{
    const struct darknet_amp *amp = amp_fork_state(net);
    amp_view view = amp_fork_view(net);
    print_note(net, "amp: resumed from %s: step %zu, loss scale %g, %lu skipped", sidecar,
               seen / (size_t)(view.batch * view.subdivisions), (double)amp->engine->scaler.scale,
               amp->skipped);
    if (in_loop && same_seed(run)) print_note(net, ", data order continues (-seed %u)\n", darknet_amp_seed());
    else if (in_loop && run->seeded)
        print_note(net, ", data order restarts (it was saved with -seed %u)\n", (unsigned)run->seed);
    else if (darknet_amp_is_seeded()) print_note(net, ", data order restarts (it was not saved)\n");
    else print_note(net, "\n");
}

/* A sidecar that was saved in the middle of a batch has the gradients of some of the batch's images. If `run`
 * is from the middle of a batch, checks that batch, subdivisions and the position in the batch have not
 * changed. */
static amp_status fits_batch(const amp_run_state *run, const amp_view *view, size_t seen, const char *sidecar,
                             amp_error *error)
{
    if (run->window == 0) return AMP_OK;
    if (amp_ranks_of_step() > 1)
        return amp_fail(error, AMP_BAD_SIDECAR,
                        "%s: this sidecar was saved in the middle of a batch, and several ranks cannot "
                        "continue a half-finished batch; train with one process until the next save, or "
                        ANEW, sidecar);
    int same = run->batch == view->batch && run->subdivisions == view->subdivisions;
    if (same && run->window == window_of(view, seen)) return AMP_OK;
    return amp_fail(error, AMP_BAD_SIDECAR,
                    "%s: this sidecar was saved in the middle of a batch of %d x %d images, but a batch "
                    "now has %d x %d; set batch and subdivisions back, or " ANEW, sidecar, (int)run->batch,
                    (int)run->subdivisions, view->batch, view->subdivisions);
}

/* Restores the training's state. Uses `seen` as it was loaded from the weights: a training that begins in its
 * first forward has already counted the images of this forward. */
static amp_status resume_training(struct network *net, const amp_sidecar *saved, const char *sidecar,
                                  int in_loop, amp_error *error)
{
    struct darknet_amp *amp = amp_fork_state(net);
    amp_view view = amp_fork_view(net);
    amp_counters counters = amp_fork_counters(net);
    const amp_run_state *run = amp_sidecar_run(saved);
    size_t seen = amp->resume->loaded_seen;
    char note[256] = "";
    AMP_TRY(fits_batch(run, &view, seen, sidecar, error));
    AMP_TRY(amp_sidecar_apply(saved, amp->engine, note, error));
    AMP_TRY(amp_sidecar_fit_rank(saved, amp->engine, amp->comm ? amp->comm->rank : 0,
                                    amp->comm ? amp->comm->size : 1, note, error));
    amp_average *averages = amp->resume->averages;
    AMP_TRY(amp_sidecar_fit_averages(saved, averages, amp_fork_averages(net, 0, averages), error));
    if (amp_ranks_of_step() > 1)
        amp_sidecar_fit_ranks(saved, amp->config->wire, amp->config->sync_batchnorm, note);
    AMP_TRY(amp_sidecar_fit_batch(saved, amp->engine, view.batch * view.subdivisions, note, error));
    /* t counts the updates of the sidecar's moments; it is 0 if the sidecar is from another optimizer */
    counters.t = amp_sidecar_adam(saved) == view.adam ? (int)run->t : 0;
    amp_fork_set_counters(net, counters);
    amp->steps = (unsigned long)run->steps;
    amp->skipped = (unsigned long)run->skipped;
    if (in_loop) AMP_TRY(restore_loop(net, run, sidecar, error));
    if (in_loop) AMP_TRY(restore_data_order(run, sidecar, error));
    if (note[0]) print_note(net, "amp: %s: %s\n", sidecar, note);
    print_resumed(net, run, seen, sidecar, in_loop);
    return AMP_OK;
}

/* Loads the weights again, because `begin` has changed their file by completing a killed save. */
static void load_again(struct network *net, const char *weights)
{
    /* images counted since the first load; not 0 if the training begins at its first forward */
    size_t counted = amp_fork_counters(net).seen - amp_fork_state(net)->resume->loaded_seen;
    amp_fork_load_weights(net, weights);
    amp_counters counters = amp_fork_counters(net);
    counters.seen += counted;
    amp_fork_set_counters(net, counters);
}

/* Begins a training from the weights and their sidecar. Sets *ended to 1 if a killed save was completed. Rank
 * 0 completes it, because its network begins first. */
static amp_status begin(struct network *net, const char *weights, const char *sidecar, int in_loop,
                        int *ended, amp_error *error)
{
    amp_sidecar *saved;
    char note[256];
    static const char what[] = "ending a killed save";
    int leads = amp_ranks_leads();
    /* the other ranks wait here until rank 0 has completed the killed save */
    if (!leads) amp_exchange_broadcast(ended, sizeof *ended, what);
    AMP_TRY(amp_sidecar_recover(weights, &saved, note, error));
    if (leads) *ended |= note[0] != 0;
    if (leads) amp_exchange_broadcast(ended, sizeof *ended, what);
    if (note[0]) print_note(net, "amp: %s\n", note);
    if (*ended) load_again(net, weights);
    if (!saved) {
        print_note(net, "amp: no %s: momentum and loss scale are reset\n", sidecar);
        return AMP_OK;
    }
    amp_status status = resume_training(net, saved, sidecar, in_loop, error);
    amp_sidecar_free(saved);
    return status;
}

/* Rejects weights that are inf or NaN: every step would be skipped, and the final error would blame the
 * training. */
static amp_status check_start(const struct darknet_amp *amp, amp_error *error)
{
    const amp_parameters *all = &amp->engine->parameters;
    const char *file = amp->resume->phase == AMP_LOADED ? amp->resume->last_file
                                                        : "the weights to start from";
    amp_anomaly bad;
    if (!amp_parameters_bad_master(all, &bad) && !amp_parameters_bad_statistics(all, &bad)) return AMP_OK;
    return amp_fail(error, AMP_DIVERGED,
                    "amp: %.500s: %s of layer %d are inf, NaN or beyond 1e19: no training can start from "
                    "them; use another .weights file", file, bad.tensor, bad.layer);
}

/* Prints that the training does not continue, because a layer reads another part of a file than it wrote. */
static void note_one_sided(const struct network *net)
{
    const char *weights = amp_fork_state(net)->resume->file;
    int layer = amp_fork_one_sided_layer(net);
    char *sidecar = weights && layer >= 0 ? amp_sidecar_name(weights) : NULL;
    if (sidecar && amp_name_is_taken(sidecar))
        print_note(net, "amp: %s is not read, and momentum and loss scale are reset, because layer %d does "
                        "not load the same weights from %s as it saves; to continue the saved training, "
                        "remove this layer's key dontload, dontsave, dontloadscales, numload or flipped\n",
                        sidecar, layer, weights);
    free(sidecar);
}

static void begin_training(struct network *net, int in_loop, int *ended)
{
    struct amp_resume *resume = amp_fork_state(net)->resume;
    amp_error error;
    if (resume->phase >= AMP_TRAINING) return;
    if (resume->phase == AMP_LOADED) {
        char *sidecar = amp_sidecar_name(resume->last_file);
        if (!amp_this_program()->clear)
            amp_host_check(begin(net, resume->last_file, sidecar, in_loop, ended, &error), &error);
        else if (amp_name_is_taken(sidecar))
            print_note(net, "amp: -clear: %s is not read; momentum and loss scale are reset\n", sidecar);
        free(sidecar);
    } else note_one_sided(net);
    amp_host_check(check_start(amp_fork_state(net), &error), &error);
    if (in_loop) amp_sharing_align(net); /* without a loop, `seen` already counts the first forward */
    resume->phase = AMP_TRAINING;
}

void darknet_amp_resume(struct network **nets, int count)
{
    int ended = 0, under_amp = count > 0 && amp_fork_state(nets[0]);
    if (under_amp) amp_loading_keep_faults();
    if (under_amp && count > 1) amp_ranks_unite(nets, count);
    for (int i = 0; i < count && under_amp; i++) {
        amp_fork_use_device(nets[i]);
        begin_training(nets[i], 1, &ended);
    }
    if (count > 0) amp_ranks_agree_to_train(nets[0]);
    if (amp_ranks_leads()) amp_backups_settle();
}

/* ---- the loop ---- */

void amp_resume_loop(struct darknet_amp *amp, float *average_loss, int *loop_count)
{
    struct amp_resume *resume = amp->resume;
    if (resume->went_on.looped) {
        *average_loss = resume->went_on.average_loss;
        *loop_count = resume->went_on.loop_count;
    }
    resume->loop = (amp_loop){ .average_loss = average_loss, .last_finite = *average_loss,
                               .count = loop_count };
}

int amp_resume_loop_ended(struct darknet_amp *amp)
{
    amp->resume->loop = (amp_loop){ 0 };
    amp_loading_summary();
    amp_image_cache_summary();
    return amp->resume->phase == AMP_UNSAVED; /* the reason was printed when the save failed */
}

void amp_resume_before_forward(struct darknet_amp *amp, struct network *net)
{
    amp_loop *loop = &amp->resume->loop;
    int ended = 0;
    begin_training(net, 0, &ended);
    if (loop->average_loss) *loop->average_loss = loop->last_finite = shown_loss(loop);
}
