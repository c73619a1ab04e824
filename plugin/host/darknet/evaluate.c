/* Measuring a network on images, as fork_commands.h has it: what `detector test` and `classifier valid` do
 * with one. */
#include "../fork_commands.h"

#include "../../tensor/half.h"
#include "../data/data_files.h"
#include "../data/image_file.h"
#include "own.h"
#include "tree.h"

static const float LEAST_SCORE = .005f, HIERARCHY = .5f, SUPPRESSION_IOU = .45f;

/* For the line about outputs that are inf or NaN: a file of the right size may still hold anything. */
/* text: room for it. */
static const char *why_not_finite(const network *net, char text[256])
{
    const char *fault = amp_fork_fault(net, text);
    return fault ? fault : "the weights are another network's or damaged, or their training diverged or was "
                           "too short for fp16 (then bf16 and fp32 do)";
}

/* ---- what kind of network ---- */

static int gives_boxes(const layer *l)
{
    return l->type == DETECTION || amp_own_finds_boxes(l);
}

int amp_fork_box_classes(const struct network *net)
{
    const layer *last = net->n > 0 ? &net->layers[net->n - 1] : NULL;
    return last && gives_boxes(last) ? last->classes : -1;
}

int amp_fork_recurrent_layer(const struct network *net)
{
    for (int i = 0; i < net->n; i++) {
        LAYER_TYPE type = net->layers[i].type;
        if (type == RNN || type == GRU || type == LSTM || type == CRNN) return i;
    }
    return -1;
}

void amp_fork_set_batch(struct network *net, int batch) { set_batch_network(net, batch); }

/* ---- images ---- */

/* By Darknet's own function, which reads what is trained on too; but a file that is no image does not end the
 * program. */
static image load_color(const char *path, const char **why)
{
    amp_image_file_measures(1);
    image im = load_image_color((char *)path, 0, 0);
    *why = amp_image_file_failure(path);
    amp_image_file_measures(0);
    return im;
}

size_t amp_fork_image_pixels(const char *path)
{
    const char *why;
    image im = { 0 };
    if (amp_is_device(path)) return 0;
    if (!amp_own_image_size(path, &im.w, &im.h)) im = load_color(path, &why);
    free_image(im);
    return (size_t)im.w * (size_t)im.h;
}

float *amp_fork_read_image(const char *path, int w, int h, amp_image_fit fit, int size[2], const char **why)
{
    image im = load_color(path, why);
    if (!im.data) return NULL;
    image fitted = fit == AMP_FIT_LETTERBOX ? letterbox_image(im, w, h)
                 : fit == AMP_FIT_STRETCH ? resize_image(im, w, h)
                 : amp_own_center_crop(im, w, h);
    size[0] = im.w;
    size[1] = im.h;
    free_image(im);
    return fitted.data;
}

/* ---- one image ---- */

/* Before the boxes are counted: Darknet counts NaN objectness in one place as a box and in another not, and
 * writes past the end of its array. */
static amp_status check_boxes(const network *net, const char *path, amp_error *error)
{
    for (int i = 0; i < net->n; i++) {
        const layer *l = &net->layers[i];
        for (int k = 0; gives_boxes(l) && k < l->outputs; k++)
            if (!amp_is_finite(l->output[k]))
                return amp_fail(error, AMP_DIVERGED,
                                "%s: layer %d gives numbers that are not finite; %s", path, i,
                                why_not_finite(net, (char[256]){ 0 }));
    }
    return AMP_OK;
}

static amp_status send_boxes(const detection *boxes, int count, int classes, amp_box_sink *sink,
                             void *context, amp_error *error)
{
    for (int i = 0; i < count; i++)
        for (int c = 0; c < classes; c++) {
            box b = boxes[i].bbox;
            amp_found_box found = { .class_id = c, .score = boxes[i].prob[c], .x = b.x, .y = b.y, .w = b.w,
                                    .h = b.h };
            if (found.score > 0) AMP_TRY(sink(context, &found, error));
        }
    return AMP_OK;
}

amp_status amp_fork_detect(struct network *net, float *image, const int size[2], const char *path,
                           amp_box_sink *sink, void *context, amp_error *error)
{
    int classes = amp_fork_box_classes(net), count = 0;
    amp_own_predict(net, image);
    AMP_TRY(check_boxes(net, path, error));
    detection *boxes = amp_own_boxes(net, size, LEAST_SCORE, HIERARCHY, SUPPRESSION_IOU, &count);
    amp_status status = send_boxes(boxes, count, classes, sink, context, error);
    free_detections(boxes, count);
    return status;
}

amp_status amp_fork_classify(struct network *net, float *image, const char *path, int k, int *best,
                             amp_error *error)
{
    float *probabilities = amp_own_predict(net, image);
    for (int i = 0; i < net->outputs; i++)
        if (!amp_is_finite(probabilities[i]))
            return amp_fail(error, AMP_DIVERGED,
                            "%s: the network gives numbers that are not finite; %s", path,
                            why_not_finite(net, (char[256]){ 0 }));
    if (net->hierarchy) amp_own_sort_classes(probabilities, net);
    top_k(probabilities, net->outputs, k, best);
    return AMP_OK;
}
