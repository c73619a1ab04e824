/* What native.c asks of this fork: its layers' types, its activations, and the options of struct layer. */
#include "../darknet/native_tables.h"

const amp_own_type amp_own_types[] = {
    [CONVOLUTIONAL] = { "convolutional", AMP_LAYER_CONVOLUTIONAL, NULL },
    [CONNECTED] = { "connected", AMP_LAYER_CONNECTED, NULL },
    [LOCAL] = { "local", AMP_LAYER_LOCAL, NULL },
    [BATCHNORM] = { "batchnorm", AMP_LAYER_BATCHNORM, NULL },
    [ACTIVE] = { "activation", AMP_LAYER_ACTIVATION, NULL },
    [EMPTY] = { "empty", AMP_LAYER_ACTIVATION, NULL }, /* the linear one */
    [MAXPOOL] = { "maxpool", AMP_LAYER_MAXPOOL, NULL },
    [AVGPOOL] = { "avgpool", AMP_LAYER_AVGPOOL, NULL },
    [UPSAMPLE] = { "upsample", AMP_LAYER_UPSAMPLE, NULL },
    [REORG_OLD] = { "reorg", AMP_LAYER_REORG, NULL },
    [DROPOUT] = { "dropout", AMP_LAYER_DROPOUT, NULL },
    [ROUTE] = { "route", AMP_LAYER_ROUTE, NULL },
    [SHORTCUT] = { "shortcut", AMP_LAYER_SHORTCUT, NULL },
    [SCALE_CHANNELS] = { "scale_channels", AMP_LAYER_MULTIPLY, NULL },
    [SAM] = { "sam", AMP_LAYER_MULTIPLY, NULL },
    [REORG] = { "reorg3d", AMP_LAYER_HOST, OWN },
    [LOCAL_AVGPOOL] = { "local_avgpool", AMP_LAYER_HOST, OWN },
    [RNN] = { "rnn", AMP_LAYER_HOST, OWN },
    [GRU] = { "gru", AMP_LAYER_HOST, OWN },
    [LSTM] = { "lstm", AMP_LAYER_HOST, OWN },
    [CONV_LSTM] = { "conv_lstm", AMP_LAYER_HOST, OWN },
    [HISTORY] = { "history", AMP_LAYER_HOST, OWN },
    [CRNN] = { "crnn", AMP_LAYER_HOST, OWN },
    [CROP] = { "crop", AMP_LAYER_HOST, OWN },
    [NORMALIZATION] = { "normalization", AMP_LAYER_HOST, OWN },
    [IMPLICIT] = { "implicit", AMP_LAYER_HOST, OWN },
    [YOLO] = { "yolo", AMP_LAYER_YOLO, NULL },
    [GAUSSIAN_YOLO] = { "Gaussian_yolo", AMP_LAYER_HOST, LOSS },
    [REGION] = { "region", AMP_LAYER_HOST, LOSS },
    [DETECTION] = { "detection", AMP_LAYER_HOST, LOSS },
    [COST] = { "cost", AMP_LAYER_HOST, LOSS },
    [SOFTMAX] = { "softmax", AMP_LAYER_HOST, LOSS },
    [CONTRASTIVE] = { "contrastive", AMP_LAYER_HOST, LOSS },
};
const size_t amp_own_type_count = ROWS(amp_own_types);

const amp_activation amp_own_activations[] = {
    [LOGISTIC] = AMP_LOGISTIC, [RELU] = AMP_RELU, [RELIE] = AMP_RELIE, [LINEAR] = AMP_LINEAR,
    [RAMP] = AMP_RAMP, [TANH] = AMP_TANH, [PLSE] = AMP_PLSE, [LEAKY] = AMP_LEAKY, [ELU] = AMP_ELU,
    [LOGGY] = AMP_LOGGY, [STAIR] = AMP_STAIR, [HARDTAN] = AMP_HARDTAN, [LHTAN] = AMP_LHTAN, [SELU] = AMP_SELU,
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
    OPTION(activation, ACTIVATED | SCALES), OPTION(lstm_activation, NONE),
    OPTION(batch_normalize, NORMALIZED),
    OPTION(groups, CONV | BIT(CONNECTED) | ROUTES), OPTION(group_id, ROUTES),
    OPTION(size, WINDOWS | BIT(CONNECTED)), OPTION(pad, WINDOWS),
    OPTION(stride, WINDOWS | BIT(CONNECTED) | BIT(UPSAMPLE) | BIT(REORG)),
    OPTION(stride_x, CONV | BIT(MAXPOOL) | BIT(CONNECTED)),
    OPTION(stride_y, CONV | BIT(MAXPOOL) | BIT(CONNECTED)),
    OPTION(dilation, CONV | BIT(CONNECTED)), OPTION(flipped, CONV),
    OPTION(share_layer, CONV), OPTION(avgpool, NONE), OPTION(shortcut, NONE), OPTION(forced, NONE),
    OPTION(mean_alpha, NONE), OPTION(extra, NONE), OPTION(truth_size, BOXES), OPTION(max_boxes, BOXES),
    OPTION(side, NONE), OPTION(antialiasing, NONE), OPTION(maxpool_depth, NONE),
    OPTION(maxpool_zero_nonmax, NONE), OPTION(out_channels, BIT(MAXPOOL)), /* of maxpool_depth */
    OPTION(reverse, BIT(REORG)), OPTION(coordconv, NONE), OPTION(flatten, NONE), OPTION(spatial, NONE),
    OPTION(sqrt, NONE), OPTION(flip, NONE), OPTION(index, CONV | BIT(SHORTCUT) | SCALES),
    OPTION(scale_wh, SCALES),
    /* of xnor */
    OPTION(binary, NONE), OPTION(xnor, NONE), OPTION(peephole, NONE), OPTION(use_bin_output, ALL),
    OPTION(keep_delta_gpu, ALL), OPTION(optimized_memory, ALL), OPTION(dynamic_minibatch, ALL),
    OPTION(steps, CONV), OPTION(history_size, NONE), OPTION(bottleneck, NONE), OPTION(time_normalizer, NONE),
    OPTION(state_constrain, NONE), OPTION(hidden, NONE), OPTION(truth, ALL), OPTION(smooth, ALL),
    OPTION(dot, NONE), OPTION(deform, NONE), OPTION(grad_centr, NONE), OPTION(sway, NONE),
    /* of deform */
    OPTION(rotate, NONE), OPTION(stretch, NONE), OPTION(stretch_sway, NONE), OPTION(angle, CONV),
    OPTION(jitter, BOXES), OPTION(resize, BOXES), OPTION(saturation, NONE), OPTION(exposure, NONE),
    OPTION(shift, NONE), OPTION(ratio, NONE), OPTION(learning_rate_scale, ALL), OPTION(clip, ALL),
    OPTION(focal_loss, BOXES), OPTION(classes_multipliers, BOXES), OPTION(label_smooth_eps, BOXES),
    OPTION(noloss, NONE), OPTION(softmax, NONE), OPTION(classes, BOXES), OPTION(detection, NONE),
    OPTION(embedding_layer_id, NONE), OPTION(embedding_output, NONE), OPTION(embedding_size, NONE),
    OPTION(sim_thresh, BOXES), OPTION(track_history_size, BOXES), OPTION(dets_for_track, BOXES),
    OPTION(dets_for_show, BOXES), OPTION(track_ciou_norm, BOXES), OPTION(coords, NONE),
    OPTION(background, NONE),
    OPTION(rescore, NONE), OPTION(objectness, NONE), OPTION(does_cost, NONE), OPTION(joint, NONE),
    OPTION(noadjust, NONE), OPTION(reorg, NONE), OPTION(log, NONE), OPTION(tanh, NONE), OPTION(mask, BOXES),
    OPTION(total, BOXES), OPTION(adam, ALL), OPTION(B1, ALL), OPTION(B2, ALL), OPTION(eps, ALL),
    OPTION(alpha, NONE), OPTION(beta, NONE), OPTION(kappa, NONE), OPTION(coord_scale, NONE),
    OPTION(object_scale, NONE), OPTION(noobject_scale, NONE), OPTION(mask_scale, NONE),
    OPTION(class_scale, NONE), OPTION(bias_match, NONE), OPTION(random, BOXES), OPTION(ignore_thresh, BOXES),
    OPTION(truth_thresh, BOXES), OPTION(iou_thresh, BOXES), OPTION(thresh, NONE), OPTION(focus, NONE),
    OPTION(classfix, NONE), OPTION(absolute, NONE), OPTION(assisted_excitation, NONE),
    OPTION(onlyforward, ALL), OPTION(stopbackward, ALL), OPTION(train_only_bn, ALL), OPTION(dont_update, ALL),
    OPTION(burnin_update, ALL), OPTION(dontload, ALL), OPTION(dontsave, ALL), OPTION(dontloadscales, ALL),
    OPTION(numload, ALL), OPTION(train, ALL), OPTION(temperature, NONE), OPTION(probability, BIT(DROPOUT)),
    OPTION(dropblock_size_rel, NONE), OPTION(dropblock_size_abs, NONE), OPTION(dropblock, NONE),
    OPTION(scale, BIT(DROPOUT) | BIT(UPSAMPLE)), OPTION(weights_type, NONE),
    OPTION(weights_normalization, NONE), OPTION(map, BOXES), OPTION(labels, BOXES), OPTION(class_ids, BOXES),
    OPTION(contrastive_neg_max, NONE), OPTION(scale_x_y, BOXES), OPTION(objectness_smooth, BOXES),
    OPTION(new_coords, BOXES), OPTION(show_details, BOXES), OPTION(max_delta, BOXES),
    OPTION(uc_normalizer, NONE), OPTION(iou_normalizer, BOXES), OPTION(obj_normalizer, BOXES),
    OPTION(cls_normalizer, BOXES), OPTION(delta_normalizer, BOXES), OPTION(iou_loss, BOXES),
    OPTION(iou_thresh_kind, BOXES), OPTION(nms_kind, BOXES), OPTION(beta_nms, BOXES),
    OPTION(yolo_point, NONE),
    OPTION(softmax_tree, NONE), OPTION(stream, ALL), OPTION(wait_stream_id, ALL),
    /* The layers inside others. */
    OPTION(input_layer, NONE), OPTION(self_layer, NONE), OPTION(output_layer, NONE),
    OPTION(reset_layer, NONE), OPTION(update_layer, NONE), OPTION(state_layer, NONE),
    OPTION(input_gate_layer, NONE), OPTION(state_gate_layer, NONE), OPTION(input_save_layer, NONE),
    OPTION(state_save_layer, NONE), OPTION(input_state_layer, NONE), OPTION(state_state_layer, NONE),
    OPTION(input_z_layer, NONE), OPTION(state_z_layer, NONE), OPTION(input_r_layer, NONE),
    OPTION(state_r_layer, NONE), OPTION(input_h_layer, NONE), OPTION(state_h_layer, NONE), OPTION(wz, NONE),
    OPTION(uz, NONE), OPTION(wr, NONE), OPTION(ur, NONE), OPTION(wh, NONE), OPTION(uh, NONE),
    OPTION(uo, NONE),
    OPTION(wo, NONE), OPTION(vo, NONE), OPTION(uf, NONE), OPTION(wf, NONE), OPTION(vf, NONE),
    OPTION(ui, NONE),
    OPTION(wi, NONE), OPTION(vi, NONE), OPTION(ug, NONE), OPTION(wg, NONE)
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
