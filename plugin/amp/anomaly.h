/* Anomaly detection finds the first tensor of a step that holds inf or NaN, in the order in which tensors are
 * computed. With debug=1 it checks every step, otherwise only a step whose overflow would end training. This
 * costs a cast and a scan of every tensor. */
#pragma once

#include "observer.h"

/* Where inf or NaN was found; found = 0: nowhere yet. */
typedef struct amp_anomaly {
    int found, layer;    /* layer -1: an input of the network */
    int is_first;        /* 1: no earlier tensor of the step was inf or NaN; 0: unknown */
    const char *pass;    /* "forward", "backward" or "update" */
    const char *tensor;  /* "image", "input", "output", "loss", "delta", "labels", or a parameter's name */
    int is_gradient;     /* it is in the gradient of that parameter */
    int bad_images;      /* number of images of the subdivision with inf or NaN; 0: unknown, as for
                            gradients */
    int image;           /* index of the first of these images, from 0 */
} amp_anomaly;

enum { AMP_ANOMALY_TEXT = 160 };

/* "first in output of layer 3 [convolutional], forward", or without "first". type: the layer's section,
 * ignored if there is no layer. */
const char *amp_anomaly_text(const amp_anomaly *, const char *type, char text[AMP_ANOMALY_TEXT]);

/* Checks a tensor. Only the first inf or NaN is recorded. */
amp_status amp_anomaly_look(amp_anomaly *, amp_backend *, const amp_seen *, amp_error *);

/* Whether an fp32 array in the backend's memory holds inf or NaN. */
amp_status amp_array_found_inf(amp_backend *, const float *array, size_t count, int *found_inf, amp_error *);
