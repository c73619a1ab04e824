/* Whether a network fits the training command that made it: the hooks in the parser and in the two training commands. */
#include "option_list.h"
#include "pjreddie.h"

static int finds_boxes(const layer *l) { return l->type == YOLO || l->type == REGION; }

/* A detector's last layer says what its loader makes: all yolo or region layers must agree. */
static amp_status check_detector(const network *net, amp_error *error)
{
    const layer *last = &net->layers[net->n - 1];
    if (!finds_boxes(last))
        return amp_fail(error, AMP_BAD_NETWORK, "amp: the last layer is neither [yolo] nor [region], so that `detector "
                        "train` knows no classes");
    for (int i = 0; i < net->n; i++) {
        const layer *l = &net->layers[i];
        if (!finds_boxes(l)) continue;
        if (l->classes != last->classes)
            return amp_fail(error, AMP_BAD_NETWORK, "amp: layer %d has classes=%d and layer %d classes=%d; give all the "
                            "same", i, l->classes, net->n - 1, last->classes);
        if (l->truths != 5 * last->max_boxes || l->max_boxes != last->max_boxes)
            return amp_fail(error, AMP_BAD_NETWORK, "amp: layer %d reads %d boxes an image and max=%d are loaded; leave "
                            "max= out", i, l->truths / 5, last->max_boxes);
    }
    return AMP_OK;
}

/* What a classifier's loader makes of `classes` must be as long as what the network compares with. */
static amp_status check_classifier(const network *net, int classes, amp_error *error)
{
    if (net->truths == classes) return AMP_OK;
    return amp_fail(error, AMP_BAD_NETWORK, "amp: the network tells %d classes apart, and the .data file has classes = "
                    "%d; make them alike", net->truths, classes);
}

/* ---- sections ---- */

static int numbers_in(const char *text)
{
    int count = text && *text;
    for (; text && *text; text++) count += *text == ',';
    return count;
}

/* inputs: of the layer, as the one before it makes them. */
static amp_status check_boxes(const layer *l, const char *anchors, int index, int inputs, amp_error *error)
{
    const char *kind = l->type == YOLO ? "yolo" : "region";
    int numbers = numbers_in(anchors), box = l->coords + l->classes + 1, anchor_count = l->type == YOLO ? l->total : l->n;
    if (l->type == YOLO) box = 4 + l->classes + 1;
    if (l->classes < 1 || l->n < 1 || anchor_count < 1)
        return amp_fail(error, AMP_BAD_NETWORK, "layer %d [%s]: classes=%d, num=%d: both are 1 or more", index, kind,
                        l->classes, anchor_count);
    for (int i = 0; l->type == YOLO && i < l->n; i++)
        if (l->mask[i] < 0 || l->mask[i] >= l->total)
            return amp_fail(error, AMP_BAD_NETWORK, "layer %d [yolo]: mask has %d, but num=%d anchors are 0 to %d",
                            index, l->mask[i], l->total, l->total - 1);
    if (numbers > 2 * anchor_count || (anchors && numbers < 2 * anchor_count))
        return amp_fail(error, AMP_BAD_NETWORK, "layer %d [%s]: anchors has %d numbers, but num=%d needs %d", index,
                        kind, numbers, anchor_count, 2 * anchor_count);
    if (l->outputs != inputs)
        return amp_fail(error, AMP_BAD_NETWORK, "layer %d [%s]: %d boxes of %d classes need filters=%d in the layer "
                        "before it, which has %g", index, kind, l->n, l->classes, l->n * box,
                        (double)inputs / ((double)l->w * l->h));
    return AMP_OK;
}

void darknet_amp_check_boxes(struct layer *made, void *options, int index, int inputs)
{
    amp_error error;
    if (amp_host_is_parsing()) amp_host_check(check_boxes(made, option_find(options, "anchors"), index, inputs, &error), &error);
}

/* A detector trains by its .cfg alone; but its user meant something with the .data file's number. */
static void tell_other_classes(const network *net, int classes)
{
    int has = net->layers[net->n - 1].classes;
    if (classes && classes != has)
        fprintf(stderr, "amp: the .data file has classes = %d, but the network %d: it is trained with its own number\n",
                classes, has);
}

void darknet_amp_check_classes(struct network *net, int classes, int classifier)
{
    amp_error error = { 0 };
    if (!net->amp) return;
    amp_status status = classifier ? check_classifier(net, classes, &error) : check_detector(net, &error);
    amp_host_check(status, &error);
    if (!classifier) tell_other_classes(net, classes);
}
