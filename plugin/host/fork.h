/* The interface to a Darknet: everything the plugin needs from the fork it is compiled into. darknet/ beside
 * this header implements it for all forks, and calls the fork's own folder through darknet/own.h. All other
 * folders see a network only through this header: as an opaque pointer that is valid during one hook, and as
 * plain numbers.
 *
 * A fork may pass its network by value, so no pointer to it may be kept after a hook returns. What AMP keeps
 * for a network is in its struct darknet_amp (network/state.h). */
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

extern const cfg_fork amp_cfg_fork; /* its sections and keys: FORK/cfg_keys.c */

/* ---- a network as numbers ---- */

typedef struct amp_view {
    int layers;
    int batch,                       /* images per pass; with recurrent layers, images times time steps */
        subdivisions;                /* passes per step */
    int w, h, c;                     /* current size of the network's input */
    int inputs, truths;              /* floats per image, and floats of labels per image */
    int outputs;                     /* floats that the last layer outputs per image */
    int training;                    /* whether the current pass is a training pass */
    int adam;
    int size_step;                   /* random=1: the loop resizes to multiples of this; else 0 */
    int largest_w, largest_h;        /* the largest w and h that random=1 chooses; without it, w and h */
    int on_gpu;
    int time_steps;                  /* of a recurrent network; else 0 */
    int draws_rate;                  /* whether each call of amp_fork_rate draws the rate from rand() */
    long max_batches, batch_number;  /* steps until training ends (0: never), and steps so far */
    long burn_in;                    /* steps during which the learning rate rises from 0 */
    float momentum, decay, beta1, beta2, eps;
    float *images, *labels;          /* in CPU memory; labels is NULL if there are none */
} amp_view;

amp_view amp_fork_view(const struct network *);

/* The largest input's number of pixels, divided by the current one's. */
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

/* A training's counters. seen: images of the steps taken so far. t: updates of Adam's moments so far. */
typedef struct amp_counters { size_t seen; int t; } amp_counters;

amp_counters amp_fork_counters(const struct network *);
void amp_fork_set_counters(struct network *, amp_counters);

/* How many numbers one training pass draws from the main thread's generator. */
size_t amp_fork_random_numbers(const struct network *);

/* ---- what the engine needs ---- */

/* Called once, after all layers were made. Creates amp->memory and records Darknet's buffers in it. The fork
 * frees amp->memory before it calls amp_host_free. */
amp_status amp_fork_take_over(struct darknet_amp *amp, struct network *net, amp_error *);

/* Describes the layers for the engine. The caller frees *out with amp_network_desc_free. */
void amp_fork_describe(struct network *, const amp_config *, amp_network_desc *out);

/* The engine's callbacks; context is the struct darknet_amp of the current hook. */
amp_host amp_fork_callbacks(struct darknet_amp *);

/* Starts to copy images and labels to where the engine reads them. The engine waits for these copies before
 * its forward returns. */
amp_status amp_fork_begin_forward(struct darknet_amp *, struct network *, amp_error *);
/* image: where the engine reads the input. image_delta: the array to which the engine adds the input's
 * gradient; NULL if that gradient is not needed. */
float *amp_fork_image(const struct network *);
float *amp_fork_image_delta(const struct network *);
/* Call after the engine's forward: puts the outputs that the plan provides where Darknet's functions read
 * them, and lets Darknet sum up the network's cost. */
amp_status amp_fork_end_forward(struct darknet_amp *, struct network *, amp_error *);

/* Fills `averages` with the running averages of weights that Darknet keeps (ema_alpha), at most three per
 * layer, and returns their number. With only_begun, returns 0 until Darknet has computed the first
 * average. */
int amp_fork_averages(const struct network *, int only_begun, amp_average *averages);
/* The number of layers, counted from the first, that do not learn at this step but will later
 * (stopbackward=N). Backward does not reach these layers, so this number is part of the plan's key. */
int amp_fork_frozen(const struct network *);
/* A flag per layer: 1 if this step's update must not change the layer. The array is valid until the next
 * call. NULL: all layers are updated. */
const char *amp_fork_held(struct network *);

/* Call after a skipped step: clears the workspace of Darknet's own layers. Their gemm multiplies the old
 * contents of the workspace by 0 instead of overwriting them, and NaN times 0 is NaN. */
void amp_fork_forget_overflow(struct darknet_amp *);

/* Makes the network's GPU the calling thread's current one. Must precede any call to its engine or to
 * Darknet; does nothing without a GPU. */
void amp_fork_use_device(const struct network *);

/* Whether the loaders of `detector train`, or of `classifier train`, produce images with this many
 * channels. */
int amp_fork_loads_channels(int channels, int classifier);

/* The list of images that `detector train` uses if the .data file names none. */
extern const char amp_fork_train_list[];

/* The file of class names that `detector train` reads if the .data file has no `names`. `detector train` ends
 * the program unless that file has one line per class. Empty string: it reads no names. */
extern const char amp_fork_names[];

/* Whether Darknet itself has `detector map`, and -map for a network without AMP. */
int amp_fork_knows_map(void);
/* The option that keeps Darknet's commands from opening windows; NULL: this Darknet has no option for it. */
extern const char *const amp_fork_dont_show;

/* For a network without AMP whose last forward gave inf or NaN. If one of its layers is known to turn finite
 * numbers into inf or NaN in Darknet's own code, returns part of a message that names this layer and the
 * reason; it may be stored in `text`. NULL: no such layer is known. */
const char *amp_fork_fault(const struct network *, char text[256]);
/* Whether `detector train`, at this step, first saves NAME.backup and then a snapshot NAME_STEP.weights. If
 * it is killed between the two, a training that resumes from NAME.backup would never save the snapshot. */
int amp_fork_snapshot_follows_backup(long step);

/* The options of Darknet's own main, `detector` and `classifier`; the last entry has no name. */
typedef struct amp_fork_option {
    const char *name;
    int has_value;               /* followed by a value */
    int of_detector, of_classifier;
} amp_fork_option;
extern const amp_fork_option amp_fork_options[];
/* The option for the log of a training's steps: -log, unless Darknet has an option of that name. */
extern const char amp_fork_log_option[];

/* ---- memory and machine ---- */

/* The dtype of a network whose [amp] section does not give one. */
amp_dtype amp_fork_default_dtype(void);

/* backend: creates the backend for the device on which Darknet currently makes networks (-i, -nogpu). If AMP
 * cannot train there, returns NULL, and *error says why. device: the number of that GPU; -1: the CPU. */
amp_backend *amp_fork_backend(amp_error *);
int amp_fork_device(void);

/* Whether this program can compute on this GPU; otherwise Darknet's first CUDA call would fail an assertion.
 * AMP_OK in a Darknet without GPU=1. */
amp_status amp_fork_find_gpu(int number, amp_error *);

/* For ranks on GPUs. take_gpu: of the GPUs visible to the program, leaves only the one with this number
 * visible. Call it before any CUDA function. Returns 0 if there is no such GPU. sum_on_gpu: replaces *comm by
 * a communicator that sums arrays in this backend's memory. In a Darknet without GPU=1 both succeed and do
 * nothing. */
int amp_fork_take_gpu(int number);
amp_status amp_fork_sum_on_gpu(amp_backend *, struct amp_comm **comm, amp_error *);

/* Returns the free bytes of the GPU on which networks are made; *all: its total bytes. 0: there is no GPU. */
size_t amp_fork_free_gpu_memory(size_t *all);
/* Memory in use on the network's GPU by all programs, in MB of 2^20 bytes. Below 0: the network does not run
 * on a GPU. */
double amp_fork_gpu_memory_in_use_mb(const struct network *);

/* The parts of a training's memory that only the fork knows; network/needs.h adds them to the others. `batch`
 * is the number of images in one forward pass; with time_steps, images times time steps. */

/* Bytes of a layer's fp32 Darknet buffers that a training with this plan keeps. Layers that Darknet's own
 * code computes keep all of them. Layers that AMP computes keep the outputs and deltas that Darknet's own
 * layers read and write. */
size_t amp_fork_buffer_bytes(const struct network *, int layer, int batch, const amp_plan *);
/* Bytes of the workspace that Darknet's own layers share: the largest that one of them needs. With `stock`
 * (a training without AMP): the size of im2col's largest matrix. */
size_t amp_fork_workspace(const struct network *, int stock);

/* Bytes of the picture that Darknet keeps, during a detector's training, for its chart and for each class's
 * own chart; 0: none worth counting. */
extern const size_t amp_fork_chart_bytes;

/* ---- files ---- */

/* Darknet's own functions: load and save weights, and change the network's input size. */
void amp_fork_load_weights(struct network *, const char *file);
void amp_fork_save_weights(struct network *, const char *file);
void amp_fork_resize(struct network *, int w, int h);

/* Bytes that Darknet reads from a .weights file for this layer. */
size_t amp_fork_weights_bytes(const struct network *, int layer);
/* The first layer that does not read exactly what it writes in a .weights file, because of keys in its
 * section; -1: none. */
int amp_fork_one_sided_layer(const struct network *);
/* Returns the first layer with a negative rolling variance, which shows that the weights are another
 * network's; *value is that variance. -1: no layer has one, or the arrays are on a GPU. */
int amp_fork_negative_variance(const struct network *, float *value);

/* Size of the buffer in which Darknet's commands build the path of a file to save. */
enum { AMP_FORK_PATH = 4096 };

/* Whether Darknet also strips the carriage return from a list's lines. */
int amp_fork_drops_returns(void);

/* The file that Darknet reads an image's labels from; its path is at most strlen("images") bytes longer than
 * the image's. */
void amp_fork_label_path(const char *image, char *path);
/* For messages about a missing label file: where Darknet looks for it, and for which image names. */
extern const char amp_fork_label_place[], amp_fork_label_images[];
/* The least width (or height) of a box, as a share of its image's: training ignores smaller boxes. pixels:
 * the width (or height) of the network. */
float amp_fork_least_box(int pixels);
/* Whether a detector's images stay bytes until they are sampled; otherwise whole images are converted to
 * floats. */
int amp_fork_samples_bytes(void);
/* Finds an image's width and height from the first bytes of its file. If only OpenCV can read the file,
 * decodes all of it. 0: not an image. */
int amp_fork_image_size(const char *image, int size[2]);
/* How large the loaders of `detector train`, or of `classifier train`, make photos for this network. */
amp_photo_use amp_fork_photo_use(const struct network *, int classifier);
/* The base name that Darknet's commands give the files of a training of this .cfg; the caller owns it. The
 * program ends if there is no memory. */
char *amp_fork_base_name(const char *cfg);
