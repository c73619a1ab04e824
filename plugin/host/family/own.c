/* What AlexeyAB's and hank-ai's Darknets do differently from pjreddie's, or have in addition: see
 * ../darknet/own.h. What differs between these two is in the folder of each. */
#include "../darknet/room.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../tensor/half.h"
#include "box.h"
#include "data.h"
#include "network.h"
#include "parser.h"
#include "tree.h"
#include "utils.h"

/* ---- losses and averages ---- */

/* Sets *l->cost as Darknet computes it. Prints AMP's line: losses per image, mean IoU of labelled boxes. */
void amp_own_print_yolo(network *net, int index, const amp_yolo_result *r)
{
    const layer *l = &net->layers[index];
    double count = r->labels > 0 ? r->labels : 1, others = r->cost - r->box_cost, unlike = 1 - r->iou / count;
    *l->cost = (float)r->cost;
    if (l->iou_loss == GIOU) unlike = 1 - r->giou / count;
    if (AMP_OWN_COSTS_BY_IOU(l) && l->iou_loss != MSE)
        *l->cost = (float)(r->labels > 0 ? l->iou_normalizer * unlike + l->obj_normalizer * others
                                         : l->obj_normalizer * others);
    if (AMP_OWN_TELLS_OF_YOLO)
        fprintf(stderr, "layer %d [yolo]: loss %f (boxes: %f), mean IoU %f of %d boxes\n", index,
                r->cost / l->batch, r->box_cost / l->batch, r->iou / count, (int)r->labels);
}

/* Darknet averages convolutional layers only. Layers that share another layer's weights have no averages. */
int amp_fork_averages(const network *net, int only_begun, amp_average *averages)
{
    int count = 0;
    if (!net->ema_alpha || (only_begun && !is_ema_initialized(AMP_NET(net)))) return 0;
    for (int i = 0; i < net->n; i++) {
        const layer *l = &net->layers[i];
        const amp_average all[] = { { l->weights_ema, (size_t)l->nweights },
                                    { l->biases_ema, (size_t)l->n }, { l->scales_ema, (size_t)l->n } };
        for (int k = 0; l->type == CONVOLUTIONAL && k < 3; k++)
            if (all[k].values) averages[count++] = all[k];
    }
    return count;
}

/* ---- memory ---- */

#ifdef GPU
/* Page-locked buffers must not get to free(). */
static void free_pinned(float **buffer, int *pinned)
{
    if (*pinned && *buffer) cuda_free_host(*buffer);
    if (*pinned) *buffer = NULL;
    *pinned = 0;
}

/* Does not free weights_gpu16, because push_convolutional_layer writes to it. Clears `adam`, because
 * otherwise that function would also copy Adam's moments, which are freed. */
static void free_internals_gpu(layer *l)
{
    l->adam = 0;
    amp_host_free_array(&l->activation_input_gpu, 1);
    amp_host_free_array(&l->output_avg_gpu, 1);
    if (!l->share_layer) amp_host_free_array(&l->weight_updates_gpu16, 1);
    free_pinned(&l->output, &l->output_pinned);
    free_pinned(&l->delta, &l->delta_pinned);
}
#endif

void amp_own_free_internals(layer *l, int on_gpu)
{
    if (l->type == CONVOLUTIONAL || l->type == SHORTCUT) amp_host_free_array(&l->activation_input, 0);
#ifdef GPU
    if (on_gpu) free_internals_gpu(l);
#endif
}

int amp_own_borrows_buffers(const layer *l) { return l->type == DROPOUT || l->type == EMPTY; }

int amp_own_resize(layer *l, int w, int h) { return 0; }

/* pull_shortcut_layer clips gradients of weights, too, unless amp_unclipped is set. */
void amp_own_keep_deltas(network *net)
{
    net->try_fix_nan = 0;
    for (int i = 0; i < net->n; i++) net->layers[i].amp_unclipped = 1;
}

/* ---- counters: this Darknet has no t, but counts steps (cur_iteration) in addition to images ---- */

amp_counters amp_fork_counters(const struct network *net)
{
    return (amp_counters){ .seen = *net->seen, .t = net->amp ? net->amp->memory->t : 0 };
}

void amp_fork_set_counters(struct network *net, amp_counters counters)
{
    int64_t images = (int64_t)counters.seen - (int64_t)*net->seen;
    *net->seen = counters.seen;
    *net->cur_iteration += (int)(images / ((int64_t)net->batch * net->subdivisions));
    if (net->amp) net->amp->memory->t = counters.t;
}

/* ---- Darknet's functions ---- */

/* Darknet's loops hand the images and labels to each pass as arguments. The plugin's commands put them into
 * net->input and net->truth, which are allocated here and freed by amp_own_free. */
network *amp_own_parse(char *cfg)
{
    network *net = calloc(1, sizeof *net);
    if (!net) return NULL;
    AMP_OWN_GPU = amp_fork_device(); /* main sets it only after the plugin's commands have run */
    *net = parse_network_cfg(cfg);
    amp_own_complete(net);
    net->input = calloc((size_t)net->inputs * (size_t)net->batch + 1, sizeof *net->input);
    net->truth = calloc((size_t)net->truths * (size_t)net->batch + 1, sizeof *net->truth);
    return net;
}

void amp_own_free(network *net)
{
    float *input = net->input, *truth = net->truth;
    for (int i = 0; i < net->n; i++) {
        layer *l = &net->layers[i]; /* an [empty] layer uses the buffers of the layer before it; clear its
                                       pointers, or Darknet frees these buffers twice */
        if (l->type != EMPTY) continue;
        l->output = l->delta = NULL;
#ifdef GPU
        l->output_gpu = l->delta_gpu = NULL;
#endif
    }
    free_network(AMP_NET(net));
    free(input);
    free(truth);
    free(net);
}

static network_state state_of(network *net)
{
    int on_gpu = amp_host_on_gpu(net);
    return (network_state){ .input = ON_SIDE(on_gpu, net->input, *net->input_gpu),
                            .truth = ON_SIDE(on_gpu, net->truth, *net->truth_gpu),
                            .delta = on_gpu ? NULL : net->delta, .train = net->train, .net = *net };
}

#ifdef GPU
/* Does what forward_backward_network_gpu does. */
static void push_and_forward(network *net)
{
    size_t images = (size_t)net->inputs * net->batch, labels = (size_t)net->truths * net->batch;
    if (!*net->input_gpu) *net->input_gpu = cuda_make_array(NULL, images);
    if (!*net->truth_gpu) *net->truth_gpu = cuda_make_array(NULL, labels);
    cuda_push_array(*net->input_gpu, net->input, images);
    cuda_push_array(*net->truth_gpu, net->truth, labels);
    forward_network_gpu(AMP_NET(net), state_of(net));
}
#endif

void amp_own_forward(network *net)
{
    if (net->amp) darknet_amp_forward(net);
    else ON_SIDE(amp_host_on_gpu(net), forward_network(AMP_NET(net), state_of(net)), push_and_forward(net));
}

void amp_own_backward(network *net)
{
    if (net->amp) darknet_amp_backward(net);
    else ON_SIDE(amp_host_on_gpu(net), backward_network(AMP_NET(net), state_of(net)),
                 backward_network_gpu(AMP_NET(net), state_of(net)));
}

void amp_own_update(network *net)
{
    ++*net->cur_iteration;
    ON_SIDE(amp_host_on_gpu(net), update_network(AMP_NET(net)), update_network_gpu(AMP_NET(net)));
}

float amp_fork_cost(const network *net) { return get_network_cost(AMP_NET(net)); }

amp_image_fit amp_fork_detector_fit(const struct network *net)
{
    return net->letter_box ? AMP_FIT_LETTERBOX : AMP_FIT_STRETCH;
}

/* Suppresses overlapping boxes as Darknet's own commands do: nms_kind of the last layer says how. */
detection *amp_own_boxes(network *net, const int size[2], float least, float hierarchy, float suppression,
                         int *count)
{
    const layer *l = &net->layers[net->n - 1];
    detection *boxes =
        get_network_boxes(net, size[0], size[1], least, hierarchy, 0, 1, count, net->letter_box);
    if (l->nms_kind == DEFAULT_NMS) do_nms_sort(boxes, *count, l->classes, suppression);
    else diounms_sort(boxes, *count, l->classes, suppression, l->nms_kind, l->beta_nms);
    return boxes;
}

/* The largest square in the middle of the image, resized to w x h, as pjreddie's center_crop_image does. */
image amp_own_center_crop(image im, int w, int h)
{
    int side = im.w < im.h ? im.w : im.h;
    image middle = crop_image(im, (im.w - side) / 2, (im.h - side) / 2, side, side),
          fitted = resize_image(middle, w, h);
    free_image(middle);
    return fitted;
}

void amp_own_sort_classes(float *probabilities, network *net)
{
    hierarchy_predictions(probabilities, net->outputs, net->hierarchy, 1);
}

/* ---- loading ---- */

void amp_own_common_args(const network *net, load_args *args)
{
    *args = (load_args){ .w = net->w, .h = net->h, .c = net->c, .flip = net->flip, .angle = net->angle,
                         .blur = net->blur, .mixup = net->mixup, .exposure = net->exposure,
                         .saturation = net->saturation, .hue = net->hue };
}

void amp_own_detector_args(network *net, const layer *last, load_args *args)
{
    amp_own_common_args(net, args);
    args->gaussian_noise = net->gaussian_noise;
    args->letter_box = net->letter_box;
    args->mosaic_bound = net->mosaic_bound;
    args->resize = last->resize;
    args->num_boxes = net->num_boxes = last->max_boxes;
    args->truth_size = last->truth_size;
    if (!net->track) return;
    args->track = net->track;
    args->augment_speed = net->augment_speed;
    args->threads = net->sequential_subdivisions ? net->sequential_subdivisions : net->subdivisions;
    args->mini_batch = net->batch / net->time_steps;
}

/* Returns the smallest size to which photos may be reduced. load_data_detection takes a crop from a photo,
 * and resizes it to the input's size. `least` is the smallest ratio of the crop's side to the photo's side.
 * load_data_augment resizes a photo's shorter side to at most max_crop. */
amp_photo_use amp_fork_photo_use(const network *net, int classifier)
{
    amp_view v = amp_fork_view(net);
    const layer *last = &net->layers[net->n - 1];
    double larger = fmax((double)v.largest_w / v.w, (double)v.largest_h / v.h);
    double side = AMP_OWN_MOST_CROP(net) * larger * net->aspect * net->aspect;
    double least = (last->resize > 1 ? 1 / last->resize : 1) - 2 * last->jitter;
    if (classifier) return (amp_photo_use){ .w = side, .h = side, .jitter = -1 };
    if (least <= 0) least = 1e-6; /* a crop may have any size */
    return (amp_photo_use){ .w = v.largest_w / least, .h = v.largest_h / least, .jitter = -1 };
}

/* Ends the loader threads that the first load started. */
void amp_own_end_loading(load_args *args) { free_load_threads(args); }

/* ---- windows ---- */

#ifdef OPENCV
int cvInitSystem(int argc, char **argv) __attribute__((weak)); /* OpenCV's; missing in OpenCV 5 */

/* Qt, OpenCV's usual window library, exits if the display does not answer, so a child process tries it. */
static int display_answers(void)
{
    int status = 0;
    fflush(NULL);
    pid_t child = cvInitSystem ? fork() : -1;
    if (child == 0) {
        int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
        setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
        dup2(nothing, STDOUT_FILENO);
        dup2(nothing, STDERR_FILENO);
        cvInitSystem(0, NULL);
        _exit(0);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    return status == 0;
}
#endif

int darknet_amp_no_display(void)
{
#ifdef OPENCV
    static const char *const displays[] = { "DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM" };
    int named = 0;
    for (size_t i = 0; i < sizeof displays / sizeof *displays; i++)
        named |= getenv(displays[i]) && *getenv(displays[i]);
    if (named && display_answers()) return 0;
    fprintf(stderr, "darknet: %s: no window is opened, as with -dont_show\n",
            named ? "the display cannot be opened" : "there is no display");
    return 1;
#else
    return 0;
#endif
}

/* ---- more of Darknet's functions ---- */

int amp_fork_knows_map(void) { return 1; }

/* Whether an array is NULL or has only finite numbers. array: weights, or an array of batch norm. */
static int is_good(const float *array, int count) { return !array || amp_all_finite(array, (size_t)count); }

/* Whether this layer computes the logistic function of several numbers at once that are all finite if the
 * layer's input is finite. (A convolution with activation=logistic computes one number at a time.) */
static int is_logistic(const layer *l)
{
    if (l->type == YOLO || l->type == GAUSSIAN_YOLO) return 1;
    return l->type == CONVOLUTIONAL && l->activation == SWISH
           && is_good(l->weights, l->nweights) && is_good(l->biases, l->n) && is_good(l->scales, l->n)
           && is_good(l->rolling_mean, l->n) && is_good(l->rolling_variance, l->n);
}

/* With -Ofast, 1 / (1 + e^-x) is compiled to code that computes four numbers at a time: r (2 - r (1 + e^-x)),
 * a Newton step on the processor's estimate r of the reciprocal. Below x = -88.7, e^-x is inf and r is 0, and
 * 0 times inf is NaN. The last one to three numbers of an array are computed by a division, and become 0. */
const char *amp_fork_fault(const struct network *net, char text[256])
{
    int i = 0;
    if (net->amp || amp_host_on_gpu(net)) return NULL;
    while (i < net->n && is_good(net->layers[i].output, net->layers[i].outputs * net->layers[i].batch)) i++;
    if (i == net->n || !is_logistic(&net->layers[i])) return NULL;
    snprintf(text, 256, "without AMP this Darknet's logistic function (layer %d [%s]), compiled "
             "with -Ofast, gives NaN below -88.7 instead of 0; the weights are not the cause: use -amp "
             "fp32", i, amp_own_types[net->layers[i].type].name);
    return text;
}

/* Returns the value of output k for a logistic of 0. For x and y of a box, scale_x_y scales the logistic. */
static float logistic_of_least(const layer *l, int k)
{
    int entry = k / (l->w * l->h) % (l->outputs / (l->w * l->h * l->n));
    int is_place = entry == 0 || entry == (l->type == YOLO ? 1 : 2);
    return is_place ? -.5f * (l->scale_x_y - 1) : 0;
}

void amp_own_fix_logistics(network *net)
{
    for (int i = 1; i < net->n && !amp_host_on_gpu(net); i++) {
        layer *l = &net->layers[i];
        const float *input = net->layers[i - 1].output;
        if (l->type != YOLO && l->type != GAUSSIAN_YOLO) continue;
        for (int k = 0; k < l->outputs * l->batch; k++)
            if (!amp_is_finite(l->output[k]) && input[k] < -88 && amp_is_finite(input[k]))
                l->output[k] = logistic_of_least(l, k);
    }
}

int amp_fork_snapshot_follows_backup(long step) { return 0; } /* Darknet saves snapshots first */
int amp_fork_drops_returns(void) { return 1; }
const char amp_fork_train_list[] = "data/train.txt";
const char amp_fork_classifier_end[] = "_final";
const char *const amp_fork_dont_show = "-dont_show";

void amp_fork_label_path(const char *image, char *path) { replace_image_to_label(image, path); }
