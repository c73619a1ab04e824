/* The sections, keys and allowed values of the parsers of AlexeyAB's and hank-ai's Darknets. */
#include "../darknet/cfg_rules.h"

static const char *const activations[] = {
    "logistic", "loggy", "relu", "elu", "selu", "gelu", "relu6", "relie", "plse", "hardtan", "lhtan",
    "linear", "ramp", "revleaky", "leaky", "tanh", "stair", "swish", "mish", "hard_mish",
    "normalize_channels", "normalize_channels_softmax", "normalize_channels_softmax_maxval", 0,
};
enum { LOGISTIC_IS = 0, LINEAR_IS = 11, TANH_IS = 15 };
static const char *const policies[] = {
    "constant", "step", "steps", "exp", "sigmoid", "poly", "random", "sgdr", 0,
};
static const char *const costs[] = { "sse", "masked", "smooth", 0 };
static const char *const iou_losses[] = { "mse", "giou", "diou", "ciou", "iou", 0 };
static const char *const iou_kinds[] = { "iou", "giou", "diou", "ciou", 0 };
static const char *const nms_kinds[] = { "default", "greedynms", "diounms", "cornersnms", 0 };
static const char *const points[] = { "center", "left_top", "right_bottom", 0 };
static const char *const weights_types[] = { "none", "per_feature", "per_layer", "per_channel", 0 };
static const char *const normalizations[] = { "none", "relu", "avg_relu", "softmax", 0 };

#define BATCH_NORMALIZE WHOLE("batch_normalize", 0, 0, 1) /* with cbn=1 Darknet sets it to 2 */
#include "../darknet/cfg_keys.h"

static const cfg_key net[] = {
    NET_KEYS, FROM_1("sequential_subdivisions", 1), NATURAL("max_crop", 0), NATURAL("min_crop", 0),
    NOT_NEGATIVE("learning_rate_min", .00001), NATURAL("sgdr_cycle", 0), NATURAL("sgdr_mult", 2),
    NOT_NEGATIVE("eps", 1e-6), NUMBERS("scales", 0), NUMBERS("seq_scales", 0), NATURAL("flip", 1),
    NATURAL("blur", 0), NATURAL("gaussian_noise", 0), WHOLE("mixup", 0, 0, 4), FLAG("cutmix"), FLAG("mosaic"),
    FLAG("letter_box"), FLAG("mosaic_bound"), REAL("label_smooth_eps", 0, 0, 1),
    NOT_NEGATIVE("resize_step", 32), NOT_NEGATIVE("max_chart_loss", 20), FRACTION("ema_alpha", 0),
    NATURAL("weights_reject_freq", 0), NATURAL("equidistant_point", 0),
    NOT_NEGATIVE("badlabels_rejection_percentage", 0), NOT_NEGATIVE("num_sigmas_reject_badlabels", 0),
    FLAG("try_fix_nan"), FLAG("use_cuda_graph"), FLAG("show_receptive_field"),
    NOT_NEGATIVE("workspace_size_limit_MB", 1024), NATURAL("optimized_memory", 0), FLAG("dynamic_minibatch"),
    FLAG("track"), NATURAL("augment_speed", 2), FLAG("contrastive"), FLAG("contrastive_jit_flip"),
    FLAG("contrastive_color"), FLAG("unsupervised"), FLAG("attention"), ANY("adversarial_lr", 0),
    ANY("loss_scale", 1),
};

static const cfg_key every_layer[] = {
    NOT_NEGATIVE("clip", 0), FLAG("onlyforward"), NATURAL("dont_update", 0), NATURAL("burnin_update", 0),
    NATURAL("stopbackward", 0), FLAG("train_only_bn"), FLAG("dontload"), FLAG("dontloadscales"),
    NOT_NEGATIVE("learning_rate", 1),
};

static const cfg_key convolutional[] = {
    CONVOLUTIONAL_KEYS, WHOLE("stride_x", 0, 1, 65536), WHOLE("stride_y", 0, 1, 65536), SIZE("dilation", 1),
    FLAG("cbn"), FLAG("bin_output"), WHOLE("antialiasing", 0, 0, 2), ANY("assisted_excitation", 0),
    ONE_LAYER("share_index", 0), FLAG("sway"), FLAG("rotate"), FLAG("stretch"), FLAG("stretch_sway"),
    ANY("angle", 15), FLAG("grad_centr"), ANY("reverse", 0), FLAG("coordconv"),
    WHOLE("stream", -1, -1, INT_MAX), WHOLE("wait_stream", -1, -1, INT_MAX),
};
static const cfg_key cost[] = { COST_KEYS };
static const cfg_key crnn[] = {
    COUNT("output", 1), COUNT("hidden", 1), SIZE("size", 3), SIZE("stride", 1), SIZE("dilation", 1),
    FLAG("pad"), WHOLE("padding", 0, 0, 65536), COUNT("groups", 1), ACTIVATION_KEY, BATCH_NORMALIZE,
    FLAG("xnor"), FLAG("shortcut"),
};
static const cfg_key conv_lstm[] = {
    COUNT("output", 1), SIZE("size", 3), SIZE("stride", 1), SIZE("dilation", 1), FLAG("pad"),
    WHOLE("padding", 0, 0, 65536), COUNT("groups", 1), LINEAR_KEY, BATCH_NORMALIZE, FLAG("xnor"),
    FLAG("peephole"), FLAG("bottleneck"), ANY("state_constrain", 0), FLAG("shortcut"),
    WORD("lstm_activation", TANH_IS, activations), ANY("time_normalizer", 1),
};
static const cfg_key contrastive[] = {
    COUNT("classes", 1000), ONE_LAYER("yolo_layer", CFG_REQUIRED), POSITIVE("temperature", 1),
    ANY("cls_normalizer", 1), NOT_NEGATIVE("max_delta", 1e300), NATURAL("contrastive_neg_max", 3),
};
static const cfg_key detection[] = {
    DETECTION_KEYS, COUNT("max", 200), NOT_NEGATIVE("resize", 1), NOT_NEGATIVE("random", 0),
};
static const cfg_key dropout[] = {
    FRACTION("probability", .2), FLAG("dropblock"), REAL("dropblock_size_rel", 0, 0, 1),
    NATURAL("dropblock_size_abs", 0),
};
static const cfg_key gru[] = { COUNT("output", 1), BATCH_NORMALIZE };
static const cfg_key history[] = { COUNT("history_size", 4) };
static const cfg_key implicit[] = {
    ANY("mean", 0), NOT_NEGATIVE("std", .2), COUNT("filters", 128), COUNT("atoms", 1),
};
static const cfg_key maxpool[] = {
    SIZE("stride", 1), WHOLE("stride_x", 0, 1, 65536), WHOLE("stride_y", 0, 1, 65536), SIZE("size", 1),
    WHOLE("padding", 0, 0, 65536), FLAG("maxpool_depth"), COUNT("out_channels", 1),
    WHOLE("antialiasing", 0, 0, 2), FLAG("maxpool_zero_nonmax"),
};
static const cfg_key local_avgpool[] = {
    SIZE("stride", 1), WHOLE("stride_x", 0, 1, 65536), WHOLE("stride_y", 0, 1, 65536), SIZE("size", 1),
    WHOLE("padding", 0, 0, 65536),
};
static const cfg_key region[] = {
    REGION_KEYS, FLAG("focal_loss"), COUNT("max", 200), NOT_NEGATIVE("resize", 1), NOT_NEGATIVE("random", 0),
};
static const cfg_key reorg[] = { SIZE("stride", 1), FLAG("reverse") };
static const cfg_key rnn[] = {
    COUNT("output", 1), COUNT("hidden", 1), ACTIVATION_KEY, BATCH_NORMALIZE, FLAG("logistic"),
    FLAG("shortcut"),
};
static const cfg_key route[] = {
    LAYERS("layers"), COUNT("groups", 1), NATURAL("group_id", 0), WHOLE("stream", -1, -1, INT_MAX),
    WHOLE("wait_stream", -1, -1, INT_MAX),
};
static const cfg_key shortcut[] = {
    LAYERS("from"), LINEAR_KEY, WORD("weights_type", 0, weights_types),
    WORD("weights_normalization", 0, normalizations),
};
static const cfg_key sam[] = { ONE_LAYER("from", CFG_REQUIRED), LINEAR_KEY };
static const cfg_key scale_channels[] = { ONE_LAYER("from", CFG_REQUIRED), LINEAR_KEY, FLAG("scale_wh") };

#define BOXES \
    YOLO_KEYS, COUNT("max", 200), NOT_NEGATIVE("max_delta", 1e300), NUMBERS("counters_per_class", 0), \
    REAL("label_smooth_eps", 0, 0, 1), POSITIVE("scale_x_y", 1), FLAG("objectness_smooth"), \
    NOT_NEGATIVE("iou_normalizer", .75), NOT_NEGATIVE("obj_normalizer", 1), \
    NOT_NEGATIVE("cls_normalizer", 1), NOT_NEGATIVE("delta_normalizer", 1), \
    WORD("iou_loss", 0, iou_losses), WORD("iou_thresh_kind", 0, iou_kinds), ANY("beta_nms", .6), \
    WORD("nms_kind", 0, nms_kinds), NOT_NEGATIVE("resize", 1), NOT_NEGATIVE("iou_thresh", 1), \
    NOT_NEGATIVE("random", 0)

static const cfg_key yolo[] = {
    BOXES, FLAG("new_coords"), NATURAL("show_details", 1), FLAG("focal_loss"),
    NATURAL("track_history_size", 5), ANY("sim_thresh", .8), NATURAL("dets_for_track", 1),
    NATURAL("dets_for_show", 1), ANY("track_ciou_norm", .01), ONE_LAYER("embedding_layer", 0),
};
static const cfg_key gaussian_yolo[] = {
    BOXES, NOT_NEGATIVE("uc_normalizer", 1), WORD("yolo_point", 0, points),
};

static const cfg_section_kind kinds[] = {
    SECTIONS_OF_ALL_FORKS,
    { "[contrastive]", 0, KEYS(contrastive), FLAT | ONE_SIZE, cfg_rule_contrastive },
    { "[conv_lstm]", 0, KEYS(conv_lstm), IMAGE, cfg_rule_crnn_of_any_size },
    { "[crnn]", 0, KEYS(crnn), IMAGE, cfg_rule_crnn_of_any_size },
    { "[empty]", "[silence]", 0, 0, SAME, cfg_rule_dropout },
    { "[Gaussian_yolo]", 0, KEYS(gaussian_yolo), IMAGE | SAME, cfg_rule_gaussian_yolo },
    { "[history]", 0, KEYS(history), IMAGE | ONE_SIZE, cfg_rule_history },
    { "[implicit]", 0, KEYS(implicit), ONE_SIZE, cfg_rule_implicit },
    { "[local_avgpool]", "[local_avg]", KEYS(local_avgpool), IMAGE, cfg_rule_maxpool },
    { "[reorg]", "[reorg3d]", KEYS(reorg), IMAGE, cfg_rule_reorg },
    { "[sam]", 0, KEYS(sam), IMAGE | SAME, cfg_rule_sam },
    { "[scale_channels]", 0, KEYS(scale_channels), IMAGE, cfg_rule_scale_channels },
    { "[shortcut]", 0, KEYS(shortcut), IMAGE | SAME, cfg_rule_shortcut_of_one_size },
};

#define IMAGES_DELTA "it needs the deltas of the images, which AMP does not compute"
#define ROLLING "it uses statistics of deltas that Darknet's own yolo layer keeps from step to step"
#define NO_BACKWARD "Darknet's CPU code has no correct backward pass for it"
#define GPU_ALONE "Darknet implements it on a GPU only"
#define NOT_TRIED "it has not been tested yet"
#define SQUARES_DELTA "Darknet's backward pass for it does not compute the gradient"
#define LOCAL_LACKS "AMP runs Darknet's own local layer, which outputs 0 with it or lacks a buffer for it"

static const cfg_refusal refusals[] = {
#ifdef DARKNET_AMP_HANK_AI
#define GONE "this Darknet no longer has it"
    { "[activation]", 0, 0, GONE }, { "[batchnorm]", 0, 0, GONE }, { "[conv_lstm]", 0, 0, GONE },
    { "[crop]", 0, 0, GONE }, { "[detection]", 0, 0, GONE }, { "[empty]", 0, 0, GONE },
    { "[gru]", 0, 0, GONE }, { "[history]", 0, 0, GONE }, { "[implicit]", 0, 0, GONE },
    { "[local]", 0, 0, GONE }, { "[normalization]", 0, 0, GONE }, { "[net]", "max_crop", 0, GONE },
    { "[net]", "min_crop", 0, GONE }, { "[net]", "unsupervised", 0, GONE },
    { "[yolo]", "show_details", 0, GONE },
#endif
    { "[net]", "adversarial_lr", 0, IMAGES_DELTA },
    { "[net]", "attention", 0, IMAGES_DELTA },
    { "[net]", "contrastive", 0, NOT_TRIED },
    { "[net]", "dynamic_minibatch", 0, "under AMP all steps have the same number of images" },
    { "[net]", "unsupervised", 0, "Darknet derives the classes from memory addresses, so a training cannot "
                                  "be repeated" },
    { "[net]", "badlabels_rejection_percentage", 0, ROLLING },
    { "[net]", "num_sigmas_reject_badlabels", 0, ROLLING },
    { "[net]", "equidistant_point", 0, ROLLING },
    { "[rnn]", 0, 0, NO_BACKWARD }, { "[gru]", 0, 0, NO_BACKWARD }, { "[lstm]", 0, 0, NO_BACKWARD },
    { "[conv_lstm]", 0, 0, NO_BACKWARD }, { "[history]", 0, 0, NO_BACKWARD },
    { "[crnn]", "activation", "swish", NO_BACKWARD }, { "[crnn]", "activation", "mish", NO_BACKWARD },
    { "[crnn]", "activation", "hard_mish", NO_BACKWARD },
    { "[crnn]", "xnor", 0, "Darknet's xnor has errors that AMP corrects only in convolutional layers" },
    { "[sam]", "activation", "revleaky", NOT_TRIED },
    { "[scale_channels]", "activation", "revleaky", NOT_TRIED },
    { "[contrastive]", 0, 0, NOT_TRIED },
    { "[yolo]", "embedding_layer", 0, NOT_TRIED },
    { 0, "activation", "gelu", "Darknet computes its gradient from the output instead of the input" },
    { 0, "activation", "normalize_channels", SQUARES_DELTA },
    { 0, "activation", "normalize_channels_softmax", SQUARES_DELTA },
    { 0, "activation", "normalize_channels_softmax_maxval", SQUARES_DELTA },
    { "[local]", "activation", "relu6", LOCAL_LACKS }, { "[local]", "activation", "swish", LOCAL_LACKS },
    { "[local]", "activation", "mish", LOCAL_LACKS }, { "[local]", "activation", "hard_mish", LOCAL_LACKS },
    { "[convolutional]", "cbn", 0, "AMP's batch norm sees only the images of one pass" },
    { "[convolutional]", "antialiasing", 0, NO_BACKWARD },
    { "[maxpool]", "antialiasing", 0, NO_BACKWARD },
    { "[maxpool]", "maxpool_zero_nonmax", 0, GPU_ALONE },
    { "[convolutional]", "coordconv", 0, GPU_ALONE },
    { "[convolutional]", "sway", 0, GPU_ALONE }, { "[convolutional]", "rotate", 0, GPU_ALONE },
    { "[convolutional]", "stretch", 0, GPU_ALONE }, { "[convolutional]", "stretch_sway", 0, GPU_ALONE },
    { "[convolutional]", "grad_centr", 0, GPU_ALONE },
    { "[convolutional]", "reverse", 0, GPU_ALONE },
    { "[convolutional]", "assisted_excitation", 0, "it reads 5 numbers per label, but a label has 6" },
    { "[dropout]", "dropblock", 0, GPU_ALONE },
    { "[cost]", "type", "smooth", NOT_TRIED },
};

#ifdef DARKNET_AMP_HANK_AI
#define READS .strict = 1, .cfg_syntax = CFG_STRICT, .data_syntax = CFG_SPACED
#else
#define READS .strict = 0
#endif
const cfg_fork amp_cfg_fork = { kinds, sizeof kinds / sizeof *kinds, KEYS(every_layer), cfg_finish,
                                KEYS(refusals), READS };
