/* What the tests of yolo's loss share: heads and labels to draw, and boxes in double. */
#ifndef YOLO_CASES_H
#define YOLO_CASES_H

#include "kernel_cases.h"

enum { LABEL = 5, MOST_LABELS = 90, NET_W = 224, NET_H = 160 };

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

static inline double iou_of(box a, box b)
{
    double w = overlap(a.x, a.w, b.x, b.w), h = overlap(a.y, a.h, b.y, b.h),
           shared = w < 0 || h < 0 ? 0 : w * h;
    return shared / (a.w * a.h + b.w * b.h - shared);
}

/* A label anywhere in an image of w × h cells, clear of the cells' borders. */
static inline void draw_label(float *label, int w, int h, int classes, uint32_t *random)
{
    label[0] = ((float)(int)(uniform(random) * (float)w) + .1f + .8f * uniform(random)) / (float)w;
    label[1] = ((float)(int)(uniform(random) * (float)h) + .1f + .8f * uniform(random)) / (float)h;
    label[2] = .02f + .7f * uniform(random) * uniform(random);
    label[3] = .02f + .7f * uniform(random) * uniform(random);
    label[4] = (float)(int)(uniform(random) * (float)classes);
}

/* Label i of those that one box learns, all of one place and of nearly one size. */
static inline void draw_in_one_place(float *label, int w, int h, int i)
{
    label[0] = .5f / (float)w + .01f * (float)i / (float)w;
    label[1] = .4f / (float)h;
    label[2] = 60.f / NET_W + .001f * (float)i;
    label[3] = 25.f / NET_H;
}

static inline void assert_near(double got, double want, const char *what)
{
    if (got == want || fabs(got - want) <= 1e-5 * (1 + fabs(want))) return;
    fail_msg("%s: got %.9g, want %.9g (%s)", what, got, want, variant);
}

#endif
