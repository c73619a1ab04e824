/* Times whole training steps of one network: forward, backward and update, without loading of images.
 *
 *   step CFG [--batch N] [--subdivisions N] [--size N] [--warmup N] [--iters N] [--phases N] [--costs N]
 *            [--seed N] [--loss-scale N] [--dump PREFIX] [--seconds N] [--verbose] [-amp DTYPE]
 *
 * The same file is linked with stock Darknet and with Darknet AMP (-DAMP, which is where -amp is understood),
 * pjreddie's or AlexeyAB's, and trains by Darknet's own train_network_datum (fork.h), so that all sides do
 * what `darknet detector train` does per batch. All get the same initial weights, the same input (random in
 * [0, 1)) and the same boxes, and print the loss of every step: whoever reads the times can see that the same
 * thing was computed.
 *
 * CFG is loaded through a temporary copy: --batch images are one forward and backward, --subdivisions of them
 * (1) are one step, --size is the input's width and height; burn_in is 0, because otherwise the first steps
 * have a learning rate of zero and would train nothing, and learning_rate is 1e-4, because at full rate a
 * network so young jumps about, and the smallest difference between two sides grows with it. Stock Darknet's
 * copy has no [amp] section, which it would not know. --loss-scale is a line for AlexeyAB's CUDNN_HALF, which
 * computes in 16 bits where this is not 1, from the second step on as there is no burn-in.
 *
 * One JSON object is printed, on one line. Times are wall time in milliseconds; cpu_ms is the time that the
 * process spent on CPUs, all threads together, per measured step: on a busy machine the two differ.
 *
 * --costs N, with AMP, runs N more steps and prints on stderr what share of a step goes to the check and
 * update of the parameters, to the half copies of the weights and to casts (costs.h), by CPU time; the
 * medians are in the JSON too.
 *
 * On a GPU as many steps follow in which each operation of AMP's backend is timed on the device (costs.h).
 *
 * --seconds N measures for about so long instead of --iters steps, by what the last step
 * before took: 3 to 500 steps.
 *
 * In a build with GPU=1 every step ends when the device has done all of it, and nothing else is waited for
 * while steps are timed. The steps in --phases come afterwards: there, clocks also stand around the copy of
 * images and labels (input_ms) and around the loss layers (loss_ms), and forward_ms is the rest of the
 * forward; the medians are printed. device_mb is the most of the device's memory that was seen in use, by
 * cudaMemGetInfo, beyond what was before the network was loaded.
 *
 * --dump PREFIX writes PREFIX.weights, PREFIX.input and PREFIX.truth (raw floats, as Darknet lays them out)
 * for the other side of the comparison, peer_torch.py, and stops before the first step. --verbose lets
 * through what Darknet and its libraries print on stdout: oneDNN's times, with DNNL_VERBOSE=1. */
#define _GNU_SOURCE
#include "fork.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "gpu_parts.h"
#ifdef AMP
#include "costs.h"
#endif

typedef struct {
    const char *cfg, *dtype, *dump;
    int batch, subdivisions, size, warmup, iters, phases, costs, seconds, loss_scale, verbose;
    unsigned seed;
} options;

typedef struct {
    double median, min, max;
} summary;

static void fail(const char *what, const char *which)
{
    fprintf(stderr, "step: %s%s\n", what, which);
    exit(1);
}

/* ---- the command line ---- */

static int number(const char *name, const char *text, int least)
{
    char *end;
    long value = text ? strtol(text, &end, 10) : 0;
    if (!text || end == text || *end || value < least || value > 1000000)
        fail("a whole number is needed after ", name);
    return (int)value;
}

static options read_arguments(int argc, char **argv)
{
    options o = {.dtype = "stock", .subdivisions = 1, .warmup = 1, .iters = 5, .phases = 1, .seed = 1};
#ifdef AMP
    o.dtype = "cfg";
    for (int i = 1; i + 1 < argc; i++)
        if (!strcmp(argv[i], "-amp")) o.dtype = argv[i + 1];
    char *dtype = strdup(o.dtype); /* darknet_amp_start takes its own out of argv */
    o.dtype = dtype;
    darknet_amp_start(argc, argv);
#endif
    for (int i = 1; i < argc && argv[i]; i++) {
        const char *name = argv[i];
        if (name[0] != '-') {
            if (o.cfg) fail("one .cfg file at a time; this is the second: ", name);
            o.cfg = name;
            continue;
        }
        if (!strcmp(name, "--verbose")) {
            o.verbose = 1;
            continue;
        }
        const char *value = i + 1 < argc ? argv[++i] : NULL;
        if (!strcmp(name, "--batch")) o.batch = number(name, value, 1);
        else if (!strcmp(name, "--subdivisions")) o.subdivisions = number(name, value, 1);
        else if (!strcmp(name, "--size")) o.size = number(name, value, 1);
        else if (!strcmp(name, "--warmup")) o.warmup = number(name, value, 0);
        else if (!strcmp(name, "--iters")) o.iters = number(name, value, 1);
        else if (!strcmp(name, "--phases")) o.phases = number(name, value, 0);
        else if (!strcmp(name, "--seconds")) o.seconds = number(name, value, 0);
        else if (!strcmp(name, "--costs")) o.costs = number(name, value, 0);
        else if (!strcmp(name, "--loss-scale")) o.loss_scale = number(name, value, 1);
        else if (!strcmp(name, "--seed")) o.seed = (unsigned)number(name, value, 0);
        else if (!strcmp(name, "--dump") && value) o.dump = value;
        else fail("unknown argument: ", name);
    }
    if (!o.cfg)
        fail("usage: step CFG [--batch N] [--subdivisions N] [--size N] [--warmup N] [--iters N] "
                     "[--phases N] [--costs N] [--seconds N] [--seed N] [--loss-scale N] [--dump PREFIX] "
                     "[--verbose] [-amp DTYPE]", "");
    if (o.subdivisions > 1 && !o.batch) fail("--subdivisions needs --batch, the images of one of them", "");
    return o;
}

/* ---- the network ---- */

/* Whether a line of a .cfg gives this key, as Darknet reads it: blanks do not count. */
static int line_has_key(const char *line, const char *key)
{
    for (; *line && *line != '='; line++) {
        if (isspace((unsigned char)*line)) continue;
        if (*line != *key) return 0;
        ++key;
    }
    return *line == '=' && !*key;
}

/* Copies the .cfg with the [net] section that this benchmark needs; path receives the copy's name. */
static void write_cfg(const options *o, char *path)
{
    FILE *in = fopen(o->cfg, "r");
    if (!in) fail("cannot read ", o->cfg);
    int fd = mkstemps(path, 4);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (!out) fail("cannot write ", path);

    char *line = NULL;
    size_t room = 0;
    int in_net = 0, in_amp = 0;
    while (getline(&line, &room, in) >= 0) {
        const char *text = line + strspn(line, " \t");
        if (*text == '[') {
            in_net = !strncmp(text, "[net]", 5) || !strncmp(text, "[network]", 9);
            in_amp = !strncmp(text, "[amp]", 5);
        }
#ifndef AMP
        if (in_amp) continue;
#else
        (void)in_amp;
#endif
        if (in_net && (line_has_key(text, "subdivisions") || line_has_key(text, "burn_in")
                       || line_has_key(text, "learning_rate") || line_has_key(text, "loss_scale")
                       || (o->batch && line_has_key(text, "batch"))
                       || (o->size
                           && (line_has_key(text, "width") || line_has_key(text, "height"))))) continue;
        fputs(line, out);
        if (in_net && *text == '[') {
            if (o->batch) fprintf(out, "batch=%d\n", o->batch * o->subdivisions);
            if (o->size) fprintf(out, "width=%d\nheight=%d\n", o->size, o->size);
            if (o->loss_scale) fprintf(out, "loss_scale=%d\n", o->loss_scale);
            fprintf(out, "subdivisions=%d\nburn_in=0\nlearning_rate=0.0001\n", o->subdivisions);
        }
    }
    free(line);
    fclose(in);
    if (fclose(out)) fail("cannot write ", path);
}

/* Of our own, because Darknet's layers reseed rand() as they are made. Uniform in [0, 1). */
static float uniform(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (float)((z ^ (z >> 31)) >> 40) / 16777216.f;
}

/* 1 to 10 boxes per image for a detector (x, y, w, h, class; the rest stays 0, which ends the
 * list), else one class. */
static void fill_batch(network *net, unsigned seed)
{
    uint64_t state = seed;
    for (int i = 0; i < net->inputs * net->batch; i++) net->input[i] = uniform(&state);

    layer last = net->layers[net->n - 1];
    int detector = last.type == YOLO || last.type == REGION, numbers = fork_label_numbers(&last);
    for (int b = 0; b < net->batch; b++) {
        float *truth = net->truth + (size_t)b * net->truths;
        if (!detector) {
            truth[(int)(uniform(&state) * net->truths)] = 1;
            continue;
        }
        int boxes = 1 + (int)(uniform(&state) * 10);
        for (int t = 0; t < boxes && numbers * (t + 1) <= net->truths; t++, truth += numbers) {
            float w = .05f + .45f * uniform(&state), h = .05f + .45f * uniform(&state);
            truth[0] = w / 2 + (1 - w) * uniform(&state);
            truth[1] = h / 2 + (1 - h) * uniform(&state);
            truth[2] = w;
            truth[3] = h;
            truth[4] = (float)(int)(uniform(&state) * last.classes);
        }
    }
}

static void dump_floats(const char *prefix, const char *suffix, const float *values, size_t count)
{
    char *path;
    if (asprintf(&path, "%s%s", prefix, suffix) < 0) fail("out of memory", "");
    FILE *out = fopen(path, "wb");
    if (!out || fwrite(values, sizeof(float), count, out) != count || fclose(out))
        fail("cannot write ", path);
    free(path);
}

static void dump(network *net, const char *prefix)
{
    char *path;
    if (asprintf(&path, "%s.weights", prefix) < 0) fail("out of memory", "");
    fork_save(net, path);
    free(path);
    dump_floats(prefix, ".input", net->input, (size_t)net->inputs * net->batch);
    dump_floats(prefix, ".truth", net->truth, (size_t)net->truths * net->batch);
}

/* ---- the clock ---- */

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static double cpu_ms(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e3 + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e3;
}

static double peak_rss_mb(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return r.ru_maxrss / 1024.;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static summary summarize(double *values, int n)
{
    qsort(values, n, sizeof(*values), ascending);
    return (summary){(values[(n - 1) / 2] + values[n / 2]) / 2, values[0], values[n - 1]};
}

enum { INPUT, FORWARD, LOSS, BACKWARD, UPDATE_STEP, PHASES };

/* fork_train once more, in its parts. ms: what each took. */
static void step_in_phases(network *net, double ms[PHASES])
{
    gpu_parts_begin();
    double t0 = now_ms();
    fork_forward(net);
    gpu_wait();
    double t1 = now_ms();
    fork_backward(net);
    gpu_wait();
    double t2 = now_ms();
    fork_update(net);
    gpu_wait();
    double t3 = now_ms();
    gpu_parts in_forward = gpu_parts_take();
    ms[INPUT] = in_forward.input;
    ms[LOSS] = in_forward.loss;
    ms[FORWARD] = t1 - t0 - in_forward.input - in_forward.loss;
    ms[BACKWARD] = t2 - t1;
    ms[UPDATE_STEP] = t3 - t2;
}

static void print_phases(network *net, int steps, FILE *result)
{
    static const char *names[PHASES] = {"input", "forward", "loss", "backward", "update"};
    double *values = calloc((size_t)PHASES * steps, sizeof(*values));
    if (!steps) {
        free(values);
        return;
    }
    if (!values) fail("out of memory", "");
    gpu_parts_watch(net);
    for (int i = 0; i < steps; i++) {
        double phase[PHASES];
        step_in_phases(net, phase);
        for (int p = 0; p < PHASES; p++) values[p * steps + i] = phase[p];
    }
    for (int p = 0; p < PHASES; p++)
#ifndef GPU
        if (p != INPUT && p != LOSS)
#endif
        fprintf(result, "\"%s_ms\": %.3f, ", names[p], summarize(values + p * steps, steps).median);
    free(values);
}

/* One step: all subdivisions. Returns the mean loss. */
static float train_step(network *net)
{
    float sum = 0;
    for (int s = 0; s < net->subdivisions; s++) sum += fork_train(net);
    gpu_wait();
    return sum / net->subdivisions;
}

#ifdef AMP
/* Medians over `steps` more steps: of the parts, of the step, and of the parts' share in
 * their step, in percent. */
static void print_costs(network *net, int steps, FILE *result)
{
    enum { UPDATE, COPIES, CASTS, STEP, SHARE, NUMBERS };
    double *values = calloc((size_t)NUMBERS * steps, sizeof(*values)), median[NUMBERS];
    if (!values) fail("out of memory", "");
    if (!steps || !costs_watch(net)) {
        free(values);
        return;
    }
    for (int i = 0; i < steps; i++) {
        double begin = costs_now();
        train_step(net);
        double step = costs_now() - begin;
        costs c = costs_take();
        double row[NUMBERS] = {c.check_update, c.half_copies, c.casts, step,
                               100 * (c.check_update + c.half_copies + c.casts) / step};
        for (int k = 0; k < NUMBERS; k++) values[k * steps + i] = row[k];
    }
    for (int k = 0; k < NUMBERS; k++) median[k] = summarize(values + k * steps, steps).median;
    fprintf(stderr, "costs: %d x %d images a step, " COSTS_CLOCK
            ", medians of %d steps: check and update %.2f ms, half copies "
            "%.2f ms, casts %.2f ms, of %.1f ms: %.2f %%\n", net->subdivisions, net->batch, steps,
            median[UPDATE], median[COPIES], median[CASTS], median[STEP], median[SHARE]);
    fprintf(result, "\"check_update_ms\": %.3f, \"half_copies_ms\": %.3f, \"casts_ms\": %.3f, "
            "\"costs_step_ms\": %.2f, \"costs_percent\": %.3f, ", median[UPDATE], median[COPIES],
            median[CASTS], median[STEP], median[SHARE]);
    free(values);
}
#endif

/* How many steps of `ms` each make `seconds`. */
static int steps_in(int seconds, double ms, int most)
{
    double n = 1000. * seconds / ms;
    return n < 3 ? 3 : n > most ? most : (int)n;
}

int main(int argc, char **argv)
{
    options o = read_arguments(argc, argv);

    /* Darknet's yolo layers print a line per forward to stdout. */
    FILE *result = fdopen(dup(1), "w");
    int nowhere = open("/dev/null", O_WRONLY);
    if (!result || nowhere < 0 || (!o.verbose && dup2(nowhere, 1) < 0))
        fail("cannot redirect standard output", "");

    const char *folder = getenv("TMPDIR");
    char *path;
    if (asprintf(&path, "%s/step.XXXXXX.cfg", folder && *folder ? folder : "/tmp") < 0)
        fail("out of memory", "");
    write_cfg(&o, path);
    fork_start();
    gpu_memory_watch();
    double start = now_ms();
    network *net = fork_load(path, o.seed);
    double load = now_ms() - start;
    unlink(path);
    free(path);
    fill_batch(net, o.seed);
    if (o.dump) {
        dump(net, o.dump);
        return 0;
    }

    enum { MOST_STEPS = 500 };
    int room = o.seconds && o.iters < MOST_STEPS ? MOST_STEPS : o.iters;
    float *losses = calloc(o.warmup + room, sizeof(*losses));
    double *times = calloc(room, sizeof(*times));
    if (!losses || !times) fail("out of memory", "");
    size_t seen = *net->seen;
    double first = 0, cpu = 0, device_mb = 0, took = 0;
    for (int i = 0; i < o.warmup + o.iters; i++) {
        if (i == o.warmup) {
            device_mb = gpu_memory_peak(); /* the thread that looks would slow the steps that are measured */
            if (o.seconds && took > 0) o.iters = steps_in(o.seconds, took, MOST_STEPS);
            cpu = cpu_ms();
        }
        double begin = now_ms();
        losses[i] = train_step(net);
        took = now_ms() - begin;
        if (i == 0) first = took;
        if (i >= o.warmup) times[i - o.warmup] = took;
    }
    cpu = (cpu_ms() - cpu) / o.iters;
    /* AMP does not count a batch whose gradients were not finite. */
    size_t applied = (*net->seen - seen) / ((size_t)net->batch * net->subdivisions);
    summary ms = summarize(times, o.iters);
    double rss = peak_rss_mb();

    fflush(stdout);
    const char *threads = getenv("OMP_NUM_THREADS");
    fprintf(result,
            "{\"side\": \"darknet\", \"config\": \"%s\", \"dtype\": \"%s\", \"threads\": %d, \"batch\": %d, "
            "\"width\": %d, \"height\": %d, \"iters\": %d, \"ms\": %.2f, \"ms_min\": %.2f, \"ms_max\": %.2f, "
            "\"cpu_ms\": %.2f, \"first_ms\": %.2f, \"load_ms\": %.2f, \"rss_mb\": %.1f, \"applied\": %zu, ",
            o.cfg, o.dtype, threads ? atoi(threads) : 0, net->batch, net->w, net->h, o.iters, ms.median,
            ms.min, ms.max, cpu, first, load, rss, applied);
    if (device_mb >= 0) fprintf(result, "\"device_mb\": %.1f, ", device_mb);
#ifdef AMP
    costs_operations_begin(net);
#endif
    print_phases(net, o.phases, result);
#ifdef AMP
    print_costs(net, o.costs, result);
    costs_print_operations(net, o.costs, train_step, result);
#endif
    fprintf(result, "\"losses\": [");
    for (int i = 0; i < o.warmup + o.iters; i++) {
        /* nan and inf are not JSON; -Ofast may assume that there are none, so look at what is printed. */
        char text[32];
        snprintf(text, sizeof text, "%.6g", losses[i]);
        fprintf(result, "%s%s", i ? ", " : "", strpbrk(text, "ni") ? "null" : text);
    }
    fprintf(result, "]}\n");
    fclose(result);
    return 0;
}
