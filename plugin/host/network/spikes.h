/* Reports spikes: a line with the images of the step, largest loss first. During a step, each image's loss is
 * taken from the loss layers (amp_image_losses.pass), and the few images with the largest losses are kept
 * with their file names.
 *
 * In a layer whose loss is the square of its delta, an image's loss is the sum of its squared deltas; in any
 * other layer it is the image's part of the layer's loss. As in Darknet's line, the printed loss is the mean
 * over the network's loss layers. */
#pragma once

#include "../../amp/engine.h"

struct darknet_amp;
struct network;

enum { AMP_IMAGES_NAMED = 8 };

typedef struct amp_named_image { double loss; char *path; /* NULL: unknown */ } amp_named_image;

typedef struct amp_image_losses {
    double *pass;           /* the loss of each image of the current training pass; NULL: not collected */
    int room;               /* allocated elements of `pass` */
    size_t images;          /* number of images of the step so far */
    amp_named_image largest[AMP_IMAGES_NAMED]; /* those with the largest losses, descending; owns the paths */
    int count;              /* used entries of `largest` */
} amp_image_losses;

/* begin_pass and end_pass are called before and after a training pass; end_step after an update. */
void amp_spikes_begin_pass(struct darknet_amp *);
void amp_spikes_end_pass(struct darknet_amp *);
void amp_spikes_end_step(struct darknet_amp *);
void amp_spikes_free(struct darknet_amp *);

/* If the step was a spike, prints its line on rank 0. All ranks call this function, since each has some of
 * the images. good_steps: the number of steps taken before this one, without skipped ones. Ends the program
 * if spike=skip has dropped too many steps. */
void amp_spikes_report(struct darknet_amp *, const amp_step_report *, size_t good_steps);
