#include "detection_data.h"

#include "../tensor/half.h"
#include "darknet.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_ROOM = 4000 }; /* find_replace works in 4096 bytes and does not look */

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
    enum { VALID, NAMES, DIFFICULT };
    amp_data_key keys[] = {[VALID] = {"valid", NULL}, [NAMES] = {"names", NULL}, [DIFFICULT] = {"difficult", NULL}, {0}};
    *data = (amp_detection_data){0};
    amp_status status = amp_data_keys_read(data_file, keys, error);
    if (status == AMP_OK) status = amp_validation_images_read(data_file, keys[VALID].value, &data->images, error);
    if (status == AMP_OK && keys[NAMES].value)
        status = amp_lines_read(keys[NAMES].value, "the class names (`names` in the .data file)", &data->names, error);
    if (status == AMP_OK && keys[DIFFICULT].value) status = read_difficult(keys[DIFFICULT].value, data, error);
    amp_data_keys_free(keys);
    return status;
}

void amp_detection_data_free(amp_detection_data *data)
{
    amp_lines_free(&data->images);
    amp_lines_free(&data->names);
    amp_lines_free(&data->difficult);
}

/* As fill_truth_detection in data.c does, or evaluation would look where training did not. label_path: 4096 bytes. */
static void label_path_of(const char *image_path, char *label_path)
{
    static char *const replacements[][2] = {{"images", "labels"}, {"JPEGImages", "labels"}, {"raw", "labels"},
                                            {".jpg", ".txt"}, {".png", ".txt"}, {".JPG", ".txt"}, {".JPEG", ".txt"}};
    char before[4096]; /* find_replace must not read what it writes */
    strcpy(label_path, image_path);
    for (size_t i = 0; i < sizeof replacements / sizeof *replacements; ++i) {
        strcpy(before, label_path);
        find_replace(before, replacements[i][0], replacements[i][1], label_path);
    }
}

/* *class_id: clamped to int's range, which no network's classes fill. */
static int is_label(const char *line, int *class_id, amp_box *box)
{
    char *rest;
    int end = 0;
    long number = strtol(line, &rest, 10);
    if (rest == line || sscanf(rest, "%f %f %f %f %n", &box->x, &box->y, &box->w, &box->h, &end) != 4 || rest[end]) return 0;
    *class_id = number < INT_MIN ? INT_MIN : number > INT_MAX ? INT_MAX : (int)number;
    return amp_is_finite(box->x) && amp_is_finite(box->y) && amp_is_finite(box->w) && amp_is_finite(box->h);
}

amp_status amp_truths_read(const char *image_path, int image, int classes, int difficult, amp_truths *truths,
                           amp_error *error)
{
    char path[4096];
    if (strlen(image_path) >= PATH_ROOM)
        return amp_fail(error, AMP_BAD_CONFIG, "%.100s...: an image's path may have %d characters at most", image_path,
                        PATH_ROOM - 1);
    label_path_of(image_path, path);
    FILE *there = fopen(path, "r");
    if (!there && errno == ENOENT) return AMP_OK;
    if (there) fclose(there);

    amp_lines lines = {0};
    amp_status status = amp_lines_read(path, "the labels", &lines, error);
    for (size_t i = 0; status == AMP_OK && i < lines.count; ++i) {
        amp_truth truth = {.image = image, .difficult = difficult};
        if (!is_label(lines.line[i], &truth.class_id, &truth.box)) {
            status = amp_fail(error, AMP_BAD_CONFIG, "%s: label %zu is not `class x y width height`: %.60s", path, i + 1,
                              lines.line[i]);
        } else if (truth.class_id < 0 || truth.class_id >= classes) {
            status = amp_fail(error, AMP_BAD_CONFIG, "%s: label %zu is of class %d, but the network knows 0 to %d", path,
                              i + 1, truth.class_id, classes - 1);
        } else if (truth.box.w < THINNEST || truth.box.h < THINNEST) {
            ++truths->too_thin;
        } else {
            amp_truth *grown = amp_grow(truths->truth, truths->count, &truths->room, sizeof *grown);
            if (!grown) {
                status = amp_fail(error, AMP_NO_MEMORY, "no memory for %zu labels", truths->count + 1);
                break;
            }
            truths->truth = grown;
            truths->truth[truths->count++] = truth;
        }
    }
    amp_lines_free(&lines);
    return status;
}

void amp_truths_free(amp_truths *truths)
{
    free(truths->truth);
    *truths = (amp_truths){0};
}
