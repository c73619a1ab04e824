/* Running a plan: the pointers and the workspace are checked now, the convolution is computed when
 * the stream gets there. */
#include "cudnn_content.h"

#include "cuda_doubles.h"

namespace amp_cudnn {

struct job {
    amp_double::convolution convolution;
    void *workspace;
    size_t workspace_bytes;
    int microseconds;
};

/* Queued, by number: after forget_queued a stream may still get to one that is not there any more. */
std::map<uintptr_t, std::unique_ptr<job>> jobs;
uintptr_t last_job;

/* What a library that uses its workspace does to it. */
void compute(void *user)
{
    auto queued = jobs.find((uintptr_t)user);
    if (queued == jobs.end()) return;
    job *j = queued->second.get();
    if (j->workspace_bytes) std::memset(j->workspace, 0xff, j->workspace_bytes);
    amp_double::convolve(j->convolution);
    amp_cuda_takes(j->microseconds);
    if (!amp_cuda_of_graph()) jobs.erase(queued); /* a graph runs it again */
}

/* The pack's pointer for a tensor. */
cudnnStatus_t place(cudnn_double_tensor *t, const content &pack)
{
    const value &ids = pack.values.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    for (int64_t i = 0; i < ids.count; i++)
        if (one<int64_t>(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, i) == t->id)
            t->data = one<void *>(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, i);
    CHECK(t->data, "variant pack: tensor %lld has no memory", (long long)t->id);
    CHECK((uintptr_t)t->data % (uintptr_t)t->alignment == 0,
        "variant pack: tensor %lld at %p is not aligned to %lld bytes",
        (long long)t->id, t->data, (long long)t->alignment);
    CHECK(amp_cuda_is_device(t->data, strided_of(*t).bytes(), "cudnnBackendExecute"),
        "variant pack: tensor %lld is not in device memory", (long long)t->id);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t place_workspace(cudnn_double_run *r, const content &pack, int64_t bytes)
{
    auto given = pack.values.find(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    if (given != pack.values.end()) r->workspace = one<void *>(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    if (!bytes) return CUDNN_STATUS_SUCCESS;
    CHECK(r->workspace, "variant pack: the plan needs %lld bytes of workspace", (long long)bytes);
    CHECK((uintptr_t)r->workspace % 16 == 0, "variant pack: the workspace at %p is not aligned",
          r->workspace);
    CHECK(amp_cuda_is_device(r->workspace, (size_t)bytes, "cudnnBackendExecute"),
        "variant pack: the workspace is not %lld bytes of device memory", (long long)bytes);
    for (const cudnn_double_tensor *t : { &r->x, &r->w, &r->y })
        CHECK(!amp_double::overlap(t->data, strided_of(*t).bytes(), r->workspace, (size_t)bytes),
            "variant pack: the workspace overlaps tensor %lld", (long long)t->id);
    return CUDNN_STATUS_SUCCESS;
}

std::unique_ptr<job> job_of(const cudnn_double_run &r, const cudnn_double_engine &e)
{
    std::unique_ptr<job> j(new job());
    amp_double::convolution &c = j->convolution;
    c.which = r.operation == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR
        ? amp_double::pass::forward
        : r.operation == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR
            ? amp_double::pass::backward_data
        : amp_double::pass::backward_filter;
    c.x = strided_of(r.x), c.w = strided_of(r.w), c.y = strided_of(r.y);
    for (int i = 0; i < 2; i++)
        c.pad[i] = r.pre_pad[i], c.stride[i] = r.stride[i], c.dilation[i] = r.dilation[i];
    c.alpha = r.alpha, c.beta = r.beta;
    c.arithmetic = (e.tensor_core ? amp_double::TF32_INPUTS : 0) |
        (e.down_converts ? amp_double::SHORT_INPUTS : 0) |
        (e.reduced_reduction ? amp_double::SHORT_SUMS : 0);
    j->workspace = r.workspace;
    j->workspace_bytes = (size_t)e.workspace;
    j->microseconds = e.takes + (e.executed % 2 ? 0 : e.disturbed);
    return j;
}

cudnnStatus_t execute(cudaStream_t stream, const content &plan, const content &pack)
{
    const content &config = referred(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    cudnn_double_engine &engine = cudnn_double.engine[config.engine];
    cudnn_double_run r = run_of(referred(*config.graph, CUDNN_ATTR_OPERATIONGRAPH_OPS));
    r.engine = config.engine;
    CHECK(pack.values.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).count == 3,
          "variant pack: not the graph's three tensors");
    for (cudnn_double_tensor *t : { &r.x, &r.w, &r.y }) {
        cudnnStatus_t status = place(t, pack);
        if (status != CUDNN_STATUS_SUCCESS) return status;
    }
    cudnnStatus_t status = place_workspace(&r, pack, engine.workspace);
    if (status != CUDNN_STATUS_SUCCESS) return status;

    const cudnn_double_tensor *const all[] = { &r.x, &r.w, &r.y };
    int output = r.operation == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ? 2
        : r.operation == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ? 0 : 1;
    for (int i = 0; i < 3; i++)
        CHECK(i == output || !amp_double::overlap(all[i]->data, strided_of(*all[i]).bytes(),
                                                  all[output]->data, strided_of(*all[output]).bytes()),
            "variant pack: the output overlaps tensor %lld", (long long)all[i]->id);
    ++engine.executed;
    if (engine.does_not_run) {
        last_error = "the engine\nwas told not to run";
        return CUDNN_STATUS_EXECUTION_FAILED;
    }
    jobs[++last_job] = job_of(r, engine); /* the stream may get to it at once */
    CHECK(amp_cuda_enqueue(stream, "cudnnBackendExecute", compute, (void *)last_job),
          "cudnnBackendExecute: the handle's stream is gone");
    ++cudnn_double.executions;
    cudnn_double.last = r;
    return CUDNN_STATUS_SUCCESS;
}

void forget_queued() { jobs.clear(); }

}
