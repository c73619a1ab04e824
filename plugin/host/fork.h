/* The interface to a Darknet: everything that the plugin needs from the fork it is compiled into. The folder
 * darknet/ implements it for all forks, and calls the fork's own folder through darknet/own.h. All other
 * folders see a network only through this header.
 *
 * A section's title names the files of darknet/ that define its functions; own.c of the fork's folder defines
 * the rest.
 *
 * Some forks pass the network by value, so no pointer to a network may be kept after a hook returns. AMP's
 * own state of a network is struct darknet_amp (network/state.h). */
#pragma once

#include <stddef.h>

#include "../amp/sidecar.h"
#include "../amp/cfg_check.h"
#include "../amp/config.h"
#include "../amp/engine.h"
#include "../image/reduce.h"

struct network;
struct darknet_amp;
struct amp_comm;

extern const cfg_fork amp_cfg_fork; /* the .cfg sections and keys; in cfg_keys.c of the fork's folder */

/* ---- a network as numbers: fork.c ---- */

typedef struct amp_view {
    int layers;
    int batch,                       /* images per pass; with recurrent layers, images times time steps */
        subdivisions;                /* passes per step */
    int w, h, c;                     /* current size of the network's input */
    int inputs, truths;              /* floats per image, and floats of labels per image */
    int outputs;                     /* floats per image in the output of the final layer */
    int training;                    /* 1: the current pass is a training pass */
    int adam;
    int size_step;                   /* with random=1, input sizes are multiples of this; otherwise 0 */
    int largest_w, largest_h;        /* the largest w and h with random=1; otherwise w and h */
    int on_gpu;
    int time_steps;                  /* time steps of a recurrent network; otherwise 0 */
    int draws_rate;                  /* 1: amp_fork_rate calls rand() and returns a random rate */
    long max_batches, batch_number;  /* steps until training ends (0: never), and steps so far */
    long burn_in;                    /* steps during which the learning rate rises from 0 */
    float momentum, decay, beta1, beta2, eps;
    float *images, *labels;          /* arrays in CPU memory; labels is NULL if the network has no labels */
} amp_view;

amp_view amp_fork_view(const struct network *);

/* Returns the number of pixels of the largest input, divided by that of the current input. */
static inline double amp_largest_area(const amp_view *v)
{
    return v->w > 0 && v->h > 0 ? (double)v->largest_w * v->largest_h / ((double)v->w * v->h) : 1;
}

static inline int amp_time_steps(const amp_view *v) { return v->time_steps > 0 ? v->time_steps : 1; }

/* Whether all steps of the network's training are done. */
static inline int amp_fork_is_over(const struct network *net)
{
    amp_view view = amp_fork_view(net);
    return view.max_batches > 0 && view.batch_number >= view.max_batches;
}

/* AMP's state for the network; NULL if it runs without AMP. */
struct darknet_amp *amp_fork_state(const struct network *);

/* The learning rate of the current step. */
float amp_fork_rate(const struct network *);

/* A training's counters. seen: images in all steps so far. t: updates of Adam's moments so far. */
typedef struct amp_counters { size_t seen; int t; } amp_counters;

amp_counters amp_fork_counters(const struct network *);
void amp_fork_set_counters(struct network *, amp_counters);

/* The number of random numbers that one training pass draws from the main thread's generator. */
size_t amp_fork_random_numbers(const struct network *);

/* ---- what the engine needs: describe.c, callbacks.c, fork.c, buffers.c, and layers.c of the fork ---- */

/* Called once, after Darknet has made all layers. Creates amp->memory and records Darknet's buffers in it.
 * The fork frees amp->memory before it calls amp_host_free. */
amp_status amp_fork_take_over(struct darknet_amp *amp, struct network *net, amp_error *);

/* Describes the layers for the engine. The caller frees *out with amp_network_desc_free. */
void amp_fork_describe(struct network *, const amp_config *, amp_network_desc *out);

/* The engine's callbacks; context is the struct darknet_amp of the current hook. */
amp_host amp_fork_callbacks(struct darknet_amp *);

/* Starts copying the images and labels to the buffers that the engine reads. The engine's forward waits until
 * they are copied. */
amp_status amp_fork_begin_forward(struct darknet_amp *, struct network *, amp_error *);
/* image: where the engine reads the input. image_delta: the array to which the engine adds the input's
 * gradient; NULL if that gradient is not needed. */
float *amp_fork_image(const struct network *);
float *amp_fork_image_delta(const struct network *);
/* Call after the engine's forward. On a GPU, downloads those outputs that Darknet's own functions read. Then
 * lets Darknet sum up the network's loss. */
amp_status amp_fork_end_forward(struct darknet_amp *, struct network *, amp_error *);

/* Fills `averages` with Darknet's running averages of the weights (ema_alpha), at most three arrays per
 * layer, and returns their number. only_begun=1: returns 0 until Darknet has computed the first averages. */
int amp_fork_averages(const struct network *, int only_begun, amp_average *averages);
/* The number of layers, from the first, that are frozen at this step but will be trained later
 * (stopbackward=N). Backward does not reach them, so this number is part of the plan's key. */
int amp_fork_frozen(const struct network *);
/* One flag per layer: 1 if this step's update must not change the layer. The array is valid until the next
 * call. NULL: all layers are updated. */
const char *amp_fork_held(struct network *);

/* Call after a skipped step. Clears the workspace of Darknet's own layers: their gemm multiplies the
 * workspace's old contents by 0 instead of overwriting them, and NaN times 0 is NaN. */
void amp_fork_forget_overflow(struct darknet_amp *);

/* Makes the network's GPU the current GPU of the calling thread. Call it before any call of the network's
 * engine or of Darknet. Does nothing without a GPU. */
void amp_fork_use_device(const struct network *);

/* Whether the loaders of `detector train` (classifier=1: of `classifier train`) produce images with this
 * number of channels. */
int amp_fork_loads_channels(int channels, int classifier);

/* The list of images that `detector train` uses if the .data file names none. */
extern const char amp_fork_train_list[];

/* `classifier train` saves its final weights as NAME, followed by this text and ".weights". */
extern const char amp_fork_classifier_end[];

/* The file of class names that `detector train` reads if the .data file has no `names`. The program ends
 * unless the file has one line per class. Empty string: `detector train` reads no class names. */
extern const char amp_fork_names[];

/* Whether Darknet itself has the command `detector map`, and the option -map for networks without AMP. */
int amp_fork_knows_map(void);
/* The option that keeps Darknet's commands from opening windows. NULL: this Darknet has no option for it. */
extern const char *const amp_fork_dont_show;

/* For a network without AMP whose latest forward gave inf or NaN. If the cause is a known fault in Darknet's
 * code for a layer, returns a text that names the layer and the reason. `text` is memory for this text. NULL:
 * no layer with a known fault was found. */
const char *amp_fork_fault(const struct network *, char text[256]);
/* Whether `detector train` saves NAME.backup and then a snapshot NAME_STEP.weights at this step. A training
 * that was killed between the two and resumes from NAME.backup would never save the snapshot. */
int amp_fork_snapshot_follows_backup(long step);

/* The options of Darknet's own main, `detector` and `classifier`; the last entry has no name. */
typedef struct amp_fork_option {
    const char *name;
    int has_value;               /* 1: a value follows the option */
    int of_detector, of_classifier;
} amp_fork_option;
extern const amp_fork_option amp_fork_options[];
/* The option that logs a training's steps: -log, unless Darknet has its own option of that name. */
extern const char amp_fork_log_option[];

/* ---- memory and machine: backend_choice.c, device.c, footprint.c ---- */

/* The default dtype, for a network whose [amp] section does not set one. */
amp_dtype amp_fork_default_dtype(void);

/* amp_fork_backend creates a backend for the device on which Darknet makes networks now (-i, -nogpu); NULL:
 * AMP cannot train there. amp_fork_device returns the number of the GPU on which Darknet makes networks now;
 * -1: it makes them on the CPU. */
amp_backend *amp_fork_backend(amp_error *);
int amp_fork_device(void);

/* Checks whether this program can compute on this GPU. If it cannot, Darknet's first CUDA call would fail an
 * assertion. Returns AMP_OK in a Darknet without GPU=1. */
amp_status amp_fork_find_gpu(int number, amp_error *);

/* For ranks on GPUs. amp_fork_take_gpu makes GPU `number` the only GPU that the program can see. Returns 1;
 * 0: this GPU does not exist; -1: it is too late, because CUDA has already started. amp_fork_sum_on_gpu
 * replaces *comm by a communicator that sums arrays in this backend's memory. Without GPU=1 both functions
 * succeed and do nothing. */
int amp_fork_take_gpu(int number);
amp_status amp_fork_sum_on_gpu(amp_backend *, struct amp_comm **comm, amp_error *);

/* Free bytes of the GPU on which Darknet makes networks; *all: its total bytes. 0: no GPU is used. */
size_t amp_fork_free_gpu_memory(size_t *all);
/* MB (2^20 bytes) that all programs use on the network's GPU; negative: the network does not run on a GPU. */
double amp_fork_gpu_memory_in_use_mb(const struct network *);

/* The parts of a training's memory that only the fork knows; network/needs.h adds the others. batch: images
 * per forward pass; with time_steps, images times time steps. */

/* Bytes of Darknet's fp32 buffers that this layer keeps in a training with this plan: all, if Darknet's own
 * code computes the layer; otherwise only the outputs and deltas that Darknet's own layers read and write. */
size_t amp_fork_buffer_bytes(const struct network *, int layer, int batch, const amp_plan *);
/* Bytes of the workspace that Darknet's own layers share: the most that one of these layers needs. stock=1 (a
 * training without AMP): the size of the largest im2col matrix. */
size_t amp_fork_workspace(const struct network *, int stock);

/* The bytes of a chart's image. During a detector's training, Darknet keeps one chart of the whole training
 * and one chart per class. 0: the charts of this fork are not counted. */
extern const size_t amp_fork_chart_bytes;

/* ---- files: fork.c, learned_sizes.c, data.c, evaluate.c ---- */

/* Darknet's own functions: load and save weights, and change the network's input size. */
void amp_fork_load_weights(struct network *, const char *file);
void amp_fork_save_weights(struct network *, const char *file);
void amp_fork_resize(struct network *, int w, int h);

/* The number of bytes that Darknet reads from a .weights file for this layer. */
size_t amp_fork_weights_bytes(const struct network *, int layer);
/* Returns the first layer whose .cfg keys (dontload, dontsave, ...) keep it from loading exactly what it
 * saved in a .weights file; -1: there is no such layer. */
int amp_fork_one_sided_layer(const struct network *);
/* Returns the first layer with a negative rolling variance (the weights then belong to another network), and
 * sets *value to it. -1: no layer has a negative variance, or the arrays are on a GPU. */
int amp_fork_negative_variance(const struct network *, float *value);

/* The size in bytes of the buffer in which Darknet's commands build the path of a file that they save. */
enum { AMP_FORK_PATH = 4096 };

/* Whether Darknet also removes a carriage return at the end of a list's line, and not only the newline. */
int amp_fork_drops_returns(void);

/* Sets path to the label file that Darknet reads for this image. This path is at most strlen("images") bytes
 * longer than the image's path. */
void amp_fork_label_path(const char *image, char *path);
/* Texts for messages about a missing label file. place: where Darknet looks for label files. images: which
 * image names Darknet can turn into the name of a label file. */
extern const char amp_fork_label_place[], amp_fork_label_images[];
/* Returns the smallest width of a box, as a fraction of the image's width, if the network's input is `pixels`
 * wide. Training ignores narrower boxes. For heights, pass the input's height. */
float amp_fork_least_box(int pixels);
/* 1: a detector's image is kept as bytes, and only the pixels that are sampled become floats. 0: the whole
 * image is converted to floats. */
int amp_fork_samples_bytes(void);
/* Reads an image's width and height from the first bytes of its file. If only OpenCV can read the file,
 * decodes the whole file. Returns 0 if it is not an image. */
int amp_fork_image_size(const char *image, int size[2]);
/* The size to which the loaders of `detector train` (classifier=1: of `classifier train`) scale photos for
 * this network. */
amp_photo_use amp_fork_photo_use(const struct network *, int classifier);
/* The base name of the files that Darknet's commands save for a training of this .cfg; the caller owns it. */
char *amp_fork_base_name(const char *cfg);
