/* Makes a random batch for measuring speed: see fork_commands.h. */
#include <stdint.h>
#include <string.h>

#include "../program/random.h"
#include "own.h"

/* A random number in [0,1). Does not use rand(), because Darknet's layers reseed it when they are made. */
static float uniform(uint64_t *state)
{
    return (float)(amp_random_mix(*state += AMP_RANDOM_STEP) >> 40) / 16777216.f;
}

static float below(uint64_t *state, int count) { return (float)(int)(uniform(state) * (float)count); }

/* Fills in a random box inside the image. */
static void box_at(float *place, uint64_t *state)
{
    float w = .05f + .45f * uniform(state), h = .05f + .45f * uniform(state);
    place[0] = w / 2 + (1 - w) * uniform(state);
    place[1] = h / 2 + (1 - h) * uniform(state);
    place[2] = w;
    place[3] = h;
}

/* Fills in an image's labels for yolo or region: boxes, each followed by its class. Zeros end the list. A
 * region's box may have more than four coordinates. */
static void fill_boxes(float *truth, int room, const layer *l, uint64_t *state)
{
    int coordinates = l->type == REGION && l->coords > 4 ? l->coords : 4,
        boxes = 1 + (int)(uniform(state) * 10);
    int numbers = coordinates > 4 ? coordinates + 1 : amp_own_label_numbers(l);
    for (int t = 0; t < boxes && numbers * (t + 1) <= room; t++) {
        float *place = truth + numbers * t;
        box_at(place, state);
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
        else if (l->type != DETECTION) fill_boxes(truth, net->truths, l, &state);
    }
}
