/* The numerics probe: some steps of a real training in fp32, how large each layer's outputs, deltas and
 * weight gradients are in it, what fp16 and bf16 would lose of them, and which layers to keep in fp32 for it.
 * probe.c trains and counts, probe_advice.c finds what to keep, probe_print.c shows the result. */
#pragma once

#include "../../amp/numerics.h"
#include "../../amp/plan.h"
#include "../table.h"

/* Loss scales as exponents of 2, least <= most; where nothing bounds them INT_MIN, INT_MAX. */
typedef struct amp_probe_scales { int least, most; } amp_probe_scales;

typedef struct amp_probe_layer {
    amp_layer_numerics numerics;
    int low;                   /* as the .cfg has it, it computes in fp16 or bf16 */
    amp_probe_scales scales;   /* of its deltas, where they are stored in fp16 */
    int keep;                   /* advice: amp=0 for this layer */
} amp_probe_layer;

typedef enum amp_probe_scale_source {
    AMP_SCALE_OF_SIDECAR, /* the loss scale that the weights were trained with last */
    AMP_SCALE_OF_CFG,     /* loss_scale or init_scale */
    AMP_SCALE_HIGHEST     /* at which no delta of the probe overflows: where a dynamic one settles */
} amp_probe_scale_source;

typedef struct amp_probe_result {
    const char *data, *cfg, *weights; /* weights NULL: from random ones */
    long iterations;           /* training steps */
    int images, width, height; /* images a step */
    double share;              /* amp_lost.error that a layer may have */
    double seconds;            /* of computing, loading and counting */
    float first_loss, last_loss;

    amp_network_desc network;  /* its links and kinds; Darknet's arrays in it are gone */
    amp_probe_layer *layers;   /* [network.count] */

    float scale;               /* the present one, for fp16 */
    int scale_moves;           /* it is a dynamic one's */
    amp_probe_scale_source scale_source;
    float bf16_scale;          /* 1 unless the .cfg has another for bf16 */
    /* of all layers that compute in fp16; empty (least > most) if no scale suits all of them */
    amp_probe_scales scales;

    /* one sentence per layer that loses too much, or that nothing needs to be done */
    amp_lines advice;
    int keep_count;
} amp_probe_result;

void amp_probe_free(amp_probe_result *);

/* ---- probe_advice.c: what loses too much in fp16, at which loss scales, and which layers to keep ---- */

/* network, the layers' numerics, share and, unless it is AMP_SCALE_HIGHEST, scale are known; fills in the
 * rest. */
void amp_probe_advise(amp_probe_result *);

/* 2^exponent for a reader: "2048", "0.25", "2^40". */
const char *amp_probe_scale_text(int exponent, char text[32]);

/* ---- probe_print.c ---- */

void amp_probe_print(const amp_probe_result *, FILE *);
amp_output_writer amp_probe_write; /* as JSON */
