/* `darknet amp valid <data> <cfg> <weights>`: how good a network is on the .data file's `valid` images. A detector gets mean
 * average precision, as `detector map` prints it; a classifier top-1 and top-K accuracy, as `classifier valid` counts them. */
#include "../command.h"

#include "../../host/training/turns.h"
#include "accuracy.h"
#include "../arguments.h"
#include "../../host/common/clock.h"
#include "evaluation_network.h"
#include "../json.h"
#include "map_measure.h"

#include <string.h>

typedef struct request {
    const char *data, *cfg, *weights, *json, *points;
    double confidence;
    long top;
} request;

static amp_status read_request(int argc, char **argv, request *r, amp_error *error)
{
    const amp_argument arguments[] = {
        AMP_MAP_ARGUMENTS(&r->data, &r->cfg, &r->weights, &r->points, &r->confidence),
        { .name = "-json", .value = "FILE", .text = &r->json,
          .about = "also writes everything as JSON; - is standard output" },
        { .name = "-top", .number = &r->top, .least = 1, .most = 1 << 24,
          .about = "of a classifier: how many guesses it has (5)" },
        { 0 } };
    *r = (request){.points = "101", .confidence = (double)amp_map_usual_request().confidence, .top = 5};
    return amp_arguments_read("amp valid", argc - 3, argv + 3, arguments, error);
}

/* ---- turns with other programs: commands/turns.h ---- */

static const double PASS_SECONDS = .2; /* a pass costs some microseconds, a classifier's image not much more */

/* Gives the turn on, and hears whether to stop. */
static int pass(size_t done, size_t of)
{
    static double last;
    char line[80];
    double now = amp_clock_seconds();
    if (!amp_turns_taken() || now - last < PASS_SECONDS) return 0;
    snprintf(line, sizeof line, "image %zu of %zu", done, of);
    int stop = amp_turns_pass(line);
    last = amp_clock_seconds();
    return stop;
}

static void tell_score(const char *name, double value)
{
    char line[80];
    snprintf(line, sizeof line, "score %s %.17g", name, value);
    amp_turns_tell(line);
}

static void tell_count(const char *name, size_t count)
{
    char line[80];
    snprintf(line, sizeof line, "%s %zu", name, count);
    amp_turns_tell(line);
}

static void tell(size_t images, size_t unreadable, const char *const name[2], const double score[2])
{
    if (!amp_turns_taken()) return;
    tell_score(name[0], score[0]);
    if (strcmp(name[1], name[0])) tell_score(name[1], score[1]); /* -top 1 */
    tell_count("images", images);
    tell_count("unreadable", unreadable);
}

/* ---- JSON ---- */

static void write_head(amp_json *json, const request *r, const char *kind, size_t images, const amp_lines *unreadable,
                       double seconds)
{
    amp_json_object(json, NULL);
    amp_json_text(json, "kind", kind);
    amp_json_text(json, "data", r->data);
    amp_json_text(json, "cfg", r->cfg);
    amp_json_text(json, "weights", r->weights);
    amp_json_integer(json, "images", (long long)images);
    amp_json_integer(json, "unreadable", (long long)unreadable->count);
    amp_json_array(json, "unreadable_images");
    for (size_t i = 0; i < unreadable->count; ++i) amp_json_text(json, NULL, unreadable->line[i]);
    amp_json_close(json);
    amp_json_number(json, "seconds", seconds);
}

static const char *name_of(const amp_lines *names, int c) { return (size_t)c < names->count ? names->line[c] : NULL; }

static void write_detector_class(amp_json *json, const amp_class_score *s, const char *name)
{
    amp_json_object(json, NULL);
    amp_json_text(json, "name", name);
    amp_json_integer(json, "objects", s->truths);
    amp_json_integer(json, "detections", s->detections);
    amp_json_integer(json, "true_positives", s->true_positives);
    amp_json_integer(json, "false_positives", s->false_positives);
    amp_json_array(json, "ap"); /* at IoU .5, .55, ..., .95 */
    for (int t = 0; s->truths && t < AMP_AP_THRESHOLDS; ++t) amp_json_number(json, NULL, s->ap[t]);
    amp_json_close(json);
    amp_json_close(json);
}

static void write_detector(FILE *stream, const request *r, const amp_map_result *m, const amp_lines *names)
{
    amp_json json = amp_json_begin(stream);
    write_head(&json, r, "detector", m->images, &m->unreadable, m->seconds);
    amp_json_number(&json, "map50", m->total.map50);
    amp_json_number(&json, "map50_95", m->total.map50_95);
    amp_json_integer(&json, "points", (int)m->request.points);
    amp_json_number(&json, "confidence", r->confidence);
    amp_json_number(&json, "precision", m->total.precision);
    amp_json_number(&json, "recall", m->total.recall);
    amp_json_number(&json, "f1", m->total.f1);
    amp_json_number(&json, "average_iou", m->total.average_iou);
    amp_json_integer(&json, "true_positives", m->total.true_positives);
    amp_json_integer(&json, "false_positives", m->total.false_positives);
    amp_json_integer(&json, "false_negatives", m->total.false_negatives);
    amp_json_integer(&json, "objects", (long long)m->objects);
    amp_json_integer(&json, "difficult", (long long)m->difficult);
    amp_json_integer(&json, "detections", (long long)m->detections);
    amp_json_integer(&json, "labels_too_thin", (long long)m->too_thin);
    amp_json_array(&json, "classes");
    for (int c = 0; c < m->classes; ++c) write_detector_class(&json, &m->per_class[c], name_of(names, c));
    amp_json_close(&json);
    amp_json_close(&json);
}

static void write_classifier(FILE *stream, const request *r, const amp_accuracy *a, const amp_lines *labels)
{
    amp_json json = amp_json_begin(stream);
    write_head(&json, r, "classifier", a->images, &a->unreadable, a->seconds);
    amp_json_number(&json, "top1", a->top1);
    amp_json_integer(&json, "k", a->k);
    amp_json_number(&json, "topk", a->topk);
    amp_json_integer(&json, "unlabelled", (long long)a->unlabelled);
    amp_json_array(&json, "classes");
    for (int c = 0; c < a->classes; ++c) {
        amp_json_object(&json, NULL);
        amp_json_text(&json, "label", labels->line[c]);
        amp_json_integer(&json, "images", (long long)a->per_class[c].images);
        amp_json_integer(&json, "top1", (long long)a->per_class[c].top1);
        amp_json_integer(&json, "topk", (long long)a->per_class[c].topk);
        amp_json_close(&json);
    }
    amp_json_close(&json);
    amp_json_close(&json);
}

/* ---- measuring ---- */

static int prints(const request *r) { return !r->json || strcmp(r->json, "-"); }

static amp_status valid_detector(const request *r, struct network *net, FILE *json, amp_error *error)
{
    static const char *const names[] = {"map50", "map50_95"};
    amp_detection_data data;
    amp_map_result result = {0};
    amp_map_request how = {.confidence = (float)r->confidence, .points = amp_map_points(r->points), .stop = pass};
    amp_status status = amp_detection_data_read(r->data, &data, error);
    if (status == AMP_OK) status = amp_map_measure(net, &data, &how, &result, error);
    if (status == AMP_OK) {
        if (prints(r)) amp_map_print(&result, &data.names);
        if (json) write_detector(json, r, &result, &data.names);
        tell(result.images, result.unreadable.count, names, (double[]){result.total.map50, result.total.map50_95});
    }
    amp_map_result_free(&result);
    amp_detection_data_free(&data);
    return status;
}

static amp_status valid_classifier(const request *r, struct network *net, FILE *json, amp_error *error)
{
    char topk[32];
    amp_classification_data data;
    amp_accuracy result = {0};
    amp_status status = amp_classification_data_read(r->data, &data, error);
    if (status == AMP_OK) status = amp_accuracy_measure(net, &data, (int)r->top, pass, &result, error);
    if (status == AMP_OK) {
        if (prints(r)) amp_accuracy_print(&result, &data.labels);
        if (json) write_classifier(json, r, &result, &data.labels);
        snprintf(topk, sizeof topk, "top%d", result.k);
        tell(result.images, result.unreadable.count, (const char *const[]){"top1", topk}, (double[]){result.top1, result.topk});
    }
    amp_accuracy_free(&result);
    amp_classification_data_free(&data);
    return status;
}

static amp_status measure(const request *r, FILE *json, amp_error *error)
{
    struct network *net;
    amp_data_file data;
    amp_status status = amp_data_file_read(r->data, &data, error); /* before the network is made, which takes a while */
    amp_data_file_free(&data);
    if (status == AMP_OK) status = amp_evaluation_open(r->cfg, r->weights, &net, error);
    if (status != AMP_OK) return status;
    if (amp_turns_ready()) status = amp_fail(error, AMP_IO_FAILED, "told to stop before it began");
    else status = amp_fork_box_classes(net) >= 0 ? valid_detector(r, net, json, error)
                                                  : valid_classifier(r, net, json, error);
    amp_fork_free_network(net);
    return status;
}

amp_status amp_command_valid(int argc, char **argv, amp_error *error)
{
    request r;
    struct amp_output *output = NULL;
    FILE *json = NULL;
    AMP_TRY(read_request(argc, argv, &r, error));
    if (r.json) AMP_TRY(amp_output_begin(r.json, &output, &json, error));
    amp_status status = measure(&r, json, error);
    if (status == AMP_OK && output) return amp_output_end(output, error);
    amp_output_abandon(output);
    return status;
}
