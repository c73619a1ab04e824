/* Every layer kind, forward and backward, against stock Darknet.
 *
 * Each file of tests/cfg is built twice in this process: once with AMP off, which is stock's code, and once through the
 * engine, from the same weights, fed the same image and truth. Compared are the cost, the output of the network, every
 * parameter's gradient, and the gradient of the image, which every layer of the network has passed on. Under dtype fp32
 * they agree to 1e-4 of the tensor's norm; under bf16 and fp16 to what the format carries.
 *
 * Where stock's own CPU code leaves a layer out (pjreddie_gaps.h), the same replacement runs on both sides; its own
 * correctness is test_gaps.c's and test_gaps_recurrent.c's subject. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/host.h"
#include "host/pjreddie_gaps.h"
#include "tensor/half.h"
#include "network.h"

/* tests/cfg, beside this file; layers that name files (trees) name them from there. */
static const char *cfg_folder(void)
{
    static char folder[1024];
    snprintf(folder, sizeof folder, "%s", __FILE__);
    char *slash = strrchr(folder, '/');
    snprintf(slash ? slash + 1 : folder, sizeof folder - (size_t)(slash ? slash + 1 - folder : 0), "cfg");
    return folder;
}

static network *load(const char *cfg, const char *dtype)
{
    char *argv[] = { "darknet", "-amp", (char *)dtype, NULL };
    darknet_amp_arguments(3, argv);
    srand(42);
    return parse_network_cfg((char *)cfg);
}

/* Stock's functions by layer, behind the replacements for what stock leaves out on the CPU. */
static void (*stock_forward[64])(layer, network), (*stock_backward[64])(layer, network);

static void forward_completed(layer l, network net)
{
    l.forward = stock_forward[net.index];
    amp_gap_forward(l, net);
}

static void backward_completed(layer l, network net)
{
    l.backward = stock_backward[net.index];
    amp_gap_backward(l, net);
}

static void complete_stock(network *net)
{
    for (int i = 0; i < net->n && i < 64; i++) {
        layer *l = &net->layers[i];
        assert_true(amp_gap_prepare(l));
        if (l->type == CROP) l->delta = calloc((size_t)l->outputs * l->batch, sizeof(float)); /* a route to it crashes stock */
        stock_forward[i] = l->forward;
        stock_backward[i] = l->backward;
        l->forward = forward_completed;
        l->backward = backward_completed;
    }
}

static float noise(unsigned *state) { *state = *state * 1664525u + 1013904223u; return (float)(*state >> 8) / 16777216.0f; }

/* An image in [0,1), and a truth that every loss layer can read: boxes for detectors, numbers elsewhere. */
static void feed(network *net, float *image, float *truth)
{
    unsigned state = 7;
    layer last = net->layers[net->n - 1];
    for (int i = 0; i < net->inputs * net->batch; i++) image[i] = noise(&state);
    for (int i = 0; i < net->truths * net->batch; i++) truth[i] = noise(&state);
    if (last.type == YOLO || last.type == REGION) {
        for (int b = 0; b < net->batch; b++) {
            float *t = truth + b * net->truths;
            memset(t, 0, (size_t)net->truths * sizeof *t);
            for (int k = 0; k < 2; k++) {
                float *box = t + k * 5;
                box[0] = .2f + .6f * noise(&state); box[1] = .2f + .6f * noise(&state);
                box[2] = .2f + .3f * noise(&state); box[3] = .2f + .3f * noise(&state);
                box[4] = (float)(k % last.classes);
            }
        }
    } else if (last.type == DETECTION) {
        int cell = 1 + last.coords + last.classes;
        for (int c = 0; c < net->batch * last.side * last.side; c++) {
            float *t = truth + c * cell;
            memset(t, 0, (size_t)cell * sizeof *t);
            if (c % 3) continue;
            t[0] = 1;
            t[1 + c % last.classes] = 1;
            for (int k = 0; k < last.coords; k++) t[1 + last.classes + k] = .3f + .4f * noise(&state);
        }
    } else if (last.type == ISEG) {
        int plane = last.w * last.h;
        for (int b = 0; b < net->batch; b++) {
            float *t = truth + b * last.truths;
            for (int k = 0; k < 90; k++) t[k * (plane + 1)] = -1;
            for (int k = 0; k < 2; k++) {
                t[k * (plane + 1)] = (float)(k % last.classes);
                for (int p = 0; p < plane; p++) t[k * (plane + 1) + 1 + p] = (float)(p % 2 == k);
            }
        }
    }
}

static void run(network *net, float *image_delta)
{
    float *own = net->input;
    net->train = 1;
    net->delta = image_delta;
    srand(11); /* dropout */
    forward_network(net);
    backward_network(net);
    net->delta = NULL;
    net->input = own;
}

/* |a - b| / max(|b|, floor); any non-finite number is a failure of its own. */
static double distance(const float *a, const float *b, size_t count, double floor)
{
    double difference = 0, size = 0;
    for (size_t i = 0; i < count; i++) {
        if (!amp_is_finite(a[i]) || !amp_is_finite(b[i])) return HUGE_VAL;
        difference += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        size += (double)b[i] * b[i];
    }
    size = sqrt(size);
    if (size < floor) size = floor;
    return size > 0 ? sqrt(difference) / size : sqrt(difference);
}

/* Root mean square. */
static double typical(const float *a, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += (double)a[i] * a[i];
    return sqrt(sum / (double)count);
}

typedef struct worst { double distance; char what[160]; } worst;

static void note(worst *w, double distance, const char *cfg, const char *what, int layer)
{
    if (distance <= w->distance) return;
    w->distance = distance;
    snprintf(w->what, sizeof w->what, "%s: %s of layer %d", cfg, what, layer);
}

static void copy_params(network *from, network *to)
{
    amp_error error;
    amp_network_desc a, b;
    amp_config config = { 0 };
    assert_int_equal(amp_host_describe(from, &config, &a, &error), AMP_OK);
    assert_int_equal(amp_host_describe(to, &config, &b, &error), AMP_OK);
    for (int i = 0; i < a.count; i++) {
        for (int k = 0; k < a.layers[i].param_count; k++)
            memcpy(b.layers[i].params[k].master, a.layers[i].params[k].master, a.layers[i].params[k].count * sizeof(float));
    }
    amp_network_desc_free(&a);
    amp_network_desc_free(&b);
}

static int compare(const char *folder, const char *cfg, const char *dtype, worst *w)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, cfg);
    network *stock = load(path, "off"), *ours = load(path, dtype);
    assert_null(stock->amp);
    assert_non_null(ours->amp);
    copy_params(stock, ours);
    darknet_amp_weights_changed(ours);
    complete_stock(stock);
    size_t pixels = (size_t)stock->inputs * stock->batch;
    float *delta_stock = calloc(pixels, sizeof(float)), *delta_ours = calloc(pixels, sizeof(float));
    feed(stock, stock->input, stock->truth);
    memcpy(ours->input, stock->input, pixels * sizeof(float));
    memcpy(ours->truth, stock->truth, (size_t)stock->truths * stock->batch * sizeof(float));
    amp_scaler scaler = *amp_engine_scaler(ours->amp->engine);
    if (scaler.dynamic) scaler.scale = 256; /* as after some backoffs: 65536 overflows fp16 in most of these */
    amp_engine_set_scaler(ours->amp->engine, &scaler);
    run(stock, delta_stock);
    run(ours, delta_ours);

    *w = (worst){ 0 };
    note(w, fabs(*ours->cost - *stock->cost) / (fabs(*stock->cost) + 1e-12), cfg, "cost", stock->n - 1);
    note(w, distance(ours->output, stock->output, (size_t)stock->outputs * stock->batch, 0), cfg, "output", stock->n - 1);
    float scale = amp_engine_scaler(ours->amp->engine)->scale;
    for (size_t i = 0; i < pixels; i++) delta_ours[i] /= scale;
    note(w, distance(delta_ours, delta_stock, pixels, 0), cfg, "the image's gradient", 0);

    amp_error error;
    amp_network_desc described;
    amp_config config = { 0 };
    assert_int_equal(amp_host_describe(stock, &config, &described, &error), AMP_OK);
    int count, at = 0, nonzero = 0;
    const amp_param *params = amp_engine_params(ours->amp->engine, &count);
    for (int i = 0; i < described.count; i++) {
        double weights = 0;
        for (int k = 0; k < described.layers[i].param_count; k++, at++) {
            const amp_param_desc *d = &described.layers[i].params[k];
            for (size_t e = 0; e < d->count; e++) params[at].grad[e] /= scale;
            /* A bias in front of a batch norm has gradient 0 but for rounding; so biases and scales are held against the
             * size of their weights' gradient, where that is larger. */
            if (d->decays) weights = typical(*d->gradient_slot, d->count);
            note(w, distance(params[at].grad, *d->gradient_slot, d->count, weights * sqrt((double)d->count)), cfg, d->name, i);
            for (size_t e = 0; e < d->count && !nonzero; e++) nonzero = (*d->gradient_slot)[e] != 0;
        }
    }
    assert_int_equal(at, count);
    amp_network_desc_free(&described);
    free(delta_stock);
    free(delta_ours);
    free_network(stock);
    free_network(ours);
    return nonzero;
}

static int is_cfg(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > 4 && !strcmp(entry->d_name + length - 4, ".cfg");
}

static void compare_all(const char *dtype, double tolerance)
{
    struct dirent **files;
    int failures = 0, count = scandir(cfg_folder(), &files, is_cfg, alphasort);
    assert_true(count > 0);
    for (int i = 0; i < count; i++) {
        worst w;
        const char *only = getenv("PARITY_ONLY");
        if (!only || strstr(files[i]->d_name, only)) {
            int learns = compare(cfg_folder(), files[i]->d_name, dtype, &w);
            int bad = !(w.distance <= tolerance);
            failures += bad;
            print_message("%-4s %-34s %.2e%s %s%s\n", dtype, files[i]->d_name, w.distance, bad ? " FAR" : "", w.what, learns ? "" : " (no parameter learns)");
        }
        free(files[i]);
    }
    free(files);
    assert_int_equal(failures, 0);
}

static void fp32_agrees_with_stock(void **state) { (void)state; compare_all("fp32", 1e-4); }
static void bf16_agrees_with_stock(void **state) { (void)state; compare_all("bf16", 16 * 0x1p-8); }
static void fp16_agrees_with_stock(void **state) { (void)state; compare_all("fp16", 16 * 0x1p-11); }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fp32_agrees_with_stock),
        cmocka_unit_test(bf16_agrees_with_stock),
        cmocka_unit_test(fp16_agrees_with_stock),
    };
    if (chdir(cfg_folder())) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
