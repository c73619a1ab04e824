/* What a training will take of memory: the one place that adds it up, for `amp plan`, for checkpoint=auto
 * and for the question whether a training fits (fits.h). Bytes, of the device that the network is on. */
#pragma once

#include "../fork.h"

typedef struct amp_needs {
    amp_footprint pass; /* what grows with the images of a pass and with the input's size */
    size_t parameters;  /* masters, momentum and gradients, Adam's two moments; statistics, and what they
                           were after the last good step */
    size_t copies;      /* of weights, in what multiplies */
    size_t workspace;   /* what convolutions share, and Darknet's own layers */
    size_t loaded;      /* images and labels of two batches; it grows with the input's size too */
    size_t program;     /* the program, its libraries and what they keep, without any of these */
    double area;        /* how much larger the largest input is than the present one: `pass` and `loaded` are
                           of that one */
} amp_needs;

/* Adds up what a training of net takes in dtype. batch: images of one forward pass (with recurrent layers,
 * images times time steps); images: those of a step. With random=1 this is for the largest input that a
 * training draws, taken to grow with the number of pixels. plan: of a training step of net in any dtype, for
 * its convolutions' copies and workspace; those of an outline are estimates. Nothing is run. */
amp_status amp_host_needs(struct network *net, const amp_plan *plan, int batch, int images, amp_dtype dtype,
                          amp_needs *out, amp_error *);

static inline size_t amp_needs_sum(const amp_needs *n)
{
    return amp_footprint_sum(&n->pass) + n->parameters + n->copies + n->workspace + n->loaded + n->program;
}

/* Bytes of the copies of a layer's weights if its arithmetic runs in dtype. In fp32 there are copies too, in
 * the library's layouts. */
size_t amp_node_copies(const amp_node *node, const amp_backend *backend, amp_dtype dtype);
/* Fills *facts with what the backend says of a layer's matrix products; 0: the layer has none, or they are
 * not built. */
int amp_node_facts(const amp_node *node, const amp_backend *backend, amp_conv_facts *facts);
