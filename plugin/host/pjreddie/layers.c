/* How this fork's layers are described: the tables for native.c (types, activations, and the options of
 * struct layer), and what else a description needs to know of a layer. See ../darknet/own.h. */
#include "../darknet/layer_tables.h"

/* ---- tables ---- */

SETTINGS(convolution_settings, convolution, .filters = l->n, .size = l->size, .stride = l->stride,
         .pad = l->pad, .groups = l->groups > 0 ? l->groups : 1)
SETTINGS(shortcut_settings, shortcut, .alpha = l->alpha, .beta = l->beta)
SETTINGS(route_settings, route, .groups = 1)
SETTINGS(reorg_settings, reorg, .stride = l->stride, .reverse = l->reverse != 0, .flatten = l->flatten,
         .extra = l->extra)

const amp_own_type amp_own_types[] = {
    TYPES_OF_BOTH_FORKS
    [CONVOLUTIONAL] = NATIVE("convolutional", amp_convolutional_ops, convolution_settings),
    [DECONVOLUTIONAL] = NATIVE("deconvolutional", amp_deconvolutional_ops, convolution_settings),
    [ROUTE] = NATIVE("route", amp_route_ops, route_settings),
    [SHORTCUT] = NATIVE("shortcut", amp_shortcut_ops, shortcut_settings),
    [REORG] = NATIVE("reorg", amp_reorg_ops, reorg_settings),
    [L2NORM] = OWN("l2norm"),
    [ISEG] = LOSS("iseg"),
    [LOGXENT] = LOSS("logistic"),
};
const size_t amp_own_type_count = ROWS(amp_own_types);

const amp_activation amp_own_activations[] = {
    ACTIVATIONS_OF_BOTH_FORKS
};
const size_t amp_own_activation_count = ROWS(amp_own_activations);

/* The options in struct layer. The test e2e_source_tree lists the struct's other fields: the type, shapes,
 * and what a layer's functions allocate and fill. */
const amp_own_option amp_own_options[] = {
    OPTIONS_OF_BOTH_FORKS
    OPTION(activation, ACTIVATED), OPTION(batch_normalize, NORMALIZED), OPTION(groups, BIT(CONVOLUTIONAL)),
    OPTION(size, WINDOWS), OPTION(stride, WINDOWS | BIT(UPSAMPLE) | BIT(REORG)), OPTION(pad, WINDOWS),
    OPTION(reverse, BIT(REORG)), OPTION(flatten, BIT(REORG)), OPTION(extra, BIT(REORG)),
    OPTION(index, BIT(SHORTCUT)), OPTION(alpha, BIT(SHORTCUT)), OPTION(beta, BIT(SHORTCUT)),
    OPTION(probability, BIT(DROPOUT)), OPTION(scale, BIT(DROPOUT) | BIT(UPSAMPLE)),
    OPTION(flipped, BIT(CONVOLUTIONAL)), /* how a .weights file stores the weights */
    OPTION(onlyforward, ALL & ~BIT(YOLO)), /* only losses use it */
    OPTION(classes, BIT(YOLO)), OPTION(mask, BIT(YOLO)), OPTION(total, BIT(YOLO)),
    OPTION(max_boxes, BIT(YOLO)), OPTION(jitter, BIT(YOLO)), OPTION(random, BIT(YOLO)),
    OPTION(ignore_thresh, BIT(YOLO)), OPTION(truth_thresh, BIT(YOLO)),
    OPTION(map, NONE), OPTION(cost_type, NONE), OPTION(steps, NONE), OPTION(angle, NONE)
};
const size_t amp_own_option_count = ROWS(amp_own_options);

const char *amp_own_unfit(const layer *l) { return NULL; }

/* ---- facts about a layer ---- */

int amp_own_far_inputs(const layer *l, const int **layers)
{
    *layers = l->type == ROUTE ? l->input_layers : &l->index;
    return l->type == ROUTE ? l->n : l->type == SHORTCUT;
}

void amp_own_describe(const network *net, int index, amp_network_desc *out, amp_layer_desc *d) {}

int amp_own_finds_boxes(const layer *l) { return l->type == YOLO || l->type == REGION; }
int amp_own_label_numbers(const layer *l) { return 5; }

/* ---- what other forks have, and this one does not: see ../darknet/own.h and ../fork.h ---- */

int amp_own_shares_weights(const layer *l) { return 0; }
int amp_own_is_frozen(const layer *l) { return 0; }
size_t amp_own_stock_floats(const layer *l, int batch, int on_gpu) { return 0; }
int amp_fork_frozen(const struct network *net) { return 0; }
const char *amp_fork_held(struct network *net) { return NULL; }
