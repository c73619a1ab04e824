/* The rules of Darknet's yolo layer for one box, for every backend: yolo_layer.c and box.c of pjreddie, in
 * fp32.
 *
 * A box is number k of the n in the cell at column i of row j of a w × h grid; its numbers lie side by side:
 * x, y, w, h, objectness, classes. "Squashed" numbers have gone through the logistic, all but w and h. A
 * label is five floats: the box's middle, width and height, relative to the image, and the class. A box is a
 * label's own if its cell holds the label's middle and its anchor, of all anchors, is the one most like the
 * label. Where stock would write outside of its arrays (a middle outside of the image, a class that the layer
 * does not have) such a label is no box's own, and such a class is none. */
#ifndef AMP_BACKEND_YOLO_RULES_H
#define AMP_BACKEND_YOLO_RULES_H

#include <limits.h>

#include "activate.h"

enum { AMP_YOLO_BOX = 5, AMP_YOLO_LABEL = 5 }; /* numbers of a box before its classes, of a label */

typedef struct amp_yolo_box { float x, y, w, h; } amp_yolo_box;
typedef struct amp_yolo_place { int i, j, k, w, h; } amp_yolo_place;

/* A box's delta while labels are applied to it one after the other. A class's is 1 - p if it is among those
 * of the labels from `since` on, else 0 - p; NO_LABEL: all classes' are 0. FROM_IOU: the first is the label
 * that overlaps it beyond truth_thresh. */
typedef struct amp_yolo_target {
    float delta[AMP_YOLO_BOX];
    float first_class; /* the delta of class 0: where it is not 0, a further label leaves the other classes
                          alone */
    int since, overlapping;
} amp_yolo_target;

enum { AMP_YOLO_FROM_IOU = -1, AMP_YOLO_NO_LABEL = INT_MAX };

/* The labels of one image: `count` of them, and which box of the image is whose own, or -1. */
typedef struct amp_yolo_labels {
    const float *label;
    const int *own;
    int count;
} amp_yolo_labels;

AMP_ACTIVATE float amp_yolo_squash(float x, int entry)
{
    return entry == 2 || entry == 3 ? x : amp_activate(x, AMP_LOGISTIC);
}

AMP_ACTIVATE float amp_yolo_overlap(float a, float a_size, float b, float b_size)
{
    float a_left = a - a_size / 2, b_left = b - b_size / 2, a_right = a + a_size / 2,
        b_right = b + b_size / 2;
    return (a_right < b_right ? a_right : b_right) - (a_left > b_left ? a_left : b_left);
}

/* NaN where both are empty. */
AMP_ACTIVATE float amp_yolo_iou(amp_yolo_box a, amp_yolo_box b)
{
    float w = amp_yolo_overlap(a.x, a.w, b.x, b.w), h = amp_yolo_overlap(a.y, a.h, b.y, b.h);
    float shared = w < 0 || h < 0 ? 0 : w * h;
    return shared / (a.w * a.h + b.w * b.h - shared);
}

AMP_ACTIVATE amp_yolo_box amp_yolo_label_box(const float *label)
{
    amp_yolo_box box = { label[0], label[1], label[2], label[3] };
    return box;
}

/* -1: none that the layer has. */
AMP_ACTIVATE int amp_yolo_class(const amp_yolo_desc *d, const float *label)
{
    return label[4] > -1 && label[4] < (float)d->classes ? (int)label[4] : -1;
}

/* Cut off towards 0, as C does; -1 outside of the grid. */
AMP_ACTIVATE int amp_yolo_cell(float at, int cells) { return at > -1 && at < (float)cells ? (int)at : -1; }

AMP_ACTIVATE amp_yolo_box amp_yolo_anchor(const amp_yolo_desc *d, int anchor)
{
    amp_yolo_box box = { 0, 0, d->anchors[2 * anchor] / (float)d->net_w,
                         d->anchors[2 * anchor + 1] / (float)d->net_h };
    return box;
}

/* Which box of its image, counted as they lie in memory, is the label's own; -1: none of this layer. */
AMP_ACTIVATE int amp_yolo_own_box(const amp_yolo_desc *d, int w, int h, const float *label)
{
    amp_yolo_box shape = { 0, 0, label[2], label[3] };
    int i = amp_yolo_cell(label[0] * (float)w, w), j = amp_yolo_cell(label[1] * (float)h, h), anchor = 0;
    float best = 0;
    for (int a = 0; a < d->total; ++a) {
        float iou = amp_yolo_iou(amp_yolo_anchor(d, a), shape);
        if (iou > best) best = iou, anchor = a;
    }
    for (int k = 0; i >= 0 && j >= 0 && k < d->n; ++k)
        if (d->mask[k] == anchor) return (j * w + i) * d->n + k;
    return -1;
}

AMP_ACTIVATE amp_yolo_place amp_yolo_place_of(const amp_yolo_desc *d, int w, int h, int box)
{
    int cell = box / d->n;
    amp_yolo_place place = { cell % w, cell / w, box % d->n, w, h };
    return place;
}

AMP_ACTIVATE amp_yolo_box amp_yolo_predicted(const amp_yolo_desc *d, amp_yolo_place p, const float *squashed)
{
    amp_yolo_box anchor = amp_yolo_anchor(d, d->mask[p.k]);
    amp_yolo_box box = { ((float)p.i + squashed[0]) / (float)p.w, ((float)p.j + squashed[1]) / (float)p.h,
                         expf(squashed[2]) * anchor.w, expf(squashed[3]) * anchor.h };
    return box;
}

/* ---- the delta ---- */

/* Before any label of its own: best is the largest IoU with a label. */
AMP_ACTIVATE void amp_yolo_begin(amp_yolo_target *t, const amp_yolo_desc *d, const float *squashed,
                                 float best)
{
    t->delta[0] = t->delta[1] = t->delta[2] = t->delta[3] = 0;
    t->delta[4] = best > d->ignore_thresh ? 0 : 0 - squashed[4];
    t->first_class = 0;
    t->since = AMP_YOLO_NO_LABEL;
    t->overlapping = 0;
}

/* which: the label's number, or FROM_IOU. first: the squashed number of class 0. */
AMP_ACTIVATE void amp_yolo_apply(amp_yolo_target *t, const amp_yolo_desc *d, amp_yolo_place p,
                                 const float *squashed, float first, const float *label, int which)
{
    amp_yolo_box b = amp_yolo_label_box(label), anchor = amp_yolo_anchor(d, d->mask[p.k]);
    float scale = 2 - b.w * b.h;
    int category = amp_yolo_class(d, label);
    t->delta[0] = scale * (b.x * (float)p.w - (float)p.i - squashed[0]);
    t->delta[1] = scale * (b.y * (float)p.h - (float)p.j - squashed[1]);
    t->delta[2] = scale * (logf(b.w / anchor.w) - squashed[2]);
    t->delta[3] = scale * (logf(b.h / anchor.h) - squashed[3]);
    t->delta[4] = 1 - squashed[4];
    if (t->first_class != 0) {
        if (category == 0) t->first_class = 1 - first;
    } else {
        t->first_class = (float)(category == 0) - first;
        t->since = which;
    }
}

/* The delta of a class, whose squashed number is p, in box number `box` of its image. */
AMP_ACTIVATE float amp_yolo_class_delta(const amp_yolo_target *t, const amp_yolo_desc *d, amp_yolo_labels l,
                                        int box, int category, float p)
{
    int wanted = t->since == AMP_YOLO_FROM_IOU
        && amp_yolo_class(d, l.label + AMP_YOLO_LABEL * t->overlapping) == category;
    if (t->since == AMP_YOLO_NO_LABEL) return 0;
    for (int i = t->since < 0 ? 0 : t->since; i < l.count; ++i)
        wanted |= l.own[i] == box && amp_yolo_class(d, l.label + AMP_YOLO_LABEL * i) == category;
    return (float)wanted - p;
}

/* What a label of the box's own adds to the sums; p: the squashed number of its class, 0 if it has none. */
AMP_ACTIVATE void amp_yolo_count(amp_yolo_result *sums, amp_yolo_box predicted, const float *label,
                                 float object, float p)
{
    float iou = amp_yolo_iou(predicted, amp_yolo_label_box(label));
    sums->labels += 1;
    sums->iou += (double)iou;
    sums->above_50 += iou > .5f;
    sums->above_75 += iou > .75f;
    sums->object += (double)object;
    sums->category += (double)p;
}

#endif
