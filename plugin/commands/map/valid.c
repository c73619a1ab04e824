/* `darknet amp valid DATA CFG WEIGHTS`: measures a network on the .data file's `valid` images. A detector
 * gets mean average precision, a classifier top-1 and top-K accuracy. `darknet detector map` does the same
 * for detectors only, in the wording of AlexeyAB's. */
#include "../command.h"

#include "../../host/data/data_check.h"
#include "../../host/program/failure.h"
#include "../../host/program/turns.h"
#include "../arguments.h"
#include "../table.h"
#include "map_measure.h"

#include <string.h>

typedef struct request {
    const char *data, *cfg, *weights, *json, *points;
    double confidence;
    long top;
    int only_detectors; /* 1: the command is `detector map` */
} request;

static amp_status read_request(int argc, char **argv, request *r, amp_error *error)
{
    const amp_argument arguments[] = {
        { .name = "DATA", .text = &r->data, .about = "the .data file that names the images (`valid`)" },
        { .name = "CFG", .text = &r->cfg, .about = "the network's .cfg" },
        { .name = "WEIGHTS", .text = &r->weights, .about = "what was trained" },
        { .name = "-points", .text = &r->points, .choices = "0|11|101",
          .about = "average precision as in COCO (101, the default), in VOC 2007 (11), or the whole "
                   "area (0)" },
        { .name = "-thresh", .real = &r->confidence, .least = 0, .most = 1,
          .about = "least confidence of a box that counts in precision, recall and F1 (.25)" },
        { .name = r->only_detectors ? NULL : "-json", .value = "FILE", .text = &r->json,
          .about = "also writes everything as JSON; - is standard output" },
        { .name = "-top", .number = &r->top, .least = 1, .most = 1 << 24,
          .about = "for a classifier: how many guesses count for each image (5)" },
        { 0 } };
    r->points = "101";
    r->confidence = (double)amp_map_usual_request().confidence;
    r->top = 5;
    return amp_arguments_read(r->only_detectors ? "detector map" : "amp valid", argc - 3, argv + 3, arguments,
                              error);
}

/* ---- a classifier's accuracy ---- */

/* A classifier's accuracy, as in stock's `classifier valid`. An image's class is the first label in its path;
 * an image without one counts as wrong. Darknet's top_k breaks ties, which are frequent in half precision. */
typedef struct accuracy {
    /* labels: the class labels, in order; there may be more than `classes` */
    amp_lines images, labels;
    int k, classes;            /* from the .data file, or Darknet's default 2 */
    double top1, topk;         /* correctly classified images: first their number, at the end their share */
    /* the k most probable classes of one image (all classes if k is larger), most probable first */
    int *best;
    size_t unlabelled;         /* images without a label in their path */
    amp_evaluated evaluated;
} accuracy;

enum { CLASSES_UNLESS_GIVEN = 2 }; /* Darknet's default, in validate_classifier_single */

static amp_status read_data(const char *data_file, accuracy *r, amp_error *error)
{
    amp_data_file file;
    amp_status status = amp_data_file_read(data_file, &file, error);
    r->classes = file.classes ? file.classes : CLASSES_UNLESS_GIVEN;
    if (status == AMP_OK) status = amp_validation_images_read(&file, &r->images, error);
    if (status == AMP_OK) status = amp_check_labels(&file, r->classes, &r->labels, error);
    if (status == AMP_OK && file.leaves)
        status = amp_fail(error, AMP_BAD_CONFIG, "%s: leaves = %.300s: `amp valid` cannot tell a tree's "
                          "leaves from its other classes; remove this line", data_file, file.leaves);
    amp_data_file_free(&file);
    return status;
}

static amp_status classify(void *context, struct network *net, int i, const amp_loaded_image *image,
                           amp_error *error)
{
    accuracy *r = context;
    const char *path = r->images.line[i];
    int listed = r->k < r->classes ? r->k : r->classes, class_id = 0;
    AMP_TRY(amp_fork_classify(net, image->fitted, path, listed, r->best, error));
    while (class_id < r->classes && !strstr(path, r->labels.line[class_id])) class_id++;
    r->unlabelled += class_id == r->classes;
    r->top1 += r->best[0] == class_id;
    for (int k = 0; k < listed; k++) r->topk += r->best[k] == class_id;
    return AMP_OK;
}

static amp_status sum_up(accuracy *r, amp_error *error)
{
    if (r->unlabelled == r->evaluated.images)
        return amp_fail(error, AMP_BAD_CONFIG, "none of the %zu validation images (the first: %s) has a "
                        "label in its path (the first label: %s)", r->unlabelled, r->images.line[0],
                        r->labels.line[0]);
    r->top1 /= (double)r->evaluated.images;
    r->topk /= (double)r->evaluated.images;
    return AMP_OK;
}

/* The input is that of `classifier valid`: the middle square of the image, scaled to the network's size. */
static amp_status measure_accuracy(struct network *net, const char *data_file, accuracy *r, amp_error *error)
{
    int outputs = amp_fork_view(net).outputs;
    AMP_TRY(read_data(data_file, r, error));
    if (outputs != r->classes)
        return amp_fail(error, AMP_BAD_CONFIG, "the network has %d outputs, but the .data file has classes = "
                        "%d (the default is 2)", outputs, r->classes);
    r->best = amp_allocated(calloc((size_t)r->classes, sizeof *r->best));
    const amp_evaluation how = { .images = &r->images, .fit = AMP_FIT_CENTER_CROP,
                                 .measure = classify, .context = r };
    AMP_TRY(amp_evaluate(net, &how, &r->evaluated, error));
    return sum_up(r, error);
}

static void free_accuracy(accuracy *r)
{
    amp_lines_free(&r->images);
    amp_lines_free(&r->labels);
    amp_lines_free(&r->evaluated.unreadable);
    free(r->best);
}

static void print_accuracy(const accuracy *r)
{
    const amp_evaluated *e = &r->evaluated;
    printf(" top-1 accuracy = %.6f, or %.2f %%\n", r->top1, 100 * r->top1);
    if (r->k > 1) printf(" top-%d accuracy = %.6f, or %.2f %%\n", r->k, r->topk, 100 * r->topk);
    printf(" %zu images, %.1f seconds\n", e->images, e->seconds);
    if (r->unlabelled) printf(" %zu images have no label in their path and count as wrong\n", r->unlabelled);
    if (e->unreadable.count) printf(" %zu images could not be read and are left out\n", e->unreadable.count);
}

/* ---- JSON ---- */

static void write_head(amp_json *json, const request *r, const char *kind, const amp_evaluated *e)
{
#define REQUEST(member) AMP_FIELD(request, member)
    static const amp_field request_fields[] = { REQUEST(data), REQUEST(cfg), REQUEST(weights), { 0 } };
#define EVALUATED(key, member) AMP_FIELD_AS(key, amp_evaluated, member)
    static const amp_field fields[] = { EVALUATED("images", images),
                                        EVALUATED("unreadable", unreadable.count),
                                        EVALUATED("seconds", seconds), { 0 } };
    amp_json_object(json, NULL);
    amp_json_text(json, "kind", kind);
    amp_json_fields(json, r, request_fields);
    amp_json_fields(json, e, fields);
    amp_json_lines(json, "unreadable_images", &e->unreadable);
}

static void write_detector(FILE *stream, const request *r, const amp_map_result *m, const amp_lines *names)
{
#define TOTAL(member) AMP_FIELD_AS(#member, amp_map_result, total.member)
    static const amp_field fields[] = {
        TOTAL(map50), TOTAL(map50_95), TOTAL(precision), TOTAL(recall), TOTAL(f1), TOTAL(average_iou),
        TOTAL(true_positives), TOTAL(false_positives), TOTAL(false_negatives),
        AMP_FIELD(amp_map_result, objects), AMP_FIELD(amp_map_result, difficult),
        AMP_FIELD(amp_map_result, detections), AMP_FIELD_AS("labels_too_thin", amp_map_result, too_thin),
        { 0 } };
#define SCORE(key, member) AMP_FIELD_AS(key, amp_class_score, member)
    static const amp_field class_fields[] = {
        SCORE("objects", truths), SCORE("detections", detections), SCORE("true_positives", true_positives),
        SCORE("false_positives", false_positives), { 0 } };
    amp_json json = amp_json_begin(stream);
    write_head(&json, r, "detector", &m->evaluated);
    amp_json_fields(&json, m, fields);
    amp_json_integer(&json, "points", (int)m->request.points);
    amp_json_number(&json, "confidence", r->confidence);
    amp_json_array(&json, "classes");
    for (int c = 0; c < m->classes; c++) {
        const amp_class_score *s = &m->per_class[c];
        amp_json_object(&json, NULL);
        amp_json_text(&json, "name", (size_t)c < names->count ? names->line[c] : NULL);
        amp_json_fields(&json, s, class_fields);
        amp_json_array(&json, "ap"); /* at IoU .5, .55, ..., .95 */
        for (int t = 0; s->truths && t < AMP_AP_THRESHOLDS; t++) amp_json_number(&json, NULL, s->ap[t]);
        amp_json_close(&json);
        amp_json_close(&json);
    }
    amp_json_close(&json);
    amp_json_close(&json);
}

static void write_classifier(FILE *stream, const request *r, const accuracy *a)
{
#define ACCURACY(member) AMP_FIELD(accuracy, member)
    static const amp_field fields[] = { ACCURACY(top1), ACCURACY(k), ACCURACY(topk), ACCURACY(unlabelled),
                                        { 0 } };
    amp_json json = amp_json_begin(stream);
    write_head(&json, r, "classifier", &a->evaluated);
    amp_json_fields(&json, a, fields);
    amp_json_close(&json);
}

/* ---- measuring ---- */

static amp_status valid_detector(const request *r, struct network *net, FILE *json, amp_error *error)
{
    amp_detection_data data;
    amp_map_result result = { 0 };
    amp_map_request how = amp_map_usual_request();
    how.confidence = (float)r->confidence;
    how.points = (amp_ap_points)atoi(r->points);
    amp_status status = amp_detection_data_read(r->data, &data, error);
    if (status == AMP_OK) status = amp_map_measure(net, &data, &how, &result, error);
    if (status == AMP_OK) {
        if (!amp_is_stdout(r->json)) amp_map_print(&result, &data.names);
        if (json) write_detector(json, r, &result, &data.names);
        amp_turns_send("score %.17g", result.total.map50);
        amp_turns_send("score %.17g", result.total.map50_95);
    }
    amp_map_result_free(&result);
    amp_detection_data_free(&data);
    return status;
}

static amp_status valid_classifier(const request *r, struct network *net, FILE *json, amp_error *error)
{
    accuracy result = { .k = (int)r->top };
    amp_status status = measure_accuracy(net, r->data, &result, error);
    if (status == AMP_OK) {
        if (!amp_is_stdout(r->json)) print_accuracy(&result);
        if (json) write_classifier(json, r, &result);
        amp_turns_send("score %.17g", result.top1);
        amp_turns_send("score %.17g", result.topk);
    }
    free_accuracy(&result);
    return status;
}

static amp_status measure(const request *r, FILE *json, amp_error *error)
{
    struct network *net;
    amp_data_file data;
    /* Finds mistakes in the .data file before the network is made, which takes a while. */
    amp_status status = amp_data_file_read(r->data, &data, error);
    amp_data_file_free(&data);
    if (status == AMP_OK) status = amp_evaluation_open(r->cfg, r->weights, &net, error);
    if (status != AMP_OK) return status;
    if (amp_turns_ready()) status = amp_fail(error, AMP_IO_FAILED, "stopped before it began");
    else if (amp_fork_box_classes(net) >= 0) status = valid_detector(r, net, json, error);
    else if (r->only_detectors)
        status = amp_fail(error, AMP_BAD_CONFIG, "%s: not a detector: the last section is not [yolo], "
                          "[region] or [detection]; `darknet amp valid` measures classifiers", r->cfg);
    else status = valid_classifier(r, net, json, error);
    amp_fork_free_network(net);
    return status;
}

static amp_status valid(int argc, char **argv, int only_detectors, amp_error *error)
{
    request r = { .only_detectors = only_detectors };
    amp_output json;
    AMP_TRY(read_request(argc, argv, &r, error));
    AMP_TRY(amp_output_begin(r.json, &json, error));
    return amp_output_end(&json, measure(&r, json.stream, error), error);
}

amp_status amp_command_valid(int argc, char **argv, amp_error *error) { return valid(argc, argv, 0, error); }

int amp_detector_map(int argc, char **argv)
{
    amp_error error;
    amp_status status = valid(argc, argv, 1, &error);
    if (status == AMP_OK || status == AMP_HELP_PRINTED) return 0;
    fflush(stdout);
    fprintf(stderr, "detector map: %s\n", error.message);
    return 1;
}
