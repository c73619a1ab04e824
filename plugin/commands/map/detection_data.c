#include "detection_data.h"

#include "../../host/data/label_file.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

static const float THINNEST = .001f; /* fill_truth_detection in data.c drops what is narrower or lower */

/* `difficult` stands beside `valid` line by line: the image's line says where labels of its difficult objects are. */
static amp_status read_difficult(const char *file, amp_detection_data *data, amp_error *error)
{
    AMP_TRY(amp_lines_read(file, "the list of difficult objects (`difficult` in the .data file)", &data->difficult, error));
    if (data->difficult.count != data->images.count)
        return amp_fail(error, AMP_BAD_CONFIG, "%s: %zu lines, but `valid` lists %zu images; `difficult` needs a line for each, "
                        "in the same order", file, data->difficult.count, data->images.count);
    return AMP_OK;
}

amp_status amp_detection_data_read(const char *data_file, amp_detection_data *data, amp_error *error)
{
    amp_data_file file;
    *data = (amp_detection_data){0};
    amp_status status = amp_data_file_read(data_file, &file, error);
    if (status == AMP_OK) status = amp_validation_images_read(&file, &data->images, error);
    if (status == AMP_OK && file.names)
        status = amp_lines_read(file.names, "the class names (`names` in the .data file)", &data->names, error);
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

/* Where an image's labels go, and as what. */
typedef struct kept { amp_truths *truths; int image, difficult; } kept;

static amp_status keep(void *context, const char *file, unsigned long line, const amp_label *label, int outside, amp_error *error)
{
    const kept *k = context;
    amp_truths *truths = k->truths;
    (void)file, (void)line, (void)outside;
    if (label->w < THINNEST || label->h < THINNEST) {
        ++truths->too_thin;
        return AMP_OK;
    }
    amp_truth *grown = amp_grow(truths->truth, truths->count, &truths->room, sizeof *grown);
    if (!grown) return amp_fail(error, AMP_NO_MEMORY, "no memory for %zu labels", truths->count + 1);
    truths->truth = grown;
    truths->truth[truths->count++] = (amp_truth){.image = k->image, .difficult = k->difficult, .class_id = label->class_id,
                                                 .box = {label->x, label->y, label->w, label->h}};
    return AMP_OK;
}

amp_status amp_truths_read(const char *image_path, int image, int classes, int difficult, amp_truths *truths,
                           amp_error *error)
{
    char path[AMP_LABEL_PATH];
    struct stat status;
    kept k = {truths, image, difficult};
    if (!amp_label_path(image_path, path))
        return amp_fail(error, AMP_BAD_CONFIG, "%.100s...: an image's path may have %d bytes at most", image_path,
                        (int)AMP_IMAGE_PATH_MOST);
    if (stat(path, &status) != 0 && errno == ENOENT) return AMP_OK;
    return amp_labels_read(path, classes, keep, &k, error);
}

void amp_truths_free(amp_truths *truths)
{
    free(truths->truth);
    *truths = (amp_truths){0};
}
