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

/* A network that is about to be trained. */
typedef struct asked {
    amp_training training; /* its plan is the engine's own, or `outline`, which this file owns */
    amp_plan *outline;
    int roughly;
    amp_view view;
    int images;            /* per step */
    size_t there;          /* the most memory that the training may take; 0: unknown */
    const char *what;      /* the kind of memory, for messages: "RAM" */
} asked;

/* Makes the plan: the engine's own, which the training then runs, or an outline. On a GPU always an outline:
 * building a plan there times kernels, which takes memory itself. The caller calls forget, also after an
 * error. */
static amp_status make_plan(struct network *net, int roughly, asked *a, amp_error *error)
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

/* A machine's free memory is divided among its ranks, which all need the same. So they must look before any
 * rank allocates more than the others. */
static void wait_for_others(void)
{
    amp_error none;
    amp_exchange_outcome(AMP_OK, "asking whether the training fits into memory", &none);
}

/* Adds up the training's needs, and finds the most that it may take: the free memory plus the part of `needs`
 * that the program already holds. For RAM that part is the resident memory. For an address space or a GPU it
 * is calculated: the parameters, the input of a pass and, once there was a plan, the program with the memory
 * of the backend's library. Gradients count as allocated, although the first plan allocates them. */
static amp_status measure(asked *a, amp_needs *needs, amp_error *error)
{
    int *has_planned = &amp_program_to_set()->has_planned;
    AMP_TRY(amp_host_needs(&a->training, a->view.batch / amp_time_steps(&a->view), needs, error));
    wait_for_others();
    amp_available_memory memory = amp_host_available_memory();
    wait_for_others();
    size_t has = memory.resident ? memory.resident : needs->parameters + needs->pass.input;
    if (!memory.resident && (!a->roughly || *has_planned)) has += needs->program - a->training.pictures;
    a->there = memory.all ? memory.bytes + has : 0;
    a->what = memory.what;
    *has_planned |= !a->roughly;
    return AMP_OK;
}

/* The part of `there` bytes that everything else leaves for activations, for the network's current input
 * size. */
static size_t arena_budget(const amp_needs *needs, size_t there)
{
    size_t beside = amp_needs_sum(needs) - needs->pass.arena;
    return there > beside ? (size_t)((double)(there - beside) / needs->area) : 0;
}

/* Fails, and names the fewest subdivisions with which it fits. */
static amp_status fail_too_little(const asked *a, size_t takes, amp_error *error)
{
    char fits[160] = "no number of subdivisions is enough: use a smaller width and height or batch, "
                     "random=0, or, if it is not set, checkpoint=auto in [amp]";
    for (int s = a->view.subdivisions + 1; s <= a->images; s++) {
        amp_needs fewer;
        if (a->images % s) continue;
        AMP_TRY(amp_host_needs(&a->training, a->images / s, &fewer, error));
        size_t bytes = amp_needs_sum(&fewer);
        if (bytes > a->there) continue;
        snprintf(fits, sizeof fits, "these fit: subdivisions=%d (%.0f MiB)", s, amp_mib(bytes));
        break;
    }
    return amp_fail(error, AMP_NO_MEMORY, "amp: not enough memory: this training needs %.0f MiB, but there "
                                          "are %.0f MiB of %s; %s", amp_mib(takes), amp_mib(a->there),
                                          a->what, fits);
}

/* RAM for decoded images (cache=ram): what the training leaves of nine tenths of this rank's part. On a GPU a
 * training takes little more RAM than it has now, except for the images of two batches and those being
 * decoded. */
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
    if (a->roughly && !a->view.on_gpu) needs.copies = 0; /* an outline knows only the upper limit */
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
    amp_status status = make_plan(net, roughly, &a, error);
    if (status == AMP_OK) status = ask(&a, error);
    forget(&a);
    return status;
}

/* The settings for checkpoint=N (N segments); for off all are 0, and auto sets the rest itself. */
static amp_recompute_settings settings_of(const amp_config *config)
{
    int segments = config->checkpoint > 0 ? config->checkpoint : 0;
    return (amp_recompute_settings){ .on = segments > 0, .segments = segments };
}

/* checkpoint=auto may give the activations what everything else leaves of memory=, or of the available
 * memory. */
amp_status amp_host_choose_recompute(struct network *net, amp_error *error)
{
    struct darknet_amp *amp = amp_fork_state(net);
    size_t memory = (size_t)amp->config->memory;
    amp_recompute_settings settings = settings_of(amp->config);
    amp_status status = AMP_OK;
    if (amp->config->checkpoint == AMP_CHECKPOINT_AUTO) {
        asked a;
        amp_needs needs;
        /* A network that may only predict gets no training plan: that would allocate gradients, and prevent
         * folding from then on. */
        status = make_plan(net, !amp_this_program()->trains, &a, error);
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

/* The choice for a training. In bytes. */
typedef struct amp_fitting {
    int subdivisions;
    double again;        /* what checkpoint=auto repeats, as a share of a forward's arithmetic; 0: nothing */
    size_t limit;        /* the limit that the choice was made for, which checkpoint=auto must keep; 0:
                            unknown */
    size_t needs, given; /* memory of the training with this choice, and as the .cfg has it */
    size_t there;        /* the most that it may take; 0: unknown */
} amp_fitting;

/* The fixed cost of a pass, in operations per weight: reading it for forward and backward, and adding to its
 * gradient, takes the time of about this many operations. Measured on a CPU: yolov3-tiny, 416, bf16, takes 5
 * % longer for 16 images in 16 passes than in one pass, which is 120. */
static const double pass_cost = 150;

/* A step's operations: forward, twice as many for backward, what backward repeats, and the fixed cost of
 * passes. */
static double cost_of(const asked *a, int subdivisions, double again)
{
    const amp_parameters *all = &amp_fork_state(a->training.net)->engine->parameters;
    double forward = amp_recompute_cost_of(a->training.plan).forward * a->images, weights = 0;
    for (int i = 0; i < all->param_count; i++) weights += (double)all->params[i].count;
    return forward * (3 + again) + pass_cost * weights * subdivisions;
}

/* The needs of a step in this many passes; with checkpoint=auto under `limit`, if that may be chosen. */
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

/* The cheapest choice that fits into `limit`. 0: none does. */
static amp_status choose_under(const asked *a, int least, size_t limit, amp_fitting *out, amp_error *error)
{
    double cheapest = 0;
    out->subdivisions = 0;
    for (int s = least; s <= a->images; s++) {
        amp_needs needs;
        if (a->images % s || s % amp_ranks_of_step()) continue; /* a pass has images of only one rank */
        AMP_TRY(needs_in(a, s, limit, &needs, error));
        double cost = cost_of(a, s, needs.pass.again);
        if (amp_needs_sum(&needs) > limit || (out->subdivisions && cost >= cheapest)) continue;
        cheapest = cost;
        out->subdivisions = s;
        out->again = needs.pass.again;
        out->needs = amp_needs_sum(&needs);
        if (out->again == 0) return AMP_OK; /* more passes would only cost more */
    }
    return AMP_OK;
}

/* How much less RAM may be left when the training makes its own network: what the library and the heap keep
 * from this one. Up to 18 MiB were seen. */
enum { USED = 20 << 20 };

/* The plan is for one image. If nothing is sure to fit, chooses what takes the least memory: the training's
 * own network will show whether it fits. */
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
    /* Leaves a tenth free if possible: ask warns if less is free. */
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

/* For a network made with one image per pass, before its first pass. least: the fewest subdivisions.
 * *what: the kind of memory, "RAM". AMP_NO_MEMORY: nothing fits. All ranks call it, and get rank 0's
 * choice. */
static amp_status choose_fit(struct network *net, int least, amp_fitting *out, const char **what,
                             amp_error *error)
{
    asked a = { .training.net = net };
    amp_status status = amp_host_check_fits(net, 1, error);
    if (status == AMP_OK) status = make_plan(net, 0, &a, error);
    if (status == AMP_OK) status = choose_of(&a, least, out, error);
    forget(&a);
    AMP_TRY(amp_exchange_outcome(status, "choosing what fits", error));
    amp_exchange_broadcast(out, sizeof *out, "what fits");
    *what = a.what;
    return AMP_OK;
}

/* images: per step; given: the .cfg's subdivisions. */
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
        fprintf(stderr, "amp: -fit: subdivisions=%d in [net] instead of %d: a pass, and so each batch "
                        "norm, then has %d images instead of %d\n", c->subdivisions, given, images / c->subdivisions,
                images / given);
    if (c->again > 0)
        fprintf(stderr, "amp: -fit: checkpoint=auto in [amp]: %.1f %% of a forward's arithmetic is repeated, "
                        "with the same results\n", 100 * c->again);
}

static void choose(amp_program *program, const char *cfg_file)
{
    amp_error error;
    cfg_document *cfg;
    const char *what = "";
    unsigned char generator[AMP_HOST_RANDOM_BYTES];
    amp_fitting choice;
    amp_host_check(amp_cfg_document(cfg_file, &cfg, &error), &error);
    int images = (int)cfg_net_number(cfg, "batch", 1);
    int cut = (int)amp_sharing_cut(amp_ranks_of_step(), (int)cfg_net_number(cfg, "subdivisions", 1));
    amp_document_give_back(cfg);
    if (images % cut) return; /* an error, which is reported when the network is made */
    fprintf(stderr, "amp: -fit: the network is made twice, first to find out what fits\n");
    /* Large blocks, also those of the network that is trained, are returned to the system when freed: by
     * default the C library learns from the first freed one to keep them. */
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
