/* A double of cuBLAS: the calls that backend/cuda makes, on the CPU. cublasGemmEx computes in double
 * precision, rounded once, on memory and streams of the runtime's double (cuda_doubles.h): late.
 *
 * As the library does, unless the math mode forbids it, it rounds half sums on the way (every 64 terms) and,
 * where TF32 is allowed, fp32 inputs. Misuse gets a status, is counted here, and is reported with
 * amp_cuda_report; what the double lacks does not link. */
#ifndef AMP_CUBLAS_DOUBLE_H
#define AMP_CUBLAS_DOUBLE_H

#include <stddef.h>

#include <cublas_v2.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cublas_double_state {
    /* For the test to set. */
    int fail_at;            /* this call, counted from 1, returns `failure` and does nothing; 0: none */
    cublasStatus_t failure;
    /* For the test to look at. */
    int calls;
    const char *failed;     /* name of the call that was told to fail */
    int handles;            /* live ones */
    int products;           /* accepted, */
    cudaDataType_t factors, result;   /* and of the last: its types, */
    cublasComputeType_t computes;     /* and what it asked to be computed in */
    int unaligned;          /* products with a factor of 16 bits that no kernel for Tensor Cores can read: it
                               does not begin at a multiple of 16 bytes */
    int rejected;
    char rejection[512];    /* the first's text */
} cublas_double_state;

extern cublas_double_state cublas_double;

void cublas_double_reset(void); /* work that was queued must have been waited for */
/* Reports handles that are still alive as a fault, and returns how many there are. */
int cublas_double_leaks(void);

#ifdef __cplusplus
}
#endif
#endif
