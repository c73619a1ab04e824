/* Decodes JPEGs: see jpeg.h. Uses libjpeg-turbo's accurate integer DCT and its default chroma upsampling. For
 * the DCT and the upsampling, the SIMD code gives the same bits as the C code, so pixels do not depend on the
 * processor. */
#include "jpeg.h"

#include <stddef.h>

#ifdef AMP_JPEG
#include <limits.h>
#include <setjmp.h>
#include <stdlib.h>

#include <jpeglib.h>

#define TEXT(x) #x
#define TEXT_OF(x) TEXT(x)
const char *amp_jpeg_library(void) { return "libjpeg-turbo " TEXT_OF(LIBJPEG_TURBO_VERSION); }

typedef struct decoding {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jmp_buf stop; /* target of longjmp: an error handler of libjpeg must not return */
    FILE *file;
    unsigned char *pixels;
} decoding;

static void stop(j_common_ptr jpeg) { longjmp(((decoding *)jpeg->client_data)->stop, 1); }

/* A level below 0 is a warning: the file is damaged. */
static void report(j_common_ptr jpeg, int level)
{
    if (level < 0) stop(jpeg);
}

static int is_decoded_here(const struct jpeg_decompress_struct *jpeg)
{
    return (jpeg->jpeg_color_space == JCS_YCbCr || jpeg->jpeg_color_space == JCS_GRAYSCALE ||
            jpeg->jpeg_color_space == JCS_RGB) &&
           (size_t)jpeg->image_width * jpeg->image_height <= INT_MAX / 3;
}

/* Decodes into d->pixels. The first error or warning leaves this function by a longjmp to d->stop. */
static void decode(decoding *d, int channels, int reduction)
{
    struct jpeg_decompress_struct *jpeg = &d->jpeg;
    jpeg_create_decompress(jpeg);
    jpeg_stdio_src(jpeg, d->file);
    jpeg_read_header(jpeg, TRUE);
    if (!is_decoded_here(jpeg)) stop((j_common_ptr)jpeg);
    if (!channels) channels = jpeg->num_components;
    jpeg->out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg->dct_method = JDCT_ISLOW;
    jpeg->scale_num = 1;
    jpeg->scale_denom = (unsigned)reduction;
    jpeg_start_decompress(jpeg);
    size_t row = (size_t)jpeg->output_width * (size_t)jpeg->output_components;
    d->pixels = malloc(row * jpeg->output_height);
    if (!d->pixels) stop((j_common_ptr)jpeg);
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW line = d->pixels + row * jpeg->output_scanline;
        jpeg_read_scanlines(jpeg, &line, 1);
    }
    jpeg_finish_decompress(jpeg);
}

/* Returns 1 if the image was decoded, 0 after an error or a warning. */
static int try_to_decode(decoding *d, int channels, int reduction)
{
    if (setjmp(d->stop)) return 0;
    decode(d, channels, reduction);
    return 1;
}

unsigned char *amp_jpeg_decode(FILE *file, int channels, int reduction, int *w, int *h, int *c)
{
    decoding d = { .file = file };
    int is_jpeg = fgetc(file) == 0xff && fgetc(file) == 0xd8;
    rewind(file);
    if (!is_jpeg || (channels != 0 && channels != 1 && channels != 3)) return NULL;
    d.jpeg.err = jpeg_std_error(&d.errors);
    d.jpeg.client_data = &d;
    d.errors.error_exit = stop;
    d.errors.emit_message = report;
    if (try_to_decode(&d, channels, reduction)) {
        *w = (int)d.jpeg.output_width;
        *h = (int)d.jpeg.output_height;
        *c = d.jpeg.output_components;
    } else {
        free(d.pixels);
        d.pixels = NULL;
        rewind(file);
    }
    jpeg_destroy_decompress(&d.jpeg);
    return d.pixels;
}
#else
const char *amp_jpeg_library(void) { return "stb_image"; }

unsigned char *amp_jpeg_decode(FILE *file, int channels, int reduction, int *w, int *h, int *c)
{
    return NULL;
}
#endif
