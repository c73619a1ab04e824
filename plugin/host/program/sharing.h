/* How ranks share the images of a step, so that together they train as a single rank would.
 *
 * batch= of the .cfg is the number of images in one step of all ranks together. Every rank's network has the
 * counters of the whole training (batch, subdivisions, seen), so what is computed from them, like the
 * learning rate, needs no special case for ranks.
 *
 * A step has S subdivisions. Rank r of N computes subdivisions r·S/N to (r+1)·S/N - 1, and loads only their
 * images. If S is not a multiple of N, the step is divided into more subdivisions, a multiple of N.
 *
 * Without ranks these functions do nothing. network/ranks_join.h divides the passes. */
#pragma once

#include "../../amp/cfg_document.h"

/* The subdivisions that `ranks` ranks use: the least common multiple of `ranks` and the .cfg's number. */
long amp_sharing_cut(int ranks, int subdivisions);
/* The subdivisions that the parser must use; 0: the .cfg's. Prints a line if this changes the number of
 * images that batch norm sees. Ends the program if the ranks cannot share the batch evenly. */
int amp_sharing_subdivisions(const cfg_document *cfg, int sync_batchnorm);

/* ---- images ---- */

/* Darknet loads a step's images in a job: one part per thread, each with its own random stream. The images of
 * the last part come first in the step. A rank loads only the parts that contain images of its own. */

/* Called once per job, before its threads start. */
void amp_sharing_begin_job(int images, int parts);

/* The part of the job that a thread must load. The last thread always has a part, because Darknet reads the
 * images' size from this part. */
typedef struct amp_shared_part {
    int number;      /* the part's number, which selects its random stream */
    int images;      /* number of images to load; 0: nothing to load */
    int first, kept; /* this rank keeps `kept` images, starting with image `first` of the part. It loads the
                        others only to advance the random stream, and drops them */
} amp_shared_part;
amp_shared_part amp_sharing_part(int thread);
