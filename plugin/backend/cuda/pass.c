/* Passes recorded as CUDA graphs, so that one call queues a whole pass: pass_begin, pass_end and pass_free of
 * backend.h.
 *
 * A graph stores addresses, so the caller must not move its memory. The backend's own memory (scratch,
 * cuDNN's workspace, tables) may move: cuda->moved counts its moves, and a pass is recorded again if the
 * count has changed. During a capture, growing memory (memory.c), changing cuDNN's engine (conv.c) and
 * everything that CUDA rejects fails, and the recording fails with it. */
#include <stdlib.h>

#include "memory.h"
#include "state.h"

struct amp_recorded_pass {
    cudaGraphExec_t graph;
    unsigned long moved; /* the backend's `moved` when the pass was recorded */
};

/* The graph may still be running. If so, CUDA frees it when it has finished. */
void amp_cuda_pass_free(amp_backend *backend, amp_recorded_pass *pass)
{
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
    /* In thread-local mode, other threads can go on using their own GPUs. */
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
    *pass = made; /* set only now, because pass_begin launches the graph of every *pass that is not NULL */
    AMP_CUDA_TRY(cudaGraphLaunch((*pass)->graph, cuda->stream));
    return AMP_OK;
}
