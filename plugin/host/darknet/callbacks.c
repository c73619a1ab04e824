/* The engine's callbacks (amp_host in layers/layer.h): they describe Darknet's layers, provide their buffers,
 * and run Darknet's own layers. */
#include "room.h"

#include "utils.h"

/* ---- descriptions and buffers ---- */

static void describe_for_engine(void *context, int batch, amp_network_desc *out)
{
    struct darknet_amp *amp = context;
    int as_made = amp->net->batch;
    amp->net->batch = batch; /* shapes depend on net->batch */
    amp_fork_describe(amp->net, amp->config, out);
    amp->net->batch = as_made;
}

static amp_status prepare_buffers(void *context, const char *needs_output, const char *needs_delta,
                                  amp_error *error)
{
    return amp_host_fit_buffers(context, needs_output, needs_delta, error);
}

static float *output_of(void *context, int i)
{
    network *net = ((struct darknet_amp *)context)->net;
    return *amp_host_output_of(&net->layers[i], amp_host_on_gpu(net));
}

static float *delta_of(void *context, int i)
{
    network *net = ((struct darknet_amp *)context)->net;
    return *amp_host_delta_of(&net->layers[i], amp_host_on_gpu(net));
}

/* ---- Darknet's own layers ---- */

/* Sets the number of sequences (batch) and time steps for one pass through a recurrent layer and its parts;
 * Darknet's set_batch_network sets only the layer's batch, to the number of images. If a pass has the number
 * of images that the network was made for, it runs the .cfg's time steps. Any other pass is a prediction:
 * each image is a sequence of one step. */
static amp_status fit_sequences(const struct darknet_amp *amp, int i, layer *l, amp_error *error)
{
    amp_own_part parts[AMP_OWN_MOST_PARTS];
    int count = amp_host_parts(l, parts), batch = amp->net->batch, made_steps = amp->net->time_steps;
    if (!count) return AMP_OK;
    l->steps = batch == amp->batch ? made_steps : 1;
    l->batch = batch / l->steps;
    if (l->batch > amp->batch / made_steps)
        return amp_fail(error, AMP_BAD_NETWORK, "layer %d [%s] was made for %d sequences of %d time steps, "
                        "but got %d images; set batch=%d and time_steps=1 in the .cfg", i,
                        amp_host_type_name(l->type), amp->batch / made_steps, made_steps, batch, batch);
    for (int k = 0; k < count; k++) parts[k].part->batch = l->batch;
    return AMP_OK;
}

static void run(struct darknet_amp *amp, int i, int is_forward, float *input, float *input_delta,
                int training)
{
    const int *far;
    int count = amp_own_far_inputs(&amp->net->layers[i], &far) + 1, on_gpu = amp_host_on_gpu(amp->net);
    int indices[count];
    float *outputs[count], *deltas[count];
    amp_joined room = { indices, outputs, deltas };
    layer l = amp_own_joined(amp->net, i, &room);
    amp_error error;
    amp_host_check(fit_sequences(amp, i, &l, &error), &error); /* the engine's callbacks return no status */
    amp_pass pass = amp_own_pass(amp->net, i, input, input_delta, amp->memory->workspace, training);
    amp_host_products_begin(amp, i);
    if (is_forward) ON_SIDE(on_gpu, amp_gap_forward(l, pass), amp_gap_forward_gpu(l, pass));
    else ON_SIDE(on_gpu, amp_gap_backward(l, pass), amp_gap_backward_gpu(l, pass));
    amp_host_products_end();
}

static void run_forward(void *context, int i, float *input, int training)
{
    struct darknet_amp *amp = context;
    run(amp, i, 1, input, NULL, training);
    if (training) amp_host_note_loss(amp, i, input);
}

static void run_backward(void *context, int i, float *input, float *input_delta, int training)
{
    run(context, i, 0, input, input_delta, training);
}

static const float *labels_of(void *context, int i)
{
    return amp_host_labels(((struct darknet_amp *)context)->net, i);
}

static void found(void *context, int i, const amp_yolo_result *result, const double *image_costs)
{
    struct darknet_amp *amp = context;
    amp_own_print_yolo(amp->net, i, result);
    for (int b = 0; amp->image_losses.pass && b < amp->net->batch; b++)
        amp->image_losses.pass[b] += image_costs[b];
}

static float loss_of(void *context, int i) { return *((struct darknet_amp *)context)->net->layers[i].cost; }

static void random_uniform(void *context, float *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) numbers[i] = rand_uniform(0, 1);
}

amp_host amp_fork_callbacks(struct darknet_amp *amp)
{
    return (amp_host){ .context = amp, .describe = describe_for_engine, .prepare_buffers = prepare_buffers,
                       .output = output_of, .delta = delta_of, .forward = run_forward,
                       .backward = run_backward, .labels = labels_of, .found = found, .loss = loss_of,
                       .random_uniform = random_uniform };
}
