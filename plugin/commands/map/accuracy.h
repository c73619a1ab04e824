/* Top-1 and top-K accuracy of a classifier, counted as stock's `classifier valid` counts it.
 *
 * An image's class is the first label that its path contains; one whose path contains none has been classified wrongly. The
 * prediction's first K are those of Darknet's top_k, also where probabilities are equal, as sums of half numbers often are. */
#ifndef AMP_COMMANDS_MAP_ACCURACY_H
#define AMP_COMMANDS_MAP_ACCURACY_H

#include "../../host/data/text_lines.h"
#include "image_loader.h"

typedef struct amp_classification_data {
    amp_lines images; /* paths, as the `valid` list gives them */
    amp_lines labels; /* of the classes in order, as many as there are classes at least */
    int classes;      /* the .data file's; 2 where it has none, as for Darknet */
    char *leaves;     /* file that names the leaves of a softmax tree; or NULL */
} amp_classification_data;

/* AMP_BAD_CONFIG: a file or key missing, no image listed, fewer labels than classes. On failure too, *data is fit for
 * amp_classification_data_free. */
amp_status amp_classification_data_read(const char *data_file, amp_classification_data *data, amp_error *);
void amp_classification_data_free(amp_classification_data *);

/* The class whose label the path contains, -1 for none. */
int amp_class_of_path(const char *path, const amp_lines *labels, int classes);

typedef struct amp_class_hits { size_t images, top1, topk; } amp_class_hits;

typedef struct amp_accuracy {
    int k, classes;
    double top1, topk;         /* 0..1 */
    amp_class_hits *per_class;
    int *best;                 /* of one image: the k classes, or all where there are fewer, by falling probability */
    size_t images;             /* measured on */
    size_t unlabelled;         /* of them: no label in their path */
    amp_lines unreadable;      /* left out: path and reason */
    double seconds;
} amp_accuracy;

/* Feeds images as `classifier valid` does: the middle square, scaled to the network's size, one at a time. On failure too,
 * *result is fit for amp_accuracy_free. AMP_BAD_CONFIG: another number of classes than the network's outputs, no image that can
 * be read, or none whose path contains a label. AMP_DIVERGED: its output is not finite. */
amp_status amp_accuracy_measure(struct network *, const amp_classification_data *, int k,
                                amp_measure_stop stop, amp_accuracy *result, amp_error *);
void amp_accuracy_free(amp_accuracy *);
void amp_accuracy_print(const amp_accuracy *, const amp_lines *labels);

#endif
