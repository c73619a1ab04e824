/* More of the interface to a Darknet: what the commands (plugin/commands) need beside fork.h, implemented in
 * the same folders. A network is an opaque pointer here too, and a layer its number. */
#pragma once

#include "fork.h"

/* For the user: whose Darknet this is, and which commit the patches are for. */
extern const char amp_fork_name[];

/* From here on networks are made on the GPU of this number. 0: there is none. */
int amp_fork_choose_gpu(int number);

/* ---- making a network ---- */

/* Darknet's parser ends the program with status 0, by an assertion or by a crash where it cannot make a
 * network; this ends it with one line that names `name` (the file as the user knows it) and status 1. draws:
 * the weights are drawn as always; else the network is only looked at, and made in a tenth of the time:
 * weights are 0, and a GPU's engines are not timed. While no other thread runs. */
struct network *amp_fork_make_network(const char *cfg, const char *name, int draws);
/* The networks that are made after this draw what they draw after any other call with this seed. (rand_normal
 * makes two numbers at a time, and keeps the second for whoever asks next: srand alone is not enough.) */
void amp_fork_seed(unsigned seed);
/* With all that Darknet's free_network forgets. NULL is fine. */
void amp_fork_free_network(struct network *);

/* ---- measuring a network on images ---- */

/* Classes of a detector, whose last section gives boxes: [yolo], [region] or [detection]. Below 0: it is
 * none. */
int amp_fork_box_classes(const struct network *);
/* The first layer that carries a state from batch to batch; below 0: none. */
int amp_fork_recurrent_layer(const struct network *);
/* Images of a pass: no more than it was made for. */
void amp_fork_set_batch(struct network *, int images);

typedef enum amp_image_fit {
    AMP_FIT_LETTERBOX,
    AMP_FIT_STRETCH,
    AMP_FIT_CENTER_CROP  /* as `classifier valid` */
} amp_image_fit;

/* As `detector test` does with this network. */
amp_image_fit amp_fork_detector_fit(const struct network *);

/* An image file as `channels` planes of w x h floats, 0..1, which are the caller's; in any thread. size: its
 * width and height in the file. NULL: it is no image, or there is no memory; *why says so until the thread
 * reads another. */
float *amp_fork_read_image(const char *path, int w, int h, int channels, amp_image_fit, int size[2],
                           const char **why);

/* A box of a class, by its middle, relative to the image. */
typedef struct amp_found_box { int class_id; float score, x, y, w, h; } amp_found_box;
typedef amp_status amp_box_sink(void *context, const amp_found_box *, amp_error *);

/* What a network with a batch of 1 finds in an image of amp_fork_read_image; path names it. detect: `detector
 * test`'s boxes, those above .005, after non-maximum suppression at .45. classify: the k best classes, as
 * top_k sorts them. AMP_DIVERGED: its outputs are not finite. */
amp_status amp_fork_detect(struct network *, float *image, const int size[2], const char *path,
                           amp_box_sink *, void *context, amp_error *);
amp_status amp_fork_classify(struct network *, float *image, const char *path, int k, int *best, amp_error *);

/* ---- training on batches ---- */

/* Batches as `detector train` and `classifier train` load them: the same images, augmented in the same way,
 * in the same order where -seed is the same. */
typedef struct amp_batches amp_batches;

/* Reads the .data file and starts to load; net has the size that is trained at, and may get the classes'
 * tree. AMP_BAD_CONFIG: a file that is missing or empty, or classes that are not the network's.
 * AMP_UNSUPPORTED: neither detector nor classifier. */
amp_status amp_batches_open(const char *data_file, struct network *net, amp_batches **out, amp_error *);
/* Takes the next step's images and labels, batch x subdivisions of them. Those after them are being loaded
 * when this returns, unless these are the last. */
amp_status amp_batches_next(amp_batches *, int last, amp_error *);
/* Puts the pass's images and labels where amp_fork_view has them. */
void amp_batches_put(amp_batches *, struct network *net, int pass);
void amp_batches_close(amp_batches *); /* NULL is fine */

/* ---- measuring speed ---- */

/* Fills the network's input with random images, uniform in [0,1), and its labels with what its loss can read:
 * 1 to 10 boxes an image for yolo and region, none for detection and iseg, else one class. The same seed
 * gives the same batch. All rolling variances become 1: those of a network that has not learnt are 0, which
 * makes outputs of 10^6 and then inf. */
void amp_fork_fill_random_batch(struct network *net, unsigned seed);

/* The parts of a training step on the batch that lies in its input; begin counts its images. Each waits until
 * the network's device has done it. */
void amp_fork_begin_pass(struct network *);
void amp_fork_forward(struct network *);
void amp_fork_backward(struct network *);
void amp_fork_update(struct network *);
/* The loss of the last forward. */
float amp_fork_cost(const struct network *);
/* A prediction of that batch, as network_predict makes it; it waits too. Labels are not read. */
void amp_fork_predict(struct network *);

/* Calls watcher before (begins) and after forward and backward of each layer of a network without AMP, when
 * its device has done what was before. One network at a time in a program. fills_gaps: where Darknet's own
 * CPU code of a layer is empty, crashes or loses deltas (gaps.h of the fork), what AMP runs instead runs here
 * too; on a GPU nothing is changed. */
typedef void amp_layer_watcher(void *context, int layer, int begins);
void amp_fork_watch_layers(struct network *, amp_layer_watcher *watcher, void *context, int fills_gaps);
void amp_fork_unwatch_layers(struct network *);
/* Of a network without AMP: a layer's output and delta, `count` numbers, fp32 NCHW, where it runs; one that
 * it does not have is NULL. */
typedef struct amp_layer_arrays { float *output, *delta; size_t count; } amp_layer_arrays;
amp_layer_arrays amp_fork_layer_arrays(struct network *, int layer);
/* What is known to be wrong in Darknet's own code of a layer: rows of a table, which the guide lists too. On
 * the CPU, where fills_gaps has AMP's form run instead, the effects are those that remain. */
enum {
    AMP_WRONG_OUTPUT = 1,
    AMP_WRONG_STATISTICS = 2,
    AMP_WRONG_WEIGHTS = 4,     /* the gradient of its weights and scales, */
    AMP_WRONG_BIASES = 8,      /* of its biases, */
    AMP_WRONG_DELTA = 16,      /* and the delta that it gives to the layers it reads */
    AMP_WRONG_BACKWARD = 4 | 8 | 16,
    AMP_WRONG_ALL = 31,
    AMP_LOSES_DELTA = 32,      /* of the layer before it: what later layers gave to that is lost */
    AMP_CANNOT_RUN = 64,       /* it crashes, or writes outside its arrays */
    AMP_UNDEFINED = 128        /* AMP's results have no meaning either */
};
typedef struct amp_stock_fault { int effects; const char *what; } amp_stock_fault;
/* NULL: there is no row of this number. */
const amp_stock_fault *amp_fork_stock_fault(int row);
/* Whether the layer has the fault where it runs. */
int amp_fork_has_stock_fault(const struct network *, int layer, int row);

/* ---- what a network takes of memory and of arithmetic; AMP's memory is in fork.h ----
 *
 * Stock's buffers as its make_*_layer functions take them. Nothing runs, and nothing is taken for it. batch
 * counts what one forward takes: with time_steps, images times those. */

/* Stock's buffers of layer i that grow with the batch: outputs, deltas, and what its backward reads again. */
size_t amp_fork_stock_bytes(const struct network *net, int i, int batch);
/* What stock's layers share, at most: im2col's matrix. */
size_t amp_fork_stock_workspace(const struct network *net);
/* A layer as a piece of work: its section's name; of a forward, the floating-point operations of its matrix
 * products (a multiplication and an addition are two); all operations, and the fp32 bytes that it must read
 * and write (0 for recurrent layers, which have layers inside); whether it is a product whose channels, in or
 * out, are no multiple of 8. */
typedef struct amp_layer_work {
    const char *type;
    double products, operations, bytes;
    int misaligned;
} amp_layer_work;
amp_layer_work amp_fork_layer_work(const struct network *net, int i);
/* How large a batch may be before Darknet's own numbers of elements, which are ints, overflow. */
int amp_fork_largest_batch(const struct network *net);
