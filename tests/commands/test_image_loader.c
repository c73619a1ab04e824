/* Images that are read ahead come in their order, each with its own pixels, however slowly they are taken;
 * and a loader may be stopped at any time. What is made of a decoded image are stock's floats, and an image
 * that cache=ram has kept is no longer read. */
#include "testing.h"

#include <math.h>

#include "commands/map/evaluation.h"
#include "darknet.h"
#include "host/data/image_cache.h"
#include "host/data/loading.h"
#include "requests.h"
#include "test_folder.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { IMAGES = 60, BROKEN = 7 }; /* every seventh is no image */

/* A photo, and the size of a network that it is placed in. */
enum { PHOTO_W = 320, PHOTO_H = 240, PHOTO = PHOTO_W * PHOTO_H, SIDE = 40, INPUT = 3 * SIDE * SIDE };

static char photo[] = "photo.jpg";
static amp_lines images; /* 0.ppm and so on: image i is of the grey i */
static float *stock;     /* of the photo, placed before AMP is there */

data load_data_detection(int n, char **paths, int m, int w, int h, int boxes, int classes, float jitter,
                         float hue, float saturation, float exposure);

static int is_broken(int i) { return i % BROKEN == 3; }

/* 2 x 2 pixels. */
static int write_grey(const char *name, int grey, int broken)
{
    FILE *file = fopen(name, "w");
    if (!file) return 0;
    fputs(broken ? "no image\n" : "P6\n2 2\n255\n", file);
    for (int k = 0; k < 12; k++) fputc(grey, file);
    return fclose(file) == 0;
}

/* Colours that change by a few levels from pixel to pixel: where a sample lies hardly depends on how
 * -Ofast has rounded it, and a wrong pixel shows. */
static int byte_of_photo(unsigned i)
{
    unsigned x = i / 3 % PHOTO_W, y = i / 3 / PHOTO_W, level = (i % 3 + 1) * x + 2 * y + 80 * (i % 3);
    return (int)(level % 512 < 256 ? level % 256 : 255 - level % 256);
}

/* And its labels, none, beside it. Darknet's decoder goes by what a file holds, not by its name. */
static int write_photo(void)
{
    put_file("photo.txt", "");
    FILE *file = fopen(photo, "w");
    if (!file) return 0;
    fprintf(file, "P6\n%d %d\n255\n", PHOTO_W, PHOTO_H);
    for (unsigned i = 0; i < 3 * PHOTO; i++) fputc(byte_of_photo(i), file);
    return fclose(file) == 0;
}

/* A training's input of the photo, the caller's. */
static float *placed(void)
{
    char *path = photo;
    srand(7);
    data d = load_data_detection(1, &path, 1, SIDE, SIDE, 1, 1, .3f, .1f, 1.5f, 1.5f);
    float *input = d.X.vals[0];
    free(d.X.vals);
    free_matrix(d.y);
    return input;
}

static int set_up(void **state)
{
    if (enter_folder(state)) return -1;
    for (int i = 0; i < IMAGES; i++) {
        char name[32];
        snprintf(name, sizeof name, "%d.ppm", i);
        if (!write_grey(name, i, is_broken(i))) return -1;
        amp_lines_add(&images, "%s", name);
    }
    if (!write_photo()) return -1;
    stock = placed();
    return 0;
}

static int tear_down(void **state)
{
    amp_lines_free(&images);
    free(stock);
    return leave_folder(state);
}

static struct amp_image_loader *started(amp_image_fit fit)
{
    return amp_image_loader_start(&images, 4, 4, 3, fit);
}

static void take(struct amp_image_loader *loader, int i)
{
    amp_loaded_image loaded = amp_image_loader_next(loader);
    if (is_broken(i)) {
        assert_null(loaded.fitted);
        assert_non_null(strstr(loaded.failure, images.line[i]));
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
        struct amp_image_loader *loader = started(fits[k]);
        for (int i = 0; i < IMAGES; i++) {
            if (i % 20 == 0) wait_a_little(); /* so that the threads run as far ahead as they may */
            take(loader, i);
        }
        amp_image_loader_stop(loader);
    }
}

TEST(a_loader_stops_at_any_time)
{
    for (int taken = 0; taken <= IMAGES; taken += 15) {
        struct amp_image_loader *loader = started(AMP_FIT_LETTERBOX);
        for (int i = 0; i < taken; i++) take(loader, i);
        if (taken % 2) wait_a_little();
        amp_image_loader_stop(loader);
    }
}

/* ---- sizes ---- */

/* A file of these first bytes and then of zeros. */
static const char *why_unreadable(const char *begins, size_t zeros)
{
    int size[2];
    const char *why = NULL;
    FILE *file = fopen("one.jpg", "w");
    fputs(begins, file);
    while (zeros--) fputc(0, file);
    fclose(file);
    float *fitted = amp_fork_read_image("one.jpg", 4, 4, 3, AMP_FIT_LETTERBOX, size, &why);
    if (!fitted) return why;
    free(fitted);
    return "";
}

TEST(a_size_that_is_none_is_refused_before_decoding)
{
    assert_string_equal(why_unreadable("P6\n0 0\n255\n", 9), "it has no pixels: its size is 0 x 0");
    assert_string_equal(why_unreadable("P6\n3 0\n255\n", 9), "it has no pixels: its size is 3 x 0");
    assert_non_null(strstr(why_unreadable("P6\n2000000 1\n255\n", 6000000), "2000000 x 1 is too large"));
    assert_non_null(strstr(why_unreadable("P6\n30000 30000\n255\n", 9), "30000 x 30000 is too large"));
    requests_begin();
    assert_non_null(strstr(why_unreadable("#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 100000 +X 255\n", 1300),
                           "255 x 100000 pixels, too many for its 13"));
    requests_end();
    assert_true(requests_most < 100000);
    assert_string_equal(why_unreadable("P6\n4 4\n255\n", 48), "");
}

/* Of 0 in one half and 1 in the other; each made as narrow or as low as an image can be. */
TEST(a_side_of_one_pixel_is_no_division_by_zero)
{
    float pixels[] = { 0, 0, 1, 1 };
    image low = { .w = 2, .h = 2, .c = 1, .data = pixels };
    for (int w = 1; w <= 3; w++)
        for (int h = 1; h <= 3; h++) {
            image small = resize_image(low, w, h);
            for (int i = 0; i < w * h; i++)
                assert_true(small.data[i] == (h == 1 ? 0 : (float)(i / w) / (float)(h - 1)));
            free_image(small);
        }
}

/* ---- decoded images ---- */

/* All 256 bytes in each channel, before AMP is there and with it. */
TEST(floats_of_a_decoded_image_are_stocks_to_the_bit)
{
    enum { W = 64, H = 4, BYTES = 3 * W * H };
    char name[] = "all.ppm", other[] = "another file";
    unsigned char *bytes = malloc(BYTES);
    for (int i = 0; i < BYTES; i++) bytes[i] = (unsigned char)(i / 3 * (i % 3 * 2 + 1));
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fprintf(file, "P6\n%d %d\n255\n", W, H);
    assert_int_equal(fwrite(bytes, 1, BYTES, file), BYTES);
    fclose(file);
    image stocks = load_image_color(name, 0, 0), ours = { 0 };
    assert_false(darknet_amp_read_image(name, 3, &ours.w, &ours.h, &ours.c, &ours.data));
    amp_loading_watch();
    assert_true(darknet_amp_read_image(name, 3, &ours.w, &ours.h, &ours.c, &ours.data));
    int w, h, c;
    float *floats = amp_image_cache_add(other, 3, &(amp_pixels){ bytes, W, H, 3, W, H, 1 }, &w, &h, &c);
    assert_non_null(floats);
    assert_true(w == W && h == H && c == 3);
    assert_true(ours.w == W && ours.h == H && ours.c == 3);
    assert_memory_equal(ours.data, stocks.data, BYTES * sizeof(float));
    assert_memory_equal(floats, stocks.data, BYTES * sizeof(float));
    bytes = calloc(2 * 3, 1);
    bytes[4] = 51;
    float *grey = amp_image_cache_add(other, 1, &(amp_pixels){ bytes, 2, 3, 1, 2, 3, 1 }, &w, &h, &c);
    for (int i = 0; i < 6; i++) assert_true(grey[i] == (i == 4 ? .2f : 0));
    free(grey);
    free(floats);
    free_image(stocks);
    free_image(ours);
}

/* The photo is placed and coloured as stock does it, each within 1e-6 of the exact numbers, and takes at
 * most `bytes` a pixel while it is. */
static void check_placed(size_t bytes)
{
    requests_begin();
    float *input = placed();
    requests_end();
    float most = 0;
    for (int i = 0; i < INPUT; i++) most = fmaxf(most, fabsf(input[i] - stock[i]));
    if (most > 2e-6f) fail_msg("a pixel differs from stock's by %g", (double)most);
    free(input);
    /* besides the photo: the input, a file's buffer, labels */
    if (requests_most > bytes * PHOTO + INPUT * sizeof *input + 20000)
        fail_msg("%zu bytes are held for a photo of %d pixels", requests_most, PHOTO);
}

TEST(a_detectors_image_is_sampled_from_its_bytes)
{
    amp_loading_watch();
    check_placed(3);
    image whole = load_image_color(photo, 0, 0); /* no longer as bytes */
    assert_int_equal(whole.c, 3);
    for (unsigned i = 0; i < 3; i++)
        assert_true(whole.data[i * PHOTO + 1] == (float)(byte_of_photo(3 + i) / 255.));
    free_image(whole);
}

static void *load_all(void *wrong)
{
    amp_image_cache_begin(1);
    for (int i = 0; i < IMAGES; i++) {
        if (is_broken(i)) continue;
        image loaded = load_image_color(images.line[i], 0, 0);
        for (int k = 0; k < 12; k++) if (loaded.data[k] != (float)(i / 255.)) return wrong;
        free_image(loaded);
    }
    return NULL;
}

/* Four loaders at once, twice; there is room for the photo, which comes first, and for some of the images.
 * What is measured is read again. */
TEST(kept_images_are_not_read_again)
{
    enum { LOADERS = 4, BYTES = 1000 };
    amp_lines list;
    amp_error error;
    int w, h, c, kept = 0;
    FILE *file = fopen("list", "w");
    for (int i = 0; i < IMAGES; i++) fprintf(file, "%s\n", images.line[i]);
    fprintf(file, "%s\n", photo);
    fclose(file);
    assert_int_equal(amp_paths_read("list", "the list", &list, &error), AMP_OK);
    amp_image_cache_ask(&list, AMP_CACHE_RAM, 0, "");
    amp_image_cache_begin(1);
    assert_null(list.line);
    assert_null(amp_image_cache_find(images.line[0], 3, &w, &h, &c));
    size_t table = 2 * sizeof(void *) * (IMAGES + 1); /* a place's path and its image */
    assert_int_equal(amp_image_cache_open(&(amp_photo_use){ 4, 4, 0 }, BYTES + 3 * PHOTO + table, 4, &error),
                     AMP_OK);
    for (int i = 0; i < 3; i++) check_placed(i ? sizeof(float) : 3 + sizeof(float));
    for (int round = 0; round < 2; round++) {
        pthread_t threads[LOADERS];
        for (int k = 0; k < LOADERS; k++)
            assert_int_equal(pthread_create(&threads[k], NULL, load_all, &images), 0);
        for (int k = 0; k < LOADERS; k++) {
            void *wrong;
            pthread_join(threads[k], &wrong);
            assert_null(wrong);
        }
    }
    for (int i = 0; i < IMAGES; i++) {
        const char *name = images.line[i];
        assert_null(amp_image_cache_find(name, 1, &w, &h, &c)); /* three channels were asked for */
        float *floats = amp_image_cache_find(name, 3, &w, &h, &c);
        if (!floats) continue;
        assert_false(is_broken(i));
        assert_true(w == 2 && h == 2 && c == 3);
        kept++;
        free(floats);
        assert_true(write_grey(name, 255, 0));
        image loaded = load_image_color((char *)name, 0, 0);
        for (int k = 0; k < 12; k++) assert_true(loaded.data[k] == (float)(i / 255.));
        free_image(loaded);
        amp_image_cache_end();
        assert_null(amp_image_cache_find(name, 3, &w, &h, &c));
        amp_image_cache_begin(1);
        assert_true(write_grey(name, i, 0));
    }
    amp_image_cache_end();
    if (kept < 5 || kept * 12 > BYTES || kept > IMAGES / 2) fail_msg("%d images are kept", kept);
}

int main(void) { return run_listed_tests("tests", set_up, tear_down); }
