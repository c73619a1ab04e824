/* What native.c asks of this fork: its layers' types, its activations, and the options of struct layer. */
#include "../darknet/native_tables.h"

const amp_own_type amp_own_types[] = {
    [CONVOLUTIONAL] = { "convolutional", AMP_LAYER_CONVOLUTIONAL, NULL },
    [DECONVOLUTIONAL] = { "deconvolutional", AMP_LAYER_DECONVOLUTIONAL, NULL },
    [CONNECTED] = { "connected", AMP_LAYER_CONNECTED, NULL },
    [LOCAL] = { "local", AMP_LAYER_LOCAL, NULL },
    [BATCHNORM] = { "batchnorm", AMP_LAYER_BATCHNORM, NULL },
    [ACTIVE] = { "activation", AMP_LAYER_ACTIVATION, NULL },
    [MAXPOOL] = { "maxpool", AMP_LAYER_MAXPOOL, NULL },
    [AVGPOOL] = { "avgpool", AMP_LAYER_AVGPOOL, NULL },
    [UPSAMPLE] = { "upsample", AMP_LAYER_UPSAMPLE, NULL },
    [REORG] = { "reorg", AMP_LAYER_REORG, NULL },
    [DROPOUT] = { "dropout", AMP_LAYER_DROPOUT, NULL },
    [YOLO] = { "yolo", AMP_LAYER_YOLO, NULL },
    [ROUTE] = { "route", AMP_LAYER_ROUTE, NULL },
    [SHORTCUT] = { "shortcut", AMP_LAYER_SHORTCUT, NULL },
    [RNN] = { "rnn", AMP_LAYER_HOST, OWN },
    [GRU] = { "gru", AMP_LAYER_HOST, OWN },
    [LSTM] = { "lstm", AMP_LAYER_HOST, OWN },
    [CRNN] = { "crnn", AMP_LAYER_HOST, OWN },
    [CROP] = { "crop", AMP_LAYER_HOST, OWN },
    [NORMALIZATION] = { "normalization", AMP_LAYER_HOST, OWN },
    [L2NORM] = { "l2norm", AMP_LAYER_HOST, OWN },
    [REGION] = { "region", AMP_LAYER_HOST, LOSS },
    [DETECTION] = { "detection", AMP_LAYER_HOST, LOSS },
    [COST] = { "cost", AMP_LAYER_HOST, LOSS },
    [ISEG] = { "iseg", AMP_LAYER_HOST, LOSS },
    [LOGXENT] = { "logistic", AMP_LAYER_HOST, LOSS },
    [SOFTMAX] = { "softmax", AMP_LAYER_HOST, LOSS },
};
const size_t amp_own_type_count = ROWS(amp_own_types);

const amp_activation amp_own_activations[] = {
    [LOGISTIC] = AMP_LOGISTIC, [RELU] = AMP_RELU, [RELIE] = AMP_RELIE, [LINEAR] = AMP_LINEAR,
    [RAMP] = AMP_RAMP,
    [TANH] = AMP_TANH, [PLSE] = AMP_PLSE, [LEAKY] = AMP_LEAKY, [ELU] = AMP_ELU, [LOGGY] = AMP_LOGGY,
    [STAIR] = AMP_STAIR, [HARDTAN] = AMP_HARDTAN, [LHTAN] = AMP_LHTAN, [SELU] = AMP_SELU
};
const size_t amp_own_activation_count = ROWS(amp_own_activations);

/* Not here, since they are no options: the type, what a layer's functions allocate and fill (buffers, their
 * sizes, sums, functions), and shapes, which the layers check when a plan is built. The test e2e_source_tree
 * lists their names. */
const amp_own_option amp_own_options[] = {
    OPTION(activation, ACTIVATED), OPTION(batch_normalize, NORMALIZED), OPTION(groups, BIT(CONVOLUTIONAL)),
    OPTION(size, WINDOWS), OPTION(stride, WINDOWS | BIT(UPSAMPLE) | BIT(REORG)), OPTION(pad, WINDOWS),
    OPTION(flipped, BIT(CONVOLUTIONAL)), /* how a .weights file holds them */
    OPTION(xnor, NONE), OPTION(binary, NONE), OPTION(dot, NONE),
    OPTION(reverse, BIT(REORG)), OPTION(flatten, BIT(REORG)), OPTION(extra, BIT(REORG)),
    OPTION(index, BIT(SHORTCUT)), OPTION(alpha, BIT(SHORTCUT)), OPTION(beta, BIT(SHORTCUT)),
    OPTION(probability, BIT(DROPOUT)), OPTION(scale, BIT(DROPOUT) | BIT(UPSAMPLE)),
    OPTION(classes, BIT(YOLO)), OPTION(mask, BIT(YOLO)), OPTION(total, BIT(YOLO)),
    OPTION(max_boxes, BIT(YOLO)), OPTION(jitter, BIT(YOLO)), OPTION(random, BIT(YOLO)),
    OPTION(ignore_thresh, BIT(YOLO)), OPTION(truth_thresh, BIT(YOLO)),
    OPTION(map, NONE), OPTION(softmax_tree, NONE),
    /* Of every layer: the engine's, the update's, the reader of weights'. onlyforward and smooth: those of
     * losses. */
    OPTION(truth, ALL), OPTION(stopbackward, ALL), OPTION(learning_rate_scale, ALL), OPTION(clip, ALL),
    OPTION(numload, ALL), OPTION(dontload, ALL), OPTION(dontsave, ALL), OPTION(dontloadscales, ALL),
    OPTION(onlyforward, ALL & ~BIT(YOLO)), OPTION(smooth, ALL),
    /* Those of layers that have no kind. */
    OPTION(cost_type, NONE), OPTION(shortcut, NONE), OPTION(forced, NONE), OPTION(side, NONE),
    OPTION(spatial, NONE), OPTION(sqrt, NONE), OPTION(flip, NONE), OPTION(steps, NONE), OPTION(hidden, NONE),
    OPTION(angle, NONE), OPTION(saturation, NONE), OPTION(exposure, NONE), OPTION(shift, NONE),
    OPTION(ratio, NONE), OPTION(noloss, NONE), OPTION(softmax, NONE), OPTION(coords, NONE),
    OPTION(background, NONE), OPTION(rescore, NONE), OPTION(objectness, NONE), OPTION(joint, NONE),
    OPTION(noadjust, NONE), OPTION(reorg, NONE), OPTION(log, NONE), OPTION(tanh, NONE), OPTION(kappa, NONE),
    OPTION(coord_scale, NONE), OPTION(object_scale, NONE), OPTION(noobject_scale, NONE),
    OPTION(mask_scale, NONE), OPTION(class_scale, NONE), OPTION(bias_match, NONE), OPTION(thresh, NONE),
    OPTION(focus, NONE), OPTION(classfix, NONE), OPTION(absolute, NONE), OPTION(temperature, NONE),
    /* The layers inside recurrent ones. */
    OPTION(input_layer, NONE), OPTION(self_layer, NONE), OPTION(output_layer, NONE),
    OPTION(reset_layer, NONE), OPTION(update_layer, NONE), OPTION(state_layer, NONE),
    OPTION(input_gate_layer, NONE), OPTION(state_gate_layer, NONE), OPTION(input_save_layer, NONE),
    OPTION(state_save_layer, NONE), OPTION(input_state_layer, NONE), OPTION(state_state_layer, NONE),
    OPTION(input_z_layer, NONE), OPTION(state_z_layer, NONE), OPTION(input_r_layer, NONE),
    OPTION(state_r_layer, NONE), OPTION(input_h_layer, NONE), OPTION(state_h_layer, NONE), OPTION(wz, NONE),
    OPTION(uz, NONE), OPTION(wr, NONE), OPTION(ur, NONE), OPTION(wh, NONE), OPTION(uh, NONE),
    OPTION(uo, NONE), OPTION(wo, NONE), OPTION(uf, NONE), OPTION(wf, NONE), OPTION(ui, NONE),
    OPTION(wi, NONE), OPTION(ug, NONE), OPTION(wg, NONE)
};
const size_t amp_own_option_count = ROWS(amp_own_options);

const char *amp_own_unfit(const layer *l)
{
    (void)l;
    return NULL;
}
