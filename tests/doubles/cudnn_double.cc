/* The double's descriptors, heuristics, and the interface. A descriptor that another is told of is kept as it
 * was then, so that it may be destroyed before. */
#include "cudnn_content.h"

#include <deque>

#include <stdarg.h>
#include <stdio.h>

#include "cuda_doubles.h"

cudnn_double_state cudnn_double;

namespace amp_cudnn {

std::string last_error;

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

}

using namespace amp_cudnn;

namespace {

/* ------------------------------------------------------------------------------------------------ calls */

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

/* -------------------------------------------------------------------------------------------- descriptors */

struct descriptor {
    std::shared_ptr<content> content_;
    bool finalized = false;
};

std::map<void *, std::unique_ptr<descriptor>> live;
std::deque<std::unique_ptr<descriptor>> dead; /* kept a while, so that no new one has the address */
struct handle { cudaStream_t stream = nullptr; };
std::map<void *, std::unique_ptr<handle>> handles;

const rule *rule_for(int type, int name)
{
    for (const rule &r : rules.at(type))
        if (r.name == name) return &r;
    return nullptr;
}

size_t size_of_type(int type)
{
    switch (type) {
    case CUDNN_TYPE_INT64: case CUDNN_TYPE_BACKEND_DESCRIPTOR: case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
        return 8;
    default: return 4;
    }
}

descriptor *find(cudnnBackendDescriptor_t d)
{
    auto at = live.find(d);
    return at == live.end() ? nullptr : at->second.get();
}

/* ---------------------------------------------------------------------------------------------- questions */

/* A blank descriptor that the caller made for the library to fill. */
descriptor *to_fill(void *const *values, int64_t i, int type)
{
    descriptor *d = find(values[i]);
    return d && !d->finalized && d->content_->type == type ? d : nullptr;
}

cudnnStatus_t name_engines(const content &heuristics, int64_t room, int64_t *count, void *values)
{
    bool fallback = one<cudnnBackendHeurMode_t>(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE) ==
        CUDNN_HEUR_MODE_FALLBACK;
    *count = 0;
    for (int i = 0; i < cudnn_double.engines; i++) {
        if (!cudnn_double.engine[i].fallback == fallback) continue;
        if (*count < room) {
            descriptor *config = to_fill((void *const *)values, *count, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
            CHECK(config, "ENGINEHEUR_RESULTS: place %lld holds no blank engine config", (long long)*count);
            config->finalized = true;
            config->content_->engine = i;
            config->content_->graph =
                heuristics.values.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH).descriptors[0];
        }
        ++*count;
    }
    return CUDNN_STATUS_SUCCESS;
}

template <class T> cudnnStatus_t answer(const std::vector<T> &values, int64_t room, int64_t *count, void *out)
{
    *count = (int64_t)values.size();
    for (int64_t i = 0; i < room && i < *count; i++) static_cast<T *>(out)[i] = values[i];
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

cudnn_double_engine engine(int64_t index, std::initializer_list<int cudnn_double_engine::*> set,
                           int64_t workspace)
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

void start()
{
    cudnn_double = {};
    for (const cudnn_double_engine &e : some_engines()) cudnn_double.engine[cudnn_double.engines++] = e;
}

struct at_start { at_start() { start(); } } started;

}

/* ------------------------------------------------------------------------------------------ the interface */

extern "C" {

void cudnn_double_reset(void)
{
    live.clear();
    dead.clear();
    handles.clear();
    forget_queued();
    last_error.clear();
    start();
}

int cudnn_double_leaks(void)
{
    if (cudnn_double.descriptors)
        amp_cuda_report("cuDNN: %d descriptors were not destroyed", cudnn_double.descriptors);
    if (cudnn_double.handles) amp_cuda_report("cuDNN: %d handles were not destroyed", cudnn_double.handles);
    return cudnn_double.descriptors + cudnn_double.handles;
}

size_t cudnnGetVersion(void) { return cudnn_double.version ? cudnn_double.version : CUDNN_VERSION; }

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

cudnnStatus_t cudnnGetStream(cudnnHandle_t h, cudaStream_t *stream)
{
    CHECK(handles.count(h) && stream, "cudnnGetStream: no handle");
    *stream = handles[h]->stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out)
{
    MAY_FAIL();
    CHECK(out, "cudnnBackendCreateDescriptor: NULL");
    if (!rules.count(type))
        return reject(UNSUPPORTED, "cudnnBackendCreateDescriptor: the double has no type %d", (int)type);
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
    CHECK(r, "cudnnBackendSetAttribute: the double knows no attribute %d of a descriptor of type %d",
        (int)name, (int)it->content_->type);
    CHECK(type == r->type, "%s: type %d instead of %d", r->text, (int)type, r->type);
    CHECK(values && count >= r->least && count <= r->most, "%s: %lld values", r->text, (long long)count);
    value v;
    v.count = count;
    v.bytes.assign((const char *)values, (const char *)values + size_of_type(type) * (size_t)count);
    if (type == CUDNN_TYPE_HANDLE) CHECK(handles.count(*(void *const *)values), "%s: no handle", r->text);
    for (int64_t i = 0; type == CUDNN_TYPE_BACKEND_DESCRIPTOR && i < count; i++) {
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
        CHECK(!r.required || it->content_->values.count(r.name), "cudnnBackendFinalize: %s is not set",
              r.text);
    cudnnStatus_t status = check(*it->content_);
    it->finalized = status == CUDNN_STATUS_SUCCESS;
    return status;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
    cudnnBackendAttributeType_t type, int64_t room, int64_t *count, void *values)
{
    MAY_FAIL();
    descriptor *it = find(d);
    CHECK(it && it->finalized, "cudnnBackendGetAttribute: attribute %d of no finalized descriptor",
          (int)name);
    const content &c = *it->content_;
    const question *q = asked(c, name);
    CHECK(q, "cudnnBackendGetAttribute: the double knows no attribute %d of a descriptor of type %d",
        (int)name, (int)c.type);
    CHECK(type == q->type, "cudnnBackendGetAttribute: attribute %d is of type %d, not %d", (int)name, q->type,
          (int)type);
    CHECK(count && room >= 0 && (values || !room), "cudnnBackendGetAttribute: nowhere to write attribute %d",
          (int)name);
    if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) return name_engines(c, room, count, values);
    if (name == CUDNN_ATTR_ENGINECFG_ENGINE) return engine_of(c, room, count, values);
    const content &config = c.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR
        ? referred(c, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG) : c;
    const cudnn_double_engine &e = cudnn_double.engine[config.engine];
    if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE) return answer(numerical_notes(e), room, count, values);
    if (name == CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE)
        return answer(
            std::vector<cudnnBackendBehaviorNote_t>(e.compiled, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION),
            room, count, values);
    return answer(std::vector<int64_t>{ name == CUDNN_ATTR_ENGINE_GLOBAL_INDEX ? e.index : e.workspace },
        room, count, values);
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t h, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack)
{
    MAY_FAIL();
    descriptor *p = find(plan), *v = find(pack);
    CHECK(handles.count(h), "cudnnBackendExecute: no handle");
    CHECK(p && p->finalized && p->content_->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
        "cudnnBackendExecute: no finalized plan");
    CHECK(v && v->finalized && v->content_->type == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
        "cudnnBackendExecute: no finalized variant pack");
    CHECK(one<void *>(*p->content_, CUDNN_ATTR_EXECUTION_PLAN_HANDLE) == (void *)h,
        "cudnnBackendExecute: another handle than the plan's");
    return execute(handles[h]->stream, *p->content_, *v->content_);
}

}
