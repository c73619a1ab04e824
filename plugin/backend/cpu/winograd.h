/* 3x3 convolutions with stride 1 and padding 1 by Winograd's minimal filtering, F(4x4,3x3). It takes a
 * quarter of the direct sum's multiplications. Sources: S. Winograd, "Arithmetic Complexity of Computations"
 * (1980); A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural Networks" (2015), which has these
 * matrices for other points.
 *
 * A tile is 4x4 pixels of the output. It depends on 6x6 pixels of the input, which overlap the next tile's
 * input by two pixels. Pixels outside the image are 0.
 *
 *        input, 6x6           filter, 3x3                       output, 4x4
 *       d d d d d d
 *       d d d d d d             g g g                             y y y y
 *       d d d d d d     and     g g g   -->  36 products  -->     y y y y     (144 by the direct sum)
 *       d d d d d d             g g g                             y y y y
 *       d d d d d d                                               y y y y
 *       d d d d d d
 *
 * The convolution of a row is a product of two polynomials. If both polynomials are given by their values at
 * six points, their product takes one multiplication per point. For the points 0, a, -a, b, -b and infinity,
 * the matrix Bt transforms a row of the input, G a row of the filter, and At a row of the products:
 *
 *           a2b2    0   -a2-b2    0     1   0            1/p         1  1  1  1  1  0
 *            0    -ab2   -b2      a     1   0       (1  a  a2)/q     0  a -a  b -b  0
 *      Bt =  0     ab2   -b2     -a     1   0   G = (1 -a  a2)/q At= 0 a2 a2 b2 b2  0
 *            0    -a2b   -a2      b     1   0       (1  b  b2)/r     0 a3 -a3 b3 -b3 1
 *            0     a2b   -a2     -b     1   0       (1 -b  b2)/r
 *            0    a2b2    0    -a2-b2   0   1        0  0  1
 *
 * Here a2 is a squared and so on, p = a2b2, q = 2a2(a2 - b2), r = 2b2(b2 - a2). For a tile, the matrices are
 * applied to its rows and to its columns. A dot is the elementwise product in 36 places ("planes"):
 *
 *      y  = At [ (G g Gt) . (Bt d B) ] A        forward
 *      dx = the same formula for dy, with g rotated by 180 degrees, and filters and channels exchanged:
 *                                               data gradient
 *      dg = Gt [ (Bt d B) . (A dy At) ] G       weight gradient: the transposed formula
 *
 * The products in brackets are summed over channels (for the weight gradient, over tiles) before the outer
 * matrices are applied. So each of the 36 planes is a matrix product, tiles x channels by channels x filters.
 * Lavin and Gray use a = 1 and b = 2. Here a = 5/8 and b = 3/2: this halves the error in fp32, and of 36
 * pairs of small fractions, this pair has the smallest error. All elements of Bt and At are exact in fp32.
 *
 * If a side of the image is not a multiple of 4, the last tiles are narrow: they have n = 1, 2 or 3 rows or
 * columns of output. Their products of polynomials have a lower degree, so the first n + 1 points and
 * infinity are enough, and a row has n + 2 planes instead of 6. (For an image of 13 x 13, three quarters of
 * all products remain.) Narrow tiles use the same U (the transformed filters), but their own Bt, derived for
 * their points. G divides the row of a point by the differences between this point and all other points. A
 * narrow tile omits some points, so its Bt multiplies the row by the differences from the omitted points.
 * Tiles are numbered so that those with a given plane are consecutive:
 *
 *       1 1 1 2     kind 0: the bottom tiles of all images, if they are narrow; kind 1: all other tiles;
 *       1 1 1 2     kind 2: the rightmost tiles, if they are narrow; kind 3: the corners. If the bottom tiles
 *       0 0 0 3     lack a plane, kinds 1 and 2 have it; if the rightmost tiles lack it, kinds 0 and 1 have
 *                   it; if both lack it, only kind 1 has it.
 *
 * Tensors are NHWC, in fp32 or halves. Halves are widened when a tile is read, and rounded when it is
 * written. Everything in between is fp32:
 *
 *      V = Bt d B, M = V times U, D = A dy At       [plane][channel / 16][tile][16]
 *      U = G g Gt                                   [plane][filter / panel][channel][panel]
 *      g: the masters, in Darknet's arrays        [filter][channel][3 x 3]
 *
 * A panel has as many filters as two vectors have lanes. The stride between planes is padded, so that the
 * planes do not compete for the same few cache sets.
 *
 * A block of tiles is transformed, multiplied and transformed back while it is in the L2 cache. Threads
 * divide the blocks. With few tiles, the filters are the larger data: rectangles of filters and channels are
 * kept in the L2 cache instead, and are transformed just before their products. No result depends on the
 * number of threads: in forward and the data gradient, the order in which an element's terms are summed does
 * not depend on how the work is cut; in the weight gradient, the cut depends only on the shape.
 *
 * Results overflow only where the direct sum overflows too. Numbers between the transforms can be 2^12 times
 * as large as the direct sum's largest terms, and an inf or NaN spreads over its whole tile. Therefore each
 * transform also sums the squares of the numbers that it reads. A tile or a panel of filters is "large" if
 * the root of this sum exceeds AMP_WINOGRAD_LARGE. The direct sum computes large tiles, and all filters that
 * are transformed together with a large panel. This is slow, but rare.
 *
 * In a backward pass, a tile with an inf or NaN is not treated as large: the gradient has an inf or NaN with
 * the direct sum too, so the step is skipped in any case. */
#pragma once

#include "rows.h"

#define AMP_WINOGRAD_LARGE 0x1p44f

enum {
    AMP_WINOGRAD_TILE = 4, AMP_WINOGRAD_SIDE = 6, AMP_WINOGRAD_PLANES = 36,
    AMP_WINOGRAD_BLOCK = 256 /* maximum number of tiles in a block */
};

typedef enum amp_winograd_pass { AMP_WINOGRAD_FORWARD, AMP_WINOGRAD_DATA, AMP_WINOGRAD_WEIGHTS,
                                 AMP_WINOGRAD_PASSES } amp_winograd_pass;

/* One pass of a convolution: its shapes, and how its work is cut. */
typedef struct amp_winograd {
    int is_used;                 /* 0: the library computes the pass, and all other members are 0 */
    const amp_cpu_rows *rows;
    amp_winograd_pass pass;
    amp_dtype dtype;             /* dtype of the tensors */
    int height, width;           /* size of x and of y */
    size_t in, out;              /* channels per group of input and output (weight gradient: of x and dy) */
    size_t groups;               /* each group is a separate convolution of consecutive channels */
    int tiles_y, tiles_x;        /* tiles per image: in a column, and in a row */
    amp_cpu_tile_size last;      /* rows and columns of output in the last tile of an image */
    size_t tiles, block;         /* number of tiles, in all images and in a block */
    size_t some_in, some_out;    /* channels and filters that are transformed at a time */
    size_t parts;                /* weight gradient: the tiles are divided into this many parts, each with
                                    its own sum; 0: each block's gradient is added to dw directly */
} amp_winograd;

/* Whether the convolution needs this pass. */
int amp_winograd_wanted(const amp_conv_desc *, amp_winograd_pass);

/* Decides whether this pass of the convolution uses Winograd, and how its work is cut (winograd_rule.c). It
 * uses Winograd if all of this is true:
 *  - The convolution needs this pass, and desc.direct is 0. The processor has AVX2.
 *  - The windows are 3x3 with stride 1, padding 1 and no dilation, and the convolution is not transposed.
 *  - The numbers of channels and of filters per group are multiples of 16.
 *  - The images have at least 2 rows and 2 columns.
 *  - Winograd is faster than the library: in fp32 from 16 tiles in the batch on, in a half less often.
 * compute: the dtype in which the library would compute the pass. */
amp_winograd amp_winograd_make(const amp_conv_desc *, amp_winograd_pass, amp_dtype compute);

/* Scratch bytes for the number of threads that OpenMP would use now; 0 if Winograd is not used. */
size_t amp_winograd_scratch(const amp_winograd *);

/* Forward, or the data gradient: y = leaky(sums + bias) or, if accumulate is set, y += sums (without bias and
 * leaky). filters: OIHW. bias may be NULL. */
typedef struct amp_winograd_task {
    const void *x;
    const float *filters, *bias;
    void *y;
    int leaky, accumulate;
} amp_winograd_task;
void amp_winograd_convolve(const amp_winograd *, const amp_winograd_task *, void *scratch);

/* Computes dw += the weight gradient. dw is OIHW. */
void amp_winograd_gradient(const amp_winograd *, const void *x, const void *dy, float *dw, void *scratch);
