/* The prescan of data_check.h. What a training checks at its start, and its readers, are the host's. */
#include "data_check.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "../amp/cfg_reader.h"
#include "../host/data/data_check.h"
#include "../host/data/label_file.h"

typedef struct scan {
    const amp_data_file *data;
    const char *file, *key; /* of the list */
    int classifier, classes;
    amp_path_list list, labels;
    amp_list_counts *counts;
    const cfg_listener *listener; /* or NULL */
    long mistakes;
    amp_error first;     /* of the mistakes */
    long without_labels; /* images to train on, of this list */
    amp_error no_labels; /* of the first of them */
} scan;

enum { MISTAKES_TOLD = 20 };

/* Bad input is remembered, and the scan goes on; whatever else failed ends it. */
static amp_status note_mistake(scan *s, const amp_error *mistake)
{
    if (s->mistakes++ == 0) s->first = *mistake;
    if (s->listener && s->mistakes <= MISTAKES_TOLD)
        s->listener->tell(s->listener->context, 1, mistake->message);
    return mistake->status == AMP_BAD_CONFIG ? AMP_OK : mistake->status;
}

static void note_first(char first[512], long count, const char *name)
{
    if (count == 1) cfg_printable(first, 512, name);
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
    amp_list_counts *counts = context;
    char name[AMP_LABEL_PATH + 32];
    (void)label;
    (void)error;
    counts->boxes++;
    if (!outside) return AMP_OK;
    counts->boxes_outside++;
    snprintf(name, sizeof name, "%s:%lu", file, line);
    note_first(counts->first_outside, counts->boxes_outside, name);
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
        s->counts->unlabelled++;
        return AMP_OK;
    }
    if (!is_there && s->without_labels++) return AMP_OK;
    if (amp_labels_read(labels, s->classes, count_box, s->counts, &error) == AMP_OK) return AMP_OK;
    if (is_there) return note_mistake(s, &error);
    s->no_labels = error;
    return AMP_OK;
}

static amp_status note_missing_labels(scan *s)
{
    amp_error error = s->no_labels;
    if (s->without_labels > 1)
        amp_fail(&error, AMP_BAD_CONFIG, "%.700s; so it is for %ld of the %ld images of %.200s",
                 s->no_labels.message, s->without_labels, s->counts->images, s->file);
    return note_mistake(s, &error);
}

static amp_status check_images(scan *s, amp_error *error)
{
    s->without_labels = 0;
    for (size_t i = 0; i < s->list.count; i++) {
        const char *image = s->list.line[i];
        if (strlen(image) > AMP_IMAGE_PATH_MOST)
            return amp_fail(error, AMP_BAD_CONFIG, "%.500s:%zu: an image's path may have %d bytes at most",
                            s->file, i + 1, (int)AMP_IMAGE_PATH_MOST);
        s->counts->images++;
        if (!is_there(image)) {
            s->counts->missing++;
            note_first(s->counts->first_missing, s->counts->missing, image);
        } else if (!s->classifier) {
            AMP_TRY(check_boxes(s, image));
        }
    }
    if (s->without_labels) AMP_TRY(note_missing_labels(s));
    if (s->counts->missing < s->counts->images) return AMP_OK;
    return amp_fail(error, AMP_BAD_CONFIG, "%.300s: none of the %ld images of this list is there; the first "
                    "is '%.300s'", s->file, s->counts->images, s->counts->first_missing);
}

/* ---- a classifier's labels ---- */

static const double COMPARISONS_MOST = 2e7; /* of a path with a label: a second or two */

static amp_status check_paths(scan *s, amp_error *error)
{
    size_t step = 1 + (size_t)((double)s->list.count * s->classes / COMPARISONS_MOST);
    int class_id;
    for (size_t i = 0; i < s->list.count; i += step) {
        s->counts->looked_at++;
        int found = amp_labels_in_path(s->list.line[i], s->labels.line, (size_t)s->classes, &class_id);
        if (found == 1 || (s->classes == 1 && found == 0)) continue;
        s->counts->mislabelled++;
        note_first(s->counts->first_mislabelled, s->counts->mislabelled, s->list.line[i]);
    }
    if (s->counts->mislabelled < s->counts->looked_at) return AMP_OK;
    return amp_fail(error, AMP_BAD_CONFIG, "%.300s: no path holds exactly one of the %d labels, by which "
                    "Darknet knows an image's class; the first is '%.300s'", s->file, s->classes,
                    s->counts->first_mislabelled);
}

/* ---- lists ---- */

static amp_status check_list(scan *s, amp_error *error)
{
    char what[300];
    if (!s->file)
        return amp_fail(error, AMP_BAD_CONFIG, "%.500s: no `%s = FILE`, which names a list of images",
                        s->data->name, s->key);
    snprintf(what, sizeof what, "the list of images (`%s` in %.200s)", s->key, s->data->name);
    amp_status status = amp_path_list_read(s->file, what, &s->list, error);
    if (status == AMP_OK) status = check_images(s, error);
    if (status == AMP_OK && s->labels.count > 0) status = check_paths(s, error);
    amp_path_list_free(&s->list);
    return status;
}

static void warn(const amp_data_file *data, int classes, char warning[512])
{
    const char *names = amp_data_file_names(data);
    amp_path_list list = { 0 };
    amp_error error;
    if (data->note[0])
        snprintf(warning, 512, "%s", data->note);
    else if (data->classes && data->classes != classes)
        snprintf(warning, 512, "%.200s: classes = %d, but the network has %d", data->name, data->classes,
                 classes);
    else if (names && amp_path_list_read(names, "the class names", &list, &error) != AMP_OK)
        snprintf(warning, 512, "%.500s", error.message);
    else if (names && list.count != (size_t)classes)
        snprintf(warning, 512, "%.200s: %zu class names, but the network has %d classes", names, list.count,
                 classes);
    amp_path_list_free(&list);
}

static amp_status report_mistakes(const scan *s, amp_error *error)
{
    if (s->listener)
        return amp_fail(error, AMP_BAD_CONFIG, "%.300s: %ld mistake%s", s->data->name, s->mistakes,
                        s->mistakes == 1 ? "" : "s");
    *error = s->first;
    return error->status;
}

static amp_status check_both(const amp_data_file *data, int classifier, int classes,
                             const cfg_listener *listener, amp_data_counts *counts, amp_error *error)
{
    scan s = { .data = data, .classifier = classifier, .classes = classes, .listener = listener };
    amp_status status = AMP_OK;
    if (classifier && data->classes && data->classes != classes)
        return amp_fail(error, AMP_BAD_CONFIG, "%.300s: classes = %d, but the network tells %d apart; make "
                        "them alike", data->name, data->classes, classes);
    if (classifier && !data->tag) status = amp_check_labels(data, classes, &s.labels, error);
    for (int valid = 0; status == AMP_OK && valid < 2; valid++) {
        s.key = valid ? "valid" : "train";
        s.file = valid ? data->valid : data->train;
        s.counts = valid ? &counts->valid : &counts->train;
        status = check_list(&s, error);
        if (status != AMP_OK) status = note_mistake(&s, error);
    }
    amp_path_list_free(&s.labels);
    return status == AMP_OK && s.mistakes ? report_mistakes(&s, error) : status;
}

amp_status amp_check_data(const char *data_file, int classifier, int classes, const cfg_listener *listener,
                          amp_data_counts *counts, amp_error *error)
{
    amp_data_file data;
    amp_data_counts own, *to = counts ? counts : &own;
    memset(to, 0, sizeof *to);
    amp_status status = amp_data_file_read(data_file, &data, error);
    if (status == AMP_OK) status = check_both(&data, classifier, classes, listener, to, error);
    if (status == AMP_OK) warn(&data, classes, to->warning);
    amp_data_file_free(&data);
    return status;
}

/* ---- what is told ---- */

static void print_list(const amp_list_counts *c, const char *name)
{
    if (c->missing)
        fprintf(stderr, "amp: %s: %ld of %ld images are missing or empty, the first is '%s'\n", name,
                c->missing, c->images, c->first_missing);
    if (c->boxes_outside)
        fprintf(stderr, "amp: %s: %ld of %ld labels have no part in their image and are left out, the first "
                "is %s\n", name, c->boxes_outside, c->boxes, c->first_outside);
    if (c->unlabelled)
        fprintf(stderr, "amp: %s: %ld of %ld images have no label file: taken as without objects\n", name,
                c->unlabelled, c->images);
    if (c->mislabelled)
        fprintf(stderr, "amp: %s: %ld of %ld paths do not hold exactly one label, the first is '%s'\n", name,
                c->mislabelled, c->looked_at, c->first_mislabelled);
}

void amp_data_counts_print(const amp_data_counts *counts)
{
    if (counts->warning[0]) fprintf(stderr, "amp: %s\n", counts->warning);
    print_list(&counts->train, "training images");
    print_list(&counts->valid, "validation images");
}
