/* How ranks share the images of a step, so that together they train as one rank would.
 *
 * batch= of the .cfg is the batch of a step of all ranks together. A network's counters (batch, subdivisions,
 * seen) have the same values on every rank, those of the whole training. So everything that is computed from
 * them (learning rate, max_batches, the images in a printed line, `seen` in a .weights file) is right without
 * a rule for ranks.
 *
 * A step has S subdivisions. Rank r of N computes subdivisions r·S/N to (r+1)·S/N - 1, and loads only their
 * images. Where N does not divide S, the step is cut into more subdivisions, so that it does.
 *
 * In a program without ranks these functions do nothing. What a pass takes is in network/ranks_join.h. */
#pragma once

/* The smallest multiple of the .cfg's subdivisions that `ranks` divides: into so many they cut a step. */
long amp_sharing_cut(int ranks, int subdivisions);
/* The number of subdivisions that the parser is to use instead of the .cfg's; 0: the .cfg's own. Prints a
 * line if batch norm then sees fewer images at a time than the .cfg says. Ends the program if the batch
 * cannot be divided among the ranks. */
int amp_sharing_subdivisions(const char *cfg_file, int sync_batchnorm);

/* ---- images ---- */

/* Darknet loads a step's images in a job of several threads. The images are cut into as many parts as there
 * are threads. Each part has a stream of random numbers of its own, and the last part's images come first in
 * the step. A rank makes only those parts that hold images of its own. */

/* Called once for a job, before its threads start. */
void amp_sharing_begin_job(int images, int parts);

/* What a thread of the job is to load. The last thread always has a part, because Darknet asks it for the
 * size of the images. */
typedef struct amp_shared_part {
    int number;      /* of the part, which chooses its stream of random numbers */
    int images;      /* to load; 0: the thread loads nothing */
    int first, kept; /* of these, the ones from `first` on, `kept` of them, are this rank's. The others before
                        and after are loaded and dropped, so that the stream advances as in one rank */
} amp_shared_part;
amp_shared_part amp_sharing_part(int thread);
