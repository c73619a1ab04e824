/* `darknet detector map <data> <cfg> <weights>`: how well a detector does on the .data file's `valid` images.
 *
 * pjreddie's Darknet has no such command; AlexeyAB's has, and its users know the words printed here. An image goes through
 * the network as `detector test` sends it: letter-boxed, boxes above .005, non-maximum suppression at .45. What comes out
 * is counted by average_precision.c; the labels are read by detection_data.c. */
#include "../include/darknet_amp.h"
#include "../tensor/half.h"
#include "average_precision.h"
#include "detection_data.h"

#include "darknet.h"
#include "stb_image.h" /* Darknet's src/; image.c holds its code */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const float LEAST_SCORE = .005f, HIERARCHY = .5f, SUPPRESSION_IOU = .45f;
static const float USUAL_CONFIDENCE = .25f;

typedef struct request {
    char *data_file, *cfg_file, *weights_file;
    float confidence; /* of a detection that counts for precision, recall and F1 */
    amp_ap_points points;
} request;

typedef struct detections { amp_detected *detected; size_t count, room; } detections;

static const char usage[] = "usage: darknet detector map DATA CFG WEIGHTS [-thresh .25] [-points 0|11|101]";

static amp_status read_confidence(const char *text, request *r, amp_error *error)
{
    char *end = NULL;
    float value = text ? strtof(text, &end) : 0;
    if (!text || end == text || *end || !(value >= 0 && value < 1))
        return amp_fail(error, AMP_BAD_CONFIG, "-thresh %s: expected a number from 0 to below 1; %s", text ? text : "",
                        usage);
    r->confidence = value;
    return AMP_OK;
}

static amp_status read_points(const char *text, request *r, amp_error *error)
{
    if (text && !strcmp(text, "0")) r->points = AMP_AP_AREA;
    else if (text && !strcmp(text, "11")) r->points = AMP_AP_VOC2007;
    else if (text && !strcmp(text, "101")) r->points = AMP_AP_COCO;
    else
        return amp_fail(error, AMP_BAD_CONFIG,
                        "-points %s: expected 0 (area under the curve), 11 (VOC 2007) or 101 (COCO)", text ? text : "");
    return AMP_OK;
}

/* Options may stand among the names, as everywhere in Darknet. Darknet blanks the end of argv when it takes an option
 * out. */
static amp_status read_request(int argc, char **argv, request *r, amp_error *error)
{
    char **names[] = {&r->data_file, &r->cfg_file, &r->weights_file};
    size_t named = 0;
    *r = (request){.confidence = USUAL_CONFIDENCE, .points = AMP_AP_COCO};
    for (int i = 3; i < argc && argv[i]; ++i) {
        char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(argv[i], "-thresh")) {
            AMP_TRY(read_confidence(value, r, error));
            ++i;
        } else if (!strcmp(argv[i], "-points")) {
            AMP_TRY(read_points(value, r, error));
            ++i;
        } else if (argv[i][0] == '-' || named == 3) {
            return amp_fail(error, AMP_BAD_CONFIG, "%s: not an option of detector map; %s", argv[i], usage);
        } else {
            *names[named++] = argv[i];
        }
    }
    if (named < 3) return amp_fail(error, AMP_BAD_CONFIG, "detector map needs three files; %s", usage);
    return AMP_OK;
}

/* Darknet ends with status 0 where it cannot open a file, so what it will open is tried first. */
static amp_status check_readable(const char *path, const char *what, amp_error *error)
{
    FILE *file = fopen(path, "r");
    if (!file) return amp_fail(error, AMP_BAD_CONFIG, "%s: cannot read %s: %s", path, what, strerror(errno));
    int empty = fgetc(file) == EOF;
    fclose(file);
    if (empty) return amp_fail(error, AMP_BAD_CONFIG, "%s: %s is empty or a folder", path, what);
    return AMP_OK;
}

static int gives_boxes(const layer *l) { return l->type == YOLO || l->type == REGION || l->type == DETECTION; }

static amp_status check_network(const network *net, const char *cfg_file, amp_error *error)
{
    if (net->n < 1 || !gives_boxes(&net->layers[net->n - 1]))
        return amp_fail(error, AMP_BAD_CONFIG, "%s: not a detector: its last section is not [yolo], [region] or [detection]",
                        cfg_file);
    if (net->c != 3) return amp_fail(error, AMP_BAD_CONFIG, "%s: channels=%d; images come with 3", cfg_file, net->c);
    return AMP_OK;
}

/* As load_image_color does, but a file that is no image is an error here and not the end of the program. */
static amp_status load_color(const char *path, image *out, amp_error *error)
{
    int w, h, channels;
    unsigned char *pixels = stbi_load(path, &w, &h, &channels, 3);
    if (!pixels)
        return amp_fail(error, AMP_BAD_CONFIG, "%s: cannot read the image: %s", path,
                        access(path, R_OK) ? strerror(errno) : stbi_failure_reason());
    *out = make_image(w, h, 3);
    size_t plane = (size_t)w * (size_t)h;
    for (size_t i = 0; i < plane; ++i)
        for (size_t c = 0; c < 3; ++c) out->data[c * plane + i] = (float)pixels[3 * i + c] / 255.f;
    stbi_image_free(pixels);
    return AMP_OK;
}

/* Before the boxes are counted: Darknet counts NaN objectness in one place as a box and in another not, and writes past
 * the end of its array. */
static amp_status check_finite(const network *net, const char *image_path, amp_error *error)
{
    for (int i = 0; i < net->n; ++i) {
        const layer *l = &net->layers[i];
        for (int k = 0; gives_boxes(l) && k < l->outputs; ++k)
            if (!amp_is_finite(l->output[k]))
                return amp_fail(error, AMP_DIVERGED, "%s: layer %d gives numbers that are not finite; the weights are "
                                "damaged or their training diverged", image_path, i);
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

static amp_status detect(network *net, const char *image_path, int image_number, int classes, detections *all,
                         amp_error *error)
{
    image im;
    AMP_TRY(load_color(image_path, &im, error));
    image boxed = letterbox_image(im, net->w, net->h);
    network_predict(net, boxed.data);
    amp_status status = check_finite(net, image_path, error);
    if (status == AMP_OK) {
        int count = 0;
        detection *boxes = get_network_boxes(net, im.w, im.h, LEAST_SCORE, HIERARCHY, 0, 1, &count);
        do_nms_sort(boxes, count, classes, SUPPRESSION_IOU);
        status = keep_boxes(boxes, count, classes, image_number, all, error);
        free_detections(boxes, count);
    }
    free_image(boxed);
    free_image(im);
    return status;
}

static amp_status detect_all(network *net, const amp_detection_data *data, int classes, detections *all,
                             amp_truths *truths, amp_error *error)
{
    int progress = isatty(STDERR_FILENO);
    amp_status status = AMP_OK;
    for (size_t i = 0; status == AMP_OK && i < data->images.count; ++i) {
        status = amp_truths_read(data->images.line[i], (int)i, classes, truths, error);
        if (status == AMP_OK) status = detect(net, data->images.line[i], (int)i, classes, all, error);
        if (progress) fprintf(stderr, "\r%zu of %zu images", i + 1, data->images.count);
    }
    if (progress) fputs("\r\033[K", stderr);
    if (status == AMP_OK && truths->count == 0)
        status = amp_fail(error, AMP_BAD_CONFIG, "none of the %zu validation images has a labelled object; "
                          "are the labels beside %s where Darknet looks (images -> labels, .txt)?",
                          data->images.count, data->images.line[0]);
    return status;
}

static void print_scores(const request *r, const amp_lines *names, const amp_class_score *per_class, int classes,
                         const amp_map_score *total)
{
    for (int c = 0; c < classes; ++c) {
        const amp_class_score *s = &per_class[c];
        printf("class_id = %d, name = %s, ", c, (size_t)c < names->count ? names->line[c] : "(unnamed)");
        if (s->truths) printf("ap = %.2f %%", 100 * s->ap[0]);
        else printf("ap = none (no object of this class)");
        printf("   \t(TP = %d, FP = %d)\n", s->true_positives, s->false_positives);
    }
    printf("\n for conf_thresh = %.2f, precision = %.4f, recall = %.4f, F1-score = %.4f\n", r->confidence,
           total->precision, total->recall, total->f1);
    printf(" for conf_thresh = %.2f, TP = %d, FP = %d, FN = %d, average IoU = %.2f %%\n\n", r->confidence,
           total->true_positives, total->false_positives, total->false_negatives, 100 * total->average_iou);
    if (r->points) printf(" IoU threshold = 50 %%, used %d recall points\n", (int)r->points);
    else printf(" IoU threshold = 50 %%, used the area under the curve for each class\n");
    printf(" mean average precision (mAP@0.50) = %.6f, or %.2f %%\n", total->map50, 100 * total->map50);
    printf(" mean average precision (mAP@0.50:0.95) = %.6f, or %.2f %%\n", total->map50_95, 100 * total->map50_95);
}

static amp_status score(const request *r, const amp_lines *names, int classes, const detections *all,
                        const amp_truths *truths, amp_error *error)
{
    amp_map_score total;
    amp_class_score *per_class = calloc((size_t)classes, sizeof *per_class);
    if (!per_class) return amp_fail(error, AMP_NO_MEMORY, "no memory for %d classes", classes);
    amp_status status = amp_average_precision(all->detected, all->count, truths->truth, truths->count, classes,
                                              r->points, r->confidence, per_class, &total, error);
    if (status == AMP_OK) print_scores(r, names, per_class, classes, &total);
    free(per_class);
    return status;
}

static void give_back(network *net)
{
    float *workspace = net->workspace; /* free_network forgets it */
    free_network(net);
#ifdef GPU
    if (gpu_index >= 0) {
        cuda_free(workspace);
        return;
    }
#endif
    free(workspace);
}

static amp_status measure(const request *r, const amp_detection_data *data, amp_error *error)
{
    AMP_TRY(check_readable(r->cfg_file, "the .cfg file", error));
    AMP_TRY(check_readable(r->weights_file, "the weights", error));
    network *net = load_network(r->cfg_file, r->weights_file, 0);
    detections all = {0};
    amp_truths truths = {0};
    amp_status status = check_network(net, r->cfg_file, error);
    if (status == AMP_OK) {
        int classes = net->layers[net->n - 1].classes;
        double start = what_time_is_it_now();
        set_batch_network(net, 1);
        status = detect_all(net, data, classes, &all, &truths, error);
        double seconds = what_time_is_it_now() - start;
        if (status == AMP_OK) status = score(r, &data->names, classes, &all, &truths, error);
        if (status == AMP_OK) {
            printf(" %zu images, %zu objects, %zu detections, %.1f seconds\n", data->images.count, truths.count,
                   all.count, seconds);
            if (truths.too_thin)
                printf(" %zu labels thinner than 0.001 left out, as in training\n", truths.too_thin);
        }
    }
    amp_truths_free(&truths);
    free(all.detected);
    give_back(net);
    return status;
}

void darknet_amp_detector_map(int argc, char **argv)
{
    amp_error error;
    request r;
    amp_detection_data data = {0};
    amp_status status = read_request(argc, argv, &r, &error);
    if (status == AMP_OK) status = amp_detection_data_read(r.data_file, &data, &error);
    if (status == AMP_OK) status = measure(&r, &data, &error);
    amp_detection_data_free(&data);
    if (status == AMP_OK) return;
    fprintf(stderr, "detector map: %s\n", error.message);
    exit(1);
}
