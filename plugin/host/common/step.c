/* The hooks of a step: forward, backward and update of one network, and what the user is told of them. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "../pjreddie/device.h"
#include "host.h"
#include "memory.h"
#include "network.h"
#include "report.h"
#include "resume.h"

#include "../../tensor/half.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static amp_plan_key key_of(const network *net)
{
    int image_delta = amp_host_image_delta(net) != NULL;
    return (amp_plan_key){ .batch = net->batch, .w = net->w, .h = net->h, .keeps_state = net->train || image_delta,
                           .image_delta = image_delta };
}

/* What Darknet's functions read after a pass, to where they read it. In training that is nothing if the last layer is a yolo, and
 * net->output, which then has no buffer, is NULL. */
static amp_status hand_out(struct darknet_amp *amp, network *net, amp_error *error)
{
    const amp_plan *plan = amp_engine_plan(amp->engine);
    for (int i = 0; i < net->n; i++) {
        size_t count = (size_t)net->layers[i].outputs * (size_t)net->batch;
        if (plan->hands_out[i]) AMP_TRY(amp_host_pull_output(net, i, count, amp_engine_backend(amp->engine), error));
    }
    net->output = net->layers[plan->output_layer].output;
    return AMP_OK;
}

static amp_status forward(struct darknet_amp *amp, network *net, amp_error *error)
{
    if (net->n != amp->layer_count)
        return amp_fail(error, AMP_BAD_NETWORK, "amp: this command cuts the network to %d of its %d layers; run it with -amp off", net->n, amp->layer_count);
    if (amp_host_on_gpu(net) && net->batch > amp->batch)
        return amp_fail(error, AMP_BAD_NETWORK, "amp: batch grew from %d to %d, but Darknet made its input on the GPU for %d; set batch "
                        "in the .cfg", amp->batch, net->batch, amp->batch);
    amp_plan_key key = key_of(net);
    if (!amp_engine_has_plan(amp->engine, &key)) {
        amp_network_desc described;
        AMP_TRY(amp_host_describe(net, amp->config, &described, error));
        amp_status status = amp_engine_add_plan(amp->engine, &described, &key, error);
        amp_network_desc_free(&described);
        if (status != AMP_OK) return status;
    }
    amp_backend *backend = amp_engine_backend(amp->engine);
    amp_host_pin(&amp->pinned, net);
    AMP_TRY(amp_host_push_input(net, backend, error));
    AMP_TRY(amp_engine_forward(amp->engine, &key, amp_host_image(net), net->train, error));
    AMP_TRY(hand_out(amp, net, error));
    calc_network_cost(net);
    return AMP_OK;
}

/* Labels that are no numbers, as a label file with "nan" in it gives: Darknet's losses use them as indices. The image loses its
 * labels, and the step is skipped. */
static void check_labels(struct darknet_amp *amp, network *net)
{
    amp_anomaly bad = { .found = 1, .layer = -1, .pass = "forward", .tensor = "labels" };
    for (int i = 0; net->truth && i < net->batch; i++) {
        float *labels = net->truth + (size_t)i * (size_t)net->truths;
        if (amp_all_finite(labels, (size_t)net->truths)) continue;
        memset(labels, 0, (size_t)net->truths * sizeof *labels);
        if (!bad.bad_images++) bad.image = i;
    }
    if (bad.bad_images) amp_engine_reject_step(amp->engine, &bad);
}

void darknet_amp_forward(struct network *net)
{
    struct darknet_amp *amp = net->amp;
    amp_error error;
    double began = now();
    if (net->train && amp->started == 0) amp->started = began;
    amp->net = net;
    amp_host_use_device(net);
    if (net->train) {
        amp_resume_before_forward(amp, net);
        check_labels(amp, net);
    }
    amp_host_check(forward(amp, net, &error), &error);
    if (!net->train) return;
    if (amp->config->debug) amp_host_note_images(amp, net);
    amp->computed += now() - began;
    amp->images += net->batch;
}

void darknet_amp_backward(struct network *net)
{
    struct darknet_amp *amp = net->amp;
    amp_error error;
    double began = now();
    amp->net = net;
    amp_host_use_device(net);
    amp_host_check(amp_engine_backward(amp->engine, amp_host_image_delta(net), &error), &error);
    if (amp->config->debug && net->train) amp_host_note_images(amp, net);
    amp->computed += now() - began;
}

/* One line when training is done, for people and for scripts. */
static void print_summary(struct darknet_amp *amp, const network *net)
{
    if (amp->summary_printed || !net->max_batches || get_current_batch((network *)net) < (size_t)net->max_batches) return;
    amp->summary_printed = 1;
    fprintf(stderr, "amp: summary dtype=%s steps=%lu skipped=%lu scale=%g images_per_second=%.1f "
            "compute_images_per_second=%.1f peak_rss_mb=%.0f\n", amp_dtype_name(amp->config->dtype), amp->steps,
            amp->skipped, (double)amp_engine_scaler(amp->engine)->scale, amp->images / (now() - amp->started),
            amp->images / amp->computed, amp_host_peak_resident_mb());
}

void darknet_amp_update(struct network *net)
{
    struct darknet_amp *amp = net->amp;
    amp_error error;
    amp_step_report report;
    double began = now();
    amp_update_args args = { .learning_rate = get_current_rate(net), .momentum = net->momentum,
                             .batch = net->batch * net->subdivisions, .t = *net->t + 1, .beta1 = net->B1, .beta2 = net->B2,
                             .eps = net->eps };
    amp->net = net;
    amp_host_use_device(net);
    amp_status status = amp_engine_update(amp->engine, &args, net->decay, &report, &error);
    if (status != AMP_DIVERGED) amp_host_check(status, &error);
    amp->computed += now() - began;
    /* The schedule does not count a step that did not happen, and a caller may not count at all. */
    if (report.skipped && *net->seen >= (size_t)args.batch) *net->seen -= (size_t)args.batch;
    size_t good_steps = get_current_batch(net) - !report.skipped;
    amp_host_tell_anomaly(amp, &report, good_steps);
    amp->step_skipped = report.skipped;
    amp->step_scale = report.scale_before;
    amp->step_gradient_norm = report.skipped ? NAN : report.gradient_norm;
    if (report.skipped) {
        amp->skipped++;
        amp_host_forget_overflow(amp);
        amp_host_tell_skip(amp, &report, good_steps);
        if (status == AMP_DIVERGED) amp_host_collapse(amp, &report, good_steps);
        return;
    }
    amp->steps++;
    amp->unsynced_steps++;
    ++*net->t;
    print_summary(amp, net);
}
