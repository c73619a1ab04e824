/* How ranks share the images of a step, so that together they train as one rank would.
 *
 * batch= of the .cfg is the batch of one step of all ranks together. A network's counters (batch,
 * subdivisions, seen) have the same values on every rank, those of the whole training. So everything computed
 * from them (learning rate, max_batches, the images in a printed line, `seen` in a .weights file) is right
 * without special cases for ranks.
 *
 * A step has S subdivisions. Rank r of N computes subdivisions r·S/N to (r+1)·S/N - 1, and loads only their
 * images. If N does not divide S, the step is cut into more subdivisions, so that it does.
 *
 * In a program without ranks these functions do nothing. network/ranks_join.h handles a pass. */
#pragma once

#include "../../amp/cfg_document.h"

/* The number of subdivisions that ranks use: the smallest multiple of the .cfg's that is also a multiple of
 * `ranks`. */
long amp_sharing_cut(int ranks, int subdivisions);
/* The number of subdivisions that the parser must use instead of the .cfg's; 0: the .cfg's own. Prints a line
 * if batch norm then sees fewer images at a time than the .cfg says. Ends the program if the batch cannot be
 * divided among the ranks. */
int amp_sharing_subdivisions(const cfg_document *cfg, int sync_batchnorm);

/* ---- images ---- */

/* Darknet loads a step's images in a job of several threads. The images are cut into as many parts as there
 * are threads. Each part has its own random stream, and the last part's images come first in the step. A rank
 * loads only the parts that have images of its own. */

/* Called once per job, before its threads start. */
void amp_sharing_begin_job(int images, int parts);

/* What a thread of the job must load. The last thread always has a part, because Darknet gets the size of the
 * images from it. */
typedef struct amp_shared_part {
    int number;      /* the part's number, which selects its random stream */
    int images;      /* number of images to load; 0: the thread loads nothing */
    int first, kept; /* of these, the `kept` ones starting at `first` are this rank's. The others are
                        loaded and dropped, so that the stream advances as with one rank */
} amp_shared_part;
amp_shared_part amp_sharing_part(int thread);
