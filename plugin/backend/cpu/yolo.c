/* Yolo's loss, one row of cells at a time. The row is widened to fp32, its delta is computed in fp32, and the
 * delta is rounded when it is stored in dx.
 *
 * Most boxes have no label, and no deltas for the classes. Each row has its own sums, which are added in
 * order, so that the number of threads does not change the result. */
#include <math.h>
#include <string.h>

#include "../../tensor/half.h"
#include "../check.h"
#include "../yolo_rules.h"
#include "blocks.h"
#include "kernels.h"

/* The arguments of one call, and two tables: the boxes assigned to each label, and each image's number of
 * labels. */
typedef struct head {
    const amp_cpu_rows *rows;
    const amp_yolo_desc *d;
    const amp_tensor *x, *dx; /* dx may be NULL */
    const float *labels;
    float scale;
    int accumulate;
    amp_yolo_own *own;
    int *counts;
} head;

static void find_own_boxes(const head *g, int image)
{
    const float *label = g->labels + (size_t)image * (size_t)g->d->truths;
    amp_yolo_own *own = g->own + (size_t)image * (size_t)g->d->max_boxes;
    int count = 0;
    for (; count < g->d->max_boxes && *label != 0; count++, label += g->d->label_size)
        own[count] = amp_yolo_own_boxes(g->d, g->x->shape.w, g->x->shape.h, label);
    g->counts[image] = count;
}

static amp_yolo_labels labels_of(const head *g, int image)
{
    if (!g->labels) return (amp_yolo_labels){ NULL, NULL, 0, 0 };
    return (amp_yolo_labels){ g->labels + (size_t)image * (size_t)g->d->truths,
                              g->own + (size_t)image * (size_t)g->d->max_boxes, g->counts[image],
                              g->d->label_size };
}

/* ---- one box ---- */

/* The squashed number of class c, for the box whose numbers are at x; 0 if c is -1. */
static float class_number(const amp_yolo_desc *d, const float *x, int c)
{
    return c < 0 ? 0 : amp_yolo_squash(d, x[AMP_YOLO_BOX + c], AMP_YOLO_BOX + c);
}

static int is_sure(const amp_yolo_desc *d, const float *x)
{
    for (int c = 0; c < d->classes; c++) if (class_number(d, x, c) > AMP_YOLO_SURE) return 1;
    return 0;
}

/* Computes the delta of box `box`, and adds to the sums. x: the box's numbers. delta: zeros on entry. */
static void one_box(const amp_yolo_desc *d, amp_yolo_labels l, int w, int h, int box, const float *x,
                    float *delta, amp_yolo_result *sums)
{
    float squashed[AMP_YOLO_BOX];
    amp_yolo_place place = amp_yolo_place_of(d, w, h, box);
    amp_yolo_target t;
    for (int e = 0; e < AMP_YOLO_BOX; e++) squashed[e] = amp_yolo_squash(d, x[e], e);
    amp_yolo_box predicted = amp_yolo_predicted(d, place, squashed);
    amp_yolo_search s = amp_yolo_look_at_labels(d, l, place, predicted, 0, 1);
    amp_yolo_begin(&t, d, squashed, s.best, s.label, !amp_yolo_asks_classes(d, s.best) || is_sure(d, x));
    sums->any_object += (double)squashed[4];
    int all = l.count, from_iou = s.best > d->truth_thresh;
    for (int i = from_iou ? AMP_YOLO_FROM_IOU : 0; (s.has_own || from_iou) && i < all; i++) {
        const float *label = amp_yolo_label(l, i < 0 ? s.label : i);
        if (i >= 0 && !amp_yolo_owns(l, i, place)) continue;
        l.count = i < 0 ? 0 : i;
        amp_yolo_apply(&t, d, l, place, squashed, predicted,
                       class_number(d, x, amp_yolo_deciding_class(d, label)), i);
        if (i >= 0)
            amp_yolo_count(sums, d, predicted, label, squashed[4],
                           class_number(d, x, amp_yolo_class(d, label)));
    }
    int positive = 0, written = t.since == AMP_YOLO_NO_LABEL ? AMP_YOLO_BOX : AMP_YOLO_BOX + d->classes;
    l.count = all;
    for (int e = AMP_YOLO_BOX; e < written; e++) {
        delta[e] = amp_yolo_class_delta(&t, d, l, place, e - AMP_YOLO_BOX, amp_yolo_squash(d, x[e], e));
        positive += delta[e] > 0;
    }
    amp_yolo_average(&t, d, positive);
    memcpy(delta, t.delta, sizeof t.delta);
    for (int e = 0; e < written; e++) {
        double square = (double)delta[e] * (double)delta[e];
        sums->cost += square;
        if (e < 4) sums->box_cost += square;
        if (d->before_logistic) delta[e] *= amp_yolo_slope(x[e]);
    }
}

/* ---- one row ---- */

/* Computes row r. Rows are numbered across all images. scratch: twice as many floats as a row has. */
static void one_row(const head *g, size_t r, float *scratch, amp_yolo_result *sums)
{
    amp_shape s = g->x->shape;
    int image = (int)(r / (size_t)s.h), j = (int)(r % (size_t)s.h), boxes = s.w * g->d->n,
        size = AMP_YOLO_BOX + g->d->classes;
    size_t count = (size_t)s.w * (size_t)s.c;
    float *x = scratch, *delta = scratch + count;
    amp_yolo_labels l = labels_of(g, image);
    *sums = (amp_yolo_result){ 0 };
    g->rows->widen(g->x->dtype, amp_cpu_at(g->x, r * count), x, count);
    memset(delta, 0, count * sizeof *delta);
    for (int q = 0; q < boxes; q++) {
        int box = j * boxes + q;
        one_box(g->d, l, s.w, s.h, box, x + q * size, delta + q * size, sums);
    }
    if (!amp_all_finite(x, count)) sums->cost = (double)NAN;
    if (!g->dx) return;
    for (size_t i = 0; i < count; i++) delta[i] *= g->scale;
    g->rows->narrow(g->dx->dtype, delta, amp_cpu_into(g->dx, r * count), count, g->accumulate);
}

static void add(amp_yolo_result *sum, const amp_yolo_result *one)
{
    enum { SUMS = sizeof *sum / sizeof(double) }; /* the struct has only doubles */
    double a[SUMS], b[SUMS];
    memcpy(a, sum, sizeof a);
    memcpy(b, one, sizeof b);
    for (int k = 0; k < SUMS; k++) a[k] += b[k];
    memcpy(sum, a, sizeof a);
}

/* ---- operations ---- */

amp_status amp_cpu_yolo_loss(amp_backend *backend, const amp_tensor *x, const float *labels,
                             const amp_yolo_desc *d, float loss_scale, const amp_tensor *dx, int accumulate,
                             amp_yolo_result *result, double *image_costs, amp_error *error)
{
    AMP_TRY(amp_check_pair("yolo", x, dx ? dx : x, 1, error));
    size_t images = (size_t)x->shape.n, rows = images * (size_t)x->shape.h,
        row = 2 * (size_t)x->shape.w * (size_t)x->shape.c;
    head g = { .rows = amp_cpu_rows_best(), .d = d, .x = x, .dx = dx, .labels = labels,
               .scale = loss_scale * d->delta_normalizer, .accumulate = accumulate,
               .own = amp_allocated(malloc((images * (size_t)d->max_boxes + 1) * sizeof *g.own)),
               .counts = amp_allocated(malloc((images + 1) * sizeof *g.counts)) };
    amp_yolo_result *sums = amp_allocated(malloc((rows + 1) * sizeof *sums));
    for (int i = 0; labels && i < x->shape.n; i++) find_own_boxes(&g, i);
    #pragma omp parallel if (amp_cpu_worth_threads(rows * row))
    {
        float *scratch = amp_allocated(malloc(row * sizeof *scratch));
        #pragma omp for schedule(static)
        for (size_t r = 0; r < rows; r++) one_row(&g, r, scratch, &sums[r]);
        free(scratch);
    }
    *result = (amp_yolo_result){ 0 };
    for (size_t r = 0; r < rows; r++) add(result, &sums[r]);
    for (size_t i = 0; image_costs && i < images; i++) image_costs[i] = 0;
    for (size_t r = 0; image_costs && r < rows; r++) image_costs[r / (size_t)x->shape.h] += sums[r].cost;
    free(g.own);
    free(g.counts);
    free(sums);
    return AMP_OK;
}

amp_status amp_cpu_yolo_activate(amp_backend *backend, const amp_tensor *y, const amp_yolo_desc *d,
                                 amp_error *error)
{
    size_t pixels = (size_t)y->shape.h * (size_t)y->shape.w, planes = (size_t)y->shape.n * (size_t)y->shape.c;
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(planes * pixels))
    for (size_t p = 0; p < planes; p++) {
        float *plane = (float *)y->data + p * pixels;
        int entry = (int)(p % (size_t)(AMP_YOLO_BOX + d->classes));
        for (size_t i = 0; i < pixels; i++) plane[i] = amp_yolo_squash(d, plane[i], entry);
    }
    return AMP_OK;
}
