/* Reports a spike with a line that lists the images of the step, largest loss first. Each image's loss is
 * collected from the loss layers (amp_image_losses.pass); only the largest are kept, with file names.
 *
 * In each of these layers, an image's loss is its part of the layer's loss. (If the layer's loss is the
 * square of the layer's delta, this part is the sum of the image's squared deltas.) The printed loss is the
 * mean over the network's loss layers, as in Darknet's line. */
#pragma once

#include "../../amp/engine.h"

struct darknet_amp;
struct network;

enum { AMP_IMAGES_NAMED = 8 };

typedef struct amp_named_image { double loss; char *path; /* NULL: unknown */ } amp_named_image;

typedef struct amp_image_losses {
    double *pass;           /* loss of each image of the current pass; NULL: not collected */
    int room;               /* allocated size of `pass` in elements */
    size_t images;          /* number of images in the step so far */
    amp_named_image largest[AMP_IMAGES_NAMED]; /* the largest losses, in descending order; owns the paths */
    int count;              /* number of entries in `largest` */
} amp_image_losses;

/* Call begin_pass and end_pass before and after a training pass, and end_step after an update. */
void amp_spikes_begin_pass(struct darknet_amp *);
void amp_spikes_end_pass(struct darknet_amp *);
void amp_spikes_end_step(struct darknet_amp *);
void amp_spikes_free(struct darknet_amp *);

/* If the step was a spike, prints its line on rank 0. Collective, because each rank has some of the images.
 * good_steps: the number of earlier steps that were not skipped. Ends the program if spike=skip has dropped
 * too many steps. */
void amp_spikes_report(struct darknet_amp *, const amp_step_report *, size_t good_steps);
