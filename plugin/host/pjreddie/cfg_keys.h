/* What the table of keys and the rules of shapes of one fork share. */
#ifndef AMP_HOST_PJREDDIE_CFG_KEYS_H
#define AMP_HOST_PJREDDIE_CFG_KEYS_H

#include "../../amp/cfg_check.h"

/* [net]'s policy, in the order of its words. */
enum { POLICY_CONSTANT, POLICY_STEP, POLICY_STEPS, POLICY_EXP, POLICY_SIGMOID, POLICY_POLY, POLICY_RANDOM };

/* The rules, one for each kind of section that has more to it than its traits. */
typedef void pjreddie_rule(cfg_walk *);
pjreddie_rule pjreddie_rule_net, pjreddie_rule_activation, pjreddie_rule_avgpool, pjreddie_rule_batchnorm,
    pjreddie_rule_connected, pjreddie_rule_convolutional, pjreddie_rule_crnn, pjreddie_rule_crop,
    pjreddie_rule_deconvolutional, pjreddie_rule_detection, pjreddie_rule_dropout, pjreddie_rule_gru,
    pjreddie_rule_iseg, pjreddie_rule_local, pjreddie_rule_lstm, pjreddie_rule_maxpool,
    pjreddie_rule_normalization, pjreddie_rule_region, pjreddie_rule_reorg, pjreddie_rule_rnn,
    pjreddie_rule_route, pjreddie_rule_shortcut, pjreddie_rule_softmax, pjreddie_rule_upsample,
    pjreddie_rule_yolo;
pjreddie_rule pjreddie_finish; /* what shows only when all layers have a shape */

#endif
