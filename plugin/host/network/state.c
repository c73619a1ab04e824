/* Creates AMP's state for a network once Darknet's parser has made all layers, and frees it. */
#include "state.h"

#include <malloc.h>

#include "../data/images.h"
#include "../data/loading.h"
#include "../program/cfg.h"
#include "../program/ranks.h"
#include "fits.h"
#include "ranks_join.h"
#include "resume.h"

/* ---- creating ---- */

/* Rejects a dtype that the device does not support. Prints a note if the device can store the dtype, but
 * computes in fp32. */
static amp_status check_dtype(const amp_backend *backend, amp_dtype dtype, amp_error *error)
{
    char note[256] = "";
    if (backend->supports(backend, dtype, note) == AMP_SUPPORT_NONE)
        return amp_fail(error, AMP_UNSUPPORTED, "amp: %s", note);
    if (note[0]) fprintf(stderr, "amp: %s\n", note);
    return AMP_OK;
}

static amp_status scaler_of(const amp_config *config, amp_scaler *scaler, amp_error *error)
{
    const amp_scaler settings = { .enabled = 1, .dynamic = config->dynamic,
        .scale = (float)(config->dynamic ? config->init_scale : config->loss_scale),
        .growth_factor = config->growth_factor, .backoff_factor = config->backoff_factor,
        .growth_interval = config->growth_interval, .min_scale = config->min_scale,
        .max_scale = config->max_scale, .hysteresis = config->hysteresis };
    return amp_scaler_init(scaler, &settings, error);
}

/* Prints a note for each layer whose batch norm runs in Darknet's own code and is therefore not synchronized
 * between ranks. */
static void print_unsynced(const amp_network_desc *described)
{
    for (int i = 0; i < described->count; i++) {
        const amp_layer_desc *d = &described->layers[i];
        int moves = 0;
        for (int k = 0; k < d->statistics_count; k++) moves |= d->statistics[k].rolling_factor > 0;
        if (d->kind->normalizes || !moves) continue;
        fprintf(stderr, "amp: sync_batchnorm=1: layer %d [%s] runs in Darknet's own code, whose batch norm "
                        "sees each rank's images separately\n", i, d->type);
    }
}

/* Creates the engine, which takes ownership of the backend. */
static amp_status create_engine(struct darknet_amp *amp, const amp_engine_settings *settings,
                                amp_backend *backend, amp_error *error)
{
    /* only for the parameters and print_unsynced: the engine describes the network again for each plan */
    amp_network_desc described;
    amp_host host = amp_fork_callbacks(amp);
    host.describe(host.context, amp->batch, &described);
    amp->engine = amp_engine_create(settings, backend, &host, &described);
    amp_status status = amp_ranks_use(amp, error);
    if (amp_ranks_of_step() > 1 && settings->sync_batchnorm) print_unsynced(&described);
    amp_network_desc_free(&described);
    return status;
}

static amp_status create(struct darknet_amp *amp, struct network *net, amp_error *error)
{
    const amp_program *program = amp_this_program();
    amp_view view = amp_fork_view(net);
    if (program->refusal)
        return amp_fail(error, AMP_UNSUPPORTED, "amp: %s; run with -amp off", program->refusal);
    amp->net = net;
    amp->layer_count = view.layers;
    amp->batch = view.batch;
    amp->measures = program->measures;
    amp->w = view.w;
    amp->h = view.h;
    amp->resume = amp_resume_create(view.layers);
    amp_engine_settings settings = { .clip_norm = amp->config->clip_norm, .adam = view.adam,
                                     .adamw = amp->config->adamw, .debug = amp->config->debug,
                                     .sync_batchnorm = amp->config->sync_batchnorm,
                                     .graphs = amp->config->graphs, .direct = !amp->config->winograd,
                                     .spikes = { .factor = amp->config->spike_factor,
                                                 .drop = amp->config->spike == AMP_SPIKE_SKIP } };
    AMP_TRY(scaler_of(amp->config, &settings.scaler, error));
    AMP_TRY(amp_fork_take_over(amp, net, error));
    if (amp->config->debug || (amp->config->spike_factor > 0 && program->trains)) amp_images_note();

    amp_backend *backend = amp_fork_backend(error);
    if (!backend) return error->status;
    amp_status status = check_dtype(backend, amp->config->dtype, error);
    if (status != AMP_OK) {
        backend->destroy(backend);
        return status;
    }
    settings.dtype = amp->config->dtype;
    fprintf(stderr, "amp: %s on %s, %s loss scale %g%s\n", amp_dtype_name(settings.dtype),
            backend->description, settings.scaler.dynamic ? "dynamic" : "static",
            (double)settings.scaler.scale, settings.adamw ? ", AdamW" : "");
    if (view.on_gpu)
        fprintf(stderr, "amp: the authors have not run this release on a GPU: before a long training, make a "
                "short one with AMP and one with -amp off, and compare them\n");
    if (program->maps && amp_fork_knows_map())
        fprintf(stderr, "amp: this Darknet's own `detector map` uses -points 0 by default and does not clip "
                        "boxes to the image; `amp valid` and -map use -points 101 and clip the boxes\n");
    return create_engine(amp, &settings, backend, error);
}

struct darknet_amp *amp_host_create(struct network *net)
{
    amp_error error;
    amp_config *config = amp_host_take_config();
    if (!config) return NULL; /* the network was not made by the parser */
    if (config->note[0]) fprintf(stderr, "%s\n", config->note);
    if (!config->enabled) {
        amp_config_free(config);
        return NULL;
    }
    amp_fork_use_device(net);
    struct darknet_amp *amp = amp_allocated(calloc(1, sizeof *amp));
    amp->config = config;
    /* amp_loading_watch must come before AMP allocates large blocks. But if it came before Darknet makes the
     * network, the temporary blocks that Darknet then frees would leave holes in the heap. */
    if (amp_this_program()->fit != AMP_FIT_LOOKS) amp_loading_watch();
    amp_host_check(create(amp, net, &error), &error);
    return amp;
}

/* On a GPU only the first pass builds the plan, because kernels are timed while it is built, and timing needs
 * memory. */
void amp_host_prepare(struct network *net)
{
    amp_error error;
    const amp_plan *plan;
    int trains = amp_this_program()->trains;
    if (amp_this_program()->fit == AMP_FIT_LOOKS) return;
    malloc_trim(0); /* otherwise memory that Darknet's layers have freed would count as used */
    if (trains) amp_host_check(amp_host_check_fits(net, 1, &error), &error);
    amp_host_check(amp_host_choose_recompute(net, &error), &error);
    if (!trains) return;
    if (!amp_fork_view(net).on_gpu) amp_host_check(amp_host_training_plan(net, &plan, &error), &error);
    amp_host_check(amp_host_check_fits(net, 0, &error), &error);
}

void amp_host_free(struct darknet_amp *amp)
{
    amp_ranks_forget(amp);
    amp_engine_free(amp->engine);
    amp_config_free(amp->config);
    free(amp->anomaly_images);
    amp_spikes_free(amp);
    amp_resume_free(amp->resume);
    free(amp);
}

void darknet_amp_weights_changed(struct network *net)
{
    if (!amp_fork_state(net)) return;
    amp_fork_use_device(net);
    amp_engine_weights_changed(amp_fork_state(net)->engine);
}
