/* A backend: the operations that layers compute with, as a struct of function pointers, so that the core
 * names no library and no device. backend/cpu uses oneDNN, backend/cuda uses cuDNN and cuBLAS.
 *
 * Rules for every operation:
 *  - Activations x, y and deltas dx, dy are NHWC tensors of one dtype (fp32, fp16 or bf16); parameters,
 *    statistics and their gradients are fp32 arrays. Arithmetic inside is at least fp32; each result is
 *    rounded once when stored. (In 16-bit results, mish and swish may have an additional error of up to 1/50
 *    ulp of fp16.)
 *  - "delta" means what it means in Darknet: minus the gradient of the loss.
 *  - accumulate = 0 overwrites the output, whose old bytes may be garbage or NaN; 1 adds to it. Operations
 *    always add to parameter gradients (dw, db, dscale, dbias).
 *  - dx may be dy itself where an operation says "in place"; otherwise arguments do not overlap.
 *  - The caller owns tensors, and owns and destroys objects made by *_create.
 *  - An operation that fails returns an error status and writes one line to *error. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "../tensor/status.h"
#include "../tensor/tensor.h"

/* For functions that all backends share, including CUDA's kernels. */
#ifdef __CUDACC__
#define AMP_ANYWHERE static __host__ __device__ __forceinline__
#else
#define AMP_ANYWHERE static inline
#endif

typedef struct amp_backend amp_backend;
typedef struct amp_conv amp_conv; /* one convolution at one shape, with its copies of the weights */
typedef struct amp_recorded_pass amp_recorded_pass; /* see pass_begin */

/* Darknet's activations, named as in the .cfg; those of its forks come last. Formulas: activate.h. */
typedef enum amp_activation {
    AMP_LOGISTIC, AMP_RELU, AMP_RELIE, AMP_LINEAR, AMP_RAMP, AMP_TANH, AMP_PLSE, AMP_LEAKY, AMP_ELU,
    AMP_LOGGY, AMP_STAIR, AMP_HARDTAN, AMP_LHTAN, AMP_SELU, AMP_RELU6, AMP_MISH, AMP_SWISH,
    AMP_HARD_MISH, AMP_ACTIVATIONS
} amp_activation;

/* How well a machine runs a dtype. */
typedef enum amp_support {
    AMP_SUPPORT_NONE,    /* the machine cannot use the dtype; `supports` writes the reason to `note` */
    AMP_SUPPORT_STORAGE, /* tensors are stored in the dtype, but arithmetic is in fp32: saves only memory */
    AMP_SUPPORT_NATIVE
} amp_support;

/* A convolution y = w * x + bias (a cross-correlation), with zero padding of `pad` pixels on each side. x has
 * the shape (n,h,w,c), w is OIHW (k, c/groups, size_h, size_w), and y has the shape (n, out_h, out_w, k). The
 * elements of a window lie `dilation` pixels apart, so the window spans dilation·(size - 1) + 1 pixels, and
 * out = (in + 2·pad - span)/stride + 1. A connected layer is a convolution whose window covers its whole
 * input: size_h = h, size_w = w, pad = 0, stride = 1. */
typedef struct amp_conv_desc {
    amp_shape x;
    int k, size_h, size_w, stride, pad, groups;
    amp_dtype dtype;      /* dtype of x, y, dx and dy */
    int training;         /* 1: conv_backward_weights will be called */
    int wants_dx;         /* 1 (only counts with training): dx will be computed too */
    int transposed;       /* 1: part of a deconvolution; see amp_conv_wants_forward */
    int stride_x;         /* horizontal stride; 0: same as stride */
    int dilation;         /* 0 means 1 */
    int leaky;            /* 1: forward applies AMP_LEAKY; always 0 with training or transposed */
    int direct;           /* 1: do not use Winograd's minimal filtering */
    int masters_stay;     /* 1: the backend may read the masters in place. The caller does not move them
                             before conv_destroy, and when it has changed them, it calls
                             conv_load_weights before the next pass */
} amp_conv_desc;

static inline int amp_conv_stride_x(const amp_conv_desc *d) { return d->stride_x ? d->stride_x : d->stride; }
static inline int amp_conv_dilation(const amp_conv_desc *d) { return d->dilation ? d->dilation : 1; }
static inline int amp_conv_span(const amp_conv_desc *d, int size)
{
    return amp_conv_dilation(d) * (size - 1) + 1;
}

/* Which operations a convolution needs. In a deconvolution (transposed convolution), conv_forward and
 * conv_backward_data exchange roles: conv_backward_data computes the output, and never accumulates;
 * conv_forward computes the delta of the input. */
static inline int amp_conv_wants_forward(const amp_conv_desc *d)
{
    return !d->transposed || (d->training && d->wants_dx);
}
static inline int amp_conv_wants_backward_data(const amp_conv_desc *d)
{
    return d->transposed || (d->training && d->wants_dx);
}

static inline amp_shape amp_conv_output(const amp_conv_desc *d)
{
    return (amp_shape){ d->x.n, d->k, (d->x.h + 2 * d->pad - amp_conv_span(d, d->size_h)) / d->stride + 1,
                        (d->x.w + 2 * d->pad - amp_conv_span(d, d->size_w)) / amp_conv_stride_x(d) + 1 };
}

static inline size_t amp_conv_weight_count(const amp_conv_desc *d)
{
    return (size_t)d->k * (d->x.c / d->groups) * d->size_h * d->size_w;
}

/* The formulas of batch norm, which differ between Darknet's CPU and GPU code and between its forks. v is the
 * variance that a batch is normalized with: Σ(x-mean)²/(N-1) if `unbiased`, else Σ(x-mean)²/N. The rolling
 * variance always averages Σ(x-mean)²/(N-1). */
typedef struct amp_batchnorm_rule {
    int unbiased;
    int epsilon_inside_root;  /* 1: xhat = (x-mean)/sqrt(v + epsilon); 0: (x-mean)/(sqrt(v) + epsilon) */
    float epsilon;
    float backward_epsilon;   /* inv in batchnorm_backward is 1/sqrt(v + backward_epsilon) */
    int direct_outside_root;  /* 1: the first term of batchnorm_backward's dx is g/(sqrt(v) +
                                 backward_epsilon) instead of inv·g */
    float rolling_factor;     /* rolling ← (1 - rolling_factor)·rolling + rolling_factor·batch */
} amp_batchnorm_rule;

/* The ranks whose images batch norm treats as one batch. All these ranks call the same operations, with the
 * same number of images. */
typedef struct amp_batchnorm_ranks {
    int rank, count; /* this rank, counted from 0; number of ranks */
    /* Replaces each value by its sum over all ranks. `values` is in the backend's memory. */
    amp_status (*sum)(void *context, float *values, size_t count, amp_error *);
    void *context;
} amp_batchnorm_ranks;

/* A batch norm followed by an activation. Arrays have one number per channel. */
typedef struct amp_batchnorm {
    amp_batchnorm_rule rule;
    amp_activation activation;
    const float *scale, *bias;
    float *mean, *variance;                 /* batch statistics: written by forward_train, read by backward */
    float *rolling_mean, *rolling_variance; /* updated by forward_train, read by forward_infer */
    float *dscale, *dbias;
    const amp_batchnorm_ranks *ranks;       /* NULL: the batch is x alone */
    const void *add; /* NULL, or data with x's shape and dtype, which forward adds to the rounded y. Only for
                        a backend whose adds_to_batchnorm is 1 */
} amp_batchnorm;

/* Which pixels of a shortcut's two inputs correspond, as in Darknet's shortcut_cpu: x[i·x_step, j·x_step]
 * corresponds to from[i·from_step, j·from_step], for i < h and j < w. One of the steps is 1. */
typedef struct amp_shortcut_grid { int h, w, x_step, from_step; } amp_shortcut_grid;

/* Sets *out and returns 1. Returns 0 if the shapes do not match: one is empty, or the ratio of widths differs
 * from the ratio of heights (both rounded down). */
static inline int amp_shortcut_grid_of(amp_shape x, amp_shape from, amp_shortcut_grid *out)
{
    *out = (amp_shortcut_grid){ x.h, x.w, 1, 1 };
    if (x.h == from.h && x.w == from.w) return 1;
    if (x.h < 1 || x.w < 1 || from.h < 1 || from.w < 1) return 0;
    if (x.h / from.h != x.w / from.w || from.h / x.h != from.w / x.w) return 0;
    if (x.w > from.w) *out = (amp_shortcut_grid){ from.h, from.w, x.w / from.w, 1 };
    else out->from_step = from.w / x.w;
    return 1;
}

/* A convolution and its fp32 master weights (OIHW), from which conv_load_weights makes the copies. */
typedef struct amp_conv_weights {
    amp_conv *conv;
    const float *masters;
} amp_conv_weights;

/* How a convolution runs on this machine; for reports only. */
typedef struct amp_conv_facts {
    amp_dtype computes;     /* dtype of its arithmetic: fp32 if desc.dtype is only a storage format */
    int padded_in, padded_out; /* channels per group in the copies of the weights, padding included */
    size_t weight_bytes;    /* bytes of all copies of the weights, once loaded */
    size_t fp32_weight_bytes; /* bytes of the copies if desc.dtype were fp32 */
    size_t workspace_bytes; /* the most scratch that any pass needs, in bytes */
    char winograd[24];      /* the passes that use Winograd, e.g. "forward+weights"; empty: none */
    char kernel[64];        /* the library's name for the forward kernel; may be empty */
} amp_conv_facts;

/* A factor of a matrix product: a row-major fp32 array whose rows start `ld` elements apart. If transposed is
 * 1, the factor is the array's transpose. If version is 0, the backend keeps no copy of the array. Otherwise
 * the backend may reuse its copy for the same `data` and version, so the caller changes the version when the
 * contents may have changed. */
typedef struct amp_factor { const float *data; int ld, transposed; unsigned long version; } amp_factor;

/* c = alpha·a·b + beta·c, with a (m, k), b (k, n) and c (m, n). c does not overlap a or b. */
typedef struct amp_gemm_desc {
    int m, n, k;
    float alpha, beta;
    amp_factor a, b;
    float *c;
    int ldc;
    amp_dtype dtype; /* a and b are rounded to it before they are multiplied */
} amp_gemm_desc;

/* One trainable fp32 array and what its update uses. Sizes are element counts. */
typedef struct amp_param {
    float *master;     /* fp32 master weights, Darknet's own array */
    float *grad;       /* the gradient, summed over images, times the loss scale, with the sign of a delta */
    float *momentum;   /* SGD: Darknet's weight_updates, already multiplied by the momentum */
    float *m, *v;      /* Adam moments, NULL under SGD */
    size_t count;
    float decay;       /* weight decay: the network's value for weights; with Adam (not AdamW), for all
                          arrays. 0 for other arrays, and while the layer is held (see rate_scale) */
    float layer_rate;  /* the layer's learning_rate multiplier */
    float rate_scale;  /* layer_rate, or 0 while the layer is held (its updates are off) */
    float clip;        /* weights are clamped to ±clip after each update (Darknet's clip=); 0 is off */
    int decays;        /* 1 for weights, 0 for biases and scales: see decay */
    int unsaved;       /* 1: not in the host's weights file */
    int layer;         /* the layer's index in the .cfg, for messages */
    const char *name;  /* "weights", "biases", "scales", "input_layer.weights", ... */
} amp_param;

/* Statistics that the forward pass updates: rolling statistics, or a recurrent layer's state. committed: a
 * copy of their values after the most recent step that was not skipped. */
typedef struct amp_statistics {
    float *array, *committed;
    size_t count;
    int layer;         /* the layer's index in the .cfg, for messages */
    float rolling_factor; /* amp_batchnorm_rule's rolling_factor; 0: a recurrent layer's state */
    int by_host;       /* 1: the host's own code updates them, not batchnorm_forward_train */
    int unsaved;       /* 1: not in the host's weights file */
} amp_statistics;

/* The arguments of one update, as in Darknet's update_args. */
typedef struct amp_update_args {
    float learning_rate, momentum;
    int batch;                 /* images in the whole step: batch × subdivisions */
    double inverse_scale;      /* 1/(loss scale), rounded to float; stored as a double, because the product
                                  with clip_norm/norm could become 0 in a float */
    double clip_norm;          /* maximum norm of the gradient (averaged over the batch); a larger gradient
                                  is scaled down to this norm; 0: off */
    double norm_limit;         /* a step whose gradient has a larger norm is skipped; 0: off */
    int adam, t;               /* t: number of this update, from 1 */
    int adamw;                 /* 1: Adam with decoupled weight decay */
    float beta1, beta2, eps;
} amp_update_args;

/* The arrays that finish_step checks and updates. */
typedef struct amp_step_end {
    const amp_param *params;
    const amp_statistics *statistics;
    int param_count, statistics_count;
    amp_update_args update;
} amp_step_end;

typedef struct amp_step_outcome {
    int taken;            /* 0: the step was skipped, and nothing changed, because a gradient or a statistic
                             is inf or NaN, or because above_limit is 1 */
    int above_limit;      /* 1: all numbers are finite, but the norm is above norm_limit */
    double gradient_norm; /* L2 norm of grad·inverse_scale/batch before clipping, if all numbers are finite */
} amp_step_outcome;

/* Yolo layers (detection heads). Each cell of the input has n boxes. A box is x, y, w, h, objectness and one
 * number per class. */
enum { AMP_YOLO_MAX_ANCHORS = 32 };

/* Which fork's yolo layer to compute. yolo_rules.h has the formulas of both. */
typedef enum amp_yolo_rules { AMP_YOLO_PJREDDIE, AMP_YOLO_ALEXEYAB } amp_yolo_rules;

/* Values of iou_loss and iou_thresh_kind: how a box is compared with a label. MSE compares x, y, w and h
 * separately, as pjreddie's layer does; iou_thresh_kind cannot be MSE. */
typedef enum amp_yolo_kind {
    AMP_YOLO_MSE, AMP_YOLO_IOU, AMP_YOLO_GIOU, AMP_YOLO_DIOU, AMP_YOLO_CIOU
} amp_yolo_kind;

/* The rule for labels of one class. learnt: the class that boxes learn from these labels (map=). multiplier:
 * the factor of the deltas that these labels cause (counters_per_class). */
typedef struct amp_yolo_class_rule { int learnt; float multiplier; } amp_yolo_class_rule;

typedef struct amp_yolo_desc {
    int classes, n;
    int total;                               /* number of anchors, for all heads together */
    int mask[AMP_YOLO_MAX_ANCHORS];          /* the anchor index of each of the n boxes */
    float anchors[2 * AMP_YOLO_MAX_ANCHORS]; /* widths and heights, in pixels of the network's input */
    int net_w, net_h;                        /* size of the network's input */
    float ignore_thresh, truth_thresh;
    int truths;                              /* label floats per image; the labels of an image end at the
                                                first label with x = 0 */
    int label_size;                          /* floats per label: x, y, w, h, class, and possibly more */
    int max_boxes;                           /* the maximum number of labels read per image;
                                                label_size·max_boxes ≤ truths */

    /* AlexeyAB's keys, named as in the .cfg. For pjreddie's layer they have the values of
     * AMP_YOLO_AS_PJREDDIE. */
    amp_yolo_rules rules;
    amp_yolo_kind loss, thresh_kind;         /* iou_loss, iou_thresh_kind */
    float iou_thresh, max_delta;             /* iou_thresh is off at 1, and max_delta at FLT_MAX */
    float scale_x_y, label_smooth_eps;
    float iou_normalizer, obj_normalizer, delta_normalizer;
    float cls_normalizer;                    /* the .cfg's value with counters_per_class; otherwise 1 */
    int new_coords, objectness_smooth, focal_loss;
    int before_logistic;                     /* 1 (only with new_coords): this layer computes the
                                                preceding convolution's logistic; x is the logistic's
                                                input, and dx is that input's delta */
    const amp_yolo_class_rule *class_table;  /* one entry per class, in memory from allocate; NULL: no map=,
                                                and all multipliers are 1 */
} amp_yolo_desc;

#define AMP_YOLO_AS_PJREDDIE \
    .label_size = 5, .iou_thresh = 1, .scale_x_y = 1, .iou_normalizer = 1, .obj_normalizer = 1, \
    .delta_normalizer = 1, .cls_normalizer = 1

/* The result of a yolo layer's loss. All sums, counts included, are in double. */
typedef struct amp_yolo_result {
    double cost;      /* Σ delta², without the loss scale; NaN if any number of x is inf or NaN */
    double box_cost;  /* the part of the cost from x, y, w and h */
    double labels;    /* number of pairs of a label and a box assigned to it (yolo_rules.h); the next six
                         fields are sums over these pairs */
    double iou, object, category, above_50, above_75; /* object: objectness; category: output for the label's
                                                         class; above_50: pairs with an IoU above .5 */
    double giou;
    double any_object; /* sum of the objectness of all boxes */
} amp_yolo_result;

/* The time that an operation took on the device, summed over all calls from layers of one kind. */
typedef struct amp_operation_time {
    char layer[32], operation[32]; /* layer: e.g. "convolutional"; empty for calls between layers.
                                      operation: e.g. "conv_forward" */
    long calls;
    double ms, bytes;   /* bytes: the minimum that the operation must read and write */
    double products;    /* arithmetic operations of its matrix products (a multiply-add counts as two) */
    int half;           /* 1: its tensors have 16 bits */
} amp_operation_time;

typedef struct amp_operation_times {
    amp_operation_time *rows; /* longest first; the caller frees them */
    int count;
    double bytes_per_ms, half_per_ms, fp32_per_ms; /* the device's limits; 0: unknown */
} amp_operation_times;

struct amp_backend {
    const char *name;          /* "cpu" or "cuda" */
    char description[256];     /* library, version, instruction set; shown to the user */
    int adds_to_batchnorm;     /* 1: batch norm's forward can add a tensor (amp_batchnorm.add), and its
                                  backward does not read y if the activation is linear, leaky or relu, or
                                  if amp_gradient_wants_input */

    amp_support (*supports)(const amp_backend *, amp_dtype, char note[256]);
    void (*destroy)(amp_backend *);

    /* Memory for activations, deltas and scratch: 64-byte aligned, undefined contents. 0 bytes: NULL. */
    amp_status (*allocate)(amp_backend *, size_t bytes, void **out, amp_error *);
    void (*release)(amp_backend *, void *memory);

    /* Copies bytes into `memory`, a block from allocate. `from` is either another block from allocate, or CPU
     * memory that the caller may overwrite as soon as this returns. */
    amp_status (*upload)(amp_backend *, void *memory, const void *from, size_t bytes, amp_error *);
    /* Like upload, but does not wait: `from` must not change until the next uploads_done has returned. */
    amp_status (*upload_later)(amp_backend *, void *memory, const void *from, size_t bytes, amp_error *);
    /* Like upload_later, but a device can copy while it computes earlier work (a prefetch). Later work waits
     * for the copy. The copy waits only for work queued before the previous call of upload_ahead, so the
     * caller must alternate between two buffers. */
    amp_status (*upload_ahead)(amp_backend *, void *memory, const void *from, size_t bytes, amp_error *);
    /* Sets *source to a buffer for data that upload_later will copy to `memory`: page-locked memory, reserved
     * until the next uploads_done, or `memory` itself if the CPU can write there. */
    amp_status (*stage)(amp_backend *, void *memory, size_t bytes, void **source, amp_error *);
    /* Waits until the sources (`from`) of all uploads so far have been read. Does not wait for later work. */
    amp_status (*uploads_done)(amp_backend *, amp_error *);
    /* Copies bytes from `memory`, a block from allocate, into CPU memory, after all earlier operations. */
    amp_status (*download)(amp_backend *, void *to, const void *memory, size_t bytes, amp_error *);
    /* Like download, but does not wait. *to: the address of the backend's copy, or `memory` itself if the CPU
     * can read it. The data is complete when the next uploads_done has returned, and stays valid until the
     * next stage or download_later. Until then `memory` must not change. */
    amp_status (*download_later)(amp_backend *, const void *memory, size_t bytes, void **to, amp_error *);
    /* Waits until all operations so far are done. A device's operation may return as soon as it is queued;
     * its errors are then reported here, or by a later operation. */
    amp_status (*synchronize)(amp_backend *, amp_error *);
    amp_status (*zero)(amp_backend *, void *memory, size_t bytes, amp_error *);
    amp_status (*scale)(amp_backend *, float *array, size_t count, float factor, amp_error *);

    /* dst (+)= src. src and dst may differ in dtype and layout, but have the same logical shape. */
    amp_status (*cast)(amp_backend *, const amp_tensor *src, const amp_tensor *dst, int accumulate,
                       amp_error *);

    amp_status (*conv_create)(amp_backend *, const amp_conv_desc *, amp_conv **out, amp_error *);
    void (*conv_destroy)(amp_backend *, amp_conv *);
    /* Makes copies of the weights in the library's best layout and dtype, for `count` convolutions at once.
     * Call it before the first forward and after every change of the masters. After an error, *failed is the
     * index of the convolution that failed, or -1 if the error belongs to none. */
    amp_status (*conv_load_weights)(amp_backend *, const amp_conv_weights *, int count, int *failed,
                                    amp_error *);
    void (*conv_drop_weights)(amp_backend *, amp_conv *); /* frees the copies */
    /* bias may be NULL. */
    amp_status (*conv_forward)(amp_backend *, amp_conv *, const void *x, const float *bias, void *y,
                               amp_error *);
    amp_status (*conv_backward_data)(amp_backend *, amp_conv *, const void *dy, void *dx, int accumulate,
                                     amp_error *);
    amp_status (*conv_backward_weights)(amp_backend *, amp_conv *, const void *x, const void *dy, float *dw,
                                        amp_error *);
    void (*conv_facts)(const amp_backend *, const amp_conv *, amp_conv_facts *out);
    /* y[..., c] += bias[c]. */
    amp_status (*add_bias)(amp_backend *, const amp_tensor *y, const float *bias, amp_error *);
    /* db[c] += sum over n,h,w of dy. */
    amp_status (*bias_gradient)(amp_backend *, const amp_tensor *dy, float *db, amp_error *);

    /* Batch norm with a fused activation. N = n·h·w; the rule (amp_batchnorm_rule) defines variance, xhat and
     * inv.
     *   forward:  mean = Σx/N; y = act(scale·xhat + bias). If N = 1, the batch's
     *             variance is 0, also in the formula for the rolling variance.
     *   backward: with d = dy·act'(y) and g = scale·d: dbias += Σd; dscale += Σ d·xhat;
     *             dx = inv·(g - Σg/N - (x-mean)·inv²·Σ g(x-mean)/N). dx may be dy (in place).
     * In backward, y must be the result of forward (a backend may recompute it from x). If
     * amp_gradient_wants_input, act' is computed at scale·xhat + bias, and y.data is not read. With `ranks`,
     * N and the sums of forward_train and of dx include the images of all ranks; dbias and dscale include
     * only this rank's. */
    amp_status (*batchnorm_forward_train)(amp_backend *, const amp_tensor *x, const amp_tensor *y,
        const amp_batchnorm *, amp_error *);
    amp_status (*batchnorm_forward_infer)(amp_backend *, const amp_tensor *x, const amp_tensor *y,
        const amp_batchnorm *, amp_error *);
    amp_status (*batchnorm_backward)(amp_backend *, const amp_tensor *x, const amp_tensor *y,
                                     const amp_tensor *dy, const amp_tensor *dx, const amp_batchnorm *,
                                     amp_error *);

    /* activation_forward: y = act(x); y may be x. activation_backward: dx (+)= dy·act'(y); dx may be dy if
     * accumulate is 0. If amp_gradient_wants_input, pass x to activation_backward as its y. */
    amp_status (*activation_forward)(amp_backend *, const amp_tensor *x, const amp_tensor *y, amp_activation,
                                     amp_error *);
    amp_status (*activation_backward)(amp_backend *, const amp_tensor *y, const amp_tensor *dy,
                                      const amp_tensor *dx, amp_activation, int accumulate, amp_error *);

    /* Max pooling as in Darknet: window (i,j) starts at (i·stride - pad/2, j·stride - pad/2), and y's shape
     * gives the output size. The first maximum in row order wins. choice (n,h,w,c of y) is the maximum's
     * row·size + column within the window; size ≤ 15. If no element of the window is in the image, or all are
     * NaN, choice is 255 and y is -FLT_MAX, rounded to the dtype. */
    amp_status (*maxpool_forward)(amp_backend *, const amp_tensor *x, const amp_tensor *y, uint8_t *choice,
                                  int size, int stride, int pad, amp_error *);
    amp_status (*maxpool_backward)(amp_backend *, const amp_tensor *dy, const uint8_t *choice,
                                   const amp_tensor *dx, int size, int stride, int pad, int accumulate,
                                   amp_error *);
    /* Global average: x (n,h,w,c) → y (n,1,1,c). */
    amp_status (*avgpool_forward)(amp_backend *, const amp_tensor *x, const amp_tensor *y, amp_error *);
    amp_status (*avgpool_backward)(amp_backend *, const amp_tensor *dy, const amp_tensor *dx, int accumulate,
                                   amp_error *);
    /* Nearest neighbour: y[i,j] = scale·x[i/stride, j/stride]. */
    amp_status (*upsample_forward)(amp_backend *, const amp_tensor *x, const amp_tensor *y, int stride,
                                   float scale, amp_error *);
    amp_status (*upsample_backward)(amp_backend *, const amp_tensor *dy, const amp_tensor *dx, int stride,
                                    float scale, int accumulate, amp_error *);

    /* Copies (or adds) `channels` channels: dst[..., dst_first + k] (+)= alpha · src[..., src_first + k]. src
     * and dst have the same n, h and w. */
    amp_status (*channels)(amp_backend *, const amp_tensor *src, int src_first, const amp_tensor *dst,
                           int dst_first, int channels, float alpha, int accumulate, amp_error *);
    /* Shortcut: y[k] = act(alpha·x[k] + beta·from[k]) for corresponding pixels (amp_shortcut_grid_of), in the
     * channels that both x and from have; elsewhere y[k] = act(x[k]). y has x's shape and may be x. backward:
     * dfrom (+)= beta·dy where pixels correspond, and dfrom (+)= 0 elsewhere. */
    amp_status (*shortcut_forward)(amp_backend *, const amp_tensor *x, const amp_tensor *from,
                                   const amp_tensor *y, float alpha, float beta, amp_activation, amp_error *);
    amp_status (*shortcut_backward)(amp_backend *, const amp_tensor *dy, const amp_tensor *dfrom, float beta,
                                    int accumulate, amp_error *);

    /* multiply: y (+)= x·s, where s has x's shape, or one number per channel of an image (h = w = 1), or one
     * per pixel (c = 1). multiply_sums computes a sum for each number of s: Σ a·b over the elements that this
     * number multiplies in `multiply`. It stores these sums in s, or adds them to s. */
    amp_status (*multiply)(amp_backend *, const amp_tensor *x, const amp_tensor *s, const amp_tensor *y,
                           int accumulate, amp_error *);
    amp_status (*multiply_sums)(amp_backend *, const amp_tensor *a, const amp_tensor *b, const amp_tensor *s,
                                int accumulate, amp_error *);

    /* A fixed rearrangement of each image (reorg): y_image[i] (+)= x_image[map[i]], where i is an
     * index into an image of y, and map[i] into an image of x, both in NHWC order; map[i] = -1 gives 0. */
    amp_status (*gather)(amp_backend *, const amp_tensor *x, const amp_tensor *y, const int32_t *map,
                         int accumulate, amp_error *);

    /* y (+)= keep ? scale·x : 0; keep has one byte per element, in NHWC order. Backward is the same operation
     * from dy to dx. */
    amp_status (*dropout)(amp_backend *, const amp_tensor *x, const amp_tensor *y, const uint8_t *keep,
                          float scale, int accumulate, amp_error *);

    /* Yolo's loss, as in Darknet's forward_yolo_layer (yolo_layer.c), in fp32. Below, p is logistic(x), but
     * for w and h it is x itself. "IoU" is the box's largest IoU with a label of its image. "label" is the
     * label that the box must learn; most boxes have no label. The deltas are:
     *   x, y:        (2 - wh)·(label's position in the cell - p)
     *   w, h:        (2 - wh)·(log(label's size / anchor's) - x)
     *   objectness:  1 - p with a label; 0 with an IoU above ignore_thresh; else 0 - p
     *   classes:     (1 or 0) - p with a label; else 0
     * These are pjreddie's deltas. yolo_rules.h has AlexeyAB's, and the special cases. dx (+)=
     * loss_scale·delta, rounded once; a result outside of the dtype's range becomes inf. x and dx have n·(5 +
     * classes) channels; dx may be NULL. image_costs: each image's part of the cost, or NULL. labels has the
     * shape (batch, truths); NULL: no labels. labels, *result and image_costs are in memory from allocate.
     * *result and image_costs are valid after synchronize or download. */
    amp_status (*yolo_loss)(amp_backend *, const amp_tensor *x, const float *labels, const amp_yolo_desc *,
                            float loss_scale, const amp_tensor *dx, int accumulate, amp_yolo_result *result,
                            double *image_costs, amp_error *);
    /* Computes the yolo layer's output p in place: y contains x on entry, and p on return. y is fp32 NCHW,
     * because Darknet's functions read this layout. */
    amp_status (*yolo_activate)(amp_backend *, const amp_tensor *y, const amp_yolo_desc *, amp_error *);

    /* Sets *found_inf to 1 if any gradient is inf or NaN, else to 0. Sets *sum_squares to
     * Σ (grad·inverse_scale)², in double; with finite gradients this sum cannot overflow. Changes no array.
     * Reads only grad and count of the amp_params. */
    amp_status (*check_gradients)(amp_backend *, const amp_param *, int count, float inverse_scale,
                                  int *found_inf, double *sum_squares, amp_error *);

    /* The end of a step. If all gradients and statistics are finite, and the norm is not above norm_limit,
     * each parameter is updated and each statistic committed; otherwise nothing changes, not even the
     * gradients. A device makes this decision itself: when the call returns, the update may still be queued.
     * If an operation earlier in the queue failed, the update does not run. Gradients are multiplied by
     * unscale = inverse_scale, or by inverse_scale·(clip_norm/gradient_norm) if clip_norm is not 0 and
     * gradient_norm is larger than clip_norm (unscale.h). The update sets grad to 0. SGD, as in Darknet, with
     * rate = learning_rate·rate_scale:
     *   momentum += grad·unscale - decay·batch·master
     *   master   += rate/batch·momentum
     *   momentum ×= args.momentum
     * Adam is Darknet's GPU path (adam_update_gpu), with its moments in m and v. AdamW is torch.optim.AdamW:
     * the decay is not in the moments; instead, the step subtracts rate·decay·master from master. After the
     * update, if clip is not 0, master ← min(clip, max(-clip, master)), as in Darknet's GPU path. */
    amp_status (*finish_step)(amp_backend *, const amp_step_end *, amp_step_outcome *, amp_error *);
    /* Copies all statistics: committed ← array, or array ← committed if `back` is set. */
    amp_status (*copy_statistics)(amp_backend *, const amp_statistics *, int count, int back, amp_error *);

    /* A matrix product of fp32 arrays, for layers that the host runs itself. Both factors are rounded to the
     * dtype, to nearest even; products are summed in fp32. With beta 0, c is overwritten. For factors with a
     * version, the backend keeps copies, one per array and dtype; gemm_drop_copies frees them. gemm_computes
     * returns the dtype in which factors are multiplied: fp32 if the given dtype is only a storage format. */
    amp_status (*gemm)(amp_backend *, const amp_gemm_desc *, amp_error *);
    void (*gemm_drop_copies)(amp_backend *);
    amp_dtype (*gemm_computes)(const amp_backend *, amp_dtype);

    /* Ranges for a profiler: operations called between push and pop belong to the range `name`. Ranges nest.
     * Both functions are NULL if there is no profiler. */
    void (*range_push)(amp_backend *, const char *name);
    void (*range_pop)(amp_backend *);

    /* If a pass always calls the same operations, on the same memory and with the same numbers, it can be
     * recorded once and then replayed as a whole (CUDA graphs). pass_begin, pass_end and pass_free are NULL
     * in a backend that cannot do this. *pass is the recording; it is NULL before the first call.
     *
     * pass_begin: if *pass is still valid, it is queued, *repeated is set to 1, and the caller must not call
     * the pass's operations. Otherwise *repeated is set to 0, and operations are recorded, not run, until
     * pass_end. A recorded pass must not copy from or to CPU memory, and must not wait. */
    amp_status (*pass_begin)(amp_backend *, amp_recorded_pass **pass, int *repeated, amp_error *);
    /* Ends recording: *pass becomes the recording, and is queued. If whole is 0, the recording is dropped
     * instead. If pass_begin or pass_end fails, nothing was queued, and the caller frees *pass. */
    amp_status (*pass_end)(amp_backend *, amp_recorded_pass **pass, int whole, amp_error *);
    void (*pass_free)(amp_backend *, amp_recorded_pass *); /* NULL is fine */

    /* Times operations on the device. The first call starts the timing and returns no rows; after it,
     * pass_begin records no pass. Each later call waits for the device and returns the operations since the
     * previous call. operation_times is NULL if the backend cannot time operations. */
    amp_status (*operation_times)(amp_backend *, amp_operation_times *, amp_error *);
};

/* Creates the oneDNN backend. Returns NULL and sets *error if the machine cannot run it. */
amp_backend *amp_cpu_backend_create(amp_error *error);
/* Creates the cuDNN and cuBLAS backend on the calling thread's current CUDA device. Only builds with CUDA
 * have this function. Every thread that calls the backend must have the same current device. Returns NULL and
 * sets *error if there is no usable device. */
amp_backend *amp_cuda_backend_create(amp_error *error);
