/* The host room: what AMP keeps for one Darknet network, and the functions that know Darknet's structs. */
#ifndef AMP_HOST_HOST_H
#define AMP_HOST_HOST_H

#include "darknet.h"

#include "../amp/cfg_check.h"
#include "../amp/config.h"
#include "../amp/engine.h"
#include "../include/darknet_amp.h"
#include "pinned.h"

struct amp_resume; /* resume.h */

/* Darknet's buffers of one layer, as AMP keeps them. Capacities are in floats; 0 is no buffer. copy: on a GPU, of the output in
 * the program's memory. */
typedef struct amp_host_buffers { size_t output_capacity, delta_capacity, copy_capacity; } amp_host_buffers;

struct darknet_amp {
    amp_config *config;
    amp_engine *engine;
    network *net;              /* the network of the hook that runs now */
    amp_host_buffers *buffers; /* per layer */
    amp_host_pinned pinned;    /* the network's input */
    float *workspace;          /* what Darknet's own layers get for net->workspace, which is NULL under AMP */
    size_t workspace_bytes;
    struct amp_resume *resume; /* files saved and loaded */
    int layer_count, batch;    /* as parsed: Darknet's own fp32 layers cannot grow beyond that batch */
    int w, h;                  /* as parsed */
    unsigned long unsynced_steps; /* steps taken since the replicas' weights were last averaged (replicas.c) */

    /* What is told to the user. Times in seconds of CLOCK_MONOTONIC. */
    unsigned long steps, skipped;
    double started, computed, images;
    int step_skipped;          /* the last one was */
    float step_scale;          /* the loss scale it was made with */
    double step_gradient_norm; /* L2, unscaled, averaged over the batch, before clipping; NaN if it was skipped */
    int summary_printed;
    int anomaly_noted, anomaly_subdivision; /* debug=1, of the step under way: see report.h */
    char *anomaly_images;
};

/* Ends the program with the error's line on stderr and status 1. */
_Noreturn void amp_host_die(const amp_error *error);
/* The same unless status is AMP_OK. */
void amp_host_check(amp_status status, const amp_error *error);

/* Takes `name value` out of argv, as Darknet's own find_char_arg does; NULL where name is absent. allowed: for the message, if it
 * has no value. */
const char *amp_host_take_argument(int *argc, char **argv, const char *name, const char *allowed);

/* What networks made from here on are to run in, as `-amp` on the command line says it: "off", "fp32", "fp16", "bf16", or NULL:
 * as the .cfg has it. wish is kept, not copied, and is to outlive those networks' making. For commands that make networks of
 * their own, while no other thread makes any. */
void amp_host_wish_dtype(const char *wish);
const char *amp_host_wished_dtype(void);

/* Describe net's layers as the engine wants them. *out is freed with amp_network_desc_free. */
amp_status amp_host_describe(network *net, const amp_config *config, amp_network_desc *out, amp_error *error);

/* The callbacks of amp_host; context is a struct darknet_amp. */
amp_host amp_host_callbacks(struct darknet_amp *amp);

/* Take over the buffers Darknet made (after parsing and after a resize), and give its workspace back. */
void amp_host_note_buffers(struct darknet_amp *amp, network *net);

/* A layer that Darknet has just made or resized, while the next is not made yet: what AMP does not use of it is given back, so
 * that a network that fits only under AMP can be made. */
void amp_host_trim(const network *net, layer *l);

/* After a skipped step: clear what stock's layers would carry over. Their gemm multiplies old workspace by 0 where it means to
 * overwrite it, and NaN times 0 is NaN. */
void amp_host_forget_overflow(struct darknet_amp *amp);

/* The backend for net, on the device that the calling thread uses; NULL and *error where there is none. */
amp_backend *amp_host_choose_backend(const network *net, amp_error *error);

/* The layer whose output stands for layer `index` when a later layer `consumer` reads it: Darknet's dropout works inside
 * its neighbour's output, so that readers behind a dropout see what it left. */
int amp_host_producer(const network *net, int index, int consumer);

/* The .cfg section's name of a type: "convolutional". */
const char *amp_host_type_name(LAYER_TYPE type);

/* Layers AMP computes itself: their Darknet buffers exist only on demand. */
int amp_host_is_native(const layer *l);

/* Looks at the whole .cfg (cfg_check.h). AMP_BAD_CONFIG: its first mistake. Warnings are printed for the
 * first .cfg that has some: later ones are copies of it. */
amp_status amp_host_check_cfg(const char *cfg, cfg_use use, amp_error *error);

/* Whether a network of this .cfg would be under AMP, the command line considered. A broken .cfg ends the
 * program; use: what it is then for. */
int amp_host_is_wanted(const char *cfg, cfg_use use);

#endif
