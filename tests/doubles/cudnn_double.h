/* A double of cuDNN: the calls that backend/cuda/cudnn_graph.c makes, on the CPU. It keeps descriptors as the
 * real library does, and a plan's execution computes the convolution that they describe, on memory and
 * streams of the runtime's double (cuda_doubles.h): late, in double precision, rounded once.
 *
 * It is stricter than the library. A call that misuses it gets a status, as there; besides it is counted here
 * as rejected, and reported as a fault with amp_cuda_report. Functions and attributes that it lacks are not
 * there: they do not link, or are rejected. */
#ifndef AMP_CUDNN_DOUBLE_H
#define AMP_CUDNN_DOUBLE_H

#include <stddef.h>
#include <stdint.h>

#include <cudnn.h>
#include <cudnn_backend.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One that the heuristics name. How it computes follows from its notes: Tensor Cores round fp32 inputs to
 * TF32, one that converts down rounds 16-bit inputs, too, and with reduced-precision reductions sums are
 * rounded on the way. */
typedef struct cudnn_double_engine {
    int64_t index;
    int tensor_core, down_converts, reduced_reduction, nondeterministic, compiled; /* notes */
    int fallback;      /* named by CUDNN_HEUR_MODE_FALLBACK instead of CUDNN_HEUR_MODE_A */
    int64_t workspace; /* bytes, overwritten when it runs */
    int no_plan;       /* its plan cannot be built: not supported */
    int does_not_run;  /* execution fails */
    int takes;         /* microseconds to run, */
    int disturbed;     /* and how many more every other time */
    int executed;      /* how often it was asked to run, and could have */
} cudnn_double_engine;

typedef struct cudnn_double_tensor {
    cudnnDataType_t type;
    int64_t dimensions[4], strides[4], id, alignment;
    void *data;
} cudnn_double_tensor;

/* An execution, as the plan and the variant pack describe it. */
typedef struct cudnn_double_run {
    cudnnBackendDescriptorType_t operation;
    cudnn_double_tensor x, w, y; /* dx, dw, dy, as the operation has it */
    int64_t pre_pad[2], post_pad[2], stride[2], dilation[2], groups;
    double alpha, beta;
    void *workspace;
    int engine;               /* place in the list */
} cudnn_double_run;

enum { CUDNN_DOUBLE_ENGINES = 8 };

typedef struct cudnn_double_state {
    /* For the test to set. */
    cudnn_double_engine engine[CUDNN_DOUBLE_ENGINES];
    int engines;
    int fail_at;              /* this call, counted from 1, returns `failure` and does nothing; 0: none. Calls
                                 that only destroy something, or tell a version or a text, are not counted */
    cudnnStatus_t failure;
    size_t version;           /* that it says it is of; 0: that of its headers */
    /* For the test to look at. */
    int calls;
    const char *failed;       /* name of the call that was told to fail */
    int descriptors, handles; /* live ones */
    int executions;
    cudnn_double_run last;
    int rejected;
    char rejection[512];      /* the first's text */
} cudnn_double_state;

extern cudnn_double_state cudnn_double;

/* As at the start: nothing alive, nothing counted, and a list of engines of each kind, of which some cannot
 * be built, or need more memory than there is. Work that was queued must have been waited for. */
void cudnn_double_reset(void);
/* Reports what is still alive as a fault, and returns how much that is. */
int cudnn_double_leaks(void);

#ifdef __cplusplus
}
#endif
#endif
