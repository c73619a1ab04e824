/* The scan of data_scan.h. What a training checks at its start, and its readers, are the host's. */
#include "data_scan.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "../amp/cfg_reader.h"
#include "../host/data/data_check.h"
#include "../host/data/label_file.h"

typedef struct scan {
    const amp_data_scan *request;
    const amp_data_file *data;
    const char *file, *key; /* of the list */
    amp_lines list, labels;
    amp_scanned_list *found;
    long mistakes;
    amp_error first;     /* of the mistakes */
    long without_labels; /* images to train on, of this list */
    amp_error no_labels; /* of the first of them */
} scan;

enum { MISTAKES_REPORTED = 20 };

/* Bad input is remembered, and the scan goes on; whatever else failed ends it. */
static amp_status note_mistake(scan *s, const amp_error *mistake)
{
    if (s->mistakes++ == 0) s->first = *mistake;
    const cfg_listener *listener = s->request->listener;
    if (listener && s->mistakes <= MISTAKES_REPORTED)
        listener->report(listener->context, 1, mistake->message);
    return mistake->status == AMP_BAD_CONFIG ? AMP_OK : mistake->status;
}

static void note(amp_scanned_list *list, int kind, const char *name)
{
    if (list->odd[kind].count++ == 0) cfg_printable(list->odd[kind].first, sizeof list->odd->first, name);
}

/* ---- images and boxes ---- */

static int is_there(const char *image)
{
    struct stat status;
    return *image && stat(image, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
}

static amp_status count_box(void *context, const char *file, unsigned long line, const amp_label *label,
                            int outside, amp_error *error)
{
    amp_scanned_list *found = context;
    char name[AMP_LABEL_PATH + 32];
    (void)label;
    (void)error;
    found->boxes++;
    snprintf(name, sizeof name, "%s:%lu", file, line);
    if (outside) note(found, AMP_SCAN_OUTSIDE, name);
    return AMP_OK;
}

/* What training wants of label files, validation does without: there no file means no object. */
static amp_status check_boxes(scan *s, const char *image)
{
    char labels[AMP_LABEL_PATH];
    struct stat status;
    amp_error error;
    amp_label_path(image, labels);
    int is_there = stat(labels, &status) == 0 || errno != ENOENT;
    if (!is_there && !strcmp(s->key, "valid")) {
        note(s->found, AMP_SCAN_UNLABELLED, image);
        return AMP_OK;
    }
    if (!is_there && s->without_labels++) return AMP_OK;
    if (amp_labels_read(labels, s->request->classes, count_box, s->found, &error) == AMP_OK) return AMP_OK;
    if (is_there) return note_mistake(s, &error);
    s->no_labels = error;
    return AMP_OK;
}

static amp_status note_missing_labels(scan *s)
{
    amp_error error = s->no_labels;
    if (s->without_labels > 1)
        amp_fail(&error, AMP_BAD_CONFIG, "%.700s; so it is for %ld of the %ld images of %.200s",
                 s->no_labels.message, s->without_labels, s->found->images, s->file);
    return note_mistake(s, &error);
}

static amp_status check_images(scan *s, amp_error *error)
{
    s->without_labels = 0;
    AMP_TRY(amp_check_image_paths(&s->list, s->file, error));
    for (size_t i = 0; i < s->list.count; i++) {
        const char *image = s->list.line[i];
        s->found->images++;
        if (!is_there(image)) note(s->found, AMP_SCAN_MISSING, image);
        else if (!s->request->classifier) AMP_TRY(check_boxes(s, image));
    }
    if (s->without_labels) AMP_TRY(note_missing_labels(s));
    if (s->found->odd[AMP_SCAN_MISSING].count < s->found->images) return AMP_OK;
    return amp_fail(error, AMP_BAD_CONFIG, "%.300s: none of the %ld images of this list is there; the first "
                    "is '%.300s'", s->file, s->found->images, s->found->odd[AMP_SCAN_MISSING].first);
}

/* ---- a classifier's labels ---- */

static const double COMPARISONS_MOST = 2e7; /* of a path with a label: a second or two */

static amp_status check_paths(scan *s, amp_error *error)
{
    int classes = s->request->classes, class_id;
    size_t step = 1 + (size_t)((double)s->list.count * classes / COMPARISONS_MOST);
    for (size_t i = 0; i < s->list.count; i += step) {
        s->found->paths++;
        int labels = amp_labels_in_path(s->list.line[i], s->labels.line, (size_t)classes, &class_id);
        if (labels != 1 && (classes > 1 || labels)) note(s->found, AMP_SCAN_MISLABELLED, s->list.line[i]);
    }
    if (s->found->odd[AMP_SCAN_MISLABELLED].count < s->found->paths) return AMP_OK;
    return amp_fail(error, AMP_BAD_CONFIG, "%.300s: no path holds exactly one of the %d labels, by which "
                    "Darknet knows an image's class; the first is '%.300s'", s->file, classes,
                    s->found->odd[AMP_SCAN_MISLABELLED].first);
}

/* ---- lists ---- */

static amp_status check_list(scan *s, amp_error *error)
{
    char what[300];
    if (!s->file)
        return amp_fail(error, AMP_BAD_CONFIG, "%.500s: no `%s = FILE`, which names a list of images",
                        s->data->name, s->key);
    snprintf(what, sizeof what, "the list of images (`%s` in %.200s)", s->key, s->data->name);
    amp_status status = amp_paths_read(s->file, what, &s->list, error);
    if (status == AMP_OK) status = check_images(s, error);
    if (status == AMP_OK && s->labels.count > 0) status = check_paths(s, error);
    amp_lines_free(&s->list);
    return status;
}

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
    else if (names && amp_paths_read(names, "the class names", &list, &error) != AMP_OK)
        snprintf(scan->warning, room, "%.500s", error.message);
    else if (names && list.count != (size_t)classes)
        snprintf(scan->warning, room, "%.200s: %zu class names, but the network has %d classes", names,
                 list.count, classes);
    amp_lines_free(&list);
}

static amp_status report_mistakes(const scan *s, amp_error *error)
{
    if (s->request->listener)
        return amp_fail(error, AMP_BAD_CONFIG, "%.300s: %ld mistake%s", s->data->name, s->mistakes,
                        s->mistakes == 1 ? "" : "s");
    *error = s->first;
    return error->status;
}

static amp_status scan_both(amp_data_scan *request, const amp_data_file *data, amp_error *error)
{
    scan s = { .request = request, .data = data };
    amp_status status = AMP_OK;
    if (request->classifier && data->classes && data->classes != request->classes)
        return amp_fail(error, AMP_BAD_CONFIG, "%.300s: classes = %d, but the network has %d; make them "
                        "alike", data->name, data->classes, request->classes);
    if (!request->classifier && amp_check_names(data, request->classes, error) != AMP_OK)
        status = note_mistake(&s, error);
    if (request->classifier && !data->tag)
        status = amp_check_labels(data, request->classes, &s.labels, error);
    for (int valid = 0; status == AMP_OK && valid < 2; valid++) {
        s.key = valid ? "valid" : "train";
        s.file = valid ? data->valid : data->train;
        s.found = valid ? &request->valid : &request->train;
        status = check_list(&s, error);
        if (status != AMP_OK) status = note_mistake(&s, error);
    }
    amp_lines_free(&s.labels);
    return status == AMP_OK && s.mistakes ? report_mistakes(&s, error) : status;
}

amp_status amp_scan_data(amp_data_scan *scan, amp_error *error)
{
    amp_data_file data;
    amp_status status = amp_data_file_read(scan->data_file, &data, error);
    if (status == AMP_OK) status = scan_both(scan, &data, error);
    if (status == AMP_OK) warn(scan, &data);
    amp_data_file_free(&data);
    return status;
}

/* ---- printing ---- */

static void print_list(const amp_scanned_list *l, const char *name)
{
    static const char *const kinds[] = {
        [AMP_SCAN_MISSING] = "images are missing or empty",
        [AMP_SCAN_OUTSIDE] = "labels have no part in their image, or their centre at 0 0, and are left out",
        [AMP_SCAN_UNLABELLED] = "images have no label file: taken as without objects",
        [AMP_SCAN_MISLABELLED] = "paths do not hold exactly one label" };
    const long of[] = { l->images, l->boxes, l->images, l->paths };
    for (int k = 0; k < AMP_SCAN_KINDS; k++)
        if (l->odd[k].count)
            fprintf(stderr, "amp: %s: %ld of %ld %s, the first is '%s'\n", name, l->odd[k].count, of[k],
                    kinds[k], l->odd[k].first);
}

void amp_scan_print(const amp_data_scan *scan)
{
    if (scan->warning[0]) fprintf(stderr, "amp: %s\n", scan->warning);
    print_list(&scan->train, "training images");
    print_list(&scan->valid, "validation images");
}
