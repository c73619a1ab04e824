/* Computes the memory that a training takes, without running any layer, for `amp plan`, checkpoint=auto and
 * fits.h. Amounts are in bytes, on the network's device. batch: images per forward pass; with recurrent
 * layers, images times time steps. */
#pragma once

#include "../fork.h"

/* Makes an outline (amp_engine_outline) of a training step. */
amp_status amp_host_outline(struct network *net, int batch, amp_dtype dtype, const amp_recompute_settings *,
                            amp_plan **out, amp_error *);

/* Bytes that a training pass needs in addition to weights, gradients and the optimizer's arrays. */
typedef struct amp_footprint {
    size_t arena;   /* activations and deltas; they share memory if their lifetimes do not overlap */
    size_t buffers; /* fp32 buffers of Darknet that are kept: the sum of amp_fork_buffer_bytes */
    size_t input;   /* images and labels */
    double again;   /* operations that backward repeats, divided by those of a forward; not bytes */
} amp_footprint;

static inline size_t amp_footprint_sum(const amp_footprint *f) { return f->arena + f->buffers + f->input; }

/* Computes the footprint of a pass as net's engine would plan it in dtype. amp_host_stock_footprint returns
 * the footprint in stock Darknet: activations, deltas and input. */
amp_status amp_host_footprint(struct network *net, int batch, amp_dtype dtype, amp_footprint *out,
                              amp_error *);
size_t amp_host_stock_footprint(const struct network *net, int batch);

/* RAM for the images and labels of the current and the next batch, of `images` images each; 0 on a GPU. */
size_t amp_host_loaded_bytes(const struct network *, int images);

typedef struct amp_training {
    struct network *net;
    const amp_plan *plan; /* the plan of a step, in any dtype. An outline gives only an upper limit for the
                             weights' copies, and 0 for the convolutions' workspace */
    amp_dtype dtype;
    int images;           /* images that this program loads for a step. If a pass has more images than this,
                             the memory for loaded images is computed from the images of a pass */
    size_t pictures;      /* bytes of the images that are being decoded at the same time */
} amp_training;

typedef struct amp_needs {
    amp_footprint pass; /* depends on the images per pass and the input size */
    size_t parameters;  /* masters, gradients, momentum and Adam's two moments; batch norm statistics and
                           their committed copies */
    size_t copies;      /* copies of weights in the compute dtype */
    size_t workspace;   /* a workspace for all convolutions, and one for Darknet's own layers */
    size_t loaded;      /* images and labels of two batches; depends on the input size too */
    size_t program;     /* the program, its libraries, and their own memory; 0 on a GPU */
    size_t loop;        /* what Darknet's training loop adds: images being decoded, charts; 0 on a GPU */
    double area;        /* pixels of the largest input divided by pixels of the current input. `pass` and
                           `loaded` are amounts for the largest input */
} amp_needs;

/* The needs of a training with `pass` images per pass, for the largest input (random=1), assuming that memory
 * is proportional to the pixels. amp_host_stock_needs: the needs in stock Darknet, without `program` and
 * `loop`. */
amp_status amp_host_needs(const amp_training *, int pass, amp_needs *out, amp_error *);
size_t amp_host_stock_needs(const amp_training *, int pass);

static inline size_t amp_needs_sum(const amp_needs *n)
{
    return amp_footprint_sum(&n->pass) + n->parameters + n->copies + n->workspace + n->loaded + n->program
         + n->loop;
}

/* Bytes of the copies of a layer's weights if the layer computes in dtype. In fp32 there are copies too, in
 * the library's layouts. */
size_t amp_node_copies(const amp_node *node, const amp_backend *backend, amp_dtype dtype);
/* Fills *facts about a layer's matrix products. Returns 0 if the layer has no products, or if they are not
 * built. */
int amp_node_facts(const amp_node *node, const amp_backend *backend, amp_conv_facts *facts);
