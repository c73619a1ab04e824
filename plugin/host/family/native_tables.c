/* This fork's tables for native.c: its layers' types, its activations, and the options of struct layer. */
#include "../darknet/native_tables.h"

SETTINGS(convolution, convolution, .filters = l->n, .size = l->size, .stride = l->stride_y,
         .stride_x = l->stride_x, .dilation = l->dilation, .pad = l->pad * l->dilation,
         .groups = l->groups > 0 ? l->groups : 1)
SETTINGS(shortcut, shortcut, .alpha = 1, .beta = 1)
SETTINGS(route, route, .groups = l->groups > 0 ? l->groups : 1, .group_id = l->group_id)
SETTINGS(reorg, reorg, .stride = l->stride, .reverse = l->reverse != 0, .flatten = l->flatten)
static void linear(const layer *l, amp_layer_desc *d) { d->activation = AMP_LINEAR; }

const amp_own_type amp_own_types[] = {
    TYPES_OF_BOTH_FORKS
    [CONVOLUTIONAL] = NATIVE("convolutional", convolutional, convolution),
    [ROUTE] = NATIVE("route", route, route),
    [SHORTCUT] = NATIVE("shortcut", shortcut, shortcut),
    [EMPTY] = NATIVE("empty", activation, linear),
    [REORG_OLD] = NATIVE("reorg", reorg, reorg),
    [SCALE_CHANNELS] = NATIVE("scale_channels", multiply, NULL),
    [SAM] = NATIVE("sam", multiply, NULL),
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

/* The options in struct layer. Its other fields are not options: the type, shapes, and what a layer's
 * functions allocate and fill. The test e2e_alexeyab_training lists their names. ALL: either the option does
 * not change what a layer computes, or the engine, the update or the reader of weights obeys it. */
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
