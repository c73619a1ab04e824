/* Anomaly detection finds the first tensor of a step that contains inf or NaN, in the order of computation.
 * It costs a cast and a scan of every tensor. With debug=1 it checks every step; without debug=1, only a step
 * in which an overflow would end training. */
#pragma once

#include "observer.h"

/* The tensor in which inf or NaN was found, if `found` is 1. */
typedef struct amp_anomaly {
    int found, layer;    /* layer -1: an input of the network */
    int is_first;        /* 1: no earlier tensor of the step contained inf or NaN; 0: unknown */
    const char *pass;    /* "forward", "backward" or "update" */
    const char *tensor;  /* "image", "input", "output", "loss", "delta", "labels", or a parameter's name */
    int is_gradient;     /* 1: `tensor` is a parameter, and its gradient contains inf or NaN */
    int bad_images;      /* number of the subdivision's images with inf or NaN; 0: unknown (gradients) */
    int image;           /* index, from 0, of the first of these images */
} amp_anomaly;

enum { AMP_ANOMALY_TEXT = 160 };

/* Writes, for example, "in the output of layer 3 [convolutional] (forward pass)" to text, and returns it.
 * type: the name of the layer's section; ignored for an input of the network. */
const char *amp_anomaly_text(const amp_anomaly *, const char *type, char text[AMP_ANOMALY_TEXT]);

/* Records the tensor if it contains inf or NaN, unless an earlier one is recorded. */
amp_status amp_anomaly_look(amp_anomaly *, amp_backend *, const amp_seen *, amp_error *);

/* Sets *found_inf to 1 if an fp32 array in the backend's memory contains inf or NaN, else to 0. */
amp_status amp_array_found_inf(amp_backend *, const float *array, size_t count, int *found_inf, amp_error *);
