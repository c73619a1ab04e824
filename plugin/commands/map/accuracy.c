/* Top-1 and top-K accuracy of a classifier. */
#include "accuracy.h"

#include "../../host/data/data_check.h"
#include "../../host/program/failure.h"

#include <string.h>

enum { CLASSES_UNLESS_GIVEN = 2 }; /* validate_classifier_single */

static amp_status read_data(const char *data_file, amp_accuracy *r, amp_error *error)
{
    amp_data_file file;
    amp_status status = amp_data_file_read(data_file, &file, error);
    r->classes = file.classes ? file.classes : CLASSES_UNLESS_GIVEN;
    if (status == AMP_OK) status = amp_validation_images_read(&file, &r->images, error);
    if (status == AMP_OK) status = amp_check_labels(&file, r->classes, &r->labels, error);
    if (status == AMP_OK && file.leaves)
        status = amp_fail(error, AMP_BAD_CONFIG, "%s: leaves = %.300s: a tree's leaves cannot be told from "
                                                 "its other classes here; remove the line", data_file,
                                                 file.leaves);
    amp_data_file_free(&file);
    return status;
}

static amp_status check_network(struct network *net, const amp_accuracy *r, amp_error *error)
{
    int outputs = amp_fork_view(net).outputs;
    AMP_TRY(amp_check_channels(net, error));
    if (outputs != r->classes)
        return amp_fail(error, AMP_BAD_CONFIG, "the network has %d outputs, but the .data file has classes = "
                        "%d (2 if it does not say)", outputs, r->classes);
    return AMP_OK;
}

static amp_status classify(void *context, struct network *net, int i, const amp_loaded_image *image,
                           amp_error *error)
{
    amp_accuracy *r = context;
    const char *path = r->images.line[i];
    int listed = r->k < r->classes ? r->k : r->classes, class_id = 0;
    AMP_TRY(amp_fork_classify(net, image->fitted, path, listed, r->best, error));
    while (class_id < r->classes && !strstr(path, r->labels.line[class_id])) class_id++;
    r->unlabelled += class_id == r->classes;
    r->top1 += r->best[0] == class_id;
    for (int k = 0; k < listed; k++) r->topk += r->best[k] == class_id;
    return AMP_OK;
}

static amp_status sum_up(amp_accuracy *r, amp_error *error)
{
    if (r->unlabelled == r->evaluated.images)
        return amp_fail(error, AMP_BAD_CONFIG, "none of the %zu validation images has a label in its path; "
                        "the first is %s, the first label %s", r->unlabelled, r->images.line[0],
                        r->labels.line[0]);
    r->top1 /= (double)r->evaluated.images;
    r->topk /= (double)r->evaluated.images;
    return AMP_OK;
}

amp_status amp_accuracy_measure(struct network *net, const char *data_file, int k, amp_accuracy *r,
                                amp_error *error)
{
    *r = (amp_accuracy){ .k = k };
    AMP_TRY(read_data(data_file, r, error));
    AMP_TRY(check_network(net, r, error));
    r->best = amp_allocated(calloc((size_t)r->classes, sizeof *r->best));
    const amp_evaluation how = { .images = &r->images, .fit = AMP_FIT_CENTER_CROP,
                                 .measure = classify, .context = r };
    AMP_TRY(amp_evaluate(net, &how, &r->evaluated, error));
    return sum_up(r, error);
}

void amp_accuracy_free(amp_accuracy *r)
{
    amp_lines_free(&r->images);
    amp_lines_free(&r->labels);
    amp_lines_free(&r->evaluated.unreadable);
    free(r->best);
}

void amp_accuracy_print(const amp_accuracy *r)
{
    const amp_evaluated *e = &r->evaluated;
    printf(" top-1 accuracy = %.6f, or %.2f %%\n", r->top1, 100 * r->top1);
    if (r->k > 1) printf(" top-%d accuracy = %.6f, or %.2f %%\n", r->k, r->topk, 100 * r->topk);
    printf(" %zu images, %.1f seconds\n", e->images, e->seconds);
    if (r->unlabelled) printf(" %zu images have no label in their path and count as wrong\n", r->unlabelled);
    if (e->unreadable.count) printf(" %zu images could not be read and are left out\n", e->unreadable.count);
}
