/* The checks of data_check.h. */
#include "data_check.h"

#include <string.h>
#include <sys/stat.h>

#include "../../amp/cfg_reader.h"
#include "../../files/safe_file.h"
#include "../fork.h"
#include "../program/failure.h"
#include "../program/ranks.h"
#include "../program/request.h"
#include "../program/stopping.h"
#include "backups.h"
#include "image_cache.h"
#include "label_file.h"
#include "loader_memory.h"

enum { CLASSES_UNLESS_GIVEN = 2 }; /* train_classifier */

static const char TRAIN_UNLESS_GIVEN[] = "data/train.list", LABELS_UNLESS_GIVEN[] = "data/labels.list";

/* Of the training that this program runs: the .data file's classes, for its networks; an image's pixels. */
static struct { int read, classes, classifier; size_t pixels; } checked;

static int cache_option = -1; /* -cache; -1: not given */

/* ---- lists ---- */

enum { IMAGES_MEASURED = 32 };

static int compare_pixels(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

/* Estimates the pixels of an image of the list: the median of some, since the first bytes of a damaged image
 * may claim any size. Only the first bytes of each file are read. */
static void measure_images(const amp_lines *list)
{
    size_t tried = list->count < IMAGES_MEASURED ? list->count : IMAGES_MEASURED, found = 0;
    size_t pixels[IMAGES_MEASURED];
    for (size_t i = 0; i < tried; i++) {
        pixels[found] = amp_fork_image_pixels(list->line[i * list->count / tried]);
        found += pixels[found] > 0;
    }
    qsort(pixels, found, sizeof *pixels, compare_pixels);
    checked.pixels = found ? pixels[(found - 1) / 2] : 0;
}

amp_status amp_check_image_paths(const amp_lines *list, const char *file, amp_error *error)
{
    for (size_t i = 0; i < list->count; i++) {
        const char *path = list->line[i];
        size_t length = strlen(path);
        if (length > AMP_IMAGE_PATH_MOST)
            return amp_fail(error, AMP_BAD_CONFIG, "%.500s:%zu: an image's path may have %d bytes at most",
                            file, i + 1, (int)AMP_IMAGE_PATH_MOST);
        if (length > 1 && path[length - 1] == '\r' && !amp_file_exists(path))
            return amp_fail(error, AMP_BAD_CONFIG,
                            "%.300s:%zu: image '%.*s' is not there, since the line ends in a carriage "
                            "return: write the list with Unix line ends",
                            file, i + 1, length <= 300 ? (int)length - 1 : 300, path);
    }
    return AMP_OK;
}

/* Looks for images until one is found: on a slow disk, looking for all of them would take minutes. */
static amp_status check_one_exists(const amp_lines *list, const char *file, amp_error *error)
{
    struct stat status;
    for (size_t i = 0; i < list->count; i++)
        if (*list->line[i] && stat(list->line[i], &status) == 0) return AMP_OK;
    const char *first = list->line[0];
    const char *hint = *first == '/' ? "" : ", looked for from the folder that darknet runs in";
    return amp_fail(error, AMP_BAD_CONFIG,
                    "%.300s: none of the %zu images of this list is there; the first is '%.300s'%s", file,
                    list->count, first, hint);
}

static void name_list(const amp_data_file *data, const char *key, const char *what, char text[300])
{
    snprintf(text, 300, "%s (`%s` in %.200s)", what, key, data->name);
}

amp_status amp_check_labels(const amp_data_file *data, int classes, amp_lines *labels, amp_error *error)
{
    const char *file = data->labels ? data->labels : LABELS_UNLESS_GIVEN;
    char what[300];
    name_list(data, "labels", "the list of labels", what);
    *labels = (amp_lines){ 0 };
    AMP_TRY(amp_paths_read(file, what, labels, error));
    if (labels->count < (size_t)classes)
        return amp_fail(error, AMP_BAD_CONFIG, "%.300s: holds %zu labels, but %.300s has classes = %d", file,
                        labels->count, data->name, classes);
    for (int i = 0; i < classes; i++)
        if (!*labels->line[i])
            return amp_fail(error, AMP_BAD_CONFIG,
                            "%.300s:%d: a blank line, which is a label that every path holds", file, i + 1);
    return AMP_OK;
}

amp_status amp_check_names(const amp_data_file *data, int classes, amp_error *error)
{
    const char *file = data->names ? data->names : amp_fork_names;
    char what[300];
    amp_lines names = { 0 };
    if (!*amp_fork_names) return AMP_OK;
    name_list(data, "names", "the class names", what);
    amp_status status = amp_paths_read(file, what, &names, error);
    if (status == AMP_OK && names.count != (size_t)classes)
        status = amp_fail(error, AMP_BAD_CONFIG, "%.300s: %zu lines, but the network has %d classes; Darknet "
                          "takes one line for each, and no blank line at the end", file, names.count,
                          classes);
    amp_lines_free(&names);
    return status;
}

/* So many paths are tried, spread evenly over the list: with a thousand classes, all would take minutes. */
enum { PATHS_TRIED = 1000 };

static amp_status check_paths_name_labels(const amp_lines *list, const amp_lines *labels, int classes,
                                          const char *file, amp_error *error)
{
    size_t tried = list->count < PATHS_TRIED ? list->count : PATHS_TRIED;
    int class_id, found = 0;
    for (size_t i = 0; i < tried; i++) {
        found = amp_labels_in_path(list->line[i * list->count / tried], labels->line, (size_t)classes,
                                   &class_id);
        if (found == 1 || classes == 1) return AMP_OK;
    }
    return amp_fail(error, AMP_BAD_CONFIG,
                    "%.300s: no path holds exactly one of the %d labels, by which Darknet knows "
                    "an image's class; the last tried holds %d: '%.300s'", file, classes, found,
                    list->line[(tried - 1) * list->count / tried]);
}

void amp_check_request_cache(const char *word)
{
    char shown[64];
    cache_option = word ? amp_cache_word(word) : -1;
    if (!word || cache_option >= 0) return;
    cfg_printable(shown, sizeof shown, word);
    darknet_amp_refuse("command line: -cache %s: not known; allowed: " AMP_CACHE_WORDS, shown);
}

static int classes_of(const amp_data_file *data)
{
    return data->classes ? data->classes : CLASSES_UNLESS_GIVEN;
}

/* The list is there, names at least one image that exists, and no path is too long; a classifier's labels are
 * there, and name at least one of the first paths. */
static amp_status check_train_list(const amp_data_file *data, int classifier, amp_error *error)
{
    const char *file = data->train ? data->train : TRAIN_UNLESS_GIVEN;
    char what[300];
    amp_lines list, labels = { 0 };
    name_list(data, "train", "the list of training images", what);
    amp_status status = amp_paths_read(file, what, &list, error);
    if (status == AMP_OK) status = amp_check_image_paths(&list, file, error);
    if (status == AMP_OK) status = check_one_exists(&list, file, error);
    if (status == AMP_OK) measure_images(&list);
    if (status == AMP_OK && classifier && !data->tag) {
        status = amp_check_labels(data, classes_of(data), &labels, error);
        if (status == AMP_OK) status = check_paths_name_labels(&list, &labels, classes_of(data), file, error);
        amp_lines_free(&labels);
    }
    if (status == AMP_OK && (cache_option >= 0 ? cache_option : data->cache)) amp_image_cache_ask(&list);
    amp_lines_free(&list);
    return status;
}

/* ---- before a training ---- */

int amp_checks_training(void) { return checked.read; }
size_t amp_checked_pixels(void) { return checked.pixels; }

/* A pixel has three bytes as it is decoded, and then a float for each of them, or for one at a time. */
size_t amp_checked_picture_bytes(int images, size_t inputs)
{
    int by_planes = !checked.classifier && amp_fork_places_planes();
    int at_once = by_planes ? amp_loaders_processors() : amp_loaders_at_once();
    /* As bytes and as floats; else also the part of it that is cut out, and that resized. */
    size_t floats = by_planes ? checked.pixels : 6 * checked.pixels + 2 * inputs;
    return (size_t)(images < at_once ? images : at_once) * (3 * checked.pixels + floats * sizeof(float));
}

/* What a training of several ranks takes from the .data file. */
static void note_data(const amp_data_file *data)
{
    const struct { const char *key, *name; } lists[] = {
        { "names", data->names }, { "labels", data->labels }, { "difficult", data->difficult },
        { "leaves", data->leaves }, { "tree", data->tree } };
    amp_ranks_note_file("a list of training images", data->train ? data->train : TRAIN_UNLESS_GIVEN);
    amp_ranks_note("classes = %d and tag = %d in the .data file\n", data->classes, data->tag);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (!lists[i].name || !amp_file_exists(lists[i].name) || amp_is_device(lists[i].name))
            amp_ranks_note("no file of %s\n", lists[i].key);
        else amp_ranks_note_file(lists[i].key, lists[i].name);
    }
}

void amp_check_training(const char *data_file, const char *cfg, int classifier)
{
    amp_error error;
    amp_data_file data;
    cfg_summary summary;
    if (!cfg)
        darknet_amp_refuse("command line: a .cfg file is missing; darknet %s train my.data my.cfg "
                           "[my.weights]", classifier ? "classifier" : "detector");
    cfg_use use = classifier ? CFG_TRAINS_CLASSIFIER : CFG_TRAINS_DETECTOR;
    if (!amp_host_cfg_uses_amp(cfg, use)) {
        if (cache_option > 0) fprintf(stderr, "amp: -cache ram has no effect, since AMP is off\n");
        return;
    }
    amp_stopping_survive_writes();
    amp_host_check(amp_host_look_at_cfg(cfg, use, &summary, &error), &error);
    amp_status status = amp_data_file_read(data_file, &data, &error);
    if (data.note[0]) fprintf(stderr, "amp: %s\n", data.note);
    if (status == AMP_OK && !classifier) status = amp_check_names(&data, (int)summary.classes, &error);
    if (status == AMP_OK) status = check_train_list(&data, classifier, &error);
    if (status == AMP_OK && amp_ranks_leads()) status = amp_backups_check(&data, cfg, &error);
    if (status == AMP_OK) note_data(&data);
    checked.read = 1;
    checked.classifier = classifier;
    checked.classes = classifier ? classes_of(&data) : data.classes;
    amp_data_file_free(&data);
    amp_host_check(status, &error);
}

void amp_check_classes(struct network *net)
{
    if (checked.read && amp_fork_state(net)) amp_fork_check_classes(net, checked.classes, checked.classifier);
}
