/* Compares the structs that C11 sees (darknet.h) with those of Darknet's headers: a difference in a size, in
 * the place of a field or in the number of a type of layer ends the build here. */
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
#define PLACED(seen, real, field, name) \
    static_assert(offsetof(seen, field) == offsetof(real, name), #real "::" #name " is elsewhere in C"); \
    static_assert(sizeof(seen::field) == sizeof(real::name), #real "::" #name " has another size in C");

#define COMPARE(seen, real) \
    AMP_FIELDS_OF_##seen(PLACED, seen_by_c::seen, real) SAME(seen_by_c::seen, real)

COMPARE(layer, Darknet::Layer)
COMPARE(network, Darknet::Network)
COMPARE(network_state, Darknet::NetworkState)
COMPARE(load_args, load_args)
COMPARE(data, data)
COMPARE(box_label, box_label)
SAME(seen_by_c::detection, Darknet::Detection)
SAME(seen_by_c::image, Darknet::Image)

/* By value these go from C to C++ and back. */
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
