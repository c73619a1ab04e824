/* `darknet amp bench CFG`: how fast a training step of this network is in each dtype, and whether half
 * precision is worth it here.
 *
 * Each dtype is measured in a child program (bench_child.c), in turns of slice_seconds. Under mpirun the
 * ranks measure themselves (bench_ranks.c). */
#define _DEFAULT_SOURCE /* _SC_NPROCESSORS_ONLN */
#include "bench.h"

#include "../arguments.h"
#include "../cfg_copy.h"
#include "../command.h"
#include "../run_in_turns.h"

#include "../../host/data/loader_memory.h"
#include "../../host/network/state.h"
#include "../../host/program/ranks.h"
#include "../../host/program/turns.h"

#include <string.h>
#include <unistd.h>

enum { MOST_PARTS = 2 };

/* The length of a turn. It is short, so that a busy minute of the machine slows all dtypes alike. For slow
 * steps see run_in_turns.c. */
static const double slice_seconds = .1;

/* ---- the command line ---- */

static amp_status read_request(int argc, char **argv, amp_bench_request *r, amp_error *error)
{
    const amp_argument arguments[] = {
        { .name = "DATA", .text = &r->data, .optional = 1,
          .about = "a training's .data file: loading its images is measured too" },
        { .name = "CFG", .text = &r->cfg, .about = "the network's .cfg" },
        { .name = "-dtypes", .value = "A,B,...", .text = &r->dtypes,
          .about = "some of stock, fp32, bf16, fp16 (those that this machine has)" },
        { .name = "-iters", .number = &r->iters, .least = 1, .most = AMP_BENCH_MOST_STEPS,
          .about = "measured steps of each dtype (as many as take about 8 seconds)" },
        { .name = "-batch", .number = &r->batch, .least = 1, .most = 65536,
          .about = "images of a pass, with an update after each (the .cfg's batch and subdivisions)" },
        { .name = "-size", .number = &r->size, .least = 1, .most = 65536,
          .about = "width and height of the images (the .cfg's)" },
        { .name = "-detect", .flag = &r->detect,
          .about = "predictions instead of training steps: of one image, and of a batch" },
        { .name = "-json", .value = "FILE", .text = &r->json,
          .about = "also writes everything as JSON; - is standard output" },
        { 0 } };
    AMP_TRY(amp_arguments_read("amp bench", argc - 3, argv + 3, arguments, error));
    if (r->data && r->detect)
        return amp_fail(error, AMP_BAD_CONFIG, "command line: %s: -detect uses synthetic images; leave the "
                        ".data file out", r->data);
    return r->data ? amp_readable(r->data, "the .data file", error) : AMP_OK;
}

/* Fills b->sides, whose dtypes point into `list`. A dtype that this machine cannot run is marked left_out; if
 * -dtypes names it, returns an error. */
static amp_status choose_sides(const amp_bench_request *r, amp_lines *list, amp_bench *b,
                               amp_error *error)
{
    const char *usual = amp_fork_device() >= 0 ? AMP_ALL_DTYPES : "fp32,bf16,fp16";
    amp_machine machine;
    AMP_TRY(amp_machine_read(&machine, error));
    AMP_TRY(amp_dtypes_read(r->dtypes, usual, &machine, list, error));
    for (size_t i = 0; i < list->count; i++) {
        int dtype = amp_dtype_find(list->line[i]);
        amp_bench_side *s = &b->sides[b->count++];
        *s = (amp_bench_side){ .dtype = list->line[i], .support = AMP_SUPPORT_NATIVE };
        if (dtype < 0) continue;
        snprintf(s->machine, sizeof s->machine, "%s", machine.backend);
        snprintf(s->note, sizeof s->note, "%s", machine.note[dtype]);
        s->support = machine.support[dtype];
        s->left_out = s->support == AMP_SUPPORT_NONE;
    }
    return AMP_OK;
}

static void note_machine(amp_bench *b)
{
    const char *threads = getenv("OMP_NUM_THREADS");
    b->processors = (int)sysconf(_SC_NPROCESSORS_ONLN);
    b->threads = threads ? atoi(threads) : 0;
    if (b->threads < 1) b->threads = b->processors;
}

/* ---- the child programs ---- */

typedef struct run {
    amp_bench *b;
    /* for each side that is not left out: the side, its program, and the file for the program's output */
    amp_bench_side *sides[AMP_BENCH_SIDES];
    amp_turns_program programs[AMP_BENCH_SIDES];
    char outputs[AMP_BENCH_SIDES][AMP_MEMORY_FILE];
    int count;
    char cfg[AMP_MEMORY_FILE];           /* the copy of the .cfg that the programs load */
    char iters[24];
    int shows_progress;
} run;

static void add_program(run *run, const amp_bench_request *r, amp_bench_side *side)
{
    char *output = run->outputs[run->count];
    amp_turns_program *p = &run->programs[run->count];
    run->sides[run->count++] = side;
    amp_memory_file(output);
    p->output = output;
    amp_turns_add(p, "amp", "bench", r->data ? r->data : run->cfg, r->data ? run->cfg : NULL, NULL);
    if (r->iters) amp_turns_add(p, "-iters", run->iters, NULL);
    if (r->detect) amp_turns_add(p, "-detect", NULL);
    amp_turns_add_usual(p, side->dtype, run->b->seed);
}

static amp_status take_line(void *context, int index, const char *line, amp_error *error)
{
    run *r = context;
    AMP_TRY(amp_bench_read_line(r->b, r->sides[index], line, error));
    if (!r->shows_progress) return AMP_OK;
    fprintf(stderr, "\r\033[K");
    for (int i = 0; i < r->count; i++) {
        const amp_bench_side *s = r->sides[i];
        fprintf(stderr, "%s%s: ", i ? ", " : "", s->dtype);
        if (s->layer_count || s->done) fprintf(stderr, "done");
        else if (s->peak_memory_mb > 0) fprintf(stderr, "layers");
        else fprintf(stderr, s->steps ? "%d steps" : "warming up", s->steps);
    }
    return AMP_OK;
}

static amp_status explain_end(const run *r, int index, const amp_turns_end *end, amp_error *error)
{
    const char *dtype = r->sides[index]->dtype;
    char words[512];
    amp_turns_last_message(r->outputs[index], NULL, words, sizeof words);
    if (end->exited)
        return words[0] ? amp_fail(error, AMP_BACKEND_FAILED, "%s: %s", dtype, words)
             : amp_fail(error, AMP_BACKEND_FAILED, "the %s program ended without a result", dtype);
    return amp_fail(error, AMP_BACKEND_FAILED, "the %s program was killed by signal %d (%s)%s%s; if memory "
                    "ran out, try a smaller -batch, or fewer -dtypes at a time",
                    dtype, end->status, strsignal(end->status), words[0] ? "; its last message: " : "",
                    words);
}

static amp_status take_end(void *context, int index, const amp_turns_end *end, amp_error *error)
{
    const run *r = context;
    int well = r->sides[index]->done || end->stopped || amp_turns_interrupted();
    return well ? AMP_OK : explain_end(r, index, end, error);
}

/* ---- running ---- */

static amp_status run_all(run *r, amp_error *error)
{
    const amp_turns_watcher watcher = { r, take_line, take_end };
    amp_turns_watch_signals();
    amp_status status = amp_turns_run(r->programs, r->count, slice_seconds, amp_turns_interrupted, &watcher,
                                      error);
    if (r->shows_progress) fprintf(stderr, "\r\033[K");
    if (status == AMP_OK && amp_turns_interrupted())
        return amp_fail(error, AMP_IO_FAILED, "interrupted; nothing is reported");
    return status;
}

static amp_status measure(const amp_bench_request *request, int batch, amp_bench *b, amp_error *error)
{
    run r = { .b = b, .shows_progress = isatty(STDERR_FILENO) };
    snprintf(r.iters, sizeof r.iters, "%ld", request->iters);
    AMP_TRY(amp_bench_write_cfg(request, batch, 1, r.cfg, error));
    for (amp_bench_side *s = b->sides; s < b->sides + b->count; s++)
        if (!s->left_out) add_program(&r, request, s);
    AMP_TRY(run_all(&r, error));
    return amp_bench_summarize(b, error);
}

/* Measures, prints and writes. Predictions are measured twice: with one image, and with a batch. */
static amp_status bench(amp_bench_request *request, amp_bench b[MOST_PARTS], amp_error *error)
{
    amp_output json;
    amp_cfg_facts facts;
    /* check the user's file first, so that an error names its line, not a line of the copy */
    AMP_TRY(amp_cfg_look(request->cfg, "fp32", CFG_FOR_ANYTHING, &facts, error));
    b->detect = request->detect;
    b->subdivisions = request->batch || request->detect ? 1 : facts.subdivisions;
    if (!request->batch) request->batch = facts.batch / facts.subdivisions;
    AMP_TRY(amp_output_begin(request->json, &json, error));
    int count = request->detect && request->batch > 1 ? 2 : 1;
    amp_status status = AMP_OK;
    b[count - 1] = b[0];
    for (int i = 0; i < count && status == AMP_OK; i++)
        status = measure(request, i == count - 1 ? (int)request->batch : 1, &b[i], error);
    if (status == AMP_OK) amp_bench_print(b, count, json.stream == stdout ? stderr : stdout);
    if (status == AMP_OK && json.stream) amp_bench_write_json(b, count, json.stream);
    return amp_output_end(&json, status, error);
}

amp_status amp_command_bench(int argc, char **argv, amp_error *error)
{
    amp_bench_request request = { 0 };
    amp_bench b[MOST_PARTS] = { 0 };
    amp_lines dtypes = { 0 };
    /* From here on, a rank that ends does not abort the others, because all ranks meet the same errors. */
    amp_program_to_set()->ranks.over = 1;
    AMP_TRY(read_request(argc, argv, &request, error));
    if (amp_ranks()) {
        amp_bench_ranks(&request);
        return AMP_OK;
    }
    /* this is a child program of `amp bench` */
    if (amp_turns_taken()) return amp_bench_child(&request, error);
    b->cfg = request.cfg;
    note_machine(b);
    b->cores = request.data ? amp_loaders_processors() : 0;
    b->seed = darknet_amp_is_seeded() ? darknet_amp_seed() : 1;
    amp_status status = choose_sides(&request, &dtypes, b, error);
    if (status == AMP_OK) status = bench(&request, b, error);
    for (int i = 0; i < MOST_PARTS; i++) amp_bench_free(&b[i]);
    amp_lines_free(&dtypes);
    return status;
}
