/* The sections of pjreddie's Darknet, the keys that its parser.c reads, and their allowed values. */
#include "../darknet/cfg_rules.h"

static const char *const activations[] = {
    "logistic", "relu", "relie", "linear", "ramp", "tanh", "plse", "leaky", "elu", "loggy", "stair",
    "hardtan", "lhtan", "selu", 0,
};
enum { LOGISTIC_IS = 0, LINEAR_IS = 3 };
static const char *const policies[] = { "constant", "step", "steps", "exp", "sigmoid", "poly", "random", 0 };
static const char *const costs[] = { "sse", "seg", "masked", "smooth", "L1", "wgan", 0 };

#include "../darknet/cfg_keys.h"

static const cfg_key net[] = {
    NET_KEYS, WHOLE("max_crop", 0, 1, 65536), WHOLE("min_crop", 0, 1, 65536), FLAG("center"),
    POSITIVE("max_ratio", 1), POSITIVE("min_ratio", 1), NOT_NEGATIVE("eps", 1e-7), NOT_NEGATIVE("clip", 0),
    FLAG("notruth"), FLAG("random"), { "scales", CFG_REAL, CFG_LIST, 1, 0, 1e300, 0 },
};

static const cfg_key every_layer[] = {
    FLAG("truth"), FLAG("onlyforward"), FLAG("stopbackward"), FLAG("dontsave"), FLAG("dontload"),
    FLAG("dontloadscales"), NATURAL("numload", 0), NOT_NEGATIVE("learning_rate", 1),
    REAL("smooth", 0, 0, 1),
};

static const cfg_key convolutional[] = { CONVOLUTIONAL_KEYS };
static const cfg_key cost[] = { COST_KEYS, ANY("noobj", 1), ANY("thresh", 0) };
static const cfg_key crnn[] = {
    COUNT("output_filters", 1), COUNT("hidden_filters", 1), ACTIVATION_KEY, BATCH_NORMALIZE,
    FLAG("shortcut"),
};
static const cfg_key deconvolutional[] = {
    COUNT("filters", 1), SIZE("size", 1), SIZE("stride", 1), FLAG("pad"), WHOLE("padding", 0, 0, 65536),
    ACTIVATION_KEY, BATCH_NORMALIZE,
};
static const cfg_key detection[] = { DETECTION_KEYS, WHOLE("max", 90, 1, INT_MAX), FLAG("random") };
static const cfg_key dropout[] = { FRACTION("probability", .5) };
static const cfg_key gru[] = { COUNT("output", 1), BATCH_NORMALIZE, FLAG("tanh") };
static const cfg_key iseg[] = { COUNT("classes", 20), NATURAL("ids", 32) };
static const cfg_key maxpool[] = { SIZE("stride", 1), SIZE("size", 1), WHOLE("padding", 0, 0, 65536) };
static const cfg_key region[] = {
    REGION_KEYS, FLAG("background"), WHOLE("max", 30, 30, 30), FLAG("random"),
};
static const cfg_key reorg[] = { SIZE("stride", 1), FLAG("reverse"), FLAG("flatten"), NATURAL("extra", 0) };
static const cfg_key rnn[] = { COUNT("output", 1), ACTIVATION_KEY, BATCH_NORMALIZE, FLAG("shortcut") };
static const cfg_key route[] = { LAYERS("layers") };
static const cfg_key shortcut[] = {
    ONE_LAYER("from", CFG_REQUIRED), LINEAR_KEY, ANY("alpha", 1), ANY("beta", 1),
};
static const cfg_key yolo[] = { YOLO_KEYS, WHOLE("max", 90, 90, 90), FLAG("random") };

static const cfg_section_kind kinds[] = {
    SECTIONS_OF_ALL_FORKS,
    { "[crnn]", 0, KEYS(crnn), IMAGE | ONE_SIZE, cfg_rule_crnn },
    { "[deconvolutional]", "[deconv]", KEYS(deconvolutional), IMAGE, cfg_rule_deconvolutional },
    { "[iseg]", 0, KEYS(iseg), IMAGE | SAME | ONE_SIZE, cfg_rule_iseg },
    { "[l2norm]", 0, 0, 0, SAME | ONE_SIZE, 0 },
    { "[logistic]", 0, 0, 0, SAME | LOSS | ONE_SIZE, 0 },
    { "[reorg]", 0, KEYS(reorg), IMAGE, cfg_rule_reorg },
    { "[shortcut]", 0, KEYS(shortcut), IMAGE | SAME, cfg_rule_shortcut },
};

const cfg_fork amp_cfg_fork = { .kinds = kinds, .count = sizeof kinds / sizeof *kinds, .finish = cfg_finish,
                                .layer_keys = every_layer,
                                .layer_key_count = sizeof every_layer / sizeof *every_layer };
