/* The hooks for Darknet's loader threads (Darknet's data.c) that need the fork's own types. */
#include <string.h>

#include "../../include/darknet_amp.h"
#include "../data/images.h"
#include "../data/loader_memory.h"
#include "../data/loading.h"
#include "../program/random.h"
#include "../program/ranks.h"
#include "../program/sharing.h"
#include "own.h"

/* Whether the loader calls darknet_amp_another_image after failing to read an image. */
static int takes_another(const load_args *args)
{
    return args->m > 0 && (args->type == DETECTION_DATA || args->type == CLASSIFICATION_DATA
                           || args->type == TAG_DATA || args->type == REGRESSION_DATA);
}

/* Gives a loading job its number, which selects the random streams of its parts. */
static void begin_job(load_args *args)
{
    args->job = amp_random_next_job();
    if (takes_another(args)) amp_loading_begin_job();
}

static void begin_part(load_args *args)
{
    int takes = takes_another(args);
    if (!args->job) begin_job(args); /* load_data_blocking loads in this thread, without AMP_JOB_STARTS */
    int number = args->part;
    if (takes && amp_ranks_count() > 1) {
        amp_shared_part part = amp_sharing_part(args->part);
        number = part.number;
        args->n = part.images;
    }
    if (takes && !amp_loading_is_wanted()) args->n = 0;
    amp_random_begin_job(args->job, number);
    amp_loading_begin(&(amp_loading){
        .list = takes ? args->paths : NULL, .count = takes ? args->m : 0, .classes = args->classes,
        .part = number, .boxes = args->num_boxes, .least_w = amp_fork_least_box(args->w),
        .least_h = amp_fork_least_box(args->h) });
}

/* Keeps `kept` rows of a loaded batch, starting at row `first`, and frees the others. */
static void keep_rows(matrix *m, int first, int kept)
{
    if (!m->rows) return;
    for (int i = 0; i < m->rows; i++)
        if (i < first || i >= first + kept) free(m->vals[i]);
        else m->vals[i - first] = m->vals[i];
    m->rows = kept;
}

static void end_part(load_args *args)
{
    /* Jobs that load a single image, as in `detector valid` and `map`, have no rows. */
    if (args->d) amp_images_loaded(args->d->X.vals, args->d->X.rows);
    if (takes_another(args) && amp_ranks_count() > 1) {
        amp_shared_part part = amp_sharing_part(args->part);
        keep_rows(&args->d->X, part.first, part.kept);
        keep_rows(&args->d->y, part.first, part.kept);
    }
    amp_loading_end();
}

void darknet_amp_job(struct load_args *args, enum darknet_amp_job_event event)
{
    if (event == AMP_PART_BEGINS) {
        amp_loaders_begin_part();
        begin_part(args);
    } else if (event == AMP_PART_ENDS) {
        end_part(args);
        amp_loaders_end_part();
    } else if (!args->job) {
        begin_job(args);
        if (!takes_another(args)) return;
        amp_sharing_begin_job(args->n, args->threads);
        /* *args->d still has the previous batch's rows, which the loop frees through its own copy. */
        memset(args->d, 0, sizeof *args->d);
    }
}

float amp_fork_least_box(int pixels) { return AMP_OWN_LEAST_BOX(pixels); }

int darknet_amp_read_boxes(const char *file, void *found, int *count)
{
    amp_label *labels = amp_loading_labels(file, count);
    if (!labels) return 0;
    box_label *boxes = calloc((size_t)*count + 1, sizeof *boxes);
    for (int i = 0; boxes && i < *count; i++) {
        const amp_label *l = &labels[i];
        boxes[i] = (box_label){ .id = l->class_id, .x = l->x, .y = l->y, .w = l->w, .h = l->h,
                                .left = AMP_OWN_EDGE(l->x - l->w / 2), .right = AMP_OWN_EDGE(l->x + l->w / 2),
                                .top = AMP_OWN_EDGE(l->y - l->h / 2),
                                .bottom = AMP_OWN_EDGE(l->y + l->h / 2) };
    }
    free(labels);
    if (!boxes) darknet_amp_refuse("%.700s: no memory for %d labels", file, *count);
    *(box_label **)found = boxes;
    return 1;
}
