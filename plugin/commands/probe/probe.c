/* `darknet amp probe DATA CFG [WEIGHTS]`: the user's network in fp32 at a loss scale of 1, on the batches of
 * a training. */
#include "probe.h"
#include "probe_compare.h"

#include "../arguments.h"
#include "../command.h"

#include "../../amp/sidecar.h"
#include "../../host/network/resume.h"
#include "../../files/checksum.h"
#include "../../host/program/clock.h"

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
    amp_sidecar *saved;
    uint64_t weights;
    AMP_TRY(amp_sidecar_read(sidecar, &saved, error));
    amp_status status = amp_file_checksum(r->weights, &weights, error);
    const amp_scaler *scaler = amp_sidecar_scaler(saved);
    int theirs = status == AMP_OK && weights == amp_sidecar_weights(saved);
    if (status == AMP_OK && !theirs)
        fprintf(stderr, "amp probe: %s belongs to other weights: its loss scale is not taken\n", sidecar);
    if (theirs && scaler->enabled && scaler->dynamic) {
        r->scale = scaler->scale;
        r->scale_source = AMP_SCALE_OF_SIDECAR;
    }
    amp_sidecar_free(saved);
    return status;
}

/* The scale that the weights were trained with last: a dynamic one, since a static one is the .cfg's. */
static amp_status take_sidecar_scale(amp_probe_result *r, amp_error *error)
{
    if (!r->weights || !r->scale_moves) return AMP_OK;
    char *sidecar = amp_sidecar_name(r->weights);
    amp_status status = amp_name_is_taken(sidecar) ? take_scale_of(sidecar, r, error) : AMP_OK;
    free(sidecar);
    return status;
}

/* ---- the network ---- */

/* With -seed the weights and batches are train_detector's own. The caller frees *out, whatever happens. */
static amp_status load(const amp_probe_result *r, struct network **out, amp_error *error)
{
    *out = amp_probe_load(r->cfg, r->weights, "fp32", darknet_amp_seed());
    srand(darknet_amp_seed());
    return amp_probe_fix_scale(amp_fork_state(*out)->engine, 1, error);
}

/* ---- training ---- */

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
    AMP_TRY(amp_batches_open(r->data, net, &batches, error));
    double began = amp_clock_seconds();
    int kept = amp_mute_stdout();
    amp_status status = train(net, batches, numerics, r, error);
    amp_batches_close(batches);
    amp_restore_stdout(kept);
    r->seconds = amp_clock_seconds() - began;
    amp_engine_set_observer(engine, NULL);
    return status;
}

static void keep_results(struct network *net, const amp_numerics *numerics, amp_probe_result *r)
{
    int layers = amp_fork_view(net).layers;
    r->layers = amp_allocated(calloc((size_t)layers, sizeof *r->layers));
    for (int i = 0; i < layers; i++) r->layers[i].numerics = *amp_numerics_of(numerics, i);
    amp_fork_describe(net, amp_fork_state(net)->config, &r->network);
}

static amp_status probe(amp_probe_result *r, amp_error *error)
{
    struct network *net;
    amp_status status = load(r, &net, error);
    amp_view view = amp_fork_view(net);
    r->images = view.batch * view.subdivisions;
    r->width = view.w;
    r->height = view.h;
    amp_numerics *numerics = amp_numerics_create(view.layers, amp_fork_state(net)->engine);
    if (status == AMP_OK) status = observe(net, numerics, r, error);
    if (status == AMP_OK) keep_results(net, numerics, r);
    amp_numerics_free(numerics);
    amp_fork_free_network(net);
    return status;
}

/* ---- the verb ---- */

/* Trains without saving anything. AMP_BAD_CONFIG: a file that is missing or does not fit. */
static amp_status run(amp_probe_result *r, amp_error *error)
{
    AMP_TRY(take_cfg_scale(r, error));
    AMP_TRY(take_sidecar_scale(r, error));
    AMP_TRY(probe(r, error));
    amp_probe_advise(r);
    return AMP_OK;
}

void amp_probe_free(amp_probe_result *r)
{
    amp_lines_free(&r->advice);
    amp_network_desc_free(&r->network);
    free(r->layers);
    free(r);
}

static amp_status measure(const amp_probe_comparison *c, long iterations, const char *json, amp_error *error)
{
    amp_probe_result *r = amp_allocated(calloc(1, sizeof *r));
    *r = (amp_probe_result){ .data = c->data, .cfg = c->cfg, .weights = c->weights, .share = .01,
                             .iterations = iterations ? iterations : 20, .scale_source = AMP_SCALE_HIGHEST };
    amp_status status = run(r, error);
    if (status == AMP_OK && json) status = amp_output_write(json, amp_probe_write, r, error);
    if (status == AMP_OK && !amp_is_stdout(json)) amp_probe_print(r, stdout);
    amp_probe_free(r);
    return status;
}

/* AMP_DIVERGED: AMP's fp32 is not Darknet's; all has been printed and written then. */
static amp_status compare(amp_probe_comparison *c, const char *json, const char *page, amp_error *error)
{
    amp_status status = amp_probe_compare(c, error);
    if (status == AMP_OK && json) status = amp_output_write(json, amp_probe_write_comparison, c, error);
    if (status == AMP_OK && page) status = amp_output_write(page, amp_probe_write_page, c, error);
    if (status == AMP_OK && !amp_is_stdout(json)) amp_probe_print_comparison(c, stdout);
    if (status == AMP_OK && amp_probe_is_wrong(c)) status = amp_probe_refuse(c, error);
    amp_probe_comparison_free(c);
    return status;
}

amp_status amp_command_probe(int argc, char **argv, amp_error *error)
{
    const char *json = NULL, *page = NULL;
    int compares = 0;
    long iterations = 0;
    amp_probe_comparison c = { 0 };
    const amp_argument arguments[] = {
        { .name = "DATA", .text = &c.data, .about = "the .data file of the training" },
        { .name = "CFG", .text = &c.cfg, .about = "the network's .cfg" },
        { .name = "WEIGHTS", .text = &c.weights, .optional = 1,
          .about = "what the training begins with (random weights)" },
        { .name = "-iters", .number = &iterations, .least = 1, .most = 1000000,
          .about = "steps to train (20)" },
        { .name = "-json", .value = "FILE", .text = &json,
          .about = "also writes everything as JSON; - is standard output" },
        { .name = "-compare", .flag = &compares,
          .about = "compares instead one pass in Darknet's own code and in AMP's dtypes, layer by layer" },
        { .name = "-images", .number = &c.images, .least = 1, .most = 65536,
          .about = "with -compare: images of the pass (those of a pass of the training)" },
        { .name = "-report", .value = "FILE", .text = &page,
          .about = "with -compare: also writes a page with pictures (HTML)" },
        { 0 } };
    AMP_TRY(amp_arguments_read("amp probe", argc - 3, argv + 3, arguments, error));
    if (compares && iterations)
        return amp_fail(error, AMP_BAD_CONFIG, "-iters does not go with -compare, which makes one pass");
    if (!compares && (c.images || page))
        return amp_fail(error, AMP_BAD_CONFIG, "%s goes with -compare", page ? "-report" : "-images");
    AMP_TRY(amp_readable(c.data, "the .data file", error));
    if (c.weights) AMP_TRY(amp_readable(c.weights, "the weights", error));
    if (compares) return compare(&c, json, page, error);
    return measure(&c, iterations, json, error);
}
