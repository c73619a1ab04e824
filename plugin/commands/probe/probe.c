/* `darknet amp probe DATA CFG [WEIGHTS]`: the user's network in fp32 at a loss scale of 1, on the batches of
 * a training. */
#include "probe.h"

#include "../arguments.h"
#include "../command.h"

#include "../../amp/sidecar.h"
#include "../../host/fork_commands.h"
#include "../../host/network/resume.h"
#include "../../files/checksum.h"
#include "../../host/program/clock.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the present loss scale ---- */

static amp_status take_cfg_scale(amp_probe_result *r, amp_error *error)
{
    amp_config *config, *own;
    AMP_TRY(amp_config_read(r->cfg, "fp16", AMP_FP16, &config, error));
    r->scale_moves = config->dynamic;
    if (config->scale_given) {
        r->scale = (float)(config->dynamic ? config->init_scale : config->loss_scale);
        r->scale_source = AMP_SCALE_OF_CFG;
    }
    amp_config_free(config);
    AMP_TRY(amp_config_read(r->cfg, "bf16", AMP_BF16, &own, error));
    r->bf16_scale = (float)(own->dynamic ? own->init_scale : own->loss_scale);
    amp_config_free(own);
    return amp_host_check_cfg(r->cfg, CFG_TRAINS_DATA, error);
}

static amp_status take_scale_of(const char *sidecar, amp_probe_result *r, amp_error *error)
{
    amp_sidecar *checkpoint;
    uint64_t weights;
    AMP_TRY(amp_sidecar_read(sidecar, &checkpoint, error));
    amp_status status = amp_file_checksum(r->weights, &weights, error);
    const amp_scaler *scaler = amp_sidecar_scaler(checkpoint);
    int theirs = status == AMP_OK && weights == amp_sidecar_weights(checkpoint);
    if (status == AMP_OK && !theirs)
        fprintf(stderr, "amp probe: %s belongs to other weights: its loss scale is not taken\n", sidecar);
    if (theirs && scaler->enabled && scaler->dynamic) {
        r->scale = scaler->scale;
        r->scale_source = AMP_SCALE_OF_SIDECAR;
    }
    amp_sidecar_free(checkpoint);
    return status;
}

/* The scale that the weights were trained with last: a dynamic one, since a static one is the .cfg's. */
static amp_status take_sidecar_scale(amp_probe_result *r, amp_error *error)
{
    if (!r->weights || !r->scale_moves) return AMP_OK;
    char *sidecar = amp_host_allocated(amp_sidecar_name(r->weights));
    amp_status status = amp_name_is_taken(sidecar) ? take_scale_of(sidecar, r, error) : AMP_OK;
    free(sidecar);
    return status;
}

/* ---- the network ---- */

/* Nothing of the weights' sidecar is taken over but what the probe reads of it: files stay as they are. */
static void only_look_at_weights(struct darknet_amp *amp) { amp->resume->pending = 0; }

static amp_status set_up(struct network *net, amp_error *error)
{
    struct darknet_amp *amp = amp_fork_state(net);
    amp_view view = amp_fork_view(net);
    amp_counters counters = amp_fork_counters(net);
    amp_scaler scaler = amp_scaler_defaults();
    scaler.dynamic = 0;
    scaler.scale = 1;
    AMP_TRY(amp_scaler_init(&scaler, &scaler, error));
    amp_engine_set_scaler(amp->engine, &scaler);
    amp->summary_printed = 1; /* no line about a resumed training: nothing of it is kept */
    counters.seen -= counters.seen % (size_t)(view.batch * view.subdivisions);
    amp_fork_set_counters(net, counters);
    return AMP_OK;
}

/* As train_detector loads it: with -seed the weights and batches are its own. The caller frees *out, whatever
 * happens. */
static amp_status load(const amp_probe_result *r, struct network **out, amp_error *error)
{
    srand(darknet_amp_seed());
    srand((unsigned)rand());
    const char *requested = amp_host_requested_dtype();
    amp_host_request_dtype("fp32");
    struct network *net = *out = amp_fork_make_network(r->cfg, r->cfg, 1);
    amp_host_request_dtype(requested);
    if (r->weights) amp_fork_load_weights(net, r->weights);
    amp_fork_use_device(net);
    only_look_at_weights(amp_fork_state(net));
    srand(darknet_amp_seed());
    return set_up(net, error);
}

/* ---- training ---- */

/* Darknet's layers print to stdout while they train. */
static int mute_stdout(void)
{
    fflush(stdout);
    int kept = dup(STDOUT_FILENO), nowhere = open("/dev/null", O_WRONLY);
    if (kept >= 0 && nowhere >= 0) dup2(nowhere, STDOUT_FILENO);
    if (nowhere >= 0) close(nowhere);
    return kept;
}

static void restore_stdout(int kept)
{
    fflush(stdout);
    if (kept < 0) return;
    dup2(kept, STDOUT_FILENO);
    close(kept);
}

static float train_step(struct network *net, amp_batches *batches, amp_numerics *numerics)
{
    amp_view view = amp_fork_view(net);
    float loss = 0;
    for (int s = 0; s < view.subdivisions; s++) {
        amp_numerics_count_gradients(numerics, s == 0);
        loss += amp_batches_train(batches, net, s);
    }
    return loss / (float)(view.subdivisions * view.batch);
}

static amp_status train(struct network *net, amp_batches *batches, amp_numerics *numerics,
                        amp_probe_result *r, amp_error *error)
{
    for (long i = 0; i < r->iterations; i++) {
        AMP_TRY(amp_batches_next(batches, i + 1 == r->iterations, error));
        r->last_loss = train_step(net, batches, numerics);
        if (i == 0) r->first_loss = r->last_loss;
        fprintf(stderr, "amp probe: step %ld of %ld: loss %g\n", i + 1, r->iterations, (double)r->last_loss);
    }
    return AMP_OK;
}

static amp_status observe(struct network *net, amp_numerics *numerics, amp_probe_result *r, amp_error *error)
{
    amp_engine *engine = amp_fork_state(net)->engine;
    amp_batches *batches;
    amp_observer observer = amp_numerics_observer(numerics);
    amp_engine_set_observer(engine, &observer);
    amp_numerics_look_inside(numerics, engine);
    AMP_TRY(amp_batches_open(r->data, net, &batches, error));
    double began = amp_clock_seconds();
    int kept = mute_stdout();
    amp_status status = train(net, batches, numerics, r, error);
    amp_batches_close(batches);
    restore_stdout(kept);
    r->seconds = amp_clock_seconds() - began;
    amp_engine_set_observer(engine, NULL);
    return status;
}

static amp_status keep_results(struct network *net, const amp_numerics *numerics, amp_probe_result *r,
                               amp_error *error)
{
    int layers = amp_fork_view(net).layers;
    r->layers = amp_host_allocated(calloc((size_t)layers, sizeof *r->layers));
    for (int i = 0; i < layers; i++) r->layers[i].numerics = *amp_numerics_of(numerics, i);
    return amp_fork_describe(net, amp_fork_state(net)->config, &r->network, error);
}

static amp_status probe(amp_probe_result *r, amp_error *error)
{
    struct network *net;
    amp_numerics *numerics = NULL;
    amp_status status = load(r, &net, error);
    amp_view view = amp_fork_view(net);
    r->images = view.batch * view.subdivisions;
    r->width = view.w;
    r->height = view.h;
    if (status == AMP_OK) status = amp_numerics_create(view.layers, &numerics, error);
    if (status == AMP_OK) status = observe(net, numerics, r, error);
    if (status == AMP_OK) status = keep_results(net, numerics, r, error);
    amp_numerics_free(numerics);
    amp_fork_free_network(net);
    return status;
}

/* ---- the verb ---- */

/* Trains without saving anything. AMP_BAD_CONFIG: a file that is missing or does not fit. */
static amp_status run(amp_probe_result *r, amp_error *error)
{
    AMP_TRY(amp_readable(r->data, "the .data file", error));
    if (r->weights) AMP_TRY(amp_readable(r->weights, "the weights", error));
    AMP_TRY(take_cfg_scale(r, error));
    AMP_TRY(take_sidecar_scale(r, error));
    AMP_TRY(probe(r, error));
    amp_probe_advise(r);
    return AMP_OK;
}

void amp_probe_free(amp_probe_result *r)
{
    for (int i = 0; i < r->advice_count; i++) free(r->advice[i]);
    free(r->advice);
    amp_network_desc_free(&r->network);
    free(r->layers);
    free(r);
}

amp_status amp_command_probe(int argc, char **argv, amp_error *error)
{
    const char *json = NULL;
    amp_probe_result *r = amp_host_allocated(calloc(1, sizeof *r));
    *r = (amp_probe_result){ .iterations = 20, .share = .01, .scale_source = AMP_SCALE_HIGHEST };
    const amp_argument arguments[] = {
        { .name = "DATA", .text = &r->data, .about = "the .data file of the training" },
        { .name = "CFG", .text = &r->cfg, .about = "the network's .cfg" },
        { .name = "WEIGHTS", .text = &r->weights, .optional = 1,
          .about = "what the training begins with (random weights)" },
        { .name = "-iters", .number = &r->iterations, .least = 1, .most = 1000000,
          .about = "steps to train (20)" },
        { .name = "-json", .value = "FILE", .text = &json,
          .about = "also writes everything as JSON; - is standard output" },
        { 0 } };
    amp_status status = amp_arguments_read("amp probe", argc - 3, argv + 3, arguments, error);
    if (status == AMP_OK) status = run(r, error);
    if (status == AMP_OK && json) status = amp_probe_write(r, json, error);
    if (status == AMP_OK && !amp_is_stdout(json)) amp_probe_print(r, stdout);
    amp_probe_free(r);
    return status;
}
