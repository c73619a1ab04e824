/* Which file computes which layer kind. */
#include "layer.h"

const amp_layer_ops *amp_layer_ops_of(amp_layer_kind kind)
{
    switch (kind) {
    case AMP_LAYER_CONVOLUTIONAL: return &amp_convolutional_ops;
    case AMP_LAYER_CONNECTED: return &amp_connected_ops;
    case AMP_LAYER_DECONVOLUTIONAL: return &amp_deconvolutional_ops;
    case AMP_LAYER_LOCAL: return &amp_local_ops;
    case AMP_LAYER_BATCHNORM: return &amp_batchnorm_ops;
    case AMP_LAYER_ACTIVATION: return &amp_activation_ops;
    case AMP_LAYER_MAXPOOL: return &amp_maxpool_ops;
    case AMP_LAYER_AVGPOOL: return &amp_avgpool_ops;
    case AMP_LAYER_ROUTE: return &amp_route_ops;
    case AMP_LAYER_SHORTCUT: return &amp_shortcut_ops;
    case AMP_LAYER_UPSAMPLE: return &amp_upsample_ops;
    case AMP_LAYER_REORG: return &amp_reorg_ops;
    case AMP_LAYER_DROPOUT: return &amp_dropout_ops;
    case AMP_LAYER_YOLO: return &amp_yolo_ops;
    case AMP_LAYER_HOST:
    case AMP_LAYER_KINDS: break;
    }
    return &amp_host_layer_ops;
}

void amp_node_release(amp_node *node, amp_backend *backend)
{
    if (node->conv) backend->conv_destroy(backend, node->conv);
    if (node->local) backend->local_destroy(backend, node->local);
    if (node->map) backend->release(backend, node->map);
    node->conv = NULL;
    node->local = NULL;
    node->map = NULL;
}
