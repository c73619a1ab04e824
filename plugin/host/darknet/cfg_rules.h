/* What the tables of keys of the forks share, and the rules of shapes. */
#pragma once

#include <stddef.h>

#include "../../amp/cfg_check.h"

/* ---- how a table is written ---- */

/* name, where it is not given, least, most */
#define WHOLE(name, fallback, least, most) { name, CFG_WHOLE, 0, fallback, least, most, 0 }
#define SIZE(name, fallback) WHOLE(name, fallback, 1, 65536)
#define COUNT(name, fallback) WHOLE(name, fallback, 1, INT_MAX)
#define REAL(name, fallback, least, most) { name, CFG_REAL, 0, fallback, least, most, 0 }
#define ANY(name, fallback) REAL(name, fallback, -1e300, 1e300)
#define NOT_NEGATIVE(name, fallback) REAL(name, fallback, 0, 1e300)
/* Of 1, and not all of it. */
#define FRACTION(name, fallback) { name, CFG_REAL, CFG_BELOW, fallback, 0, 1, 0 }
#define POSITIVE(name, fallback) { name, CFG_REAL, CFG_ABOVE, fallback, 0, 1e300, 0 }
#define FLAG(name) { name, CFG_FLAG, 0, 0, 0, 1, 0 }
#define WORD(name, fallback, words) { name, CFG_WORD, 0, fallback, 0, 0, words }
#define NAMED(name) { name, CFG_FILE, 0, 0, 0, 0, 0 }

#define KEYS(keys) keys, sizeof keys / sizeof *keys
enum { IMAGE = CFG_NEEDS_IMAGE, SAME = CFG_SAME_IMAGE, FLAT = CFG_SAME_COUNT, ONE_SIZE = CFG_ONE_SIZE,
       LOSS = CFG_READS_TRUTH };

/* ---- rules ---- */

/* [net]'s policy, in the order of its words. */
enum { POLICY_CONSTANT, POLICY_STEP, POLICY_STEPS, POLICY_EXP, POLICY_SIGMOID, POLICY_POLY, POLICY_RANDOM,
       POLICY_SGDR };

/* The rules, one for each kind of section that has more to it than its traits. */
typedef void cfg_rule(cfg_walk *);
cfg_rule cfg_rule_net, cfg_rule_activation, cfg_rule_avgpool, cfg_rule_batchnorm,
    cfg_rule_connected, cfg_rule_convolutional, cfg_rule_crnn, cfg_rule_crop,
    cfg_rule_deconvolutional, cfg_rule_detection, cfg_rule_dropout, cfg_rule_gru,
    cfg_rule_iseg, cfg_rule_local, cfg_rule_lstm, cfg_rule_maxpool,
    cfg_rule_normalization, cfg_rule_region, cfg_rule_reorg, cfg_rule_rnn,
    cfg_rule_route, cfg_rule_shortcut, cfg_rule_softmax, cfg_rule_upsample,
    cfg_rule_yolo, cfg_rule_gaussian_yolo, cfg_rule_scale_channels, cfg_rule_sam, cfg_rule_crnn_of_any_size,
    cfg_rule_implicit, cfg_rule_history, cfg_rule_contrastive,
    cfg_rule_shortcut_of_one_size;
cfg_rule cfg_finish; /* what shows only when all layers have a shape */

/* ---- what differs between forks: FORK/cfg_own.c ---- */

/* Numbers of truth that the loader makes of `boxes` labels of an image, with so many coordinates. */
double cfg_own_truths(const cfg_walk *, double coords, int is_region);
/* anchors has so many numbers, which is not two for each of `num` anchors. */
void cfg_own_wrong_anchors(cfg_walk *, int numbers, double num);
/* Whether its own convolution gathers 1x1 windows (im2col), instead of reading the input as it lies. */
int cfg_own_lays_out_1x1(double stride_x, double dilation);
/* Refuses a head that reads `reads` numbers of truth an image, where the last layer has `loaded` loaded. */
void cfg_own_unlike_head(cfg_walk *, double reads, double loaded);
/* What else shows only when all layers have a shape. */
void cfg_own_finish(cfg_walk *);
/* What the loaders of its `detector train` or `classifier train` cannot do. The present section is [net]. */
void cfg_own_loader(cfg_walk *, int classifier);
/* Widths and heights of random=1, of a detector's or a classifier's loop; returns how many. */
enum { CFG_OWN_SIZES = 64 };
size_t cfg_own_sizes(const cfg_walk *, int classifier, double random, double sizes[CFG_OWN_SIZES][2]);
