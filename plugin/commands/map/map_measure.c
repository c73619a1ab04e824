#include "map_measure.h"

#include "../../host/common/clock.h"
#include "evaluation_network.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct detections { amp_detected *detected; size_t count, room; } detections;

/* One measuring on its way. */
typedef struct measuring {
    struct network *net;
    int classes, image; /* image: the number of the one that is looked at */
    const amp_detection_data *data;
    detections found;
    amp_truths truths;
} measuring;

amp_map_request amp_map_usual_request(void) { return (amp_map_request){.confidence = .25f, .points = AMP_AP_COCO}; }

amp_ap_points amp_map_points(const char *text)
{
    return !strcmp(text, "0") ? AMP_AP_AREA : !strcmp(text, "11") ? AMP_AP_VOC2007 : AMP_AP_COCO;
}

/* The part of a box inside the image, as `detector valid` writes it. */
static amp_box inside(const amp_found_box *b)
{
    float left = b->x - b->w / 2 < 0 ? 0 : b->x - b->w / 2, right = b->x + b->w / 2 > 1 ? 1 : b->x + b->w / 2;
    float top = b->y - b->h / 2 < 0 ? 0 : b->y - b->h / 2, bottom = b->y + b->h / 2 > 1 ? 1 : b->y + b->h / 2;
    return (amp_box){(left + right) / 2, (top + bottom) / 2, right - left, bottom - top};
}

static amp_status keep_box(void *context, const amp_found_box *found, amp_error *error)
{
    measuring *m = context;
    detections *all = &m->found;
    if (all->count == all->room) {
        size_t room = all->room ? 2 * all->room : 1024;
        amp_detected *grown = realloc(all->detected, room * sizeof *grown);
        if (!grown) return amp_fail(error, AMP_NO_MEMORY, "no memory for %zu detections", room);
        all->detected = grown;
        all->room = room;
    }
    all->detected[all->count++] = (amp_detected){m->image, found->class_id, found->score, inside(found)};
    return AMP_OK;
}

static amp_status measure_image(measuring *m, const amp_loaded_image *loaded, int i, amp_map_result *result, amp_error *error)
{
    const char *path = m->data->images.line[i];
    AMP_TRY(amp_truths_read(path, i, m->classes, 0, &m->truths, error));
    if (m->data->difficult.count) {
        size_t before = m->truths.count;
        AMP_TRY(amp_truths_read(m->data->difficult.line[i], i, m->classes, 1, &m->truths, error));
        result->difficult += m->truths.count - before;
    }
    m->image = i;
    AMP_TRY(amp_fork_detect(m->net, loaded->fitted, loaded->size, path, keep_box, m, error));
    ++result->images;
    return AMP_OK;
}

static amp_status measure_all(measuring *m, amp_map_result *result, amp_error *error)
{
    struct amp_image_loader *loader;
    const amp_lines *images = &m->data->images;
    amp_view view = amp_fork_view(m->net);
    AMP_TRY(amp_image_loader_start(images, view.w, view.h, amp_fork_detector_fit(m->net), &loader, error));
    int progress = !result->request.quiet && isatty(STDERR_FILENO);
    amp_status status = AMP_OK;
    for (size_t i = 0; status == AMP_OK && i < images->count; ++i) {
        amp_loaded_image loaded = amp_image_loader_next(loader);
        status = loaded.fitted ? measure_image(m, &loaded, (int)i, result, error)
                               : amp_image_left_out(&loaded, &result->unreadable, error);
        free(loaded.fitted);
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
    result->classes = m->classes;
    result->per_class = calloc((size_t)result->classes, sizeof *result->per_class);
    if (!result->per_class) return amp_fail(error, AMP_NO_MEMORY, "no memory for %d classes", result->classes);
    return amp_average_precision(m->found.detected, m->found.count, m->truths.truth, m->truths.count, result->classes,
                                 result->request.points, result->request.confidence, result->per_class, &result->total, error);
}

amp_status amp_map_measure(struct network *net, const amp_detection_data *data,
                           const amp_map_request *request, amp_map_result *result, amp_error *error)
{
    *result = (amp_map_result){.request = *request};
    int classes = amp_fork_box_classes(net), batch = amp_fork_view(net).batch;
    if (classes < 0)
        return amp_fail(error, AMP_BAD_CONFIG, "not a detector: its last section is not [yolo], [region] or [detection]");
    AMP_TRY(amp_check_channels(net, error));
    measuring m = {.net = net, .classes = classes, .data = data};
    double start = amp_clock_seconds();
    amp_fork_set_batch(net, 1);
    amp_status status = measure_all(&m, result, error);
    amp_fork_set_batch(net, batch);
    result->seconds = amp_clock_seconds() - start;
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
