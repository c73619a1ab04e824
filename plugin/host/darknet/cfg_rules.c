/* The rules of cfg_rules.h, one for each kind of section. A rule computes a layer's shape as Darknet's parser
 * and make_*_layer functions do, and rejects what would make Darknet divide by 0, fail an assertion, or index
 * outside an array. A key that a fork does not have reads as 0. */
#include <math.h>
#include <string.h>

#include "../fork.h"
#include "cfg_rules.h"

enum { ISEG_OBJECTS = 90 };

/* ---- helpers ---- */

/* Reports an error in `key` (NULL: in the section), with printf arguments. */
#define fail(walk, key, ...) cfg_walk_fail(walk, key, NULL, __VA_ARGS__)

static double number(const cfg_walk *walk, const char *key) { return cfg_walk_number(walk, key); }

static void set_image(cfg_walk *walk, double w, double h, double c)
{
    if (w < 1 || h < 1 || c < 1) {
        fail(walk, NULL, "its input is %.0fx%.0fx%.0f and its output would be %.0fx%.0fx%.0f; sizes must be "
                         "at least 1",
             walk->in->w, walk->in->h, walk->in->c, w, h, c);
        return;
    }
    walk->out->w = w;
    walk->out->h = h;
    walk->out->c = c;
    walk->out->outputs = w * h * c;
}

static double with_norm(const cfg_walk *walk, double channels)
{
    return channels * (number(walk, "batch_normalize") ? 4 : 1);
}

/* ---- [net] ---- */

static void check_policy(cfg_walk *walk)
{
    int policy = (int)number(walk, "policy");
    int steps = cfg_walk_numbers(walk, "steps"), scales = cfg_walk_numbers(walk, "scales");
    if (policy == POLICY_STEPS && (!steps || !scales))
        fail(walk, "policy", "needs steps= and scales=, but %s= is missing", steps ? "scales" : "steps");
    else if (policy == POLICY_STEPS && steps != scales)
        fail(walk, "scales", "steps= has %d numbers, but scales= has %d; give one scale for each step",
             steps, scales);
    if (policy == POLICY_POLY && !number(walk, "max_batches"))
        fail(walk, "policy", "divides by max_batches, which is 0; set max_batches");
}

void cfg_rule_net(cfg_walk *walk)
{
    double w = walk->resized ? walk->resized : number(walk, "width");
    double h = walk->resized ? walk->resized_h : number(walk, "height");
    double c = number(walk, "channels"), image = w * h * c;
    double batch = number(walk, "batch"), subdivisions = number(walk, "subdivisions");
    walk->time_steps = number(walk, "time_steps");
    walk->batch = trunc(batch / subdivisions) * walk->time_steps;
    walk->out->w = w;
    walk->out->h = h;
    walk->out->c = c;
    walk->out->outputs = cfg_walk_given(walk, "inputs") && !walk->resized ? number(walk, "inputs") : image;
    if (subdivisions > batch)
        fail(walk, "subdivisions",
             "batch = %.0f cannot be split into %.0f parts; subdivisions must be at most batch", batch,
             subdivisions);
    else if (fmod(batch, subdivisions) != 0 && !walk->resized)
        cfg_walk_warn(walk, "subdivisions", NULL, "does not divide batch = %.0f: a step uses only %.0f "
                                                  "images", batch,
                                                  trunc(batch / subdivisions) * subdivisions);
    if (!walk->out->outputs)
        fail(walk, NULL, "%s is missing: give width, height and channels, or only inputs",
             !w ? "width" : !h ? "height" : "channels");
    else if (image && walk->out->outputs != image)
        fail(walk, "inputs", "differs from width*height*channels = %.0f; remove inputs", image);
    check_policy(walk);
}

/* ---- layers whose input is an image ---- */

static void add_weights(cfg_walk *walk, double weights, double biases)
{
    cfg_walk_count(walk, weights, "weights");
    walk->out->weights += weights + with_norm(walk, biases);
}

static double padding_of(const cfg_walk *walk)
{
    return number(walk, "pad") ? trunc(number(walk, "size") / 2) : number(walk, "padding");
}

/* The stride in one direction: `key` if it is given, else stride=. */
static double stride_of(const cfg_walk *walk, const char *key)
{
    double stride = number(walk, key);
    return stride >= 1 ? stride : number(walk, "stride");
}

static int has_activation(const cfg_walk *walk, const char *name)
{
    const char *activation = cfg_walk_text(walk, "activation");
    return activation && !strcmp(activation, name);
}

/* Checks a convolution that Darknet's own code runs under AMP (native.c). That code reads 1x1 windows without
 * im2col, ignoring padding and stride, and does not compute the gradient of relu6. */
static void check_own(cfg_walk *walk, double pad, double stride_x, double stride_y)
{
    const char *key = number(walk, "xnor") ? "xnor" : number(walk, "binary") ? "binary"
                    : number(walk, "dot") ? "dot" : has_activation(walk, "revleaky") ? "activation" : NULL;
    if (key && number(walk, "size") == 1 && (pad || stride_x > 1 || stride_y > 1)
        && !cfg_own_lays_out_1x1(stride_x))
        fail(walk, key, "with this key Darknet's own code runs the layer, and ignores padding and stride if "
                        "size=1; remove padding and stride, or this key");
    if (key && has_activation(walk, "relu6"))
        fail(walk, key, "with this key Darknet's own code runs the layer, and does not train it with "
                        "activation=relu6");
}

/* Darknet's parser ends the program if share_index= names a layer whose weights have another shape. */
static void check_shared(cfg_walk *walk, double n, double size, double groups)
{
    int index = walk->index, from = (int)number(walk, "share_index");
    double c = from ? walk->layers[from - 1].c : walk->net.c;
    cfg_walk_enter(walk, from);
    int is_alike = number(walk, "filters") == n && number(walk, "size") == size
        && number(walk, "groups") == groups && c == walk->in->c;
    cfg_walk_enter(walk, index);
    if (!is_alike && walk->layers[from].outputs)
        fail(walk, "share_index", "layer %d is not a convolution with the same filters, size, groups and "
                                  "channels",
             from);
}

void cfg_rule_convolutional(cfg_walk *walk)
{
    double n = number(walk, "filters"), size = number(walk, "size"), pad = padding_of(walk);
    double stride_x = stride_of(walk, "stride_x"), stride_y = stride_of(walk, "stride_y");
    double groups = number(walk, "groups"), c = walk->in->c;
    double dilation = size == 1 ? 1 : fmax(number(walk, "dilation"), 1); /* as Darknet's parser sets it */
    if (fmod(c, groups) != 0 || fmod(n, groups) != 0) {
        fail(walk, "groups", "does not divide both the %.0f input channels and the %.0f filters", c, n);
        return;
    }
    check_own(walk, pad, stride_x, stride_y);
    if (number(walk, "smooth") && !walk->resized)
        cfg_walk_warn(walk, "smooth", NULL, "has no effect under AMP: only Darknet's own GPU code smooths "
                                            "the deltas of a convolution");
    if (cfg_walk_given(walk, "share_index")) check_shared(walk, n, size, groups);
    if (number(walk, "numload") > n)
        fail(walk, "numload", "more than the %.0f filters of this layer", n);
    double w = walk->in->w + 2 * pad, h = walk->in->h + 2 * pad;
    if (size > w || size > h)
        fail(walk, "size", "larger than the padded image of %.0fx%.0f", w, h);
    set_image(walk, trunc((w - size) / stride_x) + 1, trunc((h - size) / stride_y) + 1, n);
    /* Darknet allocates the output for undilated windows, but im2col dilates the windows and multiplies the
     * padding by the dilation. */
    double more = (dilation - 1) * (2 * pad + 1 - size);
    if (trunc((w + more - size) / stride_x) + 1 != walk->out->w
        || trunc((h + more - size) / stride_y) + 1 != walk->out->h)
        fail(walk, "dilation", "the output would be %.0fx%.0f, but Darknet has room for %.0fx%.0f; use an "
                               "odd size with pad=1", trunc((w + more - size) / stride_x) + 1,
             trunc((h + more - size) / stride_y) + 1, walk->out->w, walk->out->h);
    cfg_walk_count(walk, walk->out->w * walk->out->h * size * size * (c / groups),
                "numbers in the matrix of im2col");
    add_weights(walk, c / groups * n * size * size, n);
}

void cfg_rule_deconvolutional(cfg_walk *walk)
{
    double n = number(walk, "filters"), size = number(walk, "size"), stride = number(walk, "stride");
    double pad = padding_of(walk);
    double w = (walk->in->w - 1) * stride + size - 2 * pad, h = (walk->in->h - 1) * stride + size - 2 * pad;
    set_image(walk, w, h, n);
    cfg_walk_count(walk, walk->in->w * walk->in->h * size * size * n, "numbers in the matrix of im2col");
    add_weights(walk, walk->in->c * n * size * size, n);
}

/* Rejects layers for which make_local_layer and im2col compute different output sizes. */
void cfg_rule_local(cfg_walk *walk)
{
    double n = number(walk, "filters"), size = number(walk, "size"), stride = number(walk, "stride");
    double pad = number(walk, "pad"), cut = pad ? 1 : size, padded = walk->in->w + 2 * pad;
    double w = trunc((walk->in->w - cut) / stride) + 1, h = trunc((walk->in->h - cut) / stride) + 1;
    double weights = walk->in->c * n * size * size * w * h;
    set_image(walk, w, h, n);
    if (size > fmin(padded, walk->in->h + 2 * pad) || trunc((padded - size) / stride) + 1 != w)
        fail(walk, "size", "does not fit pad = %.0f and an image of %.0fx%.0f; use size=3 with pad=1",
             pad, walk->in->w, walk->in->h);
    cfg_walk_count(walk, weights, "weights");
    walk->out->weights = weights + w * h * n;
}

/* Rejects windows entirely outside the image: Darknet writes their gradient before the start of the array.
 * Also rejects a size above 64 that is more than twice the image's larger side: Darknet visits all size*size
 * positions for each output, which is very slow. */
void cfg_rule_maxpool(cfg_walk *walk)
{
    double stride = number(walk, "stride");
    double size = cfg_walk_given(walk, "size") ? number(walk, "size") : stride;
    double padding = cfg_walk_given(walk, "padding") ? number(walk, "padding") : size - 1;
    double before = trunc(padding / 2), larger = fmax(walk->in->w, walk->in->h);
    double stride_x = stride_of(walk, "stride_x"), stride_y = stride_of(walk, "stride_y");
    double w = trunc((walk->in->w + padding - size) / stride_x) + 1;
    double h = trunc((walk->in->h + padding - size) / stride_y) + 1;
    double last = fmax((w - 1) * stride_x - walk->in->w, (h - 1) * stride_y - walk->in->h);
    if (number(walk, "maxpool_depth")) {
        set_image(walk, walk->in->w, walk->in->h, number(walk, "out_channels"));
        return;
    }
    set_image(walk, w, h, walk->in->c);
    if (size > 64 && size > 2 * larger)
        fail(walk, "size", "more than twice the image of %.0fx%.0f", walk->in->w, walk->in->h);
    if (size <= before || last >= before)
        fail(walk, cfg_walk_given(walk, "padding") ? "padding" : NULL,
             "some windows of %.0fx%.0f lie outside of the image of %.0fx%.0f", size, size,
             walk->in->w, walk->in->h);
}

/* An avgpool's output has the same size for every input, so resize_network stops here. */
void cfg_rule_avgpool(cfg_walk *walk)
{
    set_image(walk, 1, 1, walk->in->c);
    walk->out->ends_resizing = 1;
}

void cfg_rule_batchnorm(cfg_walk *walk) { walk->out->weights = 4 * walk->in->c; }

void cfg_rule_normalization(cfg_walk *walk)
{
    if (trunc(number(walk, "size") / 2) > walk->in->c)
        fail(walk, "size", "half of it is more than the %.0f input channels", walk->in->c);
}

void cfg_rule_crop(cfg_walk *walk)
{
    double w = number(walk, "crop_width"), h = number(walk, "crop_height");
    if (walk->resized) { /* resize_crop_layer scales both sides by crop_height / unresized height */
        double own = walk->index ? walk->own[walk->index - 1].h : walk->own_net.h;
        w = trunc((float)h / own * walk->in->w);
        h = trunc((float)h / own * walk->in->h);
    }
    if (w > walk->in->w || h > walk->in->h)
        fail(walk, w > walk->in->w ? "crop_width" : "crop_height", "larger than the image of %.0fx%.0f",
             walk->in->w, walk->in->h);
    set_image(walk, w, h, walk->in->c);
}

void cfg_rule_reorg(cfg_walk *walk)
{
    const cfg_shape *in = walk->in;
    double stride = number(walk, "stride"), square = stride * stride, extra = number(walk, "extra");
    int reverse = number(walk, "reverse") != 0, flatten = number(walk, "flatten") != 0;
    if (extra && !flatten && !reverse) {
        walk->out->outputs = in->outputs + extra;
        return;
    }
    if ((reverse || !flatten) && fmod(in->c, square) != 0)
        fail(walk, "stride", "the %.0f input channels are not a multiple of stride*stride = %.0f", in->c,
             square);
    if (!reverse && (fmod(in->w, stride) != 0 || fmod(in->h, stride) != 0))
        fail(walk, "stride", "does not divide the image of %.0fx%.0f", in->w, in->h);
    if (extra) fail(walk, "extra", "cannot be given together with reverse or flatten");
    if (reverse) set_image(walk, in->w * stride, in->h * stride, in->c / square);
    else set_image(walk, in->w / stride, in->h / stride, in->c * square);
}

void cfg_rule_upsample(cfg_walk *walk)
{
    double stride = number(walk, "stride"), w = walk->in->w, h = walk->in->h;
    if (stride == 0) cfg_walk_fail(walk, "stride", "1 or more, or below 0 to make the image smaller", "is 0");
    else if (stride > 0) set_image(walk, w * stride, h * stride, walk->in->c);
    else if (fmod(w, stride) != 0 || fmod(h, stride) != 0)
        fail(walk, "stride", "does not divide the image of %.0fx%.0f", w, h);
    else set_image(walk, w / -stride, h / -stride, walk->in->c);
}

/* ---- layers that read several layers ---- */

/* With groups= and group_id=, a route takes only one group of channels from each layer that it reads. */
static void keep_group(cfg_walk *walk)
{
    double groups = fmax(number(walk, "groups"), 1), id = number(walk, "group_id");
    int count = cfg_walk_numbers(walk, "layers");
    if (groups == 1 && id == 0) return;
    for (int i = 0; i < count; i++)
        if (fmod(walk->layers[(int)cfg_walk_at(walk, "layers", i)].c, groups) != 0)
            fail(walk, "groups", "does not divide the channels of layer %.0f",
                 cfg_walk_at(walk, "layers" , i));
    if (id >= groups) fail(walk, "group_id", "with groups=%.0f, group_id must be from 0 to %.0f",
                           groups, groups - 1);
    walk->out->outputs /= groups;
    walk->out->c /= groups;
}

void cfg_rule_route(cfg_walk *walk)
{
    int count = cfg_walk_numbers(walk, "layers");
    cfg_shape *out = walk->out;
    for (int i = 0; i < count; i++) {
        const cfg_shape *part = &walk->layers[(int)cfg_walk_at(walk, "layers", i)];
        if (!part->outputs) { /* an error in that layer was reported before */
            *out = (cfg_shape){ 0 };
            return;
        }
        out->outputs += part->outputs;
        if (i == 0) {
            out->w = part->w;
            out->h = part->h;
            out->c = part->c;
        } else if (part->w == out->w && part->h == out->h) {
            out->c += part->c;
        } else {
            out->w = out->h = out->c = 0;
            out->no_image = fmod(walk->net.w, 32) || fmod(walk->net.h, 32)
                ? "the layers that it joins differ in width or height; for most networks, width and height "
                  "in [net] must be multiples of 32"
                : "the layers that it joins differ in width or height";
        }
    }
    keep_group(walk);
}

/* A shortcut can add images of different sizes if their widths and heights differ by the same factor.
 * Channels that only one of the images has are not added. */
static void check_joined(cfg_walk *walk, int index)
{
    const cfg_shape *in = walk->in, *from = &walk->layers[index];
    if (!from->outputs) return;
    if (!from->w || !from->h || !from->c) {
        fail(walk, "from", "layer %d does not output an image", index);
        return;
    }
    if (trunc(from->w / in->w) != trunc(from->h / in->h) || trunc(in->w / from->w) != trunc(in->h / from->h))
        fail(walk, "from", "layer %d outputs %.0fx%.0f, but the layer before this one outputs %.0fx%.0f; "
                           "these sizes cannot be added",
             index, from->w, from->h, in->w, in->h);
    if (walk->resized && (from->w != in->w || from->h != in->h))
        fail(walk, "from", "Darknet cannot resize a shortcut between layers of different sizes; set "
                           "random=0");
}

void cfg_rule_shortcut(cfg_walk *walk)
{
    for (int i = 0; i < cfg_walk_numbers(walk, "from"); i++)
        check_joined(walk, (int)cfg_walk_at(walk, "from", i));
}

/* The rule of forks whose shortcut adds only images of the same width and height. */
void cfg_rule_shortcut_of_one_size(cfg_walk *walk)
{
    const cfg_shape *in = walk->in;
    int count = cfg_walk_numbers(walk, "from"), is_own = number(walk, "weights_type") != 0;
    if (number(walk, "weights_type") && !number(walk, "weights_normalization"))
        fail(walk, "weights_type", "weights need weights_normalization=relu or softmax");
    for (int i = 0; i < count; i++) {
        int index = (int)cfg_walk_at(walk, "from", i);
        const cfg_shape *from = &walk->layers[index];
        is_own |= count > 1 && from->outputs && from->outputs != in->outputs;
        if (from->outputs && (from->w != in->w || from->h != in->h))
            fail(walk, "from", "layer %d outputs %.0fx%.0f, but the layer before this one outputs %.0fx%.0f; "
                               "both must have the same size", index, from->w, from->h, in->w, in->h);
    }
    /* With relu6, Darknet's own shortcut outputs 0. With hard_mish, it does not keep the gradient's input. */
    if (is_own && (has_activation(walk, "relu6") || has_activation(walk, "hard_mish")))
        fail(walk, "activation", "cannot be trained in a shortcut that has weights or adds layers of "
                                 "different shapes; use another activation, or run with -amp off");
}

/* A scale_channels multiplies each channel of layer `from` by one number (with scale_wh=1: each pixel). */
void cfg_rule_scale_channels(cfg_walk *walk)
{
    int index = (int)number(walk, "from"), places = number(walk, "scale_wh") != 0;
    const cfg_shape *in = walk->in, *from = &walk->layers[index];
    if (!from->outputs) return;
    if (places ? in->c != 1 || in->w != from->w || in->h != from->h
               : in->w != 1 || in->h != 1 || in->c != from->c)
        fail(walk, "from", "layer %d outputs %.0fx%.0fx%.0f, which an input of %.0fx%.0fx%.0f cannot scale",
             index, from->w, from->h, from->c, in->w, in->h, in->c);
    set_image(walk, from->w, from->h, from->c);
}

void cfg_rule_sam(cfg_walk *walk)
{
    int index = (int)number(walk, "from");
    const cfg_shape *in = walk->in, *from = &walk->layers[index];
    if (from->outputs && (in->w != from->w || in->h != from->h || in->c != from->c))
        fail(walk, "from", "layer %d outputs %.0fx%.0fx%.0f, but the layer before this one outputs "
                           "%.0fx%.0fx%.0f; both must have the same shape",
             index, from->w, from->h, from->c, in->w, in->h, in->c);
}

/* ---- layers without width and height ---- */

void cfg_rule_connected(cfg_walk *walk)
{
    double output = number(walk, "output");
    set_image(walk, 1, 1, output);
    add_weights(walk, walk->in->outputs * output, output);
}

/* A layer whose input is a vector cannot be resized: the vector's new length is unknown. */
void cfg_rule_activation(cfg_walk *walk) { walk->out->one_size = !walk->in->w; }

void cfg_rule_dropout(cfg_walk *walk)
{
    if (walk->index == 0)
        fail(walk, NULL, "cannot be the first layer, since Darknet's dropout changes the output of the layer "
                         "before it");
    cfg_rule_activation(walk);
}

/* In a recurrent layer Darknet's own batch norm normalizes each time step separately. If a step has one
 * number per channel, its variance is 0 / 0. On a CPU every step of the training is then skipped. So this is
 * an error if the network will be trained, else a warning. On a GPU it is always a warning, because some GPUs
 * do not compute NaN. A .cfg that only generates text, for example Darknet's rnn.cfg, has one image and one
 * time step on purpose. */
static void check_norm_of_step(cfg_walk *walk, double pixels)
{
    int trains = walk->use != CFG_FOR_ANYTHING && walk->use != CFG_TRAINS_BOXES;
    if (!number(walk, "batch_normalize") || walk->batch / walk->time_steps * pixels != 1) return;
    if (!trains && walk->time_steps == 1) return;
#ifdef GPU
    cfg_finding finding = CFG_WARNS;
#else
    cfg_finding finding = trains ? CFG_REFUSES : CFG_WARNS;
#endif
    cfg_walk_report(walk, finding, "batch_normalize", NULL, "with one image in a pass, batch norm divides 0 "
                    "by 0 in each time step; to train, set batch to at least 2 * subdivisions, or "
                    "batch_normalize to 0");
}

/* of_input: how many matrices multiply the input; of_state: how many multiply the state. */
static void recurrent(cfg_walk *walk, double of_input, double of_state)
{
    double output = number(walk, "output");
    check_norm_of_step(walk, 1);
    cfg_walk_count(walk, output * fmax(output, walk->in->outputs), "weights");
    walk->out->outputs = output;
    walk->out->weights = output * (of_input * walk->in->outputs + of_state * output)
        + (of_input + of_state) * with_norm(walk, output);
}

/* In some forks hidden= sets the size of the state. */
void cfg_rule_rnn(cfg_walk *walk)
{
    double output = number(walk, "output"), hidden = number(walk, "hidden");
    recurrent(walk, 1, 2);
    if (!hidden) return;
    cfg_walk_count(walk, hidden * fmax(fmax(output, hidden), walk->in->outputs), "weights");
    walk->out->weights = hidden * (walk->in->outputs + hidden + output)
        + with_norm(walk, 2 * hidden + output);
}

void cfg_rule_gru(cfg_walk *walk) { recurrent(walk, 3, 3); }
void cfg_rule_lstm(cfg_walk *walk) { recurrent(walk, 4, 4); }

/* window: how many numbers a filter has per channel. */
static void recurrent_image(cfg_walk *walk, double w, double h, double hidden, double output, double window,
                            double groups)
{
    check_norm_of_step(walk, w * h);
    set_image(walk, w, h, output);
    cfg_walk_count(walk, window * hidden * fmax(fmax(hidden, output), walk->in->c), "weights");
    walk->out->weights = window / groups * hidden * (walk->in->c + hidden + output)
        + with_norm(walk, 2 * hidden + output);
}

/* Swaps the width and height of the input, as Darknet's parser does. */
void cfg_rule_crnn(cfg_walk *walk)
{
    double hidden = number(walk, "hidden_filters"), area = walk->in->w * walk->in->h;
    recurrent_image(walk, walk->in->h, walk->in->w, hidden, number(walk, "output_filters"), 9, 1);
    cfg_walk_count(walk, 9 * area * fmax(hidden, walk->in->c), "numbers in the matrix of im2col");
    cfg_walk_count(walk, hidden * area * walk->batch / walk->time_steps * (walk->time_steps + 1),
                "numbers of its state");
}

/* For forks whose crnn has size= and groups=. These forks do not swap width and height. */
void cfg_rule_crnn_of_any_size(cfg_walk *walk)
{
    double size = number(walk, "size"), stride = number(walk, "stride"), pad = padding_of(walk);
    double w = trunc((walk->in->w + 2 * pad - size) / stride) + 1;
    double h = trunc((walk->in->h + 2 * pad - size) / stride) + 1;
    if (w != walk->in->w || h != walk->in->h)
        fail(walk, "size", "the layer's state must be as large as its input; use size=3 with pad=1");
    recurrent_image(walk, walk->in->w, walk->in->h, number(walk, "hidden"), number(walk, "output"),
                    size * size, fmax(number(walk, "groups"), 1));
}

void cfg_rule_implicit(cfg_walk *walk)
{
    set_image(walk, 1, number(walk, "atoms"), number(walk, "filters"));
    walk->out->weights = walk->out->outputs;
}

void cfg_rule_history(cfg_walk *walk)
{
    set_image(walk, walk->in->w, walk->in->h, walk->in->c * number(walk, "history_size"));
}

/* AlexeyAB's parser takes yolo_layer=0 for a missing layer, and crashes. */
void cfg_rule_contrastive(cfg_walk *walk)
{
    if (number(walk, "yolo_layer") == 0) fail(walk, "yolo_layer", "layer 0 cannot be the [yolo] layer");
}

/* ---- files ---- */

/* A line is "name parent", where parent is -1 or the number of an earlier line, counted from 0. */
static void check_tree_line(cfg_walk *walk, const char *line, int index)
{
    int parent = -1;
    char name[1024] = "";
    if (sscanf(line, "%1023s %d", name, &parent) < 1 || strlen(name) > 255)
        fail(walk, "tree", "line %d of the file must be a name of at most 255 bytes and the number of its "
                           "parent",
             index + 1);
    else if (parent < -1 || parent >= index)
        fail(walk, "tree", "line %d of the file: the parent %d must be -1 or the number of an earlier line, "
                           "counted from 0",
             index + 1, parent);
}

static void check_map_line(cfg_walk *walk, const char *line, int index, double classes)
{
    char *end;
    long class_id = strtol(line, &end, 10);
    if (end == line || class_id < 0 || class_id >= classes)
        fail(walk, "map", "line %d of the file must be the number of one of the %.0f classes, counted from 0",
             index + 1, classes);
}

/* Checks the file named by `key`, which is "tree" or "map". */
static void check_lines(cfg_walk *walk, const char *key, double classes)
{
    char line[1024];
    int count = 0, is_tree = !strcmp(key, "tree");
    if (!cfg_walk_given(walk, key)) return;
    FILE *file = fopen(cfg_walk_text(walk, key), "r");
    if (!file) {
        fail(walk, key, "cannot be read");
        return;
    }
    for (; fgets(line, sizeof line, file); count++)
        if (is_tree) check_tree_line(walk, line, count);
        else check_map_line(walk, line, count, classes);
    fclose(file);
    if (!count) fail(walk, key, "the file is empty");
    if (is_tree && count > classes)
        fail(walk, key, "the tree has %d nodes, but the layer has room for only %.0f", count,
                        classes);
}

/* ---- losses ---- */

void cfg_rule_softmax(cfg_walk *walk)
{
    double groups = number(walk, "groups");
    if (fmod(walk->in->outputs, groups) != 0)
        fail(walk, "groups", "does not divide the layer's %.0f inputs", walk->in->outputs);
    check_lines(walk, "tree", walk->in->outputs);
    if (number(walk, "noloss")) walk->out->reads = 0;
}

void cfg_rule_iseg(cfg_walk *walk)
{
    double channels = number(walk, "classes") + number(walk, "ids"), area = walk->in->w * walk->in->h;
    walk->out->truths = walk->out->reads = ISEG_OBJECTS * (area + 1);
    if (channels != walk->in->c)
        fail(walk, NULL, "its classes and ids need filters=%.0f in the layer before it, which has %.0f",
             channels, walk->in->c);
}

static void set_boxes(cfg_walk *walk, double boxes, double anchors, double coords, double truths,
                      double loaded)
{
    double classes = number(walk, "classes"), filters = boxes * (coords + classes + 1);
    int numbers = cfg_walk_numbers(walk, "anchors");
    walk->out->truths = walk->out->reads = truths;
    walk->out->loaded = loaded;
    walk->out->classes = classes;
    walk->out->boxes = number(walk, "max");
    walk->out->random = number(walk, "random");
    if (walk->resized) { /* resize_yolo_layer and similar functions do not set out_w and out_h */
        walk->out->w = walk->out->h = walk->out->c = 0;
        walk->out->no_image = "Darknet does not resize it; set random=0";
    }
    if (numbers != 2 * anchors) cfg_own_wrong_anchors(walk, numbers, anchors);
    if (filters != walk->in->c)
        fail(walk, NULL, "%.0f boxes of %.0f classes need filters=%.0f in the layer before it, which has "
             "%.0f", boxes, classes, filters, walk->in->c);
    check_lines(walk, "map", classes);
}

static void yolo(cfg_walk *walk, double coords)
{
    double total = number(walk, "num");
    int mask = cfg_walk_numbers(walk, "mask");
    for (int i = 0; i < mask; i++)
        if (cfg_walk_at(walk, "mask", i) >= total)
            fail(walk, "mask", "mask has %.0f, but with num=%.0f the anchors are numbered 0 to %.0f",
                 cfg_walk_at(walk, "mask" , i), total, total - 1);
    double truths = cfg_own_truths(walk, 4, 0);
    int counters = cfg_walk_numbers(walk, "counters_per_class");
    if (counters && counters != number(walk, "classes"))
        fail(walk, "counters_per_class", "has %d numbers, but classes=%.0f needs one for each class",
             counters, number(walk, "classes"));
    set_boxes(walk, mask ? mask : total, total, coords, truths, truths);
}

void cfg_rule_yolo(cfg_walk *walk) { yolo(walk, 4); }
void cfg_rule_gaussian_yolo(cfg_walk *walk) { yolo(walk, 8); } /* four coordinates and their uncertainties */

void cfg_rule_region(cfg_walk *walk)
{
    double coords = number(walk, "coords");
    set_boxes(walk, number(walk, "num"), number(walk, "num"), coords, cfg_own_truths(walk, coords, 1),
              cfg_own_truths(walk, 4, 1));
    check_lines(walk, "tree", number(walk, "classes"));
}

void cfg_rule_detection(cfg_walk *walk)
{
    double side = number(walk, "side"), num = number(walk, "num");
    double classes = number(walk, "classes"), coords = number(walk, "coords");
    double needed = side * side * ((1 + coords) * num + classes);
    if (coords != 4) cfg_walk_fail(walk, NULL, "4", "coords is missing, and defaults to 1");
    walk->out->truths = walk->out->reads = side * side * (1 + coords + classes);
    walk->out->cells = side * side;
    if (needed != walk->in->outputs)
        fail(walk, NULL, "side, num, classes and coords need output=%.0f in the layer before it, which has "
             "%.0f", needed, walk->in->outputs);
}

/* ---- the whole network ---- */

/* Rejects a loss that reads more truth floats per image than it gets. The loader makes as many as the last
 * layer needs; a loss after a layer with truth=1 reads that layer's output. */
static void check_truth(cfg_walk *walk)
{
    const cfg_shape *last = &walk->layers[walk->count - 1];
    double there = last->truths ? last->truths : last->outputs;
    int from = walk->count - 1;
    for (int i = 0; i < walk->count; i++) {
        cfg_walk_enter(walk, i);
        if (walk->layers[i].reads > there) {
            fail(walk, NULL, "reads %.0f numbers of truth per image, but layer %d limits them to %.0f",
                 walk->layers[i].reads, from, there);
            return;
        }
        if (!number(walk, "truth")) continue;
        there = walk->layers[i].outputs;
        from = i;
    }
}

/* The last layer decides what `detector train` loads, so all layers that find boxes must agree with it. */
static void check_heads(cfg_walk *walk)
{
    const cfg_shape *last = &walk->layers[walk->count - 1];
    cfg_walk_enter(walk, walk->count - 1);
    if (!last->classes)
        fail(walk, NULL, "`detector train` takes the classes from the last layer, which must be [yolo] or "
                         "[region]");
    for (int i = 0; i < walk->count && last->classes; i++) {
        const cfg_shape *head = &walk->layers[i];
        cfg_walk_enter(walk, i);
        if (!head->classes) continue;
        if (head->classes != last->classes)
            cfg_walk_refuse(walk, cfg_walk_given(walk, "classes") ? "classes" : NULL, NULL,
                            "the last layer has classes=%.0f, but this one has %.0f; all must have the same",
                            last->classes, head->classes);
        if (head->reads != last->loaded) cfg_own_unlike_head(walk, head->reads, last->loaded);
    }
}

/* Rejects a network whose last layer finds boxes (`boxes`), or that has no loss: without a gradient, training
 * would only decay the weights. */
static void check_classifier(cfg_walk *walk, int boxes)
{
    int losses = 0;
    for (int i = 0; i < walk->count; i++) losses += walk->layers[i].reads > 0;
    cfg_walk_enter(walk, walk->count - 1);
    if (boxes) fail(walk, NULL, "the last layer finds boxes; train it with `detector train`");
    else if (!losses) fail(walk, NULL, "no layer has a loss, so nothing would be learnt; end with [softmax]");
}

/* Checks [net] against the images that the loaders can make. */
static void check_loader(cfg_walk *walk, int classifier)
{
    cfg_walk_enter(walk, -1);
    char allowed[16] = "";
    for (int c = 1, length = 0; c <= 3; c++)
        if (amp_fork_loads_channels(c, classifier))
            length += snprintf(allowed + length, sizeof allowed - (size_t)length, "%s%d",
                               length ? ", " : "", c);
    if (!amp_fork_loads_channels((int)walk->net.c, classifier))
        cfg_walk_fail(walk, "channels", allowed, "`%s train` loads only images with %s channels",
                      classifier ? "classifier" : "detector", allowed);
    if (!classifier && !number(walk, "max_batches"))
        cfg_walk_warn(walk, cfg_walk_given(walk, "max_batches") ? "max_batches" : NULL, NULL,
                      "max_batches is %s: `detector train` makes no step; set it to the number of steps",
                      cfg_walk_given(walk, "max_batches") ? "0" : "missing");
    if (classifier && walk->net.w != walk->net.h)
        fail(walk, "height", "`classifier train` makes square images, but the width is %.0f", walk->net.w);
    cfg_own_loader(walk, classifier);
}

static void check_resizing(cfg_walk *walk, int classifier, double random)
{
    double sizes[CFG_OWN_SIZES][2];
    for (int i = 0; i < walk->count && !walk->layers[i].ends_resizing; i++) {
        cfg_walk_enter(walk, i);
        if (walk->layers[i].one_size)
            fail(walk, NULL, "random=1 resizes the network while it trains, but this layer is made for one "
                             "size; set random=0");
    }
    cfg_walk_enter(walk, -1);
    size_t count = cfg_own_sizes(walk, classifier, random, sizes);
    for (size_t i = 0; i < count && !cfg_walk_failed(walk); i++)
        cfg_walk_again(walk, sizes[i][0], sizes[i][1]);
}

void cfg_finish(cfg_walk *walk)
{
    const cfg_shape *last = &walk->layers[walk->count - 1];
    /* classes: may be for `classifier train`. With other channels it may be for `darknet rnn` or `go`. */
    int boxes = last->classes > 0, classes = last->reads > 0 && !last->truths && walk->net.c == 3;
    int classifier = walk->use == CFG_TRAINS_CLASSIFIER
        || (walk->use == CFG_TRAINS_DATA && !boxes && !last->cells);
    int detector = !classifier
        && (walk->use == CFG_TRAINS_DETECTOR || walk->use == CFG_TRAINS_DATA
            || (walk->use == CFG_TRAINS_BOXES && boxes));
    double random = last->random;
    check_truth(walk);
    cfg_own_finish(walk);
    if (cfg_walk_failed(walk)) return;
    if (detector) check_heads(walk);
    walk->only_warns = walk->use == CFG_TRAINS_BOXES && classes;
    if (classifier || detector || walk->only_warns) check_loader(walk, !detector);
    if (classifier) check_classifier(walk, boxes);
    cfg_walk_enter(walk, -1);
    if (classifier) random = number(walk, "random");
    if ((classifier || detector) && random && !cfg_walk_failed(walk))
        check_resizing(walk, classifier, random);
}
