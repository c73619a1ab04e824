/* See yolo.h. Includes that fork's yolo_layer.c, found by the compiler's -I, with what it prints caught,
 * without the commands that it runs for wrong labels, and without its threads, which count without locks. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "yolo_layer.h"

#include "activations.h"
#include "blas.h"
#include "box.h"
#include "utils.h"

#include "yolo.h"

static char line[1024];

static int catch_line(FILE *to, const char *format, ...)
{
    va_list arguments;
    (void)to;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    return length;
}

static int drop_line(const char *format, ...) { return (int)strlen(format); }

#define fprintf catch_line
#define printf drop_line
#define system(command) ((void)(command))
#define srand(seed) ((void)(seed))
#define get_current_iteration(net) 0
#define pthread_create(thread, attributes, function, argument) ((function)(argument), 0)
#define pthread_join(thread, result) 0
#include "yolo_layer.c"
#undef fprintf
#undef printf
#undef system
#undef srand
#undef get_current_iteration
#undef pthread_create
#undef pthread_join

static double after(const char *what)
{
    const char *at = strstr(line, what);
    return at ? atof(at + strlen(what)) : 0;
}

static IOU_LOSS kind_of(amp_yolo_kind kind)
{
    static const IOU_LOSS kinds[] = { [AMP_YOLO_MSE] = MSE, [AMP_YOLO_IOU] = IOU, [AMP_YOLO_GIOU] = GIOU,
                                      [AMP_YOLO_DIOU] = DIOU, [AMP_YOLO_CIOU] = CIOU };
    return kinds[kind];
}

/* Class tables in that fork's form: map, and a multiplier for each class that is learnt. */
static void give_classes(layer *l, const amp_yolo_desc *d)
{
    if (!d->class_table) return;
    l->map = calloc((size_t)d->classes, sizeof *l->map);
    l->classes_multipliers = calloc((size_t)d->classes, sizeof *l->classes_multipliers);
    for (int c = 0; c < d->classes; c++) l->classes_multipliers[c] = 1;
    for (int c = 0; c < d->classes; c++) {
        l->map[c] = d->class_table[c].learnt;
        l->classes_multipliers[l->map[c]] = d->class_table[c].multiplier;
    }
}

__attribute__((visibility("default"))) /* the only one */
alexeyab_found alexeyab_yolo(const amp_yolo_desc *d, int batch, int h, int w, const float *x,
                             const float *labels, float *output, float *delta)
{
    int *mask = malloc((size_t)d->n * sizeof *mask), boxes = 0, rewritten = 0;
    memcpy(mask, d->mask, (size_t)d->n * sizeof *mask);
    layer l = make_yolo_layer(batch, w, h, d->n, d->total, mask, d->classes, d->max_boxes);
    memcpy(l.biases, d->anchors, 2 * (size_t)d->total * sizeof *l.biases);
    l.truths = d->truths;
    l.show_details = 1;
    l.iou_loss = kind_of(d->loss), l.iou_thresh_kind = kind_of(d->thresh_kind);
    l.ignore_thresh = d->ignore_thresh, l.truth_thresh = d->truth_thresh, l.iou_thresh = d->iou_thresh;
    l.max_delta = d->max_delta, l.scale_x_y = d->scale_x_y, l.label_smooth_eps = d->label_smooth_eps;
    l.iou_normalizer = d->iou_normalizer, l.obj_normalizer = d->obj_normalizer,
    l.cls_normalizer = d->cls_normalizer;
    l.new_coords = d->new_coords, l.objectness_smooth = d->objectness_smooth, l.focal_loss = d->focal_loss;
    give_classes(&l, d);

    network_state state = { 0 };
    state.net.w = d->net_w, state.net.h = d->net_h;
    state.net.total_bbox = &boxes, state.net.rewritten_bbox = &rewritten;
    state.input = (float *)x, state.truth = (float *)labels, state.train = 1;
    forward_yolo_layer(l, state);

    alexeyab_found found = { *l.cost, after("(IOU: "), after("count: "), after("class_loss = "),
                             after(" iou_loss = "), after("total_loss = ") };
    memcpy(output, l.output, (size_t)batch * (size_t)l.outputs * sizeof *output);
    memcpy(delta, l.delta, (size_t)batch * (size_t)l.outputs * sizeof *delta);
    free(l.map), free(l.classes_multipliers);
    free(l.mask), free(l.cost), free(l.biases), free(l.bias_updates), free(l.labels), free(l.class_ids);
    free(l.delta), free(l.output);
    return found;
}
