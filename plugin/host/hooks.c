/* The hooks a patched Darknet calls when it starts, makes, resizes and frees a network; those of a step are in step.c. */
#define _DEFAULT_SOURCE /* readlink, setenv */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "deconvolutional_layer.h"
#include "device.h"
#include "host.h"
#include "host_random.h"
#include "images.h"
#include "loading.h"
#include "resume.h"
#include "training.h"
#include "turns.h"

/* The command line's wishes. Set by main before any network exists, or by a verb of `darknet amp` before it makes its own. */
static struct { const char *amp; } command_line;

struct darknet_amp_options { amp_config *config; };

_Noreturn void amp_host_die(const amp_error *error)
{
    fflush(stdout);
    fprintf(stderr, "%s\n", error->message);
    _exit(1); /* not exit: other threads may be training or loading, and would meet what its handlers have torn down */
}

void amp_host_check(amp_status status, const amp_error *error)
{
    if (status != AMP_OK) amp_host_die(error);
}

/* ---- command line ---- */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void darknet_amp_start(char **argv)
{
    char self[4096];
    if (!argv[0] || getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT")) return;
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0) return;
    self[length] = 0;
    if (strcmp(last_part(self), last_part(argv[0]))) return; /* started by a loader or under another name */
    if (setenv("OMP_WAIT_POLICY", "passive", 1) == 0) execv(self, argv);
}

void darknet_amp_refuse(struct network *net, const char *why)
{
    amp_error error;
    if (!net->amp) return;
    amp_fail(&error, AMP_UNSUPPORTED, "amp: %s; run with -amp off", why);
    amp_host_die(&error);
}

void darknet_amp_gpu_wanted(int gpu)
{
    amp_error error;
    if (gpu >= 0) return;
    amp_fail(&error, AMP_UNSUPPORTED, "darknet: -nogpu: this command runs on a GPU alone, since a Darknet built with GPU=1 leaves "
             "parts of its losses out on the CPU; leave -nogpu out, or build without GPU=1 to train on the CPU");
    amp_host_die(&error);
}

const char *amp_host_take_argument(int *count, char **argv, const char *name, const char *allowed)
{
    int argc = *count;
    for (int i = 1; i < argc; i++) {
        if (!argv[i] || strcmp(argv[i], name)) continue;
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        amp_error error;
        if (!value) {
            amp_fail(&error, AMP_BAD_CONFIG, "command line: %s needs a value; allowed: %s", name, allowed);
            amp_host_die(&error);
        }
        for (int k = i; k < argc; k++) argv[k] = k + 2 < argc ? argv[k + 2] : NULL;
        *count = argc - 2;
        return value;
    }
    return NULL;
}

void amp_host_wish_dtype(const char *wish) { command_line.amp = wish; }
const char *amp_host_wished_dtype(void) { return command_line.amp; }

static void take_turns(int *argc, char **argv)
{
    amp_error error;
    const char *descriptors = amp_host_take_argument(argc, argv, "-turns", "IN,OUT, two file descriptors");
    if (descriptors) amp_host_check(amp_turns_take(descriptors, &error), &error);
}

int darknet_amp_arguments(int argc, char **argv)
{
    take_turns(&argc, argv);
    command_line.amp = amp_host_take_argument(&argc, argv, "-amp", "off, fp32, fp16, bf16");
    /* Stock's `rnn generate` and its like have a -seed of their own, the text to start with; `amp compare` takes several. */
    int own_seed = argc > 2 && argv[1] && argv[2] && ((!strcmp(argv[1], "rnn") && strcmp(argv[2], "train"))
                                                      || (!strcmp(argv[1], "amp") && !strcmp(argv[2], "compare")));
    const char *seed = own_seed ? NULL : amp_host_take_argument(&argc, argv, "-seed", "0 to 4294967295");
    amp_training_arguments(&argc, argv);
    if (!seed) return argc;
    char *end;
    unsigned long value = strtoul(seed, &end, 10);
    if (!*seed || *end || *seed == '-' || value > 4294967295ul) {
        amp_error error;
        amp_fail(&error, AMP_BAD_CONFIG, "command line: -seed %s is no seed; allowed: 0 to 4294967295", seed);
        amp_host_die(&error);
    }
    amp_random_set_seed((unsigned)value);
    return argc;
}

/* ---- making and freeing ---- */

static void print_warning(void *context, int is_error, const char *line)
{
    (void)context;
    (void)is_error;
    fprintf(stderr, "warning: %s\n", line);
}

amp_status amp_host_check_cfg(const char *cfg, cfg_use use, amp_error *error)
{
    static int has_warned;
    const cfg_listener printer = { print_warning, NULL };
    cfg_summary summary;
    AMP_TRY(cfg_check(cfg, &amp_cfg_fork, use, NULL, &summary, error));
    if (summary.errors) return amp_fail(error, AMP_BAD_CONFIG, "%s", summary.first_error);
    if (!summary.warnings || has_warned) return AMP_OK;
    has_warned = 1;
    return cfg_check(cfg, &amp_cfg_fork, use, &printer, &summary, error);
}

int amp_host_is_wanted(const char *cfg, cfg_use use)
{
    amp_error error;
    amp_config *config;
    amp_host_check(amp_config_read(cfg, command_line.amp, amp_host_default_dtype(), &config, &error), &error);
    int wanted = config->enabled;
    amp_config_free(config);
    if (wanted) amp_host_check(amp_host_check_cfg(cfg, use, &error), &error);
    return wanted;
}

struct darknet_amp_options *darknet_amp_options(const char *cfg_file)
{
    amp_error error;
    struct darknet_amp_options *options = calloc(1, sizeof *options);
    if (!cfg_file) {
        amp_fail(&error, AMP_BAD_CONFIG, "command line: a .cfg file is missing");
        amp_host_die(&error);
    }
    if (!options) {
        amp_fail(&error, AMP_NO_MEMORY, "amp: out of memory");
        amp_host_die(&error);
    }
    amp_host_check(amp_config_read(cfg_file, command_line.amp, amp_host_default_dtype(), &options->config, &error), &error);
    if (options->config->enabled)
        amp_host_check(amp_host_check_cfg(cfg_file, CFG_FOR_ANYTHING, &error), &error);
    return options;
}

/* A dtype a CPU has no instructions for: fp32 instead of a crash, and one line that says so. A GPU has another half type. */
static amp_status choose_dtype(const amp_backend *backend, int on_gpu, amp_dtype *dtype, amp_error *error)
{
    char note[256] = "";
    amp_support support = backend->supports(backend, *dtype, note);
    if (support == AMP_SUPPORT_NONE && on_gpu) return amp_fail(error, AMP_UNSUPPORTED, "amp: %s", note);
    if (note[0]) fprintf(stderr, "amp: %s%s\n", note, support == AMP_SUPPORT_NONE ? "; this run goes on in fp32" : "");
    if (support == AMP_SUPPORT_NONE) *dtype = AMP_FP32;
    return AMP_OK;
}

static amp_status scaler_of(const amp_config *config, amp_scaler *scaler, amp_error *error)
{
    amp_scaler_params params = { .enabled = 1, .dynamic = config->dynamic,
        .scale = config->dynamic ? config->init_scale : config->loss_scale, .growth_factor = config->growth_factor,
        .backoff_factor = config->backoff_factor, .growth_interval = config->growth_interval, .min_scale = config->min_scale,
        .max_scale = config->max_scale, .hysteresis = config->hysteresis };
    return amp_scaler_init(scaler, &params, error);
}

/* A dropout borrows its neighbour's buffers; AMP's has its own. */
static void forget_borrowed_buffers(struct darknet_amp *amp, network *net, int i)
{
    int on_gpu = amp_host_on_gpu(net);
    layer *l = &net->layers[i];
    l->output = l->delta = *amp_host_output_of(l, on_gpu) = *amp_host_delta_of(l, on_gpu) = NULL;
    amp->buffers[i] = (amp_host_buffers){ 0 };
}

static amp_status prepare_layers(struct darknet_amp *amp, network *net, amp_error *error)
{
    for (int i = 0; i < net->n; i++)
        if (!amp_host_is_native(&net->layers[i]) && !amp_host_layer_prepare(&net->layers[i], amp_host_on_gpu(net)))
            return amp_fail(error, AMP_NO_MEMORY, "layer %d: out of memory for its delta", i);
    amp_host_note_buffers(amp, net);
    for (int i = 0; i < net->n; i++) if (net->layers[i].type == DROPOUT) forget_borrowed_buffers(amp, net, i);
    return AMP_OK;
}

/* The engine takes the backend over. */
static amp_status make_engine(struct darknet_amp *amp, network *net, const amp_engine_settings *settings, amp_backend *backend,
                              amp_error *error)
{
    amp_network_desc described;
    amp_status status = amp_host_describe(net, amp->config, &described, error);
    if (status != AMP_OK) {
        backend->destroy(backend);
        return status;
    }
    amp_host host = amp_host_callbacks(amp);
    status = amp_engine_create(settings, backend, &host, &described, &amp->engine, error);
    amp_network_desc_free(&described);
    return status;
}

static amp_status make(struct darknet_amp *amp, network *net, amp_error *error)
{
    amp->net = net;
    amp->layer_count = net->n;
    amp->batch = net->batch;
    amp->w = net->w;
    amp->h = net->h;
    amp->buffers = calloc((size_t)net->n + 1, sizeof *amp->buffers);
    amp->resume = amp_resume_create();
    if (!amp->buffers || !amp->resume) return amp_fail(error, AMP_NO_MEMORY, "amp: out of memory");
    AMP_TRY(prepare_layers(amp, net, error));
    if (amp->config->debug) amp_images_note();

    amp_engine_settings settings = { .clip_norm = amp->config->clip_norm, .adam = net->adam != 0, .debug = amp->config->debug };
    AMP_TRY(scaler_of(amp->config, &settings.scaler, error));
    amp_backend *backend = amp_host_choose_backend(net, error);
    if (!backend) return error->status;
    amp_status status = choose_dtype(backend, amp_host_on_gpu(net), &amp->config->dtype, error);
    if (status != AMP_OK) {
        backend->destroy(backend);
        return status;
    }
    settings.dtype = amp->config->dtype;
    fprintf(stderr, "amp: %s on %s, %s loss scale %g\n", amp_dtype_name(settings.dtype), backend->description,
            settings.scaler.dynamic ? "dynamic" : "static", (double)settings.scaler.scale);
    if (amp_host_on_gpu(net))
        fprintf(stderr, "amp: no GPU has run this release in its authors' hands: compare a short training with -amp off before a long one\n");
    return make_engine(amp, net, &settings, backend, error);
}

void darknet_amp_layer_made(struct network *net, struct darknet_amp_options *options, struct layer *made)
{
    if (options->config->enabled) amp_host_trim(net, made);
}

/* resize_network goes on to free net->input, when it is through with its layers. */
void darknet_amp_layer_resized(struct network *net, struct layer *resized)
{
    amp_host_use_device(net);
    amp_host_unpin(&net->amp->pinned);
    amp_host_trim(net, resized);
}

int darknet_amp_resize_layer(struct layer *l, int w, int h)
{
    switch (l->type) {
    case DECONVOLUTIONAL:
        resize_deconvolutional_layer(l, h, w);
        return 1;
    case ACTIVE: case BATCHNORM: case DROPOUT: /* AMP's own: prepare_buffers makes their buffers */
        l->w = l->out_w = w;
        l->h = l->out_h = h;
        l->inputs = l->outputs = w * h * l->out_c;
        return 1;
    default:
        return 0;
    }
}

void darknet_amp_attach(struct network *net, struct darknet_amp_options *options)
{
    amp_error error;
    amp_config *config = options->config;
    free(options);
    net->amp = NULL;
    if (config->note[0]) fprintf(stderr, "%s\n", config->note);
    if (!config->enabled) {
        amp_config_free(config);
        return;
    }
    if (amp_host_refusal(net)) {
        amp_fail(&error, AMP_UNSUPPORTED, "amp: %s", amp_host_refusal(net));
        amp_host_die(&error);
    }
    amp_host_use_device(net);
    struct darknet_amp *amp = calloc(1, sizeof *amp);
    if (!amp) {
        amp_fail(&error, AMP_NO_MEMORY, "amp: out of memory");
        amp_host_die(&error);
    }
    amp->config = config;
    amp_host_check(make(amp, net, &error), &error);
    amp_loading_watch();
    amp_host_pin_note(&amp->pinned, net);
    net->amp = amp;
}

/* Darknet's free_layer leaves a dropout's output and delta alone, since they used to be its neighbour's. */
static void free_dropout_buffers(network *net)
{
    int on_gpu = amp_host_on_gpu(net);
    for (int i = 0; i < net->n; i++) {
        layer *l = &net->layers[i];
        if (l->type != DROPOUT) continue;
        amp_host_give_back(amp_host_output_of(l, on_gpu), on_gpu);
        amp_host_give_back(amp_host_delta_of(l, on_gpu), on_gpu);
        if (l->output) amp_host_give_back(&l->output, 0);
    }
}

void darknet_amp_free(struct network *net)
{
    struct darknet_amp *amp = net->amp;
    if (!amp) return;
    amp_host_use_device(net);
    amp_host_unpin(&amp->pinned);
    free_dropout_buffers(net);
    amp_host_give_back(&amp->workspace, amp_host_on_gpu(net));
    net->amp = NULL;
    amp_engine_free(amp->engine);
    amp_config_free(amp->config);
    free(amp->buffers);
    free(amp->anomaly_images);
    amp_resume_free(amp->resume);
    free(amp);
}

void darknet_amp_weights_changed(struct network *net)
{
    amp_host_use_device(net);
    amp_engine_weights_changed(net->amp->engine);
}

void darknet_amp_resized(struct network *net)
{
    amp_host_use_device(net);
    amp_host_note_buffers(net->amp, net);
    amp_host_pin_note(&net->amp->pinned, net);
    amp_engine_invalidate(net->amp->engine);
}
