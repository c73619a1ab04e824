/* Macros for the forks' tables of .cfg keys, and the rules for the shapes of layers (cfg_rules.c). */
#pragma once

#include <stddef.h>

#include "../../amp/cfg_check.h"

/* ---- how a table is written ---- */

/* fallback: the value of a key that is not given. least, most: the limits of its value. */
#define WHOLE(name, fallback, least, most) { name, CFG_WHOLE, 0, fallback, least, most, 0 }
#define SIZE(name, fallback) WHOLE(name, fallback, 1, 65536)
#define COUNT(name, fallback) WHOLE(name, fallback, 1, INT_MAX)
#define REAL(name, fallback, least, most) { name, CFG_REAL, 0, fallback, least, most, 0 }
#define ANY(name, fallback) REAL(name, fallback, -1e300, 1e300)
#define NOT_NEGATIVE(name, fallback) REAL(name, fallback, 0, 1e300)
/* A real number of at least 0 and below 1. */
#define FRACTION(name, fallback) { name, CFG_REAL, CFG_BELOW, fallback, 0, 1, 0 }
#define POSITIVE(name, fallback) { name, CFG_REAL, CFG_ABOVE, fallback, 0, 1e300, 0 }
#define FLAG(name) { name, CFG_FLAG, 0, 0, 0, 1, 0 }
#define WORD(name, fallback, words) { name, CFG_WORD, 0, fallback, 0, 0, words }
#define NAMED(name) { name, CFG_FILE, 0, 0, 0, 0, 0 }

#define KEYS(keys) keys, sizeof keys / sizeof *keys
enum { IMAGE = CFG_NEEDS_IMAGE, SAME = CFG_SAME_IMAGE, FLAT = CFG_SAME_COUNT, ONE_SIZE = CFG_ONE_SIZE,
       LOSS = CFG_READS_TRUTH };

/* ---- rules ---- */

/* Values of [net]'s policy=: indices into a fork's table `policies`. */
enum { POLICY_CONSTANT, POLICY_STEP, POLICY_STEPS, POLICY_EXP, POLICY_SIGMOID, POLICY_POLY, POLICY_RANDOM,
       POLICY_SGDR };

/* The rules of sections that their traits (IMAGE, SAME and so on) do not describe completely. */
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
cfg_rule cfg_finish; /* checks the whole network, once all layers have a shape */

/* ---- what each fork implements differently: FORK/cfg_own.c ---- */

/* The number of truth floats that the loader makes per image, if a box has `coords` coordinates. */
double cfg_own_truths(const cfg_walk *, double coords, int is_region);
/* Reports that anchors= has `numbers` numbers instead of 2 * num. */
void cfg_own_wrong_anchors(cfg_walk *, int numbers, double num);
/* Whether this fork's own convolution gathers 1x1 windows with im2col instead of reading the input
 * directly. */
int cfg_own_lays_out_1x1(double stride_x);
/* Rejects a layer that finds boxes but needs other labels than the last layer: it reads `reads` truth floats
 * per image, and the loader makes `loaded`, the number that the last layer needs. */
void cfg_own_unlike_head(cfg_walk *, double reads, double loaded);
/* This fork's additional checks of the whole network, once all layers have a shape. */
void cfg_own_finish(cfg_walk *);
/* Rejects settings that this fork's loaders do not support. The walk must be at [net]. */
void cfg_own_loader(cfg_walk *, int classifier);
/* Fills in the widths and heights to which training with random=1 resizes a network. Returns their number. */
enum { CFG_OWN_SIZES = 64 };
size_t cfg_own_sizes(const cfg_walk *, int classifier, double random, double sizes[CFG_OWN_SIZES][2]);
