/* What the table of keys and the rules of shapes of one fork share. */
#ifndef AMP_HOST_PJREDDIE_CFG_KEYS_H
#define AMP_HOST_PJREDDIE_CFG_KEYS_H

#include "../../amp/cfg_check.h"

/* [net]'s policy, in the order of its words. */
enum { POLICY_CONSTANT, POLICY_STEP, POLICY_STEPS, POLICY_EXP, POLICY_SIGMOID, POLICY_POLY, POLICY_RANDOM };

void pjreddie_rule_net(cfg_walk *);
void pjreddie_rule_activation(cfg_walk *);
void pjreddie_rule_l2norm(cfg_walk *);
void pjreddie_rule_avgpool(cfg_walk *);
void pjreddie_rule_batchnorm(cfg_walk *);
void pjreddie_rule_connected(cfg_walk *);
void pjreddie_rule_convolutional(cfg_walk *);
void pjreddie_rule_cost(cfg_walk *);
void pjreddie_rule_crnn(cfg_walk *);
void pjreddie_rule_crop(cfg_walk *);
void pjreddie_rule_deconvolutional(cfg_walk *);
void pjreddie_rule_detection(cfg_walk *);
void pjreddie_rule_dropout(cfg_walk *);
void pjreddie_rule_gru(cfg_walk *);
void pjreddie_rule_iseg(cfg_walk *);
void pjreddie_rule_local(cfg_walk *);
void pjreddie_rule_logistic(cfg_walk *);
void pjreddie_rule_lstm(cfg_walk *);
void pjreddie_rule_maxpool(cfg_walk *);
void pjreddie_rule_normalization(cfg_walk *);
void pjreddie_rule_region(cfg_walk *);
void pjreddie_rule_reorg(cfg_walk *);
void pjreddie_rule_rnn(cfg_walk *);
void pjreddie_rule_route(cfg_walk *);
void pjreddie_rule_shortcut(cfg_walk *);
void pjreddie_rule_softmax(cfg_walk *);
void pjreddie_rule_upsample(cfg_walk *);
void pjreddie_rule_yolo(cfg_walk *);
void pjreddie_finish(cfg_walk *);

#endif
