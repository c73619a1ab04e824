/* The bytes and casts of a plan, layer by layer, without running it. */
#pragma once

#include "plan.h"

/* What a layer requested from the plan's arena. Buffers can share memory, so the arena (plan->arena.total) is
 * smaller than the sum. The host's buffers (AMP_FORM_PLAIN) are not counted. */
typedef struct amp_plan_bytes {
    size_t output; /* the layer's output in its home form */
    size_t copies; /* the output cast to other forms */
    size_t deltas; /* the output's deltas in all forms, and sums_delta and delta_part of amp_node */
    size_t kept;   /* everything else that forward keeps for backward (batch norm's input and statistics,
                      max pooling's indices), and a loss's result */
} amp_plan_bytes;

/* Layer -1 is the image. */
amp_plan_bytes amp_plan_bytes_of(const amp_plan *, int layer);

/* A cast of a value to another form, made once for all layers that read this form; backward may also cast the
 * delta back. */
typedef struct amp_plan_cast {
    int producer;      /* -1: the image */
    int reader;        /* index of the first layer that reads the value in form `to`; -1: the host reads it */
    amp_form from, to;
    int backward;      /* 1: backward casts the delta back */
    size_t elements;
} amp_plan_cast;

/* Fills casts[room] in forward order. Returns their number, which may exceed room. */
int amp_plan_casts(const amp_plan *, amp_plan_cast *casts, int room);
