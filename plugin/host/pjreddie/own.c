/* What only pjreddie's Darknet has, or does differently from other forks: see ../darknet/own.h. */
#include "../darknet/room.h"

#include <math.h>
#include <string.h>

#include "../program/memory.h"
#include "deconvolutional_layer.h"
#include "network.h"
#include "parser.h"
#include "utils.h"

const char amp_fork_name[] = "pjreddie's; patches for its commit 61c9d02e";
const char amp_fork_log_option[] = "-log";

/* ---- what other forks have, and this one does not: see ../darknet/own.h and ../fork.h ---- */

int amp_fork_averages(const network *net, int only_begun, amp_average *averages) { return 0; }
void amp_own_complete(network *net) {}
void amp_own_free_internals(layer *l, int on_gpu) {}
void amp_own_end_loading(load_args *args) {}
void amp_own_fix_logistics(network *net) {}

/* ---- a network ---- */

int amp_own_size_step(const network *net) { return 32; }

/* train_detector resizes if the last layer has random=1, train_classifier if [net] has random=1. */
void amp_own_largest_size(const network *net, int *w, int *h)
{
    *w = *h = net->layers[net->n - 1].random ? 608 : 448;
}

/* If there is no memory for an array that grows with the batch, darknet_amp_calloc returns NULL and does not
 * end the program, because most of these arrays are freed as soon as their layer is made. This function
 * checks the others: the outputs of Darknet's own layers, the images and the labels. */
amp_status amp_own_check(const network *net, amp_error *error)
{
    if (darknet_amp_draws_nothing) return AMP_OK; /* made only for inspection */
    for (int i = 0; i < net->n; i++) {
        const layer *l = &net->layers[i];
        if (l->output || l->outputs < 1 || amp_host_is_native(l) || amp_own_borrows_buffers(l)) continue;
        return amp_fail(error, AMP_NO_MEMORY, "layer %d [%s]: no memory for its fp32 output; use more "
                        "subdivisions", i, amp_host_type_name(l->type));
    }
    if ((net->input || net->inputs < 1) && (net->truth || net->truths < 1)) return AMP_OK;
    amp_available_memory memory = amp_host_available_memory();
    double bytes = ((double)net->inputs + net->truths) * net->batch * sizeof(float);
    return amp_fail(error, AMP_NO_MEMORY, "amp: not enough memory: the images of a pass alone take %.0f MiB, "
                                          "but there are %.0f MiB of %s; use more subdivisions",
                    bytes / 0x1p20, (double)memory.bytes / 0x1p20, memory.what);
}

/* ---- memory ---- */

int amp_own_borrows_buffers(const layer *l) { return l->type == DROPOUT; }

void amp_own_keep_deltas(network *net)
{
    amp_own_part parts[AMP_OWN_MOST_PARTS];
    for (int i = 0; i < net->n; i++) {
        layer *l = &net->layers[i];
        l->amp_unclipped = 1;
        for (int k = amp_host_parts(l, parts) - 1; k >= 0; k--) parts[k].part->amp_unclipped = 1;
        if (l->type == CONVOLUTIONAL) l->smooth = 0; /* other layers use smooth= for something else */
    }
}

int amp_own_resize(layer *l, int w, int h)
{
    if (l->type != DECONVOLUTIONAL) return 0;
    resize_deconvolutional_layer(l, h, w);
    return 1;
}

/* ---- counters and losses ---- */

amp_counters amp_fork_counters(const struct network *net)
{
    return (amp_counters){ .seen = *net->seen, .t = *net->t };
}

void amp_fork_set_counters(struct network *net, amp_counters counters)
{
    *net->seen = counters.seen;
    *net->t = counters.t;
}

/* If no label belongs to this layer, the means are 0 / 0. They are printed as Darknet prints them. */
void amp_own_print_yolo(network *net, int index, const amp_yolo_result *r)
{
    const layer *l = &net->layers[index];
    float count = (float)r->labels, boxes = (float)l->w * (float)l->h * (float)l->n * (float)l->batch;
    *l->cost = (float)r->cost;
    calc_network_cost(net); /* amp_own_end_forward used this layer's previous cost */
    printf("Region %d Avg IOU: %f, Class: %f, Obj: %f, No Obj: %f, .5R: %f, .75R: %f,  count: %d\n", index,
           (float)r->iou / count, (float)r->category / count, (float)r->object / count,
           (float)r->any_object / boxes, (float)r->above_50 / count, (float)r->above_75 / count,
           (int)r->labels);
}

/* In training, a yolo as the last layer has no output, so net->output is NULL; nothing reads it. */
void amp_own_end_forward(network *net, int output_layer)
{
    net->output = net->layers[output_layer].output;
    calc_network_cost(net);
}

/* ---- Darknet's functions ---- */

network *amp_own_parse(char *cfg) { return parse_network_cfg(cfg); }

/* Also frees what Darknet's free_network forgets. */
void amp_own_free(network *net)
{
    void *forgotten[] = { net->seen, net->t, net->cost };
    free_network(net);
    for (size_t i = 0; i < sizeof forgotten / sizeof *forgotten; i++) free(forgotten[i]);
}

void amp_own_forward(network *net) { forward_network(net); }
void amp_own_backward(network *net) { backward_network(net); }
void amp_own_update(network *net) { update_network(net); }
float amp_fork_cost(const network *net) { return *net->cost; }

image amp_own_center_crop(image im, int w, int h) { return center_crop_image(im, w, h); }

amp_image_fit amp_fork_detector_fit(const struct network *net) { return AMP_FIT_LETTERBOX; }

detection *amp_own_boxes(network *net, const int size[2], float least, float hierarchy, float suppression,
                         int *count)
{
    detection *boxes = get_network_boxes(net, size[0], size[1], least, hierarchy, 0, 1, count);
    do_nms_sort(boxes, *count, net->layers[net->n - 1].classes, suppression);
    return boxes;
}

void amp_own_sort_classes(float *probabilities, network *net)
{
    hierarchy_predictions(probabilities, net->outputs, net->hierarchy, 1, 1);
}

/* ---- loading ---- */

void amp_own_detector_args(network *net, const layer *last, load_args *args)
{
    *args = get_base_args(net);
    args->coords = last->coords;
    args->num_boxes = last->max_boxes;
}

void amp_own_classifier_args(network *net, load_args *args)
{
    *args = get_base_args(net);
    args->center = 0; /* as in train_classifier */
    args->min = (int)(net->min_ratio * (float)net->w);
    args->max = (int)(net->max_ratio * (float)net->w);
}

/* Returns the size below which photos must not be reduced. load_data_detection fits a photo into the input;
 * load_data_augment resizes a photo's shorter side to at most max_crop. */
amp_photo_use amp_fork_photo_use(const network *net, int classifier)
{
    amp_view v = amp_fork_view(net);
    double side = net->max_ratio * fmax(v.largest_w, v.largest_h) * net->aspect * net->aspect;
    if (classifier) return (amp_photo_use){ .w = side, .h = side, .jitter = -1 };
    return (amp_photo_use){ .w = v.largest_w, .h = v.largest_h, .jitter = net->layers[net->n - 1].jitter };
}

/* ---- more of Darknet's functions ---- */

int amp_fork_knows_map(void) { return 0; }
const char *amp_fork_fault(const struct network *net, char text[256]) { return NULL; }
int amp_fork_snapshot_follows_backup(long step)
{
    return step > 0 && (step % 10000 == 0 || (step < 1000 && step % 100 == 0));
}
const char *const amp_fork_dont_show = NULL;

int amp_fork_drops_returns(void) { return 0; }

/* The options of run_detector, run_classifier and main (-i and -nogpu). */
const amp_fork_option amp_fork_options[] = {
    { "-i", 1, 1, 1 }, { "-nogpu", 0, 1, 1 }, { "-gpus", 1, 1, 1 }, { "-clear", 0, 1, 1 },
    { "-c", 1, 1, 1 }, { "-t", 1, 0, 1 }, { "-prefix", 1, 1, 0 }, { "-thresh", 1, 1, 0 },
    { "-hier", 1, 1, 0 }, { "-s", 1, 1, 0 }, { "-avg", 1, 1, 0 }, { "-out", 1, 1, 0 }, { "-w", 1, 1, 0 },
    { "-h", 1, 1, 0 }, { "-fps", 1, 1, 0 }, { "-fullscreen", 0, 1, 0 }, { 0 } };

const char amp_fork_train_list[] = "data/train.list";
const char amp_fork_classifier_end[] = "";
const size_t amp_fork_chart_bytes = 0;
const char amp_fork_names[] = "";
const char amp_fork_label_place[] =
    "labels in labels/ for images in images/, JPEGImages/ or raw/, and beside the image for all others";
const char amp_fork_label_images[] = ".jpg, .png, .JPG, .JPEG";
void amp_fork_label_path(const char *image, char *path)
{
    static char *const replacements[][2] = { /* as in fill_truth_detection (data.c) */
        { "images", "labels" }, { "JPEGImages", "labels" }, { "raw", "labels" },
        { ".jpg", ".txt" }, { ".png", ".txt" }, { ".JPG", ".txt" }, { ".JPEG", ".txt" } };
    char before[AMP_FORK_PATH];
    strcpy(path, image);
    for (size_t i = 0; i < sizeof replacements / sizeof *replacements; i++) {
        strcpy(before, path);
        find_replace(before, replacements[i][0], replacements[i][1], path);
    }
}
