/* Reports spikes: a line with the images of the step, largest loss first. During a step, each image's loss is
 * taken from the loss layers (amp_image_losses.pass), and the largest few are kept with their file names.
 *
 * For a layer whose loss is the square of its delta, an image's loss is the sum of its squared deltas,
 * otherwise its part of the layer's loss; as in Darknet's line, the mean over the network's loss layers. */
#pragma once

#include "../../amp/engine.h"

struct darknet_amp;
struct network;

enum { AMP_IMAGES_NAMED = 8 };

typedef struct amp_named_image { double loss; char *path; /* NULL: unknown */ } amp_named_image;

typedef struct amp_image_losses {
    double *pass;           /* one element per image of the current training pass; NULL: not collected */
    int room;               /* elements of pass */
    size_t images;          /* of the step so far */
    amp_named_image largest[AMP_IMAGES_NAMED]; /* the largest of them, in descending order; owns the paths */
    int count;              /* entries of largest */
} amp_image_losses;

/* Called around a training pass, and after an update. */
void amp_spikes_begin_pass(struct darknet_amp *);
void amp_spikes_end_pass(struct darknet_amp *);
void amp_spikes_end_step(struct darknet_amp *);
void amp_spikes_free(struct darknet_amp *);

/* Prints the spike's line, on rank 0. Every rank calls it, since each has images. good_steps: the steps taken
 * before it. Ends the program if spike=skip has dropped too many. */
void amp_spikes_report(struct darknet_amp *, const amp_step_report *, size_t good_steps);
