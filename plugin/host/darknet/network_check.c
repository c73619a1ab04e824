/* Whether a network fits the training command that made it: the hooks in the parser and in the two
 * training commands. */
#include "room.h"

/* A detector's last layer decides what its loader makes: all yolo or region layers must agree. */
static void check_detector(const network *net)
{
    const layer *last = &net->layers[net->n - 1];
    if (!amp_own_finds_boxes(last))
        darknet_amp_refuse("amp: the last layer is neither [yolo] nor [region], so that `detector train` "
                           "knows no classes");
    for (int i = 0; i < net->n; i++) {
        const layer *l = &net->layers[i];
        if (!amp_own_finds_boxes(l)) continue;
        if (l->classes != last->classes)
            darknet_amp_refuse("amp: layer %d has classes=%d and layer %d classes=%d; give all the same", i,
                               l->classes, net->n - 1, last->classes);
        if (l->truths != amp_own_label_numbers(l) * last->max_boxes || l->max_boxes != last->max_boxes)
            darknet_amp_refuse("amp: layer %d reads %d boxes an image and max=%d are loaded; leave max= out",
                               i, l->truths / amp_own_label_numbers(l), last->max_boxes);
    }
}

/* What a classifier's loader makes of `classes` must be as long as what the network compares with. A detector
 * trains by its .cfg alone; but its user meant something with the .data file's number. */
void amp_fork_check_classes(struct network *net, int classes, int classifier)
{
    int has = net->layers[net->n - 1].classes;
    if (classifier && net->truths != classes)
        darknet_amp_refuse("amp: the network tells %d classes apart, and the .data file has classes = %d; "
                           "make them alike", net->truths, classes);
    if (classifier) return;
    check_detector(net);
    if (classes && classes != has)
        fprintf(stderr, "amp: the .data file has classes = %d, but the network %d: it is trained with its "
                "own number\n", classes, has);
}
