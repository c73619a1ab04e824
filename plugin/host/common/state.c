/* The life of what AMP keeps for a network: made when Darknet's parser has made all layers, freed with the
 * network. */
#include "state.h"

#include <stdlib.h>
#include <string.h>

#include "../data/images.h"
#include "../data/loading.h"
#include "resume.h"

/* ---- options ---- */

struct darknet_amp_options { amp_config *config; };

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
    amp_host_check(amp_config_read(cfg_file, amp_host_wished_dtype(), amp_fork_default_dtype(), &options->config, &error), &error);
    if (options->config->enabled) amp_host_check(amp_host_check_cfg(cfg_file, CFG_FOR_ANYTHING, &error), &error);
    return options;
}

int amp_host_is_enabled(const struct darknet_amp_options *options) { return options->config->enabled; }

/* ---- making ---- */

/* A dtype a CPU has no instructions for: fp32 instead of a crash, and one line that says so. A GPU has
 * another half type. */
static amp_status choose_dtype(const amp_backend *backend, int on_gpu, amp_dtype *dtype, amp_error *error)
{
    char note[256] = "";
    amp_support support = backend->supports(backend, *dtype, note);
    if (support == AMP_SUPPORT_NONE && on_gpu) return amp_fail(error, AMP_UNSUPPORTED, "amp: %s", note);
    if (note[0])
        fprintf(stderr, "amp: %s%s\n", note, support == AMP_SUPPORT_NONE ? "; this run goes on in fp32" : "");
    if (support == AMP_SUPPORT_NONE) *dtype = AMP_FP32;
    return AMP_OK;
}

static amp_status scaler_of(const amp_config *config, amp_scaler *scaler, amp_error *error)
{
    amp_scaler_params params = { .enabled = 1, .dynamic = config->dynamic,
        .scale = config->dynamic ? config->init_scale : config->loss_scale,
        .growth_factor = config->growth_factor, .backoff_factor = config->backoff_factor,
        .growth_interval = config->growth_interval, .min_scale = config->min_scale,
        .max_scale = config->max_scale, .hysteresis = config->hysteresis };
    return amp_scaler_init(scaler, &params, error);
}

/* The engine takes the backend over. */
static amp_status make_engine(struct darknet_amp *amp, struct network *net,
                              const amp_engine_settings *settings, amp_backend *backend, amp_error *error)
{
    amp_network_desc described;
    amp_status status = amp_fork_describe(net, amp->config, &described, error);
    if (status != AMP_OK) {
        backend->destroy(backend);
        return status;
    }
    amp_host host = amp_fork_callbacks(amp);
    status = amp_engine_create(settings, backend, &host, &described, &amp->engine, error);
    amp_network_desc_free(&described);
    return status;
}

static amp_status make(struct darknet_amp *amp, struct network *net, amp_error *error)
{
    amp_view view = amp_fork_view(net);
    if (view.batch < 1 || view.subdivisions < 1) /* what counts steps divides by them */
        return amp_fail(error, AMP_BAD_NETWORK,
                        "amp: [net]: batch / subdivisions * time_steps is %d, with subdivisions=%d; give "
                        "numbers from 1, and no more subdivisions than batch", view.batch, view.subdivisions);
    if (amp_host_refusal())
        return amp_fail(error, AMP_UNSUPPORTED, "amp: %s; run with -amp off", amp_host_refusal());
    amp->net = net;
    amp->layer_count = view.layers;
    amp->batch = view.batch;
    amp->w = view.w;
    amp->h = view.h;
    amp->resume = amp_resume_create();
    if (!amp->resume) return amp_fail(error, AMP_NO_MEMORY, "amp: out of memory");
    amp_engine_settings settings = { .clip_norm = amp->config->clip_norm, .adam = view.adam,
                                     .debug = amp->config->debug };
    AMP_TRY(scaler_of(amp->config, &settings.scaler, error));
    AMP_TRY(amp_fork_take_over(amp, net, error));
    if (amp->config->debug) amp_images_note();

    amp_backend *backend = amp_fork_backend(error);
    if (!backend) return error->status;
    amp_status status = choose_dtype(backend, view.on_gpu, &amp->config->dtype, error);
    if (status != AMP_OK) {
        backend->destroy(backend);
        return status;
    }
    settings.dtype = amp->config->dtype;
    fprintf(stderr, "amp: %s on %s, %s loss scale %g\n", amp_dtype_name(settings.dtype), backend->description,
            settings.scaler.dynamic ? "dynamic" : "static", (double)settings.scaler.scale);
    if (view.on_gpu)
        fprintf(stderr, "amp: no GPU has run this release in its authors' hands: compare a short training "
                "with -amp off before a long one\n");
    return make_engine(amp, net, &settings, backend, error);
}

struct darknet_amp *amp_host_make(struct network *net, struct darknet_amp_options *options)
{
    amp_error error;
    amp_config *config = options->config;
    free(options);
    if (config->note[0]) fprintf(stderr, "%s\n", config->note);
    if (!config->enabled) {
        amp_config_free(config);
        return NULL;
    }
    amp_fork_use_device(net);
    struct darknet_amp *amp = calloc(1, sizeof *amp);
    if (!amp) {
        amp_fail(&error, AMP_NO_MEMORY, "amp: out of memory");
        amp_host_die(&error);
    }
    amp->config = config;
    amp_host_check(make(amp, net, &error), &error);
    amp_loading_watch();
    return amp;
}

void amp_host_free(struct darknet_amp *amp)
{
    amp_engine_free(amp->engine);
    amp_config_free(amp->config);
    free(amp->anomaly_images);
    amp_resume_free(amp->resume);
    free(amp);
}

void darknet_amp_weights_changed(struct network *net)
{
    amp_fork_use_device(net);
    amp_engine_weights_changed(amp_fork_state(net)->engine);
}
