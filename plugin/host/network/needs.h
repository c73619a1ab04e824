/* The memory that a training takes, added up only here: for `amp plan`, for checkpoint=auto, and for fits.h,
 * which asks whether it is available. In bytes, of the device that the network is on. `batch` is the number
 * of images per forward pass; with recurrent layers, images times time steps. Nothing runs. */
#pragma once

#include "../fork.h"

/* The plan of a training step at net's current shape, built if there is none yet. net's engine owns it; it is
 * valid until the engine adds another plan. */
amp_status amp_host_training_plan(struct network *net, const amp_plan **out, amp_error *);
/* An outline (amp_engine_outline) of a training step. */
amp_status amp_host_outline(struct network *net, int batch, amp_dtype dtype, const amp_recompute_settings *,
                            amp_plan **out, amp_error *);

/* The bytes of a training pass, without weights and arrays of their size. */
typedef struct amp_footprint {
    size_t arena;   /* planned: activations and deltas, which share memory where their lifetimes allow it */
    size_t buffers; /* Darknet's fp32 buffers that are kept: the sum of amp_fork_buffer_bytes */
    size_t input;   /* images and labels */
    double again;   /* activation checkpointing: what backward repeats, as a share of a forward's
                       arithmetic */
} amp_footprint;

static inline size_t amp_footprint_sum(const amp_footprint *f) { return f->arena + f->buffers + f->input; }

/* The footprint of a pass that net's engine would plan in dtype. In stock Darknet: activations, deltas and
 * input. */
amp_status amp_host_footprint(struct network *net, int batch, amp_dtype dtype, amp_footprint *out,
                              amp_error *);
size_t amp_host_stock_footprint(const struct network *net, int batch);

/* Bytes of RAM for loading: images and labels of the current batch and of the next one, `images` images each.
 * 0 on a GPU, because then RAM is not the memory in question. */
size_t amp_host_loaded_bytes(const struct network *, int images);

typedef struct amp_training {
    struct network *net;
    const amp_plan *plan; /* of a step in any dtype, for its convolutions' copies and workspace; those of an
                             outline are estimates */
    amp_dtype dtype;
    int images;           /* that this program loads for a step; as many as a pass has, if that is more */
    size_t pictures;      /* bytes of the images that are being decoded at the same time */
} amp_training;

typedef struct amp_needs {
    amp_footprint pass; /* what grows with the images per pass and with the input's size */
    size_t parameters;  /* masters, momentum and gradients, Adam's two moments; statistics and their
                           committed copies */
    size_t copies;      /* of weights, in the dtype of the arithmetic */
    size_t workspace;   /* shared by convolutions, and by Darknet's own layers */
    size_t loaded;      /* images and labels of two batches; it grows with the input's size too */
    size_t program;     /* the program, its libraries and their own memory, without any of these */
    double area;        /* the largest input's size divided by the current one's: `pass` and `loaded` are
                           for the largest */
} amp_needs;

/* Adds up the memory of a training with `pass` images per pass. With random=1 this is for its largest input,
 * assuming that memory grows with the number of pixels. In stock Darknet: without the program. */
amp_status amp_host_needs(const amp_training *, int pass, amp_needs *out, amp_error *);
size_t amp_host_stock_needs(const amp_training *, int pass);

static inline size_t amp_needs_sum(const amp_needs *n)
{
    return amp_footprint_sum(&n->pass) + n->parameters + n->copies + n->workspace + n->loaded + n->program;
}

/* Bytes of the copies of a layer's weights if it computes in dtype. In fp32 there are copies too, in the
 * library's layouts. */
size_t amp_node_copies(const amp_node *node, const amp_backend *backend, amp_dtype dtype);
/* Fills *facts with what the backend reports about a layer's matrix products; returns 0 if it has none, or
 * they are not built. */
int amp_node_facts(const amp_node *node, const amp_backend *backend, amp_conv_facts *facts);
