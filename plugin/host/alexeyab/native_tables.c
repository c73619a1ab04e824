/* Of this fork, for native.c: its layers' types, its activations, and the options of struct layer. */
#include "../darknet/native_tables.h"

const amp_own_type amp_own_types[] = {
    TYPES_OF_BOTH_FORKS
    [EMPTY] = { "empty", AMP_LAYER_ACTIVATION, NULL }, /* the linear one */
    [REORG_OLD] = { "reorg", AMP_LAYER_REORG, NULL },
    [SCALE_CHANNELS] = { "scale_channels", AMP_LAYER_MULTIPLY, NULL },
    [SAM] = { "sam", AMP_LAYER_MULTIPLY, NULL },
    [REORG] = { "reorg3d", AMP_LAYER_HOST, OWN },
    [LOCAL_AVGPOOL] = { "local_avgpool", AMP_LAYER_HOST, OWN },
    [CONV_LSTM] = { "conv_lstm", AMP_LAYER_HOST, OWN },
    [HISTORY] = { "history", AMP_LAYER_HOST, OWN },
    [IMPLICIT] = { "implicit", AMP_LAYER_HOST, OWN },
    [GAUSSIAN_YOLO] = { "Gaussian_yolo", AMP_LAYER_HOST, LOSS },
    [CONTRASTIVE] = { "contrastive", AMP_LAYER_HOST, LOSS },
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

enum { CONV = BIT(CONVOLUTIONAL), ROUTES = BIT(ROUTE), BOXES = BIT(YOLO), SCALES = BIT(MULTIPLY) };

/* Fields of struct layer that are not in this table, because they are no options: the type, what a layer's
 * functions allocate and fill, and shapes; the test e2e_alexeyab_training lists their names. ALL: the option
 * does not change what a layer computes, or the engine, the update or the reader of weights obeys it. */
const amp_own_option amp_own_options[] = {
    OPTIONS_OF_BOTH_FORKS
    OPTION(activation, ACTIVATED | SCALES), OPTION(batch_normalize, NORMALIZED),
    OPTION(groups, CONV | BIT(CONNECTED) | ROUTES), OPTION(group_id, ROUTES),
    OPTION(size, WINDOWS | BIT(CONNECTED)), OPTION(pad, WINDOWS),
    OPTION(stride, WINDOWS | BIT(CONNECTED) | BIT(UPSAMPLE) | BIT(REORG)),
    OPTION(stride_x, CONV | BIT(MAXPOOL) | BIT(CONNECTED)),
    OPTION(stride_y, CONV | BIT(MAXPOOL) | BIT(CONNECTED)), OPTION(dilation, CONV | BIT(CONNECTED)),
    OPTION(flipped, CONV), OPTION(share_layer, CONV), OPTION(reverse, BIT(REORG)),
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
