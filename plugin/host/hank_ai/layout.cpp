/* Fails the build if C11 (darknet.h) and Darknet's C++ differ in the size of a struct, for example because
 * they were configured differently, or in the value of a layer type or an activation. A checksum of the
 * structs' text (plugin_hank_ai) covers their fields. */
#include "darknet_internal.hpp"

#include <pthread.h>
#include <type_traits>

namespace seen_by_c {
typedef struct tree tree;
struct network_state;
#define AMP_OTHER_LAYERS
#define AMP_OTHER_DATA
#include "structs.h"
}

#define SAME(seen, real) \
    static_assert(sizeof(seen) == sizeof(real), #real " has another size in C"); \
    static_assert(std::is_standard_layout_v<real>, #real " has fields that C does not know");

SAME(seen_by_c::layer, Darknet::Layer)
SAME(seen_by_c::network, Darknet::Network)
SAME(seen_by_c::network_state, Darknet::NetworkState)
SAME(seen_by_c::load_args, load_args)
SAME(seen_by_c::data, data)
SAME(seen_by_c::box_label, box_label)
SAME(seen_by_c::detection, Darknet::Detection)
SAME(seen_by_c::image, Darknet::Image)

/* These structs are passed by value from C to C++ and back. */
template <typename Struct> constexpr bool passes = std::is_trivially_copyable_v<Struct>;
static_assert(passes<Darknet::Network> and passes<Darknet::Layer> and passes<Darknet::NetworkState>
              and passes<load_args> and passes<data>, "C cannot pass these structs by value");

#define TYPE(type) \
    static_assert(static_cast<int>(seen_by_c::type) == static_cast<int>(Darknet::ELayerType::type))
TYPE(CONVOLUTIONAL);
TYPE(YOLO);
TYPE(CONTRASTIVE);
static_assert(static_cast<int>(seen_by_c::MISH) == static_cast<int>(::MISH)
              and static_cast<int>(seen_by_c::NORM_CHAN_SOFTMAX_MAXVAL)
                  == static_cast<int>(::NORM_CHAN_SOFTMAX_MAXVAL));
