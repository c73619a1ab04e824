/* Handles bad files in loader threads: see loading.h. */
#include "loading.h"

#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <stdatomic.h>
#include <string.h>

#include "../../amp/cfg_text.h"
#include "../../files/safe_file.h"
#include "../../include/darknet_amp.h"
#include "../fork.h"
#include "../program/clock.h"
#include "../program/failure.h"
#include "../program/memory.h"
#include "data_files.h"
#include "image_cache.h"
#include "images.h"
#include "label_file.h"
#include "loader_memory.h"

/* The mistakes that loaders warn about. Each of the first NAMED_MOST files gets a line: `before`, its name,
 * and what is wrong. Further files of the `kind` are only counted. summary: words for the line at a
 * training's end. */
typedef enum mistake { UNREADABLE, OUTSIDE, SMALL, CROWDED, MISLABELLED, MISTAKES } mistake;
static const struct { const char *before, *kind, *summary; } mistakes[MISTAKES] = {
    [UNREADABLE] = { "image '", "images that cannot be read", "unreadable images" },
    [OUTSIDE] = { "", "labels outside their images",
                  "labels ignored, outside the image or with their centre at 0 0" },
    [SMALL] = { "", "labels that are too small", "labels ignored, smaller than Darknet's minimum" },
    [CROWDED] = { "", "label files with too many boxes", "label files with more boxes than a step uses" },
    [MISLABELLED] = { "image '", "images without exactly one label in their path",
                                 "images whose path does not hold exactly one label" } };
enum { NAMED_MOST = 100 };

/* What the calling thread loads, and which image it is replacing. */
static _Thread_local struct {
    amp_loading from;
    char **place;      /* the path that is being replaced */
    int tries, start;  /* replacements tried so far; list index of the latest random one */
} loader;

static struct {
    pthread_mutex_t mutex;
    struct { void *names; long count; } seen[MISTAKES]; /* names: a tree made with tsearch */
    atomic_long replaced;
    pthread_cond_t decided;
    int wanted;                      /* the value that amp_loading_decide has set */
    double began, ended;             /* times of amp_clock_seconds at which the latest job began and ended */
    int keeps_faults;                /* 1: amp_loading_keep_faults was called */
    long jobs;                       /* number of batches whose loading has begun */
    int faulty_part;                 /* the part of the current job that reported `fault` */
    amp_error fault;                 /* status AMP_OK: the job has no fault */
} watch = { .mutex = PTHREAD_MUTEX_INITIALIZER, .decided = PTHREAD_COND_INITIALIZER, .wanted = 1 };

void amp_loading_watch(void)
{
    amp_program_to_set()->watches_images = 1;
    amp_loaders_watch(amp_this_program()->trains);
}

/* ---- jobs ---- */

void amp_loading_begin_job(void)
{
    watch.fault.status = AMP_OK;
    watch.jobs++;
    watch.began = watch.ended = amp_clock_seconds();
}

double amp_loading_seconds(void) { return watch.ended - watch.began; }

void amp_loading_begin(const amp_loading *from)
{
    if (!amp_this_program()->watches_images) return;
    memset(&loader, 0, sizeof loader);
    loader.from = *from;
    amp_image_cache_begin(from->list != NULL);
}

void amp_loading_decide(int wanted)
{
    pthread_mutex_lock(&watch.mutex);
    watch.wanted = wanted;
    pthread_cond_broadcast(&watch.decided);
    pthread_mutex_unlock(&watch.mutex);
}

int amp_loading_is_wanted(void)
{
    pthread_mutex_lock(&watch.mutex);
    while (watch.wanted < 0) pthread_cond_wait(&watch.decided, &watch.mutex);
    int wanted = watch.wanted;
    pthread_mutex_unlock(&watch.mutex);
    return wanted;
}

void amp_loading_end(void)
{
    if (loader.from.list) {
        pthread_mutex_lock(&watch.mutex);
        watch.ended = amp_clock_seconds();
        pthread_mutex_unlock(&watch.mutex);
    }
    memset(&loader, 0, sizeof loader);
    amp_image_cache_end();
}

/* ---- faults that end a training ---- */

void amp_loading_keep_faults(void) { watch.keeps_faults = 1; }

amp_status amp_loading_fault(amp_error *error)
{
    if (watch.fault.status != AMP_OK) *error = watch.fault;
    return watch.fault.status;
}

/* Stores an error for the loop. If several parts of a job are faulty, the error of the lowest part stays,
 * whichever thread reports first. */
static void keep(amp_error error)
{
    error.status = AMP_BAD_CONFIG;
    pthread_mutex_lock(&watch.mutex);
    if (watch.fault.status == AMP_OK || loader.from.part < watch.faulty_part) {
        watch.fault = error;
        watch.faulty_part = loader.from.part;
    }
    pthread_mutex_unlock(&watch.mutex);
}

/* Ends the program with this line. But in a loader of the training's loop, stores the line for the loop and
 * returns; the caller must then continue with harmless input. */
__attribute__((format(printf, 1, 2))) static void fail(const char *format, ...)
{
    amp_error error;
    va_list args;
    va_start(args, format);
    vsnprintf(error.message, sizeof error.message, format, args);
    va_end(args);
    if (!watch.keeps_faults || !loader.from.list) darknet_amp_refuse("%s", error.message);
    keep(error);
}

int darknet_amp_start_loader(pthread_t *thread, void *(*run)(void *), void *job)
{
    pthread_attr_t attributes;
    if (!amp_this_program()->watches_images) return pthread_create(thread, NULL, run, job);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, AMP_LOADER_STACK);
    int status = pthread_create(thread, &attributes, run, job);
    pthread_attr_destroy(&attributes);
    if (!status) return 0;
    amp_error error;
    amp_fail(&error, AMP_BAD_CONFIG, "darknet: no thread that loads images can be started: %s; the limit on "
             "the program's memory or threads (ulimit -v, -u) is too low", strerror(status));
    /* Before the first batch there is nothing to save. */
    if (!watch.keeps_faults || watch.jobs < 2) darknet_amp_refuse("%s", error.message);
    *thread = pthread_self(); /* when the caller later joins *thread, pthread_join fails at once (EDEADLK) */
    keep(error);
    return 0;
}

/* ---- files that loaders cannot read: non-regular files, and paths that are too long ---- */

FILE *darknet_amp_fopen(const char *file, const char *mode)
{
    if (!amp_this_program()->watches_images || !amp_is_device(file)) return fopen(file, mode);
    fail("%.700s: not a regular file; lists and labels must be regular files", file);
    return fopen("/dev/null", mode);
}

int darknet_amp_sprintf(char *text, size_t room, const char *format, ...)
{
    char shown[256];
    va_list args;
    va_start(args, format);
    if (room == (size_t)-1) room = AMP_FORK_PATH;
    int length = vsnprintf(shown, sizeof shown, format, args);
    va_end(args);
    if (length >= 0 && (size_t)length >= room) {
        fail("darknet: '%.200s...': this path has %d bytes, but Darknet has room for %zu; shorten the "
             "folder's path or the file's name", shown, length, room - 1);
        return *text = 0;
    }
    va_start(args, format); /* not vsnprintf, because find_replace prints a text onto itself */
    length = vsprintf(text, format, args);
    va_end(args);
    return length;
}

/* ---- images ---- */

static int compare_names(const void *a, const void *b) { return strcmp(a, b); }

/* Counts a file that has mistake m, once per name, and prints the first NAMED_MOST with what is wrong. */
__attribute__((format(printf, 3, 4)))
static void warn_once(mistake m, const char *name, const char *wrong, ...)
{
    char shown[400], end[200];
    va_list args;
    va_start(args, wrong);
    vsnprintf(end, sizeof end, wrong, args);
    va_end(args);
    cfg_printable(shown, sizeof shown, name);
    pthread_mutex_lock(&watch.mutex);
    if (!tfind(name, &watch.seen[m].names, compare_names)) {
        amp_allocated(tsearch(amp_allocated(strdup(name)), &watch.seen[m].names, compare_names));
        long count = ++watch.seen[m].count;
        if (count <= NAMED_MOST) amp_host_print("amp: %s%s%s", mistakes[m].before, shown, end);
        if (count == NAMED_MOST + 1) amp_host_print("amp: further %s are only counted", mistakes[m].kind);
    }
    pthread_mutex_unlock(&watch.mutex);
}

int darknet_amp_bad_image(const char *file, int tried)
{
    amp_thread_state *reader = amp_this_thread();
    if (!tried) errno = *reader->unreadable = 0;
    else if (errno == EMFILE || errno == ENFILE) darknet_amp_unreadable("%s", strerror(errno));
    if (!darknet_amp_reads() || reader->only_black ||
        (!tried && amp_file_exists(file) && !amp_is_device(file))) return 0;
    if (reader->measures) return 1;
    if (!loader.from.list) {
        char shown[400];
        cfg_printable(shown, sizeof shown, file);
        darknet_amp_refuse("amp: image '%s' cannot be read (%s)", shown, amp_image_file_failure(file));
    }
    warn_once(UNREADABLE, file, "' cannot be read (%s); another is used instead",
              amp_image_file_failure(file));
    return 1;
}

static void no_image_left(void)
{
    char shown[400];
    cfg_printable(shown, sizeof shown, loader.from.list[0]);
    fail("amp: none of the %d images of the training list can be read; the first is '%s' (%s)",
         loader.from.count, shown, amp_image_file_failure(loader.from.list[0]));
    amp_this_thread()->only_black = 1;
}

/* The first RANDOM_TRIES + 1 tries take a random image: if a whole folder is missing, its images should not
 * all be replaced by the next image of the list. Later tries follow the list. */
enum { RANDOM_TRIES = 32 };

void darknet_amp_another_image(char **paths, int i)
{
    int index, first = loader.place != paths + i;
    if (first) {
        loader.place = paths + i;
        loader.tries = 0;
        watch.replaced++;
    }
    if (loader.tries <= RANDOM_TRIES) index = loader.start = darknet_amp_rand() % loader.from.count;
    else if (loader.tries - RANDOM_TRIES >= loader.from.count) {
        no_image_left();
        return;
    } else index = (int)(((long)loader.start + loader.tries - RANDOM_TRIES) % loader.from.count);
    loader.tries++;
    paths[i] = loader.from.list[index];
    amp_images_replaced(i, paths[i]);
}

int darknet_amp_not_augmented(int w, int h, const char *why)
{
    if (amp_this_program()->watches_images)
        fail("amp: OpenCV cannot make a %d x %d image from a training image: %.*s", w, h,
             (int)strcspn(why, "\n"), why);
    return amp_this_program()->watches_images;
}

/* ---- labels ---- */

typedef struct boxes { amp_label *box; size_t count, room; } boxes;

/* Adds a box unless it is outside the image. A box that is too small only causes a warning: cropping may
 * enlarge it, and Darknet drops it if it is still too small. */
static amp_status add_box(void *context, const char *file, unsigned long line, const amp_label *l,
                          int outside, amp_error *error)
{
    boxes *all = context;
    char name[AMP_LABEL_PATH + 32];
    int is_small = l->w < loader.from.least_w || l->h < loader.from.least_h;
    if (outside || is_small) snprintf(name, sizeof name, "%s:%lu", file, line);
    if (outside) {
        warn_once(OUTSIDE, name, l->x == 0 && l->y == 0 ? ": Darknet ignores a box whose centre is 0 0"
                                                        : ": this box lies outside the image and is ignored");
        return AMP_OK;
    }
    if (is_small)
        warn_once(SMALL, name, ": this box takes %g x %g of its image; Darknet ignores boxes below %g x %g",
                  (double)l->w, (double)l->h, (double)loader.from.least_w, (double)loader.from.least_h);
    all->box = amp_grow(all->box, all->count, &all->room, sizeof *all->box);
    all->box[all->count++] = *l;
    return AMP_OK;
}

amp_label *amp_loading_labels(const char *file, int *count)
{
    amp_error error;
    if (!amp_this_program()->watches_images || !loader.from.classes) return NULL;
    /* the result must not be NULL, even if there are no boxes */
    boxes all = { .box = amp_allocated(malloc(sizeof *all.box)), .room = 1 };
    if (amp_labels_read(file, loader.from.classes, add_box, &all, &error) != AMP_OK) {
        fail("%s", error.message);
        all.count = 0;
    }
    *count = (int)all.count;
    if (loader.from.list && *count > loader.from.boxes)
        warn_once(CROWDED, file, ": %d boxes, of which each step uses %d, chosen at random", *count,
                  loader.from.boxes);
    return all.box;
}

int darknet_amp_mislabelled(const char *path, int count)
{
    if (!amp_this_program()->watches_images || !loader.from.list) return 0;
    warn_once(MISLABELLED, path, "': the path contains %d of the labels, but must contain exactly one",
              count);
    return 1;
}

void amp_loading_summary(void)
{
    char replaced[64] = "";
    pthread_mutex_lock(&watch.mutex);
    snprintf(replaced, sizeof replaced, "; replaced by others %ld times", watch.replaced);
    for (int m = 0; m < MISTAKES; m++)
        if (watch.seen[m].count)
            amp_host_print("amp: %s: %ld%s", mistakes[m].summary, watch.seen[m].count,
                           m == UNREADABLE ? replaced : "");
    pthread_mutex_unlock(&watch.mutex);
}
