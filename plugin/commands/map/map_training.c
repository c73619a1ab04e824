/* `detector train ... -map [N]`: measures mAP on the .data file's `valid` images every N iterations, like
 * AlexeyAB's -map, on the network that is being trained. The network's state and the random generators do not
 * change, so -map does not change the trained weights. Each measurement is a row of BACKUP/NAME_map.csv, from
 * which a resumed training reads the best mAP. The best weights are saved as NAME_best.weights. */
#include "../../host/program/clock.h"
#include "../../host/program/exchange.h"
#include "../../host/program/failure.h"
#include "../../host/program/ranks.h"
#include "../../host/program/program.h"
#include "../../host/training/log_file.h"
#include "../../host/training/loop.h"
#include "../../include/darknet_amp.h"
#include "map_measure.h"
#include "map_training.h"

#include <string.h>

enum { LEAST_ITERATIONS = 100, NAME_BYTES = 4096, ROW_BYTES = 128 };

/* One measurement. map: mAP at the IoU of -iou_thresh. */
typedef struct measured { long iteration; double map, map50_95; } measured;

/* One static object is enough: a program runs one training loop, in its main thread. */
static struct {
    struct network *net; /* NULL: -map was not given */
    amp_detection_data data;
    char header[64];    /* the header of NAME_map.csv, such as iteration,map50,map50_95 */
    long every, last;   /* every: iterations from one measurement to the next; last: the latest
                           iteration that amp_map_step saw */
    measured best;      /* the best measurement; iteration 0: none yet */
    long age;           /* number of measurements since the best one */
    measured now;       /* the latest step's measurement; iteration 0: that step measured nothing */
    amp_log_file file;
    char best_file[NAME_BYTES];
} map = { .file = { .descriptor = -1 } };

/* ---- rows of NAME_map.csv ---- */

typedef struct rows_so_far { long iteration, last, age; size_t kept; measured best; } rows_so_far;

static void write_row(const measured *m, char text[ROW_BYTES])
{
    snprintf(text, ROW_BYTES, "%ld,%.17g,%.17g", m->iteration, m->map, m->map50_95);
}

static amp_status see_row(void *context, const char *text, amp_error *error)
{
    rows_so_far *so_far = context;
    measured m;
    char again[ROW_BYTES] = "";
    int fields = sscanf(text, "%ld,%lf,%lf", &m.iteration, &m.map, &m.map50_95);
    if (fields == 3) write_row(&m, again);
    if (fields != 3 || strcmp(again, text) || m.iteration <= so_far->last)
        return amp_fail(error, AMP_BAD_CONFIG, "'%.80s' is not a row of -map's measurements; expected: %s",
                        text, map.header);
    so_far->last = m.iteration;
    if (m.iteration > so_far->iteration) return AMP_OK;
    so_far->kept++;
    so_far->age++;
    if (so_far->best.iteration && m.map <= so_far->best.map) return AMP_OK;
    so_far->best = m;
    so_far->age = 0;
    return AMP_OK;
}

static size_t rows_to_keep(void *context) { return ((const rows_so_far *)context)->kept; }

/* ---- when ---- */

/* Returns the next iteration after this one at which mAP is measured; 0: none. */
static long next_after(long iteration)
{
    amp_view net = amp_fork_view(map.net);
    long next = (iteration / map.every + 1) * map.every;
    if (next < net.burn_in) next = (net.burn_in + map.every - 1) / map.every * map.every;
    if (net.max_batches > 0 && next > net.max_batches) next = net.max_batches;
    return next > iteration ? next : 0;
}

static void print_next(long iteration)
{
    long next = next_after(iteration);
    if (next) printf("; next at iteration %ld\n", next);
    else printf("\n");
}

/* ---- measuring ---- */

/* Measures at the .cfg's input size, because random=1 changes the network's size during training. */
static amp_status measure_at_cfg_size(amp_map_result *result, amp_error *error)
{
    amp_view now = amp_fork_view(map.net);
    int cfg_w, cfg_h;
    amp_map_request request = amp_map_usual_request();
    request.iou = amp_this_program()->map.iou;
    request.confidence = (float)amp_this_program()->map.confidence;
    amp_training_input(&cfg_w, &cfg_h);
    int moved = now.w != cfg_w || now.h != cfg_h;
    if (moved) amp_fork_resize(map.net, cfg_w, cfg_h);
    amp_status status = amp_map_measure(map.net, &map.data, &request, result, error);
    if (moved) amp_fork_resize(map.net, now.w, now.h);
    return status;
}

static void keep(const measured *m, const amp_map_result *result)
{
    char row[ROW_BYTES];
    map.now = *m;
    int is_best = map.best.iteration == 0 || m->map > map.best.map;
    map.age++;
    if (is_best) map.best = *m, map.age = 0;
    amp_map_print_precision(result);
    printf(" mean average precision (mAP@%0.2f) = %.6f at iteration %ld, best = %.6f at iteration %ld",
           result->request.iou, m->map, m->iteration, map.best.map, map.best.iteration);
    print_next(m->iteration);
    if (is_best) amp_fork_save_weights(map.net, map.best_file);
    write_row(m, row);
    amp_log_file_add(&map.file, row);
}

static void measure(long iteration)
{
    amp_error error;
    amp_map_result result;
    amp_fork_use_device(map.net);
    amp_status status = measure_at_cfg_size(&result, &error);
    if (status == AMP_OK) {
        keep(&(measured){ iteration, result.total.map, result.total.map50_95 }, &result);
    } else {
        fflush(stdout);
        fprintf(stderr, "-map: not measured at iteration %ld: %s; training continues\n", iteration,
                error.message);
    }
    amp_map_result_free(&result);
}

/* ---- hooks ---- */

static amp_status check_network(const struct network *net, amp_error *error)
{
    int recurrent = amp_fork_recurrent_layer(net);
    if (recurrent >= 0)
        return amp_fail(error, AMP_BAD_CONFIG, "layer %d is recurrent: measuring would change the state "
                        "that training keeps; measure saved weights with `detector map`", recurrent);
    if (amp_fork_box_classes(net) < 0)
        return amp_fail(error, AMP_BAD_CONFIG, "works only for detectors: the .cfg's last section is not "
                        "[yolo], [region] or [detection]");
    return amp_check_channels(net, error);
}

static amp_status begin(struct network *net, const char *data_file, const char *folder, const char *base,
                        amp_error *error)
{
    char name[NAME_BYTES], what[64];
    double iou = amp_this_program()->map.iou;
    size_t dropped;
    rows_so_far so_far = { .iteration = amp_fork_view(net).batch_number };
    amp_log_reader reader = { &so_far, see_row, rows_to_keep };
    AMP_TRY(check_network(net, error));
    AMP_TRY(amp_detection_data_read(data_file, &map.data, error));
    amp_ranks_phase("beginning -map");
    amp_ranks_agree(); /* ends the program if the ranks' lists differ: each rank measures a part */
    snprintf(name, sizeof name, "%s/%s_map.csv", folder, base);
    snprintf(map.best_file, sizeof map.best_file, "%s/%s_best.weights", folder, base);
    snprintf(what, sizeof what, "list of -map measurements at IoU %g", iou);
    snprintf(map.header, sizeof map.header, "iteration,map%g,map50_95", iou * 100);
    if (amp_ranks_leads())
        AMP_TRY(amp_log_file_open(&map.file, name, what, map.header, &reader, &dropped, error));
    map.last = so_far.iteration;
    map.best = so_far.best;
    map.age = so_far.age;
    amp_exchange_broadcast(&map.age, sizeof map.age, "beginning -map");
    amp_exchange_broadcast(&map.best, sizeof map.best, "beginning -map");
    map.net = net;
    return AMP_OK;
}

void amp_map_begin(struct network **nets, int count, const char *data_file, int train_images,
                   const char *folder, const char *base)
{
    amp_error error, reason;
    amp_view net = amp_fork_view(nets[0]);
    long images = (long)net.batch * net.subdivisions * count;
    const amp_map_options *options = &amp_this_program()->map;
    if (!amp_this_program()->has_map) return;
    map.every = options->every;
    if (map.every == 0) map.every = options->epochs * train_images / images;
    if (map.every < LEAST_ITERATIONS && options->every == 0) map.every = LEAST_ITERATIONS;
    amp_status status = begin(nets[0], data_file, folder, base, &reason);
    if (status != AMP_OK) amp_host_check(amp_fail(&error, status, "-map: %.900s", reason.message), &error);
    printf("-map: mAP of %zu images every %ld iterations", map.data.images.count, map.every);
    if (map.best.iteration) printf(", best = %.6f at iteration %ld", map.best.map, map.best.iteration);
    print_next(map.last);
}

void amp_map_step(void)
{
    if (!map.net) return;
    long iteration = amp_fork_view(map.net).batch_number;
    map.now.iteration = 0;
    double began = amp_clock_seconds();
    if (iteration <= map.last) return; /* the step was skipped */
    long next = next_after(map.last);
    map.last = iteration;
    if (!next || iteration < next) return;
    measure(iteration);
    amp_training_exclude_seconds(amp_clock_seconds() - began);
}

int darknet_amp_measured(float *measured_map, float *best)
{
    if (!map.net || !map.now.iteration) return 0;
    *measured_map = (float)map.now.map;
    *best = (float)map.best.map;
    return (int)map.best.iteration;
}

long darknet_amp_next_map(void) { return map.net ? next_after(map.last) : 0; }

int amp_map_stops(void)
{
    long patience = map.net ? amp_this_program()->map.patience : 0;
    if (!patience || map.age < patience || amp_fork_is_over(map.net)) return 0;
    if (!amp_ranks_leads()) return 1;
    fflush(stdout);
    fprintf(stderr, "-patience %ld: the best mAP, %.6f at iteration %ld, is %ld measurements old: training "
            "ends here; the best weights are %s\n", patience, map.best.map, map.best.iteration, map.age,
            map.best_file);
    return 1;
}

void amp_map_end(void)
{
    if (!map.net) return;
    amp_log_file_close(&map.file);
    amp_detection_data_free(&map.data);
    map.net = NULL;
}
