/* Images that are read ahead come in their order, each with its own pixels, however slowly they are taken;
 * and a loader may be stopped at any time. */
#include "testing.h"

#include "commands/map/image_loader.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { IMAGES = 60, BROKEN = 7 }; /* every seventh is no image */

typedef struct folder { char path[64]; amp_lines images; } folder;

static int is_broken(int i) { return i % BROKEN == 3; }

/* Image i is 2 x 2 of the grey i. */
static int set_up(void **state)
{
    static folder f;
    amp_error error;
    strcpy(f.path, "/tmp/image_loader_XXXXXX");
    if (!mkdtemp(f.path)) return -1;
    for (int i = 0; i < IMAGES; i++) {
        char name[128];
        snprintf(name, sizeof name, "%s/%d.ppm", f.path, i);
        FILE *file = fopen(name, "w");
        if (!file || amp_lines_add(&f.images, name, strlen(name), &error) != AMP_OK) return -1;
        fputs(is_broken(i) ? "no image\n" : "P6\n2 2\n255\n", file);
        for (int k = 0; k < 12; k++) fputc(i, file);
        fclose(file);
    }
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    folder *f = *state;
    for (size_t i = 0; i < f->images.count; i++) unlink(f->images.line[i]);
    amp_lines_free(&f->images);
    return rmdir(f->path);
}

static struct amp_image_loader *started(const folder *f, amp_image_fit fit)
{
    struct amp_image_loader *loader;
    amp_error error;
    assert_int_equal(amp_image_loader_start(&f->images, 4, 4, fit, &loader, &error), AMP_OK);
    return loader;
}

static void take(const folder *f, struct amp_image_loader *loader, int i)
{
    amp_loaded_image loaded = amp_image_loader_next(loader);
    if (is_broken(i)) {
        assert_null(loaded.fitted);
        assert_non_null(strstr(loaded.failure, f->images.line[i]));
    } else {
        assert_true(loaded.size[0] == 2 && loaded.size[1] == 2);
        for (int k = 0; k < 48; k++) assert_int_equal((int)(loaded.fitted[k] * 255 + .5f), i);
    }
    free(loaded.fitted);
}

static void wait_a_little(void) { nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); }

TEST(images_come_in_their_order)
{
    const amp_image_fit fits[] = {AMP_FIT_LETTERBOX, AMP_FIT_CENTER_CROP};
    for (size_t k = 0; k < 2; k++) {
        struct amp_image_loader *loader = started(*state, fits[k]);
        for (int i = 0; i < IMAGES; i++) {
            if (i % 20 == 0) wait_a_little(); /* so that the threads run as far ahead as they may */
            take(*state, loader, i);
        }
        amp_image_loader_stop(loader);
    }
}

TEST(a_loader_stops_at_any_time)
{
    for (int taken = 0; taken <= IMAGES; taken += 15) {
        struct amp_image_loader *loader = started(*state, AMP_FIT_LETTERBOX);
        for (int i = 0; i < taken; i++) take(*state, loader, i);
        if (taken % 2) wait_a_little();
        amp_image_loader_stop(loader);
    }
    amp_image_loader_stop(NULL);
}

int main(void) { return run_listed_tests("tests", set_up, tear_down); }
