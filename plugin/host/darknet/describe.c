/* Translates Darknet's layer structs to the engine's descriptions. */
#include "room.h"

#include <math.h>

/* ---- parameters and statistics ---- */

/* A layer's trainable arrays, rolling statistics and state, in the memory of the CPU or the network's GPU.
 * *_updates: the addresses of Darknet's gradient pointers, which the engine redirects to its own arrays.
 * state: what a recurrent layer carries from batch to batch; NULL: none. */
typedef struct layer_arrays {
    float *weights, *biases, *scales, *rolling_mean, *rolling_variance, *state[2];
    float **weight_updates, **bias_updates, **scale_updates;
} layer_arrays;

#define ARRAY(field) ON_SIDE(on_gpu, l->field, l->field##_gpu)
#define ADDRESS(field) ON_SIDE(on_gpu, &l->field, &l->field##_gpu)

static layer_arrays arrays_of(layer *l, int on_gpu)
{
    layer_arrays a = { .weights = ARRAY(weights),
                       .biases = ARRAY(biases),
                       .scales = ARRAY(scales),
                       .rolling_mean = ARRAY(rolling_mean),
                       .rolling_variance = ARRAY(rolling_variance),
                       .weight_updates = ADDRESS(weight_updates),
                       .bias_updates = ADDRESS(bias_updates),
                       .scale_updates = ADDRESS(scale_updates) };
    if (l->type == RNN || l->type == GRU) a.state[0] = ARRAY(state);
    if (l->type == LSTM) {
        a.state[0] = ON_SIDE(on_gpu, l->h_cpu, l->h_gpu);
        a.state[1] = ON_SIDE(on_gpu, l->c_cpu, l->c_gpu);
    }
    return a;
}

static void add_param(amp_layer_desc *d, const char *name, float *master, float **slot, size_t count,
                      int decays, float clip)
{
    if (!master || !slot || !*slot || !count || d->param_count == AMP_MAX_PARAMS) return;
    d->params[d->param_count++] = (amp_param_desc){ .name = name, .master = master, .gradient_slot = slot,
                                                    .count = count, .decays = decays, .clip = clip };
}

/* factor: the fraction by which one pass moves a rolling statistic towards the batch's value; 0: the array is
 * a recurrent layer's state, in which a skipped step must not leave NaN. unsaved: not in a .weights file. */
static void add_statistics(amp_layer_desc *d, float *array, size_t count, float factor, int unsaved)
{
    if (!array || !count || d->statistics_count == AMP_MAX_STATISTICS) return;
    d->statistics[d->statistics_count++] = (amp_statistics_desc){ .array = array, .count = count,
                                                                  .rolling_factor = factor,
                                                                  .unsaved = unsaved };
}

/* Adds the parameters (`names`: weights, biases, scales) and rolling statistics of l, a layer or a part of a
 * recurrent layer. One pass runs l `steps` times. Every layer has a field for clip=, but Darknet obeys it
 * only in update_convolutional_layer_gpu. */
static void add_layer_params(amp_layer_desc *d, layer *l, const char *const names[3], int steps, int on_gpu)
{
    double kept = pow(1 - (double)amp_own_batchnorm_rule(l, on_gpu).rolling_factor, steps);
    layer_arrays a = arrays_of(l, on_gpu);
    amp_host_sizes sizes = amp_host_sizes_of(l);
    add_param(d, names[0], a.weights, a.weight_updates, sizes.weights, 1,
              l->type == CONVOLUTIONAL ? l->clip : 0);
    add_param(d, names[1], a.biases, a.bias_updates, sizes.channels, 0, 0);
    add_param(d, names[2], a.scales, a.scale_updates, sizes.channels, 0, 0);
    add_statistics(d, a.rolling_mean, sizes.channels, (float)(1 - kept), 0);
    add_statistics(d, a.rolling_variance, sizes.channels, (float)(1 - kept), 0);
}

/* A frozen layer learns no parameters, but its rolling statistics still change. */
static void describe_params(amp_layer_desc *d, layer *l, int on_gpu)
{
    amp_own_part parts[AMP_OWN_MOST_PARTS];
    layer_arrays a = arrays_of(l, on_gpu);
    int count = amp_host_parts(l, parts);
    for (int k = 0; k < 2; k++) add_statistics(d, a.state[k], (size_t)l->batch * l->outputs, 0, 1);
    for (int k = 0; k < count; k++)
        add_layer_params(d, parts[k].part, parts[k].names, l->steps > 0 ? l->steps : 1, on_gpu);
    if (!count) add_layer_params(d, l, AMP_OWN_NAMES(""), 1, on_gpu);
    if (amp_own_is_frozen(l)) d->param_count = 0;
}

/* Marks the arrays that a .weights file does not contain: all arrays of a layer with dontsave=1 and, in
 * pjreddie's Darknet, the biases of a [batchnorm] layer. */
static void mark_unsaved(amp_layer_desc *d, const layer *l, const layer_arrays *a)
{
    for (int k = 0; k < d->param_count; k++)
        d->params[k].unsaved = l->dontsave || (!AMP_OWN_SAVES_BATCHNORM_BIASES && l->type == BATCHNORM
                                               && d->params[k].master == a->biases);
    for (int k = 0; k < d->statistics_count; k++) d->statistics[k].unsaved |= l->dontsave != 0;
}

/* ---- which layers a layer reads, and where its labels come from: see room.h ---- */

int amp_host_producer(const network *net, int index, int consumer)
{
    while (index >= 0 && index + 1 < consumer && amp_own_borrows_buffers(&net->layers[index + 1])) index++;
    return index;
}

int amp_host_truth_layer(const network *net, int index)
{
    int truth = -1;
    for (int k = 0; k < index; k++) if (net->layers[k].truth) truth = k;
    return truth;
}

const float *amp_host_labels(const network *net, int index)
{
    int truth = amp_host_truth_layer(net, index), on_gpu = amp_host_on_gpu(net);
    if (truth >= 0) return *amp_host_output_of(&net->layers[truth], on_gpu);
    return net->truth ? ON_SIDE(on_gpu, net->truth, AMP_OWN_ON_GPU(net->truth_gpu)) : NULL;
}

/* ---- shapes ---- */

static amp_shape image_shape(int n, int c, int h, int w, int count)
{
    if (c > 0 && h > 0 && w > 0 && (long)c * h * w == count) return (amp_shape){ n, c, h, w };
    return (amp_shape){ n, count, 1, 1 };
}

/* Sets d->inputs. All inputs are earlier layers: the check of the .cfg has made sure of that. */
static void describe_inputs(network *net, int i, amp_layer_desc *d)
{
    layer *l = &net->layers[i];
    const int *far;
    int count = amp_own_far_inputs(l, &far), near = l->type != ROUTE;
    d->input_count = near + count;
    d->inputs = amp_allocated(malloc((size_t)d->input_count * sizeof *d->inputs));
    if (near) d->inputs[0] = amp_host_producer(net, i - 1, i);
    for (int k = 0; k < count; k++) d->inputs[near + k] = amp_host_producer(net, far[k], i);
}

static const amp_shape *shape_of(const amp_network_desc *out, int producer)
{
    return producer < 0 ? &out->image : &out->layers[producer].output;
}

/* AMP computes a route only if its inputs have the same width and height. */
static int routes_equal_sizes(const amp_network_desc *out, const amp_layer_desc *d)
{
    const amp_shape *first = shape_of(out, d->inputs[0]);
    for (int k = 1; k < d->input_count; k++) {
        const amp_shape *other = shape_of(out, d->inputs[k]);
        if (first->h != other->h || first->w != other->w) return 0;
    }
    return 1;
}

static void describe_shape(network *net, int i, const amp_network_desc *out, amp_layer_desc *d)
{
    const layer *l = &net->layers[i];
    const amp_shape *in = shape_of(out, d->inputs[0]);
    d->output = image_shape(net->batch, l->out_c, l->out_h, l->out_w, l->outputs);
    if (l->type == DROPOUT || l->type == ACTIVE || l->type == SHORTCUT) d->output = *in;
    if (l->type == YOLO) d->output = *in; /* resize_yolo_layer does not update out_w and out_h */
    if (l->type != ROUTE) return;
    if (routes_equal_sizes(out, d)) {
        d->output = image_shape(net->batch, l->outputs / (in->h * in->w), in->h, in->w, l->outputs);
    } else {
        d->kind = AMP_LAYER_HOST;
        d->why_host = "inputs of different sizes";
    }
}

/* truths: the distance in floats between the labels of consecutive images. It may differ from l->truths. */
static void describe_yolo(const network *net, int i, amp_layer_desc *d)
{
    const layer *l = &net->layers[i];
    amp_yolo_desc *yolo = amp_allocated(malloc(sizeof *yolo));
    d->yolo = yolo;
    int truth = amp_host_truth_layer(net, i), truths = truth < 0 ? net->truths : net->layers[truth].outputs;
    int numbers = amp_own_label_numbers(l), boxes = truths / numbers;
    *yolo = (amp_yolo_desc){ AMP_YOLO_AS_PJREDDIE, .classes = l->classes, .n = l->n, .total = l->total,
                             .net_w = net->w, .net_h = net->h, .ignore_thresh = l->ignore_thresh,
                             .truth_thresh = l->truth_thresh, .truths = truths,
                             .max_boxes = l->max_boxes < boxes ? l->max_boxes : boxes };
    yolo->label_size = numbers;
    for (int k = 0; k < l->n; k++) yolo->mask[k] = l->mask[k];
    for (int k = 0; k < 2 * l->total; k++) yolo->anchors[k] = l->biases[k];
}

static void describe_layer(network *net, int i, const amp_config *config, amp_network_desc *out)
{
    layer *l = &net->layers[i];
    int on_gpu = amp_host_on_gpu(net);
    layer_arrays a = arrays_of(l, on_gpu);
    amp_layer_desc *d = &out->layers[i];
    *d = (amp_layer_desc){
        .kind = amp_host_kind_of(l), .type = amp_host_type_name(l->type), .why_host = amp_host_why_own(l),
        .keep_fp32 = i < config->layer_count && !config->layers[i].amp,
        .recompute = i < config->layer_count && config->layers[i].checkpoint,
        .is_loss = l->cost != NULL, .is_truth = l->truth, .stops_backward = l->stopbackward,
            .no_backward = l->type == CROP,
        .lends_products = amp_own_lends_products(l, on_gpu),
        .activation = amp_host_activation_of(l->activation), .batch_normalize = l->batch_normalize,
        .params = amp_allocated(malloc(AMP_MAX_PARAMS * sizeof *d->params)),
        .statistics = amp_allocated(malloc(AMP_MAX_STATISTICS * sizeof *d->statistics)),
        .weights = a.weights, .biases = a.biases, .scales = a.scales, .rolling_mean = a.rolling_mean,
        .rolling_variance = a.rolling_variance, .batchnorm_rule = amp_own_batchnorm_rule(l, on_gpu),
        .rate_scale = l->learning_rate_scale };
    describe_inputs(net, i, d);
    describe_shape(net, i, out, d);
    if (d->kind != AMP_LAYER_HOST) amp_host_settings(l, d);
    if (d->kind != AMP_LAYER_HOST && l->type == YOLO) describe_yolo(net, i, d);
    describe_params(d, l, on_gpu);
    mark_unsaved(d, l, &a);
    amp_own_describe(net, i, out, d);
}

static int output_layer_of(const network *net)
{
    int i = net->n - 1;
    while (i > 0 && net->layers[i].type == COST) i--;
    return i;
}

void amp_fork_describe(network *net, const amp_config *config, amp_network_desc *out)
{
    *out = (amp_network_desc){ .layers = amp_allocated(calloc((size_t)net->n + 1, sizeof *out->layers)),
                               .count = net->n, .output_layer = output_layer_of(net),
                               .image = image_shape(net->batch, net->c, net->h, net->w, net->inputs) };
    for (int i = 0; i < net->n; i++) describe_layer(net, i, config, out);
}
