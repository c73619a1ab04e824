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

/* Passes of `batch` (with time steps, images times those) of a step of `images`, in dtype, at the largest
 * input that a training makes of the network (random=1), as far as what grows with it grows with its pixels.
 * plan: of a training of net in any dtype, for its convolutions; it may be an outline, whose copies and
 * workspace are estimated. The rest of the work is outlines: nothing runs. */
amp_status amp_host_needs(struct network *net, const amp_plan *plan, int batch, int images, amp_dtype dtype,
                          amp_needs *out, amp_error *);

static inline size_t amp_needs_sum(const amp_needs *n)
{
    return amp_footprint_sum(&n->pass) + n->parameters + n->copies + n->workspace + n->loaded + n->program;
}

/* Bytes of the copies of a layer's weights where its arithmetic runs in dtype: with fp32 those that the
 * engine's fp32 makes. */
size_t amp_node_copies(const amp_node *node, const amp_backend *backend, amp_dtype dtype);
/* Whether the backend has made something of a layer's matrix products that it tells of. */
int amp_node_facts(const amp_node *node, const amp_backend *backend, amp_conv_facts *facts);
