/* What the files of cuDNN's double share: the contents of descriptors, the rules for them, and
 * how misuse is told. */
#ifndef AMP_CUDNN_CONTENT_H
#define AMP_CUDNN_CONTENT_H

#include "cudnn_double.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cudnn_convolution.h"

namespace amp_cudnn {

extern std::string last_error; /* what cudnnGetLastErrorString tells */

/* The kinds of failure, by the names that both cuDNN 8 and 9 have. */
const cudnnStatus_t BAD = CUDNN_STATUS_BAD_PARAM, UNSUPPORTED = CUDNN_STATUS_NOT_SUPPORTED;

/* Counts and reports a call that cuDNN would refuse, and returns the status. */
__attribute__((format(printf, 2, 3))) cudnnStatus_t reject(cudnnStatus_t status, const char *format, ...);

#define CHECK(condition, ...) do { if (!(condition)) return reject(BAD, __VA_ARGS__); } while (0)

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

struct rule {
    int name, type;
    int64_t least, most; /* values */
    bool required;
    int refers_to;       /* kind of descriptor, 0 for none */
    const char *text;
};

extern const std::map<int, std::vector<rule>> rules; /* by the descriptor's type */

template <class T> T one(const content &c, int name, size_t i = 0)
{
    T v;
    std::memcpy(&v, c.values.at(name).bytes.data() + i * sizeof v, sizeof v);
    return v;
}

inline const content &referred(const content &c, int name) { return *c.values.at(name).descriptors[0]; }

cudnn_double_run run_of(const content &operation);
amp_double::strided strided_of(const cudnn_double_tensor &);

/* What cuDNN would find wrong with a descriptor that has all it must have. */
cudnnStatus_t check(const content &);

/* Queues what the plan and the pack describe. */
cudnnStatus_t execute(cudaStream_t stream, const content &plan, const content &pack);
void forget_queued();

}

#endif
