/* See data_scan.h. host/data reads the files, and has the checks that a training makes at its start. */
#define _GNU_SOURCE /* tdestroy */
#include "data_scan.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../amp/cfg_text.h"
#include "../host/data/data_check.h"
#include "../host/data/label_file.h"
#include "../host/fork.h"

typedef struct scan {
    const amp_data_scan *request;
    const char *file, *key; /* the list, and its key in the .data file */
    const amp_lines *list, *labels;
    amp_scanned_list *found;
    long mistakes;
    amp_error first;     /* the first mistake */
    void *reported;      /* the messages of all mistakes, each once: a tree made by tsearch */
    long without_labels; /* training images without a label file */
    amp_error no_labels; /* the error about the first of these images */
} scan;

enum { MISTAKES_REPORTED = 20 };

static int compare_messages(const void *a, const void *b) { return strcmp(a, b); }

/* Counts a mistake, but only once if its label file is listed twice. AMP_OK: the scan continues. */
static amp_status note_mistake(void *context, const amp_error *mistake)
{
    scan *s = context;
    char *message = amp_allocated(strdup(mistake->message));
    char **kept = amp_allocated(tsearch(message, &s->reported, compare_messages));
    if (*kept != message) {
        free(message);
        return AMP_OK;
    }
    if (s->mistakes++ == 0) s->first = *mistake;
    const cfg_listener *listener = s->request->listener;
    if (listener && s->mistakes <= MISTAKES_REPORTED)
        listener->report(listener->context, 1, mistake->message);
    return AMP_OK;
}

static void note(amp_scanned_list *list, int kind, const char *name)
{
    if (list->odd[kind].count++ == 0) cfg_printable(list->odd[kind].first, sizeof list->odd->first, name);
}

/* ---- images and boxes ---- */

static amp_status count_box(void *context, const char *file, unsigned long line, const amp_label *label,
                            int outside, amp_error *error)
{
    const scan *s = context;
    char name[AMP_LABEL_PATH + 32];
    int is_small = label->w < amp_fork_least_box(s->request->w)
                   || label->h < amp_fork_least_box(s->request->h);
    s->found->boxes++;
    snprintf(name, sizeof name, "%s:%lu", file, line);
    if (outside) note(s->found, AMP_SCAN_OUTSIDE, name);
    else if (is_small) note(s->found, AMP_SCAN_SMALL, name);
    return AMP_OK;
}

/* Training needs a label file for each image. In validation a missing file means that there is no object. */
static amp_status check_boxes(scan *s, const char *image)
{
    char labels[AMP_LABEL_PATH];
    struct stat file;
    amp_error error;
    if (!amp_label_path(image, labels)) return AMP_OK; /* amp_check_image_paths has reported the path */
    int is_there = stat(labels, &file) == 0 || errno != ENOENT, trains = !strcmp(s->key, "train");
    if (!is_there && !trains) {
        note(s->found, AMP_SCAN_UNLABELLED, image);
        return AMP_OK;
    }
    if (!is_there && s->without_labels++) return AMP_OK;
    long before = s->found->boxes;
    amp_status status = amp_labels_read(labels, s->request->classes, count_box, s, &error);
    if (trains && s->found->boxes - before > s->request->boxes) note(s->found, AMP_SCAN_CROWDED, labels);
    if (status == AMP_OK) return AMP_OK;
    if (is_there) return note_mistake(s, &error);
    s->no_labels = error;
    return AMP_OK;
}

static amp_status scan_images(scan *s)
{
    s->without_labels = 0;
    for (size_t i = 0; i < s->list->count; i++) {
        const char *image = s->list->line[i];
        s->found->images++;
        if (!amp_is_image_file(image)) note(s->found, AMP_SCAN_MISSING, image);
        else if (!s->request->classifier) AMP_TRY(check_boxes(s, image));
    }
    if (!s->without_labels) return AMP_OK;
    amp_error error = s->no_labels;
    if (s->without_labels > 1)
        amp_fail(&error, AMP_BAD_CONFIG, "%.700s; this applies to %ld of the %ld images of %.200s",
                 s->no_labels.message, s->without_labels, s->found->images, s->file);
    return note_mistake(s, &error);
}

/* ---- a classifier's labels ---- */

/* The maximum number of path-label comparisons for one list. This many take a second or two. */
static const double COMPARISONS_MOST = 2e7;

static void scan_paths(scan *s)
{
    int classes = s->request->classes, class_id;
    size_t step = 1 + (size_t)((double)s->list->count * classes / COMPARISONS_MOST);
    for (size_t i = 0; i < s->list->count; i += step) {
        s->found->paths++;
        int labels = amp_labels_in_path(s->list->line[i], s->labels->line, (size_t)classes, &class_id);
        if (labels != 1 && (classes > 1 || labels)) note(s->found, AMP_SCAN_MISLABELLED, s->list->line[i]);
    }
}

/* ---- lists ---- */

static amp_status scan_list(scan *s, const char *key, const amp_lines *list, amp_scanned_list *found)
{
    s->key = key;
    s->list = list;
    s->found = found;
    AMP_TRY(scan_images(s));
    if (s->labels->count) scan_paths(s);
    return AMP_OK;
}

/* Reads the `valid` list, with the checks that host/data/data_check.h makes for `train`. */
static amp_status check_valid(const scan *s, const amp_data_file *data, amp_lines *list, amp_error *error)
{
    char what[300];
    if (!data->valid)
        return amp_fail(error, AMP_BAD_CONFIG, "%.500s: `valid = FILE` is missing; FILE must list the "
                        "validation images", data->name);
    snprintf(what, sizeof what, "the list of images (`valid` in %.200s)", data->name);
    AMP_TRY(amp_paths_read(data->valid, what, list, error));
    AMP_TRY(amp_check_image_paths(list, data->valid, error));
    AMP_TRY(amp_check_images_there(list, data->valid, error));
    if (!s->labels->count) return AMP_OK;
    return amp_check_paths_name_labels(list, s->labels, s->request->classes, data->valid, error);
}

static const char NAMES[] = "the class names";

static void warn(amp_data_scan *scan, const amp_data_file *data)
{
    const char *names = amp_data_file_names(data);
    const int classes = scan->classes, room = sizeof scan->warning;
    amp_lines list = { 0 };
    amp_error error;
    if (data->note[0])
        snprintf(scan->warning, room, "%s", data->note);
    else if (data->classes && data->classes != classes)
        snprintf(scan->warning, room, "%.200s: classes = %d, but the network has %d", data->name,
                 data->classes, classes);
    else if (names && amp_paths_read(names, NAMES, &list, &error) == AMP_OK && list.count != (size_t)classes)
        snprintf(scan->warning, room, "%.200s: %zu class names, but the network has %d classes", names,
                 list.count, classes);
    amp_lines_free(&list);
}

static amp_status scan_all(scan *s, amp_data_scan *request, const amp_data_file *data, amp_error *error)
{
    amp_training_data training = { .data = data, .cfg = request->cfg, .classifier = request->classifier,
                                   .classes = request->classes };
    amp_lines valid = { 0 }, names = { 0 };
    amp_status status = amp_check_data(&training, note_mistake, s, error);
    s->labels = &training.labels;
    s->file = training.file;
    if (status == AMP_OK && data->names && !*amp_fork_names &&
        amp_paths_read(data->names, NAMES, &names, error) != AMP_OK)
        status = note_mistake(s, error);
    if (status == AMP_OK) status = scan_list(s, "train", &training.list, &request->train);
    if (status == AMP_OK && s->mistakes == 0 && amp_check_boxes(&training, error) != AMP_OK)
        status = note_mistake(s, error);
    if (status == AMP_OK && (data->valid || request->measures)) {
        if (check_valid(s, data, &valid, error) != AMP_OK) status = note_mistake(s, error);
        s->file = data->valid;
        if (status == AMP_OK) status = scan_list(s, "valid", &valid, &request->valid);
    }
    amp_lines_free(&valid);
    amp_lines_free(&names);
    amp_training_data_free(&training);
    if (status != AMP_OK || !s->mistakes) return status;
    if (request->listener)
        return amp_fail(error, AMP_BAD_CONFIG, "%.300s: mistakes: %ld", data->name, s->mistakes);
    *error = s->first;
    return error->status = AMP_BAD_CONFIG;
}

amp_status amp_scan_data(amp_data_scan *scan_request, amp_error *error)
{
    amp_data_file data;
    scan s = { .request = scan_request };
    amp_status status = amp_data_file_read(scan_request->data_file, &data, error);
    if (status == AMP_OK) status = scan_all(&s, scan_request, &data, error);
    tdestroy(s.reported, free);
    if (status == AMP_OK) warn(scan_request, &data);
    amp_data_file_free(&data);
    return status;
}

/* ---- printing ---- */

static int print_list(const amp_scanned_list *l, const char *name)
{
    static const char *const kinds[] = {
        [AMP_SCAN_MISSING] = "images are missing or empty",
        [AMP_SCAN_OUTSIDE] = "labels lie outside their image, or have their centre at 0 0, and are ignored",
        [AMP_SCAN_SMALL] = "labels are smaller than Darknet's minimum, and are ignored",
        [AMP_SCAN_CROWDED] = "images have more boxes than a step uses",
        [AMP_SCAN_UNLABELLED] = "images have no label file, and count as images without objects",
        [AMP_SCAN_MISLABELLED] = "paths do not hold exactly one label" };
    const long of[] = { l->images, l->boxes, l->boxes, l->images, l->images, l->paths };
    int printed = 0;
    for (int k = 0; k < AMP_SCAN_KINDS; k++) {
        if (!l->odd[k].count) continue;
        fprintf(stderr, "amp: %s: %ld of %ld %s; the first is '%s'\n", name, l->odd[k].count, of[k], kinds[k],
                l->odd[k].first);
        printed++;
    }
    return printed;
}

int amp_scan_print(const amp_data_scan *scan)
{
    int printed = scan->warning[0] && fprintf(stderr, "amp: %s\n", scan->warning);
    printed += print_list(&scan->train, "training images");
    return printed + print_list(&scan->valid, "validation images");
}
