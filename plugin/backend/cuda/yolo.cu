/* Yolo's loss, in up to four launches: find the boxes assigned to each label, compute the deltas of all
 * boxes, add up all sums, and add up the cost of each image. For each box: delta = target - output (see
 * backend.h), dx (+)= loss_scale·delta_normalizer·delta, cost += delta².
 *
 * One warp computes one box at a time. Which boxes a warp and a block compute depends only on the shape, and
 * sums are added in a fixed order, so that every device gives the same bits. Most boxes have no label, and no
 * deltas for the classes. */
#include "kernels.h"

#include <string.h>

#include "../check.h"
#include "../yolo_rules.h"
#include "device.cuh"

enum {
    WARP = 32, THREADS = 256, WARPS = THREADS / WARP,
    BOXES = 8, /* boxes per warp, computed one after the other */
    SUMS = (int)(sizeof(amp_yolo_result) / sizeof(double))
};
static const unsigned ALL_LANES = 0xffffffffu;

/* What kernels need to know about the yolo layer, besides x and dx. */
typedef struct head {
    amp_yolo_desc d;
    int w, h;
    const float *labels; /* NULL: no labels */
    amp_yolo_own *own;   /* [image][max_boxes]: the boxes assigned to each label */
    int *counts;         /* [image]: the number of labels */
} head;

/* ---- labels ---- */

/* Counts each image's labels and finds the boxes assigned to each label. One warp works on one image. */
__global__ void __launch_bounds__(THREADS) find_own_boxes(head g, int images)
{
    int image = (int)(amp_thread() / WARP), lane = (int)threadIdx.x % WARP, count = g.d.max_boxes;
    if (image >= images) return;
    const float *label = g.labels + (size_t)image * g.d.truths;
    for (int first = 0; first < g.d.max_boxes; first += WARP) {
        int t = first + lane;
        unsigned ends = __ballot_sync(ALL_LANES, t < g.d.max_boxes && label[g.d.label_size * t] == 0);
        if (!ends) continue;
        count = first + __ffs((int)ends) - 1;
        break;
    }
    for (int t = lane; t < count; t += WARP)
        g.own[(size_t)image * g.d.max_boxes + t] = amp_yolo_own_boxes(&g.d, g.w, g.h,
                                                                      label + g.d.label_size * t);
    if (lane == 0) g.counts[image] = count;
}

static __device__ __forceinline__ amp_yolo_labels labels_of(const head &g, size_t image)
{
    amp_yolo_labels l = { NULL, NULL, 0, g.d.label_size };
    if (!g.labels) return l;
    l.label = g.labels + image * g.d.truths;
    l.own = g.own + image * g.d.max_boxes;
    l.count = g.counts[image];
    return l;
}

/* Each lane searches a part of the labels. All lanes get the result of the whole search. */
static __device__ __forceinline__ amp_yolo_search look_at_labels(const amp_yolo_desc &d,
                                                                 const amp_yolo_labels &l,
                                                                 amp_yolo_place place, amp_yolo_box predicted)
{
    amp_yolo_search s = amp_yolo_look_at_labels(&d, l, place, predicted, (int)threadIdx.x % WARP, WARP);
    for (int by = WARP / 2; by; by /= 2) {
        float best = __shfl_xor_sync(ALL_LANES, s.best, by);
        int label = __shfl_xor_sync(ALL_LANES, s.label, by);
        if (best > s.best || (best == s.best && label < s.label)) s.best = best, s.label = label;
        s.has_own |= __shfl_xor_sync(ALL_LANES, s.has_own, by);
    }
    return s;
}

/* ---- boxes ---- */

/* Returns v[i]. The loop avoids an index that is known only at run time, which would move the array from
 * registers to memory. */
static __device__ __forceinline__ float chosen(const float (&v)[AMP_YOLO_BOX], int i)
{
    float one = v[0];
    #pragma unroll
    for (int k = 1; k < AMP_YOLO_BOX; k++) one = i == k ? v[k] : one;
    return one;
}

/* Returns the squashed number (yolo_rules.h) of class c, or 0 if c is -1. The box's numbers begin at x. */
template <class T> static __device__ __forceinline__ float class_number(const amp_yolo_desc &d, const T *x,
                                                                        int c)
{
    return c < 0 ? 0 : amp_yolo_squash(&d, amp_load(x[AMP_YOLO_BOX + c]), AMP_YOLO_BOX + c);
}

template <class T> static __device__ __forceinline__ int is_sure(const amp_yolo_desc &d, const T *x)
{
    int sure = 0;
    for (int c = (int)threadIdx.x % WARP; c < d.classes; c += WARP)
        sure |= class_number(d, x, c) > AMP_YOLO_SURE;
    return __ballot_sync(ALL_LANES, sure) != 0;
}

/* Applies every label to which this box is assigned. If from_iou is 1, first applies the label that the box
 * overlaps most. All lanes compute the same sums. */
template <class T> static __device__ __forceinline__ void apply_labels(const amp_yolo_desc &d,
                                                                       amp_yolo_labels l, const T *x,
                                                                       amp_yolo_place place,
                                                                       const float (&squashed)[AMP_YOLO_BOX],
                                                                       amp_yolo_box predicted, int from_iou,
                                                                       amp_yolo_target *t,
                                                                       amp_yolo_result *sums)
{
    int all = l.count;
    for (int i = from_iou ? AMP_YOLO_FROM_IOU : 0; i < all; i++) {
        const float *label = amp_yolo_label(l, i < 0 ? t->overlapping : i);
        if (i >= 0 && !amp_yolo_owns(l, i, place)) continue;
        l.count = i < 0 ? 0 : i;
        amp_yolo_apply(t, &d, l, place, squashed, predicted,
                       class_number(d, x, amp_yolo_deciding_class(&d, label)), i);
        if (i >= 0)
            amp_yolo_count(sums, &d, predicted, label, squashed[4],
                           class_number(d, x, amp_yolo_class(&d, label)));
    }
}

/* Returns how many classes have a delta above 0. */
template <class T> static __device__ __forceinline__ int positive_classes(const amp_yolo_desc &d,
                                                                          const amp_yolo_labels &l,
                                                                          amp_yolo_place place, const T *x,
                                                                          const amp_yolo_target &t)
{
    int positive = 0;
    for (int c = (int)threadIdx.x % WARP; c < d.classes; c += WARP)
        positive += amp_yolo_class_delta(&t, &d, l, place, c, class_number(d, x, c)) > 0;
    for (int by = WARP / 2; by; by /= 2) positive += __shfl_xor_sync(ALL_LANES, positive, by);
    return positive;
}

/* Computes the deltas of box `box` of an image. x: the box's numbers. dx (+)= scale·deltas; dx may be NULL.
 * Each lane adds only its own numbers to sums->cost, sums->box_cost and *not_finite. The other sums are the
 * same in all lanes. */
template <class T> static __device__ __forceinline__ void one_box(const head &g, const amp_yolo_labels &l,
                                                                  int box, const T *x, T *dx, float scale,
                                                                  int accumulate, amp_yolo_result *sums,
                                                                  int *not_finite)
{
    const amp_yolo_desc &d = g.d;
    const int size = AMP_YOLO_BOX + d.classes;
    float squashed[AMP_YOLO_BOX];
    amp_yolo_target t;
    #pragma unroll
    for (int e = 0; e < AMP_YOLO_BOX; e++) squashed[e] = amp_yolo_squash(&d, amp_load(x[e]), e);
    amp_yolo_place place = amp_yolo_place_of(&d, g.w, g.h, box);
    amp_yolo_box predicted = amp_yolo_predicted(&d, place, squashed);
    amp_yolo_search s = look_at_labels(d, l, place, predicted);
    int from_iou = s.best > d.truth_thresh;
    amp_yolo_begin(&t, &d, squashed, s.best, s.label, !amp_yolo_asks_classes(&d, s.best) || is_sure(d, x));
    sums->any_object += (double)squashed[4];
    if (s.has_own || from_iou) {
        apply_labels(d, l, x, place, squashed, predicted, from_iou, &t, sums);
        if (d.iou_thresh < 1) amp_yolo_average(&t, &d, positive_classes(d, l, place, x, t));
    }
    for (int e = (int)threadIdx.x % WARP; e < size; e += WARP) {
        float number = amp_load(x[e]), delta = 0;
        *not_finite |= (__float_as_uint(number) & 0x7f800000u) == 0x7f800000u;
        if (e < AMP_YOLO_BOX) delta = chosen(t.delta, e);
        else if (t.since != AMP_YOLO_NO_LABEL)
            delta = amp_yolo_class_delta(&t, &d, l, place, e - AMP_YOLO_BOX, amp_yolo_squash(&d, number, e));
        if (delta != 0) sums->cost += (double)delta * (double)delta;
        if (e < 4) sums->box_cost += (double)delta * (double)delta;
        if (d.before_logistic) delta *= amp_yolo_slope(number);
        if (dx) dx[e] = amp_store<T>(accumulate ? amp_load(dx[e]) + scale * delta : scale * delta);
    }
}

/* ---- sums ---- */

/* Adds up the sums of the block's threads in a fixed order. Only thread 0 gets the result. */
static __device__ __forceinline__ amp_yolo_result fold(const amp_yolo_result &mine)
{
    __shared__ double all[SUMS][THREADS];
    int t = (int)threadIdx.x;
    double sums[SUMS];
    amp_yolo_result sum;
    memcpy(sums, &mine, sizeof sums);
    #pragma unroll
    for (int k = 0; k < SUMS; k++) all[k][t] = sums[k];
    for (int half = THREADS / 2; half; half /= 2) {
        __syncthreads();
        if (t >= half) continue;
        #pragma unroll
        for (int k = 0; k < SUMS; k++) all[k][t] += all[k][t + half];
    }
    #pragma unroll
    for (int k = 0; k < SUMS; k++) sums[k] = all[k][t];
    memcpy(&sum, sums, sizeof sum);
    return sum;
}

/* Computes the deltas of all boxes. The boxes of a block belong to one image; each image has `blocks`
 * consecutive blocks. */
template <class T> __global__ void __launch_bounds__(THREADS) box_deltas(head g, unsigned blocks, const T *x,
                                                                         T *dx, float scale, int accumulate,
                                                                         amp_yolo_result *partial)
{
    const int size = AMP_YOLO_BOX + g.d.classes, boxes = g.w * g.h * g.d.n;
    const size_t image = blockIdx.x / blocks;
    int first = (int)((blockIdx.x % blocks) * WARPS + threadIdx.x / WARP) * BOXES;
    amp_yolo_result mine = {};
    int not_finite = 0;
    for (int box = first; box < first + BOXES && box < boxes; box++) {
        size_t at = (image * boxes + box) * size;
        one_box(g, labels_of(g, image), box, x + at, dx ? dx + at : NULL, scale, accumulate, &mine,
                &not_finite);
    }
    if (threadIdx.x % WARP) { /* the sums that are equal in all lanes count only in lane 0 */
        double cost = mine.cost, box_cost = mine.box_cost;
        memset(&mine, 0, sizeof mine);
        mine.cost = cost, mine.box_cost = box_cost;
    }
    if (not_finite) mine.cost = (double)__uint_as_float(0x7fc00000u);
    mine = fold(mine);
    if (threadIdx.x == 0) partial[blockIdx.x] = mine;
}

__global__ void __launch_bounds__(THREADS) add_results(const amp_yolo_result *partial, size_t count,
                                                       amp_yolo_result *result)
{
    double sums[SUMS] = {};
    for (size_t i = threadIdx.x; i < count; i += THREADS) {
        const double *one = (const double *)&partial[i]; /* read as doubles, because nvcc would copy a struct
                                                            byte by byte */
        #pragma unroll
        for (int k = 0; k < SUMS; k++) sums[k] += one[k];
    }
    amp_yolo_result mine;
    memcpy(&mine, sums, sizeof mine);
    mine = fold(mine);
    if (threadIdx.x == 0) *result = mine;
}

/* Adds up the `blocks` partial costs of each image. One warp works on one image. */
__global__ void __launch_bounds__(WARP) add_image_costs(const amp_yolo_result *partial, unsigned blocks,
                                                        double *costs)
{
    __shared__ double sums[WARP];
    int t = (int)threadIdx.x;
    sums[t] = 0;
    for (unsigned i = threadIdx.x; i < blocks; i += WARP)
        sums[t] += partial[(size_t)blockIdx.x * blocks + i].cost;
    for (int half = WARP / 2; half; half /= 2) {
        __syncthreads();
        if (t < half) sums[t] += sums[t + half];
    }
    if (t == 0) costs[blockIdx.x] = sums[0];
}

/* ---- operations ---- */

amp_status amp_cuda_yolo_loss(amp_backend *backend, const amp_tensor *x, const float *labels,
                              const amp_yolo_desc *d, float loss_scale, const amp_tensor *dx, int accumulate,
                              amp_yolo_result *result, double *image_costs, amp_error *error)
{
    AMP_TRY(amp_check_pair("yolo", x, dx ? dx : x, 1, error));
    size_t images = (size_t)x->shape.n, boxes = (size_t)x->shape.h * x->shape.w * d->n;
    size_t each = amp_divide_up(boxes, (size_t)WARPS * BOXES), blocks = images * each;
    void *scratch;
    AMP_TRY(amp_cuda_scratch(backend, blocks * sizeof(amp_yolo_result) + images
                             * (d->max_boxes * sizeof(amp_yolo_own) + sizeof(int)), &scratch, error));
    amp_yolo_result *partial = (amp_yolo_result *)scratch;
    amp_yolo_own *own = (amp_yolo_own *)(partial + blocks);
    head g = { *d, x->shape.w, x->shape.h, labels, own, (int *)(own + images * d->max_boxes) };
    if (labels)
        AMP_LAUNCH(backend, (unsigned)amp_divide_up(images, WARPS), THREADS, find_own_boxes, g, (int)images);
    AMP_CUDA_BY_DTYPE(x->dtype, AMP_LAUNCH(backend, (unsigned)blocks, THREADS, box_deltas<T>, g,
                                           (unsigned)each, (const T *)x->data, (T *)(dx ? dx->data : NULL),
                                           loss_scale * d->delta_normalizer, accumulate, partial));
    AMP_LAUNCH(backend, 1u, THREADS, add_results, partial, blocks, result);
    if (image_costs)
        AMP_LAUNCH(backend, (unsigned)images, WARP, add_image_costs, partial, (unsigned)each, image_costs);
    return AMP_OK;
}

/* Squashes y in place. A row of blocks works on one plane at a time. A plane has numbers of only one kind. */
__global__ void __launch_bounds__(AMP_CUDA_THREADS) squash_planes(float *y, size_t planes, size_t pixels,
                                                                  amp_yolo_desc d)
{
    for (size_t plane = blockIdx.y; plane < planes; plane += gridDim.y)
        for (size_t i = amp_thread(); i < pixels; i += amp_threads())
            y[plane * pixels + i] = amp_yolo_squash(&d, y[plane * pixels + i],
                                                    (int)(plane % (AMP_YOLO_BOX + d.classes)));
}

amp_status amp_cuda_yolo_activate(amp_backend *backend, const amp_tensor *y, const amp_yolo_desc *d,
                                  amp_error *error)
{
    size_t pixels = (size_t)y->shape.h * y->shape.w, planes = (size_t)y->shape.n * y->shape.c;
    size_t across = amp_divide_up(pixels, AMP_CUDA_THREADS);
    AMP_LAUNCH(backend, dim3((unsigned)across, amp_cuda_down(backend, across, planes)), AMP_CUDA_THREADS,
               squash_planes, (float *)y->data, planes, pixels, *d);
    return AMP_OK;
}
