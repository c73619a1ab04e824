#include "accuracy.h"

#include "../../host/common/clock.h"
#include "evaluation_network.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CLASSES_UNLESS_GIVEN = 2 }; /* validate_classifier_single */

static amp_status read_labels(const char *data_file, const char *labels, amp_classification_data *data, amp_error *error)
{
    if (!labels)
        return amp_fail(error, AMP_BAD_CONFIG, "%s: no `labels = FILE`; it names the classes, as they stand in the images' paths",
                        data_file);
    AMP_TRY(amp_lines_read(labels, "the labels (`labels` in the .data file)", &data->labels, error));
    if (data->labels.count >= (size_t)data->classes) return AMP_OK;
    return amp_fail(error, AMP_BAD_CONFIG, "%s: %zu labels, but %s has classes = %d", labels, data->labels.count, data_file,
                    data->classes);
}

amp_status amp_classification_data_read(const char *data_file, amp_classification_data *data, amp_error *error)
{
    amp_data_file file;
    *data = (amp_classification_data){0};
    amp_status status = amp_data_file_read(data_file, &file, error);
    data->classes = file.classes ? file.classes : CLASSES_UNLESS_GIVEN;
    if (status == AMP_OK) status = amp_validation_images_read(&file, &data->images, error);
    if (status == AMP_OK) status = read_labels(data_file, file.labels, data, error);
    data->leaves = file.leaves;
    file.leaves = NULL;
    amp_data_file_free(&file);
    return status;
}

void amp_classification_data_free(amp_classification_data *data)
{
    amp_lines_free(&data->images);
    amp_lines_free(&data->labels);
    free(data->leaves);
    *data = (amp_classification_data){0};
}

int amp_class_of_path(const char *path, const amp_lines *labels, int classes)
{
    for (int c = 0; c < classes; ++c)
        if (strstr(path, labels->line[c])) return c;
    return -1;
}

static amp_status classify(struct network *net, const amp_loaded_image *loaded, const char *path,
                           int class_id, amp_accuracy *result, amp_error *error)
{
    int listed = result->k < result->classes ? result->k : result->classes;
    AMP_TRY(amp_fork_classify(net, loaded->fitted, path, listed, result->best, error));
    ++result->images;
    if (class_id < 0) {
        ++result->unlabelled;
        return AMP_OK;
    }
    amp_class_hits *hits = &result->per_class[class_id];
    ++hits->images;
    hits->top1 += result->best[0] == class_id;
    for (int i = 0; i < listed; ++i) hits->topk += result->best[i] == class_id;
    return AMP_OK;
}

static amp_status classify_all(struct network *net, const amp_classification_data *data,
                               amp_measure_stop stop, amp_accuracy *result, amp_error *error)
{
    struct amp_image_loader *loader;
    amp_view view = amp_fork_view(net);
    AMP_TRY(amp_image_loader_start(&data->images, view.w, view.h, AMP_FIT_CENTER_CROP, &loader, error));
    int progress = isatty(STDERR_FILENO);
    amp_status status = AMP_OK;
    for (size_t i = 0; status == AMP_OK && i < data->images.count; ++i) {
        const char *path = data->images.line[i];
        amp_loaded_image loaded = amp_image_loader_next(loader);
        status = loaded.fitted
            ? classify(net, &loaded, path, amp_class_of_path(path, &data->labels, data->classes), result, error)
            : amp_image_left_out(&loaded, &result->unreadable, error);
        free(loaded.fitted);
        if (status == AMP_OK) status = amp_image_done(stop, i + 1, data->images.count, error);
        if (progress) fprintf(stderr, "\r%zu of %zu images", i + 1, data->images.count);
    }
    if (progress) fputs("\r\033[K", stderr);
    amp_image_loader_stop(loader);
    return status;
}

static amp_status sum_up(const amp_classification_data *data, amp_accuracy *result, amp_error *error)
{
    if (result->images == 0) return amp_no_image_left(&result->unreadable, error);
    if (result->unlabelled == result->images)
        return amp_fail(error, AMP_BAD_CONFIG, "none of the %zu validation images has a label in its path; the first is %s, the "
                        "first label %s", result->images, data->images.line[0], data->labels.line[0]);
    amp_class_hits sum = {0};
    for (int c = 0; c < result->classes; ++c) {
        sum.top1 += result->per_class[c].top1;
        sum.topk += result->per_class[c].topk;
    }
    result->top1 = (double)sum.top1 / (double)result->images;
    result->topk = (double)sum.topk / (double)result->images;
    return AMP_OK;
}

static amp_status check_network(struct network *net, const amp_classification_data *data, amp_error *error)
{
    int outputs = amp_fork_view(net).outputs;
    AMP_TRY(amp_check_channels(net, error));
    if (outputs != data->classes)
        return amp_fail(error, AMP_BAD_CONFIG, "the network has %d outputs, but the .data file has classes = %d (2 where it says "
                        "nothing)", outputs, data->classes);
    if (!data->leaves || !amp_fork_has_tree(net)) return AMP_OK;
    amp_lines leaves = {0};
    amp_status status = amp_lines_read(data->leaves, "the leaves (`leaves` in the .data file)", &leaves, error);
    amp_lines_free(&leaves);
    if (status == AMP_OK) amp_fork_take_leaves(net, data->leaves);
    return status;
}

amp_status amp_accuracy_measure(struct network *net, const amp_classification_data *data, int k,
                                amp_measure_stop stop, amp_accuracy *result, amp_error *error)
{
    *result = (amp_accuracy){.k = k, .classes = data->classes};
    AMP_TRY(check_network(net, data, error));
    result->per_class = calloc((size_t)data->classes, sizeof *result->per_class);
    result->best = calloc((size_t)data->classes, sizeof *result->best);
    if (!result->per_class || !result->best) return amp_fail(error, AMP_NO_MEMORY, "no memory for %d classes", data->classes);
    double start = amp_clock_seconds();
    int batch = amp_fork_view(net).batch;
    amp_fork_set_batch(net, 1);
    amp_status status = classify_all(net, data, stop, result, error);
    amp_fork_set_batch(net, batch);
    result->seconds = amp_clock_seconds() - start;
    return status == AMP_OK ? sum_up(data, result, error) : status;
}

void amp_accuracy_free(amp_accuracy *result)
{
    free(result->per_class);
    free(result->best);
    amp_lines_free(&result->unreadable);
    *result = (amp_accuracy){0};
}

enum { MOST_CLASSES_SHOWN = 100 };

void amp_accuracy_print(const amp_accuracy *r, const amp_lines *labels)
{
    for (int c = 0; c < r->classes && r->classes <= MOST_CLASSES_SHOWN; ++c) {
        const amp_class_hits *h = &r->per_class[c];
        printf("class_id = %d, label = %s, top-1 = ", c, labels->line[c]);
        if (h->images) printf("%.2f %% (%zu of %zu)\n", 100. * (double)h->top1 / (double)h->images, h->top1, h->images);
        else printf("none (no image of this class)\n");
    }
    printf("\n top-1 accuracy = %.6f, or %.2f %%\n", r->top1, 100 * r->top1);
    if (r->k > 1) printf(" top-%d accuracy = %.6f, or %.2f %%\n", r->k, r->topk, 100 * r->topk);
    printf(" %zu images, %.1f seconds\n", r->images, r->seconds);
    if (r->unlabelled) printf(" %zu images have no label in their path and count as wrong\n", r->unlabelled);
    if (r->unreadable.count) printf(" %zu images could not be read and are left out\n", r->unreadable.count);
}
