/* `darknet amp valid DATA CFG WEIGHTS`: measures a network on the .data file's `valid` images. A detector
 * gets mean average precision, a classifier top-1 and top-K accuracy. `darknet detector map` measures a
 * detector; pjreddie's Darknet does not have this command, AlexeyAB's has it, and the output uses its
 * words. */
#include "../command.h"

#include "../../host/program/turns.h"
#include "../arguments.h"
#include "../table.h"
#include "accuracy.h"
#include "map_measure.h"

typedef struct request {
    const char *data, *cfg, *weights, *json, *points;
    double confidence;
    long top;
    int only_detectors; /* `detector map` */
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
          .about = "for a classifier: the guesses that count for each image (5)" },
        { 0 } };
    r->points = "101";
    r->confidence = (double)amp_map_usual_request().confidence;
    r->top = 5;
    return amp_arguments_read(r->only_detectors ? "detector map" : "amp valid", argc - 3, argv + 3, arguments,
                              error);
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

static void write_classifier(FILE *stream, const request *r, const amp_accuracy *a)
{
#define ACCURACY(member) AMP_FIELD(amp_accuracy, member)
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
    amp_accuracy result;
    amp_status status = amp_accuracy_measure(net, r->data, (int)r->top, &result, error);
    if (status == AMP_OK) {
        if (!amp_is_stdout(r->json)) amp_accuracy_print(&result);
        if (json) write_classifier(json, r, &result);
        amp_turns_send("score %.17g", result.top1);
        amp_turns_send("score %.17g", result.topk);
    }
    amp_accuracy_free(&result);
    return status;
}

static amp_status measure(const request *r, FILE *json, amp_error *error)
{
    struct network *net;
    amp_data_file data;
    /* before the network is made, which takes a while */
    amp_status status = amp_data_file_read(r->data, &data, error);
    amp_data_file_free(&data);
    if (status == AMP_OK) status = amp_evaluation_open(r->cfg, r->weights, &net, error);
    if (status != AMP_OK) return status;
    if (amp_turns_ready()) status = amp_fail(error, AMP_IO_FAILED, "stopped before it began");
    else if (amp_fork_box_classes(net) >= 0) status = valid_detector(r, net, json, error);
    else if (r->only_detectors)
        status = amp_fail(error, AMP_BAD_CONFIG, "%s: not a detector: its last section is not [yolo], "
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
