/* How these forks' layers are described: the tables for native.c (types, activations, and the options of
 * struct layer), and what else a description needs to know of a layer. See ../darknet/own.h. */
#include "../darknet/layer_tables.h"
#include "../darknet/room.h"

/* ---- tables ---- */

SETTINGS(convolution_settings, convolution, .filters = l->n, .size = l->size, .stride = l->stride_y,
         .stride_x = l->stride_x, .dilation = l->dilation, .pad = l->pad * l->dilation,
         .groups = l->groups > 0 ? l->groups : 1)
SETTINGS(shortcut_settings, shortcut, .alpha = 1, .beta = 1)
SETTINGS(route_settings, route, .groups = l->groups > 0 ? l->groups : 1, .group_id = l->group_id)
SETTINGS(reorg_settings, reorg, .stride = l->stride, .reverse = l->reverse != 0, .flatten = l->flatten)
static void linear_settings(const layer *l, amp_layer_desc *d) { d->activation = AMP_LINEAR; }

const amp_own_type amp_own_types[] = {
    TYPES_OF_BOTH_FORKS
    [CONVOLUTIONAL] = NATIVE("convolutional", amp_convolutional_ops, convolution_settings),
    [ROUTE] = NATIVE("route", amp_route_ops, route_settings),
    [SHORTCUT] = NATIVE("shortcut", amp_shortcut_ops, shortcut_settings),
    [EMPTY] = NATIVE("empty", amp_activation_ops, linear_settings),
    [REORG_OLD] = NATIVE("reorg", amp_reorg_ops, reorg_settings),
    [SCALE_CHANNELS] = NATIVE("scale_channels", amp_multiply_ops, NULL),
    [SAM] = NATIVE("sam", amp_multiply_ops, NULL),
    [REORG] = OWN("reorg3d"),
    [LOCAL_AVGPOOL] = OWN("local_avgpool"),
    [CONV_LSTM] = OWN("conv_lstm"),
    [HISTORY] = OWN("history"),
    [IMPLICIT] = OWN("implicit"),
    [GAUSSIAN_YOLO] = LOSS("Gaussian_yolo"),
    [CONTRASTIVE] = LOSS("contrastive"),
};
const size_t amp_own_type_count = ROWS(amp_own_types);

const amp_activation amp_own_activations[] = {
    ACTIVATIONS_OF_BOTH_FORKS
    [RELU6] = AMP_RELU6, [SWISH] = AMP_SWISH, [MISH] = AMP_MISH, [HARD_MISH] = AMP_HARD_MISH,
    [REVLEAKY] = AMP_ACTIVATIONS, [GELU] = AMP_ACTIVATIONS,
    [NORM_CHAN] = AMP_ACTIVATIONS, [NORM_CHAN_SOFTMAX] = AMP_ACTIVATIONS,
    [NORM_CHAN_SOFTMAX_MAXVAL] = AMP_ACTIVATIONS
};
const size_t amp_own_activation_count = ROWS(amp_own_activations);

#define CONV BIT(CONVOLUTIONAL)
#define ROUTES BIT(ROUTE)
#define BOXES BIT(YOLO)
#define SCALES (BIT(SCALE_CHANNELS) | BIT(SAM))
#define OF_BOXES(field) OPTION(field, BOXES),
#define OPTIONS_OF_BOXES(F) \
    F(truth_size) F(max_boxes) F(jitter) F(resize) F(focal_loss) F(classes_multipliers) F(label_smooth_eps) \
    F(classes) F(sim_thresh) F(track_history_size) F(dets_for_track) F(dets_for_show) F(track_ciou_norm) \
    F(mask) F(total) F(random) F(ignore_thresh) F(truth_thresh) F(iou_thresh) F(map) F(labels) F(class_ids) \
    F(scale_x_y) F(objectness_smooth) F(new_coords) F(show_details) F(max_delta) F(iou_normalizer) \
    F(obj_normalizer) F(cls_normalizer) F(delta_normalizer) F(iou_loss) F(iou_thresh_kind) F(nms_kind) \
    F(beta_nms)
#define OPTIONS_OF_ALL(F) \
    F(use_bin_output) F(keep_delta_gpu) F(optimized_memory) F(dynamic_minibatch) F(adam) F(B1) F(B2) F(eps) \
    F(onlyforward) F(train_only_bn) F(dont_update) F(burnin_update) F(train) F(stream) F(wait_stream_id)
#define OPTIONS_OF_NONE(F) \
    F(lstm_activation) F(avgpool) F(mean_alpha) F(extra) F(antialiasing) F(maxpool_depth) \
    F(maxpool_zero_nonmax) F(coordconv) F(flatten) F(peephole) F(history_size) F(bottleneck) \
    F(time_normalizer) F(state_constrain) F(deform) F(grad_centr) F(sway) F(rotate) F(stretch) \
    F(stretch_sway) F(detection) F(embedding_layer_id) F(embedding_output) F(embedding_size) F(does_cost) \
    F(alpha) F(beta) F(assisted_excitation) F(dropblock_size_rel) F(dropblock_size_abs) F(dropblock) \
    F(weights_type) F(weights_normalization) F(contrastive_neg_max) F(uc_normalizer) F(yolo_point) F(vo) \
    F(vf) F(vi)

/* The options in struct layer. The test e2e_alexeyab_training lists the struct's other fields: the type,
 * shapes, and what a layer's functions allocate and fill. ALL: the option does not change what a layer
 * computes, or the engine, the update or the reader of weights implements it. */
const amp_own_option amp_own_options[] = {
    OPTIONS_OF_BOTH_FORKS
    OPTION(activation, ACTIVATED | BIT(EMPTY) | SCALES), OPTION(batch_normalize, NORMALIZED),
    OPTION(groups, CONV | BIT(CONNECTED) | ROUTES), OPTION(group_id, ROUTES),
    OPTION(size, WINDOWS | BIT(CONNECTED)), OPTION(pad, WINDOWS),
    OPTION(stride, WINDOWS | BIT(CONNECTED) | BIT(UPSAMPLE) | BIT(REORG_OLD)),
    OPTION(stride_x, CONV | BIT(MAXPOOL) | BIT(CONNECTED)),
    OPTION(stride_y, CONV | BIT(MAXPOOL) | BIT(CONNECTED)), OPTION(dilation, CONV | BIT(CONNECTED)),
    OPTION(flipped, CONV), OPTION(share_layer, CONV), OPTION(reverse, BIT(REORG_OLD)),
    OPTION(index, CONV | BIT(SHORTCUT) | SCALES), OPTION(scale_wh, SCALES), OPTION(steps, CONV),
    OPTION(probability, BIT(DROPOUT)), OPTION(scale, BIT(DROPOUT) | BIT(UPSAMPLE)),
    OPTION(out_channels, BIT(MAXPOOL)), /* only maxpool_depth uses it */
    OPTION(angle, CONV),                /* only deform uses it */
    OPTIONS_OF_BOXES(OF_BOXES) OPTIONS_OF_ALL(OF_ALL) OPTIONS_OF_NONE(OF_NONE)
};
const size_t amp_own_option_count = ROWS(amp_own_options);

/* Whether all inputs of a shortcut have the size of its output. */
static int joins_alike(const layer *l)
{
    for (int k = 0; l->n > 1 && k < l->n; k++) if (l->input_sizes[k] != l->outputs) return 0;
    return 1;
}

const char *amp_own_unfit(const layer *l)
{
    if (l->type == SHORTCUT && !joins_alike(l)) return "it joins several layers of different shapes";
    if (l->type == MAXPOOL && l->stride_x != l->stride_y) return "stride_x and stride_y differ";
    return NULL;
}

/* ---- facts about a layer ---- */

int amp_own_far_inputs(const layer *l, const int **layers)
{
    int one = l->type == SAM || l->type == SCALE_CHANNELS;
    *layers = one ? &l->index : l->input_layers;
    return one ? 1 : l->type == ROUTE || l->type == SHORTCUT ? l->n : 0;
}

/* Whether backward stops at this layer now. stopbackward=1: always; stopbackward=N: until iteration N. */
static int stops_now(const network *net, const layer *l)
{
    return l->stopbackward == 1 || l->stopbackward > *net->cur_iteration;
}

static amp_yolo_kind kind_of(IOU_LOSS kind)
{
    static const amp_yolo_kind table[] = { [MSE] = AMP_YOLO_MSE, [IOU] = AMP_YOLO_IOU, [GIOU] = AMP_YOLO_GIOU,
                                           [DIOU] = AMP_YOLO_DIOU, [CIOU] = AMP_YOLO_CIOU };
    return table[kind];
}

/* Fills in d->class_table: for each class of the labels, the learnt class (map=) and its weight in the loss
 * (counters_per_class=). l->cweights, otherwise unused here, holds the table; free_layer frees it. */
static void describe_classes(layer *l, amp_yolo_desc *d)
{
    amp_yolo_class_rule *table = (void *)l->cweights;
    if (!l->map && !l->classes_multipliers) return;
    if (!table) table = amp_allocated(calloc((size_t)l->classes, sizeof *table));
    l->cweights = (char *)table;
    for (int c = 0; c < l->classes; c++) {
        int learnt = l->map ? l->map[c] : c, known = learnt >= 0 && learnt < l->classes;
        table[c] = (amp_yolo_class_rule){ learnt, l->classes_multipliers && known
                                                      ? l->classes_multipliers[learnt] : 1 };
    }
    d->class_table = table;
}

static int is_read_elsewhere(const network *net, int index, int reader)
{
    const int *far;
    for (int i = index + 1; i < net->n; i++)
        for (int k = amp_own_far_inputs(&net->layers[i], &far) - 1; k >= 0; k--)
            if (far[k] == index && i != reader) return 1;
    return 0;
}

/* With new_coords the convolution before a yolo layer has activation=logistic. In 16 bits a probability near
 * 1 rounds to 1, where the slope is 0 and nothing is learnt. So the convolution becomes linear, and the yolo
 * layer applies the logistic in fp32, unless another layer reads the convolution's output. */
static void squash_in_yolo(const network *net, int index, amp_network_desc *out, amp_yolo_desc *d)
{
    amp_layer_desc *head = index > 0 ? &out->layers[index - 1] : NULL;
    if (!head || net->layers[index - 1].type != CONVOLUTIONAL || head->kind == AMP_LAYER_HOST
        || head->activation != AMP_LOGISTIC) return;
    if (is_read_elsewhere(net, index - 1, index)) return;
    head->activation = AMP_LINEAR;
    d->before_logistic = 1;
}

static void describe_boxes(const network *net, int index, amp_network_desc *out, amp_yolo_desc *d)
{
    layer *l = &net->layers[index];
    d->rules = AMP_YOLO_ALEXEYAB;
    d->loss = kind_of(l->iou_loss);
    d->thresh_kind = kind_of(l->iou_thresh_kind);
    d->iou_thresh = l->iou_thresh;
    d->max_delta = l->max_delta;
    d->scale_x_y = l->scale_x_y;
    d->label_smooth_eps = l->label_smooth_eps;
    d->iou_normalizer = l->iou_normalizer;
    d->obj_normalizer = l->obj_normalizer;
    d->delta_normalizer = l->delta_normalizer; /* stock's CPU backward ignores it */
    d->cls_normalizer = l->classes_multipliers ? l->cls_normalizer : 1;
    d->new_coords = l->new_coords;
    d->objectness_smooth = l->objectness_smooth;
    d->focal_loss = l->focal_loss;
    if (l->new_coords) squash_in_yolo(net, index, out, d);
    describe_classes(l, d);
}

void amp_own_describe(const network *net, int index, amp_network_desc *out, amp_layer_desc *d)
{
    layer *l = &net->layers[index];
    if (d->yolo) describe_boxes(net, index, out, (amp_yolo_desc *)d->yolo);
    d->stops_backward = stops_now(net, l);
    d->no_backward |= l->onlyforward != 0;
}

int amp_own_finds_boxes(const layer *l)
{
    return l->type == YOLO || l->type == GAUSSIAN_YOLO || l->type == REGION;
}

/* A label is a box, its class and the number of its track. */
int amp_own_label_numbers(const layer *l) { return l->truth_size ? l->truth_size : 5; }

int amp_own_shares_weights(const layer *l) { return l->share_layer != NULL; }

/* The parser sets onlyforward and clears train in all layers before one with stopbackward=1. */
int amp_own_is_frozen(const layer *l) { return l->onlyforward && !l->train; }

/* Mish, swish and hard_mish keep their input for the backward pass. */
size_t amp_own_stock_floats(const layer *l, int batch, int on_gpu)
{
    return l->activation_input ? (size_t)l->outputs * (size_t)batch : 0;
}

/* ---- layers that do not learn yet ---- */

int amp_fork_frozen(const struct network *net)
{
    for (int i = net->n - 1; i >= 0; i--)
        if (net->layers[i].stopbackward > 1 && stops_now(net, &net->layers[i])) return i + 1;
    return 0;
}

/* Whether this step's update leaves the layer's parameters unchanged, because of train_only_bn=, dont_update=
 * or burnin_update=. Darknet obeys these keys only on a GPU (update_network_gpu); AMP obeys them on the CPU
 * too. `step` counts the current step too. */
static int is_held(const network *net, const layer *l)
{
    int64_t step = (int64_t)(*net->seen / ((uint64_t)net->batch * (uint64_t)net->subdivisions));
    return l->train_only_bn || (l->dont_update && l->dont_update >= step)
           || (l->burnin_update && (int64_t)l->burnin_update * net->burn_in > step);
}

const char *amp_fork_held(struct network *net)
{
    char *held = net->amp->memory->held;
    for (int i = 0; i < net->n; i++) held[i] = (char)is_held(net, &net->layers[i]);
    return held;
}
