/* Draws a detection data set for Darknet: circles, squares and triangles, labelled.
 *
 * Nothing to download, the same files from the same seed on every machine, and easy enough for a small
 * detector to learn in a minute: what the quickstart and the tests train on. shapes/scene.c composes a
 * picture; this file reads the options and writes the set:
 *
 *   DIR/images/{train,valid}_NNNNN.png    DIR/labels/{train,valid}_NNNNN.txt    DIR/backup/
 *   DIR/train.txt  DIR/valid.txt  DIR/shapes.names  DIR/shapes.data
 *
 * shapes.data is taken away first and written last, so while it stands the set is whole. */
#include "shapes/png.h"
#include "shapes/scene.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SMALLEST = 32, LARGEST = 2048, MOST_PICTURES = 100000, PATH_ROOM = 3500 };

typedef struct request {
    const char *out;
    int train, valid, size;
    unsigned long long seed;
} request;

static const char usage[] =
    "usage: shapes --out DIR [--train N] [--valid N] [--size PIXELS] [--seed N]\n"
    "Draws a Darknet detection data set of circles, squares and triangles into DIR.\n"
    "  --out DIR       folder to write to; made if it is not there\n"
    "  --train N       pictures to train on (default 800)\n"
    "  --valid N       pictures to validate on (default 200)\n"
    "  --size PIXELS   width and height of a picture, 32 to 2048 (default 96)\n"
    "  --seed N        the same seed draws the same files (default 1)\n";

__attribute__((format(printf, 1, 2), noreturn))
static void fail(const char *format, ...)
{
    va_list args;
    fputs("shapes: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

static unsigned long long number(const char *option, const char *text, unsigned long long low,
                                 unsigned long long high)
{
    char *end = NULL;
    errno = 0;
    unsigned long long value = text ? strtoull(text, &end, 10) : 0;
    if (!text || end == text || *end || errno || text[0] == '-' || value < low || value > high)
        fail("%s %s: expected a whole number from %llu to %llu", option, text ? text : "(nothing)",
             low, high);
    return value;
}

static request read_arguments(int argc, char **argv)
{
    request r = {.out = NULL, .train = 800, .valid = 200, .size = 96, .seed = 1};
    for (int i = 1; i < argc; i += 2) {
        const char *option = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(option, "--help")) {
            fputs(usage, stdout);
            exit(0);
        } else if (!strcmp(option, "--out")) {
            r.out = value;
            if (!value || !*value) fail("--out needs the name of a folder");
        } else if (!strcmp(option, "--train")) {
            r.train = (int)number(option, value, 1, MOST_PICTURES);
        } else if (!strcmp(option, "--valid")) {
            r.valid = (int)number(option, value, 1, MOST_PICTURES);
        } else if (!strcmp(option, "--size")) {
            r.size = (int)number(option, value, SMALLEST, LARGEST);
        } else if (!strcmp(option, "--seed")) {
            r.seed = number(option, value, 0, ULLONG_MAX);
        } else {
            fail("unknown option %s; --help lists those there are", option);
        }
    }
    if (!r.out) fail("--out DIR is missing; --help lists the options");
    return r;
}

static void make_folder(const char *path)
{
    struct stat found;
    if (mkdir(path, 0777) == 0) return;
    if (errno != EEXIST) fail("cannot make the folder %s: %s", path, strerror(errno));
    if (stat(path, &found) != 0 || !S_ISDIR(found.st_mode))
        fail("%s is in the way: a folder is needed there", path);
}

/* Makes path and the folders above it, and gives back its absolute name, which the caller frees. */
static char *make_out_folder(const char *path)
{
    char part[PATH_MAX];
    if (strlen(path) >= PATH_ROOM) fail("--out: the name is too long (%d characters at most)", PATH_ROOM - 1);
    for (size_t i = 1; i <= strlen(path); i++)
        if (path[i] == '/' || path[i] == '\0') {
            snprintf(part, sizeof part, "%.*s", (int)i, path);
            make_folder(part);
        }
    char *absolute = realpath(path, NULL);
    if (!absolute) fail("cannot resolve %s: %s", path, strerror(errno));
    return absolute;
}

/* Darknet derives a label's path by replacing the first of each of these words anywhere in
 * the picture's path. */
static void check_darknet_finds_labels(const char *folder)
{
    static const char *const replaced[] = {"images", "JPEGImages", "raw", ".jpg", ".png", ".JPG", ".JPEG"};
    for (size_t i = 0; i < sizeof replaced / sizeof *replaced; i++)
        if (strstr(folder, replaced[i]))
            fail("%s has \"%s\" in its name, and Darknet would look for the labels elsewhere; choose another "
                 "--out", folder, replaced[i]);
    if (strlen(folder) >= PATH_ROOM)
        fail("%s: the name is too long (%d characters at most)", folder, PATH_ROOM - 1);
    if (strpbrk(folder, " \t\r\n"))
        fail("%s: Darknet drops the blanks from a path; choose another --out", folder);
}

static FILE *open_for_writing(const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file) fail("cannot write %s: %s", path, strerror(errno));
    return file;
}

static void close_written(FILE *file, const char *path)
{
    int failed = ferror(file);
    if (fclose(file) != 0 || failed)
        fail("cannot write %s: %s; the set is incomplete", path, strerror(errno));
}

/* One line per figure: class, centre x and y, width, height, each as a part of the
 * picture's width or height. */
static void write_labels(const char *path, const scene *s, int size)
{
    FILE *file = open_for_writing(path);
    double whole = (double)size * UNIT;
    for (int i = 0; i < s->count; i++) {
        point low, high;
        figure_bounds(&s->figures[i], &low, &high);
        fprintf(file, "%d %.6f %.6f %.6f %.6f\n", s->figures[i].kind, (low.x + high.x) / 2.0 / whole,
                (low.y + high.y) / 2.0 / whole, (high.x - low.x) / whole, (high.y - low.y) / whole);
    }
    close_written(file, path);
}

static void write_pictures(const request *r, const char *folder, const char *set, int set_number, int count)
{
    char path[PATH_MAX], list_path[PATH_MAX];
    canvas c = {r->size, malloc((size_t)r->size * r->size * 3)};
    unsigned char *owner = malloc((size_t)r->size * r->size);
    if (!c.rgb || !owner) fail("not enough memory for a picture of %d x %d", r->size, r->size);

    snprintf(list_path, sizeof list_path, "%s/%s.txt", folder, set);
    FILE *list = open_for_writing(list_path);
    for (int i = 0; i < count; i++) {
        shapes_random random = random_stream(r->seed, (uint64_t)set_number, (uint64_t)i);
        scene s = scene_draw(&c, owner, &random);
        snprintf(path, sizeof path, "%s/labels/%s_%05d.txt", folder, set, i);
        write_labels(path, &s, r->size);
        snprintf(path, sizeof path, "%s/images/%s_%05d.png", folder, set, i);
        if (png_write(path, &c) != 0)
            fail("cannot write %s: %s; the set is incomplete", path, strerror(errno));
        fprintf(list, "%s\n", path);
    }
    close_written(list, list_path);
    free(owner);
    free(c.rgb);
}

static void write_data_file(const request *r, const char *folder, const char *path)
{
    char unfinished[PATH_MAX];
    snprintf(unfinished, sizeof unfinished, "%s/shapes.data.unfinished", folder);
    FILE *file = open_for_writing(unfinished);
    fprintf(file, "# shapes --train %d --valid %d --size %d --seed %llu\n", r->train, r->valid, r->size,
            r->seed);
    fprintf(file, "classes = %d\ntrain = %s/train.txt\nvalid = %s/valid.txt\nnames = %s/shapes.names\n"
            "backup = %s/backup\n", KINDS, folder, folder, folder, folder);
    close_written(file, unfinished);
    if (rename(unfinished, path) != 0)
        fail("cannot write %s: %s; the set is incomplete", path, strerror(errno));
}

int main(int argc, char **argv)
{
    static const char *const folders[] = {"images", "labels", "backup"};
    char path[PATH_MAX], data_path[PATH_MAX];
    request r = read_arguments(argc, argv);
    check_darknet_finds_labels(r.out); /* as given, before anything is made; then with the folders above it */
    char *folder = make_out_folder(r.out);
    check_darknet_finds_labels(folder);

    snprintf(data_path, sizeof data_path, "%s/shapes.data", folder);
    if (unlink(data_path) != 0 && errno != ENOENT) fail("cannot replace %s: %s", data_path, strerror(errno));
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, folders[i]);
        make_folder(path);
    }
    write_pictures(&r, folder, "train", 0, r.train);
    write_pictures(&r, folder, "valid", 1, r.valid);

    snprintf(path, sizeof path, "%s/shapes.names", folder);
    FILE *names = open_for_writing(path);
    fputs("circle\nsquare\ntriangle\n", names);
    close_written(names, path);
    write_data_file(&r, folder, data_path);

    printf("%s: %d training and %d validation pictures of %d x %d, seed %llu\n", data_path, r.train,
           r.valid, r.size, r.size, r.seed);
    free(folder);
    return 0;
}
