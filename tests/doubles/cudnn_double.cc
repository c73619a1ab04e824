/* The double's descriptors, heuristics and plans. What each kind of descriptor may and must be told is one table; what the
 * library would find wrong when it is finalized is check_*'s. A descriptor that another is told of is kept as it was then,
 * so that it may be destroyed before. */
#include "cudnn_double.h"

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <stdarg.h>
#include <stdio.h>

#include "cudnn_convolution.h"
#include "cuda_doubles.h"

cudnn_double_state cudnn_double;

namespace {

/* ------------------------------------------------------------------------------------------------ calls */

std::string last_error;

/* The kinds of failure, by the names that both cuDNN 8 and 9 have. */
const cudnnStatus_t BAD = CUDNN_STATUS_BAD_PARAM, UNSUPPORTED = CUDNN_STATUS_NOT_SUPPORTED;

__attribute__((format(printf, 2, 3))) cudnnStatus_t reject(cudnnStatus_t status, const char *format, ...)
{
    char text[sizeof cudnn_double.rejection];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!cudnn_double.rejected++) snprintf(cudnn_double.rejection, sizeof cudnn_double.rejection, "%s", text);
    amp_cuda_report("cuDNN: %s", text);
    last_error = text;
    return status;
}

cudnnStatus_t told_to_fail(const char *call)
{
    if (++cudnn_double.calls != cudnn_double.fail_at) return CUDNN_STATUS_SUCCESS;
    cudnn_double.failed = call;
    last_error = "the double\nwas told to";
    return cudnn_double.failure;
}

#define MAY_FAIL() \
    do { \
        cudnnStatus_t may_fail_ = told_to_fail(__func__); \
        if (may_fail_ != CUDNN_STATUS_SUCCESS) return may_fail_; \
    } while (0)

#define CHECK(condition, ...) do { if (!(condition)) return reject(BAD, __VA_ARGS__); } while (0)

/* ------------------------------------------------------------------------------------------------ descriptors */

struct content;
typedef std::shared_ptr<const content> reference;

struct value {
    int64_t count = 0;
    std::vector<char> bytes;
    std::vector<reference> descriptors;
};

struct content {
    cudnnBackendDescriptorType_t type;
    std::map<int, value> values;
    int engine = -1;   /* of a config, and an engine: place in the list */
    reference graph;   /* and what it was named for */
};

struct descriptor {
    std::shared_ptr<content> content_;
    bool finalized = false;
};

std::map<void *, std::unique_ptr<descriptor>> live;
std::deque<std::unique_ptr<descriptor>> dead; /* kept a while, so that no new one has the address */
struct handle { cudaStream_t stream = nullptr; };
std::map<void *, std::unique_ptr<handle>> handles;

struct rule {
    int name, type;
    int64_t least, most; /* values */
    bool required;
    int refers_to;       /* kind of descriptor, 0 for none */
    const char *text;
};

#define RULE(name, type, least, most, required, refers_to) \
    { CUDNN_ATTR_##name, CUDNN_TYPE_##type, least, most, required, refers_to, #name }
#define OPERATION_RULES(pass, x, w, y) { \
        RULE(OPERATION_CONVOLUTION_##pass##_ALPHA, FLOAT, 1, 1, true, 0), \
        RULE(OPERATION_CONVOLUTION_##pass##_BETA, FLOAT, 1, 1, true, 0), \
        RULE(OPERATION_CONVOLUTION_##pass##_CONV_DESC, BACKEND_DESCRIPTOR, 1, 1, true, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR), \
        RULE(OPERATION_CONVOLUTION_##pass##_##x, BACKEND_DESCRIPTOR, 1, 1, true, CUDNN_BACKEND_TENSOR_DESCRIPTOR), \
        RULE(OPERATION_CONVOLUTION_##pass##_##w, BACKEND_DESCRIPTOR, 1, 1, true, CUDNN_BACKEND_TENSOR_DESCRIPTOR), \
        RULE(OPERATION_CONVOLUTION_##pass##_##y, BACKEND_DESCRIPTOR, 1, 1, true, CUDNN_BACKEND_TENSOR_DESCRIPTOR) }

/* An operation's rules are in this order: alpha, beta, convolution, x, w, y. */
const std::map<int, std::vector<rule>> rules = {
    { CUDNN_BACKEND_TENSOR_DESCRIPTOR, {
        RULE(TENSOR_DATA_TYPE, DATA_TYPE, 1, 1, true, 0), RULE(TENSOR_DIMENSIONS, INT64, 4, 4, true, 0),
        RULE(TENSOR_STRIDES, INT64, 4, 4, true, 0), RULE(TENSOR_UNIQUE_ID, INT64, 1, 1, true, 0),
        RULE(TENSOR_BYTE_ALIGNMENT, INT64, 1, 1, true, 0) } },
    { CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, {
        RULE(CONVOLUTION_COMP_TYPE, DATA_TYPE, 1, 1, true, 0), RULE(CONVOLUTION_CONV_MODE, CONVOLUTION_MODE, 1, 1, true, 0),
        RULE(CONVOLUTION_SPATIAL_DIMS, INT64, 1, 1, true, 0), RULE(CONVOLUTION_PRE_PADDINGS, INT64, 2, 2, true, 0),
        RULE(CONVOLUTION_POST_PADDINGS, INT64, 2, 2, true, 0), RULE(CONVOLUTION_FILTER_STRIDES, INT64, 2, 2, true, 0),
        RULE(CONVOLUTION_DILATIONS, INT64, 2, 2, true, 0) } },
    { CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, OPERATION_RULES(FORWARD, X, W, Y) },
    { CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, OPERATION_RULES(BWD_DATA, DX, W, DY) },
    { CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, OPERATION_RULES(BWD_FILTER, X, DW, DY) },
    { CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, {
        RULE(OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, 1, 1, true, 0), RULE(OPERATIONGRAPH_HANDLE, HANDLE, 1, 1, true, 0) } },
    { CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, {
        RULE(ENGINEHEUR_OPERATION_GRAPH, BACKEND_DESCRIPTOR, 1, 1, true, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR),
        RULE(ENGINEHEUR_MODE, HEUR_MODE, 1, 1, true, 0) } },
    { CUDNN_BACKEND_ENGINE_DESCRIPTOR, {} },    /* these two come from the heuristics */
    { CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, {} },
    { CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, {
        RULE(EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR, 1, 1, true, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR),
        RULE(EXECUTION_PLAN_HANDLE, HANDLE, 1, 1, true, 0) } },
    { CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, {
        RULE(VARIANT_PACK_UNIQUE_IDS, INT64, 1, 16, true, 0), RULE(VARIANT_PACK_DATA_POINTERS, VOID_PTR, 1, 16, true, 0),
        RULE(VARIANT_PACK_WORKSPACE, VOID_PTR, 1, 1, false, 0) } },
};

const rule *rule_for(int type, int name)
{
    for (const rule &r : rules.at(type))
        if (r.name == name) return &r;
    return nullptr;
}

size_t size_of_type(int type)
{
    switch (type) {
    case CUDNN_TYPE_INT64: case CUDNN_TYPE_BACKEND_DESCRIPTOR: case CUDNN_TYPE_HANDLE: case CUDNN_TYPE_VOID_PTR: return 8;
    default: return 4;
    }
}

descriptor *find(cudnnBackendDescriptor_t d)
{
    auto at = live.find(d);
    return at == live.end() ? nullptr : at->second.get();
}

template <class T> T one(const content &c, int name, size_t i = 0)
{
    T v;
    std::memcpy(&v, c.values.at(name).bytes.data() + i * sizeof v, sizeof v);
    return v;
}

const content &referred(const content &c, int name) { return *c.values.at(name).descriptors[0]; }

/* ------------------------------------------------------------------------------------------------ what must fit */

cudnn_double_tensor tensor_of(const content &c)
{
    cudnn_double_tensor t = {};
    t.type = one<cudnnDataType_t>(c, CUDNN_ATTR_TENSOR_DATA_TYPE);
    t.id = one<int64_t>(c, CUDNN_ATTR_TENSOR_UNIQUE_ID);
    t.alignment = one<int64_t>(c, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
    for (int i = 0; i < 4; ++i) {
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
    for (int i = 0; i < 4; ++i) s.dims[i] = t.dimensions[i], s.strides[i] = t.strides[i];
    s.data = t.data;
    return s;
}

/* No two elements share memory: each dimension strides over all that the ones of smaller stride cover. */
bool disjoint(const cudnn_double_tensor &t)
{
    std::multimap<int64_t, int64_t> by_stride;
    for (int i = 0; i < 4; ++i)
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
    for (int i = 0; i < 4; ++i)
        CHECK(t.dimensions[i] > 0 && t.strides[i] > 0, "tensor %lld: dimension %d is %lld, its stride %lld", (long long)t.id, i,
            (long long)t.dimensions[i], (long long)t.strides[i]);
    CHECK(t.alignment >= 16 && !(t.alignment & (t.alignment - 1)), "tensor %lld: alignment %lld", (long long)t.id,
        (long long)t.alignment);
    CHECK(disjoint(t), "tensor %lld: its strides let elements overlap", (long long)t.id);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_convolution(const content &c)
{
    CHECK(one<cudnnDataType_t>(c, CUDNN_ATTR_CONVOLUTION_COMP_TYPE) == CUDNN_DATA_FLOAT, "convolution: not computed in fp32");
    CHECK(one<cudnnConvolutionMode_t>(c, CUDNN_ATTR_CONVOLUTION_CONV_MODE) == CUDNN_CROSS_CORRELATION,
        "convolution: not a cross-correlation");
    CHECK(one<int64_t>(c, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS) == 2, "convolution: not of 2 dimensions");
    for (size_t i = 0; i < 2; ++i) {
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
    for (size_t i = 0; i < 2; ++i) {
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
    CHECK(x[1] % w[1] == 0 && w[0] % r.groups == 0, "operation: %lld channels of x and %lld filters of %lld channels",
        (long long)x[1], (long long)w[0], (long long)w[1]);
    for (int i = 0; i < 2; ++i) {
        int64_t room = x[2 + i] + r.pre_pad[i] + r.post_pad[i] - (w[2 + i] - 1) * r.dilation[i] - 1;
        int64_t out = room < 0 ? 0 : room / r.stride[i] + 1;
        CHECK(y[2 + i] == out, "operation: y is of size %lld where the convolution gives %lld", (long long)y[2 + i], (long long)out);
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_graph(const content &c)
{
    CHECK(is_operation(referred(c, CUDNN_ATTR_OPERATIONGRAPH_OPS).type), "operation graph: not of a convolution");
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
    CHECK(one<void *>(*config.graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE) == one<void *>(c, CUDNN_ATTR_EXECUTION_PLAN_HANDLE),
        "execution plan: another handle than its graph's");
    if (!cudnn_double.engine[config.engine].no_plan) return CUDNN_STATUS_SUCCESS;
    last_error = "the engine has no kernel for this";
    return UNSUPPORTED;
}

cudnnStatus_t check_pack(const content &c)
{
    const value &ids = c.values.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    CHECK(ids.count == c.values.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).count, "variant pack: as many ids as pointers are needed");
    std::set<int64_t> distinct;
    for (int64_t i = 0; i < ids.count; ++i) distinct.insert(one<int64_t>(c, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, i));
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

/* ------------------------------------------------------------------------------------------------ questions */

/* A blank descriptor that the caller made for the library to fill. */
descriptor *to_fill(void *const *values, int64_t i, int type)
{
    descriptor *d = find(values[i]);
    return d && !d->finalized && d->content_->type == type ? d : nullptr;
}

cudnnStatus_t name_engines(const content &heuristics, int64_t room, int64_t *count, void *values)
{
    bool fallback = one<cudnnBackendHeurMode_t>(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_FALLBACK;
    *count = 0;
    for (int i = 0; i < cudnn_double.engines; ++i) {
        if (!cudnn_double.engine[i].fallback == fallback) continue;
        if (*count < room) {
            descriptor *config = to_fill((void *const *)values, *count, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
            CHECK(config, "ENGINEHEUR_RESULTS: place %lld holds no blank engine config", (long long)*count);
            config->finalized = true;
            config->content_->engine = i;
            config->content_->graph = heuristics.values.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH).descriptors[0];
        }
        ++*count;
    }
    return CUDNN_STATUS_SUCCESS;
}

template <class T> cudnnStatus_t answer(const std::vector<T> &values, int64_t room, int64_t *count, void *out)
{
    *count = (int64_t)values.size();
    for (int64_t i = 0; i < room && i < *count; ++i) static_cast<T *>(out)[i] = values[i];
    return CUDNN_STATUS_SUCCESS;
}

std::vector<cudnnBackendNumericalNote_t> numerical_notes(const cudnn_double_engine &e)
{
    std::vector<cudnnBackendNumericalNote_t> notes;
    if (e.tensor_core) notes.push_back(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
    if (e.down_converts) notes.push_back(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
    if (e.reduced_reduction) notes.push_back(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
    if (e.nondeterministic) notes.push_back(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
    return notes;
}

cudnnStatus_t engine_of(const content &config, int64_t room, int64_t *count, void *values)
{
    *count = 1;
    if (!room) return CUDNN_STATUS_SUCCESS;
    descriptor *engine = to_fill((void *const *)values, 0, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    CHECK(engine, "ENGINECFG_ENGINE: there is no blank engine to fill");
    engine->finalized = true;
    engine->content_->engine = config.engine;
    engine->content_->graph = config.graph;
    return CUDNN_STATUS_SUCCESS;
}

struct question { int of, name, type; };

const question questions[] = {
    { CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR },
    { CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR },
#if CUDNN_VERSION >= 90200
    { CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64 },
#endif
    { CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64 },
    { CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE },
    { CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE },
    { CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64 },
};

const question *asked(const content &c, int name)
{
    for (const question &q : questions)
        if (q.of == c.type && q.name == name) return &q;
    return nullptr;
}

/* ------------------------------------------------------------------------------------------------ execution */

struct job {
    amp_double::convolution convolution;
    void *workspace;
    size_t workspace_bytes;
};

std::map<job *, std::unique_ptr<job>> jobs; /* queued */

/* What a library that uses its workspace does to it. */
void compute(void *user)
{
    job *j = static_cast<job *>(user);
    if (j->workspace_bytes) std::memset(j->workspace, 0xff, j->workspace_bytes);
    amp_double::convolve(j->convolution);
    jobs.erase(j);
}

bool overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    return (const char *)a < (const char *)b + b_bytes && (const char *)b < (const char *)a + a_bytes;
}

/* The pack's pointer for a tensor. */
cudnnStatus_t place(cudnn_double_tensor *t, const content &pack)
{
    const value &ids = pack.values.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    for (int64_t i = 0; i < ids.count; ++i)
        if (one<int64_t>(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, i) == t->id)
            t->data = one<void *>(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, i);
    CHECK(t->data, "variant pack: tensor %lld has no memory", (long long)t->id);
    CHECK((uintptr_t)t->data % (uintptr_t)t->alignment == 0, "variant pack: tensor %lld at %p is not aligned to %lld bytes",
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
    CHECK((uintptr_t)r->workspace % 16 == 0, "variant pack: the workspace at %p is not aligned", r->workspace);
    CHECK(amp_cuda_is_device(r->workspace, (size_t)bytes, "cudnnBackendExecute"),
        "variant pack: the workspace is not %lld bytes of device memory", (long long)bytes);
    for (const cudnn_double_tensor *t : { &r->x, &r->w, &r->y })
        CHECK(!overlap(t->data, strided_of(*t).bytes(), r->workspace, (size_t)bytes),
            "variant pack: the workspace overlaps tensor %lld", (long long)t->id);
    return CUDNN_STATUS_SUCCESS;
}

std::unique_ptr<job> job_of(const cudnn_double_run &r, const cudnn_double_engine &e)
{
    std::unique_ptr<job> j(new job());
    amp_double::convolution &c = j->convolution;
    c.which = r.operation == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ? amp_double::pass::forward
        : r.operation == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ? amp_double::pass::backward_data
        : amp_double::pass::backward_filter;
    c.x = strided_of(r.x), c.w = strided_of(r.w), c.y = strided_of(r.y);
    for (int i = 0; i < 2; ++i) c.pad[i] = r.pre_pad[i], c.stride[i] = r.stride[i], c.dilation[i] = r.dilation[i];
    c.alpha = r.alpha, c.beta = r.beta;
    c.arithmetic = (e.tensor_core ? amp_double::TF32_INPUTS : 0) | (e.down_converts ? amp_double::SHORT_INPUTS : 0) |
        (e.reduced_reduction ? amp_double::SHORT_SUMS : 0);
    j->workspace = r.workspace;
    j->workspace_bytes = (size_t)e.workspace;
    return j;
}

cudnnStatus_t execute(const handle &h, const content &plan, const content &pack)
{
    const content &config = referred(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    cudnn_double_engine &engine = cudnn_double.engine[config.engine];
    cudnn_double_run r = run_of(referred(*config.graph, CUDNN_ATTR_OPERATIONGRAPH_OPS));
    r.engine = config.engine;
    CHECK(pack.values.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).count == 3, "variant pack: not the graph's three tensors");
    for (cudnn_double_tensor *t : { &r.x, &r.w, &r.y }) {
        cudnnStatus_t status = place(t, pack);
        if (status != CUDNN_STATUS_SUCCESS) return status;
    }
    cudnnStatus_t status = place_workspace(&r, pack, engine.workspace);
    if (status != CUDNN_STATUS_SUCCESS) return status;

    const cudnn_double_tensor *const all[] = { &r.x, &r.w, &r.y };
    int output = r.operation == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ? 2
        : r.operation == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ? 0 : 1;
    for (int i = 0; i < 3; ++i)
        CHECK(i == output || !overlap(all[i]->data, strided_of(*all[i]).bytes(), all[output]->data, strided_of(*all[output]).bytes()),
            "variant pack: the output overlaps tensor %lld", (long long)all[i]->id);
    ++engine.executed;
    if (engine.does_not_run) {
        last_error = "the engine\nwas told not to run";
        return CUDNN_STATUS_EXECUTION_FAILED;
    }
    std::unique_ptr<job> j = job_of(r, engine);
    job *key = j.get();
    CHECK(amp_cuda_enqueue(h.stream, "cudnnBackendExecute", compute, key), "cudnnBackendExecute: the handle's stream is gone");
    jobs[key] = std::move(j);
    ++cudnn_double.executions;
    cudnn_double.last = r;
    return CUDNN_STATUS_SUCCESS;
}

cudnn_double_engine engine(int64_t index, std::initializer_list<int cudnn_double_engine::*> set, int64_t workspace)
{
    cudnn_double_engine e = {};
    e.index = index;
    e.workspace = workspace;
    for (auto member : set) e.*member = 1;
    return e;
}

/* One of each kind. What is no good comes first, so that it is seen to be passed over. */
std::vector<cudnn_double_engine> some_engines()
{
    typedef cudnn_double_engine e;
    return {
        engine(40, { &e::tensor_core, &e::no_plan }, 0),
        engine(41, { &e::tensor_core }, (int64_t)1 << 45),
        engine(42, { &e::tensor_core, &e::down_converts }, 0),
        engine(43, { &e::tensor_core, &e::reduced_reduction }, 0),
        engine(44, { &e::tensor_core, &e::nondeterministic, &e::compiled }, 0),
        engine(45, { &e::tensor_core }, 5000),
        engine(0, {}, 0),
        engine(1, { &e::nondeterministic, &e::fallback }, 300),
    };
}

struct at_start { at_start() { cudnn_double_reset(); } } reset_at_start;

}

/* ------------------------------------------------------------------------------------------------ the interface */

extern "C" {

void cudnn_double_reset(void)
{
    live.clear();
    dead.clear();
    handles.clear();
    jobs.clear();
    last_error.clear();
    cudnn_double = {};
    for (const cudnn_double_engine &e : some_engines()) cudnn_double.engine[cudnn_double.engines++] = e;
}

int cudnn_double_leaks(void)
{
    if (cudnn_double.descriptors) amp_cuda_report("cuDNN: %d descriptors were not destroyed", cudnn_double.descriptors);
    if (cudnn_double.handles) amp_cuda_report("cuDNN: %d handles were not destroyed", cudnn_double.handles);
    return cudnn_double.descriptors + cudnn_double.handles;
}

size_t cudnnGetVersion(void) { return CUDNN_VERSION; }

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    if (status == CUDNN_STATUS_SUCCESS) return "CUDNN_STATUS_SUCCESS";
    if (status == CUDNN_STATUS_ALLOC_FAILED) return "CUDNN_STATUS_ALLOC_FAILED";
    if (status == CUDNN_STATUS_EXECUTION_FAILED) return "CUDNN_STATUS_EXECUTION_FAILED";
    if (status == UNSUPPORTED) return "CUDNN_STATUS_NOT_SUPPORTED";
    if (status == BAD) return "CUDNN_STATUS_BAD_PARAM";
    return "a status that the double does not use";
}

#if CUDNN_VERSION >= 90000
void cudnnGetLastErrorString(char *text, size_t size)
{
    snprintf(text, size, "%s", last_error.c_str());
    last_error.clear();
}
#endif

cudnnStatus_t cudnnCreate(cudnnHandle_t *out)
{
    MAY_FAIL();
    CHECK(out, "cudnnCreate: NULL");
    std::unique_ptr<handle> h(new handle());
    *out = (cudnnHandle_t)h.get();
    handles[*out] = std::move(h);
    ++cudnn_double.handles;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t h)
{
    CHECK(handles.erase(h), "cudnnDestroy: no handle");
    --cudnn_double.handles;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t h, cudaStream_t stream)
{
    MAY_FAIL();
    CHECK(handles.count(h), "cudnnSetStream: no handle");
    handles[h]->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out)
{
    MAY_FAIL();
    CHECK(out, "cudnnBackendCreateDescriptor: NULL");
    if (!rules.count(type)) return reject(UNSUPPORTED, "cudnnBackendCreateDescriptor: the double has no type %d", (int)type);
    std::unique_ptr<descriptor> d(new descriptor());
    d->content_ = std::make_shared<content>();
    d->content_->type = type;
    *out = d.get();
    live[*out] = std::move(d);
    ++cudnn_double.descriptors;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d)
{
    auto at = live.find(d);
    CHECK(at != live.end(), "cudnnBackendDestroyDescriptor: %p is none, or no more", d);
    dead.push_back(std::move(at->second));
    live.erase(at);
    if (dead.size() > 4096) dead.pop_front();
    --cudnn_double.descriptors;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
    cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    MAY_FAIL();
    descriptor *it = find(d);
    CHECK(it, "cudnnBackendSetAttribute: %p is no descriptor, or no more", d);
    CHECK(!it->finalized, "cudnnBackendSetAttribute: attribute %d of a finalized descriptor", (int)name);
    const rule *r = rule_for(it->content_->type, name);
    CHECK(r, "cudnnBackendSetAttribute: the double knows no attribute %d of a descriptor of type %d", (int)name, (int)it->content_->type);
    CHECK(type == r->type, "%s: type %d instead of %d", r->text, (int)type, r->type);
    CHECK(values && count >= r->least && count <= r->most, "%s: %lld values", r->text, (long long)count);
    value v;
    v.count = count;
    v.bytes.assign((const char *)values, (const char *)values + size_of_type(type) * (size_t)count);
    if (type == CUDNN_TYPE_HANDLE) CHECK(handles.count(*(void *const *)values), "%s: no handle", r->text);
    for (int64_t i = 0; type == CUDNN_TYPE_BACKEND_DESCRIPTOR && i < count; ++i) {
        descriptor *inner = find(((void *const *)values)[i]);
        CHECK(inner && inner->finalized, "%s: a descriptor that is not finalized, or no more", r->text);
        CHECK(!r->refers_to || inner->content_->type == r->refers_to, "%s: a descriptor of type %d", r->text,
            (int)inner->content_->type);
        v.descriptors.push_back(inner->content_);
    }
    it->content_->values[name] = v;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t d)
{
    MAY_FAIL();
    descriptor *it = find(d);
    CHECK(it, "cudnnBackendFinalize: %p is no descriptor, or no more", d);
    CHECK(!it->finalized, "cudnnBackendFinalize: a descriptor of type %d, again", (int)it->content_->type);
    for (const rule &r : rules.at(it->content_->type))
        CHECK(!r.required || it->content_->values.count(r.name), "cudnnBackendFinalize: %s is not set", r.text);
    cudnnStatus_t status = check(*it->content_);
    it->finalized = status == CUDNN_STATUS_SUCCESS;
    return status;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
    cudnnBackendAttributeType_t type, int64_t room, int64_t *count, void *values)
{
    MAY_FAIL();
    descriptor *it = find(d);
    CHECK(it && it->finalized, "cudnnBackendGetAttribute: attribute %d of no finalized descriptor", (int)name);
    const content &c = *it->content_;
    const question *q = asked(c, name);
    CHECK(q, "cudnnBackendGetAttribute: the double knows no attribute %d of a descriptor of type %d", (int)name, (int)c.type);
    CHECK(type == q->type, "cudnnBackendGetAttribute: attribute %d is of type %d, not %d", (int)name, q->type, (int)type);
    CHECK(count && room >= 0 && (values || !room), "cudnnBackendGetAttribute: nowhere to write attribute %d", (int)name);
    if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) return name_engines(c, room, count, values);
    if (name == CUDNN_ATTR_ENGINECFG_ENGINE) return engine_of(c, room, count, values);
    const content &config = c.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR
        ? referred(c, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG) : c;
    const cudnn_double_engine &e = cudnn_double.engine[config.engine];
    if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE) return answer(numerical_notes(e), room, count, values);
    if (name == CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE)
        return answer(std::vector<cudnnBackendBehaviorNote_t>(e.compiled, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION), room, count,
            values);
    return answer(std::vector<int64_t>{ name == CUDNN_ATTR_ENGINE_GLOBAL_INDEX ? e.index : e.workspace }, room, count, values);
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t h, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack)
{
    MAY_FAIL();
    descriptor *p = find(plan), *v = find(pack);
    CHECK(handles.count(h), "cudnnBackendExecute: no handle");
    CHECK(p && p->finalized && p->content_->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "cudnnBackendExecute: no finalized plan");
    CHECK(v && v->finalized && v->content_->type == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
        "cudnnBackendExecute: no finalized variant pack");
    CHECK(one<void *>(*p->content_, CUDNN_ATTR_EXECUTION_PLAN_HANDLE) == (void *)h, "cudnnBackendExecute: another handle than the plan's");
    return execute(*handles[h], *p->content_, *v->content_);
}

}
