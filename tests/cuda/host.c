/* The host room on a GPU: whole trainings, of Darknet built with GPU=1 and the CUDA backend, on doubles of
 * CUDA, cuDNN, cuBLAS and Darknet's own kernels; and the same trainings on the CPU, of the same file built
 * without GPU=1, but that batch norm goes by the GPU's rule there. cuda/host.sh compares.
 *
 *   cuda_host train <network> <dtype> <file> [<twin>]
 *     writes losses, predictions and weights as floats; a twin, numbered from 1, has images that differ by a
 *     rounding of the dtype: what becomes of that is what this training makes of roundings
 *     On doubles EARLY=1 in the environment has copies of images come as early as they may.
 *   cuda_host start <network> <dtype> <file>
 *     the same up to the checkpoint, which stock (dtype off) goes on from otherwise
 *   cuda_host faults
 *     on doubles: what stock is known to compute wrongly on a GPU (stock_faults.c), and what is turned off in
 *     it when AMP is compared with it
 *   cuda_host compare <file> <file> <bound> [<twin of the first>...]
 *     whether no group of numbers is further apart than bound times its size, or than twice a twin's */
#define _DEFAULT_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "network.h"
#include "gpu_networks.h"
#include "parser.h"

#if defined(GPU) && !defined(ON_DEVICE) /* tests/gpu has a device instead */
#define ON_DOUBLES
#include "doubles/cuda_doubles.h"
#endif

#include "host/darknet/room.h"
#ifdef DARKNET_AMP_ALEXEYAB
#include "shortcut_layer.h"

static void fail(const char *why, const char *what);

static float train_pass(network *net) { return train_network_datum(*net, net->input, net->truth); }

#ifdef ON_DOUBLES
/* From a training's third pass on, as step.c has it: images come to the other of two blocks; the program
 * waits for its uploads, and for the results of all yolo layers at once when backward is queued; and only
 * images and labels are copied, from memory that is page-locked. */
static float train_and_count(network *net)
{
    const amp_host_pinned *pinned = net->amp ? &net->amp->memory->pinned : NULL;
    int steady = pinned && pinned->second, yolo = net->layers[net->n - 1].type == YOLO;
    const float *image = pinned ? amp_fork_image(net) : NULL;
    amp_cuda_counts before = amp_cuda_counted();
    float loss = train_pass(net);
    amp_cuda_counts now = amp_cuda_counted();
    if (!steady) return loss;
    if (amp_fork_image(net) == image) fail("images", "take no turns between two blocks");
    if (amp_fork_image(net) != pinned->second && amp_fork_image(net) != *net->input_gpu)
        fail("images", "lie elsewhere");
    if (yolo && now.allocations != before.allocations) fail("a pass", "takes memory");
    if (yolo && now.waits - before.waits > 2) fail("a pass", "waits more than twice");
    if (yolo && now.uploads - before.uploads != 2) fail("a pass", "copies more than images and labels");
    if (yolo && now.pageable != before.pageable) fail("a pass", "copies from or to pageable memory");
    return loss;
}
#else
#define train_and_count train_pass
#endif

/* What Darknet's loop does around its passes, with a network by value and images beside it. Behind a step's
 * last pass it updates, and averages weights, as it does for a data of no images. */
static float train_datum(network *net)
{
    float loss = train_and_count(net);
    if (*net->seen / (uint64_t)net->batch % (uint64_t)net->subdivisions == 0)
        train_network(*net, (data){ 0 });
    return loss;
}

static void resize(network *net, int side)
{
    resize_network(net, side, side);
    net->input = realloc(net->input, sizeof(float) * (size_t)net->inputs * (size_t)net->batch);
}

/* Shortcuts begin with weights of 1, of which p and its slope (gaps.c) are alike. */
static void scatter_weights(network *net)
{
    for (int i = 0; i < net->n; i++) {
        layer *l = &net->layers[i];
        for (int k = 0; l->type == SHORTCUT && k < l->nweights; k++)
            l->weights[k] = (float)(k % 5) * .4f + .2f;
#ifdef GPU
        if (l->type == SHORTCUT && l->nweights) push_shortcut_layer(*l);
#endif
    }
    if (net->amp) darknet_amp_weights_changed(net);
}

#define parse_network_cfg amp_own_parse
#define train_network_datum train_datum
#define save_weights(net, file) save_weights(*(net), file)
#define free_network amp_own_free
#else
static void resize(network *net, int side) { resize_network(net, side, side); }
#endif

#ifndef GPU
/* In the place of plugin/host's darknet/backend_choice.c and the fork's batchnorm_rule.c: the CPU by the
 * GPU's rule of batch norm, cuDNN's. */
amp_backend *amp_fork_backend(amp_error *error) { return amp_cpu_backend_create(error); }

amp_batchnorm_rule amp_own_batchnorm_rule(const layer *l, int on_gpu)
{
    (void)l, (void)on_gpu;
    return (amp_batchnorm_rule){ .epsilon_inside_root = 1, .epsilon = 1e-5f, .backward_epsilon = 1e-5f,
                                 .rolling_factor = .01f };
}
#endif

#define NET(more)                                                                                       \
    "[net]\nlearning_rate=0.002\nmomentum=0.9\ndecay=0.001\nmax_batches=2006\nbatch=4\nsubdivisions=2\n" \
    "init_scale=8\n" more
#define CONV_OF(kind, filters, size, more) \
    "[convolutional]\nfilters=" #filters "\nsize=" #size "\nstride=1\npad=1\nactivation=" kind "\n" more
#define CONV(filters, size, more) CONV_OF("leaky", filters, size, more)
#define BN "batch_normalize=1\n"

#define HEAD(filters, name) "[convolutional]\nfilters=" #filters "\nsize=1\nstride=1\nactivation=linear\n" \
    "[" name "]\nanchors=4,5, 12,14, 20,20\nclasses=2\nnum=3\n"

static const struct { const char *name, *cfg; int resizes; } networks[] = {
#ifdef DARKNET_AMP_ALEXEYAB
    { "yolo", NET("width=32\nheight=32\nchannels=3\n") CONV_OF("mish", 8, 3, BN)
      "[maxpool]\nsize=2\nstride=2\n" CONV_OF("swish", 16, 3, BN)
      "[route]\nlayers=-1\ngroups=2\ngroup_id=1\n" CONV(8, 1, "") "[shortcut]\nfrom=-2\nactivation=leaky\n"
      HEAD(14, "yolo") "mask=0,1\niou_loss=ciou\nscale_x_y=1.05\niou_thresh=.2\ndelta_normalizer=.5\n"
      "[route]\nlayers=-3\n[upsample]\nstride=2\n[route]\nlayers=-1,0\n"
      "[convolutional]\nfilters=7\nsize=3\nstride=1\npad=1\nactivation=logistic\n"
      "[yolo]\nmask=2\nanchors=4,5, 12,14, 20,20\nclasses=2\nnum=3\nnew_coords=1\nscale_x_y=2\n"
      "iou_loss=giou\nobjectness_smooth=1\n", 1 },
    { "gaussian", NET("width=32\nheight=32\nchannels=3\n") CONV(8, 3, BN) "[maxpool]\nsize=4\nstride=4\n"
      HEAD(22, "Gaussian_yolo") "mask=0,1\n", 1 },
    { "averaged", NET("width=16\nheight=16\nchannels=3\nema_alpha=.5\n") CONV(8, 3, BN) CONV(8, 3, BN)
      CONV(2, 1, "") "[avgpool]\n[softmax]\n", 0 },
    /* shortcuts of Darknet's own: weights by channel and by input, several inputs, shorter and longer ones */
    { "weighted", NET("width=8\nheight=8\nchannels=3\n") CONV(6, 3, "") CONV(2, 3, "") CONV(4, 3, "")
      "[shortcut]\nfrom=-2,-3\nactivation=mish\nweights_type=per_channel\nweights_normalization=softmax\n"
      "[shortcut]\nfrom=-3\nactivation=swish\nweights_type=per_feature\nweights_normalization=relu\n"
      "[shortcut]\nfrom=0,1\nactivation=leaky\n" CONV(5, 3, "")
      "[convolutional]\nfilters=14\nsize=1\nstride=1\nactivation=linear\n"
      "[yolo]\nmask=0,1\nanchors=4,5, 12,14, 20,20\nclasses=2\nnum=3\n", 1 },
    { "crnn", NET("width=8\nheight=8\nchannels=3\ntime_steps=2\n") CONV(4, 3, "")
      "[crnn]\nhidden=4\noutput=4\nsize=3\npad=1\nactivation=leaky\n"
      "[crnn]\nhidden=4\noutput=5\nsize=3\npad=1\nactivation=leaky\n"
      "[avgpool]\n[softmax]\n", 0 },
    { "region", NET("width=32\nheight=32\nchannels=3\n") CONV(8, 3, BN) "[maxpool]\nsize=4\nstride=4\n"
      CONV(8, 3, "stopbackward=1\n" BN) HEAD(21, "region") "coords=4\nsoftmax=1\n", 0 },
    { "classifier", NET("width=12\nheight=12\nchannels=3\nadam=1\n") CONV(8, 3, "")
      "[normalization]\nalpha=0.1\nbeta=.75\nsize=5\n" CONV(8, 3, "") "[dropout]\nprobability=.3\n"
      "[connected]\noutput=6\nactivation=linear\n[softmax]\n", 0 },
    { "masked", NET("width=8\nheight=8\nchannels=2\n") CONV(4, 3, "")
      "[batchnorm]\n[avgpool]\n[cost]\ntype=masked\n", 0 },
#else
    { "yolo", NET("width=32\nheight=32\nchannels=3\n") CONV(8, 3, BN) "[maxpool]\nsize=2\nstride=2\n"
      CONV(16, 3, BN) CONV(16, 1, "")
      "[shortcut]\nfrom=-2\nactivation=leaky\n"
      "[convolutional]\nfilters=14\nsize=1\nstride=1\nactivation=linear\n"
      "[yolo]\nmask=0,1\nanchors=4,5, 12,14, 20,20\nclasses=2\nnum=3\n"
      "[route]\nlayers=-3\n[upsample]\nstride=2\n[route]\nlayers=-1,0\n"
      "[convolutional]\nfilters=7\nsize=3\nstride=1\npad=1\nactivation=linear\n"
      "[yolo]\nmask=2\nanchors=4,5, 12,14, 20,20\nclasses=2\nnum=3\n", 1 },
    { "plain", NET("width=32\nheight=32\nchannels=3\n") CONV(8, 3, BN) "[maxpool]\nsize=2\nstride=2\n"
      CONV(16, 3, BN)
      "[upsample]\nstride=2\n[route]\nlayers=-1,0\n[convolutional]\nfilters=14\nsize=3\nstride=1\npad=1\n"
      /* what stock computes as it should */
      "activation=linear\n[yolo]\nmask=0,1\nanchors=4,5, 12,14, 20,20\nclasses=2\nnum=3\n", 1 },
    { "classifier", NET("width=12\nheight=12\nchannels=3\nadam=1\n") CONV(8, 3, "")
      "[normalization]\nalpha=0.1\nbeta=.75\nsize=5\n" CONV(8, 3, "")
      "[dropout]\nprobability=.3\n"
      "[l2norm]\n[connected]\noutput=6\nactivation=linear\n[softmax]\n", 0 },
    { "deconvolutional", NET("width=8\nheight=8\nchannels=3\n") CONV(8, 3, BN) "[maxpool]\nsize=2\nstride=2\n"
      "[deconvolutional]\nfilters=6\nsize=4\nstride=2\npadding=1\nactivation=leaky\n" BN "[route]\nlayers=1\n"
      "[deconvolutional]\nfilters=5\nsize=2\nstride=2\nactivation=leaky\n[route]\nlayers=-1,-3,0\n"
      CONV(4, 1, "") "[cost]\ntype=sse\n", 1 },
    { "masked", NET("width=8\nheight=8\nchannels=2\n") CONV(4, 3, "")
      "[batchnorm]\n[avgpool]\n[cost]\ntype=masked\nsmooth=.1\n", 0 },
    { "rnn", NET("inputs=10\ntime_steps=3\n") "[rnn]\nbatch_normalize=0\noutput=8\nactivation=tanh\n"
      "[connected]\noutput=10\nactivation=leaky\n[softmax]\n", 0 },
    { "gru", NET("inputs=10\ntime_steps=3\n")
      "[gru]\noutput=8\n[connected]\noutput=10\nactivation=leaky\n[softmax]\n", 0 },
    { "lstm", NET("inputs=10\ntime_steps=3\n")
      "[lstm]\noutput=8\n[connected]\noutput=10\nactivation=leaky\n[softmax]\n", 0 },
#endif
};

static void fail(const char *why, const char *what)
{
    fprintf(stderr, "cuda_host: %s: %s\n", why, what);
    exit(1);
}

/* ---- training ---- */

static void put(FILE *out, const float *numbers, size_t count)
{
    unsigned size = (unsigned)count;
    if (fwrite(&size, sizeof size, 1, out) != 1 || fwrite(numbers, sizeof *numbers, count, out) != count)
        fail("cannot write", "the file");
}

/* With averaged weights (ema_alpha) a training begins two steps before it averages, which is at half of
 * max_batches, and five before the averages become the weights. */
enum { FIRST_STEP = 1001 };

static network *make(const char *cfg, const char *dtype)
{
    char path[] = "/tmp/cuda_host_XXXXXX";
    int file = mkstemp(path);
    if (file < 0 || write(file, cfg, strlen(cfg)) != (ssize_t)strlen(cfg) || close(file))
        fail("cannot write", path);
    /* -seed, or AlexeyAB's yolo layers would seed by the clock */
    char *argv[] = { "darknet", "-amp", (char *)dtype, "-seed", "5", NULL };
    darknet_amp_start(5, argv);
    srand(5);
    network *net = parse_network_cfg(path);
    unlink(path);
#ifdef DARKNET_AMP_ALEXEYAB
    if (net->ema_alpha != 0) *net->seen = FIRST_STEP * (uint64_t)(net->batch * net->subdivisions);
    if (net->ema_alpha != 0) *net->cur_iteration = FIRST_STEP;
    scatter_weights(net);
    net->cudnn_half = 1; /* as its parser has it on every GPU of today, built with CUDNN_HALF=1 */
#endif
    if (!net->amp != !strcmp(dtype, "off")) fail("with AMP, or without, though asked for", dtype);
    return net;
}

static unsigned twin;   /* 0: none */
static double rounding; /* the largest of the dtype, for a number's size */

static void feed(network *net, unsigned seed)
{
    const layer *last = &net->layers[net->n - 1];
    int inputs = net->inputs * net->batch, masks = last->type == COST && last->cost_type == MASKED;
    seed = random_floats(net->input, inputs, seed);
    for (int i = 0; twin && i < inputs; i++) {
        seed = seed * 1664525u + 1013904223u + twin;
        net->input[i] *= (float)(1 + rounding * ((seed >> 8) / 8388608.0 - 1));
    }
    for (int b = 0; b < net->batch; b++) {
        set_truth(net, b, (unsigned)b);
        if (masks) net->truth[b * net->truths + (b + 1) % net->truths] = SECRET_NUM;
    }
}

/* Nothing of a yolo head's size comes to the program's memory in training: there is no place for
 * it, nor on the GPU. */
static void check_heads(const network *net)
{
    for (int i = 0; net->amp && i < net->n; i++) {
        const layer *l = &net->layers[i];
        if (l->type != YOLO) continue;
        if (l->output || l->delta || net->layers[i - 1].output)
            fail("a yolo layer", "has buffers in training");
#ifdef GPU
        if (l->output_gpu || l->delta_gpu || net->layers[i - 1].output_gpu)
            fail("a yolo layer", "has buffers on the GPU in training");
#endif
    }
}

static void train(network *net, int steps, unsigned seed, FILE *out)
{
    for (int i = 0; i < steps * net->subdivisions; i++) {
        feed(net, seed + (unsigned)i);
        float loss = train_network_datum(net);
        put(out, &loss, 1);
        check_heads(net);
    }
#if defined(ON_DOUBLES) && defined(DARKNET_AMP_ALEXEYAB)
    if (net->amp && steps > 1 && !net->amp->memory->pinned.second) fail("images", "have no second block");
#endif
}

static void predict(network *net, FILE *out)
{
    float *image = calloc((size_t)net->inputs * (size_t)net->batch, sizeof *image);
    for (int i = 0; i < net->inputs * net->batch; i++) image[i] = (float)(i % 89) / 89;
    put(out, amp_host_predict(net, image), (size_t)net->outputs * (size_t)net->batch);
    for (int i = 0; i < net->n; i++) /* what get_network_boxes reads */
        if (net->layers[i].type == YOLO)
            put(out, net->layers[i].output, (size_t)net->layers[i].outputs * (size_t)net->batch);
    free(image);
}

static void put_file(FILE *out, const char *path)
{
    FILE *file = fopen(path, "rb");
    static float numbers[1 << 16];
    if (!file) fail("there is no", path);
    size_t count = 5; /* major, minor, revision, seen (8 bytes) */
    if (fread(numbers, sizeof *numbers, count, file) != count) fail("cannot read", path);
    count = fread(numbers, sizeof *numbers, sizeof numbers / sizeof *numbers, file);
    put(out, numbers, count);
    fclose(file);
}

/* A training, a checkpoint in the middle of a batch, and a second network that goes on from there. */
static void run(int which, const char *dtype, const char *path, int only_start)
{
    char weights[512], sidecar[520];
    FILE *out = fopen(path, "wb");
    if (!out) fail("cannot write", path);
    snprintf(weights, sizeof weights, "%s.weights", path);
    snprintf(sidecar, sizeof sidecar, "%s.amp", weights);
    network *net = make(networks[which].cfg, dtype);
    train(net, 3, 10, out);
    if (networks[which].resizes) {
        resize(net, 64);
        train(net, 1, 20, out);
        resize(net, 32);
    }
    predict(net, out);
    if (only_start) {
        save_weights(net, weights);
        put_file(out, weights);
        free_network(net);
        if (fclose(out)) fail("cannot write", path);
        return;
    }
    feed(net, 30);
    train_network_datum(net);
    save_weights(net, weights);
    if (access(sidecar, F_OK) != 0) fail("there is no", sidecar);
    put_file(out, weights);
    free_network(net);
    net = make(networks[which].cfg, dtype);
    load_weights(net, weights);
    feed(net, 31);
    train_network_datum(net);
    train(net, 2, 40, out);
    predict(net, out);
    save_weights(net, weights);
    put_file(out, weights);
    free_network(net);
    if (fclose(out)) fail("cannot write", path);
}

/* ---- stock's faults ---- */

#ifdef ON_DOUBLES
#define SMALL NET("width=8\nheight=8\nchannels=3\n")
static const struct { const char *cfg; int layer, effects; } faults[] = {
#ifdef DARKNET_AMP_ALEXEYAB
    { SMALL CONV(6, 3, "") CONV(6, 3, "") "[shortcut]\nfrom=-2\nactivation=leaky\nweights_type=per_channel\n"
      "weights_normalization=relu\n[cost]\ntype=sse\n", 2, AMP_WRONG_WEIGHTS },
    { SMALL CONV(6, 3, "") CONV(6, 3, "") "[shortcut]\nfrom=-2\nactivation=leaky\n[cost]\ntype=sse\n", 2, 0 },
    { SMALL CONV(6, 3, "") CONV(1, 1, "") "[scale_channels]\nfrom=0\nscale_wh=1\n[cost]\ntype=sse\n", 2,
      AMP_WRONG_NEAR_DELTA },
    { SMALL CONV(6, 3, "") "[avgpool]\n[scale_channels]\nfrom=0\n[cost]\ntype=sse\n", 2, 0 },
#else
    { SMALL CONV(6, 3, "") "[l2norm]\n[cost]\ntype=sse\n", 1, AMP_WRONG_DELTA },
#endif
};

static int effects_of(const network *net, int layer)
{
    const amp_stock_fault *fault;
    int effects = 0;
    for (int row = 0; (fault = amp_fork_stock_fault(row)); row++)
        if (amp_fork_has_stock_fault(net, layer, row)) effects |= fault->effects;
    return effects;
}

static void check_deltas(network *net, const char *which)
{
#ifdef DARKNET_AMP_ALEXEYAB
    if (net->try_fix_nan) fail(which, "clips deltas of convolutions");
#else
    if (net->layers[0].smooth != 0) fail(which, "smooths deltas of convolutions");
#endif
    if (!net->layers[1].amp_unclipped) fail(which, "clips deltas of connected layers");
}

static void watch_nothing(void *context, int layer, int begins) { (void)context, (void)layer, (void)begins; }

static int check_faults(void)
{
    const char *alters = NET("width=8\nheight=8\nchannels=3\ntry_fix_nan=1\n") CONV(6, 3, "smooth=.5\n")
                         "[connected]\noutput=6\nactivation=linear\n[softmax]\n";
    gpu_index = 0;
    amp_cuda_any_stream(1);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        network *net = make(faults[i].cfg, "off");
        if (effects_of(net, faults[i].layer) != faults[i].effects) fail("other effects in", faults[i].cfg);
        free_network(net);
    }
    network *net = make(alters, "off");
    amp_fork_watch_layers(net, watch_nothing, NULL, 1);
    check_deltas(net, "the stock of a comparison");
    amp_fork_unwatch_layers(net);
    free_network(net);
    net = make(alters, "fp32");
    check_deltas(net, "AMP");
    free_network(net);
    return 0;
}
#endif

/* ---- comparing ---- */

static float *group(FILE *file, size_t *count)
{
    unsigned size;
    if (fread(&size, sizeof size, 1, file) != 1) return NULL;
    float *numbers = malloc((size + 1) * sizeof *numbers);
    *count = fread(numbers, sizeof *numbers, size, file);
    return numbers;
}

enum { MOST_GROUPS = 64, MANY = 10 };
typedef struct distances {
    int count;
    size_t numbers[MOST_GROUPS];
    double apart[MOST_GROUPS], first[2][MOST_GROUPS], most; /* for the size of the first file's numbers */
} distances;

static distances between(const char *a, const char *b)
{
    FILE *x = fopen(a, "rb"), *y = fopen(b, "rb");
    distances d = { 0 };
    if (!x || !y) fail("cannot read", x ? b : a);
    for (; d.count < MOST_GROUPS; d.count++) {
        size_t m = 0, n = 0;
        float *p = group(x, &m), *q = group(y, &n);
        if (!p && !q) break;
        if (!p || !q || m != n || !m) fail("other numbers in", b);
        double apart = 0, size = 0;
        for (size_t i = 0; i < n; i++) {
            apart += pow((double)p[i] - (double)q[i], 2);
            size += pow((double)p[i], 2);
        }
        double relative = sqrt(apart) / (sqrt(size) + 1e-6);
        d.numbers[d.count] = n;
        d.apart[d.count] = relative;
        d.first[0][d.count] = p[0];
        d.first[1][d.count] = q[0];
        if (!(relative <= d.most)) d.most = relative;
        free(p);
        free(q);
    }
    fclose(x);
    fclose(y);
    return d;
}

/* A twin's distance speaks for the same group, if that holds many numbers; a loss alone
 * may be near by luck. */
static int compare(const char *a, const char *b, double bound, char **twins)
{
    distances d = between(a, b);
    double allowed[MOST_GROUPS], nearest = 0;
    int bad = 0;
    for (int g = 0; g < d.count; g++) allowed[g] = bound;
    for (; *twins; twins++) {
        distances t = between(a, *twins);
        for (int g = 0; g < d.count; g++)
            allowed[g] = fmax(allowed[g], 2 * (t.numbers[g] < MANY ? t.most : t.apart[g]));
    }
    for (int g = 0; g < d.count; g++) {
        if (!(d.apart[g] / allowed[g] <= nearest)) nearest = d.apart[g] / allowed[g];
        if (d.apart[g] <= allowed[g]) continue;
        fprintf(stderr, "%s, group %d (%zu numbers, first %g and %g): %g apart, allowed is %g\n", b, g,
                d.numbers[g], d.first[0][g], d.first[1][g], d.apart[g], allowed[g]);
        bad++;
    }
    printf("%s: %d groups of numbers, %g apart at most, %.2g times what is allowed\n", b, d.count, d.most,
           nearest);
    return bad || d.count < 8;
}

int main(int argc, char **argv)
{
#ifdef ON_DOUBLES
    if (argc == 2 && !strcmp(argv[1], "faults")) return check_faults();
#endif
    if (argc >= 5 && !strcmp(argv[1], "compare")) return compare(argv[2], argv[3], atof(argv[4]), argv + 5);
    int only_start = argc == 5 && !strcmp(argv[1], "start");
    if (argc == 6 && !strcmp(argv[1], "train")) {
        twin = (unsigned)atoi(argv[5]);
        rounding = !strcmp(argv[3], "bf16") ? 0x1p-8 : 0x1p-11;
    } else if (argc != 5 || (strcmp(argv[1], "train") && !only_start))
        fail("usage", "cuda_host train|start <network> <dtype> <file>");
#ifdef GPU
    gpu_index = 0;
#ifdef ON_DOUBLES
    amp_cuda_any_stream(1); /* Darknet's own layers run on the default one */
    amp_cuda_copies_early(getenv("EARLY") != NULL);
#endif
#else
    gpu_index = -1;
#endif
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        if (strcmp(networks[i].name, argv[2])) continue;
        run((int)i, argv[3], argv[4], only_start);
#ifdef ON_DOUBLES
        if (amp_cuda_faults()) fail("CUDA", amp_cuda_fault());
        printf("%s, %s: %ld kernels\n", argv[2], argv[3], amp_cuda_launches());
#endif
        return 0;
    }
    fail("there is no network", argv[2]);
}
