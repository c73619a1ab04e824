/* The door of fork.h, as far as it is not a subject of its own: a network as numbers, and Darknet's own functions. */
#include "../fork.h"

#include <string.h>

#include "device.h"
#include "network.h"
#include "parser.h"
#include "pjreddie.h"
#include "utils.h"

struct darknet_amp *amp_fork_state(const struct network *net) { return net->amp; }

/* batch_number is get_current_batch's, which would divide by 0 for a .cfg without images in a step. */
amp_view amp_fork_view(const struct network *net)
{
    size_t images_of_step = (size_t)net->batch * (size_t)net->subdivisions;
    return (amp_view){ .layers = net->n, .batch = net->batch, .subdivisions = net->subdivisions, .w = net->w, .h = net->h,
                       .c = net->c, .inputs = net->inputs, .truths = net->truths, .outputs = net->outputs,
                       .training = net->train, .adam = net->adam != 0,
                       .changes_size = net->random || net->layers[net->n - 1].random,
                       .on_gpu = amp_host_on_gpu(net), .time_steps = net->time_steps,
                       .max_batches = net->max_batches, .burn_in = net->burn_in,
                       .batch_number = images_of_step ? (long)(*net->seen / images_of_step) : 0, .momentum = net->momentum,
                       .decay = net->decay, .beta1 = net->B1, .beta2 = net->B2, .eps = net->eps, .images = net->input,
                       .labels = net->truth };
}

float amp_fork_rate(const struct network *net) { return get_current_rate((network *)net); }

amp_counters amp_fork_counters(const struct network *net) { return (amp_counters){ .seen = *net->seen, .t = *net->t }; }

void amp_fork_set_counters(struct network *net, amp_counters counters)
{
    *net->seen = counters.seen;
    *net->t = counters.t;
}

/* ---- a pass ---- */

amp_status amp_fork_begin_forward(struct darknet_amp *amp, struct network *net, amp_error *error)
{
    amp_host_pin(&amp->memory->pinned, net);
    return amp_host_push_input(net, amp_engine_backend(amp->engine), error);
}

/* In training net->output is NULL if the last layer is a yolo: it has no buffer, and nobody reads it. */
amp_status amp_fork_end_forward(struct darknet_amp *amp, struct network *net, amp_error *error)
{
    const amp_plan *plan = amp_engine_plan(amp->engine);
    for (int i = 0; i < net->n; i++) {
        size_t count = (size_t)net->layers[i].outputs * (size_t)net->batch;
        if (plan->hands_out[i]) AMP_TRY(amp_host_pull_output(net, i, count, amp_engine_backend(amp->engine), error));
    }
    net->output = net->layers[plan->output_layer].output;
    calc_network_cost(net);
    return AMP_OK;
}

/* ---- Darknet's own functions ---- */

void amp_fork_load_weights(struct network *net, const char *file) { load_weights(net, (char *)file); }
void amp_fork_save_weights(struct network *net, const char *file) { save_weights(net, (char *)file); }
void amp_fork_resize(struct network *net, int w, int h) { resize_network(net, w, h); }

void amp_fork_average_weights(struct network **nets, int count)
{
#ifdef GPU
    sync_nets(nets, count, 0);
#else
    (void)nets, (void)count; /* without a GPU Darknet trains one network */
#endif
}

/* ---- names of files ---- */

_Static_assert(AMP_FORK_PATH == DARKNET_PATH, "what the patches give Darknet's commands");

void amp_fork_label_path(const char *image, char *path)
{
    static char *const replacements[][2] = { /* as fill_truth_detection in data.c */
        { "images", "labels" }, { "JPEGImages", "labels" }, { "raw", "labels" },
        { ".jpg", ".txt" }, { ".png", ".txt" }, { ".JPG", ".txt" }, { ".JPEG", ".txt" } };
    char before[AMP_FORK_PATH];
    strcpy(path, image);
    for (size_t i = 0; i < sizeof replacements / sizeof *replacements; i++) {
        strcpy(before, path);
        find_replace(before, replacements[i][0], replacements[i][1], path);
    }
}

char *amp_fork_base_name(const char *cfg) { return basecfg((char *)cfg); }
