/* See fits.h. */
#include "fits.h"

#include <malloc.h>

#include "../data/data_check.h"
#include "../fork_commands.h"
#include "../program/cfg.h"
#include "../program/exchange.h"
#include "../program/memory.h"
#include "../program/random.h"
#include "../program/ranks.h"
#include "../program/sharing.h"
#include "state.h"

amp_status amp_host_largest_pass(const amp_training *t, size_t there, int most, int stock, int *largest,
                                 amp_error *error)
{
    int low = 0, high = most + 1;
    *largest = -1;
    if (!there) return AMP_OK;
    while (high - low > 1) {
        amp_needs needs;
        int images = low + (high - low) / 2;
        if (high > most && low < high / 2) images = low ? 2 * low : 1;
        if (!stock) AMP_TRY(amp_host_needs(t, images, &needs, error));
        *((stock ? amp_host_stock_needs(t, images) : amp_needs_sum(&needs)) <= there ? &low : &high) = images;
    }
    *largest = low;
    return AMP_OK;
}

/* Facts about a network that is about to be trained. */
typedef struct asked {
    amp_training training; /* training.plan is a plan of the engine, or `outline` */
    amp_plan *outline;     /* owned by this struct; may be NULL */
    int roughly;           /* the argument of amp_host_check_fits */
    amp_view view;
    int images;            /* number of images per step */
    size_t there;          /* the maximum memory in bytes that the training may take; 0: unknown */
    const char *what;      /* the kind of memory, for messages: "RAM" */
} asked;

/* Fills *a. a->training.plan is an outline if `roughly` is set, otherwise the engine's plan for a training
 * pass. On a GPU it is always an outline, because building a plan there times kernels, which takes memory.
 * Call `forget` afterwards, even after an error. */
static amp_status plan_to_measure(struct network *net, int roughly, asked *a, amp_error *error)
{
    amp_view v = amp_fork_view(net);
    int images = v.batch / amp_time_steps(&v) * v.subdivisions;
    *a = (asked){ .roughly = roughly, .view = v, .images = images,
                  .training = { .net = net, .dtype = amp_fork_state(net)->config->dtype,
                                .images = images / amp_ranks_count() } };
    if (!v.on_gpu) a->training.pictures = amp_checked_picture_bytes(images, (size_t)v.inputs);
    if (!roughly && !v.on_gpu) return amp_host_training_plan(net, &a->training.plan, error);
    AMP_TRY(amp_host_outline(net, v.batch, a->training.dtype, NULL, &a->outline, error));
    a->training.plan = a->outline;
    return AMP_OK;
}

static void forget(asked *a)
{
    if (a->outline) amp_plan_free(a->outline, amp_fork_state(a->training.net)->engine->backend);
}

/* Ranks get equal parts of a machine's free memory, so all must measure it before any of them allocates. */
static void wait_for_others(void)
{
    amp_error none;
    amp_exchange_outcome(AMP_OK, "asking whether the training fits into memory", &none);
}

/* Computes *needs, and sets a->there to the free memory plus what the program already holds. If the limit is
 * on RAM, the program holds its resident memory. If the limit is on an address space or a GPU, the program
 * holds the parameters, the input of a pass and, once a plan was made, needs->program. The parameters include
 * gradients, although gradients are allocated only with the first plan. */
static amp_status measure(asked *a, amp_needs *needs, amp_error *error)
{
    int *has_planned = &amp_program_to_set()->has_planned;
    AMP_TRY(amp_host_needs(&a->training, a->view.batch / amp_time_steps(&a->view), needs, error));
    wait_for_others();
    amp_available_memory memory = amp_host_available_memory();
    wait_for_others();
    size_t has = memory.resident ? memory.resident : needs->parameters + needs->pass.input;
    if (!memory.resident && (!a->roughly || *has_planned)) has += needs->program;
    a->there = memory.all ? memory.bytes + has : 0;
    a->what = memory.what;
    *has_planned |= !a->roughly;
    return AMP_OK;
}

/* Returns the bytes for activations: `there` minus all other needs. The needs are for the largest input, so
 * the result is scaled down to the current input. */
static size_t arena_budget(const amp_needs *needs, size_t there)
{
    size_t beside = amp_needs_sum(needs) - needs->pass.arena;
    return there > beside ? (size_t)((double)(there - beside) / needs->area) : 0;
}

/* Returns an error that names the smallest number of subdivisions with which the training fits. */
static amp_status fail_too_little(const asked *a, size_t takes, amp_error *error)
{
    char fits[160] = AMP_NOTHING_FITS;
    for (int s = a->view.subdivisions + 1; s <= a->images; s++) {
        amp_needs fewer;
        if (a->images % s) continue;
        AMP_TRY(amp_host_needs(&a->training, a->images / s, &fewer, error));
        size_t bytes = amp_needs_sum(&fewer);
        if (bytes > a->there) continue;
        snprintf(fits, sizeof fits, "subdivisions=%d fits (%.0f MiB)", s, amp_mib(bytes));
        break;
    }
    return amp_fail(error, AMP_NO_MEMORY, "amp: not enough memory: this training needs %.0f MiB, but there "
                                          "are %.0f MiB of %s; %s", amp_mib(takes), amp_mib(a->there),
                                          a->what, fits);
}

/* Returns the RAM left for decoded images (cache=ram): 90 % of this rank's RAM, minus the training's needs. A
 * training on a GPU needs RAM only for the images of two batches and those being decoded. */
static size_t left_of_ram(const asked *a, const amp_needs *needs)
{
    size_t there = a->there, takes = amp_needs_sum(needs);
    if (a->view.on_gpu) {
        there = amp_host_available_ram().bytes;
        takes = (size_t)(2. * a->images * a->view.inputs * sizeof(float) * needs->area)
              + amp_checked_picture_bytes(a->images, (size_t)a->view.inputs);
    }
    there = there / 10 * 9;
    return there > takes ? there - takes : 0;
}

static amp_status ask(asked *a, amp_error *error)
{
    int chooses = a->roughly && amp_fork_state(a->training.net)->config->checkpoint == AMP_CHECKPOINT_AUTO;
    amp_needs needs;
    AMP_TRY(measure(a, &needs, error));
    if (chooses) needs.pass.arena = 0;
    if (a->roughly && !a->view.on_gpu) needs.copies = 0; /* an outline gives only an upper limit for copies */
    size_t takes = amp_needs_sum(&needs);
    if (a->there && takes > a->there) return fail_too_little(a, takes, error);
    if (a->roughly) return AMP_OK;
    if (a->there && (double)takes > .9 * (double)a->there)
        fprintf(stderr, "amp: warning: this training needs %.0f MiB, but there are %.0f MiB of %s; if it is "
                "killed, use more subdivisions\n", amp_mib(takes), amp_mib(a->there), a->what);
    return amp_check_cache(a->training.net, left_of_ram(a, &needs), error);
}

amp_status amp_host_check_fits(struct network *net, int roughly, amp_error *error)
{
    asked a;
    amp_status status = plan_to_measure(net, roughly, &a, error);
    if (status == AMP_OK) status = ask(&a, error);
    forget(&a);
    return status;
}

/* Returns the settings for checkpoint=N (N segments). All are 0 for `off` and for `auto`; for `auto`, the
 * caller sets them. */
static amp_recompute_settings settings_of(const amp_config *config)
{
    int segments = config->checkpoint > 0 ? config->checkpoint : 0;
    return (amp_recompute_settings){ .on = segments > 0, .segments = segments };
}

amp_status amp_host_choose_recompute(struct network *net, amp_error *error)
{
    struct darknet_amp *amp = amp_fork_state(net);
    size_t memory = (size_t)amp->config->memory;
    amp_recompute_settings settings = settings_of(amp->config);
    amp_status status = AMP_OK;
    if (amp->config->checkpoint == AMP_CHECKPOINT_AUTO) {
        asked a;
        amp_needs needs;
        /* without a training, an outline: a plan would allocate gradients and prevent folding batch norm */
        status = plan_to_measure(net, !amp_this_program()->trains, &a, error);
        if (status == AMP_OK) status = measure(&a, &needs, error);
        if (status == AMP_OK) settings.budget = arena_budget(&needs, memory ? memory : a.there);
        settings.on = 1;
        forget(&a);
        amp_engine_free_plans(amp->engine);
    }
    if (status == AMP_OK) amp->engine->settings.recompute = settings;
    return status;
}

/* ---- -fit ---- */

/* The choice of -fit for a training. Memory is in bytes. */
typedef struct amp_fitting {
    int subdivisions;
    double again;        /* operations that checkpoint=auto repeats, divided by those of a forward; 0: none */
    size_t limit;        /* the memory limit of this choice, for checkpoint=auto; 0: unknown */
    size_t needs, given; /* memory that the training needs with this choice; with the .cfg's own settings */
    size_t there;        /* the most memory that the training may take; 0: unknown */
} amp_fitting;

/* The fixed cost of a pass, in operations per weight: a pass reads each weight in forward and in backward,
 * and adds to its gradient. (Measured on a CPU: with yolov3-tiny, 416, bf16, a step of 16 images takes 5 %
 * longer in 16 passes than in one pass. This corresponds to 120 operations per weight.) */
static const double pass_cost = 150;

/* Returns the cost of a step in operations: forward, backward (twice as much as forward), and the fixed cost
 * of each pass. again: the operations that checkpointing repeats. */
static double cost_of(const asked *a, int subdivisions, double again)
{
    const amp_parameters *all = &amp_fork_state(a->training.net)->engine->parameters;
    double forward = amp_recompute_cost_of(a->training.plan).forward * a->images, weights = 0;
    for (int i = 0; i < all->param_count; i++) weights += (double)all->params[i].count;
    return forward * (3 + again) + pass_cost * weights * subdivisions;
}

/* Computes the needs of a step in `subdivisions` passes. If they exceed `limit` and the .cfg does not set
 * checkpoint=N, computes them with checkpoint=auto under this limit. limit=0: no limit. */
static amp_status needs_in(const asked *a, int subdivisions, size_t limit, amp_needs *needs,
                           amp_error *error)
{
    struct darknet_amp *amp = amp_fork_state(a->training.net);
    int pass = a->images / subdivisions;
    amp_recompute_settings settings = settings_of(amp->config);
    amp->engine->settings.recompute = settings;
    AMP_TRY(amp_host_needs(&a->training, pass, needs, error));
    if (settings.on || !limit || amp_needs_sum(needs) <= limit) return AMP_OK;
    settings = (amp_recompute_settings){ .on = 1, .budget = arena_budget(needs, limit) };
    if (!settings.budget) settings.budget = 1;
    amp->engine->settings.recompute = settings;
    return amp_host_needs(&a->training, pass, needs, error);
}

/* Sets *out to the cheapest choice that fits into `limit`; out->subdivisions is 0 if none fits. */
static amp_status choose_under(const asked *a, int least, size_t limit, amp_fitting *out, amp_error *error)
{
    double cheapest = 0;
    out->subdivisions = 0;
    for (int s = least; s <= a->images; s++) {
        amp_needs needs;
        if (a->images % s || s % amp_ranks_of_step()) continue; /* each pass is made by one rank */
        AMP_TRY(needs_in(a, s, limit, &needs, error));
        double cost = cost_of(a, s, needs.pass.again);
        if (amp_needs_sum(&needs) > limit || (out->subdivisions && cost >= cheapest)) continue;
        cheapest = cost;
        out->subdivisions = s;
        out->again = needs.pass.again;
        out->needs = amp_needs_sum(&needs);
        if (out->again == 0) return AMP_OK; /* without recomputing, more passes only cost more */
    }
    return AMP_OK;
}

/* Bytes that the library and the heap keep after -fit's trial network is freed (up to 18 MiB measured). */
enum { USED = 20 << 20 };

/* Chooses with a plan for one image per pass. If no choice is certain to fit, takes the one that needs the
 * least memory; the check of the training's own network will show whether it fits. */
static amp_status choose_of(asked *a, int least, amp_fitting *out, amp_error *error)
{
    amp_needs needs;
    size_t memory = (size_t)amp_fork_state(a->training.net)->config->memory;
    AMP_TRY(measure(a, &needs, error));
    size_t certain = a->there > USED && !a->view.on_gpu ? a->there - USED : a->there;
    if (memory && (!a->there || memory < certain)) a->there = certain = memory;
    AMP_TRY(needs_in(a, least, 0, &needs, error));
    *out = (amp_fitting){ .subdivisions = least, .given = amp_needs_sum(&needs), .there = a->there };
    if (!a->there) return AMP_OK;
    /* leave a tenth free if possible, because `ask` warns if less is free */
    AMP_TRY(choose_under(a, least, out->limit = certain / 10 * 9, out, error));
    if (!out->subdivisions) AMP_TRY(choose_under(a, least, out->limit = certain, out, error));
    if (out->subdivisions) return AMP_OK;
    AMP_TRY(needs_in(a, a->images, 1, &needs, error));
    out->limit = a->there;
    out->subdivisions = a->images;
    out->again = needs.pass.again;
    out->needs = amp_needs_sum(&needs);
    return AMP_OK;
}

/* Chooses the settings. net must have one image per pass and must not have run yet. Collective: all ranks
 * get rank 0's choice. least: the fewest subdivisions. *what: the kind of memory. AMP_NO_MEMORY: no choice
 * fits. */
static amp_status choose_fit(struct network *net, int least, amp_fitting *out, const char **what,
                             amp_error *error)
{
    asked a = { .training.net = net };
    amp_status status = amp_host_check_fits(net, 1, error);
    if (status == AMP_OK) status = plan_to_measure(net, 0, &a, error);
    if (status == AMP_OK) status = choose_of(&a, least, out, error);
    forget(&a);
    AMP_TRY(amp_exchange_outcome(status, "choosing what fits", error));
    amp_exchange_broadcast(out, sizeof *out, "sharing what fits");
    *what = a.what;
    return AMP_OK;
}

/* images: number of images per step; given: the .cfg's subdivisions. */
static void print_choice(const amp_fitting *c, int images, int given, const char *what)
{
    if (!c->there) {
        fprintf(stderr, "amp: -fit: the amount of memory is unknown: nothing is changed\n");
        return;
    }
    if (c->subdivisions == given && c->again == 0) {
        fprintf(stderr, "amp: -fit: the training fits with the .cfg's settings: it needs %.0f MiB, and there "
                "are %.0f MiB of %s\n", amp_mib(c->needs), amp_mib(c->there), what);
        return;
    }
    fprintf(stderr, "amp: -fit: with the .cfg's settings the training needs %.0f MiB, but there are %.0f "
                    "MiB of %s; it needs only %.0f MiB with:\n", amp_mib(c->given), amp_mib(c->there), what,
                    amp_mib(c->needs));
    if (c->subdivisions != given)
        fprintf(stderr, "amp: -fit: subdivisions=%d in [net] instead of %d (a pass, and each batch norm, "
                        "has %d images instead of %d)\n", c->subdivisions, given,
                images / c->subdivisions, images / given);
    if (c->again > 0)
        fprintf(stderr, "amp: -fit: checkpoint=auto in [amp] (repeats %.1f %% of a forward's arithmetic, and "
                        "does not change the results)\n", 100 * c->again);
}

static void choose(amp_program *program, const char *cfg_file)
{
    amp_error error;
    cfg_document *cfg;
    const char *what = "";
    unsigned char generator[AMP_HOST_RANDOM_BYTES];
    amp_fitting choice;
    amp_host_check(amp_cfg_document(cfg_file, &cfg, &error), &error);
    int batch = (int)cfg_net_number(cfg, "batch", 1), given = (int)cfg_net_number(cfg, "subdivisions", 1);
    amp_document_give_back(cfg);
    int images = batch / given * given; /* images of a step: Darknet rounds the images of a pass down */
    int cut = (int)amp_sharing_cut(amp_ranks_of_step(), given);
    if (!images || images % cut) return; /* the error is reported when the training's network is made */
    fprintf(stderr, "amp: -fit: the network is made twice, first to find out what fits\n");
    /* Without this, the C library would return no more large blocks to the system once it has freed one. */
    mallopt(M_MMAP_THRESHOLD, 128 << 10);
    program->chosen.subdivisions = images;
    program->chosen.recompute = 1;
    int saved = amp_random_save(generator); /* the training must draw the same numbers as without -fit */
    struct network *net = amp_fork_make_network(cfg_file, cfg_file, 0);
    amp_host_check(choose_fit(net, cut, &choice, &what, &error), &error);
    amp_fork_free_network(net);
    malloc_trim(0);
    if (saved) amp_random_restore(generator);
    program->chosen.subdivisions = choice.there ? choice.subdivisions : 0;
    program->chosen.recompute = choice.again > 0;
    program->chosen.memory = choice.limit;
    print_choice(&choice, images, cut, what);
}

void amp_fitting_choose(const char *cfg_file)
{
    amp_program *program = amp_program_to_set();
    if (program->fit != AMP_FIT_ASKED || !program->trains) return;
    program->fit = AMP_FIT_LOOKS;
    choose(program, cfg_file);
    program->fit = AMP_FIT_CHOSEN;
}
