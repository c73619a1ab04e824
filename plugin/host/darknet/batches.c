/* Loads batches with Darknet's own loaders, which get the arguments of train_detector or train_classifier.
 * First rejects files with which these two would crash or end the program with status 0. */
#include "../data/data_check.h"
#include "../program/failure.h"
#include "data.h"
#include "own.h"
#include "tree.h"

struct amp_batches {
    const char *data_file;
    amp_lines paths, labels;
    load_args args;
    data buffer, batch; /* buffer: being loaded; batch: being trained on */
    pthread_t thread;
    int loading;
    int inputs, truths;
};

/* Numbers of loader threads in Darknet's own training commands. Each thread has its own random generator, so
 * a different number of threads would load different images. */
enum { DETECTOR_THREADS = 64, CLASSIFIER_THREADS = 32 };

static void prepare_detector(load_args *args, network *net, const layer *last)
{
    amp_own_detector_args(net, last, args);
    args->type = DETECTION_DATA;
    args->classes = last->classes;
    args->jitter = last->jitter;
    if (!args->threads) args->threads = DETECTOR_THREADS;
}

#ifdef AMP_OWN_CLASSIFIERS
static amp_status read_hierarchy(const char *file, network *net, amp_error *error)
{
    if (!file) return AMP_OK;
    FILE *opened = amp_open_to_read(file, "the classes' tree", error);
    if (!opened) return AMP_BAD_CONFIG;
    fclose(opened);
    net->hierarchy = read_tree((char *)file);
    return AMP_OK;
}

static amp_status prepare_classifier(amp_batches *b, const amp_data_file *file, network *net,
                                     amp_error *error)
{
    int classes = file->classes ? file->classes : 2; /* the default in train_classifier */
    AMP_TRY(read_hierarchy(file->tree, net, error));
    amp_own_classifier_args(net, &b->args);
    b->args.type = file->tag ? TAG_DATA : CLASSIFICATION_DATA;
    b->args.classes = classes;
    b->args.hierarchy = net->hierarchy;
    b->args.threads = CLASSIFIER_THREADS;
    if (classes != net->truths)
        return amp_fail(error, AMP_BAD_CONFIG, "%.500s: classes=%d, but the network has %d", b->data_file,
                        classes, net->truths);
    if (file->tag) return AMP_OK;
    AMP_TRY(amp_check_labels(file, classes, &b->labels, error));
    b->args.labels = b->labels.line;
    return AMP_OK;
}
#endif

static amp_status prepare(amp_batches *b, const amp_data_file *file, network *net, amp_error *error)
{
    const layer *last = &net->layers[net->n - 1];
    if (!file->train)
        return amp_fail(error, AMP_BAD_CONFIG, "%.500s: `train = FILE` is missing; FILE must list the "
                        "training images", b->data_file);
    AMP_TRY(amp_paths_read(file->train, "the list of training images", &b->paths, error));
    switch (last->type) {
    case AMP_OWN_DETECTORS: prepare_detector(&b->args, net, last); break;
#ifdef AMP_OWN_CLASSIFIERS
    case AMP_OWN_CLASSIFIERS: AMP_TRY(prepare_classifier(b, file, net, error)); break;
#endif
    default:
        return amp_fail(error, AMP_UNSUPPORTED,
                        "a network must end in yolo or region (a detector), or in softmax, logistic or "
                        "cost (a classifier): batches for other networks cannot be loaded");
    }
    b->args.paths = b->paths.line;
    b->args.m = (int)b->paths.count;
    b->args.n = net->batch * net->subdivisions;
    b->args.d = &b->buffer;
    return AMP_OK;
}

static void start(amp_batches *b)
{
    b->thread = load_data(b->args);
    b->loading = 1;
}

amp_status amp_batches_open(const char *data_file, struct network *net, amp_batches **out, amp_error *error)
{
    *out = NULL;
    amp_batches *b = amp_allocated(calloc(1, sizeof *b));
    b->data_file = data_file;
    b->inputs = net->inputs;
    b->truths = net->truths;
    amp_data_file file;
    amp_status status = amp_data_file_read(data_file, &file, error);
    if (status == AMP_OK) status = prepare(b, &file, net, error);
    amp_data_file_free(&file);
    if (status != AMP_OK) {
        amp_batches_close(b);
        return status;
    }
    start(b);
    *out = b;
    return AMP_OK;
}

static void drop_batch(amp_batches *b)
{
    free_data(b->batch);
    b->batch = (data){ 0 };
}

amp_status amp_batches_next(amp_batches *b, int last, amp_error *error)
{
    drop_batch(b);
    pthread_join(b->thread, 0);
    b->loading = 0;
    b->batch = b->buffer;
    int inputs = b->batch.X.cols, truths = b->batch.y.cols;
    if (inputs != b->inputs || truths != b->truths)
        return amp_fail(error, AMP_BAD_CONFIG,
                        "%.500s: an image has %d numbers, but the network takes %d; its labels have %d "
                        "numbers, but the network takes %d; check classes, and channels in the .cfg",
                        b->data_file, inputs, b->inputs, truths, b->truths);
    if (!last) start(b);
    return AMP_OK;
}

void amp_batches_put(amp_batches *b, struct network *net, int pass)
{
    get_next_batch(b->batch, net->batch, pass * net->batch, net->input, net->truth);
}

void amp_batches_close(amp_batches *b)
{
    if (!b) return;
    if (b->loading) {
        pthread_join(b->thread, 0);
        free_data(b->buffer);
    }
    amp_own_end_loading(&b->args);
    drop_batch(b);
    amp_lines_free(&b->paths);
    amp_lines_free(&b->labels);
    free(b);
}
