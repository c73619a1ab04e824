/* For the forks' native_tables.c: how their tables are written, and the rows that are the same in both. */
#pragma once

#include "own.h"

#include <stddef.h>

#define OWN "Darknet's own fp32 code"
#define LOSS "fp32 loss"

#define BIT(KIND) (1u << AMP_LAYER_##KIND)
enum {
    NONE = 0,
    ALL = -1,
    WINDOWS = BIT(CONVOLUTIONAL) | BIT(DECONVOLUTIONAL) | BIT(MAXPOOL),
    ACTIVATED = BIT(CONVOLUTIONAL) | BIT(DECONVOLUTIONAL) | BIT(CONNECTED) | BIT(ACTIVATION)
        | BIT(SHORTCUT),
    NORMALIZED = BIT(CONVOLUTIONAL) | BIT(DECONVOLUTIONAL) | BIT(CONNECTED)
};

#define OPTION(field, kinds) \
    { #field " is set", offsetof(layer, field), sizeof(((layer *)0)->field), (unsigned)(kinds) }

#define ROWS(table) (sizeof(table) / sizeof *(table))

/* The rows that are the same in both forks. */
#define TYPES_OF_BOTH_FORKS \
    [CONVOLUTIONAL] = { "convolutional", AMP_LAYER_CONVOLUTIONAL, NULL }, \
    [CONNECTED] = { "connected", AMP_LAYER_CONNECTED, NULL }, [LOCAL] = { "local", AMP_LAYER_HOST, OWN }, \
    [BATCHNORM] = { "batchnorm", AMP_LAYER_BATCHNORM, NULL }, \
    [ACTIVE] = { "activation", AMP_LAYER_ACTIVATION, NULL }, \
    [MAXPOOL] = { "maxpool", AMP_LAYER_MAXPOOL, NULL }, [AVGPOOL] = { "avgpool", AMP_LAYER_AVGPOOL, NULL }, \
    [UPSAMPLE] = { "upsample", AMP_LAYER_UPSAMPLE, NULL }, \
    [DROPOUT] = { "dropout", AMP_LAYER_DROPOUT, NULL }, [YOLO] = { "yolo", AMP_LAYER_YOLO, NULL }, \
    [ROUTE] = { "route", AMP_LAYER_ROUTE, NULL }, [SHORTCUT] = { "shortcut", AMP_LAYER_SHORTCUT, NULL }, \
    [RNN] = { "rnn", AMP_LAYER_HOST, OWN }, [GRU] = { "gru", AMP_LAYER_HOST, OWN }, \
    [LSTM] = { "lstm", AMP_LAYER_HOST, OWN }, [CRNN] = { "crnn", AMP_LAYER_HOST, OWN }, \
    [CROP] = { "crop", AMP_LAYER_HOST, OWN }, [NORMALIZATION] = { "normalization", AMP_LAYER_HOST, OWN }, \
    [REGION] = { "region", AMP_LAYER_HOST, LOSS }, [DETECTION] = { "detection", AMP_LAYER_HOST, LOSS }, \
    [COST] = { "cost", AMP_LAYER_HOST, LOSS }, [SOFTMAX] = { "softmax", AMP_LAYER_HOST, LOSS },
#define ACTIVATIONS_OF_BOTH_FORKS \
    [LOGISTIC] = AMP_LOGISTIC, [RELU] = AMP_RELU, [RELIE] = AMP_RELIE, [LINEAR] = AMP_LINEAR, \
    [RAMP] = AMP_RAMP, [TANH] = AMP_TANH, [PLSE] = AMP_PLSE, [LEAKY] = AMP_LEAKY, [ELU] = AMP_ELU, \
    [LOGGY] = AMP_LOGGY, [STAIR] = AMP_STAIR, [HARDTAN] = AMP_HARDTAN, [LHTAN] = AMP_LHTAN, \
    [SELU] = AMP_SELU,
/* Of every layer: the engine, the update or the reader of weights obeys them, or they change nothing that a
 * layer computes. Then those of layers that have no kind, and the layers inside recurrent ones. */
#define OPTIONS_OF_BOTH_FORKS \
    OPTION(truth, ALL), OPTION(stopbackward, ALL), OPTION(learning_rate_scale, ALL), OPTION(clip, ALL), \
    OPTION(numload, ALL), OPTION(dontload, ALL), OPTION(dontsave, ALL), OPTION(dontloadscales, ALL), \
    OPTION(smooth, ALL), \
    OPTION(xnor, NONE), OPTION(binary, NONE), OPTION(dot, NONE), OPTION(softmax_tree, NONE), \
    OPTION(shortcut, NONE), OPTION(forced, NONE), OPTION(side, NONE), OPTION(spatial, NONE), \
    OPTION(sqrt, NONE), OPTION(flip, NONE), OPTION(hidden, NONE), OPTION(saturation, NONE), \
    OPTION(exposure, NONE), OPTION(shift, NONE), OPTION(ratio, NONE), OPTION(noloss, NONE), \
    OPTION(softmax, NONE), OPTION(coords, NONE), OPTION(background, NONE), OPTION(rescore, NONE), \
    OPTION(objectness, NONE), OPTION(joint, NONE), OPTION(noadjust, NONE), OPTION(reorg, NONE), \
    OPTION(log, NONE), OPTION(tanh, NONE), OPTION(kappa, NONE), OPTION(coord_scale, NONE), \
    OPTION(object_scale, NONE), OPTION(noobject_scale, NONE), OPTION(mask_scale, NONE), \
    OPTION(class_scale, NONE), OPTION(bias_match, NONE), OPTION(thresh, NONE), OPTION(focus, NONE), \
    OPTION(classfix, NONE), OPTION(absolute, NONE), OPTION(temperature, NONE), OPTION(input_layer, NONE), \
    OPTION(self_layer, NONE), OPTION(output_layer, NONE), OPTION(reset_layer, NONE), \
    OPTION(update_layer, NONE), OPTION(state_layer, NONE), OPTION(input_gate_layer, NONE), \
    OPTION(state_gate_layer, NONE), OPTION(input_save_layer, NONE), OPTION(state_save_layer, NONE), \
    OPTION(input_state_layer, NONE), OPTION(state_state_layer, NONE), OPTION(input_z_layer, NONE), \
    OPTION(state_z_layer, NONE), OPTION(input_r_layer, NONE), OPTION(state_r_layer, NONE), \
    OPTION(input_h_layer, NONE), OPTION(state_h_layer, NONE), OPTION(wz, NONE), OPTION(uz, NONE), \
    OPTION(wr, NONE), OPTION(ur, NONE), OPTION(wh, NONE), OPTION(uh, NONE), OPTION(uo, NONE), \
    OPTION(wo, NONE), OPTION(uf, NONE), OPTION(wf, NONE), OPTION(ui, NONE), OPTION(wi, NONE), \
    OPTION(ug, NONE), OPTION(wg, NONE),
