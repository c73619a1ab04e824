/* Adds up the memory that a training takes. All users get it from here: `amp plan`, checkpoint=auto, and
 * fits.h, which checks whether it is available. Amounts are in bytes, on the device of the network. `batch`
 * is the number of images per forward pass; with recurrent layers, it is images times time steps. No layer
 * runs. */
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
    size_t arena;   /* activations and deltas as planned: they share memory where their lifetimes allow it */
    size_t buffers; /* Darknet's fp32 buffers that are kept: the sum of amp_fork_buffer_bytes */
    size_t input;   /* images and labels */
    double again;   /* the arithmetic that backward repeats (activation checkpointing), as a share of a
                       forward's */
} amp_footprint;

static inline size_t amp_footprint_sum(const amp_footprint *f) { return f->arena + f->buffers + f->input; }

/* The footprint of a pass that net's engine would plan in dtype. amp_host_stock_footprint: the same for stock
 * Darknet, which is activations, deltas and input. */
amp_status amp_host_footprint(struct network *net, int batch, amp_dtype dtype, amp_footprint *out,
                              amp_error *);
size_t amp_host_stock_footprint(const struct network *net, int batch);

/* Bytes of RAM for loading: images and labels of the current batch and of the next batch, which have `images`
 * images each. 0 on a GPU, where the needs are in GPU memory. */
size_t amp_host_loaded_bytes(const struct network *, int images);

typedef struct amp_training {
    struct network *net;
    const amp_plan *plan; /* of a step in any dtype; gives the copies and the workspace of convolutions,
                             which are only estimated if the plan is an outline */
    amp_dtype dtype;
    int images;           /* that this program loads for a step; if a pass has more, that number counts */
    size_t pictures;      /* bytes of the images that are being decoded at the same time; see amp_needs.loop */
} amp_training;

typedef struct amp_needs {
    amp_footprint pass; /* grows with the images per pass and with the input size */
    size_t parameters;  /* masters, momentum and gradients, Adam's two moments; statistics and their
                           committed copies */
    size_t copies;      /* copies of weights in the dtype of the arithmetic */
    size_t workspace;   /* one for all convolutions, and one for Darknet's own layers */
    size_t loaded;      /* images and labels of two batches; grows with the input size too */
    size_t program;     /* the program, its libraries, and their own memory; 0 on a GPU */
    size_t loop;        /* what the training's loop adds: images being decoded, Darknet's charts (not on a GPU) */
    double area;        /* pixels of the largest input divided by those of the current input. `pass` and
                           `loaded` are for the largest input */
} amp_needs;

/* Adds up the memory of a training with `pass` images per pass. With random=1 this is the memory for its
 * largest input, if memory grows in proportion to the number of pixels. amp_host_stock_needs: the same for
 * stock Darknet, without `program`. */
amp_status amp_host_needs(const amp_training *, int pass, amp_needs *out, amp_error *);
size_t amp_host_stock_needs(const amp_training *, int pass);

static inline size_t amp_needs_sum(const amp_needs *n)
{
    return amp_footprint_sum(&n->pass) + n->parameters + n->copies + n->workspace + n->loaded + n->program
         + n->loop;
}

/* Bytes of the copies of a layer's weights if the layer computes in dtype. There are copies in fp32 too, in
 * the library's layouts. */
size_t amp_node_copies(const amp_node *node, const amp_backend *backend, amp_dtype dtype);
/* Fills *facts with what the backend reports about a layer's matrix products. Returns 0 if the layer has
 * none, or if they are not built. */
int amp_node_facts(const amp_node *node, const amp_backend *backend, amp_conv_facts *facts);
