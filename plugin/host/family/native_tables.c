/* Of this fork, for native.c: its layers' types, its activations, and the options of struct layer. */
#include "../darknet/native_tables.h"

SETTINGS(convolution, convolution, .filters = l->n, .size = l->size, .stride = l->stride_y,
         .stride_x = l->stride_x, .dilation = l->dilation, .pad = l->pad * l->dilation,
         .groups = l->groups > 0 ? l->groups : 1)
SETTINGS(shortcut, shortcut, .alpha = 1, .beta = 1)
SETTINGS(route, route, .groups = l->groups > 0 ? l->groups : 1, .group_id = l->group_id)
SETTINGS(reorg, reorg, .stride = l->stride, .reverse = l->reverse != 0, .flatten = l->flatten)
static void linear(const layer *l, amp_layer_desc *d) { (void)l, d->activation = AMP_LINEAR; }

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

/* Fields of struct layer that are not in this table, because they are no options: the type, what a layer's
 * functions allocate and fill, and shapes; the test e2e_alexeyab_training lists their names. ALL: the option
 * does not change what a layer computes, or the engine, the update or the reader of weights obeys it. */
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
    OPTION(truth_size, BOXES), OPTION(max_boxes, BOXES), OPTION(jitter, BOXES), OPTION(resize, BOXES),
    OPTION(focal_loss, BOXES), OPTION(classes_multipliers, BOXES), OPTION(label_smooth_eps, BOXES),
    OPTION(classes, BOXES), OPTION(sim_thresh, BOXES), OPTION(track_history_size, BOXES),
    OPTION(dets_for_track, BOXES), OPTION(dets_for_show, BOXES), OPTION(track_ciou_norm, BOXES),
    OPTION(mask, BOXES), OPTION(total, BOXES), OPTION(random, BOXES), OPTION(ignore_thresh, BOXES),
    OPTION(truth_thresh, BOXES), OPTION(iou_thresh, BOXES), OPTION(map, BOXES), OPTION(labels, BOXES),
    OPTION(class_ids, BOXES), OPTION(scale_x_y, BOXES), OPTION(objectness_smooth, BOXES),
    OPTION(new_coords, BOXES), OPTION(show_details, BOXES), OPTION(max_delta, BOXES),
    OPTION(iou_normalizer, BOXES), OPTION(obj_normalizer, BOXES), OPTION(cls_normalizer, BOXES),
    OPTION(delta_normalizer, BOXES), OPTION(iou_loss, BOXES), OPTION(iou_thresh_kind, BOXES),
    OPTION(nms_kind, BOXES), OPTION(beta_nms, BOXES),
    OPTION(use_bin_output, ALL), OPTION(keep_delta_gpu, ALL), OPTION(optimized_memory, ALL),
    OPTION(dynamic_minibatch, ALL), OPTION(adam, ALL), OPTION(B1, ALL), OPTION(B2, ALL), OPTION(eps, ALL),
    OPTION(onlyforward, ALL), OPTION(train_only_bn, ALL), OPTION(dont_update, ALL),
    OPTION(burnin_update, ALL), OPTION(train, ALL), OPTION(stream, ALL), OPTION(wait_stream_id, ALL),
    OPTION(lstm_activation, NONE), OPTION(avgpool, NONE), OPTION(mean_alpha, NONE), OPTION(extra, NONE),
    OPTION(antialiasing, NONE), OPTION(maxpool_depth, NONE), OPTION(maxpool_zero_nonmax, NONE),
    OPTION(coordconv, NONE), OPTION(flatten, NONE), OPTION(peephole, NONE), OPTION(history_size, NONE),
    OPTION(bottleneck, NONE), OPTION(time_normalizer, NONE), OPTION(state_constrain, NONE),
    OPTION(deform, NONE), OPTION(grad_centr, NONE), OPTION(sway, NONE), OPTION(rotate, NONE),
    OPTION(stretch, NONE), OPTION(stretch_sway, NONE), OPTION(detection, NONE),
    OPTION(embedding_layer_id, NONE), OPTION(embedding_output, NONE), OPTION(embedding_size, NONE),
    OPTION(does_cost, NONE), OPTION(alpha, NONE), OPTION(beta, NONE), OPTION(assisted_excitation, NONE),
    OPTION(dropblock_size_rel, NONE), OPTION(dropblock_size_abs, NONE), OPTION(dropblock, NONE),
    OPTION(weights_type, NONE), OPTION(weights_normalization, NONE), OPTION(contrastive_neg_max, NONE),
    OPTION(uc_normalizer, NONE), OPTION(yolo_point, NONE), OPTION(vo, NONE), OPTION(vf, NONE),
    OPTION(vi, NONE)
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
