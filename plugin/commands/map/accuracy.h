/* Top-1 and top-K accuracy of a classifier, counted as stock's `classifier valid` counts it.
 *
 * An image's class is the first label that its path contains; one whose path contains none has been
 * classified wrongly. The prediction's first K are those of Darknet's top_k, also where probabilities are
 * equal, as sums of half numbers often are. */
#pragma once

#include "evaluation.h"

typedef struct amp_accuracy {
    amp_lines images, labels;  /* the `valid` list; the classes in order, as many as there are at least */
    int k, classes;            /* the .data file's; 2 where it has none, as for Darknet */
    double top1, topk;         /* 0..1; while it is measured, images whose class is the first, or one of k */
    /* of one image: the k classes, or all where there are fewer, by falling probability */
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
