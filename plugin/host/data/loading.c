/* What loader threads do with bad files: see loading.h. */
#include "loading.h"

#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "../../amp/cfg_reader.h"
#include "../../files/safe_file.h"
#include "../../include/darknet_amp.h"
#include "../fork.h"
#include "../program/failure.h"
#include "data_check.h"
#include "data_files.h"
#include "image_cache.h"
#include "images.h"
#include "label_file.h"
#include "loader_memory.h"

/* Names that were met: the C library's balanced tree of them. */
typedef struct names_seen { void *root; long count; } names_seen;

/* What the calling thread loads from. */
static _Thread_local struct {
    char **list;       /* NULL: it is no loader that can take another image */
    int count, classes;
    char **place;      /* whose image is being replaced, */
    int tries, start;  /* and how far that is */
} loader;

static struct {
    atomic_int on; /* set once and for all; networks may be made in several threads */
    pthread_mutex_t mutex;
    names_seen images, boxes, paths;
    atomic_long replaced;
} watch = { .mutex = PTHREAD_MUTEX_INITIALIZER };

void amp_loading_watch(void)
{
    watch.on = 1;
    amp_image_cache_watch();
    amp_loaders_watch(amp_checks_training());
}

/* ---- jobs ---- */

void amp_loading_begin(char **list, int count, int classes)
{
    if (!watch.on) return;
    memset(&loader, 0, sizeof loader);
    loader.classes = classes;
    loader.list = list;
    loader.count = count;
}

void amp_loading_end(void) { memset(&loader, 0, sizeof loader); }

/* ---- files of a kind or a length that loaders do not survive ---- */

FILE *darknet_amp_fopen(const char *file, const char *mode)
{
    if (!watch.on || !amp_is_device(file)) return fopen(file, mode);
    darknet_amp_refuse("%.700s: not a regular file, which lists and labels must be", file);
}

int darknet_amp_sprintf(char *text, size_t room, const char *format, ...)
{
    char shown[256];
    va_list args;
    va_start(args, format);
    if (room == (size_t)-1) room = AMP_FORK_PATH;
    int length = vsnprintf(shown, sizeof shown, format, args);
    va_end(args);
    if (length >= 0 && (size_t)length >= room)
        darknet_amp_refuse("darknet: '%.200s...': a path of %d bytes, and Darknet has room for %zu here; "
                           "shorten its parts: the folder's path, the file's name", shown, length, room - 1);
    va_start(args, format); /* not vsnprintf: find_replace prints a text onto itself */
    length = vsprintf(text, format, args);
    va_end(args);
    return length;
}

/* ---- images ---- */

/* Why an image cannot be read, as far as its file tells. */
static const char *cause_of(const char *file)
{
    struct stat status;
    if (!*file) return "the list has a blank line";
    if (stat(file, &status) != 0) return strerror(errno);
    if (S_ISDIR(status.st_mode)) return "it is a folder";
    if (!S_ISREG(status.st_mode)) return "it is no regular file";
    if (status.st_size == 0) return "it is empty";
    return "it is damaged, too large, or no JPEG, PNG, BMP or other image that Darknet reads";
}

static int compare_names(const void *a, const void *b) { return strcmp(a, b); }

/* Whether the name is a new one. */
static int add_name(names_seen *seen, const char *name)
{
    if (tfind(name, &seen->root, compare_names)) return 0;
    amp_allocated(tsearch(amp_allocated(strdup(name)), &seen->root, compare_names));
    seen->count++;
    return 1;
}

/* So many names of a kind are printed; the others are only counted. */
enum { NAMED_MOST = 100 };

/* Counts the names of one kind of mistake, and prints "amp: BEFORE name AFTER" when a name is new. */
__attribute__((format(printf, 5, 6)))
static void warn_once(names_seen *seen, const char *name, const char *kind, const char *before,
                      const char *after, ...)
{
    char shown[400], end[200];
    va_list args;
    va_start(args, after);
    vsnprintf(end, sizeof end, after, args);
    va_end(args);
    cfg_printable(shown, sizeof shown, name);
    pthread_mutex_lock(&watch.mutex);
    int is_new = add_name(seen, name);
    if (is_new && seen->count <= NAMED_MOST) amp_host_print("amp: %s%s%s", before, shown, end);
    if (is_new && seen->count == NAMED_MOST + 1)
        amp_host_print("amp: more %s are not named any more, only counted", kind);
    pthread_mutex_unlock(&watch.mutex);
}

static _Noreturn void end_for_image(const char *file)
{
    char shown[400];
    cfg_printable(shown, sizeof shown, file);
    darknet_amp_refuse("amp: image '%s' cannot be read (%s)", shown, cause_of(file));
}

int darknet_amp_bad_image(const char *file, int tried)
{
    if (!watch.on || (!tried && amp_file_exists(file) && !amp_is_device(file))) return 0;
    if (!loader.list) end_for_image(file);
    warn_once(&watch.images, file, "images that cannot be read", "image '",
              "' cannot be read (%s); another is trained on in its place", cause_of(file));
    return 1;
}

static _Noreturn void no_image_left(void)
{
    char shown[400];
    cfg_printable(shown, sizeof shown, loader.list[0]);
    darknet_amp_refuse("amp: none of the %d images of the training list can be read; the first is '%s' (%s)",
                       loader.count, shown, cause_of(loader.list[0]));
}

/* The first tries are at random, so that where a whole folder is missing, the image after it in the list is
 * not taken for all of its images; then the list is tried in its order. How many random numbers are drawn
 * does not depend on what other threads know of these files. */
enum { RANDOM_TRIES = 32 };

void darknet_amp_another_image(char **paths, int i)
{
    int index, first = loader.place != paths + i;
    if (first) {
        loader.place = paths + i;
        loader.tries = 0;
        watch.replaced++;
    }
    if (loader.tries <= RANDOM_TRIES) index = loader.start = darknet_amp_rand() % loader.count;
    else if (loader.tries - RANDOM_TRIES >= loader.count) no_image_left();
    else index = (int)(((long)loader.start + loader.tries - RANDOM_TRIES) % loader.count);
    loader.tries++;
    paths[i] = loader.list[index];
    amp_images_replaced(i, paths[i]);
}

void darknet_amp_not_augmented(int w, int h, const char *why)
{
    if (watch.on)
        darknet_amp_refuse("amp: OpenCV cannot make an image of %d x %d of a training image: %.*s", w, h,
                           (int)strcspn(why, "\n"), why);
}

/* ---- labels ---- */

typedef struct boxes { amp_label *box; size_t count, room; } boxes;

static void warn_outside(const char *file, unsigned long line, const amp_label *l)
{
    char name[AMP_LABEL_PATH + 32];
    snprintf(name, sizeof name, "%s:%lu", file, line);
    warn_once(&watch.boxes, name, "labels without a part in their images", "",
              l->x == 0 && l->y == 0 ? ": Darknet takes a box whose centre is 0 0 for none; it is left out"
                                     : ": no part of this box is in the image; it is left out");
}

static amp_status add_box(void *context, const char *file, unsigned long line, const amp_label *l,
                          int outside, amp_error *error)
{
    boxes *all = context;
    if (outside) {
        warn_outside(file, line, l);
        return AMP_OK;
    }
    (void)error;
    all->box = amp_grow(all->box, all->count, &all->room, sizeof *all->box);
    all->box[all->count++] = *l;
    return AMP_OK;
}

amp_label *amp_loading_labels(const char *file, int *count)
{
    amp_error error;
    if (!watch.on || !loader.classes) return NULL;
    /* not NULL without a box, too */
    boxes all = { .box = amp_allocated(malloc(sizeof *all.box)), .room = 1 };
    amp_host_check(amp_labels_read(file, loader.classes, add_box, &all, &error), &error);
    *count = (int)all.count;
    return all.box;
}

int darknet_amp_mislabelled(const char *path, int count)
{
    if (!watch.on || !loader.list) return 0;
    warn_once(&watch.paths, path, "such images", "image '",
              "': its path holds %d of the labels, and one is needed", count);
    return 1;
}

void amp_loading_summary(void)
{
    pthread_mutex_lock(&watch.mutex);
    if (watch.images.count)
        amp_host_print("amp: unreadable images: %ld; others took their place %ld times", watch.images.count,
                       watch.replaced);
    if (watch.boxes.count)
        amp_host_print("amp: labels left out, without a part in the image or with their centre at 0 0: %ld",
                       watch.boxes.count);
    if (watch.paths.count)
        amp_host_print("amp: images whose path does not hold exactly one label: %ld", watch.paths.count);
    pthread_mutex_unlock(&watch.mutex);
    amp_image_cache_summary();
}
