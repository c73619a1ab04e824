/* Matrix products of rnn, gru, lstm and crnn, which run Darknet's own code in fp32, but spend most of their
 * time in gemm. Darknet's gemm calls darknet_amp_gemm first; while one of these layers runs under AMP, the
 * backend computes the product, in the layer's dtype with fp32 sums.
 *
 * Weights are multiplied in each time step but change only at an update, so they have a version number and
 * are rounded once per version. All other factors of a product have version 0 and are rounded each time. */
#include "state.h"

void amp_host_products_begin(struct darknet_amp *amp, int layer)
{
    const amp_node *node = &amp->engine->active->nodes[layer];
    if (!node->desc.lends_products) return;
    amp_this_thread()->layer = node;
    amp_this_thread()->engine = amp->engine;
}

void amp_host_products_end(void) { amp_this_thread()->layer = NULL; }

static amp_factor factor_of(const float *data, int ld, int transposed)
{
    const amp_layer_desc *d = &amp_this_thread()->layer->desc;
    amp_factor f = { data, ld, transposed, 0 };
    for (int k = 0; k < d->param_count; k++)
        if (d->params[k].master == data) f.version = amp_this_thread()->engine->weights_version;
    return f;
}

int darknet_amp_gemm(int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float *a,
                     int lda, const float *b, int ldb, float beta, float *c, int ldc)
{
    const amp_node *layer = amp_this_thread()->layer;
    if (!layer) return 0;
    amp_error error;
    amp_backend *backend = amp_this_thread()->engine->backend;
    const amp_gemm_desc product = { .m = m, .n = n, .k = k, .alpha = alpha, .beta = beta,
                                    .a = factor_of(a, lda, transpose_a),
                                    .b = factor_of(b, ldb, transpose_b), .c = c, .ldc = ldc,
                                    .dtype = layer->products };
    if (backend->gemm(backend, &product, &error) == AMP_OK) return 1;
    /* Darknet's functions cannot return an error */
    darknet_amp_refuse("layer %d [%s]: %s", layer->index, layer->desc.type, error.message);
}
