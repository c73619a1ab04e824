/* Runs a network on a list of images, one at a time, to measure mAP or accuracy. */
#pragma once

#include "../../host/data/text_lines.h"
#include "../../host/fork_commands.h"

/* ---- image_loader.c: prefetches images in its own threads, and returns them in order ---- */

typedef struct amp_loaded_image {
    float *fitted;      /* the image, (c,h,w), fitted to the network's input; NULL: it could not be read */
    int size[2];        /* width and height in the file */
    char failure[512];  /* the path, and why it could not be read */
} amp_loaded_image;

struct amp_image_loader;
/* paths must outlive the loader. */
struct amp_image_loader *amp_image_loader_start(const amp_lines *paths, int w, int h, int channels,
                                                amp_image_fit);
/* Returns the next image. Call it at most once for each path. The caller frees fitted. */
amp_loaded_image amp_image_loader_next(struct amp_image_loader *);
/* Waits for the threads, and frees the images that were not returned. */
void amp_image_loader_stop(struct amp_image_loader *);

/* ---- evaluation.c ---- */

/* Makes the network, with or without AMP, and loads its weights. AMP_BAD_CONFIG: a file is missing or empty,
 * or the weights are truncated or cannot belong to this network (host/network/weights_check.h). A mistake
 * inside a .cfg ends the program. On success the caller frees the network with amp_fork_free_network. */
amp_status amp_evaluation_open(const char *cfg, const char *weights, struct network **, amp_error *);

/* AMP_BAD_CONFIG: Darknet does not load images with the network's number of channels. */
amp_status amp_check_channels(const struct network *, amp_error *);

typedef struct amp_evaluation {
    const amp_lines *images;
    amp_image_fit fit;
    int is_a_share;          /* 1: a rank's share of the images; it is no error if none of them can be read */
    /* Runs the network on an image and records the result. i: the image's index in the list. */
    amp_status (*measure)(void *context, struct network *, int i, const amp_loaded_image *, amp_error *);
    void *context;
} amp_evaluation;

typedef struct amp_evaluated {
    size_t images;           /* number of images that were measured */
    amp_lines unreadable;    /* images that could not be read: path and reason */
    double seconds;
} amp_evaluated;

/* Calls measure for every image of the list, with batch 1. An image that cannot be read is reported on stderr
 * and left out. AMP_BAD_CONFIG: no image can be read, or amp_check_channels fails. AMP_IO_FAILED: this
 * program was asked to stop between turns (host/program/turns.h). */
amp_status amp_evaluate(struct network *, const amp_evaluation *, amp_evaluated *, amp_error *);
