/* The line about a spike: see spikes.h. */
#include "spikes.h"

#include <string.h>

#include "../data/images.h"
#include "../program/exchange.h"
#include "../program/ranks.h"
#include "ranks_join.h"
#include "resume.h"
#include "state.h"

/* ---- the images of a step ---- */

void amp_spikes_begin_pass(struct darknet_amp *amp)
{
    amp_image_losses *l = &amp->image_losses;
    int batch = amp_fork_view(amp->net).batch;
    if (!(amp->config->spike_factor > 0)) return;
    if (batch > l->room) {
        free(l->pass);
        l->pass = amp_allocated(malloc((size_t)batch * sizeof *l->pass));
        l->room = batch;
    }
    memset(l->pass, 0, (size_t)batch * sizeof *l->pass);
}

/* Inserts an image into the sorted list; a full list drops the image with the smallest loss. Takes ownership
 * of path. */
static void keep_largest(amp_image_losses *l, double loss, char *path)
{
    int at = l->count < AMP_IMAGES_NAMED ? l->count++ : AMP_IMAGES_NAMED;
    char *dropped = at == AMP_IMAGES_NAMED ? l->largest[at - 1].path : NULL;
    for (at -= at == AMP_IMAGES_NAMED; at > 0 && l->largest[at - 1].loss < loss; at--)
        l->largest[at] = l->largest[at - 1];
    l->largest[at] = (amp_named_image){ loss, path };
    free(dropped);
}

static int is_among_largest(const amp_image_losses *l, double loss)
{
    return l->count < AMP_IMAGES_NAMED || loss > l->largest[l->count - 1].loss;
}

void amp_spikes_end_pass(struct darknet_amp *amp)
{
    amp_image_losses *l = &amp->image_losses;
    amp_view view = amp_fork_view(amp->net);
    const amp_plan *plan = amp->engine->active;
    for (int i = 0; l->pass && plan->loss_count && i < view.batch; i++) {
        double loss = l->pass[i] / plan->loss_count;
        l->images++;
        if (is_among_largest(l, loss)) keep_largest(l, loss, amp_images_path(view.images, view.batch, i));
    }
}

void amp_spikes_end_step(struct darknet_amp *amp)
{
    amp_image_losses *l = &amp->image_losses;
    while (l->count) free(l->largest[--l->count].path);
    l->images = 0;
}

void amp_spikes_free(struct darknet_amp *amp)
{
    amp_spikes_end_step(amp);
    free(amp->image_losses.pass);
}

/* ---- the line ---- */

/* What a rank sends to the others about its images. The beginning of a long path is cut off. */
typedef struct told_images {
    size_t images;
    int count;
    double loss[AMP_IMAGES_NAMED];
    char path[AMP_IMAGES_NAMED][512];
} told_images;

static void tell(const amp_image_losses *l, told_images *told)
{
    memset(told, 0, sizeof *told);
    told->images = l->images;
    told->count = l->count;
    for (int i = 0; i < l->count; i++) {
        const char *path = l->largest[i].path ? l->largest[i].path : "";
        size_t length = strlen(path), room = sizeof told->path[i] - 1;
        told->loss[i] = l->largest[i].loss;
        strcpy(told->path[i], path + (length > room ? length - room : 0));
    }
}

/* Merges the lists of all ranks. The result is the same on every rank. */
static void join_ranks(struct darknet_amp *amp)
{
    amp_image_losses *l = &amp->image_losses;
    told_images mine;
    if (!amp->comm) return;
    tell(l, &mine);
    amp_ranks_phase("the images of a spike");
    told_images *all = amp_exchange_gather(amp->comm, &mine, sizeof mine);
    amp_spikes_end_step(amp);
    for (int rank = 0; rank < amp->comm->size; rank++) {
        l->images += all[rank].images;
        for (int i = 0; i < all[rank].count; i++)
            if (is_among_largest(l, all[rank].loss[i]))
                keep_largest(l, all[rank].loss[i],
                             all[rank].path[i][0] ? amp_allocated(strdup(all[rank].path[i])) : NULL);
    }
    free(all);
}

static void print_images(const amp_image_losses *l)
{
    int known = 0;
    for (int i = 0; i < l->count; i++) known += l->largest[i].path != NULL;
    if (!known) {
        fprintf(stderr, "the image files are not known\n");
        return;
    }
    fprintf(stderr, "images, largest loss first: ");
    for (int i = 0; i < l->count; i++)
        fprintf(stderr, "%s%s (%.4g)", i ? ", " : "",
                l->largest[i].path ? l->largest[i].path : "an unknown file", l->largest[i].loss);
    if (l->images > (size_t)l->count) fprintf(stderr, " and %zu more", l->images - (size_t)l->count);
    fprintf(stderr, "\n");
}

/* Ends the training if it drops more steps than outliers can explain. */
static void check_dropped(struct darknet_amp *amp)
{
    const amp_spikes *spikes = &amp->engine->spikes;
    const char *saved = amp->resume->last_file;
    if (!amp_spikes_too_many(spikes)) return;
    if (!amp_ranks_prints_for(amp)) amp_ranks_await_end(); /* rank 0 knows the latest saved file */
    darknet_amp_refuse("amp: spike=skip has dropped %llu of %llu steps, more than 1 %%: too many to be "
                       "outliers; last saved: %s%s; try a lower learning_rate, clip_norm, a larger "
                       "spike_factor, or spike=log", (unsigned long long)spikes->dropped,
                       (unsigned long long)(spikes->norms.seen + spikes->dropped),
                       saved ? saved : "none yet", saved && !amp_file_exists(saved) ? ", which is gone" : "");
}

void amp_spikes_report(struct darknet_amp *amp, const amp_step_report *report, size_t good_steps)
{
    const amp_spike *s = &report->spike;
    if (!s->found) return;
    join_ranks(amp);
    if (amp_ranks_prints_for(amp)) {
        fflush(stdout);
        fprintf(stderr, "amp: spike: step %zu%s: %s %.4g is %.3g times the median of recent steps, %.4g "
                "(spike_factor=%g); ", good_steps + 1, s->dropped ? " is dropped" : "",
                s->by_loss ? "loss" : "gradient norm", s->value, s->value / s->median, s->median,
                amp->config->spike_factor);
        print_images(&amp->image_losses);
    }
    check_dropped(amp);
}
