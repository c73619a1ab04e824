/* The table of layer kinds, by kind: see AMP_LAYER_TABLE. */
#include "layer.h"

#define EXTERN(NAME, name, CLASS) extern const amp_layer_ops amp_##name##_ops;
AMP_LAYER_TABLE(EXTERN)

static const struct {
    const amp_layer_ops *ops;
    amp_autocast_class class;
} kinds[] = {
#define ENTRY(NAME, name, CLASS) [AMP_LAYER_##NAME] = { &amp_##name##_ops, AMP_CLASS_##CLASS },
    AMP_LAYER_TABLE(ENTRY)
};

const amp_layer_ops *amp_layer_ops_of(amp_layer_kind kind) { return kinds[kind].ops; }
amp_autocast_class amp_autocast_class_of(amp_layer_kind kind) { return kinds[kind].class; }
