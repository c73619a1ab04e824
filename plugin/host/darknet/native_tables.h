/* For the forks' native_tables.c: how their tables are written, and the rows that are the same in both. */
#pragma once

#include "own.h"

#include <stddef.h>

/* Rows of types: one that AMP computes, by amp_<kind>_ops, and those that Darknet's own code does. */
#define NATIVE(name, kind, settings) { name, &amp_##kind##_ops, NULL, settings }
#define OWN(name) { name, AMP_LAYER_HOST, "Darknet's own fp32 code", NULL }
#define LOSS(name) { name, AMP_LAYER_HOST, "fp32 loss", NULL }

/* Bits of types, by Darknet's names. */
#define BIT(TYPE) (UINT64_C(1) << (TYPE))
#define NONE 0
#define ALL UINT64_MAX
#define WINDOWS (BIT(CONVOLUTIONAL) | BIT(DECONVOLUTIONAL) | BIT(MAXPOOL))
#define NORMALIZED (BIT(CONVOLUTIONAL) | BIT(DECONVOLUTIONAL) | BIT(CONNECTED))
#define ACTIVATED (NORMALIZED | BIT(ACTIVE) | BIT(SHORTCUT))

#define OPTION(field, types) \
    { #field " is set", offsetof(layer, field), sizeof(((layer *)0)->field), types }

#define ROWS(table) (sizeof(table) / sizeof *(table))

/* Fills the settings of a kind from a layer of Darknet's, l. */
#define SETTINGS(name, kind, ...) \
    static void name(const layer *l, amp_layer_desc *d) \
    { \
        (void)l, d->kind = (struct amp_##kind##_settings){ __VA_ARGS__ }; \
    }
SETTINGS(connected, convolution, .filters = l->outputs, .stride = 1, .groups = 1)
SETTINGS(maxpool, maxpool, .size = l->size, .stride = l->stride, .pad = l->pad)
SETTINGS(upsample, upsample, .stride = l->stride, .scale = l->scale)
SETTINGS(dropout, dropout, .probability = l->probability, .scale = l->scale)

/* The rows that are the same in both forks. */
#define TYPES_OF_BOTH_FORKS \
    [CONNECTED] = NATIVE("connected", convolutional, connected), \
    [BATCHNORM] = NATIVE("batchnorm", batchnorm, NULL), [ACTIVE] = NATIVE("activation", activation, NULL), \
    [MAXPOOL] = NATIVE("maxpool", maxpool, maxpool), \
    [AVGPOOL] = NATIVE("avgpool", avgpool, NULL), \
    [UPSAMPLE] = NATIVE("upsample", upsample, upsample), \
    [DROPOUT] = NATIVE("dropout", dropout, dropout), [YOLO] = NATIVE("yolo", yolo, NULL), \
    [LOCAL] = OWN("local"), [RNN] = OWN("rnn"), [GRU] = OWN("gru"), [LSTM] = OWN("lstm"), \
    [CRNN] = OWN("crnn"), [CROP] = OWN("crop"), [NORMALIZATION] = OWN("normalization"), \
    [REGION] = LOSS("region"), [DETECTION] = LOSS("detection"), [COST] = LOSS("cost"), \
    [SOFTMAX] = LOSS("softmax"),
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
