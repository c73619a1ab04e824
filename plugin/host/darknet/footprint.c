/* Computes how many bytes and operations Darknet's layers need: see fork.h and fork_commands.h. The formulas
 * follow stock's make_*_layer functions; test_plan_command.c checks them. */
#include <limits.h>

#include "room.h"

int amp_fork_largest_batch(const network *net)
{
    int most = net->inputs > net->truths ? net->inputs : net->truths;
    for (int i = 0; i < net->n; i++) if (net->layers[i].outputs > most) most = net->layers[i].outputs;
    return most > 0 ? INT_MAX / most : INT_MAX;
}

/* ---- stock's buffers ---- */

/* Returns how many arrays a layer allocates that have the size of its output. A crop has no delta. A
 * recurrent layer also has arrays of one time step, which states_of counts, and the arrays of the layers
 * inside it, which stock_bytes adds. */
static size_t arrays_of(const layer *l, int on_gpu)
{
    int normalizes = l->batch_normalize
        && (l->type == CONVOLUTIONAL || l->type == DECONVOLUTIONAL || l->type == CONNECTED);
    if (amp_own_borrows_buffers(l)) return 0;
    switch (l->type) {
    case RNN: case CRNN: return 0;
    case CROP: return 1;
    case GRU: return 2;
    case LSTM: return on_gpu ? 3 : 2; /* output, cell and, on a GPU, delta */
    case MAXPOOL: case SOFTMAX: case LOGXENT: case L2NORM: return 3; /* also indexes, losses or scales */
    case NORMALIZATION: return 4;  /* also squares and norms */
    case BATCHNORM: return on_gpu ? 4 : 2;
    default: return normalizes ? 4 : 2; /* also batch norm's x and x_norm */
    }
}

/* Returns how many arrays a layer allocates that have the size of one time step's output. */
static size_t states_of(const layer *l)
{
    switch (l->type) {
    case RNN: return 2;
    case GRU: return 7;
    case LSTM: return 14; /* state, prev_state, prev_cell, f, i, g, o, c, h, temp to temp3, dc, dh */
    default: return 0;
    }
}

static size_t stock_bytes(const layer *l, int batch, int on_gpu)
{
    amp_own_part parts[AMP_OWN_MOST_PARTS];
    size_t images = (size_t)batch, steps = l->steps > 0 ? (size_t)l->steps : 1;
    size_t floats = arrays_of(l, on_gpu) * (size_t)l->outputs * images
        + states_of(l) * (size_t)l->outputs * (images / steps);
    if (l->type == DROPOUT) floats += (size_t)l->inputs * images;
    if (l->type == CONVOLUTIONAL && l->xnor) floats += (size_t)l->inputs * images;
    if (l->type == CRNN) floats += (size_t)l->hidden * (images / steps) * (steps + 1);
    size_t bytes = (floats + amp_own_stock_floats(l, batch, on_gpu)) * sizeof(float);
    for (int k = amp_host_parts(l, parts) - 1; k >= 0; k--)
        bytes += stock_bytes(parts[k].part, batch, on_gpu);
    return bytes;
}

size_t amp_fork_stock_bytes(const struct network *net, int i, int batch)
{
    return stock_bytes(&net->layers[i], batch, amp_host_on_gpu(net));
}

static size_t im2col_bytes(const layer *l)
{
    size_t window = (size_t)l->size * (size_t)l->size * sizeof(float);
    if (l->type == CONVOLUTIONAL)
        return (size_t)l->out_h * (size_t)l->out_w * window
            * (size_t)(l->c / (l->groups > 0 ? l->groups : 1));
    if (l->type == DECONVOLUTIONAL) return (size_t)l->h * (size_t)l->w * window * (size_t)l->n;
    return 0;
}

size_t amp_fork_workspace(const network *net, int stock)
{
    size_t most = 0;
    for (int i = 0; i < net->n; i++) {
        const layer *l = &net->layers[i];
        size_t bytes = stock || amp_host_is_native(l) ? 0 : amp_own_layer_workspace(net, i);
        /* Some forks do not update the workspace size of an xnor layer when random=1 resizes it. */
        if ((stock || l->xnor) && im2col_bytes(l) > bytes) bytes = im2col_bytes(l);
        if (bytes > most) most = bytes;
    }
    return most;
}

/* ---- AMP's buffers ---- */

size_t amp_fork_buffer_bytes(const network *net, int i, int batch, const amp_plan *plan)
{
    const layer *l = &net->layers[i];
    size_t output = (size_t)l->outputs * (size_t)batch * sizeof(float);
    if (amp_host_is_native(l)) return output * (size_t)(plan->needs_output[i] + plan->needs_delta[i]);
    int on_gpu = amp_host_on_gpu(net);
    size_t delta = l->type == LSTM && !on_gpu ? output : 0; /* absent in stock; AMP allocates it */
    return stock_bytes(l, batch, on_gpu) + delta;
}

/* ---- arithmetic ---- */

static double operations(const layer *l, int batch)
{
    amp_own_part parts[AMP_OWN_MOST_PARTS];
    double products = 0, sum = 0, weights = (double)amp_host_sizes_of(l).weights;
    switch (l->type) {
    case CONVOLUTIONAL: products = weights * l->out_h * l->out_w; break;
    case DECONVOLUTIONAL: products = weights * l->h * l->w; break;
    case CONNECTED: case LOCAL: products = weights; break;
    default: break;
    }
    for (int k = amp_host_parts(l, parts) - 1; k >= 0; k--) sum += operations(parts[k].part, batch);
    return 2 * products * batch + sum;
}

static int is_misaligned(const layer *l)
{
    int groups = l->groups > 0 ? l->groups : 1;
    if (l->type == CONVOLUTIONAL || l->type == DECONVOLUTIONAL) return l->c / groups % 8 || l->n / groups % 8;
    return l->type == CONNECTED && (l->inputs % 8 || l->outputs % 8);
}

amp_layer_work amp_fork_layer_work(const struct network *net, int i)
{
    const layer *l = &net->layers[i];
    amp_own_part parts[AMP_OWN_MOST_PARTS];
    double images = net->batch, products = operations(l, net->batch);
    double weights = products > 0 ? (double)amp_host_sizes_of(l).weights : 0;
    amp_layer_work out = { .type = amp_host_type_name(l->type), .products = products,
                           .misaligned = is_misaligned(l) };
    if (amp_host_parts(l, parts)) return out;
    out.operations = products > 0 ? products : (double)l->outputs * images;
    out.bytes = 4 * (weights + images * ((double)l->inputs + l->outputs));
    return out;
}
