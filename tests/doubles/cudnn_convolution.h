/* A convolution as a descriptor describes it, computed on the CPU in double precision; see cudnn_double.h. */
#ifndef AMP_CUDNN_CONVOLUTION_H
#define AMP_CUDNN_CONVOLUTION_H

#include "numbers.h"

namespace amp_double {

struct strided { /* logical n,c,h,w (a filter: k,c,r,s), strides in elements */
    number type;
    int64_t dims[4], strides[4];
    void *data;
    size_t bytes() const; /* from the first element to the end of the last */
};

enum class pass { forward, backward_data, backward_filter };

enum arithmetic {
    EXACT = 0,            /* products and sums in double precision, rounded once */
    TF32_INPUTS = 1,
    SHORT_INPUTS = 2,     /* 16-bit inputs lose some of their bits */
    SHORT_SUMS = 4        /* sums are rounded to the output's type after each position of the window, or each
                             image */
};

struct convolution {
    pass which;
    strided x, w, y; /* dx, dw, dy, as the pass has it */
    int64_t pad[2], stride[2], dilation[2]; /* pad: before the first row and column */
    double alpha, beta;                     /* out = alpha · result + beta · out; beta = 0: out is not read */
    unsigned arithmetic;
};

/* Sizes must fit, and memory be accessible. */
void convolve(const convolution &);

}

#endif
