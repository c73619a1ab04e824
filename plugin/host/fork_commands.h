/* The rest of the interface to a Darknet: what only the commands (plugin/commands) need in addition to
 * fork.h, implemented in the same folders. Here too a network is an opaque pointer, and a layer is its
 * number. */
#pragma once

#include "fork.h"

/* For messages: whose Darknet this is, and the commit that the patches are for. */
extern const char amp_fork_name[];

/* From now on networks are made on the GPU with this number. 0: there is no such GPU. */
int amp_fork_choose_gpu(int number);

/* ---- making a network ---- */

/* Makes a network. On an error Darknet's parser ends the program with status 0, by an assertion or by a
 * crash. This function then ends it with status 1 and one line about `name`, the file as the user knows it.
 * draws: whether to draw random weights as usual. Without it the network is made ten times faster, but only
 * for inspection: its weights are 0, and a GPU's algorithms are not timed. Do not call it while another
 * thread runs. */
struct network *amp_fork_make_network(const char *cfg, const char *name, int draws);
/* Networks made after two calls with the same seed get the same random numbers. (srand alone is not enough:
 * rand_normal makes two numbers at a time, and keeps the second for the next call.) */
void amp_fork_seed(unsigned seed);
/* Also frees what Darknet's free_network forgets. NULL is fine. */
void amp_fork_free_network(struct network *);

/* ---- measuring a network on images ---- */

/* The classes of a detector, whose last section outputs boxes: [yolo], [region] or [detection]. Below 0: not
 * a detector. */
int amp_fork_box_classes(const struct network *);
/* The first layer that carries a state from batch to batch; below 0: none. */
int amp_fork_recurrent_layer(const struct network *);
/* Images per pass: at most as many as the network was made for. */
void amp_fork_set_batch(struct network *, int images);

typedef enum amp_image_fit {
    AMP_FIT_LETTERBOX,
    AMP_FIT_STRETCH,
    AMP_FIT_CENTER_CROP  /* as `classifier valid` */
} amp_image_fit;

/* How `detector test` fits images into this network's input. */
amp_image_fit amp_fork_detector_fit(const struct network *);

/* Reads an image file as `channels` planes of w x h floats, 0..1, which the caller owns; any thread may call
 * it. size, which amp_fork_detect needs, becomes the width and height in the file, or w and h if the boxes do
 * not depend on those. Returns NULL if the file is not an image or there is no memory; *why then says which,
 * and is valid until the thread reads another image. */
float *amp_fork_read_image(const char *path, int w, int h, int channels, amp_image_fit, int size[2],
                           const char **why);

/* A box of a class: its center and size, relative to the image. */
typedef struct amp_found_box { int class_id; float score, x, y, w, h; } amp_found_box;
typedef amp_status amp_box_sink(void *context, const amp_found_box *, amp_error *);

/* What a network with a batch of 1 finds in an image from amp_fork_read_image. path: the image's file, for
 * messages. detect: the boxes of `detector test` whose score is above .005, after non-maximum suppression at
 * an IoU of .45. classify: the k best classes, in top_k's order. AMP_DIVERGED: the network's outputs are not
 * finite. */
amp_status amp_fork_detect(struct network *, float *image, const int size[2], const char *path,
                           amp_box_sink *, void *context, amp_error *);
amp_status amp_fork_classify(struct network *, float *image, const char *path, int k, int *best, amp_error *);

/* ---- training on batches ---- */

/* Batches as `detector train` and `classifier train` load them: the same images with the same augmentation,
 * in the same order if -seed is the same. */
typedef struct amp_batches amp_batches;

/* Reads the .data file and starts loading images of net's size. Sets net->hierarchy if the file has `tree`.
 * AMP_BAD_CONFIG: a file is missing or empty, or the classes do not match the network. AMP_UNSUPPORTED:
 * neither detector nor classifier. */
amp_status amp_batches_open(const char *data_file, struct network *net, amp_batches **out, amp_error *);
/* Waits for the next step's images and labels, batch x subdivisions of them. Unless `last` is set, it then
 * starts to load the following step's. */
amp_status amp_batches_next(amp_batches *, int last, amp_error *);
/* Copies the images and labels of this pass to where amp_fork_view finds them; runs no part of the step. */
void amp_batches_put(amp_batches *, struct network *net, int pass);
void amp_batches_close(amp_batches *); /* NULL is fine */

/* ---- measuring speed ---- */

/* Fills the network's input with random images, uniform in [0,1), and its labels with values that its loss
 * can read: 1 to 10 boxes per image for yolo and region, none for detection and iseg, else one class. The
 * same seed gives the same batch. Sets all rolling variances to 1: in an untrained network they are 0, which
 * makes outputs of 10^6 and then inf. */
void amp_fork_fill_random_batch(struct network *net, unsigned seed);

/* The parts of a training step on the batch in the network's input. begin_pass adds the batch's images to
 * those seen. Each function waits until the network's device is done. */
void amp_fork_begin_pass(struct network *);
void amp_fork_forward(struct network *);
void amp_fork_backward(struct network *);
void amp_fork_update(struct network *);
/* The loss of the last forward. */
float amp_fork_cost(const struct network *);
/* Predicts the batch in the network's input as network_predict does, and waits for the device. Does not read
 * labels. */
void amp_fork_predict(struct network *);

/* For a network without AMP: calls watcher before (begins = 1) and after (begins = 0) each layer's forward
 * and backward, each time after the network's device has finished all earlier work. A program may watch one
 * network at a time. fills_gaps: if Darknet's own CPU code of a layer is empty, crashes or loses deltas
 * (gaps.h of the fork), runs AMP's replacement instead; it changes nothing on a GPU. */
typedef void amp_layer_watcher(void *context, int layer, int begins);
void amp_fork_watch_layers(struct network *, amp_layer_watcher *watcher, void *context, int fills_gaps);
void amp_fork_unwatch_layers(struct network *);
/* For a network without AMP: a layer's output and delta, `count` numbers each, fp32 NCHW, on the device where
 * it runs; NULL if the layer does not have it. */
typedef struct amp_layer_arrays { float *output, *delta; size_t count; } amp_layer_arrays;
amp_layer_arrays amp_fork_layer_arrays(struct network *, int layer);
/* Known faults in Darknet's own code of layers: the rows of a table, which docs/guide.md lists too. On the
 * CPU these are the effects that remain when fills_gaps runs AMP's replacements. */
enum {
    AMP_WRONG_OUTPUT = 1,
    AMP_WRONG_STATISTICS = 2,
    AMP_WRONG_WEIGHTS = 4,     /* the gradient of its weights and scales */
    AMP_WRONG_BIASES = 8,      /* the gradient of its biases */
    AMP_WRONG_DELTA = 16,      /* the delta that it passes to the layers it reads */
    AMP_WRONG_BACKWARD = 4 | 8 | 16,
    AMP_WRONG_ALL = 31,
    AMP_LOSES_DELTA = 32,      /* what later layers added to the delta of the layer before it is lost */
    AMP_CANNOT_RUN = 64,       /* it crashes, or writes outside its arrays */
    AMP_UNDEFINED = 128        /* AMP's results are meaningless too */
};
typedef struct amp_stock_fault { int effects; const char *what; } amp_stock_fault;
/* NULL: the table has no more rows. */
const amp_stock_fault *amp_fork_stock_fault(int row);
/* Whether the layer has the fault on the device where it runs. */
int amp_fork_has_stock_fault(const struct network *, int layer, int row);

/* ---- a network's memory and arithmetic; AMP's memory is in fork.h ----
 *
 * Stock's buffers as its make_*_layer functions allocate them. Nothing runs, and nothing is allocated. batch:
 * images in one forward; with time_steps, images times time steps. */

/* Stock's buffers of layer i that grow with the batch: outputs, deltas, and what its backward reads again. */
size_t amp_fork_stock_bytes(const struct network *net, int i, int batch);
/* The work of a layer's forward. operations and bytes are 0 for recurrent layers, which have layers
 * inside. */
typedef struct amp_layer_work {
    const char *type;   /* its section's name */
    double products,    /* floating-point operations of its matrix products; a multiply-add counts as two */
           operations,  /* all its floating-point operations */
           bytes;       /* the least fp32 bytes that it must read and write */
    int misaligned;     /* whether it is a product whose input or output channels are no multiple of 8 */
} amp_layer_work;
amp_layer_work amp_fork_layer_work(const struct network *net, int i);
/* The largest batch for which Darknet's own element counts, which are ints, do not overflow. */
int amp_fork_largest_batch(const struct network *net);
