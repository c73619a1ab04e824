/* Which of Darknet's layers AMP computes itself, and which stay Darknet's own fp32 code.
 *
 * The rule fails closed: a layer is native only if its type has a kind here, and every option in its struct
 * that this kind does not know is 0, as Darknet leaves options that are not set. Otherwise Darknet's own code
 * runs it, and `amp plan` says why. So an option that a fork of Darknet adds to a layer is never ignored: it
 * needs a row, and test e2e_source_tree says so. */
#include "pjreddie.h"

#include <stddef.h>

/* ---- types: the .cfg section's name, the kind that computes it, or why Darknet's own code does ---- */

#define OWN "Darknet's own fp32 code"
#define LOSS "fp32 loss"

static const struct {
    const char *name;
    amp_layer_kind kind;
    const char *why_own;
} types[] = {
    [CONVOLUTIONAL] = { "convolutional", AMP_LAYER_CONVOLUTIONAL, NULL },
    [DECONVOLUTIONAL] = { "deconvolutional", AMP_LAYER_DECONVOLUTIONAL, NULL },
    [CONNECTED] = { "connected", AMP_LAYER_CONNECTED, NULL },
    [LOCAL] = { "local", AMP_LAYER_LOCAL, NULL },
    [BATCHNORM] = { "batchnorm", AMP_LAYER_BATCHNORM, NULL },
    [ACTIVE] = { "activation", AMP_LAYER_ACTIVATION, NULL },
    [MAXPOOL] = { "maxpool", AMP_LAYER_MAXPOOL, NULL },
    [AVGPOOL] = { "avgpool", AMP_LAYER_AVGPOOL, NULL },
    [UPSAMPLE] = { "upsample", AMP_LAYER_UPSAMPLE, NULL },
    [REORG] = { "reorg", AMP_LAYER_REORG, NULL },
    [DROPOUT] = { "dropout", AMP_LAYER_DROPOUT, NULL },
    [YOLO] = { "yolo", AMP_LAYER_YOLO, NULL },
    [ROUTE] = { "route", AMP_LAYER_ROUTE, NULL },
    [SHORTCUT] = { "shortcut", AMP_LAYER_SHORTCUT, NULL },
    [RNN] = { "rnn", AMP_LAYER_HOST, OWN },
    [GRU] = { "gru", AMP_LAYER_HOST, OWN },
    [LSTM] = { "lstm", AMP_LAYER_HOST, OWN },
    [CRNN] = { "crnn", AMP_LAYER_HOST, OWN },
    [CROP] = { "crop", AMP_LAYER_HOST, OWN },
    [NORMALIZATION] = { "normalization", AMP_LAYER_HOST, OWN },
    [L2NORM] = { "l2norm", AMP_LAYER_HOST, OWN },
    [REGION] = { "region", AMP_LAYER_HOST, LOSS },
    [DETECTION] = { "detection", AMP_LAYER_HOST, LOSS },
    [COST] = { "cost", AMP_LAYER_HOST, LOSS },
    [ISEG] = { "iseg", AMP_LAYER_HOST, LOSS },
    [LOGXENT] = { "logistic", AMP_LAYER_HOST, LOSS },
    [SOFTMAX] = { "softmax", AMP_LAYER_HOST, LOSS },
};

static int is_listed(LAYER_TYPE type) { return type < sizeof types / sizeof *types && types[type].name; }

const char *amp_host_type_name(LAYER_TYPE type) { return is_listed(type) ? types[type].name : "layer"; }

/* ---- options: the kinds that know each ---- */

#define BIT(KIND) (1u << AMP_LAYER_##KIND)
enum {
    NONE = 0,
    ALL = -1,
    WINDOWS = BIT(CONVOLUTIONAL) | BIT(DECONVOLUTIONAL) | BIT(LOCAL) | BIT(MAXPOOL),
    ACTIVATED = BIT(CONVOLUTIONAL) | BIT(DECONVOLUTIONAL) | BIT(CONNECTED) | BIT(LOCAL) | BIT(ACTIVATION)
        | BIT(SHORTCUT),
    NORMALIZED = BIT(CONVOLUTIONAL) | BIT(DECONVOLUTIONAL) | BIT(CONNECTED)
};

typedef struct option {
    const char *why_own; /* for `amp plan` */
    size_t offset, bytes;
    unsigned kinds;      /* bits of the kinds that compute with it, or for which it has no meaning in Darknet
                            either */
} option;

#define OPTION(field, kinds) \
    { #field " is set", offsetof(layer, field), sizeof(((layer *)0)->field), (unsigned)(kinds) }

/* Not here, since they are no options: the type, what a layer's functions allocate and fill (buffers, their
 * sizes, sums, functions), and shapes, which the layers check when a plan is built. test e2e_source_tree
 * knows their names. */
static const option options[] = {
    OPTION(activation, ACTIVATED), OPTION(batch_normalize, NORMALIZED), OPTION(groups, BIT(CONVOLUTIONAL)),
    OPTION(size, WINDOWS), OPTION(stride, WINDOWS | BIT(UPSAMPLE) | BIT(REORG)), OPTION(pad, WINDOWS),
    OPTION(flipped, BIT(CONVOLUTIONAL)), /* how a .weights file holds them */
    OPTION(xnor, NONE), OPTION(binary, NONE), OPTION(dot, NONE),
    OPTION(reverse, BIT(REORG)), OPTION(flatten, BIT(REORG)), OPTION(extra, BIT(REORG)),
    OPTION(index, BIT(SHORTCUT)), OPTION(alpha, BIT(SHORTCUT)), OPTION(beta, BIT(SHORTCUT)),
    OPTION(probability, BIT(DROPOUT)), OPTION(scale, BIT(DROPOUT) | BIT(UPSAMPLE)),
    OPTION(classes, BIT(YOLO)), OPTION(mask, BIT(YOLO)), OPTION(total, BIT(YOLO)),
        OPTION(max_boxes, BIT(YOLO)),
    OPTION(jitter, BIT(YOLO)), OPTION(random, BIT(YOLO)), OPTION(ignore_thresh, BIT(YOLO)),
        OPTION(truth_thresh, BIT(YOLO)),
    OPTION(map, NONE), OPTION(softmax_tree, NONE),
    /* Of every layer: the engine's, the update's, the reader of weights'. onlyforward and smooth: those of
     * losses. */
    OPTION(truth, ALL), OPTION(stopbackward, ALL), OPTION(learning_rate_scale, ALL), OPTION(clip, ALL),
        OPTION(numload, ALL),
    OPTION(dontload, ALL), OPTION(dontsave, ALL), OPTION(dontloadscales, ALL),
    OPTION(onlyforward, ALL & ~BIT(YOLO)), OPTION(smooth, ALL),
    /* Those of layers that have no kind. */
    OPTION(cost_type, NONE), OPTION(shortcut, NONE), OPTION(forced, NONE), OPTION(side, NONE),
        OPTION(spatial, NONE),
    OPTION(sqrt, NONE), OPTION(flip, NONE), OPTION(steps, NONE), OPTION(hidden, NONE), OPTION(angle, NONE),
    OPTION(saturation, NONE), OPTION(exposure, NONE), OPTION(shift, NONE), OPTION(ratio, NONE),
        OPTION(noloss, NONE),
    OPTION(softmax, NONE), OPTION(coords, NONE), OPTION(background, NONE), OPTION(rescore, NONE),
        OPTION(objectness, NONE),
    OPTION(joint, NONE), OPTION(noadjust, NONE), OPTION(reorg, NONE), OPTION(log, NONE), OPTION(tanh, NONE),
    OPTION(kappa, NONE), OPTION(coord_scale, NONE), OPTION(object_scale, NONE), OPTION(noobject_scale, NONE),
    OPTION(mask_scale, NONE), OPTION(class_scale, NONE), OPTION(bias_match, NONE), OPTION(thresh, NONE),
        OPTION(focus, NONE),
    OPTION(classfix, NONE), OPTION(absolute, NONE), OPTION(temperature, NONE),
    /* The layers inside recurrent ones. */
    OPTION(input_layer, NONE), OPTION(self_layer, NONE), OPTION(output_layer, NONE),
        OPTION(reset_layer, NONE),
    OPTION(update_layer, NONE), OPTION(state_layer, NONE), OPTION(input_gate_layer, NONE),
        OPTION(state_gate_layer, NONE),
    OPTION(input_save_layer, NONE), OPTION(state_save_layer, NONE), OPTION(input_state_layer, NONE),
    OPTION(state_state_layer, NONE), OPTION(input_z_layer, NONE), OPTION(state_z_layer, NONE),
        OPTION(input_r_layer, NONE),
    OPTION(state_r_layer, NONE), OPTION(input_h_layer, NONE), OPTION(state_h_layer, NONE), OPTION(wz, NONE),
        OPTION(uz, NONE),
    OPTION(wr, NONE), OPTION(ur, NONE), OPTION(wh, NONE), OPTION(uh, NONE), OPTION(uo, NONE),
        OPTION(wo, NONE),
    OPTION(uf, NONE), OPTION(wf, NONE), OPTION(ui, NONE), OPTION(wi, NONE), OPTION(ug, NONE), OPTION(wg, NONE)
};

static int is_zero(const void *field, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (((const char *)field)[i]) return 0;
    return 1;
}

static const char *unknown_option(const layer *l, amp_layer_kind kind)
{
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const option *o = &options[i];
        if (!(o->kinds >> kind & 1) && !is_zero((const char *)l + o->offset, o->bytes)) return o->why_own;
    }
    return NULL;
}

/* ---- values that a kind does not take ---- */

amp_activation amp_host_activation_of(ACTIVATION a)
{
    static const amp_activation table[] = {
        [LOGISTIC] = AMP_LOGISTIC, [RELU] = AMP_RELU, [RELIE] = AMP_RELIE, [LINEAR] = AMP_LINEAR,
            [RAMP] = AMP_RAMP,
        [TANH] = AMP_TANH, [PLSE] = AMP_PLSE, [LEAKY] = AMP_LEAKY, [ELU] = AMP_ELU, [LOGGY] = AMP_LOGGY,
        [STAIR] = AMP_STAIR, [HARDTAN] = AMP_HARDTAN, [LHTAN] = AMP_LHTAN, [SELU] = AMP_SELU };
    return (unsigned)a < sizeof table / sizeof *table ? table[a] : AMP_ACTIVATIONS;
}

enum { LARGEST_POOL = 15 }; /* the backend's limit on a window's side */

const char *amp_host_why_own(const layer *l)
{
    if (!is_listed(l->type)) return OWN;
    if (l->type == SOFTMAX && l->noloss) return "fp32 output";
    if (types[l->type].why_own) return types[l->type].why_own;
    if (amp_host_activation_of(l->activation) == AMP_ACTIVATIONS)
        return "an activation that AMP does not know";
    if (l->type == UPSAMPLE && l->reverse) return "downsamples (stride < 0)";
    if (l->type == MAXPOOL && l->size > LARGEST_POOL) return "window above 15";
    if (l->type == YOLO && (l->total > AMP_YOLO_MAX_ANCHORS || l->n > AMP_YOLO_MAX_ANCHORS))
        return "more than 32 anchors";
    return unknown_option(l, types[l->type].kind);
}

int amp_host_is_native(const layer *l) { return !amp_host_why_own(l); }

amp_layer_kind amp_host_kind_of(const layer *l)
{
    return amp_host_is_native(l) ? types[l->type].kind : AMP_LAYER_HOST;
}
