/* Draws photos for loading.sh: bench-photos FOLDER WIDTH HEIGHT COUNT writes FOLDER/0.jpg and so on, of
 * quality 90, with the boxes of what was drawn in FOLDER/0.txt. A scene is discs on a background that
 * changes slowly, with the noise of a camera. The same arguments write the same bytes with the same
 * libjpeg. */
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h> /* needs stdio.h before it */

enum { DISCS = 40 };

static unsigned state;

/* From 0 to below `most`. */
static int draw(int most)
{
    state = state * 1664525 + 1013904223;
    return (int)((unsigned long long)state * (unsigned)most >> 32);
}

typedef struct disc { int x, y, radius, level[3]; } disc;

static void draw_row(unsigned char *row, int w, int h, int y, const disc *discs)
{
    for (int x = 0; x < w; x++)
        for (int k = 0; k < 3; k++)
            row[3 * x + k] = (unsigned char)(60 + 100 * (k == 1 ? x : y) / (k == 1 ? w : h) + draw(16));
    for (const disc *d = discs; d < discs + DISCS; d++)
        for (int x = d->x - d->radius; x <= d->x + d->radius; x++) {
            long dx = x - d->x, dy = y - d->y, r = d->radius;
            if (x < 0 || x >= w || dx * dx + dy * dy > r * r) continue;
            for (int k = 0; k < 3; k++) row[3 * x + k] = (unsigned char)(d->level[k] + draw(16));
        }
}

static int write_photo(const char *folder, int i, int w, int h)
{
    char name[4096];
    disc discs[DISCS];
    struct jpeg_compress_struct jpeg = { 0 };
    struct jpeg_error_mgr errors;
    snprintf(name, sizeof name, "%s/%d.txt", folder, i);
    FILE *labels = fopen(name, "w");
    if (!labels) return 0;
    state = (unsigned)i + 1;
    for (int k = 0; k < DISCS; k++) {
        discs[k] = (disc){ draw(w), draw(h), w / 100 + draw(w / 20), { draw(230), draw(230), draw(230) } };
        fprintf(labels, "0 %f %f %f %f\n", discs[k].x / (double)w, discs[k].y / (double)h,
                2. * discs[k].radius / w, 2. * discs[k].radius / h);
    }
    snprintf(name, sizeof name, "%s/%d.jpg", folder, i);
    FILE *file = fopen(name, "wb");
    JSAMPROW row = malloc(3 * (size_t)w);
    if (fclose(labels) || !file || !row) return 0;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_stdio_dest(&jpeg, file);
    jpeg.image_width = (JDIMENSION)w;
    jpeg.image_height = (JDIMENSION)h;
    jpeg.input_components = 3;
    jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 90, TRUE);
    jpeg_start_compress(&jpeg, TRUE);
    for (int y = 0; y < h; y++) {
        draw_row(row, w, h, y, discs);
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    free(row);
    return fclose(file) == 0;
}

int main(int argc, char **argv)
{
    int w = argc == 5 ? atoi(argv[2]) : 0, h = argc == 5 ? atoi(argv[3]) : 0;
    if (w < 100 || h < 100) {
        fprintf(stderr, "usage: bench-photos FOLDER WIDTH HEIGHT COUNT\n");
        return 2;
    }
    for (int i = 0; i < atoi(argv[4]); i++)
        if (!write_photo(argv[1], i, w, h)) return perror(argv[1]), 1;
    return 0;
}
