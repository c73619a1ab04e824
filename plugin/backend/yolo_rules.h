/* The rules of Darknet's yolo layer for one box, in fp32. All backends share them. The formulas come from
 * Darknet's yolo_layer.c and box.c, in pjreddie's version or in AlexeyAB's version: amp_yolo_desc.rules
 * selects one of the two. amp_yolo_desc also has AlexeyAB's additional keys.
 *
 * A box is number k of the n boxes in a cell. The cell is in column i and row j of a w × h grid. The box's
 * numbers are adjacent: x, y, w, h, objectness, classes. "Squashed" numbers are the layer's output: most of
 * them are the logistic of the input. A label begins with five floats: the center (x, y), width and height of
 * its box, relative to the image, and the class.
 *
 * A box is assigned to a label (it is the label's "own" box) if it is in the cell that contains the label's
 * center, and if its anchor is the one most similar to the label, or has a similarity above iou_thresh.
 * Darknet writes outside its arrays if a label's center is outside the image, or if its class is out of
 * range. Here, a label with its center outside has no box assigned. With pjreddie's rules, a class out of
 * range is ignored; with AlexeyAB's rules, the whole label is ignored.
 *
 * One box may be assigned to two labels. With pjreddie's rules, the second label overwrites the deltas of x,
 * y, w and h; with AlexeyAB's rules, it adds to them. The second label overwrites the objectness's delta, but
 * with objectness_smooth only if this delta is 0. The first label sets the deltas of all classes.
 * A later label sets all of them again only if the delta of one class, the deciding class, is 0; otherwise it
 * sets only the delta of its own class. The deciding class is class 0 with pjreddie's rules, and the later
 * label's class with AlexeyAB's. */
#pragma once

#include <float.h>
#include <limits.h>

#include "activate.h"

enum { AMP_YOLO_BOX = 5 }; /* how many numbers of a box precede its classes: x, y, w, h, objectness */

typedef struct amp_yolo_box { float x, y, w, h; } amp_yolo_box;
typedef struct amp_yolo_place { int i, j, k, w, h; } amp_yolo_place;

/* The boxes assigned to a label. cell: their cell, row·w + column; -1: none. boxes: bit k means box k. */
typedef struct amp_yolo_own { int cell; unsigned boxes; } amp_yolo_own;

/* The labels of one image: `count` of them, `size` floats each. */
typedef struct amp_yolo_labels {
    const float *label;
    const amp_yolo_own *own;
    int count, size;
} amp_yolo_labels;

/* A box's delta while labels are applied one after the other. since: the index of the label that most
 * recently set the deltas of all classes. It is AMP_YOLO_FROM_IOU if label `overlapping` set them because its
 * IoU is above truth_thresh, and AMP_YOLO_NO_LABEL if no label has set them; these deltas are then 0. */
typedef struct amp_yolo_target {
    float delta[AMP_YOLO_BOX];
    float iou;   /* the box's largest IoU with a label; `overlapping` is that label's index */
    float focus; /* the factor of the class deltas that label `since` set (focal loss only) */
    int since, overlapping;
} amp_yolo_target;

enum { AMP_YOLO_FROM_IOU = -1, AMP_YOLO_NO_LABEL = INT_MAX };

AMP_ANYWHERE float amp_yolo_squash(const amp_yolo_desc *d, float x, int entry)
{
    int logistic = d->new_coords ? d->before_logistic : entry != 2 && entry != 3;
    float p = logistic ? amp_activate(x, AMP_LOGISTIC) : x;
    return entry < 2 ? d->scale_x_y * p - .5f * (d->scale_x_y - 1) : p;
}

/* The derivative of the logistic at x. If the preceding convolution squashes x (before_logistic), Darknet
 * multiplies the squashed number's delta by this, but not by scale_x_y. If the yolo layer squashes x, Darknet
 * uses the squashed number's delta unchanged. */
AMP_ANYWHERE float amp_yolo_slope(float x)
{
    return amp_activate(x, AMP_LOGISTIC) * amp_activate(-x, AMP_LOGISTIC);
}

/* ---- two boxes ---- */

AMP_ANYWHERE float amp_yolo_overlap(float a, float a_size, float b, float b_size)
{
    float a_left = a - a_size / 2, b_left = b - b_size / 2, a_right = a + a_size / 2,
        b_right = b + b_size / 2;
    return (a_right < b_right ? a_right : b_right) - (a_left > b_left ? a_left : b_left);
}

AMP_ANYWHERE float amp_yolo_shared(amp_yolo_box a, amp_yolo_box b)
{
    float w = amp_yolo_overlap(a.x, a.w, b.x, b.w), h = amp_yolo_overlap(a.y, a.h, b.y, b.h);
    return w < 0 || h < 0 ? 0 : w * h;
}

/* Returns the IoU; 0 if there is no overlap, or if the quotient would be NaN (boxes that are empty, or that
 * have width 0 and height inf). */
AMP_ANYWHERE float amp_yolo_iou(amp_yolo_box a, amp_yolo_box b)
{
    float shared = amp_yolo_shared(a, b);
    return shared == 0 ? 0 : shared / (a.w * a.h + b.w * b.h - shared);
}

/* A box and a label along one axis. box, label: their lengths. shared: the length of their overlap; if
 * negative, the gap between them. whole: the length of the smallest interval that contains both. *_low,
 * *_high: the derivatives of shared and whole with respect to the box's low end and high end. way: the
 * label's center minus the box's center. */
typedef struct amp_yolo_axis {
    float box, label, shared, shared_low, shared_high, whole, whole_low, whole_high, way;
    int empty; /* 1: both ends of the box are the same float */
} amp_yolo_axis;

AMP_ANYWHERE amp_yolo_axis amp_yolo_axis_of(float at, float size, float label_at, float label_size)
{
    float low = at - size / 2, high = at + size / 2, first = label_at - label_size / 2,
        last = label_at + label_size / 2;
    amp_yolo_axis axis = { high - low, last - first,
                           fminf(high, last) - fmaxf(low, first), (float)-(low > first), (float)(high < last),
                           fmaxf(high, last) - fminf(low, first), (float)-(low < first), (float)(high > last),
                           label_at - at, !(low < high) };
    return axis;
}

#define AMP_YOLO_4_PI_SQUARED .405284735f /* 4/π², the factor of the squared angle in ciou's shape term */

/* For ciou: the angle between the diagonals of the label and the box; 0 if their aspect ratios are equal. */
AMP_ANYWHERE float amp_yolo_other_shape(amp_yolo_box box, amp_yolo_box label)
{
    return atanf(label.w / label.h) - atanf(box.w / box.h);
}

/* The similarity of a box and a label: the IoU, minus the penalty of giou, diou or ciou. */
AMP_ANYWHERE float amp_yolo_likeness(amp_yolo_kind kind, amp_yolo_box a, amp_yolo_box b)
{
    amp_yolo_axis x = amp_yolo_axis_of(a.x, a.w, b.x, b.w), y = amp_yolo_axis_of(a.y, a.h, b.y, b.h);
    float shared = amp_yolo_shared(a, b), both = a.w * a.h + b.w * b.h - shared,
        iou = amp_yolo_iou(a, b), hull = x.whole * y.whole,
        diagonal = x.whole * x.whole + y.whole * y.whole, way = x.way * x.way + y.way * y.way;
    if (kind == AMP_YOLO_GIOU) return hull == 0 ? iou : iou - (hull - both) / hull;
    if ((kind != AMP_YOLO_DIOU && kind != AMP_YOLO_CIOU) || diagonal == 0) return iou;
    if (kind == AMP_YOLO_DIOU) return iou - powf(way / diagonal, .6f);
    float angle = amp_yolo_other_shape(a, b), shape = AMP_YOLO_4_PI_SQUARED * angle * angle;
    return iou - (way / diagonal + shape / (1 - iou + shape + 1e-6f) * shape);
}

/* AlexeyAB's gradient of the similarity along one axis, with respect to the box's center (*middle) and its
 * size (*size). shape: ciou's addition to *size. This gradient differs from the true one:
 *  - *size is twice the true derivative, except for the part that comes from the penalty of diou or ciou.
 *  - With a penalty (giou, diou, ciou), if the boxes do not overlap, only the penalty's gradient counts.
 *  - The weight of ciou's shape term is treated as a constant, and the derivative of the shape term lacks a
 *    divisor. */
AMP_ANYWHERE void amp_yolo_pull(amp_yolo_kind kind, const amp_yolo_axis *axis, const amp_yolo_axis *other,
                                float shape, float *middle, float *size)
{
    float shared = axis->shared * other->shared, hull = axis->whole * other->whole,
        both = axis->box * other->box + axis->label * other->label - shared,
        diagonal = axis->whole * axis->whole + other->whole * other->whole,
        way = axis->way * axis->way + other->way * other->way;
    int apart = axis->shared <= 0 || other->shared <= 0;
    float shared_low = axis->shared_low * other->shared, shared_high = axis->shared_high * other->shared,
        both_low = -other->box - shared_low, both_high = other->box - shared_high;
    float low = both > 0 ? (both * shared_low - shared * both_low) / (both * both) : 0,
        high = both > 0 ? (both * shared_high - shared * both_high) / (both * both) : 0;
    if (axis->empty) low = high;
    if (kind == AMP_YOLO_GIOU) {
        float hull_low = axis->whole_low * other->whole, hull_high = axis->whole_high * other->whole;
        float more_low = (hull * both_low - both * hull_low) / (hull * hull),
            more_high = (hull * both_high - both * hull_high) / (hull * hull);
        low = (apart ? 0 : low) + more_low;
        high = (apart ? 0 : high) + more_high;
    }
    *middle = low + high;
    *size = high - low;
    if (kind != AMP_YOLO_DIOU && kind != AMP_YOLO_CIOU) return;
    float squared = diagonal * diagonal,
        to_middle = (2 * axis->way * diagonal - 2 * axis->whole * (axis->whole_high + axis->whole_low) * way)
            / squared,
        to_size = axis->whole * (axis->whole_high - axis->whole_low) * way / squared + shape;
    *middle = (apart ? 0 : *middle) + to_middle;
    *size = (apart ? 0 : *size) + to_size;
}

/* AlexeyAB's gradient of the similarity with respect to the box's x, y, w and h. */
AMP_ANYWHERE void amp_yolo_gradient(amp_yolo_kind kind, amp_yolo_box box, amp_yolo_box label, float *gradient)
{
    if (box.w == 0) box.w = 1;
    if (box.h == 0) box.h = 1;
    amp_yolo_axis x = amp_yolo_axis_of(box.x, box.w, label.x, label.w),
        y = amp_yolo_axis_of(box.y, box.h, label.y, label.h);
    float turn = 0;
    if (kind == AMP_YOLO_CIOU) {
        float angle = amp_yolo_other_shape(box, label), shape = AMP_YOLO_4_PI_SQUARED * angle * angle,
            shared = x.shared * y.shared, iou = shared / (x.box * y.box + x.label * y.label - shared);
        turn = shape / (1 - iou + shape + 1e-6f) * 2 * AMP_YOLO_4_PI_SQUARED * angle;
    }
    amp_yolo_pull(kind, &x, &y, turn * box.h, &gradient[0], &gradient[2]);
    amp_yolo_pull(kind, &y, &x, -turn * box.w, &gradient[1], &gradient[3]);
}

/* ---- labels ---- */

AMP_ANYWHERE const float *amp_yolo_label(amp_yolo_labels l, int i) { return l.label + (size_t)l.size * i; }

AMP_ANYWHERE amp_yolo_box amp_yolo_label_box(const float *label)
{
    amp_yolo_box box = { label[0], label[1], label[2], label[3] };
    return box;
}

/* The label's class; -1 if it is out of range. */
AMP_ANYWHERE int amp_yolo_named_class(const amp_yolo_desc *d, const float *label)
{
    return label[4] > -1 && label[4] < (float)d->classes ? (int)label[4] : -1;
}

/* The class that a box with this label learns; -1: no class. */
AMP_ANYWHERE int amp_yolo_class(const amp_yolo_desc *d, const float *label)
{
    int named = amp_yolo_named_class(d, label);
    return named >= 0 && d->class_table ? d->class_table[named].learnt : named;
}

AMP_ANYWHERE float amp_yolo_multiplier(const amp_yolo_desc *d, const float *label)
{
    int named = amp_yolo_named_class(d, label);
    return named >= 0 && d->class_table ? d->class_table[named].multiplier : 1;
}

/* Whether the label is used at all: AlexeyAB's rules ignore a label whose class is out of range. */
AMP_ANYWHERE int amp_yolo_counts(const amp_yolo_desc *d, const float *label)
{
    return d->rules == AMP_YOLO_PJREDDIE || amp_yolo_named_class(d, label) >= 0;
}

AMP_ANYWHERE int amp_yolo_owns(amp_yolo_labels l, int i, amp_yolo_place p)
{
    return l.own[i].cell == p.j * p.w + p.i && (l.own[i].boxes >> p.k & 1);
}

/* Returns the row or column of the cell that contains position `at`, which is measured in cells; -1 if it is
 * outside the grid. A position between -1 and 0 is truncated to cell 0. */
AMP_ANYWHERE int amp_yolo_cell(float at, int cells) { return at > -1 && at < (float)cells ? (int)at : -1; }

AMP_ANYWHERE amp_yolo_box amp_yolo_anchor(const amp_yolo_desc *d, int anchor)
{
    amp_yolo_box box = { 0, 0, d->anchors[2 * anchor] / (float)d->net_w,
                         d->anchors[2 * anchor + 1] / (float)d->net_h };
    return box;
}

/* Finds the boxes assigned to the label. If several boxes of a cell have the same anchor, only the first one
 * can be assigned. */
AMP_ANYWHERE amp_yolo_own amp_yolo_own_boxes(const amp_yolo_desc *d, int w, int h, const float *label)
{
    amp_yolo_box shape = { 0, 0, label[2], label[3] };
    int i = amp_yolo_cell(label[0] * (float)w, w), j = amp_yolo_cell(label[1] * (float)h, h), anchor = 0;
    amp_yolo_own own = { i >= 0 && j >= 0 && amp_yolo_counts(d, label) ? j * w + i : -1, 0 };
    unsigned seen = 0;
    float best = 0;
    for (int a = 0; a < d->total; a++) {
        float iou = amp_yolo_iou(amp_yolo_anchor(d, a), shape);
        if (iou > best) best = iou, anchor = a;
    }
    for (int k = 0; k < d->n; k++) {
        int a = d->mask[k];
        if (!(seen >> a & 1)
            && (a == anchor || (d->iou_thresh < 1 && amp_yolo_likeness(d->thresh_kind, amp_yolo_anchor(d, a),
                                                                       shape) > d->iou_thresh)))
            own.boxes |= 1u << k;
        seen |= 1u << a;
    }
    return own;
}

/* ---- boxes ---- */

AMP_ANYWHERE amp_yolo_place amp_yolo_place_of(const amp_yolo_desc *d, int w, int h, int box)
{
    int cell = box / d->n;
    amp_yolo_place place = { cell % w, cell / w, box % d->n, w, h };
    return place;
}

AMP_ANYWHERE float amp_yolo_size(const amp_yolo_desc *d, float squashed, float anchor)
{
    return d->new_coords ? 4 * squashed * squashed * anchor : expf(squashed) * anchor;
}

AMP_ANYWHERE amp_yolo_box amp_yolo_predicted(const amp_yolo_desc *d, amp_yolo_place p, const float *squashed)
{
    amp_yolo_box anchor = amp_yolo_anchor(d, d->mask[p.k]);
    amp_yolo_box box = { ((float)p.i + squashed[0]) / (float)p.w, ((float)p.j + squashed[1]) / (float)p.h,
                         amp_yolo_size(d, squashed[2], anchor.w), amp_yolo_size(d, squashed[3], anchor.h) };
    return box;
}

/* best: a box's largest IoU with any label. label: the first label with this IoU. has_own: 1 if the box is
 * assigned to any label. */
typedef struct amp_yolo_search { float best; int label, has_own; } amp_yolo_search;

/* Compares the box with every `step`-th label from index `first`, so that threads can divide the labels. */
AMP_ANYWHERE amp_yolo_search amp_yolo_look_at_labels(const amp_yolo_desc *d, amp_yolo_labels l,
                                                     amp_yolo_place place, amp_yolo_box predicted, int first,
                                                     int step)
{
    amp_yolo_search s = { 0, 0, 0 };
    for (int t = first; t < l.count; t += step) {
        if (!amp_yolo_counts(d, amp_yolo_label(l, t))) continue;
        float iou = amp_yolo_iou(predicted, amp_yolo_label_box(amp_yolo_label(l, t)));
        if (iou > s.best) s.best = iou, s.label = t;
        s.has_own |= amp_yolo_owns(l, t, place);
    }
    return s;
}

/* Whether the caller must check if any squashed class number of the box is above AMP_YOLO_SURE. With
 * AlexeyAB's rules, a box with an IoU above ignore_thresh learns "no object here" only if none of these
 * numbers is above AMP_YOLO_SURE. */
AMP_ANYWHERE int amp_yolo_asks_classes(const amp_yolo_desc *d, float best)
{
    return d->rules == AMP_YOLO_ALEXEYAB && best > d->ignore_thresh;
}

#define AMP_YOLO_SURE .25f

/* ---- the delta ---- */

/* Sets a box's delta before any label is applied. best: the box's largest IoU with a label; overlapping: that
 * label's index. sure: the result of the check that amp_yolo_asks_classes requires; 1 without a check. */
AMP_ANYWHERE void amp_yolo_begin(amp_yolo_target *t, const amp_yolo_desc *d, const float *squashed,
                                 float best, int overlapping, int sure)
{
    t->delta[0] = t->delta[1] = t->delta[2] = t->delta[3] = 0;
    t->delta[4] = d->obj_normalizer * (0 - squashed[4]);
    if (best > d->ignore_thresh && sure)
        t->delta[4] = d->objectness_smooth ? d->obj_normalizer * (best - squashed[4]) : 0;
    t->iou = best;
    t->focus = 1;
    t->since = AMP_YOLO_NO_LABEL;
    t->overlapping = overlapping;
}

/* Computes the deltas of x, y, w and h for one label, whose box is b. */
AMP_ANYWHERE void amp_yolo_box_delta(const amp_yolo_desc *d, amp_yolo_place p, const float *squashed,
                                     amp_yolo_box predicted, amp_yolo_box b, float weight, float *delta)
{
    amp_yolo_box anchor = amp_yolo_anchor(d, d->mask[p.k]);
    float scale = 2 - b.w * b.h, w = b.w / anchor.w, h = b.h / anchor.h;
    if (d->loss == AMP_YOLO_MSE) {
        delta[0] = scale * (b.x * (float)p.w - (float)p.i - squashed[0]) * weight;
        delta[1] = scale * (b.y * (float)p.h - (float)p.j - squashed[1]) * weight;
        delta[2] = scale * ((d->new_coords ? sqrtf(w / 4) : logf(w)) - squashed[2]) * weight;
        delta[3] = scale * ((d->new_coords ? sqrtf(h / 4) : logf(h)) - squashed[3]) * weight;
        return;
    }
    amp_yolo_gradient(d->loss, predicted, b, delta);
    if (!d->new_coords) delta[2] *= expf(squashed[2]), delta[3] *= expf(squashed[3]);
    for (int e = 0; e < 4; e++) {
        delta[e] *= weight;
        if (!(fabsf(delta[e]) <= FLT_MAX)) delta[e] = 0;
        delta[e] = fminf(fmaxf(delta[e], -d->max_delta), d->max_delta);
    }
}

/* The delta of class `category` after the first l.count labels have been applied. p: the class's
 * output after the logistic. */
AMP_ANYWHERE float amp_yolo_class_delta(const amp_yolo_target *t, const amp_yolo_desc *d, amp_yolo_labels l,
                                        amp_yolo_place place, int category, float p)
{
    if (t->since == AMP_YOLO_NO_LABEL) return 0;
    int from_iou = t->since == AMP_YOLO_FROM_IOU, later = -1;
    const float *first = amp_yolo_label(l, from_iou ? t->overlapping : t->since);
    int wanted = amp_yolo_class(d, first) == category;
    for (int i = from_iou ? 0 : t->since + 1; i < l.count; i++)
        if (amp_yolo_owns(l, i, place) && amp_yolo_class(d, amp_yolo_label(l, i)) == category) later = i;
    float target = (float)(wanted || later >= 0) * (1 - d->label_smooth_eps) + .5f * d->label_smooth_eps;
    if (later >= 0) return (target - p) * amp_yolo_multiplier(d, amp_yolo_label(l, later));
    if (wanted && from_iou && d->objectness_smooth)
        return amp_yolo_multiplier(d, first) * (t->iou * t->iou - p);
    if (d->focal_loss) return ((float)wanted - p) * t->focus;
    return (target - p) * (wanted ? amp_yolo_multiplier(d, first) * d->cls_normalizer : 1);
}

/* The class whose delta decides whether a label sets all classes' deltas; -1: the label has no class. */
AMP_ANYWHERE int amp_yolo_deciding_class(const amp_yolo_desc *d, const float *label)
{
    return d->rules == AMP_YOLO_PJREDDIE ? 0 : amp_yolo_class(d, label);
}

/* Applies one label to a box's delta, after the first l.count labels have been applied. which: the label's
 * index, or AMP_YOLO_FROM_IOU for label t->overlapping. deciding: the deciding class's squashed number. */
AMP_ANYWHERE void amp_yolo_apply(amp_yolo_target *t, const amp_yolo_desc *d, amp_yolo_labels l,
                                 amp_yolo_place place, const float *squashed, amp_yolo_box predicted,
                                 float deciding, int which)
{
    const float *label = amp_yolo_label(l, which < 0 ? t->overlapping : which);
    float multiplier = amp_yolo_multiplier(d, label), delta[4];
    float object = d->objectness_smooth && which < 0 ? t->iou * t->iou : 1,
        object_delta = (which < 0 ? 1 : multiplier) * d->obj_normalizer * (object - squashed[4]);
    amp_yolo_box_delta(d, place, squashed, predicted, amp_yolo_label_box(label),
                       d->iou_normalizer * multiplier, delta);
    for (int e = 0; e < 4; e++)
        t->delta[e] = d->rules == AMP_YOLO_PJREDDIE ? delta[e] : t->delta[e] + delta[e];
    if (!d->objectness_smooth || which < 0 || t->delta[4] == 0) t->delta[4] = object_delta;
    if (amp_yolo_class_delta(t, d, l, place, amp_yolo_deciding_class(d, label), deciding) != 0) return;
    t->since = which;
    if (d->focal_loss) {
        float p = deciding + 1e-15f;
        t->focus = .5f * -(1 - p) * (2 * p * logf(p) + p - 1);
    }
}

/* If iou_thresh lets a box learn several labels, divides the deltas of x, y, w and h by `positive`, the
 * number of classes with a delta above 0. Call it after all labels have been applied. */
AMP_ANYWHERE void amp_yolo_average(amp_yolo_target *t, const amp_yolo_desc *d, int positive)
{
    if (!(d->iou_thresh < 1) || t->delta[4] == 0 || positive < 2) return;
    for (int e = 0; e < 4; e++) t->delta[e] /= (float)positive;
}

/* ---- sums ---- */

/* Adds one pair, a label and a box assigned to it, to the sums. predicted: the box's predicted position and
 * size. object: the box's objectness after the logistic. p: the box's number for the label's class, after the
 * logistic; 0 if the label has no class. */
AMP_ANYWHERE void amp_yolo_count(amp_yolo_result *sums, const amp_yolo_desc *d, amp_yolo_box predicted,
                                 const float *label, float object, float p)
{
    amp_yolo_box box = amp_yolo_label_box(label);
    predicted.w = fminf(predicted.w, 1e9f); /* exp may overflow, and an infinite box has GIoU NaN */
    predicted.h = fminf(predicted.h, 1e9f);
    float iou = d->rules == AMP_YOLO_PJREDDIE ? amp_yolo_iou(predicted, box)
                                              : amp_yolo_likeness(AMP_YOLO_IOU, predicted, box);
    sums->labels += 1;
    sums->iou += (double)iou;
    sums->giou += (double)amp_yolo_likeness(AMP_YOLO_GIOU, predicted, box);
    sums->above_50 += iou > .5f;
    sums->above_75 += iou > .75f;
    sums->object += (double)object;
    sums->category += (double)p;
}
