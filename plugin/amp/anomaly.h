/* Anomaly detection: the first tensor of a step, in the order of time, that holds inf or NaN. debug=1 has it
 * on for every step; otherwise it is on only for a step whose overflow would end training. Costs a cast and a
 * scan of every tensor. */
#ifndef AMP_AMP_ANOMALY_H
#define AMP_AMP_ANOMALY_H

#include "observer.h"

/* Where something is not finite; found = 0 while nothing is. */
typedef struct amp_anomaly {
    int found, layer;    /* -1: not a layer's, but what the host gave */
    const char *pass;    /* "forward", "backward" or "update" */
    const char *tensor;  /* "image", "input", "output", "loss", "delta", "labels", or a parameter's name */
    int is_gradient;     /* of that parameter */
    int bad_images;      /* how many images of the subdivision hold it; 0: it cannot be told, as for
                            gradients */
    int image;           /* the first of them, from 0 */
} amp_anomaly;

enum { AMP_ANOMALY_TEXT = 160 };

/* "output of layer 3 [convolutional], forward"; type: the layer's section, ignored where there is no
 * layer. */
const char *amp_anomaly_text(const amp_anomaly *, const char *type, char text[AMP_ANOMALY_TEXT]);

/* Look at a tensor; the first find is remembered, later ones are not. */
amp_status amp_anomaly_look(amp_anomaly *, amp_backend *, const amp_seen *, amp_error *);

/* Whether an fp32 array in the backend's memory holds inf or NaN. */
amp_status amp_array_found_inf(amp_backend *, const float *array, size_t count, int *found_inf, amp_error *);

#endif
