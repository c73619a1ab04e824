/* Makes a random batch for measuring speed: see fork_commands.h. */
#include <stdint.h>
#include <string.h>

#include "../../backend/yolo_rules.h"
#include "../program/random.h"
#include "own.h"

/* A random number in [0,1). Does not use rand(), because Darknet's layers reseed it when they are made. */
static float uniform(uint64_t *state)
{
    return (float)(amp_random_mix(*state += AMP_RANDOM_STEP) >> 40) / 16777216.f;
}

static float below(uint64_t *state, int count) { return (float)(int)(uniform(state) * (float)count); }

/* The IoU of a box with anchor k of a yolo layer, if both have the same centre. */
static float overlap(const network *net, const layer *l, int k, float w, float h)
{
    float anchor_w = l->biases[2 * k] / (float)net->w, anchor_h = l->biases[2 * k + 1] / (float)net->h;
    return amp_yolo_iou((amp_yolo_box){ 0, 0, w, h }, (amp_yolo_box){ 0, 0, anchor_w, anchor_h });
}

static int are_alike(const layer *l, int j, int k)
{
    return l->biases[2 * j] == l->biases[2 * k] && l->biases[2 * j + 1] == l->biases[2 * k + 1];
}

/* Whether rounding may decide which anchor of a yolo layer fits a box best. Then Darknet's code and AMP's may
 * choose different anchors, and a comparison of the two finds a difference that is not a fault. For example,
 * a box that is larger than both of the anchors 12x14 and 14x12 fits them equally well. */
static int is_undecided(const network *net, const layer *l, float w, float h)
{
    int best = 0, undecided = 0;
    for (int k = 1; k < l->total; k++)
        if (overlap(net, l, k, w, h) > overlap(net, l, best, w, h)) best = k;
    float limit = .9999f * overlap(net, l, best, w, h);
    for (int k = 0; k < l->total; k++)
        undecided |= !are_alike(l, k, best) && overlap(net, l, k, w, h) >= limit;
    return undecided;
}

static int any_is_undecided(const network *net, float w, float h)
{
    int undecided = 0;
    for (int i = 0; i < net->n; i++)
        undecided |= net->layers[i].type == YOLO && is_undecided(net, &net->layers[i], w, h);
    return undecided;
}

/* Fills in x, y, w and h of a random box inside the image. Returns 0 if it finds no size for which each yolo
 * layer has a single best anchor. Each try is smaller than the one before, because anchors that fit equally
 * well may all be smaller than the boxes tried so far. */
static int box_at(float *place, const network *net, uint64_t *state)
{
    for (float size = 1; size > 1e-4f; size *= .9f) {
        float w = size * (.05f + .45f * uniform(state)), h = size * (.05f + .45f * uniform(state));
        if (any_is_undecided(net, w, h)) continue;
        place[0] = w / 2 + (1 - w) * uniform(state);
        place[1] = h / 2 + (1 - h) * uniform(state);
        place[2] = w;
        place[3] = h;
        return 1;
    }
    return 0;
}

/* Fills in an image's labels for yolo or region: a list of boxes, each followed by its class. The zeros after
 * them end the list. A region's box may have more than four coordinates. */
static void fill_boxes(float *truth, const network *net, const layer *l, uint64_t *state)
{
    int coordinates = l->type == REGION && l->coords > 4 ? l->coords : 4,
        boxes = 1 + (int)(uniform(state) * 10);
    int numbers = coordinates > 4 ? coordinates + 1 : amp_own_label_numbers(l);
    for (int t = 0; t < boxes && numbers * (t + 1) <= net->truths; t++) {
        float *place = truth + numbers * t;
        if (!box_at(place, net, state)) return;
        for (int k = 4; k < coordinates; k++) place[k] = uniform(state);
        place[coordinates] = below(state, l->classes);
    }
}

static const layer *labelled_layer(const network *net)
{
    for (int i = net->n - 1; i >= 0; i--) {
        LAYER_TYPE type = net->layers[i].type;
        if (type == DETECTION || type == ISEG || amp_own_finds_boxes(&net->layers[i])) return &net->layers[i];
    }
    return NULL;
}

static void settle_statistics(network *net)
{
    for (int i = 0; i < net->n; i++) {
        layer *l = &net->layers[i];
        for (int c = 0; l->rolling_variance && c < l->out_c; c++) l->rolling_variance[c] = 1;
#ifdef GPU
        if (l->rolling_variance && net->gpu_index >= 0)
            cuda_push_array(l->rolling_variance_gpu, l->rolling_variance, (size_t)l->out_c);
#endif
    }
}

void amp_fork_fill_random_batch(struct network *net, unsigned seed)
{
    uint64_t state = seed;
    settle_statistics(net);
    size_t inputs = (size_t)net->inputs * (size_t)net->batch;
    for (size_t i = 0; i < inputs; i++) net->input[i] = uniform(&state);
    if (!net->truth || net->truths < 1) return;
    memset(net->truth, 0, (size_t)net->truths * (size_t)net->batch * sizeof *net->truth);
    const layer *l = labelled_layer(net);
    for (int b = 0; b < net->batch; b++) {
        float *truth = net->truth + (size_t)b * (size_t)net->truths;
        if (!l) truth[(int)below(&state, net->truths)] = 1;
        else if (l->type == ISEG) truth[0] = -1; /* a class below 0 ends its list of objects */
        else if (l->type != DETECTION) fill_boxes(truth, net, l, &state);
    }
}
