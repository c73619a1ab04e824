/* Whether a network fits the training command that made it: the hooks in the parser and in the two
 * training commands. */
#include "room.h"

/* A detector's last layer says what its loader makes: all yolo or region layers must agree. */
static amp_status check_detector(const network *net, amp_error *error)
{
    const layer *last = &net->layers[net->n - 1];
    if (!amp_own_finds_boxes(last))
        return amp_fail(error, AMP_BAD_NETWORK,
                        "amp: the last layer is neither [yolo] nor [region], so that `detector "
                        "train` knows no classes");
    for (int i = 0; i < net->n; i++) {
        const layer *l = &net->layers[i];
        if (!amp_own_finds_boxes(l)) continue;
        if (l->classes != last->classes)
            return amp_fail(error, AMP_BAD_NETWORK,
                            "amp: layer %d has classes=%d and layer %d classes=%d; give all the "
                            "same", i, l->classes, net->n - 1, last->classes);
        if (l->truths != amp_own_label_numbers(l) * last->max_boxes || l->max_boxes != last->max_boxes)
            return amp_fail(error, AMP_BAD_NETWORK,
                            "amp: layer %d reads %d boxes an image and max=%d are loaded; leave "
                            "max= out", i, l->truths / amp_own_label_numbers(l), last->max_boxes);
    }
    return AMP_OK;
}

/* What a classifier's loader makes of `classes` must be as long as what the network compares with. */
static amp_status check_classifier(const network *net, int classes, amp_error *error)
{
    if (net->truths == classes) return AMP_OK;
    return amp_fail(error, AMP_BAD_NETWORK,
                    "amp: the network tells %d classes apart, and the .data file has classes = "
                    "%d; make them alike", net->truths, classes);
}

/* A detector trains by its .cfg alone; but its user meant something with the .data file's number. */
static void warn_other_classes(const network *net, int classes)
{
    int has = net->layers[net->n - 1].classes;
    if (classes && classes != has)
        fprintf(stderr, "amp: the .data file has classes = %d, but the network %d: it is trained with its "
                "own number\n", classes, has);
}

void amp_fork_check_classes(struct network *net, int classes, int classifier)
{
    amp_error error = { 0 };
    amp_status status = classifier ? check_classifier(net, classes, &error) : check_detector(net, &error);
    amp_host_check(status, &error);
    if (!classifier) warn_other_classes(net, classes);
}
