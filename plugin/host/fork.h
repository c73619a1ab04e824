/* The interface to a Darknet: everything the plugin asks of the fork it is compiled into.
 *
 * Several Darknets are alive, and they differ in their structs, their passes and their files. darknet/ beside
 * this header implements these functions for all of them; what differs it asks of the fork's own folder,
 * pjreddie/ or alexeyab/, through darknet/own.h. Only these folders include Darknet's headers, and one build
 * contains one fork. All other rooms, among them host/program, host/data, host/network and host/training, see
 * a network through this header only: as an opaque pointer that is valid for the length of one hook, and as
 * plain numbers.
 *
 * `struct network` and `struct layer` are the fork's own. A fork may pass its network by value, so no
 * pointer to one is kept after the hook that it was given to: what AMP keeps for a network is its struct
 * darknet_amp (network/state.h). */
#pragma once

#include <stddef.h>

#include "../amp/sidecar.h"
#include "../amp/config.h"
#include "../amp/engine.h"
#include "../image/reduce.h"

struct network;
struct darknet_amp;
struct amp_comm;

/* ---- a network as numbers ---- */

typedef struct amp_view {
    int layers;                      /* how many */
    int batch, subdivisions;         /* images (with recurrent layers: times time steps) of one pass; passes
                                        of a step */
    int w, h, c;                     /* the size of its input, as it is now */
    int inputs, truths;              /* floats of one image and of its labels */
    int outputs;                     /* floats that the last layer gives for one image */
    int training;                    /* whether the pass under way is a training pass */
    int adam;
    int size_step;                   /* random=1: the loop resizes it to multiples of this; else 0 */
    int largest_w, largest_h;        /* the largest size it is given; without random=1 w and h */
    int on_gpu;
    int time_steps;                  /* of a recurrent network; else 0 */
    long max_batches, batch_number;  /* steps until training ends (0: never), and steps so far */
    long burn_in;                    /* steps during which the learning rate rises from 0 */
    float momentum, decay, beta1, beta2, eps;
    float *images, *labels;          /* in the program's memory; labels is NULL where there are none */
} amp_view;

amp_view amp_fork_view(const struct network *);

/* The number of pixels of the largest input, as a multiple of the present one's. */
static inline double amp_largest_area(const amp_view *v)
{
    return v->w > 0 && v->h > 0 ? (double)v->largest_w * v->largest_h / ((double)v->w * v->h) : 1;
}

/* Whether its training has made all its steps. */
static inline int amp_fork_is_over(const struct network *net)
{
    amp_view view = amp_fork_view(net);
    return view.max_batches > 0 && view.batch_number >= view.max_batches;
}

/* What AMP keeps for the network; NULL where it runs without AMP. */
struct darknet_amp *amp_fork_state(const struct network *);

/* The learning rate of the step under way; and whether Darknet draws it from rand() at each call. */
float amp_fork_rate(const struct network *);
int amp_fork_draws_rate(const struct network *);

/* What a training has counted: images of steps that were taken, and updates of Adam's moments. */
typedef struct amp_counters { size_t seen; int t; } amp_counters;

amp_counters amp_fork_counters(const struct network *);
void amp_fork_set_counters(struct network *, amp_counters);

/* How many numbers one training pass draws from the main thread's generator. */
size_t amp_fork_random_numbers(const struct network *);

/* ---- what the engine needs ---- */

/* Called once, when all layers are made: makes amp->memory and notes Darknet's buffers. The fork frees
 * what this has made, before it calls amp_host_free. */
amp_status amp_fork_take_over(struct darknet_amp *amp, struct network *net, amp_error *);

/* Describes the layers as the engine wants them. *out is freed with amp_network_desc_free. */
amp_status amp_fork_describe(struct network *, const amp_config *, amp_network_desc *out, amp_error *);

/* The engine's callbacks; context is the struct darknet_amp whose hook runs. */
amp_host amp_fork_callbacks(struct darknet_amp *);

/* Brings images and labels to where the engine reads them. Does not wait: the engine does, before
 * its forward returns. */
amp_status amp_fork_begin_forward(struct darknet_amp *, struct network *, amp_error *);
/* The input as the engine reads it; and the array that its gradient is added to, NULL if nobody reads
 * that. */
float *amp_fork_image(const struct network *);
float *amp_fork_image_delta(const struct network *);
/* After the engine's forward: puts the outputs that the plan promises where Darknet's functions read
 * them, and has Darknet sum up the network's cost. */
amp_status amp_fork_end_forward(struct darknet_amp *, struct network *, amp_error *);

/* Fills `averages` with the averages of weights that Darknet keeps (ema_alpha), at most three for each layer,
 * and returns how many. only_begun: returns 0 before the first average is made. */
int amp_fork_averages(const struct network *, int only_begun, amp_average *averages);
/* How many layers, counted from the network's first, do not learn at this step but will at a later one
 * (stopbackward=N). Backward ends after the last of them, so this is a part of the plan's key. */
int amp_fork_frozen(const struct network *);
/* A flag for each layer: whether this step's update must leave it unchanged. Valid until the next call. NULL:
 * no layer is left unchanged. */
const char *amp_fork_held(struct network *);

/* Called after a skipped step: clears the workspace of Darknet's own layers. Their gemm multiplies its old
 * contents by 0 instead of overwriting them, and NaN times 0 is NaN. */
void amp_fork_forget_overflow(struct darknet_amp *);

/* Makes the network's GPU the calling thread's current one. Called before any call to its engine or to
 * Darknet; does nothing without a GPU. */
void amp_fork_use_device(const struct network *);

/* Whether the loaders of `detector train`, or of `classifier train`, make images with this many channels. */
int amp_fork_loads_channels(int channels, int classifier);

/* The list of images that `detector train` takes where the .data file names none. */
extern const char amp_fork_train_list[];

/* The file of class names of a .data file without `names`, where `detector train` ends unless that file has
 * one line for each class; empty: it reads no names. */
extern const char amp_fork_names[];

/* Whether Darknet itself has `detector map`, and -map of a network without AMP. */
int amp_fork_knows_map(void);
/* The option by which Darknet's commands open no windows; NULL: it has none. */
extern const char *const amp_fork_dont_show;

/* Of a network without AMP whose last forward gave inf or NaN: which layer of Darknet's own code makes that
 * of good numbers, and why: part of a message, which may be in text. NULL: none is known to. */
const char *amp_fork_fault(const struct network *, char text[256]);
/* Whether `detector train` saves a snapshot NAME_STEP.weights at this step, after NAME.backup: killed between
 * the two, a training that goes on from NAME.backup would never save it. */
int amp_fork_snapshot_follows_backup(long step);

/* The options that Darknet's own main, `detector` and `classifier` know; the last has no name. */
typedef struct amp_fork_option {
    const char *name;
    int has_value;               /* it takes the word after it */
    int of_detector, of_classifier;
} amp_fork_option;
extern const amp_fork_option amp_fork_options[];
/* The option that names the log of a training's steps: -log, where Darknet has none of that name. */
extern const char amp_fork_log_option[];

/* ---- memory and machine ---- */

/* The dtype of a network whose [amp] section does not name one. */
amp_dtype amp_fork_default_dtype(void);

/* The backend for networks on the device that Darknet makes them on now (-i, -nogpu), or NULL and *error: why
 * AMP cannot train there. device: that GPU's number, -1 for the CPU. */
amp_backend *amp_fork_backend(amp_error *);
int amp_fork_device(void);

/* Whether this program can compute on the GPU of this number, which Darknet's first call of CUDA would find
 * out by an assertion. AMP_OK in a Darknet without GPU=1. */
amp_status amp_fork_find_gpu(int number, amp_error *);

/* For ranks on GPUs. take_gpu: called before anything of CUDA; of the GPUs that the program may see, only the
 * one of this number remains visible. Returns 0 if there is none of that number. sum_on_gpu: replaces *comm
 * by a communicator that sums arrays in this backend's memory. In a Darknet without GPU=1 both do nothing,
 * and succeed. */
int amp_fork_take_gpu(int number);
amp_status amp_fork_sum_on_gpu(amp_backend *, struct amp_comm **comm, amp_error *);

/* Bytes free on the GPU that networks are made on, and how many it has. 0: there is no GPU. */
size_t amp_fork_free_gpu_memory(size_t *all);
/* MB of 2^20 bytes that are in use on the network's GPU, by whatever program; below 0: it runs on no GPU. */
double amp_fork_gpu_memory_in_use_mb(const struct network *);

/* The parts of a training's memory that only the fork knows; network/needs.h adds them to all others. `batch`
 * is the number of images in one forward pass; with time_steps, images times time steps. */

/* The plan of a training step at net's present shape, built if there is none yet. It belongs to net's engine,
 * and is valid until the engine adds another plan. */
amp_status amp_fork_training_plan(struct network *net, const amp_plan **out, amp_error *);
/* An outline (amp_engine_outline) of a training step. */
amp_status amp_fork_outline(struct network *net, int batch, amp_dtype dtype, const amp_recompute_settings *,
                            amp_plan **out, amp_error *);

/* Bytes that a training pass of `batch` images takes besides weights and what has their size. */
typedef struct amp_footprint {
    size_t arena;   /* planned: activations and deltas, sharing memory where their lives allow */
    size_t buffers; /* Darknet's fp32 buffers that stay: the sum of amp_fork_buffer_bytes */
    size_t input;   /* images and labels */
    double again;   /* activation checkpointing: what backward repeats, as a share of a forward's
                       arithmetic */
} amp_footprint;

static inline size_t amp_footprint_sum(const amp_footprint *f) { return f->arena + f->buffers + f->input; }

/* The footprint of a pass as net's engine would plan it in dtype. */
amp_status amp_fork_footprint(struct network *net, int batch, amp_dtype dtype, amp_footprint *out,
                              amp_error *);
/* Bytes of RAM that loading takes: images and labels of the batch that is trained on and of the next one,
 * each of `images` images. 0 on a GPU, where this RAM is not the memory that is asked about. */
size_t amp_fork_loaded_bytes(const struct network *, int images);
/* Bytes of Darknet's fp32 buffers of layer i that a training by this plan keeps: those of Darknet's own
 * layers, and the outputs and deltas that such layers read and write. */
size_t amp_fork_buffer_bytes(const struct network *, int layer, int batch, const amp_plan *);
/* Bytes of the workspace that Darknet's own layers share: the most that one of them asks for. */
size_t amp_fork_own_workspace(const struct network *);

/* ---- files ---- */

/* Darknet's own functions: read the weights again, write them, give the network another input size. */
void amp_fork_load_weights(struct network *, const char *file);
void amp_fork_save_weights(struct network *, const char *file);
void amp_fork_resize(struct network *, int w, int h);

/* Bytes of a .weights file that Darknet reads for this layer. */
size_t amp_fork_weights_bytes(const struct network *, int layer);
/* The first layer that does not read from a .weights file just what it writes to one, for which the .cfg has
 * keys; -1: none. */
int amp_fork_one_sided_layer(const struct network *);
/* The first layer with a rolling variance below 0, which only another network's numbers give, and that value;
 * -1: none, or the arrays lie on a GPU. */
int amp_fork_negative_variance(const struct network *, float *value);

/* Bytes that Darknet's commands have room for in the path of a file that they save. */
enum { AMP_FORK_PATH = 4096 };

/* Whether Darknet takes the carriage return off the end of a list's line, too. */
int amp_fork_drops_returns(void);

/* The file that Darknet takes for the labels of an image, at most as many bytes longer as
 * there are in "images". */
void amp_fork_label_path(const char *image, char *path);
/* Texts for messages about a missing label file: where Darknet looks for it, and for which image names. */
extern const char amp_fork_label_place[], amp_fork_label_images[];
/* Training leaves a box out that is narrower, or lower, than this part of its image; pixels: the width, or
 * height, of the network. */
float amp_fork_least_box(int pixels);
/* Whether a detector's images stay bytes until they are sampled; else they are made floats as a whole. */
int amp_fork_samples_bytes(void);
/* Finds an image's width and height by the first bytes of its file, or where only OpenCV reads it, by all of
 * them. 0: it is no image. */
int amp_fork_image_size(const char *image, int size[2]);
/* How large the loaders of `detector train`, or of `classifier train`, make photos for this network. */
amp_photo_use amp_fork_photo_use(const struct network *, int classifier);
/* What Darknet's commands name the files of a training of this .cfg after: the caller's; the program ends
 * where there is no memory. */
char *amp_fork_base_name(const char *cfg);
