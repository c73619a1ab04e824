/* Known faults of Darknet's own code: those of all forks, then the fork's own. A comparison with stock
 * ignores differences in what a row covers, so a row must not cover more than the fault. docs/guide.md lists
 * the faults for users. */
#include "room.h"

/* ---- a dropout changes the output of the layer before it, and that layer's backward reads it ---- */

/* Whether the activation's gradient depends on more than the output's sign. (mish's depends on the input.) */
static int slope_needs_size(ACTIVATION a)
{
    switch (amp_host_activation_of(a)) {
    case AMP_LINEAR: case AMP_LEAKY: case AMP_RELU: case AMP_RELIE: case AMP_RAMP: case AMP_MISH:
    case AMP_HARD_MISH: return 0;
    default: return 1;
    }
}

static int reads_its_output(const layer *l)
{
    switch (l->type) {
    case GRU: case LSTM: return 1;
    case CONVOLUTIONAL: case DECONVOLUTIONAL: case CONNECTED: case LOCAL: case ACTIVE: case RNN: case CRNN:
    case AMP_OWN_JOINERS: return slope_needs_size(l->activation);
    default: return 0;
    }
}

static int is_dropped(const network *net, const layer *l, int i, int on_gpu)
{
    int dropped = 0;
    while (++i < net->n && amp_own_borrows_buffers(&net->layers[i]))
        dropped |= net->layers[i].type == DROPOUT;
    return dropped && reads_its_output(l);
}

/* ---- missing deltas ---- */

static int lacks_delta(const network *net, int i, int on_gpu)
{
    return i < 0 || !*amp_host_delta_of(&net->layers[i], on_gpu);
}

/* Whether a far input of the layer has no delta (a crop has none). */
static int reads_a_layer_without_delta(const network *net, const layer *l, int i, int on_gpu)
{
    const int *far;
    int lacks = 0;
    for (int k = amp_own_far_inputs(l, &far); k > 0; k--) lacks |= lacks_delta(net, far[k - 1], on_gpu);
    return lacks;
}

/* Whether the layer's backward writes to a missing delta of the layer before it. On the CPU, gaps.c prevents
 * this. */
static int writes_to_no_delta(const network *net, const layer *l, int i, int on_gpu)
{
    if (!on_gpu || !lacks_delta(net, i - 1, 1) || amp_own_borrows_buffers(l)) return 0;
    switch (l->type) {
    case CONVOLUTIONAL: case DECONVOLUTIONAL: case CONNECTED: case LOCAL: case RNN: case GRU: case LSTM:
    case CRNN: case ROUTE: case CROP: return 0;
    default: return 1;
    }
}

/* ---- others ---- */

/* Batch norm divides by n - 1 to get the variance; with a single number this is 0 / 0. */
static int norms_one_number(const network *net, const layer *l, int i, int on_gpu)
{
    amp_own_part parts[AMP_OWN_MOST_PARTS];
    int count = amp_host_parts(l, parts), single = 0;
    for (int k = 0; k < count; k++)
        single |= parts[k].part->batch_normalize
                  && parts[k].part->batch * parts[k].part->out_w * parts[k].part->out_h == 1;
    if (count) return single;
    return (l->batch_normalize || l->type == BATCHNORM) && l->batch * l->out_w * l->out_h == 1;
}

static int draws_on_gpu(const network *net, const layer *l, int i, int on_gpu)
{
    return on_gpu && (l->type == DROPOUT || l->type == CROP);
}

static int overwrites_delta(const network *net, const layer *l, int i, int on_gpu)
{
    return amp_gap_overwrites_delta(l, on_gpu);
}

static const amp_own_fault of_all_forks[] = {
    { reads_a_layer_without_delta, { AMP_CANNOT_RUN, "writes to the delta of a layer that has no delta" } },
    { writes_to_no_delta, { AMP_CANNOT_RUN, "writes to the delta of the layer before it, which has no "
                                            "delta" } },
    { is_dropped, { AMP_WRONG_BACKWARD, "computes the slope of its activation from its output "
                                        "after dropout" } },
    { norms_one_number, { AMP_WRONG_ALL | AMP_UNDEFINED, "has a batch norm of one number for each channel, "
                                                         "whose variance is 0 / 0: use more -images" } },
    { draws_on_gpu, { AMP_WRONG_OUTPUT | AMP_WRONG_DELTA, "draws its random numbers on the GPU, but under "
                                                          "AMP on the CPU" } },
    { overwrites_delta, { AMP_LOSES_DELTA, "overwrites the delta of the layer before it, and loses what "
                                           "later layers have added to it" } },
};
enum { COUNT_OF_ALL = sizeof of_all_forks / sizeof *of_all_forks };

static const amp_own_fault *row_at(int row)
{
    return row < COUNT_OF_ALL ? &of_all_forks[row] : &amp_own_faults[row - COUNT_OF_ALL];
}

const amp_stock_fault *amp_fork_stock_fault(int row)
{
    const amp_own_fault *fault = row_at(row);
    return fault->is_in ? &fault->told : NULL;
}

int amp_fork_has_stock_fault(const struct network *net, int i, int row)
{
    return row_at(row)->is_in(net, &net->layers[i], i, amp_host_on_gpu(net));
}
