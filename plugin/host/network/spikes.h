/* Spikes as the user sees them: a line with the images of the step, those with the largest loss first. While
 * a step goes on, each image's loss is taken from the loss layers (amp_image_losses.pass), and the few
 * largest are kept with the names of their files.
 *
 * An image's loss is, for layers whose loss is the square of their delta, the sum of its deltas' squares,
 * else the sum of its own part of the loss; as Darknet's line has it, the mean over the network's loss
 * layers. */
#pragma once

#include "../../amp/engine.h"

struct darknet_amp;
struct network;

enum { AMP_IMAGES_NAMED = 8 };

typedef struct amp_named_image { double loss; char *path; /* NULL: not known */ } amp_named_image;

typedef struct amp_image_losses {
    double *pass;           /* of the training pass under way, an element an image; NULL: nobody asks */
    int room;               /* elements of pass */
    size_t images;          /* of the step so far */
    amp_named_image largest[AMP_IMAGES_NAMED]; /* of those, in falling order; paths are its own */
    int count;              /* entries of largest */
} amp_image_losses;

/* Around a training pass, and after an update. */
void amp_spikes_begin_pass(struct darknet_amp *);
void amp_spikes_end_pass(struct darknet_amp *);
void amp_spikes_end_step(struct darknet_amp *);
void amp_spikes_free(struct darknet_amp *);

/* Prints the spike's line, on rank 0. Every rank calls it, since each has images. good_steps: those taken
 * before it. Ends the program if spike=skip has dropped too many. */
void amp_spikes_report(struct darknet_amp *, const amp_step_report *, size_t good_steps);
