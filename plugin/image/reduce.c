/* Reduced photos: see reduce.h. */
#include "reduce.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { MOST_REDUCTION = 8 };

/* Sets *across and *down to the largest width and height, in pixels of the network's input, to which the
 * whole photo can be scaled. jitter < 0: the photo is stretched to the network's input. jitter >= 0: it is
 * fitted as in pjreddie's load_data_detection: jitter first changes the photo's aspect ratio (width over
 * height). A photo whose new ratio is below 1 fills the input's height; any other fills its width. */
static void spread(const amp_photo_use *use, int w, int h, double *across, double *down)
{
    double change = (1 + use->jitter) / (1 - use->jitter), shape = (double)w / h;
    double least = shape / change, most = shape * change;
    *across = use->w;
    *down = use->h;
    if (use->jitter < 0) return;
    if (use->jitter >= 1 || (least < 1 && most >= 1)) *across = *down = fmax(use->w, use->h);
    else if (least >= 1) *down = use->w / least;
    else *across = use->h * most;
}

int amp_reduction(const amp_photo_use *use, double scale, int w, int h)
{
    double across, down;
    int reduction = scale > 0 ? MOST_REDUCTION : 1;
    spread(use, w, h, &across, &down);
    while (reduction > 1 && (amp_reduced_length(w, reduction) < scale * across
                             || amp_reduced_length(h, reduction) < scale * down)) reduction /= 2;
    return reduction;
}

static int least_of(int a, int b) { return a < b ? a : b; }

/* Replaces each block of reduction x reduction pixels by its average, in place: an average overwrites only
 * pixels that were already read. Returns 0 if out of memory. */
static int average(unsigned char *pixels, int w, int h, int c, int reduction)
{
    unsigned char *averages = pixels;
    size_t channels = (size_t)c, length = (size_t)w * channels;
    uint16_t *sums = malloc(length * sizeof *sums); /* for each column and channel, the sum of the pixels in
                                                       one row of blocks; at most 8 * 255 */
    if (!sums) return 0;
    for (int top = 0; top < h; top += reduction) {
        int rows = least_of(reduction, h - top);
        for (size_t i = 0; i < length; i++) sums[i] = 0;
        for (int y = 0; y < rows; y++) {
            const unsigned char *row = pixels + (size_t)(top + y) * length;
            for (size_t i = 0; i < length; i++) sums[i] = (uint16_t)(sums[i] + row[i]);
        }
        for (int left = 0; left < w; left += reduction) {
            int columns = least_of(reduction, w - left);
            unsigned count = (unsigned)(rows * columns);
            for (size_t k = 0; k < channels; k++) {
                unsigned sum = count / 2;
                for (int x = 0; x < columns; x++) sum += sums[(size_t)(left + x) * channels + k];
                *averages++ = (unsigned char)(sum / count);
            }
        }
    }
    free(sums);
    return 1;
}

int amp_pixels_reduce(amp_pixels *p, int reduction)
{
    p->reduction = reduction;
    p->w = amp_reduced_length(p->photo_w, reduction);
    p->h = amp_reduced_length(p->photo_h, reduction);
    if (reduction == 1) return 1;
    if (!average(p->bytes, p->photo_w, p->photo_h, p->c, reduction)) return 0;
    unsigned char *smaller = realloc(p->bytes, amp_pixels_size(p));
    if (smaller) p->bytes = smaller;
    return 1;
}
