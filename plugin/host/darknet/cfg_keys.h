/* Keys and sections that all forks have. A fork's cfg_keys.c includes this after its table `activations` and
 * the places LOGISTIC_IS and LINEAR_IS in it, and lists what only this fork has. */
#pragma once

#include <limits.h>

#include "cfg_rules.h"

#define ACTIVATION_KEY WORD("activation", LOGISTIC_IS, activations)
#define LINEAR_KEY WORD("activation", LINEAR_IS, activations)
#define BATCH_NORMALIZE FLAG("batch_normalize")
#define FROM_1(name, fallback) WHOLE(name, fallback, 1, 1000000)
#define NATURAL(name, fallback) WHOLE(name, fallback, 0, INT_MAX)
#define NUMBERS(name, rules) { name, CFG_REAL, CFG_LIST | (rules), 0, 0, 1e300, 0 }
#define LAYERS(name) { name, CFG_LAYER, CFG_LIST | CFG_REQUIRED, 0, 0, 0, 0 }
#define ONE_LAYER(name, rules) { name, CFG_LAYER, rules, 0, 0, 0, 0 }

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

/* Rows of the table of sections; [net] is the first. */
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
