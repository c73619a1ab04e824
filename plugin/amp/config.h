/* AMP's settings from a .cfg and the command line.
 *
 * Settings come from keys under [net], keys in the [amp] section, and -amp on the command line; in this
 * order, a later one overrides an earlier one. All settings are checked before Darknet creates a layer. A
 * mistake is reported in one line that names file, line, section, key, value and what is allowed.
 * docs/keys.md has the table of keys. */
#pragma once

#include "../tensor/tensor.h"
#include "cfg_document.h"

/* Keys of a layer's section. */
typedef struct amp_layer_keys {
    signed char amp;        /* 0: the layer computes in fp32; 1: the default */
    signed char checkpoint; /* 1: backward recomputes the layer's output (recompute.h) */
} amp_layer_keys;

typedef struct amp_config {
    int enabled;
    amp_dtype dtype;
    int dynamic;        /* 1: dynamic loss scaling; 0: loss_scale is the static scale */
    double loss_scale;
    double init_scale, growth_factor, backoff_factor;
    int growth_interval;
    double min_scale, max_scale;
    int hysteresis;
    double clip_norm;   /* 0: off */
    double spike_factor; /* 0: off (spikes.h) */
    int spike;          /* AMP_SPIKE_LOG or AMP_SPIKE_SKIP */
    int adamw;          /* decoupled weight decay; requires adam=1 in [net] */
    int debug;
    int graphs;             /* 1: record each pass of a training once, then replay it (recording.h) */
    int winograd;           /* 0: all convolutions use the direct algorithm (amp_conv_desc.direct) */
    int checkpoint;         /* activation checkpointing: AMP_CHECKPOINT_OFF, _AUTO, or a number of segments */
    double memory;          /* upper limit, in bytes, of a training's memory with AMP_CHECKPOINT_AUTO; 0: the
                               free memory */
    amp_dtype wire;         /* the type in which ranks exchange gradients */
    int sync_batchnorm;     /* 1: batch norm treats the images of all ranks in a pass as one batch */
    int layer_count;
    amp_layer_keys *layers; /* one entry per layer; [net] and [amp] are not layers */
    char *file;         /* the .cfg's name */
    char given[1024];   /* the keys that the .cfg sets: "amp=1, dtype=bf16" */
    char note[512];     /* one line for the user; may be empty */
} amp_config;

enum { AMP_SPIKE_LOG, AMP_SPIKE_SKIP };
enum { AMP_CHECKPOINT_OFF = -1, AMP_CHECKPOINT_AUTO = 0 };

/* Reads the settings in a .cfg. command_line_amp: -amp's argument ("off", "fp32", "fp16", "bf16"), or NULL.
 * default_dtype: used if no dtype is given. Whether the machine supports the dtype is not checked.
 *
 * Whether AMP is on is decided by the first of these that is given: -amp (a dtype: on); the last amp= in
 * [net] or [amp]; an [amp] section (on). If none is given, AMP is off. AMP's keys are checked even then. If
 * nothing mentions AMP itself, AMP's keys under [net] have no effect, and the note in *out says this.
 *
 * The caller frees *out with amp_config_free. On failure *out is NULL and the status is AMP_BAD_CONFIG. */
amp_status amp_config_read(const cfg_document *, const char *command_line_amp, amp_dtype default_dtype,
                           amp_config **out, amp_error *error);

void amp_config_free(amp_config *config); /* NULL is fine */

/* Documents one key. */
typedef struct amp_config_row {
    const char *name, *allowed, *help; /* help: one line */
    char initial[64];                  /* the default */
} amp_config_row;

/* Fills *out for key k, from 0 in the order of docs/keys.md. Returns 0 if there is no key k. */
int amp_config_key(int k, amp_config_row *out);

/* Whether a key belongs to AMP; AMP's keys must be hidden from Darknet. amp_config_is_key is for [net],
 * amp_config_is_layer_key for a layer's section. */
int amp_config_is_key(const char *key);
int amp_config_is_layer_key(const char *key);
