/* Prefetches images in threads of its own and returns them in order, so that a network that is measured does
 * not wait for files. */
#pragma once

#include "../../host/data/text_lines.h"
#include "../../host/fork_commands.h"

typedef struct amp_loaded_image {
    float *fitted;      /* the network's input, in planes; NULL where the file is no image */
    int size[2];        /* width and height of the image in the file */
    char failure[512];  /* if fitted is NULL: the path, and what is wrong */
} amp_loaded_image;

struct amp_image_loader;

/* paths must outlive the loader. */
struct amp_image_loader *amp_image_loader_start(const amp_lines *paths, int w, int h, int channels,
                                                amp_image_fit);
/* Returns the next image. Call it at most once for each path. The caller frees fitted. */
amp_loaded_image amp_image_loader_next(struct amp_image_loader *);
/* Waits for the threads, and frees the images that were not returned. */
void amp_image_loader_stop(struct amp_image_loader *);
