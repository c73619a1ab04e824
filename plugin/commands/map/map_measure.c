#include "map_measure.h"

#include "../../tensor/half.h"
#include "evaluation_network.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const float LEAST_SCORE = .005f, HIERARCHY = .5f, SUPPRESSION_IOU = .45f;

typedef struct detections { amp_detected *detected; size_t count, room; } detections;

/* One measuring on its way. */
typedef struct measuring {
    network *net;
    const amp_detection_data *data;
    detections found;
    amp_truths truths;
} measuring;

amp_map_request amp_map_usual_request(void) { return (amp_map_request){.confidence = .25f, .points = AMP_AP_COCO}; }

amp_ap_points amp_map_points(const char *text)
{
    return !strcmp(text, "0") ? AMP_AP_AREA : !strcmp(text, "11") ? AMP_AP_VOC2007 : AMP_AP_COCO;
}

/* Before the boxes are counted: Darknet counts NaN objectness in one place as a box and in another not, and writes past
 * the end of its array. */
static amp_status check_finite(const network *net, const char *image_path, amp_error *error)
{
    for (int i = 0; i < net->n; ++i) {
        const layer *l = &net->layers[i];
        for (int k = 0; amp_gives_boxes(l) && k < l->outputs; ++k)
            if (!amp_is_finite(l->output[k]))
                return amp_fail(error, AMP_DIVERGED, "%s: layer %d gives numbers that are not finite; "
                                AMP_WHY_NOT_FINITE, image_path, i);
    }
    return AMP_OK;
}

/* The part of a box inside the image, as `detector valid` writes it. */
static amp_box inside(box b)
{
    float left = b.x - b.w / 2 < 0 ? 0 : b.x - b.w / 2, right = b.x + b.w / 2 > 1 ? 1 : b.x + b.w / 2;
    float top = b.y - b.h / 2 < 0 ? 0 : b.y - b.h / 2, bottom = b.y + b.h / 2 > 1 ? 1 : b.y + b.h / 2;
    return (amp_box){(left + right) / 2, (top + bottom) / 2, right - left, bottom - top};
}

static amp_status keep_boxes(const detection *boxes, int count, int classes, int image_number, detections *all,
                             amp_error *error)
{
    for (int i = 0; i < count; ++i)
        for (int c = 0; c < classes; ++c) {
            if (!(boxes[i].prob[c] > 0)) continue;
            if (all->count == all->room) {
                size_t room = all->room ? 2 * all->room : 1024;
                amp_detected *grown = realloc(all->detected, room * sizeof *grown);
                if (!grown) return amp_fail(error, AMP_NO_MEMORY, "no memory for %zu detections", room);
                all->detected = grown;
                all->room = room;
            }
            all->detected[all->count++] = (amp_detected){image_number, c, boxes[i].prob[c], inside(boxes[i].bbox)};
        }
    return AMP_OK;
}

static amp_status detect(measuring *m, const amp_loaded_image *loaded, int image_number, amp_error *error)
{
    int classes = m->net->layers[m->net->n - 1].classes, count = 0;
    network_predict(m->net, loaded->fitted.data);
    AMP_TRY(check_finite(m->net, m->data->images.line[image_number], error));
    detection *boxes = get_network_boxes(m->net, loaded->w, loaded->h, LEAST_SCORE, HIERARCHY, 0, 1, &count);
    do_nms_sort(boxes, count, classes, SUPPRESSION_IOU);
    amp_status status = keep_boxes(boxes, count, classes, image_number, &m->found, error);
    free_detections(boxes, count);
    return status;
}

static amp_status measure_image(measuring *m, const amp_loaded_image *loaded, int i, amp_map_result *result, amp_error *error)
{
    int classes = m->net->layers[m->net->n - 1].classes;
    AMP_TRY(amp_truths_read(m->data->images.line[i], i, classes, 0, &m->truths, error));
    if (m->data->difficult.count) {
        size_t before = m->truths.count;
        AMP_TRY(amp_truths_read(m->data->difficult.line[i], i, classes, 1, &m->truths, error));
        result->difficult += m->truths.count - before;
    }
    AMP_TRY(detect(m, loaded, i, error));
    ++result->images;
    return AMP_OK;
}

static amp_status measure_all(measuring *m, amp_map_result *result, amp_error *error)
{
    struct amp_image_loader *loader;
    const amp_lines *images = &m->data->images;
    AMP_TRY(amp_image_loader_start(images, m->net->w, m->net->h, AMP_FIT_LETTERBOX, &loader, error));
    int progress = !result->request.quiet && isatty(STDERR_FILENO);
    amp_status status = AMP_OK;
    for (size_t i = 0; status == AMP_OK && i < images->count; ++i) {
        amp_loaded_image loaded = amp_image_loader_next(loader);
        status = loaded.fitted.data ? measure_image(m, &loaded, (int)i, result, error)
                                    : amp_image_left_out(&loaded, &result->unreadable, error);
        free_image(loaded.fitted);
        if (status == AMP_OK) status = amp_image_done(result->request.stop, i + 1, images->count, error);
        if (progress) fprintf(stderr, "\r%zu of %zu images", i + 1, images->count);
    }
    if (progress) fputs("\r\033[K", stderr);
    amp_image_loader_stop(loader);
    return status;
}

static amp_status check_counts(const measuring *m, const amp_map_result *result, amp_error *error)
{
    if (result->images == 0) return amp_no_image_left(&result->unreadable, error);
    if (result->objects > 0) return AMP_OK;
    return amp_fail(error, AMP_BAD_CONFIG, "none of the %zu validation images has a labelled object; "
                    "are the labels beside %s where Darknet looks (images -> labels, .txt)?", result->images,
                    m->data->images.line[0]);
}

static amp_status count(const measuring *m, amp_map_result *result, amp_error *error)
{
    result->classes = m->net->layers[m->net->n - 1].classes;
    result->per_class = calloc((size_t)result->classes, sizeof *result->per_class);
    if (!result->per_class) return amp_fail(error, AMP_NO_MEMORY, "no memory for %d classes", result->classes);
    return amp_average_precision(m->found.detected, m->found.count, m->truths.truth, m->truths.count, result->classes,
                                 result->request.points, result->request.confidence, result->per_class, &result->total, error);
}

amp_status amp_map_measure(network *net, const amp_detection_data *data, const amp_map_request *request, amp_map_result *result,
                           amp_error *error)
{
    *result = (amp_map_result){.request = *request};
    if (!amp_is_detector(net))
        return amp_fail(error, AMP_BAD_CONFIG, "not a detector: its last section is not [yolo], [region] or [detection]");
    AMP_TRY(amp_check_channels(net, error));
    measuring m = {.net = net, .data = data};
    double start = what_time_is_it_now();
    int batch = net->batch;
    set_batch_network(net, 1);
    amp_status status = measure_all(&m, result, error);
    set_batch_network(net, batch);
    result->seconds = what_time_is_it_now() - start;
    result->objects = m.truths.count - result->difficult;
    result->detections = m.found.count;
    result->too_thin = m.truths.too_thin;
    if (status == AMP_OK) status = check_counts(&m, result, error);
    if (status == AMP_OK) status = count(&m, result, error);
    amp_truths_free(&m.truths);
    free(m.found.detected);
    return status;
}

void amp_map_result_free(amp_map_result *result)
{
    free(result->per_class);
    amp_lines_free(&result->unreadable);
    *result = (amp_map_result){0};
}

static void print_class(const amp_class_score *s, int number, const char *name)
{
    printf("class_id = %d, name = %s, ", number, name);
    if (s->truths) printf("ap = %.2f %%", 100 * s->ap[0]);
    else printf("ap = none (no object of this class)");
    printf("   \t(TP = %d, FP = %d)\n", s->true_positives, s->false_positives);
}

void amp_map_print(const amp_map_result *r, const amp_lines *names)
{
    const amp_map_score *total = &r->total;
    float confidence = r->request.confidence;
    for (int c = 0; c < r->classes; ++c)
        print_class(&r->per_class[c], c, (size_t)c < names->count ? names->line[c] : "(unnamed)");
    printf("\n for conf_thresh = %.2f, precision = %.4f, recall = %.4f, F1-score = %.4f\n", confidence, total->precision,
           total->recall, total->f1);
    printf(" for conf_thresh = %.2f, TP = %d, FP = %d, FN = %d, average IoU = %.2f %%\n\n", confidence, total->true_positives,
           total->false_positives, total->false_negatives, 100 * total->average_iou);
    if (r->request.points) printf(" IoU threshold = 50 %%, used %d recall points\n", (int)r->request.points);
    else printf(" IoU threshold = 50 %%, used the area under the curve for each class\n");
    printf(" mean average precision (mAP@0.50) = %.6f, or %.2f %%\n", total->map50, 100 * total->map50);
    printf(" mean average precision (mAP@0.50:0.95) = %.6f, or %.2f %%\n", total->map50_95, 100 * total->map50_95);
    printf(" %zu images, %zu objects, %zu detections, %.1f seconds\n", r->images, r->objects, r->detections, r->seconds);
    if (r->difficult) printf(" %zu difficult objects: neither to be found nor false\n", r->difficult);
    if (r->unreadable.count) printf(" %zu images could not be read and are left out\n", r->unreadable.count);
    if (r->too_thin) printf(" %zu labels thinner than 0.001 left out, as in training\n", r->too_thin);
}
