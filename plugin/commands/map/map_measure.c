/* Measures a detector and prints the result. */
#include "map_measure.h"

#include "../../host/data/label_file.h"
#include "../../host/program/exchange.h"
#include "../../host/program/failure.h"
#include "../../host/program/ranks.h"

#include <errno.h>
#include <sys/stat.h>

/* Training drops boxes that are thinner than this, relative to the image (data.c, fill_truth_detection). */
static const float THINNEST = .001f;

/* ---- the .data file ---- */

/* Reads the list `difficult`, which has one path per image of `valid`, in the same order. amp_label_path
 * turns each path, like an image's path, into the name of the label file with the image's difficult
 * objects. */
static amp_status read_difficult(const char *file, amp_detection_data *data, amp_error *error)
{
    AMP_TRY(amp_lines_read(file, "the list of difficult objects (`difficult` in the .data file)",
                           &data->difficult, error));
    if (data->difficult.count == data->images.count) return AMP_OK;
    return amp_fail(error, AMP_BAD_CONFIG, "%s: %zu lines, but `valid` lists %zu images; `difficult` needs a "
                    "line for each, in the same order", file, data->difficult.count, data->images.count);
}

amp_status amp_detection_data_read(const char *data_file, amp_detection_data *data, amp_error *error)
{
    amp_data_file file;
    *data = (amp_detection_data){ 0 };
    amp_status status = amp_data_file_read(data_file, &file, error);
    if (status == AMP_OK) status = amp_validation_images_read(&file, &data->images, error);
    if (status == AMP_OK) amp_ranks_note_file("a list of validation images", file.valid);
    if (status == AMP_OK && file.names)
        status = amp_lines_read(file.names, "the class names (`names` in the .data file)", &data->names,
                                error);
    if (status == AMP_OK && file.difficult) status = read_difficult(file.difficult, data, error);
    amp_data_file_free(&file);
    return status;
}

void amp_detection_data_free(amp_detection_data *data)
{
    amp_lines_free(&data->images);
    amp_lines_free(&data->names);
    amp_lines_free(&data->difficult);
}

/* ---- one image ---- */

typedef struct measuring {
    const amp_detection_data *data;
    amp_map_result *result;
    int first; /* index of the first image that this rank measures */
    /* image: the index of the current image. is_difficult 1: its difficult objects are being read */
    int image, is_difficult;
    amp_detected *found;
    size_t found_count, found_room;
    amp_truth *truths;
    size_t truth_count, truth_room;
} measuring;

static amp_status keep_truth(void *context, const char *file, unsigned long line, const amp_label *label,
                             int outside, amp_error *error)
{
    measuring *m = context;
    if (label->w < THINNEST || label->h < THINNEST) {
        ++m->result->too_thin;
        return AMP_OK;
    }
    m->truths = amp_grow(m->truths, m->truth_count, &m->truth_room, sizeof *m->truths);
    m->truths[m->truth_count++] = (amp_truth){ .image = m->image, .difficult = m->is_difficult,
        .class_id = label->class_id, .box = { label->x, label->y, label->w, label->h } };
    *(m->is_difficult ? &m->result->difficult : &m->result->objects) += 1;
    return AMP_OK;
}

/* Reads an image's labels from the file that training reads. If that file is missing, there are no
 * objects. */
static amp_status read_truths(measuring *m, const char *image_path, int difficult, amp_error *error)
{
    char path[AMP_LABEL_PATH];
    struct stat status;
    m->is_difficult = difficult;
    if (!amp_label_path(image_path, path))
        return amp_fail(error, AMP_BAD_CONFIG, "%.100s...: an image's path may have at most %d bytes",
                        image_path, (int)AMP_IMAGE_PATH_MOST);
    if (stat(path, &status) != 0 && errno == ENOENT) return AMP_OK;
    return amp_labels_read(path, m->result->classes, keep_truth, m, error);
}

/* Clips a box to the image, as `detector valid` does. */
static amp_box inside(const amp_found_box *b)
{
    float left = b->x - b->w / 2 < 0 ? 0 : b->x - b->w / 2, right = b->x + b->w / 2 > 1 ? 1 : b->x + b->w / 2;
    float top = b->y - b->h / 2 < 0 ? 0 : b->y - b->h / 2, bottom = b->y + b->h / 2 > 1 ? 1 : b->y + b->h / 2;
    return (amp_box){ (left + right) / 2, (top + bottom) / 2, right - left, bottom - top };
}

static amp_status keep_box(void *context, const amp_found_box *found, amp_error *error)
{
    measuring *m = context;
    m->found = amp_grow(m->found, m->found_count, &m->found_room, sizeof *m->found);
    m->found[m->found_count++] = (amp_detected){ m->image, found->class_id, found->score, inside(found) };
    return AMP_OK;
}

static amp_status measure_image(void *context, struct network *net, int i, const amp_loaded_image *image,
                                amp_error *error)
{
    measuring *m = context;
    m->image = m->first + i;
    const char *path = m->data->images.line[m->image];
    AMP_TRY(read_truths(m, path, 0, error));
    if (m->data->difficult.count) AMP_TRY(read_truths(m, m->data->difficult.line[m->image], 1, error));
    return amp_fork_detect(net, image->fitted, image->size, path, keep_box, m, error);
}

/* ---- all images ---- */

static amp_status count(const measuring *m, amp_map_result *r, amp_error *error)
{
    if (!r->objects && r->too_thin)
        return amp_fail(error, AMP_BAD_CONFIG, "none of the %zu validation images has an object to find: "
                        "their %zu labels are thinner than %g of the image, and training leaves those out",
                        r->evaluated.images, r->too_thin, (double)THINNEST);
    if (!r->objects)
        return amp_fail(error, AMP_BAD_CONFIG, "none of the %zu validation images (the first: %.300s) has a "
                        "labelled object; this Darknet looks for %s", r->evaluated.images,
                        m->data->images.line[0], amp_fork_label_place);
    r->per_class = amp_allocated(calloc((size_t)r->classes, sizeof *r->per_class));
    r->total = amp_average_precision(m->found, m->found_count, m->truths, m->truth_count, r->classes,
                                     &r->request, r->per_class);
    return AMP_OK;
}

/* This rank's images. They are consecutive, so the detections of all ranks, joined in rank order, are in the
 * order of a single rank. */
static amp_lines share_of(const amp_lines *images)
{
    size_t ranks = (size_t)amp_ranks_count(), rank = amp_ranks() ? (size_t)amp_ranks()->rank : 0;
    size_t first = images->count * rank / ranks;
    return (amp_lines){ .line = images->line + first, .count = images->count * (rank + 1) / ranks - first };
}

static amp_status join_shares(measuring *m, amp_status mine, amp_error *error)
{
    static const char what[] = "measuring mAP";
    amp_map_result *r = m->result;
    size_t counts[] = { r->objects, r->difficult, r->too_thin, r->evaluated.images };
    if (!amp_ranks()) return mine;
    AMP_TRY(amp_exchange_outcome(mine, what, error));
    amp_exchange_join((void **)&m->found, &m->found_count, sizeof *m->found, what);
    amp_exchange_join((void **)&m->truths, &m->truth_count, sizeof *m->truths, what);
    amp_exchange_sum(counts, sizeof counts / sizeof *counts, what);
    r->objects = counts[0];
    r->difficult = counts[1];
    r->too_thin = counts[2];
    r->evaluated.images = counts[3];
    if (r->evaluated.images) return AMP_OK;
    return amp_fail(error, AMP_BAD_CONFIG, "none of the %zu validation images can be read",
                    m->data->images.count);
}

amp_map_request amp_map_usual_request(void)
{
    return (amp_map_request){ .confidence = .25f, .points = AMP_AP_COCO, .iou = .5 };
}

amp_status amp_map_measure(struct network *net, const amp_detection_data *data,
                           const amp_map_request *request, amp_map_result *r, amp_error *error)
{
    *r = (amp_map_result){ .request = *request, .classes = amp_fork_box_classes(net) };
    amp_lines share = share_of(&data->images);
    measuring m = { .data = data, .result = r, .first = (int)(share.line - data->images.line) };
    const amp_evaluation how = { .images = &share, .fit = amp_fork_detector_fit(net),
                                 .is_a_share = amp_ranks_count() > 1, .measure = measure_image,
                                 .context = &m };
    amp_status status = join_shares(&m, amp_evaluate(net, &how, &r->evaluated, error), error);
    r->detections = m.found_count;
    if (status == AMP_OK) status = count(&m, r, error);
    free(m.truths);
    free(m.found);
    return status;
}

void amp_map_result_free(amp_map_result *r)
{
    free(r->per_class);
    amp_lines_free(&r->evaluated.unreadable);
    *r = (amp_map_result){ 0 };
}

static void print_class(const amp_class_score *s, int number, const char *name)
{
    printf("class_id = %d, name = %s, ", number, name);
    if (s->truths) printf("ap = %.2f %%", 100 * s->ap[0]);
    else printf("ap = none (no object of this class)");
    printf("   \t(TP = %d, FP = %d)\n", s->true_positives, s->false_positives);
}

void amp_map_print_precision(const amp_map_result *r)
{
    const amp_map_score *t = &r->total;
    printf(" for conf_thresh = %.2f, precision = %.4f, recall = %.4f, F1-score = %.4f\n",
           (double)r->request.confidence, t->precision, t->recall, t->f1);
}

void amp_map_print(const amp_map_result *r, const amp_lines *names)
{
    const amp_map_score *t = &r->total;
    const amp_evaluated *e = &r->evaluated;
    for (int c = 0; c < r->classes; c++)
        print_class(&r->per_class[c], c, (size_t)c < names->count ? names->line[c] : "(unnamed)");
    printf("\n");
    amp_map_print_precision(r);
    printf(" for conf_thresh = %.2f, TP = %d, FP = %d, FN = %d, average IoU = %.2f %%\n\n",
           (double)r->request.confidence, t->true_positives, t->false_positives, t->false_negatives,
           100 * t->average_iou);
    if (r->request.points) printf(" IoU threshold = 50 %%, used %d recall points\n", (int)r->request.points);
    else printf(" IoU threshold = 50 %%, used the area under the curve for each class\n");
    printf(" mean average precision (mAP@0.50) = %.6f, or %.2f %%\n", t->map50, 100 * t->map50);
    printf(" mean average precision (mAP@0.50:0.95) = %.6f, or %.2f %%\n", t->map50_95, 100 * t->map50_95);
    printf(" %zu images, %zu objects, %zu detections, %.1f seconds\n", e->images, r->objects, r->detections,
           e->seconds);
    if (r->difficult) printf(" %zu difficult objects, which count neither as objects nor as false "
                             "positives\n", r->difficult);
    if (e->unreadable.count) printf(" %zu images could not be read and are left out\n", e->unreadable.count);
    if (r->too_thin)
        printf(" %zu labels thinner than 0.001 of the image are left out, as in training\n", r->too_thin);
}
