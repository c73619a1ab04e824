/* Convolutions 3x3 with stride 1 and padding 1 by Winograd's minimal filtering, F(4x4,3x3): a quarter of the
 * multiplications of the direct sum. S. Winograd, "Arithmetic Complexity of Computations" (1980); A. Lavin
 * and S. Gray, "Fast Algorithms for Convolutional Neural Networks" (2015), whose matrices these are, at other
 * points.
 *
 * An output of 4x4 pixels, a tile, depends on 6x6 pixels of the input; those of the next tile begin four
 * pixels further, and overlap them by two. Beyond the image are zeros.
 *
 *        input, 6x6           filter, 3x3                       output, 4x4
 *       d d d d d d
 *       d d d d d d             g g g                             y y y y
 *       d d d d d d     and     g g g   -->  36 products  -->     y y y y     (144 by the direct sum)
 *       d d d d d d             g g g                             y y y y
 *       d d d d d d                                               y y y y
 *       d d d d d d
 *
 * Read the six numbers of a row as values of a polynomial at six points: then the convolution of a row is a
 * product of polynomials, one multiplication a point. With the points 0, a, -a, b, -b, infinity, for a row:
 *
 *           a2b2    0   -a2-b2    0     1   0            1/p         1  1  1  1  1  0
 *            0    -ab2   -b2      a     1   0       (1  a  a2)/q     0  a -a  b -b  0
 *      Bt =  0     ab2   -b2     -a     1   0   G = (1 -a  a2)/q At= 0 a2 a2 b2 b2  0
 *            0    -a2b   -a2      b     1   0       (1  b  b2)/r     0 a3 -a3 b3 -b3 1
 *            0     a2b   -a2     -b     1   0       (1 -b  b2)/r
 *            0    a2b2    0    -a2-b2   0   1        0  0  1
 *
 * with a2 = a squared and so on, p = a2b2, q = 2a2(a2 - b2), r = 2b2(b2 - a2), and for a tile, twice, by rows
 * and by columns, with a dot for the product of each number with the one in the same of 36 places ("planes"):
 *
 *      y  = At [ (G g Gt) . (Bt d B) ] A        forward
 *      dx = the same of dy, with g turned by 180 degrees and its channels exchanged: backward by data
 *      dg = Gt [ (Bt d B) . (A dy At) ] G       backward by weights: the transposed, on the same matrices
 *
 * Sums over channels (by weights: over tiles) are made between the brackets, so that each plane is a matrix
 * product: 36 of tiles x channels by channels x filters. Lavin and Gray take the points 1 and 2. 5/8 and 3/2
 * cost as many operations and half the error: of 36 pairs of small fractions they left the least, in fp32,
 * and all of Bt and At is exact in it.
 *
 * Where a side of the image is no multiple of 4, the last tiles are narrow: n = 1, 2 or 3 rows or columns of
 * output are left. Their product of polynomials has a degree so much lower, and its values at the first n + 1
 * points and infinity will do: n + 2 planes in a row instead of 6 (at 13 x 13 three quarters of all products
 * are left). Their B is derived for these points in the same way; each of its rows is also multiplied by the
 * differences of its point to those that are left out, by which G divides. So U is the same for all tiles.
 * Tiles are numbered such that in each plane those that have it follow on each other:
 *
 *       1 1 1 2     first the lowest ones of all images (0) if these are narrow, then all others (1), then
 *       1 1 1 2     the rightmost ones (2) if these are narrow, last the corners (3). A plane that low tiles
 *       0 0 0 3     lack is of 1 and 2, one that right tiles lack of 0 and 1, one that both lack of 1 alone.
 *
 * Tensors are NHWC, as everywhere, in fp32 or in halves: these are widened when a tile is read and rounded
 * when it is written, and all between is fp32. What lies between:
 *
 *      V = Bt d B, M = its products, D = A dy At    [plane][channel / 16][tile][16]
 *      U = G g Gt                                   [plane][filter / panel][channel][panel]
 *      g: the masters, where Darknet has them       [filter][channel][3 x 3]
 *
 * panel is two vectors. The distance between planes is no multiple of a power of two, or all 36 would meet in
 * the same few lines of a cache.
 *
 * Blocks of tiles are transformed, multiplied and transformed back while they are in the second-level cache;
 * threads take blocks. What is large and reused lies there instead where there are few tiles: then filters
 * are transformed by rectangles, just before their products. Forward and backward by data, an element's sum
 * has the same order whatever the cut; by weights the cut depends on the shape alone. So no result depends on
 * the number of threads.
 *
 * Groups are computed one after the other, each as a convolution of its own, whose channels are a part of a
 * pixel.
 *
 * No overflow that the direct sum has not. A number between the transforms is up to 2^12 times as large as
 * the direct sum's largest terms, and so may be inf where that is finite; and an inf or NaN would spread over
 * its tile. So each transform adds up the squares of what it reads. Where the root of that is above
 * AMP_WINOGRAD_LARGE, of a tile or of 16 filters, that tile, or those filters, are computed by the direct
 * sum: slowly, but that is rare. Backward, tiles with an inf or a NaN are left to spread it: the direct sum
 * would have it in the gradient too, so the step is skipped in any case, and soon. */
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
    const amp_cpu_rows *rows;    /* NULL: the pass is the library's */
    amp_winograd_pass pass;
    amp_dtype dtype;             /* of the tensors */
    int height, width;           /* of x, and so of y */
    size_t in, out;              /* channels of a group: of the tensor that is read and of the one that is
                                    written; by weights of x and of dy */
    size_t groups;               /* each is a convolution of its own, of channels after each other */
    int tiles_y, tiles_x;        /* of an image */
    amp_cpu_tile_size last;      /* pixels of output of its last tile */
    size_t tiles, block;         /* all; at a time */
    size_t some_in, some_out;    /* the filters that are transformed at a time */
    size_t parts;                /* by weights: tiles are in so many parts, each with its own sum; 0: the
                                    gradient of each block is added to dw */
} amp_winograd;

/* Decides by rule whether a pass of this convolution is computed so, and how it is cut (winograd_rule.c).
 * compute: what the library would compute it in. */
amp_winograd amp_winograd_make(const amp_conv_desc *, amp_winograd_pass, amp_dtype compute);

/* Bytes of scratch for as many threads as OpenMP would use now; 0 where rows is NULL. */
size_t amp_winograd_scratch(const amp_winograd *);

/* Forward, or backward by data. filters: OIHW. y (+)= leaky(sums + bias): bias may be NULL; accumulate
 * without bias and leaky only. */
typedef struct amp_winograd_task {
    const void *x;
    const float *filters, *bias;
    void *y;
    int leaky, accumulate;
} amp_winograd_task;
void amp_winograd_convolve(const amp_winograd *, const amp_winograd_task *, void *scratch);

/* dw += the gradient of the weights, OIHW. */
void amp_winograd_gradient(const amp_winograd *, const void *x, const void *dy, float *dw, void *scratch);
