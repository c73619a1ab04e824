/* Macros for the tables in pjreddie/layers.c and family/layers.c, and the rows that both have. */
#pragma once

#include "own.h"

#include <stddef.h>

/* Rows of amp_own_types. NATIVE: AMP computes the type with the functions in `ops`, and the function
 * `settings` fills in what they need to know of a layer. OWN and LOSS: Darknet's own code computes it. */
#define NATIVE(name, ops, settings) { name, &ops, NULL, settings }
#define OWN(name) { name, AMP_LAYER_HOST, "Darknet's own fp32 code", NULL }
#define LOSS(name) { name, AMP_LAYER_HOST, "fp32 loss", NULL }

/* Sets of Darknet's layer types, as bits. */
#define BIT(TYPE) (UINT64_C(1) << (TYPE))
#define NONE 0
#define ALL UINT64_MAX
#define WINDOWS (BIT(CONVOLUTIONAL) | BIT(DECONVOLUTIONAL) | BIT(MAXPOOL))
#define NORMALIZED (BIT(CONVOLUTIONAL) | BIT(DECONVOLUTIONAL) | BIT(CONNECTED))
#define ACTIVATED (NORMALIZED | BIT(ACTIVE) | BIT(SHORTCUT))

#define OPTION(field, types) \
    { #field " is set", offsetof(layer, field), sizeof(((layer *)0)->field), types }

#define ROWS(table) (sizeof(table) / sizeof *(table))

/* Defines a function that fills in d->member from Darknet's layer l. */
#define SETTINGS(function, member, ...) \
    static void function(const layer *l, amp_layer_desc *d) \
    { \
        d->member = (struct amp_##member##_settings){ __VA_ARGS__ }; \
    }
SETTINGS(connected_settings, convolution, .filters = l->outputs, .stride = 1, .groups = 1)
SETTINGS(maxpool_settings, maxpool, .size = l->size, .stride = l->stride, .pad = l->pad)
SETTINGS(upsample_settings, upsample, .stride = l->stride, .scale = l->scale)
SETTINGS(dropout_settings, dropout, .probability = l->probability, .scale = l->scale)

#define TYPES_OF_BOTH_FORKS \
    [CONNECTED] = NATIVE("connected", amp_convolutional_ops, connected_settings), \
    [BATCHNORM] = NATIVE("batchnorm", amp_batchnorm_ops, NULL), \
    [ACTIVE] = NATIVE("activation", amp_activation_ops, NULL), \
    [MAXPOOL] = NATIVE("maxpool", amp_maxpool_ops, maxpool_settings), \
    [AVGPOOL] = NATIVE("avgpool", amp_avgpool_ops, NULL), \
    [UPSAMPLE] = NATIVE("upsample", amp_upsample_ops, upsample_settings), \
    [DROPOUT] = NATIVE("dropout", amp_dropout_ops, dropout_settings), \
    [YOLO] = NATIVE("yolo", amp_yolo_ops, NULL), \
    [LOCAL] = OWN("local"), [RNN] = OWN("rnn"), [GRU] = OWN("gru"), [LSTM] = OWN("lstm"), \
    [CRNN] = OWN("crnn"), [CROP] = OWN("crop"), [NORMALIZATION] = OWN("normalization"), \
    [REGION] = LOSS("region"), [DETECTION] = LOSS("detection"), [COST] = LOSS("cost"), \
    [SOFTMAX] = LOSS("softmax"),
#define ACTIVATIONS_OF_BOTH_FORKS \
    [LOGISTIC] = AMP_LOGISTIC, [RELU] = AMP_RELU, [RELIE] = AMP_RELIE, [LINEAR] = AMP_LINEAR, \
    [RAMP] = AMP_RAMP, [TANH] = AMP_TANH, [PLSE] = AMP_PLSE, [LEAKY] = AMP_LEAKY, [ELU] = AMP_ELU, \
    [LOGGY] = AMP_LOGGY, [STAIR] = AMP_STAIR, [HARDTAN] = AMP_HARDTAN, [LHTAN] = AMP_LHTAN, \
    [SELU] = AMP_SELU,
#define OF_ALL(field) OPTION(field, ALL),
#define OF_NONE(field) OPTION(field, NONE),
/* Options that a native layer of any type may have. Some of them do not change what a layer computes. The
 * engine, the update or the reader of weights implements the others. */
#define ALL_OF_BOTH_FORKS(F) \
    F(truth) F(stopbackward) F(learning_rate_scale) F(clip) F(numload) F(dontload) F(dontsave) \
    F(dontloadscales) F(smooth)
/* Options that no native layer may have, and the pointers of recurrent layers to the layers inside them. */
#define NONE_OF_BOTH_FORKS(F) \
    F(xnor) F(binary) F(dot) F(softmax_tree) F(shortcut) F(forced) F(side) F(spatial) F(sqrt) F(flip) \
    F(hidden) F(saturation) F(exposure) F(shift) F(ratio) F(noloss) F(softmax) F(coords) F(background) \
    F(rescore) F(objectness) F(joint) F(noadjust) F(reorg) F(log) F(tanh) F(kappa) F(coord_scale) \
    F(object_scale) F(noobject_scale) F(mask_scale) F(class_scale) F(bias_match) F(thresh) F(focus) \
    F(classfix) F(absolute) F(temperature) F(input_layer) F(self_layer) F(output_layer) F(reset_layer) \
    F(update_layer) F(state_layer) F(input_gate_layer) F(state_gate_layer) F(input_save_layer) \
    F(state_save_layer) F(input_state_layer) F(state_state_layer) F(input_z_layer) F(state_z_layer) \
    F(input_r_layer) F(state_r_layer) F(input_h_layer) F(state_h_layer) F(wz) F(uz) F(wr) F(ur) F(wh) F(uh) \
    F(uo) F(wo) F(uf) F(wf) F(ui) F(wi) F(ug) F(wg)
#define OPTIONS_OF_BOTH_FORKS ALL_OF_BOTH_FORKS(OF_ALL) NONE_OF_BOTH_FORKS(OF_NONE)
