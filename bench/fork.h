/* What step.c and gpu_parts.c ask of a Darknet, in words that hold for pjreddie's and for AlexeyAB's
 * (ALEXEYAB), whose networks go by value, whose batch is an argument of each pass, and whose training loop
 * makes the update itself. */
#ifndef BENCH_FORK_H
#define BENCH_FORK_H

#include "darknet.h"

#ifdef ALEXEYAB
typedef network_state fork_pass; /* what a layer's functions are given */
#else
typedef network fork_pass;
#endif

/* What the fork's program does before its commands. */
void fork_start(void);

/* A network with random weights by `seed`, and with room for a batch in net->input and net->truth, which has
 * net->truths numbers an image. */
network *fork_load(char *cfg, unsigned seed);

void fork_save(network *net, char *file);

/* Numbers of a label: a box, its class, and maybe more. */
int fork_label_numbers(const layer *l);

/* A forward and backward of the batch, and an update after the last of a step's. Returns the loss. */
float fork_train(network *net);

/* The same in its parts, of which there is one each in a step. */
void fork_forward(network *net);
void fork_backward(network *net);
void fork_update(network *net);

#ifdef GPU
/* Where images and labels lie on the device. */
const float *fork_images(const network *net);
const float *fork_labels(const network *net);
#endif

#endif
