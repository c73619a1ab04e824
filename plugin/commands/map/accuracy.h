/* Top-1 and top-K accuracy of a classifier, counted as stock's `classifier valid` counts it. An image's class
 * is the first label that its path contains; an image without a label in its path counts as wrong. The first
 * K classes are Darknet's top_k, also if probabilities are equal, as sums of half numbers often are. */
#pragma once

#include "evaluation.h"

typedef struct amp_accuracy {
    amp_lines images, labels;  /* the `valid` list; the classes in order, as many as there are at least */
    int k, classes;            /* of the .data file; by default 2, as in Darknet */
    double top1, topk;         /* 0..1; while measuring: how many images have their class first, or among k */
    /* of one image: the k most probable classes, or all if there are fewer, in descending order */
    int *best;
    size_t unlabelled;         /* images without a label in their path */
    amp_evaluated evaluated;
} amp_accuracy;

/* Feeds the images of a .data file's `valid` list as `classifier valid` does: the middle square, scaled to
 * the network's size. On failure too, *result is fit for amp_accuracy_free. AMP_BAD_CONFIG: a file or key
 * missing, no image listed or none that can be read, fewer labels than classes, another number of classes
 * than the network's outputs, or no image whose path contains a label. AMP_DIVERGED: its output is not
 * finite. */
amp_status amp_accuracy_measure(struct network *, const char *data_file, int k, amp_accuracy *result,
                                amp_error *);
void amp_accuracy_free(amp_accuracy *);
void amp_accuracy_print(const amp_accuracy *);
