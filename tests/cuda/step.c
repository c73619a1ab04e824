/* What a training step asks of CUDA: how often the host waits, what is copied, allocated and launched, on
 * doubles that count (doubles/cuda_doubles.h). Whole networks, of Darknet built with GPU=1 and the CUDA
 * backend. And the network's input as page-locked memory: when it is, and that nobody frees it so. */
#define _DEFAULT_SOURCE
#include "testing.h"

#include <unistd.h>

#include "../../bench/gpu_parts.h"
#include "backend/cuda/state.h"
#include "doubles/cuda_doubles.h"
#include "doubles/cudnn_double.h"
#include "host/darknet/room.h"
#include "listening.h"
#include "network.h"
#include "gpu_networks.h"
#include "parser.h"
#include "poison_arena.h"
#include "test_folder.h"

#define NET_OF(batch, size)                                                                      \
    "[net]\nbatch=" #batch "\nsubdivisions=2\nlearning_rate=0.001\nmomentum=0.9\ndecay=0.0005\n"  \
    "max_batches=1000\ninit_scale=8\nwidth=" #size "\nheight=" #size "\nchannels=3\n"
#define NET NET_OF(4, 32)
#define SMALL_NET NET_OF(2, 16) /* for many trainings */
#define BN(filters, size) "[convolutional]\nbatch_normalize=1\nfilters=" #filters "\nsize=" #size \
    "\nstride=1\npad=1\nactivation=leaky\n"
#define LINEAR(filters) "[convolutional]\nfilters=" #filters "\nsize=1\nstride=1\npad=1\nactivation=linear\n"
#define POOL "[maxpool]\nsize=2\nstride=2\n"
#define HEAD(mask) "[yolo]\nmask=" mask "\nanchors=4,5, 8,9, 12,14, 16,12, 20,20, 24,28\nclasses=2\nnum=6\n"

/* yolov3-tiny's shape: a trunk, two heads, a route back and an upsampled one. */
#define DETECTOR \
    BN(8, 3) POOL BN(16, 3) POOL BN(16, 3) POOL BN(32, 3) BN(16, 1) BN(32, 3) LINEAR(21) \
    HEAD("3,4,5") "[route]\nlayers=-4\n" BN(8, 1) "[upsample]\nstride=2\n[route]\nlayers=-1,4\n" \
    BN(16, 3) LINEAR(21) HEAD("0,1,2")
static const char yolo_cfg[] = NET DETECTOR;
/* A classifier with what a resnet has, and some more. */
#define CLASSIFIER \
    BN(8, 3) POOL BN(8, 1) BN(8, 3) "[shortcut]\nfrom=-3\nactivation=leaky\n" \
    BN(16, 3) \
    POOL "[upsample]\nstride=2\n[route]\nlayers=-1,-3\n" BN(16, 3) "[dropout]\nprobability=.2\n" BN(16, 1) \
    "[dropout]\nprobability=.5\n" LINEAR(6) "[avgpool]\n[softmax]\n"
static const char resnet_cfg[] = NET CLASSIFIER;

static int begin(void **state)
{
    (void)state;
    gpu_index = 0;
    amp_cuda_any_stream(1); /* Darknet's own layers run on the default one */
    return 0;
}

static int end(void **state)
{
    (void)state;
    if (amp_cuda_faults()) print_message("%s\n", amp_cuda_fault());
    int faults = amp_cuda_faults();
    amp_cuda_forget_faults();
    return faults;
}

static network *make(const char *cfg)
{
    char name[32];
    put_cfg(name, cfg);
    darknet_amp_start(3, (char *[]){ "darknet", "-amp", "fp16", NULL });
    srand(5);
    network *net = parse_network_cfg(name);
    unlink(name);
    return net;
}

/* As get_next_batch does, over what may still be copied to the GPU. */
static void feed(network *net, unsigned seed)
{
    random_floats(net->input, net->inputs * net->batch, seed);
    for (int b = 0; b < net->batch; b++) set_truth(net, b, (unsigned)b);
}

static void train(network *net, int steps, unsigned seed)
{
    for (int i = 0; i < steps * net->subdivisions; i++) {
        feed(net, seed + (unsigned)i);
        train_network_datum(net);
    }
}

/* ---- counts ---- */

static amp_cuda_counts minus(amp_cuda_counts a, amp_cuda_counts b)
{
    return (amp_cuda_counts){
        .waits = a.waits - b.waits, .allocations = a.allocations - b.allocations, .frees = a.frees - b.frees,
        .uploads = a.uploads - b.uploads, .downloads = a.downloads - b.downloads,
        .uploaded = a.uploaded - b.uploaded,
        .downloaded = a.downloaded - b.downloaded, .pageable = a.pageable - b.pageable,
        .launches = a.launches - b.launches,
        .library = a.library - b.library, .questions = a.questions - b.questions,
        .recorded = a.recorded - b.recorded, .graphs = a.graphs - b.graphs };
}

#define COUNT_OF(into, call) do { \
        amp_cuda_counts before_ = amp_cuda_counted(); \
        call; \
        (into) = minus(amp_cuda_counted(), before_); \
    } while (0)

/* A subdivision's two passes, and the end of the step that the last of them has. */
typedef struct step_counts {
    amp_cuda_counts forward, backward, update;
    amp_cuda_counts left_of_forward, left_of_backward; /* what the device still has to do when they return */
} step_counts;

static step_counts count_step(network *net, unsigned seed)
{
    step_counts c;
    net->train = 1;
    /* As train_network_datum; of the first one copies of the weights would count. */
    for (int i = 0; i < net->subdivisions; i++) {
        feed(net, seed + (unsigned)i);
        *net->seen += (size_t)net->batch;
        COUNT_OF(c.forward, forward_network(net));
        if (!i) COUNT_OF(c.left_of_forward, cudaDeviceSynchronize());
        COUNT_OF(c.backward, backward_network(net));
    }
    COUNT_OF(c.left_of_backward, cudaDeviceSynchronize());
    COUNT_OF(c.update, update_network(net));
    return c;
}

static void show(const char *what, amp_cuda_counts c)
{
    print_message("%-10s waits %ld; uploads %ld (%zu bytes), downloads %ld (%zu bytes), pageable %zu bytes; "
                  "kernels %ld, library %ld; allocations %ld, frees %ld, questions %ld\n", what, c.waits,
                  c.uploads, c.uploaded, c.downloads, c.downloaded, c.pageable, c.launches, c.library,
                  c.allocations, c.frees, c.questions);
}

#define AT_MOST(bound, count) do { \
        if ((long)(count) > (long)(bound)) \
            fail_msg("%s is %ld, and not at most %s, %ld", #count, (long)(count), #bound, (long)(bound)); \
    } while (0)

/* What holds for every network in every step. */
enum {
    KERNELS_PER_LAYER = 3,      /* own ones, a layer and pass: batch norm has three of its own */
    LIBRARY_PER_LAYER = 5,      /* cuDNN's and Darknet's, for which a yolo layer has two an image and
                                   anchor */
    KERNELS_OF_UPDATE = 3,      /* findings, verdict, update, however many parameters there are */
    WAITS_OF_UPDATE = 1,        /* for the verdict */
    DOWNLOADED_BY_UPDATE = 32   /* which is that and the norm */
};

static void check_any_step(const network *net, const step_counts *c)
{
    const amp_cuda_counts all[] = { c->forward, c->backward, c->update };
    show("forward", c->forward);
    show("backward", c->backward);
    show("update", c->update);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(all[i].allocations, 0);
        assert_int_equal(all[i].frees, 0);
        AT_MOST(i < 2 ? KERNELS_PER_LAYER * net->n : KERNELS_OF_UPDATE, all[i].launches);
        AT_MOST(i < 2 ? LIBRARY_PER_LAYER * net->n : 0, all[i].library);
        assert_int_equal(all[i].questions, 0);
    }
    assert_int_equal(c->backward.uploads, 0);
    assert_int_equal(c->backward.downloads, 0);
    AT_MOST(WAITS_OF_UPDATE, c->update.waits);
    assert_int_equal(c->update.uploads, 0);
    AT_MOST(DOWNLOADED_BY_UPDATE, c->update.downloaded);
}

static size_t input_bytes(const network *net)
{
    return sizeof(float) * (size_t)net->batch * ((size_t)net->inputs + (size_t)net->truths);
}

/* The losses are the device's: what the host gets is a few sums, of all heads at once. In forward it waits
 * for its copies alone; for the losses it does when the backward is queued, and not for that. */
enum { HEAD_ANSWER = 96 /* bytes: twelve sums */, IMAGE_ANSWER = 8 /* its cost */ };

static void check_detector_waits(const step_counts *c)
{
    assert_int_equal(c->forward.waits, 1);
    assert_int_equal(c->left_of_forward.waits, 1);
    assert_int_equal(c->backward.waits, 1);
    assert_int_equal(c->left_of_backward.waits, 1);
}

TEST_WITH(a_step_of_a_detector, begin, end)
{
    network *net = make(yolo_cfg);
    size_t heads = 0;
    for (int i = 0; i < net->n; i++) heads += net->layers[i].type == YOLO;
    train(net, 3, 10);
    for (unsigned i = 0; i < 2; i++) {
        step_counts c = count_step(net, 50 + 10 * i);
        check_any_step(net, &c);
        check_detector_waits(&c);
        AT_MOST(2, c.forward.uploads); /* images, labels */
        AT_MOST(input_bytes(net), c.forward.uploaded);
        AT_MOST(1, c.forward.downloads);
        AT_MOST((HEAD_ANSWER + IMAGE_ANSWER * (size_t)net->batch) * heads, c.forward.downloaded);
        assert_int_equal(c.forward.pageable, 0);
    }
    free_network(net);
}

/* *after_forward: the network's cost then, which may still be that of the pass before. */
static float cost_of(network *net, unsigned seed, int backward, float *after_forward)
{
    feed(net, seed);
    net->train = 1;
    forward_network(net);
    *after_forward = *net->cost;
    if (backward) backward_network(net);
    return *net->cost;
}

/* Nobody else would give them to the host: at first, and behind a forward that had no backward. */
TEST_WITH(a_forward_without_a_backward_waits_for_its_losses, begin, end)
{
    network *net = make(yolo_cfg);
    float early;
    *net->seen += (size_t)net->batch;
    float one = cost_of(net, 7, 0, &early), other = cost_of(net, 8, 0, &early);
    assert_true(one != other);
    assert_true(cost_of(net, 7, 1, &early) == one && early == one);
    assert_true(cost_of(net, 8, 1, &early) == other && early == one);
    assert_true(cost_of(net, 7, 0, &early) == other);
    assert_true(cost_of(net, 7, 1, &early) == one && early == one);
    free_network(net);
}

/* What Darknet copies to the GPU when it makes a network: parameters and their updates, and of a batch norm
 * eight numbers more for each channel. Nothing of the size of an activation; and of a resize nothing. */
static size_t parameter_bytes(const network *net)
{
    size_t floats = 0;
    for (int i = 0; i < net->n; i++) {
        const layer *l = &net->layers[i];
        if (l->type == CONVOLUTIONAL) floats += 2 * ((size_t)l->nweights + (size_t)l->n);
        if (l->type == CONVOLUTIONAL && l->batch_normalize) floats += 8 * (size_t)l->n;
    }
    return floats * sizeof(float);
}

/* other: arrays that Darknet makes of a layer that stays its own. */
static void check_making(const char *cfg, long other)
{
    network *net = NULL;
    long remade = 2 + other; /* the input, the labels */
    amp_cuda_counts made, resized;
    size_t blocks = amp_cuda_bytes();
    COUNT_OF(made, net = make(cfg));
    show("make", made);
    assert_int_equal(made.uploaded, parameter_bytes(net));
    for (int i = 0; i < net->n; i++) remade += net->layers[i].type == MAXPOOL; /* indexes */
    train(net, 1, 1);
    for (int size = 64; size >= 32; size -= 32) {
        COUNT_OF(resized, resize_network(net, size, size));
        show("resize", resized);
        assert_int_equal(resized.uploads, 0);
        AT_MOST(remade, resized.allocations);
        train(net, 1, 2);
    }
    free_network(net);
    assert_int_equal(amp_cuda_bytes(), blocks);
}

TEST_WITH(making_and_resizing_copy_no_activations, begin, end)
{
    check_making(yolo_cfg, 0);
    check_making(NET BN(8, 3) "[shortcut]\nfrom=-1\nactivation=leaky\n" POOL "[dropout]\nprobability=.2\n"
                 LINEAR(8) "[normalization]\nalpha=0.1\nbeta=.75\nsize=5\n" LINEAR(21) HEAD("3,4,5"), 4);
}

/* The binary input of a convolution with xnor=1 follows random=1: a double refuses copies beyond an array. */
TEST_WITH(a_resized_xnor_layer_has_room_for_its_input, begin, end)
{
    network *net = make(NET BN(8, 3) "xnor=1\n" LINEAR(21) HEAD("3,4,5"));
    for (int size = 64; size >= 32; size -= 32) {
        resize_network(net, size, size);
        size_t inputs = (size_t)net->layers[0].inputs * (size_t)net->batch;
        float *input = calloc(inputs, sizeof *input);
        cuda_push_array(net->layers[0].binary_input_gpu, input, inputs);
        free(input);
    }
    free_network(net);
}

enum { CLASSIFIER_WAITS = 2 /* the loss, the output */ };

/* A mask of a dropout is one upload, and nobody waits for it. */
TEST_WITH(a_step_of_a_classifier, begin, end)
{
    network *net = make(resnet_cfg);
    size_t dropouts = 0, masks = 0, output = sizeof(float) * (size_t)net->outputs * (size_t)net->batch;
    for (int i = 0; i < net->n; i++) {
        if (net->layers[i].type != DROPOUT) continue;
        dropouts++;
        masks += (size_t)net->layers[i].outputs * (size_t)net->batch;
    }
    train(net, 3, 10);
    for (unsigned i = 0; i < 2; i++) {
        step_counts c = count_step(net, 50 + 10 * i);
        check_any_step(net, &c);
        AT_MOST(CLASSIFIER_WAITS, c.forward.waits);
        assert_int_equal(c.backward.waits, 0);
        assert_int_equal(c.forward.uploads, 2 + dropouts);
        assert_int_equal(c.forward.uploaded, input_bytes(net) + masks);
        AT_MOST(2 * output, c.forward.downloaded); /* a loss for each class */
        AT_MOST(2 * output, c.forward.pageable);
    }
    free_network(net);
}

/* A caller's image comes from wherever it lies. */
TEST_WITH(a_prediction, begin, end)
{
    network *net = make(resnet_cfg);
    float *image = calloc((size_t)net->inputs * (size_t)net->batch, sizeof *image);
    amp_cuda_counts c;
    for (int i = 0; i < 2; i++) amp_host_predict(net, image);
    COUNT_OF(c, amp_host_predict(net, image));
    show("predict", c);
    AT_MOST(2, c.waits); /* for the image, and for the output, which costs no more than the output alone */
    assert_int_equal(c.allocations, 0);
    assert_int_equal(c.frees, 0);
    assert_int_equal(c.uploads, 1);
    assert_int_equal(c.downloaded, sizeof(float) * (size_t)net->outputs * (size_t)net->batch);
    free(image);
    free_network(net);
}

/* ---- activation checkpointing ---- */

/* Nor poisons. */
static void nobody_looks(network *net) { net->amp->engine->observer = (amp_observer){ 0 }; }

/* A network's weights, and their sidecar. Frees the network. */
static char *saved_state(network *net, size_t *bytes)
{
    size_t of_sidecar;
    save_weights(net, "net.weights");
    free_network(net);
    char *state = file_bytes("net.weights", bytes), *sidecar = file_bytes("net.weights.amp", &of_sidecar);
    state = realloc(state, *bytes + of_sidecar);
    memcpy(state + *bytes, sidecar, of_sidecar);
    *bytes += of_sidecar;
    free(sidecar);
    unlink("net.weights");
    unlink("net.weights.amp");
    return state;
}

/* What three steps of a training leave, the second of which is skipped: its weights, and their sidecar.
 * change: NULL, or what is done with the network before each step. */
static char *training_state(const char *cfg, int segments, void (*change)(network *), size_t *bytes,
                            int *repeated)
{
    network *net = make(cfg);
    amp_recompute_settings settings = { .on = 1, .segments = segments };
    poison_arena poison;
    if (segments) net->amp->engine->settings.recompute = settings;
    poison_begin(&poison, net->amp->engine);
    for (unsigned i = 0; i < 3; i++) {
        amp_anomaly bad = { .found = 1, .pass = "forward", .tensor = "test" };
        if (i == 1) amp_engine_reject_step(net->amp->engine, &bad);
        if (change) change(net);
        srand(i); /* dropout's masks */
        train(net, 1, 10 * i);
    }
    assert_true((poison_end(&poison, net->amp->engine) > 0) == (change != nobody_looks));
    *repeated = net->amp->engine->active->again_count;
    return saved_state(net, bytes);
}

/* Whatever is computed again on a GPU, the same bytes come out, and nobody reads what was given up. */
TEST_WITH(checkpointing_ends_in_the_same_bytes, begin, end)
{
    const char *const cfgs[] = { SMALL_NET DETECTOR, SMALL_NET CLASSIFIER };
    for (int n = 0; n < 2; n++) {
        size_t plain_bytes, bytes;
        int repeated;
        char *plain = training_state(cfgs[n], 0, NULL, &plain_bytes, &repeated);
        assert_int_equal(repeated, 0);
        for (int segments = 1; segments <= 4; segments += 3) {
            char *state = training_state(cfgs[n], segments, NULL, &bytes, &repeated);
            assert_true(repeated > 0);
            assert_int_equal(bytes, plain_bytes);
            assert_memory_equal(state, plain, bytes);
            free(state);
        }
        free(plain);
    }
}

/* ---- a shortcut's sum where batch norm writes ---- */

/* The first two sums may be made there; what the third reads is read by the route as well. */
static const char residual_cfg[] = NET BN(8, 3) BN(4, 1) BN(8, 3)
    "[shortcut]\nfrom=-3\nactivation=linear\n" POOL
    "[convolutional]\nbatch_normalize=1\nfilters=8\nsize=1\nactivation=relu\n"
    "[shortcut]\nfrom=-2\nactivation=linear\n" BN(8, 1) "[shortcut]\nfrom=-2\nactivation=linear\n"
    "[route]\nlayers=-1,-2\n" LINEAR(6) "[avgpool]\n[softmax]\n";
enum { JOINED = 2 };

static amp_status look(void *context, amp_backend *b, const amp_seen *seen, amp_error *error)
{
    (void)b, (void)error;
    *(int *)context += seen->kind == AMP_SEEN_OUTPUT;
    return AMP_OK;
}

TEST_WITH(a_shortcut_is_added_where_batch_norm_writes, begin, end)
{
    network *net = make(residual_cfg);
    int outputs = 0, repeated;
    train(net, 2, 1);
    step_counts joined = count_step(net, 5);
    net->amp->engine->observer = (amp_observer){ &outputs, look };
    step_counts seen = count_step(net, 7);
    net->amp->engine->observer = (amp_observer){ 0 };
    show("forward", joined.forward);
    assert_int_equal(outputs, net->n * net->subdivisions);
    assert_int_equal(seen.forward.launches - joined.forward.launches, JOINED);
    assert_int_equal(seen.backward.launches, joined.backward.launches);
    free_network(net);
    for (int segments = 0; segments <= 4; segments += 2) {
        size_t bytes[2];
        char *state = training_state(residual_cfg, segments, NULL, &bytes[0], &repeated);
        char *alone = training_state(residual_cfg, segments, nobody_looks, &bytes[1], &repeated);
        assert_int_equal(repeated > 0, segments > 0);
        assert_int_equal(bytes[0], bytes[1]);
        assert_memory_equal(state, alone, bytes[0]);
        free(state);
        free(alone);
    }
}

/* ---- the benchmark's parts of a forward (bench/gpu_parts.c) ---- */

/* Its clock (--wrap=clock_gettime): a millisecond later at each look. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    static long looks;
    (void)clock;
    looks++;
    *now = (struct timespec){ looks / 1000, looks % 1000 * 1000000 };
    return 0;
}

/* Nobody else looks at the clock between the two looks around a copy. */
TEST_WITH(the_benchmark_times_the_copy_of_the_input, begin, end)
{
    network *net = make(yolo_cfg);
    gpu_parts found;
    train(net, 1, 10);
    gpu_parts_watch(net);
    net->train = 1;
    for (unsigned i = 0; i < 2; i++) {
        feed(net, i);
        gpu_parts_begin();
        forward_network(net);
        found = gpu_parts_take();
        assert_true(found.input == 2); /* images, labels */
    }
    free_network(net);
}

/* ---- page-locked input ---- */

TEST_WITH(the_input_is_page_locked_while_it_is_darknets, begin, end)
{
    network *net = make(yolo_cfg);
    float *image = calloc((size_t)net->inputs * (size_t)net->batch, sizeof *image), *own = net->input;
    amp_host_predict(net, own);
    assert_false(amp_cuda_registered(own)); /* no training is fed through it */
    for (int locked = 0; locked < 2; locked++) {
        amp_host_predict(net, image);
        net->input = image; /* as train_attention does */
        train(net, 1, 1);
        net->input = own;
        assert_false(amp_cuda_registered(image));
        assert_int_equal(amp_cuda_registered(own), locked);
        train(net, 1, 1);
        assert_true(amp_cuda_registered(own));
    }
    train(net, 1, 2);
    set_batch_network(net, 1);
    amp_host_predict(net, image);
    set_batch_network(net, 2);
    for (int size = 64; size >= 32; size -= 32) {
        resize_network(net, size, size);
        assert_false(amp_cuda_registered(net->input));
        train(net, 1, 3);
        assert_true(amp_cuda_registered(net->input));
    }
    own = net->input;
    free_network(net);
    assert_false(amp_cuda_registered(own));
    free(image);
}

TEST_WITH(each_network_has_its_own, begin, end)
{
    network *one = make(yolo_cfg), *two = make(resnet_cfg);
    for (unsigned i = 0; i < 2; i++) {
        train(one, 1, i);
        train(two, 1, i);
    }
    assert_true(amp_cuda_registered(one->input) && amp_cuda_registered(two->input));
    free_network(one);
    assert_true(amp_cuda_registered(two->input));
    train(two, 1, 9);
    free_network(two);
}

/* ---- images that take turns between two blocks of the GPU's ---- */

TEST_WITH(images_have_a_second_block_from_the_second_pass_on, begin, end)
{
    network *net = make(yolo_cfg);
    amp_host_pinned *p = &net->amp->memory->pinned;
    feed(net, 1);
    train_network_datum(net);
    assert_ptr_equal(amp_fork_image(net), net->input_gpu);
    assert_null(p->second);
    for (int i = 0; i < 4; i++) {
        feed(net, 1);
        train_network_datum(net);
        assert_ptr_equal(amp_fork_image(net), i % 2 ? net->input_gpu : p->second);
        amp_host_predict(net, net->input); /* which leaves it where the last pass was */
        assert_ptr_equal(amp_fork_image(net), i % 2 ? net->input_gpu : p->second);
    }
    free_network(net);
}

TEST_WITH(a_gpu_without_memory_for_it_trains_with_one_block, begin, end)
{
    network *net = make(yolo_cfg);
    for (int i = 0; i < 4; i++) {
        if (i == 1) amp_cuda_fail_call("cudaMalloc", 1, cudaErrorMemoryAllocation);
        feed(net, 1);
        train_network_datum(net);
        assert_ptr_equal(amp_fork_image(net), net->input_gpu);
    }
    assert_null(net->amp->memory->pinned.second);
    free_network(net);
}

static void have_one_block(network *net) { net->amp->memory->pinned.second_tried = 1; }
static void predict(network *net) { amp_host_predict(net, net->input); }
static void resize(network *net)
{
    int size = net->w;
    resize_network(net, 2 * size, 2 * size);
    resize_network(net, size, size);
}

/* Wherever the images lie, and however early they come, the same bytes come out. */
TEST_WITH(images_that_come_early_change_nothing, begin, end)
{
    void (*const changes[])(network *) = { NULL, predict, resize };
    const char *const cfgs[] = { SMALL_NET DETECTOR, SMALL_NET CLASSIFIER };
    for (int n = 0; n < 2; n++) {
        size_t plain_bytes, bytes;
        int repeated;
        char *plain = training_state(cfgs[n], 0, have_one_block, &plain_bytes, &repeated);
        for (int i = 0; i < 6; i++) {
            amp_cuda_copies_early(i / 3);
            char *state = training_state(cfgs[n], 0, changes[i % 3], &bytes, &repeated);
            amp_cuda_copies_early(0);
            assert_int_equal(bytes, plain_bytes);
            assert_memory_equal(state, plain, bytes);
            free(state);
        }
        free(plain);
    }
}

/* ---- passes that are recorded and repeated (graphs=1) ---- */

/* The call that fails in the second step: the nth from its first forward, or from that's backward. */
typedef struct fault { const char *call; int nth, in_backward; } fault;

static amp_cuda_backend *backend_of(network *net)
{
    return amp_cuda_of(net->amp->engine->backend);
}

/* scratch: what there was is gone, so that it grows in the pass. */
static void arm(network *net, const fault *f)
{
    amp_cuda_backend *cuda = backend_of(net);
    if (!strcmp(f->call, "cuDNN")) {
        cudnn_double.fail_at = cudnn_double.calls + f->nth;
        cudnn_double.failure = CUDNN_STATUS_EXECUTION_FAILED;
    } else if (!strcmp(f->call, "scratch")) {
        cuda->base.release(&cuda->base, cuda->scratch);
        cuda->scratch = NULL;
        cuda->scratch_bytes = 0;
    } else {
        amp_cuda_fail_call(f->call, f->nth, cudaErrorUnknown);
    }
}

static void grow_scratch(network *net)
{
    amp_error error;
    void *memory;
    amp_cuda_backend *cuda = backend_of(net);
    assert_int_equal(amp_cuda_scratch(&cuda->base, cuda->scratch_bytes + 1, &memory, &error), AMP_OK);
}

/* Steps, in which the loss scale grows and the fourth is skipped; change: what is done before the sixth. */
static char *steps_with(const char *cfg, unsigned steps, const fault *f, void (*change)(network *),
                        size_t *bytes, amp_cuda_counts *counts)
{
    network *net = make(cfg);
    amp_cuda_counts before = amp_cuda_counted();
    for (unsigned i = 0; i < steps; i++) {
        amp_anomaly bad = { .found = 1, .pass = "forward", .tensor = "test" };
        if (i == 3) amp_engine_reject_step(net->amp->engine, &bad);
        if (i == 5 && change) change(net);
        for (int k = 0; k < net->subdivisions; k++) {
            int fails = f && i == 1 && !k;
            feed(net, 10 * i + (unsigned)k);
            *net->seen += (size_t)net->batch;
            net->train = 1;
            if (fails && !f->in_backward) arm(net, f);
            forward_network(net);
            if (fails && f->in_backward) arm(net, f);
            backward_network(net);
        }
        update_network(net);
    }
    *counts = minus(amp_cuda_counted(), before);
    return saved_state(net, bytes);
}

#define GROWING SMALL_NET "growth_interval=2\n"
#define GRAPHS "[amp]\namp=1\ngraphs=1\n"
static const char *const without[] = { GROWING DETECTOR, GROWING "[amp]\namp=1\ncheckpoint=4\n" DETECTOR };
static const char *const recorded[] = { GROWING GRAPHS DETECTOR, GROWING GRAPHS "checkpoint=4\n" DETECTOR };

TEST_WITH(recorded_passes_end_in_the_same_bytes, begin, end)
{
    void (*const changes[])(network *) = { NULL, predict, resize, have_one_block, grow_scratch };
    for (int n = 0; n < 2; n++) {
        amp_cuda_counts c, plain_c;
        size_t bytes, plain_bytes;
        char *plain = steps_with(without[n], 8, NULL, NULL, &plain_bytes, &plain_c);
        assert_int_equal(plain_c.recorded + plain_c.graphs, 0);
        for (int i = 0; i < 5; i++) {
            heard h = listen_to(2);
            char *state = steps_with(recorded[n], 8, NULL, changes[i], &bytes, &c), *text = end_listening(h);
            print_message("recorded %ld, repeated %ld, kernels %ld, without %ld\n", c.recorded,
                          c.graphs - c.recorded, c.launches, plain_c.launches);
            assert_int_equal(bytes, plain_bytes);
            assert_memory_equal(state, plain, bytes);
            assert_null(strstr(text, "no graphs"));
            assert_true(c.recorded > 0 && c.graphs > c.recorded);
            free(state);
            free(text);
        }
        free(plain);
    }
}

/* Nothing of a pass whose recording fails was done: it is made as ever, and so are all later ones. */
TEST_WITH(a_recording_that_fails_costs_nothing_but_itself, begin, end)
{
    static const fault faults[] = {
        { "cudaStreamBeginCapture", 1, 0 }, { "cudaStreamEndCapture", 1, 0 },
        { "cudaGraphInstantiate", 1, 0 },
        { "cudaGraphLaunch", 1, 0 }, { "launch", 9, 0 }, { "cudaStreamBeginCapture", 1, 1 },
        { "cudaStreamEndCapture", 1, 1 }, { "cudaGraphInstantiate", 1, 1 }, { "cudaGraphLaunch", 1, 1 },
        { "launch", 9, 1 }, { "launch", 25, 1 }, { "cudaGraphLaunch", 3, 0 },
        { "scratch", 1, 0 },
        { "cuDNN", 2, 0 }, { "cuDNN", 2, 1 } }; /* whose engine keeps its place */
    for (int n = 0; n < 2; n++) {
        amp_cuda_counts c;
        size_t bytes, plain_bytes;
        char *plain = steps_with(without[n], 3, NULL, NULL, &plain_bytes, &c);
        for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
            if (n && !faults[i].in_backward) continue; /* forward is as without checkpoints */
            heard h = listen_to(2);
            char *state = steps_with(recorded[n], 3, &faults[i], NULL, &bytes, &c), *text = end_listening(h);
            const char *line = strstr(text, "amp: graphs=1: graphs failed, and this training continues "
                                            "without them: ");
            if (!line) fail_msg("%s %d: %s", faults[i].call, faults[i].nth, text);
            assert_null(strstr(strchr(line, '\n'), "graphs"));
            assert_int_equal(bytes, plain_bytes);
            assert_memory_equal(state, plain, bytes);
            free(state);
            free(text);
        }
        free(plain);
    }
}

TEST_WITH(a_step_of_recorded_passes, begin, end)
{
    network *net = make(NET GRAPHS DETECTOR);
    train(net, 3, 10);
    step_counts c = count_step(net, 50);
    check_any_step(net, &c);
    assert_int_equal(c.forward.graphs + c.backward.graphs, 2);
    assert_int_equal(c.forward.recorded + c.backward.recorded + c.update.graphs, 0);
    assert_int_equal(c.forward.launches + c.backward.launches, 0);
    assert_int_equal(c.forward.library + c.backward.library, 0);
    check_detector_waits(&c);
    free_network(net);
}

/* A whole step of 64 images, as a training makes it, after passes that allocate, record with one block of
 * images, and record with the other. */
static amp_cuda_counts count_64_images(const char *layers, int passes, int graphs)
{
    char cfg[8192];
    amp_cuda_counts c;
    snprintf(cfg, sizeof cfg, "[net]\nbatch=64\nsubdivisions=%d\nlearning_rate=0.001\nmomentum=0.9\n"
             "max_batches=1000\ninit_scale=8\nwidth=16\nheight=16\nchannels=3\n%s", passes, layers);
    network *net = make(cfg);
    train(net, passes > 1 && !graphs ? 1 : 3, 10);
    COUNT_OF(c, train(net, 1, 500));
    print_message("%d images a pass: ", 64 / passes);
    show("step", c);
    print_message("graphs launched %ld, recorded %ld\n", c.graphs, c.recorded);
    free_network(net);
    return c;
}

/* What a pass takes does not depend on how many images it has, except for their own bytes. */
TEST_WITH(a_step_of_64_images_in_passes_of_4_8_and_64, begin, end)
{
    static const struct { const char *layers; int graphs; } networks[] = {
        { DETECTOR, 0 }, { GRAPHS DETECTOR, 1 }, { CLASSIFIER, 0 } };
    static const int passes[3] = { 16, 8, 1 };
    for (int n = 0; n < 3; n++) {
        amp_cuda_counts c[3];
        for (int i = 0; i < 3; i++) {
            c[i] = count_64_images(networks[n].layers, passes[i], networks[n].graphs);
            assert_int_equal(c[i].allocations + c[i].frees + c[i].questions + c[i].recorded, 0);
            assert_int_equal(c[i].graphs, networks[n].graphs * 2 * passes[i]);
        }
#define EACH_PASS_TAKES_THE_SAME(count) \
        assert_int_equal((c[0].count - c[1].count) * 7, (c[1].count - c[2].count) * 8)
        EACH_PASS_TAKES_THE_SAME(waits);
        EACH_PASS_TAKES_THE_SAME(launches);
        EACH_PASS_TAKES_THE_SAME(library);
        EACH_PASS_TAKES_THE_SAME(uploads);
        EACH_PASS_TAKES_THE_SAME(downloads);
        assert_int_equal(c[0].uploaded, c[2].uploaded);
        assert_int_equal(c[1].uploaded, c[2].uploaded);
    }
}

TEST_WITH(what_keeps_passes_from_being_recorded_is_told_once, begin, end)
{
    static const struct { const char *cfg, *line; } cases[] = {
        { NET GRAPHS CLASSIFIER, "layer 10 [dropout] draws random numbers\n" },
        { NET GRAPHS BN(8, 3) LINEAR(6) "[avgpool]\n[softmax]\n",
          "layer 3 [softmax] is not computed by AMP\n" },
        { NET GRAPHS "debug=1\n" DETECTOR, "debug=1 looks at each layer\n" },
        { NET GRAPHS DETECTOR, "a profiler marks each layer\n" },
        { NET GRAPHS DETECTOR, "ranks add up their gradients during backward\n" } };
    enum { PROFILED = 3, RANKS };
    for (int i = 0; i < 5; i++) {
        char line[160];
        amp_comm comm = { .size = 2 };
        amp_cuda_counts c;
        if (i == PROFILED) setenv("AMP_CUDA_RANGES", "1", 1);
        heard h = listen_to(2);
        network *net = make(cases[i].cfg);
        unsetenv("AMP_CUDA_RANGES");
        if (i == RANKS) amp_parallel_join(&net->amp->engine->parallel, &comm, AMP_FP32, 1, 0);
        net->train = 1;
        for (int k = 0; k < 3; k++) {
            feed(net, 1);
            *net->seen += (size_t)net->batch;
            COUNT_OF(c, forward_network(net));
            if (i != RANKS) backward_network(net);
        }
        free_network(net);
        char *text = end_listening(h);
        snprintf(line, sizeof line, "amp: graphs=1: no graphs: %s", cases[i].line);
        const char *at = strstr(text, line);
        if (!at) fail_msg("%d: %s", i, text);
        assert_null(strstr(strchr(at, '\n'), "graphs"));
        assert_int_equal(c.graphs, 0);
        free(text);
    }
}

/* Two steps; the losses. cannot: what cudaHostRegister is to return. */
static void losses_of(cudaError_t cannot, float losses[4])
{
    network *net = make(resnet_cfg);
    if (cannot) amp_cuda_fail_call("cudaHostRegister", 1, cannot);
    for (unsigned i = 0; i < 4; i++) {
        feed(net, i);
        losses[i] = train_network_datum(net);
    }
    assert_int_equal(amp_cuda_registered(net->input), cannot == cudaSuccess);
    free_network(net);
}

TEST_WITH(a_machine_that_refuses_is_told_of_once, begin, end)
{
    static const char line[] = "cannot be page-locked (cudaHostRegister: cudaErrorNotSupported)";
    float locked[4], unlocked[4];
    losses_of(cudaSuccess, locked);
    heard h = listen_to(2);
    losses_of(cudaErrorNotSupported, unlocked);
    losses_of(cudaErrorMemoryAllocation, unlocked);
    char *text = end_listening(h);
    assert_memory_equal(locked, unlocked, sizeof locked);
    char *first = strstr(text, line);
    assert_non_null(first);
    assert_null(strstr(first + sizeof line, "page-locked"));
    free(text);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0); /* Darknet aborts after it has printed what went wrong */
    return run_listed_tests("tests", enter_folder, leave_folder);
}
