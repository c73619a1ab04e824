/* The memory that a training will take, added up only here: for `amp plan`, for checkpoint=auto and to check
 * whether a training fits (fits.h). In bytes, of the device that the network is on. */
#pragma once

#include "../fork.h"

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

/* Adds up the memory that a training of net takes in dtype. batch: images per forward pass (with recurrent
 * layers, images times time steps); images: per step. With random=1 this is for the largest input of the
 * training, assuming that memory grows with the number of pixels. plan: of a training step of net in any
 * dtype, for its convolutions' copies and workspace; those of an outline are estimates. Runs nothing. */
amp_status amp_host_needs(struct network *net, const amp_plan *plan, int batch, int images, amp_dtype dtype,
                          amp_needs *out, amp_error *);

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
