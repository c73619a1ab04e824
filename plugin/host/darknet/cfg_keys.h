/* Keys and sections that all forks have. A fork's cfg_keys.c first defines its table `activations` and the
 * indices LOGISTIC_IS and LINEAR_IS into that table, then includes this file. */
#pragma once

#include <limits.h>

#include "cfg_rules.h"

#define ACTIVATION_KEY WORD("activation", LOGISTIC_IS, activations)
#define LINEAR_KEY WORD("activation", LINEAR_IS, activations)
#ifndef BATCH_NORMALIZE
#define BATCH_NORMALIZE FLAG("batch_normalize")
#endif
#define FROM_1(name, fallback) WHOLE(name, fallback, 1, 1000000)
#define NATURAL(name, fallback) WHOLE(name, fallback, 0, INT_MAX)
#define NUMBERS(name, rules) { name, CFG_REAL, CFG_LIST | (rules), 0, 0, 1e300, 0 }
#define LAYERS(name) { name, CFG_LAYER, CFG_LIST | CFG_REQUIRED, 0, 0, 0, 0 }
#define ONE_LAYER(name, rules) { name, CFG_LAYER, rules, 0, 0, 0, 0 }

/* For each section, the keys that all forks read. Each fork adds its own. */
#define NET_KEYS \
    FROM_1("batch", 1), FROM_1("subdivisions", 1), FROM_1("time_steps", 1), WHOLE("width", 0, 1, INT_MAX), \
    WHOLE("height", 0, 1, INT_MAX), WHOLE("channels", 0, 1, INT_MAX), COUNT("inputs", 0), \
    NOT_NEGATIVE("learning_rate", .001), REAL("momentum", .9, 0, 1), NOT_NEGATIVE("decay", .0001), \
    FLAG("adam"), FRACTION("B1", .9), FRACTION("B2", .999), REAL("angle", 0, -360, 360), \
    NOT_NEGATIVE("aspect", 1), NOT_NEGATIVE("saturation", 1), NOT_NEGATIVE("exposure", 1), \
    REAL("hue", 0, -1, 1), WORD("policy", POLICY_CONSTANT, policies), NATURAL("burn_in", 0), \
    ANY("power", 4), NATURAL("max_batches", 0), COUNT("step", 1), POSITIVE("scale", 1), ANY("gamma", 1), \
    { "steps", CFG_WHOLE, CFG_LIST, 0, -INT_MAX, INT_MAX, 0 }
#define CONVOLUTIONAL_KEYS \
    COUNT("filters", 1), SIZE("size", 1), SIZE("stride", 1), FLAG("pad"), WHOLE("padding", 0, 0, 65536), \
    COUNT("groups", 1), ACTIVATION_KEY, BATCH_NORMALIZE, FLAG("binary"), FLAG("xnor"), FLAG("flipped"), \
    ANY("dot", 0)
#define COST_KEYS WORD("type", 0, costs), ANY("scale", 1), REAL("ratio", 0, 0, 1)
#define LOSS_SCALE_KEYS \
    NOT_NEGATIVE("coord_scale", 1), NOT_NEGATIVE("object_scale", 1), NOT_NEGATIVE("noobject_scale", 1), \
    NOT_NEGATIVE("class_scale", 1)
#define DETECTION_KEYS \
    WHOLE("coords", 1, 4, 4), COUNT("classes", 1), COUNT("num", 1), SIZE("side", 7), FLAG("rescore"), \
    FLAG("softmax"), FLAG("sqrt"), FLAG("forced"), FRACTION("jitter", .2), FLAG("reorg"), LOSS_SCALE_KEYS
#define REGION_KEYS \
    WHOLE("coords", 4, 4, 65536), COUNT("classes", 20), COUNT("num", 1), FLAG("log"), FLAG("sqrt"), \
    FLAG("softmax"), FRACTION("jitter", .2), FLAG("rescore"), ANY("thresh", .5), FLAG("classfix"), \
    FLAG("absolute"), LOSS_SCALE_KEYS, NOT_NEGATIVE("mask_scale", 1), FLAG("bias_match"), NAMED("tree"), \
    NAMED("map"), NUMBERS("anchors", CFG_ABOVE | CFG_REQUIRED)
#define YOLO_KEYS \
    COUNT("classes", 20), COUNT("num", 1), { "mask", CFG_WHOLE, CFG_LIST, 0, 0, INT_MAX, 0 }, \
    FRACTION("jitter", .2), NOT_NEGATIVE("ignore_thresh", .5), NOT_NEGATIVE("truth_thresh", 1), \
    NAMED("map"), NUMBERS("anchors", CFG_ABOVE | CFG_REQUIRED)

static const cfg_key activation[] = { LINEAR_KEY };
static const cfg_key connected[] = { COUNT("output", 1), ACTIVATION_KEY, BATCH_NORMALIZE };
static const cfg_key crop[] = {
    SIZE("crop_height", 1), SIZE("crop_width", 1), FLAG("flip"), FLAG("noadjust"),
    REAL("angle", 0, -360, 360), NOT_NEGATIVE("saturation", 1), NOT_NEGATIVE("exposure", 1), ANY("shift", 0),
};
static const cfg_key local[] = {
    COUNT("filters", 1), SIZE("size", 1), SIZE("stride", 1), FLAG("pad"), ACTIVATION_KEY,
};
static const cfg_key lstm[] = { COUNT("output", 1), BATCH_NORMALIZE };
static const cfg_key normalization[] = {
    ANY("alpha", .0001), ANY("beta", .75), ANY("kappa", 1), SIZE("size", 5),
};
static const cfg_key softmax[] = {
    COUNT("groups", 1), POSITIVE("temperature", 1), NAMED("tree"), ANY("spatial", 0), FLAG("noloss"),
};
static const cfg_key upsample[] = { WHOLE("stride", 2, -65536, 65536), ANY("scale", 1) };

/* The first rows of a fork's table of sections; [net] must be first. */
#define SECTIONS_OF_ALL_FORKS \
    { "[net]", "[network]", KEYS(net), 0, cfg_rule_net }, \
    { "[activation]", 0, KEYS(activation), SAME, cfg_rule_activation }, \
    { "[avgpool]", "[avg]", 0, 0, IMAGE, cfg_rule_avgpool }, \
    { "[batchnorm]", 0, 0, 0, IMAGE | SAME, cfg_rule_batchnorm }, \
    { "[connected]", "[conn]", KEYS(connected), ONE_SIZE, cfg_rule_connected }, \
    { "[convolutional]", "[conv]", KEYS(convolutional), IMAGE, cfg_rule_convolutional }, \
    { "[cost]", 0, KEYS(cost), FLAT | LOSS, 0 }, \
    { "[crop]", 0, KEYS(crop), IMAGE, cfg_rule_crop }, \
    { "[detection]", 0, KEYS(detection), FLAT | ONE_SIZE, cfg_rule_detection }, \
    { "[dropout]", 0, KEYS(dropout), SAME, cfg_rule_dropout }, \
    { "[gru]", 0, KEYS(gru), ONE_SIZE, cfg_rule_gru }, \
    { "[local]", 0, KEYS(local), IMAGE | ONE_SIZE, cfg_rule_local }, \
    { "[lstm]", 0, KEYS(lstm), ONE_SIZE, cfg_rule_lstm }, \
    { "[maxpool]", "[max]", KEYS(maxpool), IMAGE, cfg_rule_maxpool }, \
    { "[normalization]", "[lrn]", KEYS(normalization), IMAGE | SAME, cfg_rule_normalization }, \
    { "[region]", 0, KEYS(region), IMAGE | SAME, cfg_rule_region }, \
    { "[rnn]", 0, KEYS(rnn), ONE_SIZE, cfg_rule_rnn }, \
    { "[route]", 0, KEYS(route), 0, cfg_rule_route }, \
    { "[softmax]", "[soft]", KEYS(softmax), FLAT | LOSS | ONE_SIZE, cfg_rule_softmax }, \
    { "[upsample]", 0, KEYS(upsample), IMAGE, cfg_rule_upsample }, \
    { "[yolo]", 0, KEYS(yolo), IMAGE | SAME, cfg_rule_yolo }
