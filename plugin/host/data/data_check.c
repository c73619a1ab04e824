/* See data_check.h. */
#include "data_check.h"

#include <string.h>
#include <sys/stat.h>

#include "../../amp/cfg_text.h"
#include "../../files/safe_file.h"
#include "../fork.h"
#include "../program/cfg.h"
#include "../program/failure.h"
#include "../program/ranks.h"
#include "../program/request.h"
#include "../program/stopping.h"
#include "backups.h"
#include "image_cache.h"
#include "label_file.h"
#include "loader_memory.h"

enum { CLASSES_UNLESS_GIVEN = 2 }; /* Darknet's default */

/* A classifier's default lists. The default list of a detector is amp_fork_train_list. */
static const char TRAIN_UNLESS_GIVEN[] = "data/train.list", LABELS_UNLESS_GIVEN[] = "data/labels.list";

static const char *train_list(const amp_data_file *data, int classifier)
{
    return data->train ? data->train : classifier ? TRAIN_UNLESS_GIVEN : amp_fork_train_list;
}

static int classes_of(const amp_data_file *data)
{
    return data->classes ? data->classes : CLASSES_UNLESS_GIVEN;
}

/* ---- lists ---- */

static int compare_pixels(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

/* Returns the median pixel count of the measured images (not the mean, because a damaged image's header may
 * claim any size). use: how a cache reduces images; their pixels are then counted after the reduction. NULL:
 * the pixels of the whole images are counted. */
static size_t typical_pixels(const amp_photo_use *use)
{
    const struct amp_images_checked *images = &amp_this_program()->images;
    size_t pixels[AMP_IMAGES_MEASURED];
    for (size_t i = 0; i < images->measured; i++) {
        int w = images->sizes[i][0], h = images->sizes[i][1];
        int reduction = use ? amp_reduction(use, images->cache_scale, w, h) : 1;
        pixels[i] = (size_t)amp_reduced_length(w, reduction) * (size_t)amp_reduced_length(h, reduction);
    }
    qsort(pixels, images->measured, sizeof *pixels, compare_pixels);
    return images->measured ? pixels[(images->measured - 1) / 2] : 0;
}

/* Reads the sizes of some images of the list. For most images, reads only the first bytes of the file. */
static void measure_images(const amp_lines *list, double cache_scale)
{
    struct amp_images_checked *images = &amp_program_to_set()->images;
    size_t tried = list->count < AMP_IMAGES_MEASURED ? list->count : AMP_IMAGES_MEASURED;
    images->cache_scale = cache_scale;
    images->measured = 0;
    for (size_t i = 0; i < tried; i++)
        images->measured += (size_t)amp_fork_image_size(list->line[i * list->count / tried],
                                                        images->sizes[images->measured]);
}

/* Returns what is wrong with this line as a path; NULL: nothing suspicious. line: counted from 0. */
static const char *path_fault(const char *path, size_t line)
{
    size_t length = strlen(path);
    char last = length ? path[length - 1] : 0;
    if (line == 0 && cfg_begins_with_mark(path))
        return "the list begins with a byte order mark: write it as UTF-8 without one";
    if (length > 1 && last == '\r')
        return "the line ends in a carriage return: write the list with Unix line ends";
    if (last == ' ' || last == '\t') return "the line ends in a blank: remove it";
    return strchr(path, '\\') ? "its path has backslashes: write it with /" : NULL;
}

amp_status amp_check_image_paths(const amp_lines *list, const char *file, amp_error *error)
{
    for (size_t i = 0; i < list->count; i++) {
        const char *path = list->line[i];
        size_t length = strlen(path);
        if (length > AMP_IMAGE_PATH_MOST)
            return amp_fail(error, AMP_BAD_CONFIG, "%.500s:%zu: an image's path may have at most %d bytes",
                            file, i + 1, (int)AMP_IMAGE_PATH_MOST);
        const char *fault = path_fault(path, i);
        if (!fault || amp_file_exists(path)) continue;
        char shown[300];
        cfg_printable(shown, sizeof shown, path);
        int end = (int)strlen(shown) - (path[length - 1] == '\r'); /* '\r' would be printed as '?' */
        return amp_fail(error, AMP_BAD_CONFIG, "%.300s:%zu: image '%.*s' was not found: %s", file, i + 1,
                        end, shown, fault);
    }
    return AMP_OK;
}

/* The maximum number of images whose files are looked for on the disk, or whose paths are searched for
 * labels. For all images of a long list this could take minutes, on a slow disk or with a thousand labels. */
enum { TRIED_MOST = 1000 };

static size_t tried_of(const amp_lines *list) { return list->count < TRIED_MOST ? list->count : TRIED_MOST; }

int amp_is_image_file(const char *image)
{
    struct stat status;
    return *image && stat(image, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
}

/* Writes "8 images of this list", or for a longer list "1000 images checked (this list has 5000)". */
static const char *looked_at(const amp_lines *list, const char *what, char text[100])
{
    if (list->count <= TRIED_MOST) snprintf(text, 100, "%zu %s of this list", list->count, what);
    else snprintf(text, 100, "%zu %s checked (this list has %zu)", tried_of(list), what, list->count);
    return text;
}

amp_status amp_check_images_there(const amp_lines *list, const char *file, amp_error *error)
{
    size_t tried = tried_of(list), missing = 0;
    const char *first = NULL;
    char text[100];
    for (size_t i = 0; i < tried; i++) {
        const char *image = list->line[i * list->count / tried];
        if (amp_is_image_file(image)) continue;
        missing++;
        if (!first) first = image;
    }
    if (2 * missing <= tried) return AMP_OK;
    const char *images = looked_at(list, "images", text);
    const char *hint = *first == '/' ? "" : ", relative to the folder that darknet runs in";
    if (missing == tried)
        return amp_fail(error, AMP_BAD_CONFIG,
                        "%.300s: none of the %s was found; the first is '%.300s'%s", file, images, first,
                        hint);
    return amp_fail(error, AMP_BAD_CONFIG, "%.300s: %zu of the %s are missing or empty; the first is "
                    "'%.300s'%s", file, missing, images, first, hint);
}

/* Reads the lines of `file`, which is the value of `key` in the .data file, or the default for `key`. */
static amp_status read_lines(const char *file, const char *key, const char *what, const amp_data_file *data,
                             amp_lines *lines, amp_error *error)
{
    char named[300];
    snprintf(named, sizeof named, "%s (`%s` in %.200s)", what, key, data->name);
    return amp_paths_read(file, named, lines, error);
}

amp_status amp_check_labels(const amp_data_file *data, int classes, amp_lines *labels, amp_error *error)
{
    const char *file = data->labels ? data->labels : LABELS_UNLESS_GIVEN;
    AMP_TRY(read_lines(file, "labels", "the list of labels", data, labels, error));
    if (labels->count < (size_t)classes)
        return amp_fail(error, AMP_BAD_CONFIG, "%.300s: holds %zu labels, but %.300s has classes = %d", file,
                        labels->count, data->name, classes);
    for (int i = 0; i < classes; i++) {
        size_t length = strlen(labels->line[i]);
        if (length && labels->line[i][length - 1] == '\r')
            return amp_fail(error, AMP_BAD_CONFIG,
                            "%.300s:%d: label '%.*s' ends in a carriage return, so no path contains it: "
                            "write the list with Unix line ends", file, i + 1,
                            length <= 300 ? (int)length - 1 : 300, labels->line[i]);
        if (!length)
            return amp_fail(error, AMP_BAD_CONFIG,
                            "%.300s:%d: this line is blank, and a blank label matches every path; remove the "
                            "line", file, i + 1);
    }
    return AMP_OK;
}

amp_status amp_check_paths_name_labels(const amp_lines *list, const amp_lines *labels, int classes,
                                       const char *file, amp_error *error)
{
    size_t tried = tried_of(list);
    char paths[100];
    int class_id, found = 0;
    for (size_t i = 0; i < tried; i++) {
        found = amp_labels_in_path(list->line[i * list->count / tried], labels->line, (size_t)classes,
                                   &class_id);
        if (found == 1 || classes == 1) return AMP_OK;
    }
    return amp_fail(error, AMP_BAD_CONFIG,
                    "%.300s: none of the %s contains exactly one of the %d labels, but Darknet takes an "
                    "image's class from the label in its path; the last path contains %d: '%.300s'", file,
                    looked_at(list, "paths", paths), classes, found,
                    list->line[(tried - 1) * list->count / tried]);
}

/* ---- the rules of a training's data ---- */

/* Checks a classifier's number of classes. Darknet's loader makes one truth value per class. */
static amp_status check_classes(amp_training_data *t, amp_error *error)
{
    int classes = classes_of(t->data);
    if (!t->classifier || classes == t->classes) return AMP_OK;
    return amp_fail(error, AMP_BAD_CONFIG, "%.300s: the network has %d classes, but the .data file has "
                                           "classes = %d%s; they must be equal", t->data->name, t->classes,
                    classes, t->data->classes ? "" : ", Darknet's default");
}

static amp_status read_list(amp_training_data *t, amp_error *error)
{
    t->file = train_list(t->data, t->classifier);
    amp_status status = read_lines(t->file, "train", "the list of training images", t->data, &t->list, error);
    if (status == AMP_OK) status = amp_check_image_paths(&t->list, t->file, error);
    if (status != AMP_OK) amp_lines_free(&t->list);
    return status;
}

static amp_status check_images(amp_training_data *t, amp_error *error)
{
    return t->list.count ? amp_check_images_there(&t->list, t->file, error) : AMP_OK;
}

static amp_status check_labels(amp_training_data *t, amp_error *error)
{
    if (!t->classifier || t->data->tag || classes_of(t->data) != t->classes) return AMP_OK;
    amp_status status = amp_check_labels(t->data, t->classes, &t->labels, error);
    if (status != AMP_OK) amp_lines_free(&t->labels);
    if (status != AMP_OK || !t->list.count) return status;
    return amp_check_paths_name_labels(&t->list, &t->labels, t->classes, t->file, error);
}

/* Checks the class names, for a fork whose `detector train` needs one for each class (amp_fork_names). */
static amp_status check_names(amp_training_data *t, amp_error *error)
{
    const char *file = t->data->names ? t->data->names : amp_fork_names;
    amp_lines names;
    if (t->classifier || !*amp_fork_names) return AMP_OK;
    amp_status status = read_lines(file, "names", "the class names", t->data, &names, error);
    if (status == AMP_OK && names.count != (size_t)t->classes)
        status = amp_fail(error, AMP_BAD_CONFIG, "%.300s: %zu lines, but the network has %d classes; "
                                                 "Darknet needs one line for each, and no blank line at the "
                                                 "end", file, names.count,
                          t->classes);
    amp_lines_free(&names);
    return status;
}

static amp_status check_folder(amp_training_data *t, amp_error *error)
{
    return t->cfg ? amp_backups_check(t->data, t->cfg, error) : AMP_OK;
}

/* The rules, in the order in which a training uses the data. */
static amp_status (*const rules[])(amp_training_data *, amp_error *) = {
    check_classes, check_names, read_list, check_images, check_labels, check_folder };

amp_status amp_check_data(amp_training_data *t, amp_mistake_note *note, void *context, amp_error *error)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (rules[i](t, error) == AMP_OK) continue;
        if (!note) return error->status;
        AMP_TRY(note(context, error));
    }
    return AMP_OK;
}

void amp_training_data_free(amp_training_data *t)
{
    amp_lines_free(&t->list);
    amp_lines_free(&t->labels);
}

static amp_status find_box(void *context, const char *file, unsigned long line, const amp_label *label,
                           int outside, amp_error *error)
{
    if (outside) return AMP_OK;
    *(int *)context = 1;
    return amp_fail(error, AMP_BAD_CONFIG, "found");
}

amp_status amp_check_boxes(const amp_training_data *t, amp_error *error)
{
    char labels[AMP_LABEL_PATH] = "";
    amp_error first = { .status = AMP_OK }, wrong;
    int found = 0;
    for (size_t i = 0; !t->classifier && i < t->list.count; i++) {
        if (!amp_label_path(t->list.line[i], labels)) continue;
        amp_status status = amp_labels_read(labels, t->classes, find_box, &found, &wrong);
        if (found) return AMP_OK;
        if (status != AMP_OK && first.status == AMP_OK) first = wrong;
    }
    if (first.status == AMP_OK && !t->classifier)
        return amp_fail(error, AMP_BAD_CONFIG, "%.300s: none of the %zu images has a label that overlaps it: "
                                               "there is nothing to learn; the last label file read was "
                                               "%.300s",
                        t->file, t->list.count, labels);
    *error = first;
    return error->status;
}

amp_status amp_check_cache_size(const char *data_file, const struct network *net, int classifier,
                                amp_cache_estimate *out, amp_error *error)
{
    amp_data_file data;
    amp_training_data t = { .data = &data, .classifier = classifier };
    amp_photo_use use = amp_fork_photo_use(net, classifier);
    amp_status status = amp_data_file_read(data_file, &data, error);
    if (status == AMP_OK) status = read_list(&t, error);
    if (status == AMP_OK) {
        measure_images(&t.list, data.cache_scale);
        *out = (amp_cache_estimate){ t.list.count, t.list.count * typical_pixels(&use) * 3,
                                     data.cache_scale };
    }
    amp_training_data_free(&t);
    amp_data_file_free(&data);
    return status;
}

/* ---- before a training ---- */

amp_status amp_check_cache(const struct network *net, size_t bytes, amp_error *error)
{
    amp_photo_use use = amp_fork_photo_use(net, amp_this_program()->images.of_classifier);
    return amp_image_cache_open(&use, bytes, typical_pixels(&use), error);
}

size_t amp_checked_picture_bytes(int images, size_t inputs)
{
    size_t pixels = typical_pixels(NULL);
    int is_sampled = !amp_this_program()->images.of_classifier && amp_fork_samples_bytes();
    int at_once = is_sampled ? amp_loaders_processors() : amp_loaders_at_once();
    /* The memory for one image, without its decoded bytes (3 per pixel), which the return statement adds.
     * With is_sampled=1: another 3 bytes per pixel, because decoding a progressive JPEG takes twice the
     * memory. With is_sampled=0: floats for the whole image and for its cropped part, and floats for resizing
     * this part to the network's input. */
    size_t bytes = is_sampled ? 3 * pixels : (6 * pixels + 2 * inputs) * sizeof(float);
    return (size_t)(images < at_once ? images : at_once) * (3 * pixels + bytes);
}

/* Notes what a training takes from the .data file, for amp_ranks_agree. */
static void note_data(const amp_data_file *data, int classifier)
{
    const struct { const char *key, *name; } lists[] = {
        { "names", data->names }, { "labels", data->labels }, { "difficult", data->difficult },
        { "leaves", data->leaves }, { "tree", data->tree } };
    amp_ranks_note_file("a list of training images", train_list(data, classifier));
    amp_ranks_note("classes = %d and tag = %d in the .data file\n", data->classes, data->tag);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (!lists[i].name || !amp_file_exists(lists[i].name) || amp_is_device(lists[i].name))
            amp_ranks_note("no file of %s\n", lists[i].key);
        else amp_ranks_note_file(lists[i].key, lists[i].name);
    }
}

/* Requests the cache of images if -cache or the .data file asks for one. */
static void ask_cache(amp_training_data *t)
{
    char file[AMP_FORK_PATH];
    int asked = amp_this_program()->cache;
    amp_cache_kind kind = (amp_cache_kind)(asked >= 0 ? asked : t->data->cache);
    double scale = t->data->cache_scale;
    amp_ranks_note("decoded images reduced for %s, cache_scale = %g\n", kind ? "a cache" : "no cache",
                   kind ? scale : 0);
    if (!kind) return;
    snprintf(file, sizeof file, "%s/%s.images", amp_backups_folder(t->data), amp_file_name(t->file));
    amp_image_cache_ask(&t->list, kind, scale, file);
}

int amp_check_training(const char *data_file, const char *cfg, int classifier)
{
    amp_error error;
    amp_data_file data;
    cfg_summary summary;
    if (!cfg)
        darknet_amp_refuse("command line: a .cfg file is missing; use `darknet %s train my.data my.cfg "
                           "[my.weights]`", classifier ? "classifier" : "detector");
    if (!amp_host_cfg_uses_amp(cfg, classifier ? CFG_TRAINS_CLASSIFIER : CFG_TRAINS_DETECTOR, &summary)) {
        if (amp_this_program()->cache > 0)
            fprintf(stderr, "amp: -cache %s has no effect, since AMP is off\n",
                    amp_this_program()->cache == AMP_CACHE_RAM ? "ram" : "disk");
        return 0;
    }
    amp_stopping_survive_writes();
    amp_training_data training = { .data = &data, .cfg = amp_ranks_leads() ? cfg : NULL,
                                   .classifier = classifier,
                                   .classes = (int)(classifier ? summary.truths : summary.classes) };
    amp_status status = amp_data_file_read(data_file, &data, &error);
    if (data.note[0]) fprintf(stderr, "amp: %s\n", data.note);
    if (status == AMP_OK) status = amp_check_data(&training, NULL, NULL, &error);
    if (status == AMP_OK) status = amp_check_boxes(&training, &error);
    if (status == AMP_OK) measure_images(&training.list, data.cache_scale);
    if (status == AMP_OK) ask_cache(&training);
    if (status == AMP_OK && amp_ranks_leads()) status = amp_backups_take(&data, cfg, &error);
    if (status == AMP_OK) note_data(&data, classifier);
    if (status == AMP_OK && !classifier && data.classes && data.classes != training.classes)
        fprintf(stderr, "amp: the .data file has classes = %d, but the network has %d; the training uses the "
                "network's number\n", data.classes, training.classes);
    amp_program_to_set()->images.of_classifier = classifier;
    amp_training_data_free(&training);
    amp_data_file_free(&data);
    amp_host_check(status, &error);
    return 1;
}
