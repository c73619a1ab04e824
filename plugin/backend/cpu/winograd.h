/* 3x3 convolutions with stride 1 and padding 1 by Winograd's minimal filtering, F(4x4,3x3): a quarter of the
 * multiplications of the direct sum. S. Winograd, "Arithmetic Complexity of Computations" (1980); A. Lavin
 * and S. Gray, "Fast Algorithms for Convolutional Neural Networks" (2015), which has these matrices, for
 * other points.
 *
 * An output of 4x4 pixels, a tile, depends on 6x6 pixels of the input. The input pixels of the next tile
 * begin four pixels further, so the two inputs overlap by two pixels. Pixels outside the image are 0.
 *
 *        input, 6x6           filter, 3x3                       output, 4x4
 *       d d d d d d
 *       d d d d d d             g g g                             y y y y
 *       d d d d d d     and     g g g   -->  36 products  -->     y y y y     (144 by the direct sum)
 *       d d d d d d             g g g                             y y y y
 *       d d d d d d                                               y y y y
 *       d d d d d d
 *
 * The convolution of a row is a product of two polynomials. If these are given by their values at six points,
 * their product takes one multiplication per point. For the points 0, a, -a, b, -b and infinity, these
 * matrices transform a row of the input, of the filter, and of the products:
 *
 *           a2b2    0   -a2-b2    0     1   0            1/p         1  1  1  1  1  0
 *            0    -ab2   -b2      a     1   0       (1  a  a2)/q     0  a -a  b -b  0
 *      Bt =  0     ab2   -b2     -a     1   0   G = (1 -a  a2)/q At= 0 a2 a2 b2 b2  0
 *            0    -a2b   -a2      b     1   0       (1  b  b2)/r     0 a3 -a3 b3 -b3 1
 *            0     a2b   -a2     -b     1   0       (1 -b  b2)/r
 *            0    a2b2    0    -a2-b2   0   1        0  0  1
 *
 * where a2 is a squared and so on, p = a2b2, q = 2a2(a2 - b2), r = 2b2(b2 - a2). For a tile, the matrices
 * are applied to its rows and to its columns. A dot is the elementwise product in 36 places ("planes"):
 *
 *      y  = At [ (G g Gt) . (Bt d B) ] A        forward
 *      dx = the same formula for dy, with g rotated by 180 degrees, and filters and channels exchanged:
 *                                               backward by data
 *      dg = Gt [ (Bt d B) . (A dy At) ] G       backward by weights: the transposed formula
 *
 * The sum over channels (in backward by weights, over tiles) is taken of the numbers in brackets. So each of
 * the 36 planes is a matrix product, tiles x channels by channels x filters. Lavin and Gray use a = 1 and
 * b = 2. Here a = 5/8 and b = 3/2, which take as many operations and give half the error in fp32, the least
 * of 36 pairs of small fractions. All elements of Bt and At are exact in fp32.
 *
 * If a side of the image is not a multiple of 4, the last tiles are narrow: they have n = 1, 2 or 3 rows or
 * columns of output. For these, the product of polynomials has a lower degree, and its values at the first
 * n + 1 points and infinity are enough. So a row has n + 2 planes instead of 6 (for an image of 13 x 13,
 * three quarters of all products remain). The B of narrow tiles is derived for these points in the same way.
 * Each of its rows is also multiplied by the differences between its point and the omitted points, because G
 * divides by them. So U is the same for all tiles. Tiles are numbered so that those that have a given plane
 * are consecutive:
 *
 *       1 1 1 2     first the bottom tiles of all images (0) if they are narrow, then all others (1), then
 *       1 1 1 2     the rightmost ones (2) if they are narrow, then the corners (3). A plane that the bottom
 *       0 0 0 3     tiles lack is in 1 and 2; one that the rightmost tiles lack, in 0 and 1; one that both
 *                   lack, only in 1.
 *
 * Tensors are NHWC, in fp32 or in halves. Halves are widened when a tile is read and rounded when it is
 * written. Everything in between is fp32, in these layouts:
 *
 *      V = Bt d B, M = V times U, D = A dy At       [plane][channel / 16][tile][16]
 *      U = G g Gt                                   [plane][filter / panel][channel][panel]
 *      g: the masters, in Darknet's arrays        [filter][channel][3 x 3]
 *
 * A panel has as many filters as two vectors have lanes. The stride between planes is padded: if it were a
 * multiple of a large power of two, all 36 planes would compete for the same few cache sets.
 *
 * Blocks of tiles are transformed, multiplied and transformed back while they are in the L2 cache. Threads
 * take blocks. If there are few tiles, the filters are the larger data, and are kept in the L2 cache instead:
 * they are transformed in rectangles, just before their products. In forward and backward by data, the order
 * in which an element is summed does not depend on how the work is cut. In backward by weights, the cut
 * depends only on the shape. So no result depends on the number of threads.
 *
 * Groups are computed one after the other, each as a separate convolution whose channels are a part of a
 * pixel.
 *
 * Results overflow only where the direct sum overflows too. A number between the transforms can be 2^12 times
 * as large as the direct sum's largest terms, so it could be inf where that sum is finite, and an inf or NaN
 * would spread over its tile. So each transform adds up the squares of the numbers that it reads. If the root
 * of this sum exceeds AMP_WINOGRAD_LARGE for a tile or a panel of filters, the tile, or all filters that are
 * transformed together with that panel, are computed by the direct sum, which is slow, but rare. In backward,
 * a tile that contains an inf or a NaN is not: the inf or NaN may spread there. With the direct sum the
 * gradient would contain it too, so the step is skipped in any case, and sooner without that sum. */
#pragma once

#include "rows.h"

#define AMP_WINOGRAD_LARGE 0x1p44f

enum {
    AMP_WINOGRAD_TILE = 4, AMP_WINOGRAD_SIDE = 6, AMP_WINOGRAD_PLANES = 36,
    AMP_WINOGRAD_BLOCK = 256 /* most tiles at a time */
};

typedef enum amp_winograd_pass { AMP_WINOGRAD_FORWARD, AMP_WINOGRAD_DATA, AMP_WINOGRAD_WEIGHTS,
                                 AMP_WINOGRAD_PASSES } amp_winograd_pass;

/* A pass of a convolution: its shapes, and how its work is cut. */
typedef struct amp_winograd {
    const amp_cpu_rows *rows;    /* NULL: the library computes the pass */
    amp_winograd_pass pass;
    amp_dtype dtype;             /* of the tensors */
    int height, width;           /* of x, and so of y */
    size_t in, out;              /* channels per group of the tensor that is read and of the one that is
                                    written; by weights: of x and of dy */
    size_t groups;               /* each group is a separate convolution of consecutive channels */
    int tiles_y, tiles_x;        /* of an image */
    amp_cpu_tile_size last;      /* pixels of output of the image's last tile */
    size_t tiles, block;         /* all tiles; tiles at a time */
    size_t some_in, some_out;    /* channels and filters that are transformed at a time */
    size_t parts;                /* by weights: tiles are divided into this many parts, each with its own
                                    sum; 0: the gradient of each block is added to dw */
} amp_winograd;

/* Whether the convolution needs this pass. */
int amp_winograd_wanted(const amp_conv_desc *, amp_winograd_pass);

/* Decides by rule whether a pass of this convolution uses Winograd, and how the pass is cut
 * (winograd_rule.c). compute: the dtype in which the library would compute the pass. */
amp_winograd amp_winograd_make(const amp_conv_desc *, amp_winograd_pass, amp_dtype compute);

/* Scratch bytes for the number of threads that OpenMP would use now; 0 if rows is NULL. */
size_t amp_winograd_scratch(const amp_winograd *);

/* Forward, or backward by data: y (+)= leaky(sums + bias). filters: OIHW. bias may be NULL. accumulate is
 * only allowed without bias and leaky. */
typedef struct amp_winograd_task {
    const void *x;
    const float *filters, *bias;
    void *y;
    int leaky, accumulate;
} amp_winograd_task;
void amp_winograd_convolve(const amp_winograd *, const amp_winograd_task *, void *scratch);

/* dw += the gradient of the weights, OIHW. */
void amp_winograd_gradient(const amp_winograd *, const void *x, const void *dy, float *dw, void *scratch);
