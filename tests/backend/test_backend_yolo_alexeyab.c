/* Yolo's loss of a backend by the rules of AlexeyAB's fork: against those rules written out in double, one
 * label after the other, and against the fork's own layer, where its tree is found (tests/alexeyab/yolo.sh
 * makes ALEXEYAB_YOLO of it).
 *
 * Where a comparison decides, rounding could: numbers are drawn until every comparison of the reference is
 * clear by 1e-5. */
#include "yolo_cases.h"

#include <dlfcn.h>
#include <float.h>
#include <unistd.h>

#include "alexeyab/yolo.h"
#include "backend/yolo_rules.h"

enum { CLASSES = 4, SIZE = 5 + CLASSES, BOXES = 3, NUMBERS = 6, W = 4, H = 3, IMAGES = 2,
       ALL = IMAGES * H * W * BOXES * SIZE, ROUNDS = 3 /* of each comparison with the fork */ };

/* ---- keys ---- */

typedef struct keys {
    const char *name;
    amp_yolo_kind loss, thresh_kind;
    float iou_thresh, max_delta, scale_x_y, label_smooth_eps, iou, obj, cls, delta; /* the four normalizers */
    float ignore_thresh, truth_thresh;
    int new_coords, before_logistic, objectness_smooth, focal_loss, table;
} keys;

#define MSE AMP_YOLO_MSE
#define IOU AMP_YOLO_IOU
#define GIOU AMP_YOLO_GIOU
#define DIOU AMP_YOLO_DIOU
#define CIOU AMP_YOLO_CIOU

/* loss, thresh_kind, iou_thresh, max_delta, scale_x_y, eps, four normalizers, ignore and truth_thresh,
 * new_coords, before_logistic, objectness_smooth, focal_loss, table */
static const keys all_keys[] = {
    { "yolov3", MSE, IOU, 1, FLT_MAX, 1, 0, .75f, 1, 1, 1, .5f, 1, 0, 0, 0, 0, 0 },
    { "iou", IOU, IOU, 1, FLT_MAX, 1, 0, .75f, 1, 1, 1, .5f, 1, 0, 0, 0, 0, 0 },
    { "giou", GIOU, IOU, 1, FLT_MAX, 1, 0, .75f, 1, 1, 1, .5f, 1, 0, 0, 0, 0, 0 },
    { "diou", DIOU, IOU, 1, FLT_MAX, 1, 0, .75f, 1, 1, 1, .5f, 1, 0, 0, 0, 0, 0 },
    { "ciou", CIOU, IOU, 1, FLT_MAX, 1, 0, .75f, 1, 1, 1, .5f, 1, 0, 0, 0, 0, 0 },
    { "yolov4", CIOU, IOU, .213f, 5, 1.2f, 0, .07f, 1, 1, 1, .3f, 1, 0, 0, 0, 0, 0 },
    { "yolov4-csp", CIOU, IOU, .2f, 2, 2, 0, .05f, .4f, .5f, 1, .2f, 1, 1, 1, 1, 0, 0 },
    { "yolov4-csp's head in fp32", CIOU, IOU, .2f, 2, 2, 0, .05f, .4f, .5f, 1, .2f, 1, 1, 0, 1, 0, 0 },
    { "new_coords, mse", MSE, IOU, 1, FLT_MAX, 1, 0, .75f, 1, 1, 1, .3f, 1, 1, 1, 0, 0, 0 },
    { "new_coords, giou", GIOU, IOU, .3f, 1, 1.05f, 0, .5f, 1, 1, .5f, .2f, 1, 1, 1, 0, 0, 1 },
    { "giou twice", GIOU, GIOU, -.3f, FLT_MAX, 1.05f, 0, .5f, 1.4f, 1, 1, .2f, 1, 0, 0, 0, 0, 0 },
    { "diou twice", DIOU, DIOU, .25f, 3, 1, 0, .5f, 1, 1, 1, .1f, 1, 0, 0, 1, 0, 0 },
    { "ciou twice", CIOU, CIOU, .1f, .1f, 1, 0, .5f, 1, 1, .25f, .2f, 1, 0, 0, 0, 0, 1 },
    { "label smoothing", MSE, IOU, 1, FLT_MAX, 1, .1f, .75f, 1, 1, 1, .3f, 1, 0, 0, 0, 0, 0 },
    { "smoothing, classes", CIOU, IOU, .4f, 4, 1, .2f, .75f, 2, .5f, 1, .3f, 1, 0, 0, 0, 0, 1 },
    { "focal loss", MSE, IOU, 1, FLT_MAX, 1, 0, .75f, 1, 1, 1, .3f, 1, 0, 0, 0, 1, 0 },
    { "focal loss, all else", GIOU, IOU, .3f, 2, 1.1f, .1f, .75f, .5f, 2, 1, .2f, 1, 0, 0, 1, 1, 1 },
    { "truth_thresh", MSE, IOU, .3f, FLT_MAX, 1, 0, .75f, 1, 1, 1, .1f, .15f, 0, 0, 0, 0, 1 },
    { "truth_thresh, smooth", DIOU, IOU, 1, 2, 1, .1f, .75f, 1, .5f, 1, .3f, .12f, 1, 1, 1, 0, 1 },
};

/* Two classes become one; memory of the machine's. */
static amp_yolo_class_rule *class_table(void)
{
    static const amp_yolo_class_rule rules[CLASSES] = { { 2, 3 }, { 1, 1 }, { 2, 3 }, { 0, 1.5f } };
    return memcpy(memory(sizeof rules), rules, sizeof rules);
}

static amp_yolo_desc desc_of(const keys *k)
{
    amp_yolo_desc d = { .classes = CLASSES,
                        .n = BOXES,
                        .total = 4,
                        .mask = { 0, 1, k->focal_loss ? 1 : 3 },
                        .net_w = NET_W,
                        .net_h = NET_H,
                        .ignore_thresh = k->ignore_thresh,
                        .truth_thresh = k->truth_thresh,
                        .truths = MOST_LABELS * NUMBERS + 3,
                        .label_size = NUMBERS,
                        .max_boxes = MOST_LABELS,
                        .rules = AMP_YOLO_ALEXEYAB,
                        .loss = k->loss,
                        .thresh_kind = k->thresh_kind,
                        .iou_thresh = k->iou_thresh,
                        .max_delta = k->max_delta,
                        .scale_x_y = k->scale_x_y,
                        .label_smooth_eps = k->label_smooth_eps,
                        .iou_normalizer = k->iou,
                        .obj_normalizer = k->obj,
                        .cls_normalizer = k->table ? k->cls : 1,
                        .delta_normalizer = k->delta,
                        .new_coords = k->new_coords,
                        .before_logistic = k->before_logistic,
                        .objectness_smooth = k->objectness_smooth,
                        .focal_loss = k->focal_loss,
                        .class_table = k->table ? class_table() : NULL };
    memcpy(d.anchors, anchors, sizeof anchors);
    return d;
}

/* ---- labels ---- */

typedef struct labels_case {
    const char *name;
    int labels; /* an image */
    void (*change)(float *label, int i);
    int beyond; /* the fork's own layer would write beyond its arrays */
    int saturated; /* some numbers are squashed to 0 and 1 */
} labels_case;

static void one_place(float *label, int i) { draw_in_one_place(label, W, H, i); }
static void one_cell(float *label, int i) { label[0] = .3f + .003f * (float)(i % 5), label[1] = .4f; }

static void one_place_one_class(float *label, int i)
{
    one_place(label, i);
    label[4] = 2;
}

static void of_no_class(float *label, int i)
{
    static const float classes[] = { 3.9f, -1, 1e9f, 4, -.5f, 0 };
    if (i % 2) one_place(label, i);
    label[4] = classes[i % 6];
}

static void ends_in_the_middle(float *label, int i)
{
    if (i == 5) label[0] = 0;
    if (i > 5) label[4] = 1e9f;
}

static void at_the_border(float *label, int i)
{
    static const float at[] = { 1e-6f, .999999f, -.1f, 1e-20f };
    if (i % 3) label[0] = at[i % 4];
    if (i % 3 != 1) label[1] = at[i / 2 % 4];
}

static void outside(float *label, int i)
{
    static const float at[] = { 1, -2, 1.7f, -1e30f, 1e30f };
    label[i % 2] = at[i / 2 % 5];
}

static void of_no_size(float *label, int i)
{
    if (i % 3 != 1) label[2] = 0;
    if (i % 3 != 0) label[3] = 0;
}

static void as_large_as_the_image(float *label, int i)
{
    label[2] = .9f + .01f * (float)i;
    label[3] = 1 - .02f * (float)i;
}

static const labels_case all_labels[] = {
    { "anywhere", 6, NULL, 0, 0 },
    { "none", 0, NULL, 0, 0 },
    { "several of one box", 5, one_place, 0, 0 },
    { "several of one box and one class", 4, one_place_one_class, 0, 0 },
    { "several in one cell", 8, one_cell, 0, 0 },
    { "several of one box, that is sure", 6, one_place, 0, 1 },
    { "anywhere, of boxes that are sure", 9, NULL, 0, 1 },
    { "classes that the layer lacks", 12, of_no_class, 0, 0 },
    { "an end before their room's", 9, ends_in_the_middle, 0, 0 },
    { "at the border", 8, at_the_border, 0, 0 },
    { "outside", 10, outside, 1, 0 },
    { "without a size", 6, of_no_size, 0, 0 },
    { "as large as the image", 3, as_large_as_the_image, 0, 0 },
};

static void draw_labels(const labels_case *c, const amp_yolo_desc *d, float *labels, uint32_t seed)
{
    memset(labels, 0, IMAGES * (size_t)d->truths * sizeof *labels);
    for (int b = 0; b < IMAGES; b++)
        for (int i = 0; i < c->labels; i++) {
            float *label = labels + (size_t)b * (size_t)d->truths + (size_t)(NUMBERS * i);
            draw_label(label, W, H, CLASSES, &seed);
            label[5] = (float)(7 * i + 1);
            if (c->change) c->change(label, i);
        }
}

/* Every fifth number far from 0; sizes are not, but with new_coords. */
static void saturate(const amp_yolo_desc *d, const amp_tensor *x)
{
    for (size_t e = 0; e < ALL; e += 5)
        if (d->new_coords || (e % SIZE != 2 && e % SIZE != 3)) set_element(x, e, e % 2 ? 120 : -120);
}

/* ---- the reference ---- */

typedef struct reference {
    amp_yolo_desc d;
    double out[ALL], delta[ALL], slope[ALL], clear; /* clear: how near the nearest comparison was */
    amp_yolo_result sums;
} reference;

static int above(reference *r, double a, double b)
{
    if (a != b && fabs(a - b) < r->clear) r->clear = fabs(a - b);
    return a > b;
}

static const double PI_SQUARED = 9.8696044010893586;

static double or_zero(double v) { return isfinite(v) ? v : 0; }

/* l, t, r, b of a box. */
static void ends_of(box b, double e[4])
{
    e[0] = b.x - b.w / 2, e[1] = b.y - b.h / 2, e[2] = b.x + b.w / 2, e[3] = b.y + b.h / 2;
}

typedef struct parts { double shared_w, shared_h, both, hull_w, hull_h; } parts;

static parts parts_of(const double e[4], box label)
{
    double f[4];
    ends_of(label, f);
    parts p = { fmin(e[2], f[2]) - fmax(e[0], f[0]), fmin(e[3], f[3]) - fmax(e[1], f[1]), 0,
                fmax(e[2], f[2]) - fmin(e[0], f[0]), fmax(e[3], f[3]) - fmin(e[1], f[1]) };
    p.both = (e[2] - e[0]) * (e[3] - e[1]) + label.w * label.h - p.shared_w * p.shared_h;
    return p;
}

/* What the fork's gradient is made of: the shared part of both (also where that is a product of two gaps),
 * both's part of what holds them, and the squared diagonal of that. */
static double share(const double e[4], box l)
{
    parts p = parts_of(e, l);
    return p.both > 0 ? p.shared_w * p.shared_h / p.both : 0;
}

static double filling(const double e[4], box l)
{
    parts p = parts_of(e, l);
    return p.both / (p.hull_w * p.hull_h);
}

static double diagonal(const double e[4], box l)
{
    parts p = parts_of(e, l);
    return p.hull_w * p.hull_w + p.hull_h * p.hull_h;
}

/* The derivative of f as one end moves. */
static double as_moves(double (*f)(const double *, box), const double e[4], box l, int end)
{
    double less[4], more[4], step = 1e-6;
    memcpy(less, e, sizeof less), memcpy(more, e, sizeof more);
    less[end] -= step, more[end] += step;
    return (f(more, l) - f(less, l)) / (2 * step);
}

static double angle_between(box a, box l) { return atan(l.w / l.h) - atan(a.w / a.h); }

static double likeness(amp_yolo_kind kind, box a, box l)
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

/* The fork's gradient by x, y, w, h. */
static void gradient(reference *r, box a, box l, double g[4])
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

static size_t at(int b, int j, int i, int k) { return (size_t)((((b * H + j) * W + i) * BOXES + k) * SIZE); }

static box predicted(const reference *r, size_t q, int j, int i, int k)
{
    const float *anchor = r->d.anchors + 2 * r->d.mask[k];
    const double *v = r->out + q, w = (double)anchor[0] / NET_W, h = (double)anchor[1] / NET_H;
    if (r->d.new_coords)
        return (box){ (i + v[0]) / W, (j + v[1]) / H, 4 * v[2] * v[2] * w, 4 * v[3] * v[3] * h };
    return (box){ (i + v[0]) / W, (j + v[1]) / H, exp(v[2]) * w, exp(v[3]) * h };
}

static int named(const float *label) { return label[4] > -1 && label[4] < CLASSES ? (int)label[4] : -1; }
static int learnt(const reference *r, const float *label)
{
    return r->d.class_table ? r->d.class_table[named(label)].learnt : named(label);
}
static double multiplier(const reference *r, const float *label)
{
    return r->d.class_table ? (double)r->d.class_table[named(label)].multiplier : 1;
}

static void learn_box(reference *r, size_t q, int j, int i, int k, const float *label)
{
    const float *anchor = r->d.anchors + 2 * r->d.mask[k];
    const double *v = r->out + q, weight = (double)r->d.iou_normalizer * multiplier(r, label);
    double *delta = r->delta + q, g[4];
    box t = box_of(label);
    r->sums.boxes += 1;
    r->sums.rewritten += delta[0] != 0 || delta[1] != 0 || delta[2] != 0 || delta[3] != 0;
    if (r->d.loss == AMP_YOLO_MSE) {
        double w = t.w * NET_W / (double)anchor[0], h = t.h * NET_H / (double)anchor[1],
               scale = weight * (2 - t.w * t.h);
        double want[4] = { t.x * W - i, t.y * H - j, r->d.new_coords ? sqrt(w / 4) : log(w),
                           r->d.new_coords ? sqrt(h / 4) : log(h) };
        for (int e = 0; e < 4; e++) delta[e] += scale * (want[e] - v[e]);
        return;
    }
    gradient(r, predicted(r, q, j, i, k), t, g);
    for (int e = 0; e < 4; e++) {
        double one = or_zero(weight * g[e] * (e >= 2 && !r->d.new_coords ? exp(v[e]) : 1)),
               most = (double)r->d.max_delta;
        delta[e] += one > most ? most : one < -most ? -most : one;
    }
}

static void learn_class(reference *r, size_t q, const float *label)
{
    int c = learnt(r, label);
    double *delta = r->delta + q + 5, *p = r->out + q + 5, eps = (double)r->d.label_smooth_eps;
    if (delta[c] != 0) {
        delta[c] = (1 - eps / 2 - p[c]) * multiplier(r, label);
        return;
    }
    double sure = (double)((float)p[c] + 1e-15f),
           focus = -.5 * (1 - sure) * (2 * sure * log(sure) + sure - 1);
    for (int n = 0; n < CLASSES; n++)
        delta[n] = r->d.focal_loss ? ((n == c) - p[n]) * focus : (n == c ? 1 - eps / 2 : eps / 2) - p[n];
    if (!r->d.focal_loss && r->d.class_table) delta[c] *= multiplier(r, label) * (double)r->d.cls_normalizer;
}

static void look_at_box(reference *r, const float *labels, int count, int b, int j, int i, int k)
{
    size_t q = at(b, j, i, k);
    const double *v = r->out + q, obj = (double)r->d.obj_normalizer;
    double best = 0, *object = r->delta + q + 4;
    int which = 0, sure = 0;
    for (int t = 0; t < count; t++) {
        if (named(labels + NUMBERS * t) < 0) continue;
        double iou = likeness(AMP_YOLO_IOU, predicted(r, q, j, i, k), box_of(labels + NUMBERS * t));
        if (iou > best) best = iou, which = t;
    }
    for (int t = 0; t < count && (double)r->d.truth_thresh < 1; t++)
        if (named(labels + NUMBERS * t) >= 0 && t != which && best > 0)
            above(r, likeness(AMP_YOLO_IOU, predicted(r, q, j, i, k), box_of(labels + NUMBERS * t)), best);
    r->sums.any_object += v[4];
    *object = obj * (0 - v[4]);
    if (above(r, best, (double)r->d.ignore_thresh)) {
        for (int c = 0; c < CLASSES; c++) sure |= above(r, v[5 + c], .25);
        if (sure && !r->d.objectness_smooth) *object = 0;
        if (sure && r->d.objectness_smooth && above(r, obj * (best - v[4]), *object))
            *object = obj * (best - v[4]);
    }
    if (!above(r, best, (double)r->d.truth_thresh)) return;
    const float *label = labels + NUMBERS * which;
    *object = obj * ((r->d.objectness_smooth ? best * best : 1) - v[4]);
    learn_class(r, q, label);
    size_t c = 5 + (size_t)learnt(r, label);
    if (r->d.objectness_smooth) r->delta[q + c] = multiplier(r, label) * (best * best - v[c]);
    learn_box(r, q, j, i, k, label);
}

static void apply_label(reference *r, const float *label, int b)
{
    box shape = { 0, 0, (double)label[2], (double)label[3] };
    double x = (double)label[0] * W, y = (double)label[1] * H, best = 0;
    int anchor = 0, i = (int)x, j = (int)y;
    if (named(label) < 0 || x <= -1 || y <= -1 || x >= W || y >= H) return;
    for (int a = 0; a < r->d.total; a++) {
        box of_anchor = { 0, 0, (double)anchors[2 * a] / NET_W, (double)anchors[2 * a + 1] / NET_H };
        double iou = likeness(AMP_YOLO_IOU, of_anchor, shape);
        if (above(r, iou, best)) best = iou, anchor = a;
    }
    for (int k = 0; k < BOXES; k++) {
        int a = r->d.mask[k];
        if (k == 2 && a == r->d.mask[1]) break; /* the first stands for both */
        size_t q = at(b, j, i, k);
        box of_anchor = { 0, 0, (double)anchors[2 * a] / NET_W, (double)anchors[2 * a + 1] / NET_H };
        if (a != anchor
            && !(r->d.iou_thresh < 1
                 && above(r, likeness(r->d.thresh_kind, of_anchor, shape), (double)r->d.iou_thresh)))
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
        r->sums.category += r->out[q + 5 + (size_t)learnt(r, label)];
        r->sums.above_50 += above(r, like, .5);
        r->sums.above_75 += above(r, like, .75);
    }
}

static void average(reference *r, size_t q)
{
    int positive = 0;
    for (size_t c = 5; c < SIZE; c++) positive += r->delta[q + c] > 0;
    for (size_t e = 0; e < 4 && positive > 0 && r->delta[q + 4] != 0; e++) r->delta[q + e] /= positive;
}

/* Squashed numbers are floats, as in Darknet: beyond about 17 they are 1, and below -104 they are 0. */
static reference reference_of(const amp_tensor *x, const float *labels, const amp_yolo_desc *d)
{
    reference r = { .d = *d, .clear = 1 };
    for (size_t e = 0; e < ALL; e++) {
        double v = element(x, e), p = (double)(float)(1 / (1 + exp(-v))), s = (double)d->scale_x_y;
        int kept = d->new_coords ? !d->before_logistic : e % SIZE == 2 || e % SIZE == 3;
        r.out[e] = kept ? v : p;
        if (e % SIZE < 2) r.out[e] = s * r.out[e] - (s - 1) / 2;
        r.slope[e] = (double)d->delta_normalizer * (d->before_logistic ? 1 / (2 + exp(v) + exp(-v)) : 1);
    }
    for (int b = 0; b < IMAGES; b++) {
        const float *of_image = labels + (size_t)b * (size_t)d->truths;
        int found = 0;
        while (found < d->max_boxes && of_image[NUMBERS * found] != 0) ++found;
        for (int j = 0; j < H; j++)
            for (int i = 0; i < W; i++)
                for (int k = 0; k < BOXES; k++) look_at_box(&r, of_image, found, b, j, i, k);
        for (int t = 0; t < found; t++) apply_label(&r, of_image + NUMBERS * t, b);
    }
    for (size_t q = 0; q < ALL && d->iou_thresh < 1; q += SIZE) average(&r, q);
    for (size_t e = 0; e < ALL; e++) r.sums.cost += r.delta[e] * r.delta[e];
    for (size_t e = 0; e < ALL; e++) r.sums.box_cost += e % SIZE < 4 ? r.delta[e] * r.delta[e] : 0;
    return r;
}

/* ---- comparing ---- */

/* Input and labels, drawn until nothing is decided by rounding. */
typedef struct drawn { amp_yolo_desc d; amp_tensor x; float *labels; reference r; } drawn;

static drawn draw(const keys *k, const labels_case *c, int round, amp_dtype dtype)
{
    uint32_t first = 1000 * (uint32_t)(round + 10 * (c - all_labels) + 200 * (k - all_keys));
    drawn w = { .d = desc_of(k), .x = poisoned(dtype, IMAGES, H, W, BOXES * SIZE) };
    w.labels = memory(IMAGES * (size_t)w.d.truths * sizeof(float));
    for (uint32_t seed = first; seed < first + 1000; seed++) {
        int squashed = k->new_coords && !k->before_logistic;
        fill(&w.x, 7 * seed, squashed ? .05f : -2, squashed ? .95f : 1.5f);
        for (size_t e = 0; e < ALL; e++) /* every second box is sure of no class */
            if (e % SIZE >= 5 && e / SIZE % 2)
                set_element(&w.x, e, (float)element(&w.x, e) * (squashed ? .2f : .5f) - (squashed ? 0 : 2));
        if (c->saturated && !squashed) saturate(&w.d, &w.x);
        draw_labels(c, &w.d, w.labels, seed);
        w.r = reference_of(&w.x, w.labels, &w.d);
        if (w.r.clear > 1e-5) return w;
    }
    fail_msg("%s, labels %s: rounding decides", k->name, c->name);
    return w;
}

static void discard(drawn *w)
{
    if (w->d.class_table) release((void *)w->d.class_table);
    release(w->x.data);
    release(w->labels);
}

/* fp32's part of the difference: 1e-5 of the largest delta that a box's numbers have here, for each. */
static void assert_delta(const drawn *w, const amp_tensor *dx, const amp_tensor *old, float scale,
                         const char *name)
{
    char what[160];
    snprintf(what, sizeof what, "%s: dx", name);
    for (size_t q = 0; q < ALL; q += SIZE) {
        double most = 0;
        for (size_t e = 0; e < 4; e++)
            if (isfinite(w->r.delta[q + e])) most = fmax(most, fabs(w->r.delta[q + e]));
        for (size_t e = q; e < q + SIZE; e++) {
            double want = (double)scale * w->r.delta[e] * w->r.slope[e],
                   slack = (e < q + 4 ? 1e-5 * (1 + most) : 0x1p-21) * (double)scale;
            if (w->r.delta[e] == 0 && (e >= q + 4 || most == 0)) slack = 0;
            assert_rounded(dx->dtype, element(dx, e), want + (old ? element(old, e) : 0),
                           slack + 0x1p-21 * fabs(want), what, e);
        }
    }
}

/* Squares: they differ twice as much as the deltas. */
static void assert_cost(double got, double want, const char *what)
{
    if (got == want || fabs(got - want) <= 4e-5 * (1 + fabs(want))) return;
    fail_msg("%s: got %.9g, want %.9g (%s)", what, got, want, variant);
}

static void assert_result(const amp_yolo_result *got, const amp_yolo_result *want)
{
    assert_cost(got->cost, want->cost, "cost");
    assert_cost(got->box_cost, want->box_cost, "box_cost");
    assert_true(got->labels == want->labels && got->above_50 == want->above_50
                && got->above_75 == want->above_75);
    assert_true(got->boxes == want->boxes && got->rewritten == want->rewritten);
    assert_near(got->iou, want->iou, "iou");
    assert_near(got->giou, want->giou, "giou");
    assert_near(got->object, want->object, "object");
    assert_near(got->category, want->category, "category");
    assert_near(got->any_object, want->any_object, "any_object");
}

/* ---- tests ---- */

TEST(yolo_loss_is_alexeyabs)
{
    NEEDS(yolo_loss);
    amp_yolo_result *result = memory(sizeof *result);
    for (size_t k = 0; k < COUNT(all_keys); k++)
        for (size_t c = 0; c < COUNT(all_labels); c++) {
            amp_dtype dtype = all_dtypes[(k + c) % 3];
            int accumulate = (k + c) / 3 % 2;
            drawn w = draw(&all_keys[k], &all_labels[c], 0, dtype);
            amp_tensor dx = filled(dtype, IMAGES, H, W, BOXES * SIZE, 9, -3, 3), old = copy_of(&dx);
            float scale = k % 2 ? 16 : 1;
            char name[128];
            snprintf(name, sizeof name, "%s, labels %s", all_keys[k].name, all_labels[c].name);
            if (!accumulate) memset(dx.data, 0xff, amp_tensor_bytes(&dx));
            memset(result, 0xff, sizeof *result);
            ASSERT_OK(CALL(yolo_loss, &w.x, w.labels, &w.d, scale, &dx, accumulate, result, NULL, e));
            assert_delta(&w, &dx, accumulate ? &old : NULL, scale, name);
            assert_result(result, &w.r.sums);
            discard(&w);
            release(dx.data), release(old.data);
        }
    release(result);
}

TEST(likeness_is_that_of_doubles)
{
    uint32_t random = 5;
    for (int i = 0; i < 400; i++) {
        float l[5], a[5];
        draw_label(l, W, H, CLASSES, &random);
        draw_label(a, W, H, CLASSES, &random);
        if (i % 2) a[0] = l[0] + .1f * l[2], a[1] = l[1] - .2f * l[3];
        if (i % 5 == 0) l[2 + i % 2] = 0;
        if (i % 7 == 0) a[2 + i % 2] = 0;
        for (int kind = AMP_YOLO_IOU; kind <= AMP_YOLO_CIOU; kind++)
            assert_near(
                (double)amp_yolo_likeness((amp_yolo_kind)kind, amp_yolo_label_box(a), amp_yolo_label_box(l)),
                likeness((amp_yolo_kind)kind, box_of(a), box_of(l)), "likeness");
    }
    for (int kind = AMP_YOLO_IOU; kind <= AMP_YOLO_CIOU; kind++) {
        amp_yolo_box empty = { .3f, .2f, 0, 0 };
        assert_true(amp_yolo_likeness((amp_yolo_kind)kind, empty, empty) == 0);
    }
}

/* Its area is NaN, and its IoU 0, as the fork's. */
TEST(a_box_of_no_width_and_endless_height_makes_no_cost_nan)
{
    NEEDS(yolo_loss);
    drawn w = draw(&all_keys[1], &(labels_case){ "one each", 1, one_place, 0, 0 }, 0, AMP_FP32);
    amp_tensor dx = poisoned(AMP_FP32, IMAGES, H, W, BOXES * SIZE);
    amp_yolo_result *result = memory(sizeof *result);
    for (size_t e = 0; e < SIZE * BOXES; e += SIZE) {
        set_element(&w.x, e + 2, -120);
        set_element(&w.x, e + 3, 90);
    }
    ASSERT_OK(CALL(yolo_loss, &w.x, w.labels, &w.d, 1, &dx, 0, result, NULL, e));
    assert_true(result->labels == IMAGES);
    if (!isfinite(result->cost) || !isfinite(result->iou))
        fail_msg("cost %g, IoU %g (%s)", result->cost, result->iou, variant);
    for (size_t e = 0; e < SIZE * BOXES; e++) assert_true(isfinite(element(&dx, e)));
    discard(&w);
    release(dx.data), release(result);
}

/* NULL: there is no library. */
static alexeyab_yolo_function *own_layer(void)
{
    const char *file = getenv("ALEXEYAB_YOLO");
    alexeyab_yolo_function *function = NULL;
    if (!file || access(file, F_OK)) return NULL;
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL),
         *symbol = library ? dlsym(library, "alexeyab_yolo") : NULL;
    if (!symbol) fail_msg("%s", dlerror());
    memcpy(&function, &symbol, sizeof function);
    return function;
}

/* Element e of x, as it lies in the fork's layers. */
static size_t planar(size_t e)
{
    size_t entry = e % SIZE, box_number = e / SIZE, k = box_number % BOXES, cell = box_number / BOXES,
           place = cell % (H * W);
    return ((cell / (H * W) * BOXES + k) * SIZE + entry) * (H * W) + place;
}

/* The layer's cost, but with show_details=0, where it is sums->cost: by the likeness unless the loss is
 * mse. */
static double cost_of(const amp_yolo_desc *d, const amp_yolo_result *sums)
{
    double like = d->loss == AMP_YOLO_GIOU ? sums->giou : sums->iou,
        mean = sums->labels > 0 ? sums->labels : 1;
    if (d->loss == AMP_YOLO_MSE) return sums->cost;
    return (double)d->iou_normalizer * (sums->labels - like) / mean
        + (double)d->obj_normalizer * (sums->cost - sums->box_cost);
}

/* Output, delta, cost and the printed line's numbers, on the same input. */
static void assert_as_the_fork(alexeyab_yolo_function *own, const drawn *w, const char *name)
{
    static float x[ALL], output[ALL], delta[ALL];
    amp_tensor dx = poisoned(AMP_FP32, IMAGES, H, W, BOXES * SIZE),
               y = poisoned(AMP_FP32, IMAGES, H, W, BOXES * SIZE);
    amp_yolo_result *result = memory(sizeof *result);
    y.layout = AMP_NCHW;
    for (size_t e = 0; e < ALL; e++) {
        float v = (float)element(&w->x, e);
        x[planar(e)] = w->d.before_logistic ? 1 / (1 + expf(-v)) : v;
        set_element(&y, planar(e), v);
    }
    alexeyab_found found = own(&w->d, IMAGES, H, W, x, w->labels, output, delta);
    ASSERT_OK(CALL(yolo_activate, &y, &w->d, e));
    ASSERT_OK(CALL(yolo_loss, &w->x, w->labels, &w->d, 1, &dx, 0, result, NULL, e));
    for (size_t q = 0; q < ALL; q += SIZE) {
        double most = 0;
        for (size_t e = q; e < q + 4; e++)
            if (isfinite(delta[planar(e)])) most = fmax(most, fabs((double)delta[planar(e)]));
        for (size_t e = q; e < q + SIZE; e++) {
            double want = (double)delta[planar(e)] * w->r.slope[e], got = element(&dx, e),
                   size = fabs(want) + (e < q + 4 ? most : 0);
            if (got != want && !(fabs(got - want) <= 1e-5 * (1 + size)))
                fail_msg("%s: delta[%zu] is %.9g, the fork's %.9g (%s)", name, e, got, want, variant);
            assert_near(element(&y, planar(e)), (double)output[planar(e)], "output");
        }
    }
    assert_cost(cost_of(&w->d, result), found.cost, "cost");
    double mean = result->labels > 0 ? result->labels : 1,
           others = (double)w->d.obj_normalizer * (result->cost - result->box_cost);
    assert_true(result->boxes == found.boxes && result->rewritten == found.rewritten);
    if (mean != found.count) fail_msg("%s: %g own boxes, the fork has %g", name, result->labels, found.count);
    assert_near(result->iou / mean, found.mean_iou, "the printed IoU");
    if (isfinite(result->cost)) assert_cost(others / IMAGES, found.class_loss, "the printed class_loss");
    assert_cost(result->cost / IMAGES, found.total_loss, "the printed total_loss");
    release(dx.data), release(y.data), release(result);
}

/* Of every third box a side that is 0 in fp32, or too short to part the ends. */
static void shrink(const amp_tensor *x)
{
    for (size_t q = 0; q < ALL; q += 3 * SIZE) set_element(x, q + 2 + q % 2, q % 4 < 2 ? -40 : -120);
}

TEST(yolo_loss_is_that_of_the_forks_own_layer)
{
    NEEDS(yolo_loss);
    NEEDS(yolo_activate);
    alexeyab_yolo_function *own = own_layer();
    if (!own) {
        print_message("not compared: no library in ALEXEYAB_YOLO (tests/alexeyab/yolo.sh makes it)\n");
        skip();
    }
    for (size_t i = 0; i < ROUNDS * COUNT(all_keys) * COUNT(all_labels); i++) {
        const keys *k = &all_keys[i / ROUNDS % COUNT(all_keys)];
        const labels_case *c = &all_labels[i / ROUNDS / COUNT(all_keys)];
        char name[128];
        if (c->beyond) continue;
        drawn w = draw(k, c, (int)(i % ROUNDS), AMP_FP32);
        snprintf(name, sizeof name, "%s, labels %s", k->name, c->name);
        if (i % ROUNDS == 0 && !k->new_coords) shrink(&w.x);
        assert_as_the_fork(own, &w, name);
        discard(&w);
    }
}

/* Numbers that overflow on the way: the fork gives the box no delta then, and a step is not to be skipped for
 * it. */
TEST(a_box_beyond_floats_has_no_delta_of_its_own)
{
    NEEDS(yolo_loss);
    amp_yolo_result *result = memory(sizeof *result);
    for (size_t k = 1; k < 5; k++) {
        drawn w = draw(&all_keys[k], &all_labels[2], 0, AMP_FP32);
        amp_tensor dx = poisoned(AMP_FP32, IMAGES, H, W, BOXES * SIZE);
        for (size_t q = 0; q < ALL; q += SIZE) set_element(&w.x, q + 2, 200);
        ASSERT_OK(CALL(yolo_loss, &w.x, w.labels, &w.d, 1, &dx, 0, result, NULL, e));
        for (size_t e = 0; e < ALL; e++) {
            if (!isfinite(element(&dx, e)))
                fail_msg("%s: delta[%zu] is %g (%s)", all_keys[k].name, e, element(&dx, e), variant);
            if (e % SIZE == 2) assert_true(element(&dx, e) == 0);
        }
        assert_true(isfinite(result->cost) && result->labels > 0);
        discard(&w);
        release(dx.data);
    }
    release(result);
}

/* Where the fork puts 0 in the place of what is inf or NaN. */
TEST(a_number_that_is_not_finite_makes_the_cost_nan)
{
    NEEDS(yolo_loss);
    static const float bad[] = { INFINITY, -INFINITY, NAN };
    amp_yolo_result *result = memory(sizeof *result);
    for (size_t k = 0; k < COUNT(all_keys); k += 3) {
        drawn w = draw(&all_keys[k], &all_labels[2], 0, AMP_FP32);
        for (size_t e = k % 2; e < SIZE * BOXES; e += 2) {
            float was = (float)element(&w.x, e);
            set_element(&w.x, e, bad[e % 3]);
            ASSERT_OK(CALL(yolo_loss, &w.x, w.labels, &w.d, 1, NULL, 0, result, NULL, e));
            if (!isnan(result->cost))
                fail_msg("%s: %g at %zu: cost is %g (%s)", all_keys[k].name, (double)bad[e % 3], e,
                         result->cost, variant);
            set_element(&w.x, e, was);
        }
        discard(&w);
    }
    release(result);
}

TEST(results_do_not_depend_on_the_processors)
{
    NEEDS(yolo_loss);
    amp_yolo_result *result = memory(sizeof *result), want;
    for (size_t k = 5; k < 7; k++) {
        drawn w = draw(&all_keys[k], &all_labels[4], 0, AMP_BF16);
        amp_tensor dx = poisoned(AMP_BF16, IMAGES, H, W, BOXES * SIZE), first = copy_of(&dx);
        for (int processors = 1; processors < 6; processors += 2) {
            machine.set_processors(backend, processors);
            ASSERT_OK(CALL(yolo_loss, &w.x, w.labels, &w.d, 8, processors == 1 ? &first : &dx, 0,
                           result, NULL, e));
            if (processors == 1) want = *result;
            else assert_same(&first, &dx);
            assert_memory_equal(&want, result, sizeof want);
        }
        discard(&w);
        release(dx.data), release(first.data);
    }
    machine.set_processors(backend, 0);
    release(result);
}

static int run(void) { return run_listed_tests(variant, NULL, NULL); }
int main(void) { return for_each_variant(run); }
