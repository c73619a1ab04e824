/* The functions of fork.h that have no file of their own: facts about a network, and calls of Darknet. */
#include "../fork.h"

#include "network.h"
#include "parser.h"
#include "room.h"
#include "utils.h"

struct darknet_amp *amp_fork_state(const struct network *net) { return net->amp; }

/* batch_number: as in Darknet's get_current_batch, but without dividing by 0 if a step has no images. */
amp_view amp_fork_view(const struct network *net)
{
    size_t images_of_step = (size_t)net->batch * (size_t)net->subdivisions;
    int changes = AMP_OWN_RANDOM(net) || net->layers[net->n - 1].random;
    int largest_w = net->w, largest_h = net->h;
    if (changes) amp_own_largest_size(net, &largest_w, &largest_h);
    return (amp_view){ .layers = net->n, .batch = net->batch, .subdivisions = net->subdivisions, .w = net->w,
                       .h = net->h, .c = net->c, .inputs = net->inputs, .truths = net->truths,
                       .outputs = net->outputs, .training = net->train, .adam = net->adam != 0,
                       .size_step = changes ? amp_own_size_step(net) : 0, .largest_w = largest_w,
                       .largest_h = largest_h,
                       .on_gpu = amp_host_on_gpu(net), .time_steps = net->time_steps,
                       .draws_rate = net->policy == RANDOM,
                       .max_batches = net->max_batches, .burn_in = net->burn_in,
                       .batch_number = images_of_step ? (long)(*net->seen / images_of_step) : 0,
                       .momentum = net->momentum, .decay = net->decay, .beta1 = net->B1, .beta2 = net->B2,
                       .eps = net->eps, .images = net->input, .labels = net->truth };
}

/* For a dropout, AMP draws one number per element. For a crop, Darknet draws the numbers: on the CPU from the
 * same generator, on a GPU from cuRAND (not counted). */
size_t amp_fork_random_numbers(const struct network *net)
{
    size_t count = 0;
    for (int i = 0; i < net->n; i++) {
        const layer *l = &net->layers[i];
        if (l->type == DROPOUT) count += (size_t)l->outputs * (size_t)net->batch;
        if (l->type == CROP && !amp_host_on_gpu(net)) count += 2 + (l->flip != 0);
    }
    return count;
}

/* ---- a pass ---- */

float *amp_fork_image(const struct network *net)
{
#ifdef GPU
    const amp_host_pinned *pinned = &net->amp->memory->pinned;
    if (net->gpu_index >= 0) return pinned->in_second ? pinned->second : AMP_OWN_ON_GPU(net->input_gpu);
#endif
    return net->input;
}

float *amp_fork_image_delta(const struct network *net) { return AMP_OWN_IMAGE_DELTA(net); }

amp_status amp_fork_begin_forward(struct darknet_amp *amp, struct network *net, amp_error *error)
{
    return ON_SIDE(amp_host_on_gpu(net), AMP_OK, amp_own_push(net, amp->engine->backend, error));
}

amp_status amp_fork_end_forward(struct darknet_amp *amp, struct network *net, amp_error *error)
{
    const amp_plan *plan = amp->engine->active;
#ifdef GPU
    amp_backend *b = amp->engine->backend;
    for (int i = 0; i < net->n && net->gpu_index >= 0; i++) {
        const layer *l = &net->layers[i];
        size_t bytes = (size_t)l->outputs * (size_t)net->batch * sizeof(float);
        if (plan->host_reads[i] && !amp_own_pulls_output(l))
            AMP_TRY(b->download(b, l->output, l->output_gpu, bytes, error));
    }
#endif
    amp_own_end_forward(net, plan->output_layer);
    return AMP_OK;
}

/* ---- Darknet's own functions ---- */

float amp_fork_rate(const struct network *net) { return get_current_rate(AMP_NET(net)); }
void amp_fork_save_weights(struct network *net, const char *file)
{
    save_weights(AMP_NET(net), (char *)file);
}
void amp_fork_load_weights(struct network *net, const char *file) { load_weights(net, (char *)file); }
void amp_fork_resize(struct network *net, int w, int h) { resize_network(net, w, h); }

int amp_fork_samples_bytes(void)
{
#ifdef OPENCV
    return 0;
#else
    return 1;
#endif
}

/* ---- names of files ---- */

_Static_assert(AMP_FORK_PATH == DARKNET_PATH, "what the patches give Darknet's commands");

char *amp_fork_base_name(const char *cfg) { return basecfg((char *)cfg); }
