/* Helpers for the tests of yolo's loss: random labels, the loss in double, one label after the other, with
 * the rules of pjreddie's Darknet and of AlexeyAB's, and the comparison with it.
 *
 * Rounding could change the result of a comparison: numbers are drawn until every comparison of the reference
 * is decided by at least 1e-5. */
#ifndef YOLO_REFERENCE_H
#define YOLO_REFERENCE_H

#include "kernel_cases.h"

enum { MOST_LABELS = 90, NET_W = 224, NET_H = 160 };

static const float anchors[] = { 10, 13, 60, 25, 33, 90, 150, 110 };

typedef struct box { double x, y, w, h; } box;

static inline box box_of(const float *label)
{
    return (box){ (double)label[0], (double)label[1], (double)label[2], (double)label[3] };
}

static inline double overlap(double a, double a_size, double b, double b_size)
{
    return fmin(a + a_size / 2, b + b_size / 2) - fmax(a - a_size / 2, b - b_size / 2);
}

/* A label anywhere in an image of w × h cells, away from the cells' borders. */
static inline void draw_label(float *label, int w, int h, int classes, uint32_t *random)
{
    label[0] = ((float)(int)(uniform(random) * (float)w) + .1f + .8f * uniform(random)) / (float)w;
    label[1] = ((float)(int)(uniform(random) * (float)h) + .1f + .8f * uniform(random)) / (float)h;
    label[2] = .02f + .7f * uniform(random) * uniform(random);
    label[3] = .02f + .7f * uniform(random) * uniform(random);
    label[4] = (float)(int)(uniform(random) * (float)classes);
}

/* ---- changes of label i of an image of w × h cells ---- */

typedef void label_change(float *label, int w, int h, int i);

/* All at one place and of nearly one size: one box learns them. */
static inline void one_place(float *label, int w, int h, int i)
{
    label[0] = .5f / (float)w + .01f * (float)i / (float)w;
    label[1] = .4f / (float)h;
    label[2] = 60.f / NET_W + .001f * (float)i;
    label[3] = 25.f / NET_H;
}

static inline void one_place_one_class(float *label, int w, int h, int i)
{
    one_place(label, w, h, i);
    label[4] = 2;
}

/* For layers of 3 or 4 classes. */
static inline void of_no_class(float *label, int w, int h, int i)
{
    static const float classes[] = { 3.9f, -1, 1e20f, 4, -.5f, -1e20f };
    if (i % 2) one_place(label, w, h, i);
    label[4] = classes[i % 6];
}

static inline void ends_in_the_middle(float *label, int w, int h, int i)
{
    (void)w, (void)h;
    if (i == 5) label[0] = 0;
    if (i > 5) label[4] = 1e9f;
}

/* The first one is on the border, where truth.x * w is w. */
static inline void outside(float *label, int w, int h, int i)
{
    static const float at[] = { 1, -2, 1.7f, -1e30f, 1e30f };
    (void)w, (void)h;
    label[i % 2] = at[i / 2 % 5];
}

/* `count` labels for each image of x. */
static inline void draw_labels(float *labels, const amp_tensor *x, const amp_yolo_desc *d, int count,
                               label_change *change, uint32_t seed)
{
    int w = x->shape.w, h = x->shape.h;
    memset(labels, 0, (size_t)x->shape.n * (size_t)d->truths * sizeof *labels);
    for (int b = 0; b < x->shape.n; b++)
        for (int i = 0; i < count; i++) {
            float *label = labels + b * d->truths + d->label_size * i;
            draw_label(label, w, h, d->classes, &seed);
            if (d->label_size > 5) label[5] = (float)(7 * i + 1);
            if (change) change(label, w, h, i);
        }
}

static inline void assert_near(double got, double want, const char *what)
{
    if (got == want || fabs(got - want) <= 1e-5 * (1 + fabs(want))) return;
    fail_msg("%s: got %.9g, want %.9g (%s)", what, got, want, variant);
}

typedef struct reference {
    amp_yolo_desc d;
    int h, w;
    size_t size, count; /* numbers per box, and in all */
    double *out, *delta, *slope, clear; /* clear: the smallest distance in a comparison */
    amp_yolo_result sums;
} reference;

static inline int above(reference *r, double a, double b)
{
    if (a != b && fabs(a - b) < r->clear) r->clear = fabs(a - b);
    return a > b;
}

/* ---- boxes ---- */

static const double PI_SQUARED = 9.8696044010893586;

static inline double or_zero(double v) { return isfinite(v) ? v : 0; }

/* Left, top, right and bottom of a box. */
static inline void ends_of(box b, double e[4])
{
    e[0] = b.x - b.w / 2, e[1] = b.y - b.h / 2, e[2] = b.x + b.w / 2, e[3] = b.y + b.h / 2;
}

typedef struct parts { double shared_w, shared_h, both, hull_w, hull_h; } parts;

static inline parts parts_of(const double e[4], box label)
{
    double f[4];
    ends_of(label, f);
    parts p = { fmin(e[2], f[2]) - fmax(e[0], f[0]), fmin(e[3], f[3]) - fmax(e[1], f[1]), 0,
                fmax(e[2], f[2]) - fmin(e[0], f[0]), fmax(e[3], f[3]) - fmin(e[1], f[1]) };
    p.both = (e[2] - e[0]) * (e[3] - e[1]) + label.w * label.h - p.shared_w * p.shared_h;
    return p;
}

/* The terms of AlexeyAB's gradient: the intersection of both (also if it is the product of two gaps), the
 * area of the box that encloses both, and its squared diagonal. */
static inline double share(const double e[4], box l)
{
    parts p = parts_of(e, l);
    return p.both > 0 ? p.shared_w * p.shared_h / p.both : 0;
}

static inline double filling(const double e[4], box l)
{
    parts p = parts_of(e, l);
    return p.both / (p.hull_w * p.hull_h);
}

static inline double diagonal(const double e[4], box l)
{
    parts p = parts_of(e, l);
    return p.hull_w * p.hull_w + p.hull_h * p.hull_h;
}

/* The derivative of f when one end moves. */
static inline double as_moves(double (*f)(const double *, box), const double e[4], box l, int end)
{
    double less[4], more[4], step = 1e-6;
    memcpy(less, e, sizeof less), memcpy(more, e, sizeof more);
    less[end] -= step, more[end] += step;
    return (f(more, l) - f(less, l)) / (2 * step);
}

static inline double angle_between(box a, box l) { return atan(l.w / l.h) - atan(a.w / a.h); }

static inline double likeness(amp_yolo_kind kind, box a, box l)
{
    double e[4], w = overlap(a.x, a.w, l.x, l.w), h = overlap(a.y, a.h, l.y, l.h),
                 shared = w < 0 || h < 0 ? 0 : w * h;
    ends_of(a, e);
    parts p = parts_of(e, l);
    double both = a.w * a.h + l.w * l.h - shared, iou = both == 0 ? 0 : shared / both,
           hull = p.hull_w * p.hull_h;
    double way = pow(a.x - l.x, 2) + pow(a.y - l.y, 2), shape = 4 / PI_SQUARED * pow(angle_between(a, l), 2);
    if (kind == AMP_YOLO_GIOU) return hull == 0 ? iou : iou - (hull - both) / hull;
    if (kind == AMP_YOLO_DIOU && diagonal(e, l) != 0) return iou - pow(way / diagonal(e, l), .6);
    if (kind == AMP_YOLO_CIOU && diagonal(e, l) != 0)
        return iou - way / diagonal(e, l) - shape * shape / (1 - iou + shape + 1e-6);
    return iou;
}

/* AlexeyAB's gradient by x, y, w, h. */
static inline void gradient(reference *r, box a, box l, double g[4])
{
    double e[4], f[4], way = pow(a.x - l.x, 2) + pow(a.y - l.y, 2), shape = 0, turn = 0;
    amp_yolo_kind kind = r->d.loss;
    if (a.w == 0) a.w = 1;
    if (a.h == 0) a.h = 1;
    ends_of(a, e), ends_of(l, f);
    for (int k = 0; k < 4; k++) above(r, e[k], f[k]), above(r, e[k], f[(k + 2) % 4]);
    parts p = parts_of(e, l);
    int apart = p.shared_w <= 0 || p.shared_h <= 0;
    if (kind == AMP_YOLO_CIOU) {
        shape = 4 / PI_SQUARED * pow(angle_between(a, l), 2);
        turn = shape / (1 - p.shared_w * p.shared_h / p.both + shape + 1e-6) * 8 / PI_SQUARED
               * angle_between(a, l);
    }
    for (int k = 0; k < 2; k++) {
        double low = as_moves(share, e, l, k), high = as_moves(share, e, l, k + 2), c = diagonal(e, l);
        if (kind == AMP_YOLO_GIOU) {
            low = (apart ? 0 : low) + as_moves(filling, e, l, k);
            high = (apart ? 0 : high) + as_moves(filling, e, l, k + 2);
        }
        g[k] = low + high;
        g[k + 2] = high - low;
        if (kind != AMP_YOLO_DIOU && kind != AMP_YOLO_CIOU) continue;
        double to_low = as_moves(diagonal, e, l, k), to_high = as_moves(diagonal, e, l, k + 2);
        g[k] = (apart ? 0 : g[k]) + 2 * (k ? l.y - a.y : l.x - a.x) / c - way * (to_high + to_low) / (c * c);
        g[k + 2] =
            (apart ? 0 : g[k + 2]) + way * (to_high - to_low) / 2 / (c * c) + (k ? -turn * a.w : turn * a.h);
    }
}

/* ---- boxes and labels ---- */

static inline int of_pjreddie(const reference *r) { return r->d.rules == AMP_YOLO_PJREDDIE; }

static inline size_t at(const reference *r, int b, int j, int i, int k)
{
    return (size_t)(((b * r->h + j) * r->w + i) * r->d.n + k) * r->size;
}

static inline box anchor_box(const reference *r, int anchor)
{
    return (box){ 0, 0, (double)r->d.anchors[2 * anchor] / r->d.net_w,
                  (double)r->d.anchors[2 * anchor + 1] / r->d.net_h };
}

static inline box predicted(const reference *r, size_t q, int j, int i, int k)
{
    box a = anchor_box(r, r->d.mask[k]);
    const double *v = r->out + q;
    return (box){ (i + v[0]) / r->w, (j + v[1]) / r->h, a.w * (r->d.new_coords ? 4 * v[2] * v[2] : exp(v[2])),
                  a.h * (r->d.new_coords ? 4 * v[3] * v[3] : exp(v[3])) };
}

/* named: the label's class; others: the class to learn for it, and its multiplier; -1: the layer does not
 * have it. */
static inline int named(const reference *r, const float *label)
{
    return label[4] > -1 && label[4] < (float)r->d.classes ? (int)label[4] : -1;
}
static inline int learnt(const reference *r, const float *label)
{
    return r->d.class_table ? r->d.class_table[named(r, label)].learnt : named(r, label);
}
static inline double multiplier(const reference *r, const float *label)
{
    return r->d.class_table ? (double)r->d.class_table[named(r, label)].multiplier : 1;
}
/* pjreddie's also learns boxes without a class. */
static inline int passed_over(const reference *r, const float *label)
{
    return !of_pjreddie(r) && named(r, label) < 0;
}

static inline void learn_box(reference *r, size_t q, int j, int i, int k, const float *label)
{
    const box a = anchor_box(r, r->d.mask[k]), t = box_of(label);
    const double *v = r->out + q, weight = (double)r->d.iou_normalizer * multiplier(r, label);
    double *delta = r->delta + q, g[4];
    if (r->d.loss == AMP_YOLO_MSE) {
        double w = t.w / a.w, h = t.h / a.h, scale = weight * (2 - t.w * t.h);
        double want[4] = { t.x * r->w - i, t.y * r->h - j, r->d.new_coords ? sqrt(w / 4) : log(w),
                           r->d.new_coords ? sqrt(h / 4) : log(h) };
        for (int e = 0; e < 4; e++)
            delta[e] = (of_pjreddie(r) ? 0 : delta[e]) + scale * (want[e] - v[e]);
        return;
    }
    gradient(r, predicted(r, q, j, i, k), t, g);
    for (int e = 0; e < 4; e++) {
        double one = or_zero(weight * g[e] * (e >= 2 && !r->d.new_coords ? exp(v[e]) : 1)),
               most = (double)r->d.max_delta;
        delta[e] += one > most ? most : one < -most ? -most : one;
    }
}

static inline void learn_class(reference *r, size_t q, const float *label)
{
    int c = learnt(r, label);
    double *delta = r->delta + q + 5, *p = r->out + q + 5, eps = (double)r->d.label_smooth_eps;
    if (delta[of_pjreddie(r) ? 0 : c] != 0) {
        if (c >= 0) delta[c] = (1 - eps / 2 - p[c]) * multiplier(r, label);
        return;
    }
    double sure = c >= 0 ? (double)((float)p[c] + 1e-15f) : 0,
           focus = -.5 * (1 - sure) * (2 * sure * log(sure) + sure - 1);
    for (int n = 0; n < r->d.classes; n++)
        delta[n] = r->d.focal_loss ? ((n == c) - p[n]) * focus : (n == c ? 1 - eps / 2 : eps / 2) - p[n];
    if (!r->d.focal_loss && r->d.class_table) delta[c] *= multiplier(r, label) * (double)r->d.cls_normalizer;
}

static inline void look_at_box(reference *r, const float *labels, int count, int b, int j, int i, int k)
{
    size_t q = at(r, b, j, i, k);
    const double *v = r->out + q, obj = (double)r->d.obj_normalizer;
    const box own = predicted(r, q, j, i, k);
    double best = 0, *object = r->delta + q + 4;
    int which = 0, sure = of_pjreddie(r);
    for (int t = 0; t < count; t++) {
        const float *label = labels + r->d.label_size * t;
        double iou = passed_over(r, label) ? 0 : likeness(AMP_YOLO_IOU, own, box_of(label));
        if (iou > best) best = iou, which = t;
    }
    /* Another label that is nearly as good must be exactly as good, and later. */
    for (int t = 0; t < count && (double)r->d.truth_thresh < 1; t++) {
        const float *label = labels + r->d.label_size * t;
        if (!passed_over(r, label) && t != which && best > 0)
            above(r, likeness(AMP_YOLO_IOU, own, box_of(label)), best);
    }
    r->sums.any_object += v[4];
    *object = obj * (0 - v[4]);
    if (above(r, best, (double)r->d.ignore_thresh)) {
        for (int c = 0; c < r->d.classes && !of_pjreddie(r); c++) sure |= above(r, v[5 + c], .25);
        if (sure && !r->d.objectness_smooth) *object = 0;
        if (sure && r->d.objectness_smooth && above(r, obj * (best - v[4]), *object))
            *object = obj * (best - v[4]);
    }
    if (!above(r, best, (double)r->d.truth_thresh)) return;
    const float *label = labels + r->d.label_size * which;
    *object = obj * ((r->d.objectness_smooth ? best * best : 1) - v[4]);
    learn_class(r, q, label);
    if (r->d.objectness_smooth) {
        size_t c = 5 + (size_t)learnt(r, label);
        r->delta[q + c] = multiplier(r, label) * (best * best - v[c]);
    }
    learn_box(r, q, j, i, k, label);
}

static inline void apply_label(reference *r, const float *label, int b)
{
    box shape = { 0, 0, (double)label[2], (double)label[3] };
    double x = (double)label[0] * r->w, y = (double)label[1] * r->h, best = 0;
    int anchor = 0;
    if (passed_over(r, label) || x <= -1 || y <= -1 || x >= r->w || y >= r->h) return;
    for (int a = 0; a < r->d.total; a++) {
        double iou = likeness(AMP_YOLO_IOU, anchor_box(r, a), shape);
        if (above(r, iou, best)) best = iou, anchor = a;
    }
    for (int k = 0; k < r->d.n; k++) {
        int a = r->d.mask[k], i = (int)x, j = (int)y;
        if (k == 2 && a == r->d.mask[1]) break; /* the first stands for both */
        size_t q = at(r, b, j, i, k);
        if (a != anchor
            && !(r->d.iou_thresh < 1
                 && above(r, likeness(r->d.thresh_kind, anchor_box(r, a), shape), (double)r->d.iou_thresh)))
            continue;
        double like = likeness(AMP_YOLO_IOU, predicted(r, q, j, i, k), box_of(label));
        learn_box(r, q, j, i, k, label);
        if (!r->d.objectness_smooth || r->delta[q + 4] == 0)
            r->delta[q + 4] = multiplier(r, label) * (double)r->d.obj_normalizer * (1 - r->out[q + 4]);
        learn_class(r, q, label);
        r->sums.labels += 1;
        r->sums.iou += like;
        r->sums.giou += likeness(AMP_YOLO_GIOU, predicted(r, q, j, i, k), box_of(label));
        r->sums.object += r->out[q + 4];
        r->sums.category += named(r, label) >= 0 ? r->out[q + 5 + (size_t)learnt(r, label)] : 0;
        r->sums.above_50 += above(r, like, .5);
        r->sums.above_75 += above(r, like, .75);
    }
}

static inline void average(reference *r, size_t q)
{
    int positive = 0;
    for (size_t c = 5; c < r->size; c++) positive += r->delta[q + c] > 0;
    for (size_t e = 0; e < 4 && positive > 0 && r->delta[q + 4] != 0; e++) r->delta[q + e] /= positive;
}

/* Squashed numbers are floats, as in Darknet: above about 17 they are 1, and below -104 they are 0. labels
 * may be NULL. forget frees it. */
static inline reference reference_of(const amp_tensor *x, const float *labels, const amp_yolo_desc *d)
{
    reference r = { .d = *d, .h = x->shape.h, .w = x->shape.w, .size = 5 + (size_t)d->classes,
                    .count = amp_shape_count(x->shape), .clear = 1 };
    r.out = calloc(3 * r.count, sizeof *r.out);
    assert_non_null(r.out);
    r.delta = r.out + r.count, r.slope = r.delta + r.count;
    for (size_t e = 0; e < r.count; e++) {
        double v = element(x, e), p = (double)(float)(1 / (1 + exp(-v))), s = (double)d->scale_x_y;
        int kept = d->new_coords ? !d->before_logistic : e % r.size == 2 || e % r.size == 3;
        r.out[e] = kept ? v : p;
        if (e % r.size < 2) r.out[e] = s * r.out[e] - (s - 1) / 2;
        r.slope[e] = (double)d->delta_normalizer * (d->before_logistic ? 1 / (2 + exp(v) + exp(-v)) : 1);
    }
    for (int b = 0; b < x->shape.n; b++) {
        const float *of_image = labels ? labels + (size_t)b * (size_t)d->truths : NULL;
        int found = 0;
        while (of_image && found < d->max_boxes && of_image[d->label_size * found] != 0) ++found;
        for (int j = 0; j < r.h; j++)
            for (int i = 0; i < r.w; i++)
                for (int k = 0; k < d->n; k++) look_at_box(&r, of_image, found, b, j, i, k);
        for (int t = 0; t < found; t++) apply_label(&r, of_image + d->label_size * t, b);
    }
    for (size_t q = 0; q < r.count && d->iou_thresh < 1; q += r.size) average(&r, q);
    for (size_t e = 0; e < r.count; e++) r.sums.cost += r.delta[e] * r.delta[e];
    for (size_t e = 0; e < r.count; e++) r.sums.box_cost += e % r.size < 4 ? r.delta[e] * r.delta[e] : 0;
    return r;
}

static inline void forget(reference *r) { free(r->out); }

/* Input and labels of a case, drawn so that rounding decides nothing. */
typedef struct drawn { amp_yolo_desc d; amp_tensor x; float *labels; reference r; } drawn;

static inline void discard(drawn *w)
{
    if (w->d.class_table) release((void *)w->d.class_table);
    forget(&w->r);
    release(w->x.data);
    release(w->labels);
}

/* ---- comparing ---- */

/* fp32's part of the difference: 1e-5 of the largest delta among a box's four numbers. old: what dx was added
 * to, or NULL. */
static inline void assert_delta(const reference *r, const amp_tensor *dx, const amp_tensor *old, float scale,
                                const char *name)
{
    char what[160];
    snprintf(what, sizeof what, "%s: dx", name);
    for (size_t q = 0; q < r->count; q += r->size) {
        double most = 0;
        for (size_t e = q; e < q + 4; e++) if (isfinite(r->delta[e])) most = fmax(most, fabs(r->delta[e]));
        for (size_t e = q; e < q + r->size; e++) {
            double want = (double)scale * r->delta[e] * r->slope[e],
                   slack = (e < q + 4 ? 1e-5 * (1 + most) : 0x1p-21) * (double)scale;
            if (r->delta[e] == 0 && (e >= q + 4 || most == 0)) slack = 0;
            if (dx->dtype == AMP_FP16 && fabs(want) > 65520) want = copysign((double)INFINITY, want);
            assert_rounded(dx->dtype, element(dx, e), want + (old ? element(old, e) : 0),
                           slack + 0x1p-21 * fabs(want), what, e);
        }
    }
}

/* A sum of squares: it differs twice as much as the deltas. */
static inline void assert_cost(double got, double want, const char *what)
{
    if (got == want || fabs(got - want) <= 4e-5 * (1 + fabs(want))) return;
    fail_msg("%s: got %.9g, want %.9g (%s)", what, got, want, variant);
}

static inline void assert_result(const amp_yolo_result *got, const reference *r)
{
    const amp_yolo_result *want = &r->sums;
    assert_cost(got->cost, want->cost, "cost");
    assert_true(got->labels == want->labels && got->above_50 == want->above_50
                && got->above_75 == want->above_75);
    assert_near(got->iou, want->iou, "iou");
    assert_near(got->object, want->object, "object");
    assert_near(got->category, want->category, "category");
    assert_near(got->any_object, want->any_object, "any_object");
    if (of_pjreddie(r)) return; /* whose layer prints neither of these */
    assert_cost(got->box_cost, want->box_cost, "box_cost");
    assert_near(got->giou, want->giou, "giou");
}

static inline amp_tensor like(const amp_tensor *x)
{
    return poisoned(x->dtype, x->shape.n, x->shape.h, x->shape.w, x->shape.c);
}

/* Deltas and sums of w; its delta is multiplied by scale, and may be added to other numbers. */
static inline void assert_loss(const drawn *w, float scale, int accumulate, const char *name)
{
    amp_yolo_result *result = memory(sizeof *result);
    amp_tensor dx = like(&w->x);
    if (accumulate) fill(&dx, 9, -3, 3);
    amp_tensor old = copy_of(&dx);
    memset(result, 0xff, sizeof *result);
    ASSERT_OK(CALL(yolo_loss, &w->x, w->labels, &w->d, scale, &dx, accumulate, result, NULL, e));
    assert_delta(&w->r, &dx, accumulate ? &old : NULL, scale, name);
    assert_result(result, &w->r);
    release(dx.data), release(old.data), release(result);
}

/* inf or NaN in element e of x makes the cost NaN, whether or not a label is learnt there. */
static inline void assert_nan_makes_nan(const drawn *w, size_t e, const char *name)
{
    static const float bad[] = { INFINITY, -INFINITY, NAN };
    amp_yolo_result *result = memory(sizeof *result);
    float was = (float)element(&w->x, e);
    set_element(&w->x, e, bad[e % 3]);
    ASSERT_OK(CALL(yolo_loss, &w->x, w->labels, &w->d, 1, NULL, 0, result, NULL, e));
    if (!isnan(result->cost))
        fail_msg("%s: %g at %zu: cost is %g (%s)", name, (double)bad[e % 3], e, result->cost, variant);
    set_element(&w->x, e, was);
    release(result);
}

/* The same bits with 1, 3 and 5 processors. */
static inline void assert_same_by_any_processors(const drawn *w)
{
    amp_tensor dx = like(&w->x), first = copy_of(&dx);
    amp_yolo_result *result = memory(sizeof *result), want;
    for (int processors = 1; processors < 6; processors += 2) {
        machine.set_processors(backend, processors);
        ASSERT_OK(CALL(yolo_loss, &w->x, w->labels, &w->d, 8, processors == 1 ? &first : &dx, 0, result,
                       NULL, e));
        if (processors == 1) want = *result;
        else assert_same(&first, &dx);
        assert_memory_equal(&want, result, sizeof want);
    }
    machine.set_processors(backend, 0);
    release(dx.data), release(first.data), release(result);
}

#endif
