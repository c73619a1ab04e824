/* Measures a network on single images, like `detector test` and `classifier valid`: see fork_commands.h. */
#include "../data/data_files.h"
#include "room.h"
#include "image.h"
#include "tree.h"

static const float LEAST_SCORE = .005f, HIERARCHY = .5f, SUPPRESSION_IOU = .45f;

/* ---- what kind of network ---- */

int amp_fork_box_classes(const struct network *net)
{
    const layer *last = net->n > 0 ? &net->layers[net->n - 1] : NULL;
    return last && amp_host_gives_boxes(last) ? last->classes : -1;
}

int amp_fork_recurrent_layer(const struct network *net)
{
    amp_own_part parts[AMP_OWN_MOST_PARTS];
    for (int i = 0; i < net->n; i++) if (amp_host_parts(&net->layers[i], parts)) return i;
    return -1;
}

void amp_fork_set_batch(struct network *net, int batch) { set_batch_network(net, batch); }

/* ---- images ---- */

/* Reads an image with Darknet's load_image, as training does. If w and h are not 0, resizes it to w x h; the
 * caller wants this only in forks whose load_image resizes differently from resize_image. If the file is not
 * an image, sets *why to the reason. */
static image load(const char *path, int w, int h, int channels, const char **why)
{
    amp_this_thread()->measures = 1;
    image im = load_image((char *)path, w, h, channels);
    amp_this_thread()->measures = 0;
    *why = amp_image_file_failure(path);
    return im;
}

int amp_fork_image_size(const char *path, int size[2])
{
    const char *why;
    image im = { 0 };
    if (amp_is_device(path)) return 0;
    if (!amp_own_image_size(path, &im.w, &im.h)) im = load(path, 0, 0, 3, &why);
    free_image(im);
    size[0] = im.w;
    size[1] = im.h;
    return im.w > 0 && im.h > 0;
}

float *amp_fork_read_image(const char *path, int w, int h, int channels, amp_image_fit fit, int size[2],
                           const char **why)
{
    int resizes = fit == AMP_FIT_STRETCH && AMP_OWN_LOAD_RESIZES;
    image im = load(path, resizes ? w : 0, resizes ? h : 0, channels, why);
    if (!im.data) return NULL;
    size[0] = im.w;
    size[1] = im.h;
    if (resizes) return im.data;
    image fitted = fit == AMP_FIT_LETTERBOX ? letterbox_image(im, w, h)
                 : fit == AMP_FIT_STRETCH ? resize_image(im, w, h)
                 : amp_own_center_crop(im, w, h);
    free_image(im);
    return fitted.data;
}

/* ---- one image ---- */

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
    AMP_TRY(amp_host_check_predicted(net, amp_host_predict(net, image), path, error));
    detection *boxes = amp_own_boxes(net, size, LEAST_SCORE, HIERARCHY, SUPPRESSION_IOU, &count);
    amp_status status = send_boxes(boxes, count, classes, sink, context, error);
    free_detections(boxes, count);
    return status;
}

amp_status amp_fork_classify(struct network *net, float *image, const char *path, int k, int *best,
                             amp_error *error)
{
    float *probabilities = amp_host_predict(net, image);
    AMP_TRY(amp_host_check_predicted(net, probabilities, path, error));
    if (net->hierarchy) amp_own_sort_classes(probabilities, net);
    top_k(probabilities, net->outputs, k, best);
    return AMP_OK;
}
