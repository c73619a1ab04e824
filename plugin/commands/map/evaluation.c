/* Measures a network on images: see evaluation.h. */
#include "evaluation.h"

#include "../../amp/cfg_text.h"
#include "../../host/network/state.h"
#include "../../host/network/weights_check.h"
#include "../../host/program/clock.h"
#include "../../host/program/cfg.h"
#include "../../host/program/failure.h"
#include "../../host/program/turns.h"
#include "../../host/training/loop.h"

#include <string.h>
#include <unistd.h>

/* The shortest turn (host/program/turns.h). Passing a turn on takes as long as a small network takes for an
 * image. */
static const double TURN_SECONDS = .2;

/* Loads the weights of all layers: Darknet would initialize missing ones at random. */
static amp_status load_all_weights(struct network *net, const char *file, amp_error *error)
{
    int held, layers = amp_fork_view(net).layers;
    AMP_TRY(amp_check_weights_size(net, file, 0, layers, &held, error));
    if (held < layers)
        return amp_fail(error, AMP_BAD_CONFIG, "%s: ends before the weights of layer %d: it was truncated, "
                        "or holds only a network's first layers, as pretrained weights do", file, held);
    amp_fork_load_weights(net, file);
    return amp_check_weights_sense(net, file, error);
}

amp_status amp_evaluation_open(const char *cfg, const char *weights, struct network **out, amp_error *error)
{
    cfg_document *document;
    AMP_TRY(amp_cfg_document(cfg, &document, error)); /* Darknet's parser would end the program */
    amp_document_give_back(document);
    *out = amp_fork_make_network(cfg, cfg, 1);
    amp_status status = load_all_weights(*out, weights, error);
    if (status != AMP_OK) amp_fork_free_network(*out);
    return status;
}

amp_status amp_check_channels(const struct network *net, amp_error *error)
{
    int c = amp_fork_view(net).c, classifier = amp_fork_box_classes(net) < 0;
    if (amp_fork_loads_channels(c, classifier)) return AMP_OK;
    return amp_fail(error, AMP_BAD_CONFIG, "the network has channels=%d, but `%s train` does not load "
                    "images with that number of channels", c, classifier ? "classifier" : "detector");
}

static amp_status measure_all(struct network *net, const amp_evaluation *e, amp_evaluated *out,
                              amp_error *error)
{
    amp_view view = amp_fork_view(net);
    int progress = isatty(STDERR_FILENO);
    double turn_began = 0;
    size_t count = e->images->count;
    amp_status status = AMP_OK;
    struct amp_image_loader *loader = amp_image_loader_start(e->images, view.w, view.h, view.c, e->fit);
    for (size_t i = 0; status == AMP_OK && i < count; i++) {
        amp_loaded_image image = amp_image_loader_next(loader);
        if (image.fitted) {
            status = e->measure(e->context, net, (int)i, &image, error);
            out->images++;
        } else { /* stb_image's message may contain raw bytes of a PNG */
            cfg_printable(image.failure, sizeof image.failure, image.failure);
            amp_host_print("%s; it is left out", image.failure);
            amp_lines_add(&out->unreadable, "%s", image.failure);
        }
        free(image.fitted);
        /* During a training the turn is passed on after each step, not here. */
        if (status == AMP_OK && !amp_training_runs() && amp_clock_seconds() - turn_began >= TURN_SECONDS) {
            if (amp_turns_yield("image %zu of %zu", i + 1, count))
                status = amp_fail(error, AMP_IO_FAILED, "stopped after %zu of %zu images; nothing was "
                                                        "measured", i + 1, count);
            turn_began = amp_clock_seconds();
        }
        if (progress) fprintf(stderr, "\r%zu of %zu images", i + 1, count);
    }
    if (progress) fputs("\r\033[K", stderr);
    amp_image_loader_stop(loader);
    return status;
}

amp_status amp_evaluate(struct network *net, const amp_evaluation *e, amp_evaluated *out, amp_error *error)
{
    double start = amp_clock_seconds();
    int batch = amp_fork_view(net).batch;
    *out = (amp_evaluated){ 0 };
    AMP_TRY(amp_check_channels(net, error));
    if (amp_fork_state(net)) amp_fork_state(net)->measures = 1;
    amp_fork_set_batch(net, 1);
    amp_status status = measure_all(net, e, out, error);
    amp_fork_set_batch(net, batch);
    out->seconds = amp_clock_seconds() - start;
    if (status != AMP_OK || out->images || e->is_a_share) return status;
    return amp_fail(error, AMP_BAD_CONFIG, "none of the %zu validation images can be read; the first: %s",
                    out->unreadable.count,
                    out->unreadable.count ? out->unreadable.line[0] : "the list is empty");
}
