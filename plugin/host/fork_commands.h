/* The rest of the interface to a Darknet (fork.h): what only the commands (plugin/commands) need. */
#pragma once

#include "fork.h"

/* For messages: the name of this Darknet's author, and the commit that the patches are made for. */
extern const char amp_fork_name[];

/* Sets the GPU on which networks are made from now on. Returns 0 if there is no GPU with this number. */
int amp_fork_choose_gpu(int number);

/* ---- making a network ---- */

/* Makes a network. An error in the .cfg ends the program with status 1 and one line. (Darknet's parser alone
 * would end the program with status 0, by an assertion or by a crash.) name: the file's name as the user
 * knows it, for this line. draws=0 is ten times faster, but the network can only be inspected: its weights
 * are 0, and the GPU's algorithms are not timed. Do not call it while another thread runs. */
struct network *amp_fork_make_network(const char *cfg, const char *name, int draws);
/* Sets the seed for networks that are made next. (srand alone is not enough: rand_normal makes two numbers at
 * a time and keeps the second for its next call.) */
void amp_fork_seed(unsigned seed);
/* Frees a network, including what Darknet's free_network forgets. NULL is fine. */
void amp_fork_free_network(struct network *);

/* ---- measuring a network on images ---- */

/* The number of classes of a detector, that is, a network whose final section is [yolo], [Gaussian_yolo],
 * [region] or [detection]. Negative: not a detector. */
int amp_fork_box_classes(const struct network *);
/* The first layer that keeps a recurrent state between batches; negative: no layer does. */
int amp_fork_recurrent_layer(const struct network *);
/* Sets the number of images per pass. It must not exceed the batch that the network was made for. */
void amp_fork_set_batch(struct network *, int images);

typedef enum amp_image_fit {
    AMP_FIT_LETTERBOX,
    AMP_FIT_STRETCH,
    AMP_FIT_CENTER_CROP  /* the crop that `classifier valid` uses */
} amp_image_fit;

/* The way in which `detector test` fits images into this network's input. */
amp_image_fit amp_fork_detector_fit(const struct network *);

/* Reads an image file as `channels` planes of w x h floats, from 0 to 1, which the caller owns. Any thread
 * may call it. Sets size, for amp_fork_detect, to the image's own width and height. (With AMP_FIT_STRETCH the
 * caller may set size to w and h instead, because boxes then do not depend on size.) NULL: the file is not an
 * image, or there is no memory; *why gives the reason, valid until the thread reads another image. */
float *amp_fork_read_image(const char *path, int w, int h, int channels, amp_image_fit, int size[2],
                           const char **why);

/* A detected box: its class and score, and its center and size relative to the image. */
typedef struct amp_found_box { int class_id; float score, x, y, w, h; } amp_found_box;
typedef amp_status amp_box_sink(void *context, const amp_found_box *, amp_error *);

/* Run a network with a batch of 1 on an image from amp_fork_read_image. path: for messages. detect finds
 * boxes as `detector test` does, with NMS at an IoU of .45, and passes each box with a score above .005 to
 * the sink. classify returns the k best classes, in the order of top_k. AMP_DIVERGED: the outputs are not
 * finite. */
amp_status amp_fork_detect(struct network *, float *image, const int size[2], const char *path,
                           amp_box_sink *, void *context, amp_error *);
amp_status amp_fork_classify(struct network *, float *image, const char *path, int k, int *best, amp_error *);

/* ---- training on batches ---- */

/* Batches as `detector train` and `classifier train` load them: the same images with the same augmentation,
 * in the same order if -seed is the same. */
typedef struct amp_batches amp_batches;

/* Reads the .data file and starts loading images of net's size. Sets net->hierarchy if the file has `tree`.
 * AMP_BAD_CONFIG: a file is missing or empty, or the classes do not match the network. AMP_UNSUPPORTED: the
 * network is neither a detector nor a classifier. */
amp_status amp_batches_open(const char *data_file, struct network *net, amp_batches **out, amp_error *);
/* Waits until the images and labels of the next step are loaded (batch x subdivisions images). Then starts to
 * load those of the following step, unless `last` is set. */
amp_status amp_batches_next(amp_batches *, int last, amp_error *);
/* Copies the images and labels of pass number `pass` to the network's input (see amp_fork_view). */
void amp_batches_put(amp_batches *, struct network *net, int pass);
void amp_batches_close(amp_batches *); /* NULL is fine */

/* ---- measuring speed ---- */

/* Fills the network's input with random images, uniform in [0,1), and its labels with valid values: 1 to 10
 * boxes per image for yolo and region, no labels for detection and iseg, one class per image for other
 * networks. The same seed gives the same batch. In each yolo layer, the anchor that fits a box best is better
 * than the others by more than rounding errors; an image has fewer boxes if no box of this kind is found.
 * Also sets all rolling variances to 1. In an untrained network they are 0, and normalizing by a variance of
 * 0 would make the outputs grow to 10^6 and then inf. */
void amp_fork_fill_random_batch(struct network *net, unsigned seed);

/* The parts of a training step, on the batch in the network's input. Each function waits until the network's
 * device has finished. begin_pass adds the batch's images to `seen`. */
void amp_fork_begin_pass(struct network *);
void amp_fork_forward(struct network *);
void amp_fork_backward(struct network *);
void amp_fork_update(struct network *);
/* The loss of the latest forward. */
float amp_fork_cost(const struct network *);
/* network_predict on the batch in the network's input; waits for the device. Does not read labels. */
void amp_fork_predict(struct network *);

/* For a network without AMP. Calls watcher before (begins = 1) and after (begins = 0) each layer's forward
 * and backward. Before each of these calls, waits until the network's device has finished all earlier work.
 * Only one network of a program can be watched at a time. fills_gaps=1: runs AMP's replacement for a layer
 * whose own CPU code in Darknet is empty, crashes or loses deltas (gaps.h of the fork). On a GPU,
 * fills_gaps=1 only keeps Darknet's code from clipping or smoothing deltas, which AMP does not do. */
typedef void amp_layer_watcher(void *context, int layer, int begins);
void amp_fork_watch_layers(struct network *, amp_layer_watcher *watcher, void *context, int fills_gaps);
void amp_fork_unwatch_layers(struct network *);
/* For a network without AMP. Returns a layer's output and delta: `count` numbers each, fp32 NCHW, on the
 * device where the layer runs. NULL: the layer does not have this array. */
typedef struct amp_layer_arrays { float *output, *delta; size_t count; } amp_layer_arrays;
amp_layer_arrays amp_fork_layer_arrays(struct network *, int layer);
/* The effects of a known fault in Darknet's own layers, as flags; on the CPU, only the effects that remain
 * with fills_gaps=1 (amp_fork_watch_layers). docs/guide.md lists the faults. */
enum {
    AMP_WRONG_OUTPUT = 1,
    AMP_WRONG_STATISTICS = 2,
    AMP_WRONG_WEIGHTS = 4,     /* the gradient of the layer's weights and scales */
    AMP_WRONG_BIASES = 8,      /* the gradient of the layer's biases */
    AMP_WRONG_DELTA = 16,      /* the delta that the layer adds to its input layers */
    AMP_WRONG_BACKWARD = 4 | 8 | 16,
    AMP_WRONG_ALL = 31,
    AMP_LOSES_DELTA = 32,      /* overwrites the delta of the layer before it instead of adding to it */
    AMP_CANNOT_RUN = 64,       /* the layer crashes, or writes outside its arrays */
    AMP_UNDEFINED = 128,       /* AMP's results are meaningless too */
    AMP_WRONG_NEAR_DELTA = 256 /* the delta that the layer adds to the layer before it; the parts that it adds
                                  to other layers are right */
};
typedef struct amp_stock_fault { int effects; const char *what; } amp_stock_fault;
/* Returns a row of the table of faults; NULL: there are no more rows. */
const amp_stock_fault *amp_fork_stock_fault(int row);
/* Whether the layer has this row's fault on the device where it runs. */
int amp_fork_has_stock_fault(const struct network *, int layer, int row);

/* ---- a network's memory and arithmetic; AMP's memory is in fork.h ----
 *
 * Computed from the layers' sizes; nothing runs or is allocated. Stock Darknet's buffers are those that its
 * make_*_layer functions allocate. batch: images per forward pass; with time_steps, images times time
 * steps. */

/* Returns the bytes of layer i's buffers in stock Darknet. Counts only buffers that grow with the batch:
 * outputs, deltas, and what forward keeps for backward. */
size_t amp_fork_stock_bytes(const struct network *net, int i, int batch);
/* The work of a layer's forward pass. operations and bytes are 0 for recurrent layers, which consist of other
 * layers. */
typedef struct amp_layer_work {
    const char *type;   /* the name of the layer's .cfg section */
    double products,    /* floating-point operations of its matrix products; a multiply-add counts as two */
           operations,  /* all its floating-point operations */
           bytes;       /* bytes that it must at least read and write, in fp32 */
    int misaligned;     /* 1: a convolutional, deconvolutional or connected layer whose number of input or
                           output channels (per group) is not a multiple of 8 */
} amp_layer_work;
amp_layer_work amp_fork_layer_work(const struct network *net, int i);
/* The largest batch with which Darknet's element counts, which are ints, do not overflow. */
int amp_fork_largest_batch(const struct network *net);
