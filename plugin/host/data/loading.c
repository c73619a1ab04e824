/* What loader threads do with bad files: see loading.h. */
#include "loading.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../amp/cfg_reader.h"
#include "../../include/darknet_amp.h"
#include "../common/state.h"
#include "data_files.h"
#include "images.h"
#include "label_file.h"
#include "names_seen.h"

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
    amp_names_seen images, boxes, paths;
    long replaced;
} watch = { .mutex = PTHREAD_MUTEX_INITIALIZER };

void amp_loading_watch(void) { watch.on = 1; }

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
        darknet_amp_refuse("darknet: '%.200s...': a path of %d bytes, and Darknet has room for %zu here; shorten "
                           "its parts: the folder's path, the file's name", shown, length, room - 1);
    va_start(args, format); /* not vsnprintf: find_replace prints a text onto itself */
    length = vsprintf(text, format, args);
    va_end(args);
    return length;
}

/* ---- images ---- */

const char *amp_bad_image_cause(const char *file)
{
    struct stat status;
    if (!*file) return "the list has a blank line";
    if (stat(file, &status) != 0) return strerror(errno);
    if (S_ISDIR(status.st_mode)) return "it is a folder";
    if (!S_ISREG(status.st_mode)) return "it is no regular file";
    if (status.st_size == 0) return "it is empty";
    return "it is damaged, too large, or no JPEG, PNG, BMP or other image that Darknet reads";
}

/* How often a thing of each kind is named; all are counted. */
enum { NAMED_MOST = 100 };

/* Whether to name it, having counted it. The mutex is held. */
static int is_to_be_named(amp_names_seen *seen, const char *name, const char *what)
{
    if (!amp_names_add(seen, name) || seen->count > NAMED_MOST + 1) return 0;
    if (seen->count <= NAMED_MOST) return 1;
    fprintf(stderr, "amp: more %s are not named any more, only counted\n", what);
    return 0;
}

static void say_bad_image(const char *file)
{
    char shown[400];
    cfg_printable(shown, sizeof shown, file);
    pthread_mutex_lock(&watch.mutex);
    if (is_to_be_named(&watch.images, file, "images that cannot be read"))
        fprintf(stderr, "amp: image '%s' cannot be read (%s); another is trained on in its place\n", shown,
                amp_bad_image_cause(file));
    pthread_mutex_unlock(&watch.mutex);
}

static _Noreturn void end_for_image(const char *file)
{
    char shown[400];
    cfg_printable(shown, sizeof shown, file);
    darknet_amp_refuse("amp: image '%s' cannot be read (%s)", shown, amp_bad_image_cause(file));
}

int darknet_amp_bad_image(const char *file, int tried)
{
    if (!watch.on || (!tried && !amp_is_device(file))) return 0;
    if (!loader.list) end_for_image(file);
    say_bad_image(file);
    return 1;
}

static _Noreturn void no_image_left(void)
{
    char shown[400];
    cfg_printable(shown, sizeof shown, loader.list[0]);
    darknet_amp_refuse("amp: none of the %d images of the training list can be read; the first is '%s' (%s)",
                       loader.count, shown, amp_bad_image_cause(loader.list[0]));
}

/* At random first, so that a folder that is gone does not make its neighbour in the list a favourite; then the whole list, one
 * after the other. As many numbers are drawn whatever other threads know of these files. */
enum { RANDOM_TRIES = 32 };

void darknet_amp_another_image(char **paths, int i)
{
    int index, first = loader.place != paths + i;
    if (first) {
        loader.place = paths + i;
        loader.tries = 0;
        pthread_mutex_lock(&watch.mutex);
        watch.replaced++;
        pthread_mutex_unlock(&watch.mutex);
    }
    if (loader.tries <= RANDOM_TRIES) index = loader.start = darknet_amp_rand() % loader.count;
    else if (loader.tries - RANDOM_TRIES >= loader.count) no_image_left();
    else index = (int)(((long)loader.start + loader.tries - RANDOM_TRIES) % loader.count);
    loader.tries++;
    paths[i] = loader.list[index];
    amp_images_replaced(i, paths[i]);
}

/* ---- labels ---- */

typedef struct boxes { amp_label *box; int count, room; } boxes;

static void say_outside(const char *file, unsigned long line)
{
    char name[AMP_LABEL_PATH + 32], shown[400];
    snprintf(name, sizeof name, "%s:%lu", file, line);
    cfg_printable(shown, sizeof shown, name);
    pthread_mutex_lock(&watch.mutex);
    if (is_to_be_named(&watch.boxes, name, "labels without a part in their images"))
        fprintf(stderr, "amp: %s: no part of this box is in the image; it is left out\n", shown);
    pthread_mutex_unlock(&watch.mutex);
}

static amp_status add_box(void *context, const char *file, unsigned long line, const amp_label *l, int outside, amp_error *error)
{
    boxes *all = context;
    if (outside) {
        say_outside(file, line);
        return AMP_OK;
    }
    if (all->count == all->room) {
        int room = all->room ? 2 * all->room : 64;
        amp_label *grown = realloc(all->box, (size_t)room * sizeof *grown);
        if (!grown) return amp_fail(error, AMP_NO_MEMORY, "%s: no memory for %d labels", file, room);
        all->box = grown;
        all->room = room;
    }
    all->box[all->count++] = *l;
    return AMP_OK;
}

amp_label *amp_loading_labels(const char *file, int *count)
{
    boxes all = { .box = malloc(sizeof *all.box), .room = 1 };
    amp_error error;
    if (!watch.on || !loader.classes) {
        free(all.box);
        return NULL;
    }
    amp_status status = all.box ? amp_labels_read(file, loader.classes, add_box, &all, &error)
                                : amp_fail(&error, AMP_NO_MEMORY, "%s: no memory for labels", file);
    amp_host_check(status, &error);
    *count = all.count;
    return all.box;
}

int darknet_amp_mislabelled(const char *path, int count)
{
    char shown[400];
    if (!watch.on || !loader.list) return 0;
    cfg_printable(shown, sizeof shown, path);
    pthread_mutex_lock(&watch.mutex);
    if (is_to_be_named(&watch.paths, path, "such images"))
        fprintf(stderr, "amp: image '%s': its path holds %d of the labels, and one is needed\n", shown, count);
    pthread_mutex_unlock(&watch.mutex);
    return 1;
}

/* ---- counts ---- */

amp_loading_counts amp_loading_counted(void)
{
    pthread_mutex_lock(&watch.mutex);
    amp_loading_counts c = { watch.images.count, watch.replaced, watch.boxes.count, watch.paths.count };
    pthread_mutex_unlock(&watch.mutex);
    return c;
}

void amp_loading_summary(void)
{
    amp_loading_counts c = amp_loading_counted();
    if (c.bad_images)
        fprintf(stderr, "amp: unreadable images: %ld; others took their place %ld times\n", c.bad_images, c.replaced);
    if (c.boxes_outside) fprintf(stderr, "amp: labels left out, no part of the box being in the image: %ld\n", c.boxes_outside);
    if (c.mislabelled) fprintf(stderr, "amp: images whose path does not hold exactly one label: %ld\n", c.mislabelled);
}
