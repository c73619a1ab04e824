/* Counts exponents, in any dtype and layout of a tensor: the order of its elements does not matter. */
#include "numerics.h"

#include <string.h>

#include "../layers/epilogue.h"
#include "../tensor/half.h"

enum {
    PIECE = 16384,       /* numbers counted at a time, which fit into the innermost caches */
    DOWNLOAD = 16 * PIECE
};

struct amp_numerics {
    amp_layer_numerics *layers;
    int layer_count;
    const amp_engine *engine;
    int skips_gradients;
    int last_output;     /* in this pass; the network's output is shown twice */
    int inner_pending;   /* the layer whose delta was shown, but not yet its inner delta */
    unsigned char *buffer; /* DOWNLOAD numbers */
};

/* ---- counting ---- */

static unsigned magnitude_of(float number) { return amp_float_bits(number) & 0x7fffffffu; }

/* Bin b holds the numbers from 2^(b-149) on; a subnormal's bin is the position of its topmost bit. Not for 0,
 * inf or NaN. */
static int bin_of(unsigned magnitude)
{
    int bin = 0;
    if (magnitude >= 0x00800000u) return (int)(magnitude >> 23) + 22;
    while (magnitude >>= 1) bin++;
    return bin;
}

/* Compares bits: a host built with -Ofast treats subnormals as 0. */
static float larger(float a, float b) { return amp_float_bits(a) > amp_float_bits(b) ? a : b; }

static void add_piece(amp_exponents *e, const float *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        unsigned magnitude = magnitude_of(numbers[i]);
        if (magnitude == 0) {
            e->zeros++;
        } else if (magnitude >= 0x7f800000u) {
            e->not_finite++;
        } else {
            e->bins[bin_of(magnitude)]++;
            e->largest = larger(e->largest, amp_bits_float(magnitude));
        }
    }
}

static void add_exponents(amp_exponents *to, const amp_exponents *from)
{
    for (int b = 0; b < AMP_EXPONENTS; b++) to->bins[b] += from->bins[b];
    to->zeros += from->zeros;
    to->not_finite += from->not_finite;
    to->largest = larger(to->largest, from->largest);
}

static void widen(const amp_half_bits *halves, amp_dtype dtype, float *numbers, size_t count)
{
    if (dtype == AMP_BF16) for (size_t i = 0; i < count; i++) numbers[i] = amp_bf16_to_float(halves[i]);
    else for (size_t i = 0; i < count; i++) numbers[i] = amp_fp16_to_float(halves[i]);
}

void amp_exponents_add(amp_exponents *e, const void *data, amp_dtype dtype, size_t count)
{
    long pieces = (long)((count + PIECE - 1) / PIECE);
    #pragma omp parallel if (pieces > 1)
    {
        amp_exponents mine = { .zeros = 0 };
        float wide[PIECE];
        #pragma omp for
        for (long p = 0; p < pieces; p++) {
            size_t first = (size_t)p * PIECE, size = count - first < PIECE ? count - first : PIECE;
            const float *numbers = (const float *)data + first;
            if (dtype != AMP_FP32) {
                widen((const amp_half_bits *)data + first, dtype, wide, size);
                numbers = wide;
            }
            add_piece(&mine, numbers, size);
        }
        #pragma omp critical(amp_numerics)
        add_exponents(e, &mine);
    }
}

unsigned long long amp_exponents_count(const amp_exponents *e)
{
    unsigned long long count = 0;
    for (int b = 0; b < AMP_EXPONENTS; b++) count += e->bins[b];
    return count;
}

/* ---- observing ---- */

amp_numerics *amp_numerics_create(int layers, const amp_engine *engine)
{
    amp_numerics *n = amp_allocated(malloc(sizeof *n));
    *n = (amp_numerics){ .layer_count = layers, .engine = engine, .last_output = -1, .inner_pending = -1 };
    n->layers = amp_allocated(calloc((size_t)layers + 1, sizeof *n->layers));
    n->buffer = amp_allocated(malloc(DOWNLOAD * sizeof(float)));
    return n;
}

void amp_numerics_free(amp_numerics *n)
{
    if (!n) return;
    free(n->layers);
    free(n->buffer);
    free(n);
}

void amp_numerics_count_gradients(amp_numerics *n, int counted) { n->skips_gradients = !counted; }

const amp_layer_numerics *amp_numerics_of(const amp_numerics *n, int layer) { return &n->layers[layer]; }

static amp_status add_tensor(amp_numerics *n, amp_exponents *e, amp_backend *b, const amp_tensor *t,
                             amp_error *error)
{
    size_t size = amp_dtype_size(t->dtype), count = amp_shape_count(t->shape);
    for (size_t first = 0; first < count; first += DOWNLOAD) {
        size_t part = count - first < DOWNLOAD ? count - first : DOWNLOAD;
        AMP_TRY(b->download(b, n->buffer, (const unsigned char *)t->data + first * size, part * size, error));
        amp_exponents_add(e, n->buffer, t->dtype, part);
    }
    return AMP_OK;
}

static const amp_node *node_of(const amp_numerics *n, int layer)
{
    const amp_plan *plan = n->engine ? amp_engine_plan(n->engine) : NULL;
    return plan ? &plan->nodes[layer] : NULL;
}

static amp_status see_output(amp_numerics *n, amp_backend *b, const amp_seen *seen, amp_error *error)
{
    const amp_node *node = node_of(n, seen->layer);
    amp_layer_numerics *layer = &n->layers[seen->layer];
    if (seen->layer == n->last_output) return AMP_OK;
    n->last_output = seen->layer;
    if (node && node->pre_activation) {
        amp_tensor sums = seen->tensor;
        sums.data = node->pre_activation;
        AMP_TRY(add_tensor(n, &layer->inner_output, b, &sums, error));
    }
    return add_tensor(n, &layer->output, b, &seen->tensor, error);
}

/* By the time gradients are shown, backward has computed the delta of the sums. */
static amp_status see_inner_delta(amp_numerics *n, amp_backend *b, int layer, amp_error *error)
{
    const amp_node *node = node_of(n, layer);
    if (n->inner_pending != layer || !node || !amp_epilogue_changes_delta(node)) return AMP_OK;
    n->inner_pending = -1;
    amp_tensor delta = amp_epilogue_sums_delta(node);
    return add_tensor(n, &n->layers[layer].inner_delta, b, &delta, error);
}

static int is_weights(const char *name)
{
    size_t length = strlen(name), ending = strlen("weights");
    return length >= ending && !strcmp(name + length - ending, "weights"); /* "wf.weights" of an lstm */
}

static amp_status see(void *context, amp_backend *b, const amp_seen *seen, amp_error *error)
{
    amp_numerics *n = context;
    if (seen->kind == AMP_SEEN_IMAGE) n->last_output = -1;
    if (seen->layer < 0 || seen->layer >= n->layer_count) return AMP_OK;
    amp_layer_numerics *layer = &n->layers[seen->layer];
    switch (seen->kind) {
    case AMP_SEEN_OUTPUT: return see_output(n, b, seen, error);
    case AMP_SEEN_DELTA:
        n->inner_pending = seen->layer;
        return add_tensor(n, &layer->delta, b, &seen->tensor, error);
    case AMP_SEEN_GRADIENT:
        AMP_TRY(see_inner_delta(n, b, seen->layer, error));
        return n->skips_gradients || !is_weights(seen->name) ? AMP_OK : add_tensor(n, &layer->gradient, b,
                &seen->tensor, error);
    default: return AMP_OK;
    }
}

amp_observer amp_numerics_observer(amp_numerics *n) { return (amp_observer){ .context = n, .see = see }; }
