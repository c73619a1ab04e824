/* Reads images ahead, in threads of its own, and returns them in their order: so that a network that
 * measures on them does not wait for files. */
#pragma once

#include "../../host/data/text_lines.h"
#include "../../host/fork_commands.h"

typedef struct amp_loaded_image {
    float *fitted;      /* the network's input, in planes; NULL where the file is no image */
    int size[2];        /* width and height as it lies in the file */
    char failure[512];  /* then: what is wrong with it, with the path */
} amp_loaded_image;

struct amp_image_loader;

/* paths must outlive the loader. */
struct amp_image_loader *amp_image_loader_start(const amp_lines *paths, int w, int h, int channels,
                                                amp_image_fit);
/* The next image of the list, as many times as there are paths. The caller frees fitted. */
amp_loaded_image amp_image_loader_next(struct amp_image_loader *);
/* Waits for its threads; images that were not taken are freed. */
void amp_image_loader_stop(struct amp_image_loader *);
