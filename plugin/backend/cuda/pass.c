/* Passes recorded as CUDA graphs, which one call queues: pass_begin, pass_end and pass_free of backend.h.
 *
 * While the stream captures, a call queues a node of the graph instead of work. A graph keeps the addresses
 * and numbers of its calls. The caller keeps its own the same; whether the backend's own, scratch and cuDNN's
 * workspace, got other addresses is counted in `moved`. What must not happen during a capture fails, and the
 * pass with it: memory that grows (memory.c), a change of cuDNN's engine (conv.c), and all that CUDA itself
 * refuses then. */
#include <stdlib.h>

#include "memory.h"
#include "state.h"

struct amp_recorded_pass {
    cudaGraphExec_t graph;
    unsigned long moved; /* the backend's, when it was recorded */
};

/* CUDA frees a graph that is still being run when it is done. */
void amp_cuda_pass_free(amp_backend *backend, amp_recorded_pass *pass)
{
    (void)backend;
    if (!pass) return;
    if (pass->graph && cudaGraphExecDestroy(pass->graph) != cudaSuccess) amp_cuda_clear_error();
    free(pass);
}

amp_status amp_cuda_pass_begin(amp_backend *backend, amp_recorded_pass **pass, int *repeated,
                               amp_error *error)
{
    amp_cuda_backend *cuda = amp_cuda_of(backend);
    *repeated = *pass && (*pass)->moved == cuda->moved;
    if (*repeated) {
        AMP_CUDA_TRY(cudaGraphLaunch((*pass)->graph, cuda->stream));
        return AMP_OK;
    }
    amp_cuda_pass_free(backend, *pass);
    *pass = NULL;
    /* In this mode CUDA refuses only calls of this thread, not those of others, on GPUs of their own. */
    AMP_CUDA_TRY(cudaStreamBeginCapture(cuda->stream, cudaStreamCaptureModeThreadLocal));
    cuda->recording = 1;
    return AMP_OK;
}

amp_status amp_cuda_pass_end(amp_backend *backend, amp_recorded_pass **pass, int whole, amp_error *error)
{
    amp_cuda_backend *cuda = amp_cuda_of(backend);
    cudaGraph_t graph = NULL;
    cuda->recording = 0;
    cudaError_t ended = cudaStreamEndCapture(cuda->stream, &graph);
    if (!whole || ended != cudaSuccess) {
        if (graph) cudaGraphDestroy(graph);
        if (whole) return amp_cuda_fail(ended, "cudaStreamEndCapture", __FILE__, __LINE__, error);
        amp_cuda_clear_error();
        return AMP_OK;
    }
    amp_recorded_pass *made = calloc(1, sizeof *made);
    cudaError_t status = made ? cudaGraphInstantiateWithFlags(&made->graph, graph, 0)
                              : cudaErrorMemoryAllocation;
    cudaGraphDestroy(graph);
    if (status != cudaSuccess) {
        free(made);
        return amp_cuda_fail(status, "cudaGraphInstantiateWithFlags", __FILE__, __LINE__, error);
    }
    made->moved = cuda->moved;
    *pass = made; /* only now: pass_begin launches what it finds there */
    AMP_CUDA_TRY(cudaGraphLaunch((*pass)->graph, cuda->stream));
    return AMP_OK;
}
