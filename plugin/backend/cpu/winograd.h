/* Convolutions 3x3 with stride 1 and padding 1 by Winograd's minimal filtering, F(4x4,3x3): a quarter of the
 * multiplications of the direct sum. S. Winograd, "Arithmetic Complexity of Computations" (1980); A. Lavin
 * and S. Gray, "Fast Algorithms for Convolutional Neural Networks" (2015), which has these matrices, for
 * other points.
 *
 * An output of 4x4 pixels, a tile, depends on 6x6 pixels of the input; those of the next tile begin four
 * pixels further, so they overlap by two. Pixels outside the image are 0.
 *
 *        input, 6x6           filter, 3x3                       output, 4x4
 *       d d d d d d
 *       d d d d d d             g g g                             y y y y
 *       d d d d d d     and     g g g   -->  36 products  -->     y y y y     (144 by the direct sum)
 *       d d d d d d             g g g                             y y y y
 *       d d d d d d                                               y y y y
 *       d d d d d d
 *
 * If the six numbers of a row are the values of a polynomial at six points, the convolution of a row is a
 * product of polynomials, with one multiplication per point. With the points 0, a, -a, b, -b, infinity, for a
 * row:
 *
 *           a2b2    0   -a2-b2    0     1   0            1/p         1  1  1  1  1  0
 *            0    -ab2   -b2      a     1   0       (1  a  a2)/q     0  a -a  b -b  0
 *      Bt =  0     ab2   -b2     -a     1   0   G = (1 -a  a2)/q At= 0 a2 a2 b2 b2  0
 *            0    -a2b   -a2      b     1   0       (1  b  b2)/r     0 a3 -a3 b3 -b3 1
 *            0     a2b   -a2     -b     1   0       (1 -b  b2)/r
 *            0    a2b2    0    -a2-b2   0   1        0  0  1
 *
 * with a2 = a squared and so on, p = a2b2, q = 2a2(a2 - b2), r = 2b2(b2 - a2), and for a tile, applied by
 * rows and by columns, where a dot is the elementwise product in 36 places ("planes"):
 *
 *      y  = At [ (G g Gt) . (Bt d B) ] A        forward
 *      dx = the same of dy, with g rotated by 180 degrees and its channels exchanged: backward by data
 *      dg = Gt [ (Bt d B) . (A dy At) ] G       backward by weights: the transposed, on the same matrices
 *
 * Sums over channels (by weights: over tiles) are made on the bracketed numbers, so that each plane is a
 * matrix product: 36 of tiles x channels by channels x filters. Lavin and Gray use the points 1 and 2. 5/8
 * and 3/2 take as many operations and give half the error, the least of 36 pairs of small fractions in fp32,
 * and all of Bt and At is exact in fp32.
 *
 * If a side of the image is not a multiple of 4, the last tiles are narrow: they have n = 1, 2 or 3 rows or
 * columns of output. Their product of polynomials has a lower degree, and its values at the first n + 1
 * points and infinity are enough: n + 2 planes in a row instead of 6 (at 13 x 13 three quarters of all
 * products remain). Their B is derived for these points in the same way; each of its rows is also multiplied
 * by the differences between its point and the points left out, because G divides by them. So U is the same
 * for all tiles. Tiles are numbered so that in each plane the tiles that have it are consecutive:
 *
 *       1 1 1 2     first the bottom tiles of all images (0) if they are narrow, then all others (1), then
 *       1 1 1 2     the rightmost ones (2) if they are narrow, then the corners (3). Planes missing in the
 *       0 0 0 3     bottom tiles have 1 and 2, in the rightmost ones 0 and 1, in both only 1.
 *
 * Tensors are NHWC, as everywhere, in fp32 or in halves, which are widened when a tile is read and rounded
 * when it is written; everything in between is fp32:
 *
 *      V = Bt d B, M = its products, D = A dy At    [plane][channel / 16][tile][16]
 *      U = G g Gt                                   [plane][filter / panel][channel][panel]
 *      g: the masters, in Darknet's arrays        [filter][channel][3 x 3]
 *
 * panel is two vectors. The stride between planes is not a multiple of a power of two, because all 36 would
 * then compete for the same few cache lines.
 *
 * Blocks of tiles are transformed, multiplied and transformed back while they are in the L2 cache; threads
 * take blocks. If there are few tiles, the larger reused data is kept there instead: filters are transformed
 * in rectangles, just before their products. Forward and backward by data, the order of an element's sum does
 * not depend on the cut; by weights the cut depends only on the shape. So no result depends on the number of
 * threads.
 *
 * Groups are computed one after the other, each as a separate convolution whose channels are a part of a
 * pixel.
 *
 * Overflow happens only where the direct sum overflows too. A number between the transforms is up to 2^12
 * times as large as the direct sum's largest terms, and may be inf where that sum is finite; and an inf or
 * NaN would spread over its tile. So each transform adds up the squares of what it reads. If the root of that
 * exceeds AMP_WINOGRAD_LARGE for a tile or for 16 filters, that tile, or those filters, are computed by the
 * direct sum: slow, but rare. In backward, tiles with an inf or a NaN may spread it: with the direct sum the
 * gradient would have it too, so the step is skipped in any case, and soon. */
#pragma once

#include "rows.h"

#define AMP_WINOGRAD_LARGE 0x1p44f

enum {
    AMP_WINOGRAD_TILE = 4, AMP_WINOGRAD_SIDE = 6, AMP_WINOGRAD_PLANES = 36,
    AMP_WINOGRAD_BLOCK = 256 /* most tiles at a time */
};

typedef enum amp_winograd_pass { AMP_WINOGRAD_FORWARD, AMP_WINOGRAD_DATA, AMP_WINOGRAD_WEIGHTS,
                                 AMP_WINOGRAD_PASSES } amp_winograd_pass;

/* A pass of a convolution: its shapes, and how it is cut. */
typedef struct amp_winograd {
    const amp_cpu_rows *rows;    /* NULL: the library computes the pass */
    amp_winograd_pass pass;
    amp_dtype dtype;             /* of the tensors */
    int height, width;           /* of x, and so of y */
    size_t in, out;              /* channels per group: of the tensor read and the one written; by weights
                                    of x and of dy */
    size_t groups;               /* each group is a separate convolution of consecutive channels */
    int tiles_y, tiles_x;        /* of an image */
    amp_cpu_tile_size last;      /* pixels of output of the image's last tile */
    size_t tiles, block;         /* in all; at a time */
    size_t some_in, some_out;    /* filters that are transformed at a time */
    size_t parts;                /* by weights: tiles are divided into this many parts, each with its own
                                    sum; 0: the gradient of each block is added to dw */
} amp_winograd;

/* Whether the convolution needs this pass. */
int amp_winograd_wanted(const amp_conv_desc *, amp_winograd_pass);

/* Decides by rule whether a pass of this convolution uses Winograd, and how it is cut (winograd_rule.c).
 * compute: the dtype in which the library would compute it. */
amp_winograd amp_winograd_make(const amp_conv_desc *, amp_winograd_pass, amp_dtype compute);

/* Scratch bytes for the number of threads that OpenMP would use now; 0 if rows is NULL. */
size_t amp_winograd_scratch(const amp_winograd *);

/* Forward, or backward by data. filters: OIHW. y (+)= leaky(sums + bias): bias may be NULL; accumulate only
 * without bias and leaky. */
typedef struct amp_winograd_task {
    const void *x;
    const float *filters, *bias;
    void *y;
    int leaky, accumulate;
} amp_winograd_task;
void amp_winograd_convolve(const amp_winograd *, const amp_winograd_task *, void *scratch);

/* dw += the gradient of the weights, OIHW. */
void amp_winograd_gradient(const amp_winograd *, const void *x, const void *dy, float *dw, void *scratch);
