/* JPEGs that libjpeg-turbo decodes are stb_image's pixels to a few levels; what the two read differently,
 * or of which it has a warning, is left to stb_image; and no damage crashes it. */
#include "testing.h"

#ifdef AMP_JPEG
#include <jpeglib.h>

#include "image/jpeg.h"
#include "image/reduce.h"
#include "stb_image.h" /* Darknet's */
#include "test_folder.h"

enum { W = 53, H = 37 };

static const char name[] = "image.jpg";

/* How an image is encoded; progressive, and how often its colours are sampled for one sample of its
 * brightness. */
typedef struct form {
    J_COLOR_SPACE colours;
    int channels, progressive, restart, horizontal, vertical, arithmetic;
} form;

static const form forms[] = {
    { JCS_YCbCr, 3, 0, 0, 1, 1, 0 }, { JCS_YCbCr, 3, 0, 0, 2, 2, 0 }, { JCS_YCbCr, 3, 0, 3, 2, 1, 0 },
    { JCS_YCbCr, 3, 1, 0, 2, 2, 0 }, { JCS_YCbCr, 3, 1, 0, 1, 2, 0 }, { JCS_GRAYSCALE, 1, 0, 0, 1, 1, 0 },
    { JCS_GRAYSCALE, 1, 1, 2, 1, 1, 0 }, { JCS_RGB, 3, 0, 0, 1, 1, 0 },
};

static void write_jpeg(form f)
{
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    unsigned char row[4 * W];
    JSAMPROW rows = row;
    FILE *file = fopen(name, "wb");
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_stdio_dest(&jpeg, file);
    jpeg.image_width = W;
    jpeg.image_height = H;
    jpeg.input_components = f.channels;
    jpeg.in_color_space = f.channels == 1 ? JCS_GRAYSCALE : f.channels == 4 ? JCS_CMYK : JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_colorspace(&jpeg, f.colours);
    jpeg_set_quality(&jpeg, 92, TRUE);
    if (f.progressive) jpeg_simple_progression(&jpeg);
    jpeg.arith_code = (boolean)f.arithmetic;
    jpeg.restart_in_rows = f.restart;
    jpeg.comp_info[0].h_samp_factor = f.horizontal;
    jpeg.comp_info[0].v_samp_factor = f.vertical;
    jpeg_start_compress(&jpeg, TRUE);
    for (int y = 0; y < H; y++) {
        for (int i = 0; i < W * f.channels; i++)
            row[i] = (unsigned char)(128 + 3 * y * (i % f.channels - 1) + 90 * (i / f.channels > 20 + y / 2));
        jpeg_write_scanlines(&jpeg, &rows, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    fclose(file);
}

static unsigned char *decoded(int channels, int reduction, int *w, int *h, int *c)
{
    FILE *file = fopen(name, "rb");
    assert_non_null(file);
    unsigned char *pixels = amp_jpeg_decode(file, channels, reduction, w, h, c);
    if (!pixels) assert_int_equal(ftell(file), 0);
    fclose(file);
    return pixels;
}

static int is_decoded(void)
{
    int w, h, c;
    unsigned char *pixels = decoded(3, 1, &w, &h, &c);
    free(pixels);
    return pixels != NULL;
}

/* The most levels by which a pixel differs from stb_image's. */
static int difference(int channels)
{
    int w, h, c, stb_w, stb_h, stb_c, most = 0;
    unsigned char *ours = decoded(channels, 1, &w, &h, &c);
    unsigned char *stbs = stbi_load(name, &stb_w, &stb_h, &stb_c, channels);
    assert_true(ours && stbs);
    assert_true(w == stb_w && h == stb_h && c == (channels ? channels : stb_c));
    for (int i = 0; i < w * h * c; i++) most = abs(ours[i] - stbs[i]) > most ? abs(ours[i] - stbs[i]) : most;
    free(ours);
    free(stbs);
    return most;
}

/* Both round, and stb_image interpolates colours in one direction at a time. */
TEST(pixels_are_stb_images)
{
    const int channels[] = { 0, 1, 3 };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (int k = 0; k < 3; k++) {
            if (forms[i].colours == JCS_RGB && channels[k] == 1) continue; /* each has weights of its own */
            write_jpeg(forms[i]);
            int most = difference(channels[k]);
            if (most > 4) fail_msg("form %zu: a pixel differs by %d levels", i, most);
        }
}

/* To about averages: the decoder leaves out the finest waves of its transform. Brightness tells, which is not
 * sampled less often than pixels are: a shift by a pixel would differ by more than ten levels. */
TEST(a_jpeg_is_reduced_by_the_decoder)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (int reduction = 2; reduction <= 8; reduction *= 2) {
            int w, h, c;
            double sum = 0;
            amp_pixels p = { .photo_w = W, .photo_h = H };
            write_jpeg(forms[i]);
            p.bytes = decoded(1, 1, &w, &h, &p.c);
            unsigned char *ours = decoded(1, reduction, &w, &h, &c);
            assert_true(p.bytes && ours && amp_pixels_reduce(&p, reduction));
            assert_true(w == p.w && h == p.h && c == p.c);
            for (size_t k = 0; k < amp_pixels_size(&p); k++) sum += abs(ours[k] - p.bytes[k]);
            if (sum > 4. * (double)amp_pixels_size(&p))
                fail_msg("form %zu by %d: %g levels", i, reduction, sum / (double)amp_pixels_size(&p));
            free(p.bytes);
            free(ours);
        }
}

TEST(other_files_are_left_to_stb_image)
{
    put_file(name, "");
    assert_false(is_decoded());
    put_file(name, "P6\n1 1\n255\nabc");
    assert_false(is_decoded());
    put_file(name, "\xff\xd8");
    assert_false(is_decoded());
    write_jpeg((form){ JCS_CMYK, 4, 0, 0, 1, 1, 0 });
    assert_false(is_decoded());
    write_jpeg((form){ JCS_YCCK, 4, 0, 0, 1, 1, 0 });
    assert_false(is_decoded());
}

TEST(arithmetic_coding_is_decoded_where_the_library_has_it)
{
    int w, h, c;
#ifndef D_ARITH_CODING_SUPPORTED
    skip();
#endif
    write_jpeg((form){ JCS_YCbCr, 3, 0, 0, 2, 2, 1 });
    assert_null(stbi_load(name, &w, &h, &c, 3));
    assert_true(is_decoded());
}

/* Files of every seventh length, and 300 with one to four bits turned over. */
TEST(damage_is_left_to_stb_image_or_decoded)
{
    unsigned draw = 1;
    for (int progressive = 0; progressive < 2; progressive++) {
        write_jpeg((form){ JCS_YCbCr, 3, progressive, 0, 2, 2, 0 });
        size_t size;
        unsigned char *whole = file_bytes(name, &size), *damaged = malloc(size);
        for (size_t length = 0; length < size - 2; length += 7) { /* the last two bytes end the image */
            put_bytes(name, whole, length);
            assert_false(is_decoded());
        }
        for (int i = 0; i < 150; i++) {
            memcpy(damaged, whole, size);
            for (int k = 0; k <= i % 4; k++) {
                draw = draw * 1664525 + 1013904223;
                damaged[2 + (draw >> 8) % (size - 2)] ^= (unsigned char)(1 << (draw >> 29));
            }
            put_bytes(name, damaged, size);
            is_decoded();
        }
        free(whole);
        free(damaged);
    }
}

int main(void) { return run_listed_tests("jpeg", enter_folder, leave_folder); }
#else
int main(void)
{
    puts("skipped: built without libjpeg-turbo");
    return 77;
}
#endif
