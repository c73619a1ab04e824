/* What each kind of descriptor may and must be told, in one table, and what makes the whole of it wrong. */
#include "cudnn_content.h"

#include <set>

namespace amp_cudnn {

#define RULE(name, type, least, most, required, refers_to) \
    { CUDNN_ATTR_##name, CUDNN_TYPE_##type, least, most, required, refers_to, #name }
#define OPERATION_RULES(pass, x, w, y) {                                               \
        RULE(OPERATION_CONVOLUTION_##pass##_ALPHA, FLOAT, 1, 1, true, 0),              \
        RULE(OPERATION_CONVOLUTION_##pass##_BETA, FLOAT, 1, 1, true, 0),               \
        RULE(OPERATION_CONVOLUTION_##pass##_CONV_DESC, BACKEND_DESCRIPTOR, 1, 1, true, \
             CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR),                                    \
        RULE(OPERATION_CONVOLUTION_##pass##_##x, BACKEND_DESCRIPTOR, 1, 1, true,       \
             CUDNN_BACKEND_TENSOR_DESCRIPTOR),                                         \
        RULE(OPERATION_CONVOLUTION_##pass##_##w, BACKEND_DESCRIPTOR, 1, 1, true,       \
             CUDNN_BACKEND_TENSOR_DESCRIPTOR),                                         \
        RULE(OPERATION_CONVOLUTION_##pass##_##y, BACKEND_DESCRIPTOR, 1, 1, true,       \
             CUDNN_BACKEND_TENSOR_DESCRIPTOR) }

/* An operation's rules are in this order: alpha, beta, convolution, x, w, y. */
extern const std::map<int, std::vector<rule>> rules = {
    { CUDNN_BACKEND_TENSOR_DESCRIPTOR, {
        RULE(TENSOR_DATA_TYPE, DATA_TYPE, 1, 1, true, 0), RULE(TENSOR_DIMENSIONS, INT64, 4, 4, true, 0),
        RULE(TENSOR_STRIDES, INT64, 4, 4, true, 0), RULE(TENSOR_UNIQUE_ID, INT64, 1, 1, true, 0),
        RULE(TENSOR_BYTE_ALIGNMENT, INT64, 1, 1, true, 0) } },
    { CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, {
        RULE(CONVOLUTION_COMP_TYPE, DATA_TYPE, 1, 1, true, 0),
        RULE(CONVOLUTION_CONV_MODE, CONVOLUTION_MODE, 1, 1, true, 0),
        RULE(CONVOLUTION_SPATIAL_DIMS, INT64, 1, 1, true, 0),
        RULE(CONVOLUTION_PRE_PADDINGS, INT64, 2, 2, true, 0),
        RULE(CONVOLUTION_POST_PADDINGS, INT64, 2, 2, true, 0),
        RULE(CONVOLUTION_FILTER_STRIDES, INT64, 2, 2, true, 0),
        RULE(CONVOLUTION_DILATIONS, INT64, 2, 2, true, 0) } },
    { CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, OPERATION_RULES(FORWARD, X, W, Y) },
    { CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, OPERATION_RULES(BWD_DATA, DX, W, DY) },
    { CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
      OPERATION_RULES(BWD_FILTER, X, DW, DY) },
    { CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, {
        RULE(OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, 1, 1, true, 0),
        RULE(OPERATIONGRAPH_HANDLE, HANDLE, 1, 1, true, 0) } },
    { CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, {
        RULE(ENGINEHEUR_OPERATION_GRAPH, BACKEND_DESCRIPTOR, 1, 1, true,
             CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR),
        RULE(ENGINEHEUR_MODE, HEUR_MODE, 1, 1, true, 0) } },
    { CUDNN_BACKEND_ENGINE_DESCRIPTOR, {} },    /* these two come from the heuristics */
    { CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, {} },
    { CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, {
        RULE(EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR, 1, 1, true,
             CUDNN_BACKEND_ENGINECFG_DESCRIPTOR),
        RULE(EXECUTION_PLAN_HANDLE, HANDLE, 1, 1, true, 0) } },
    { CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, {
        RULE(VARIANT_PACK_UNIQUE_IDS, INT64, 1, 16, true, 0),
        RULE(VARIANT_PACK_DATA_POINTERS, VOID_PTR, 1, 16, true, 0),
        RULE(VARIANT_PACK_WORKSPACE, VOID_PTR, 1, 1, false, 0) } },
};

/* ------------------------------------------------------------------------------------------ what must fit */

cudnn_double_tensor tensor_of(const content &c)
{
    cudnn_double_tensor t = {};
    t.type = one<cudnnDataType_t>(c, CUDNN_ATTR_TENSOR_DATA_TYPE);
    t.id = one<int64_t>(c, CUDNN_ATTR_TENSOR_UNIQUE_ID);
    t.alignment = one<int64_t>(c, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
    for (int i = 0; i < 4; i++) {
        t.dimensions[i] = one<int64_t>(c, CUDNN_ATTR_TENSOR_DIMENSIONS, i);
        t.strides[i] = one<int64_t>(c, CUDNN_ATTR_TENSOR_STRIDES, i);
    }
    return t;
}

bool number_of(cudnnDataType_t type, amp_double::number *out)
{
    switch (type) {
    case CUDNN_DATA_FLOAT: *out = amp_double::number::fp32; return true;
    case CUDNN_DATA_HALF: *out = amp_double::number::fp16; return true;
    case CUDNN_DATA_BFLOAT16: *out = amp_double::number::bf16; return true;
    default: return false;
    }
}

amp_double::strided strided_of(const cudnn_double_tensor &t)
{
    amp_double::strided s = {};
    number_of(t.type, &s.type);
    for (int i = 0; i < 4; i++) s.dims[i] = t.dimensions[i], s.strides[i] = t.strides[i];
    s.data = t.data;
    return s;
}

/* No two elements share memory: each dimension strides over all that the ones of smaller stride cover. */
bool disjoint(const cudnn_double_tensor &t)
{
    std::multimap<int64_t, int64_t> by_stride;
    for (int i = 0; i < 4; i++)
        if (t.dimensions[i] > 1) by_stride.emplace(t.strides[i], t.dimensions[i]);
    int64_t covered = 1;
    for (auto &d : by_stride) {
        if (d.first < covered) return false;
        covered = d.first * d.second;
    }
    return true;
}

cudnnStatus_t check_tensor(const content &c)
{
    cudnn_double_tensor t = tensor_of(c);
    amp_double::number type;
    CHECK(number_of(t.type, &type), "tensor %lld: data type %d", (long long)t.id, (int)t.type);
    for (int i = 0; i < 4; i++)
        CHECK(t.dimensions[i] > 0 && t.strides[i] > 0, "tensor %lld: dimension %d is %lld, its stride %lld",
            (long long)t.id, i,
            (long long)t.dimensions[i], (long long)t.strides[i]);
    CHECK(t.alignment >= 16 && !(t.alignment & (t.alignment - 1)), "tensor %lld: alignment %lld",
        (long long)t.id, (long long)t.alignment);
    CHECK(disjoint(t), "tensor %lld: its strides let elements overlap", (long long)t.id);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_convolution(const content &c)
{
    CHECK(one<cudnnDataType_t>(c, CUDNN_ATTR_CONVOLUTION_COMP_TYPE) == CUDNN_DATA_FLOAT,
        "convolution: not computed in fp32");
    CHECK(one<cudnnConvolutionMode_t>(c, CUDNN_ATTR_CONVOLUTION_CONV_MODE) == CUDNN_CROSS_CORRELATION,
        "convolution: not a cross-correlation");
    CHECK(one<int64_t>(c, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS) == 2, "convolution: not of 2 dimensions");
    for (size_t i = 0; i < 2; i++) {
        CHECK(one<int64_t>(c, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, i) >= 0 &&
            one<int64_t>(c, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, i) >= 0, "convolution: negative padding");
        CHECK(one<int64_t>(c, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, i) > 0, "convolution: a stride below 1");
        CHECK(one<int64_t>(c, CUDNN_ATTR_CONVOLUTION_DILATIONS, i) > 0, "convolution: a dilation below 1");
    }
    return CUDNN_STATUS_SUCCESS;
}

bool is_operation(int type)
{
    return type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ||
        type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ||
        type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
}

cudnn_double_run run_of(const content &operation)
{
    const std::vector<rule> &names = rules.at(operation.type);
    const content &c = referred(operation, names[2].name);
    cudnn_double_run r = {};
    r.operation = operation.type;
    r.alpha = one<float>(operation, names[0].name);
    r.beta = one<float>(operation, names[1].name);
    r.x = tensor_of(referred(operation, names[3].name));
    r.w = tensor_of(referred(operation, names[4].name));
    r.y = tensor_of(referred(operation, names[5].name));
    for (size_t i = 0; i < 2; i++) {
        r.pre_pad[i] = one<int64_t>(c, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, i);
        r.post_pad[i] = one<int64_t>(c, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, i);
        r.stride[i] = one<int64_t>(c, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, i);
        r.dilation[i] = one<int64_t>(c, CUDNN_ATTR_CONVOLUTION_DILATIONS, i);
    }
    r.groups = r.x.dimensions[1] / r.w.dimensions[1];
    return r;
}

cudnnStatus_t check_operation(const content &operation)
{
    cudnn_double_run r = run_of(operation);
    const int64_t *x = r.x.dimensions, *w = r.w.dimensions, *y = r.y.dimensions;
    CHECK(r.x.type == r.y.type && r.x.type == r.w.type, "operation: its tensors are of more than one type");
    CHECK(r.x.id != r.y.id && r.x.id != r.w.id && r.y.id != r.w.id, "operation: two tensors of the same id");
    CHECK(x[0] == y[0], "operation: %lld images of x, %lld of y", (long long)x[0], (long long)y[0]);
    CHECK(y[1] == w[0], "operation: %lld filters, %lld channels of y", (long long)w[0], (long long)y[1]);
    CHECK(x[1] % w[1] == 0 && w[0] % r.groups == 0,
        "operation: %lld channels of x and %lld filters of %lld channels",
        (long long)x[1], (long long)w[0], (long long)w[1]);
    for (int i = 0; i < 2; i++) {
        int64_t room = x[2 + i] + r.pre_pad[i] + r.post_pad[i] - (w[2 + i] - 1) * r.dilation[i] - 1;
        int64_t out = room < 0 ? 0 : room / r.stride[i] + 1;
        CHECK(y[2 + i] == out, "operation: y is of size %lld where the convolution gives %lld",
            (long long)y[2 + i], (long long)out);
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_graph(const content &c)
{
    CHECK(is_operation(referred(c, CUDNN_ATTR_OPERATIONGRAPH_OPS).type),
          "operation graph: not of a convolution");
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_heuristics(const content &c)
{
    int mode = one<cudnnBackendHeurMode_t>(c, CUDNN_ATTR_ENGINEHEUR_MODE);
    CHECK(mode == CUDNN_HEUR_MODE_A || mode == CUDNN_HEUR_MODE_FALLBACK, "heuristics: mode %d", mode);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_plan(const content &c)
{
    const content &config = referred(c, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    CHECK(one<void *>(*config.graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE) ==
        one<void *>(c, CUDNN_ATTR_EXECUTION_PLAN_HANDLE), "execution plan: another handle than its graph's");
    if (!cudnn_double.engine[config.engine].no_plan) return CUDNN_STATUS_SUCCESS;
    last_error = "the engine has no kernel for this";
    return UNSUPPORTED;
}

cudnnStatus_t check_pack(const content &c)
{
    const value &ids = c.values.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    CHECK(ids.count == c.values.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).count,
        "variant pack: as many ids as pointers are needed");
    std::set<int64_t> distinct;
    for (int64_t i = 0; i < ids.count; i++)
        distinct.insert(one<int64_t>(c, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, i));
    CHECK((int64_t)distinct.size() == ids.count, "variant pack: an id twice");
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check(const content &c)
{
    if (is_operation(c.type)) return check_operation(c);
    switch ((int)c.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR: return check_tensor(c);
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR: return check_convolution(c);
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR: return check_graph(c);
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR: return check_heuristics(c);
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: return check_plan(c);
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR: return check_pack(c);
    default: return reject(BAD, "a descriptor of type %d is not finalized by its user", (int)c.type);
    }
}

}
