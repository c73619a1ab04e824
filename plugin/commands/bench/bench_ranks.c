/* `mpirun -np N darknet amp bench CFG`: how training steps scale. The table has a row for 1, 2, 4, ... and N
 * ranks. The ranks of a row train together as in `detector train` (comm/comm.h), with the .cfg's batch of
 * synthetic images, while the other ranks sleep. One rank uses no MPI.
 *
 * Rows are measured one after the other. So other work on the machine may slow only one of them. */
#include "bench.h"

#include "../cfg_copy.h"

#include "../../host/network/state.h"
#include "../../host/program/exchange.h"
#include "../../host/program/failure.h"
#include "../../host/program/ranks.h"
#include "../../host/program/request.h"
#include "../../host/program/sharing.h"

enum { MOST_ROWS = 32 };

/* Times are ms per step. waited: a rank's median wait for sums, averaged over the ranks; -1: unknown. */
typedef struct row {
    int ranks, passes, images; /* number of ranks; a rank's passes per step; images per pass. passes 0: the
                                  batch cannot be shared */
    int steps;
    amp_bench_spread step;
    double waited, images_per_second;
    double efficiency;         /* percent: the speed of N ranks / (N * the speed of one rank) */
} row;

typedef struct scaling {
    const amp_bench_request *request;
    amp_bench b;               /* used only for the .cfg's name and shape, the seed and on_gpu */
    const char *dtype;
    char library[64];
    row rows[MOST_ROWS];
    int count;
} scaling;

/* ---- steps ---- */

static void make_step(struct network *net, int passes)
{
    for (int i = 0; i < passes; i++) {
        amp_fork_begin_pass(net);
        amp_fork_forward(net);
        amp_fork_backward(net);
    }
    amp_fork_update(net);
}

/* Rank 0 decides by its clock, for all ranks. */
static int is_enough(const amp_bench_request *r, int steps, double spent)
{
    int enough = amp_bench_is_enough(r, steps, spent);
    amp_exchange_broadcast(&enough, sizeof enough, "deciding whether to measure more steps");
    return enough;
}

static double waited_ms(void) { return amp_ranks() ? amp_ranks()->waited * 1e3 : 0; }

/* Measures steps, except those that fp16 skips until it has found its loss scale; all ranks skip the same. */
static void measure_steps(const amp_bench_request *r, struct network *net, row *row)
{
    double *ms = amp_allocated(malloc(2 * AMP_BENCH_MOST_STEPS * sizeof *ms));
    double *waited = ms + AMP_BENCH_MOST_STEPS;
    const struct darknet_amp *amp = amp_fork_state(net);
    double spent = 0;
    int skipped = 0;
    for (int warm = AMP_BENCH_WARMUP; !is_enough(r, row->steps, spent);) {
        double began = amp_bench_now_ms(), waited_before = waited_ms();
        make_step(net, row->passes);
        if (amp->step_skipped && ++skipped > AMP_BENCH_MOST_SKIPPED)
            darknet_amp_refuse(AMP_BENCH_ALL_SKIPPED, skipped);
        if (amp->step_skipped || warm-- > 0) continue;
        warm = 0;
        ms[row->steps] = amp_bench_now_ms() - began;
        waited[row->steps] = waited_ms() - waited_before;
        spent += ms[row->steps++];
    }
    row->step = amp_bench_spread_of(ms, row->steps);
    row->step.typical = row->step.median;
    row->waited = (double)amp_exchange_mean((float)amp_bench_spread_of(waited, row->steps).median,
                                           "averaging the time waited");
    free(ms);
}

/* Called only by the ranks of the row. */
static void measure_row(scaling *s, row *row)
{
    amp_error error;
    char cfg[AMP_MEMORY_FILE];
    unsigned seed = darknet_amp_seed();
    amp_host_check(amp_bench_write_cfg(s->request, s->b.batch, s->b.subdivisions, cfg, &error), &error);
    srand(seed); /* seeds the weights, which are the same on all ranks */
    struct network *net = amp_fork_make_network(cfg, s->request->cfg, 1);
    amp_view v = amp_fork_view(net);
    amp_fork_fill_random_batch(net, seed + (unsigned)(amp_ranks() ? amp_ranks()->rank : 0));
    s->b.width = v.w;
    s->b.height = v.h;
    s->b.channels = v.c;
    s->b.on_gpu = v.on_gpu;
    s->dtype = amp_dtype_name(amp_fork_state(net)->config->dtype);
    measure_steps(s->request, net, row);
    if (v.on_gpu && row->ranks > 1) row->waited = -1; /* unknown: waiting takes place on the GPU */
    row->images_per_second = 1e3 * s->b.batch / row->step.median;
    row->efficiency = 100 * s->rows[0].step.median / row->ranks / row->step.median;
    amp_fork_free_network(net);
}

/* ---- what is measured ---- */

static void add_row(scaling *s, int ranks)
{
    row *row = &s->rows[s->count++];
    long step = amp_sharing_cut(ranks, s->b.subdivisions);
    int cut = (int)(step / s->b.subdivisions), images = s->b.batch / s->b.subdivisions;
    *row = (struct row){ .ranks = ranks, .waited = -1 };
    if (images % cut) return;
    row->passes = (int)(step / ranks);
    row->images = images / cut;
}

static amp_status prepare(scaling *s, amp_error *error)
{
    const amp_bench_request *r = s->request;
    amp_cfg_facts facts;
    AMP_TRY(amp_cfg_look(r->cfg, amp_this_program()->dtype, CFG_FOR_ANYTHING, &facts, error));
    if (r->data)
        return amp_fail(error, AMP_BAD_CONFIG, "command line: %s: ranks are measured on synthetic images; "
                        "leave the .data file out", r->data);
    if (r->dtypes || r->detect || (amp_this_program()->dtype && !facts.under_amp))
        return amp_fail(error, AMP_BAD_CONFIG, "command line: %s does not work with several ranks: `amp "
                        "bench` measures ranks in training steps, in the dtype of the .cfg or of -amp fp32 "
                        "(bf16, fp16)",
                        r->dtypes ? "-dtypes" : r->detect ? "-detect" : "-amp off");
    if (!facts.under_amp) amp_program_to_set()->dtype = "fp32";
    s->b.batch = r->batch ? (int)r->batch : facts.batch;
    s->b.subdivisions = r->batch ? 1 : facts.subdivisions;
    return AMP_OK;
}

/* ---- what is shown ---- */

#define ROW(member, ...) AMP_FIELD(row, member, __VA_ARGS__)
static const amp_field row_fields[] = {
    ROW(ranks, .title = "ranks"), ROW(passes, .known = AMP_ABOVE_0, .title = "passes", .none = "0"),
    ROW(images, .known = AMP_ABOVE_0, .title = "images/pass", .none = "0"), ROW(steps, .title = "steps"),
    AMP_FIELD_AS("step_ms", row, step.typical, .known = AMP_ABOVE_0, .title = "step",
                 .cell = amp_bench_step_cell, .none = "cannot share the batch"),
    AMP_FIELD_AS("waited_ms", row, waited, .known = AMP_FROM_0, .title = "waited",
                 .cell = amp_bench_number_cell),
    ROW(images_per_second, .known = AMP_ABOVE_0, .title = "images/s", .cell = amp_bench_number_cell),
    ROW(efficiency, .known = AMP_ABOVE_0, .title = "efficiency", .format = "%.0f %%"), { 0 } };

static void show(const scaling *s, FILE *out)
{
    const amp_bench *b = &s->b;
    fprintf(out, "%s: %s, batch %d, %d x %d x %d, seed %u, on %s; %s\n", b->cfg, s->dtype, b->batch, b->width,
            b->height, b->channels, b->seed, b->on_gpu ? "GPUs" : "CPUs", s->library);
    fprintf(out, "step: ms of a step of all ranks on synthetic images, in brackets the middle half of the\n"
            "steps; waited: ms of waiting for sums that did not overlap with backward; efficiency: the\n"
            "speed relative to the same number of ranks that train alone\n");
    amp_table_print(out, 0, row_fields, s->rows, sizeof *s->rows, s->count, NULL);
}

static void write_json(const scaling *s, FILE *out)
{
    static const amp_field fields[] = {
        AMP_FIELD(scaling, dtype), AMP_FIELD_AS("cfg", scaling, b.cfg),
        AMP_FIELD_AS("batch", scaling, b.batch), AMP_FIELD_AS("subdivisions", scaling, b.subdivisions),
        AMP_FIELD_AS("width", scaling, b.width),
        AMP_FIELD_AS("height", scaling, b.height), AMP_FIELD_AS("channels", scaling, b.channels),
        AMP_FIELD_AS("seed", scaling, b.seed), AMP_FLAG_AS("gpu", scaling, b.on_gpu),
        AMP_FIELD(scaling, library), { 0 } };
    amp_json j = amp_json_begin(out);
    amp_json_object(&j, NULL);
    amp_json_fields(&j, s, fields);
    amp_json_records(&j, "rows", s->rows, sizeof *s->rows, s->count, row_fields);
    amp_json_close(&j);
}

void amp_bench_ranks(const amp_bench_request *request)
{
    amp_error error;
    amp_output json = { 0 };
    int ranks = amp_ranks_count();
    scaling s = { .request = request, .b = { .cfg = request->cfg } };
    s.b.seed = darknet_amp_seed(); /* all ranks have the same seed */
    snprintf(s.library, sizeof s.library, "%s", amp_ranks()->name);
    amp_host_check(prepare(&s, &error), &error);
    amp_ranks_note_file("a .cfg", request->cfg);
    amp_ranks_note("-batch %ld\n-size %ld\n", request->batch, request->size);
    amp_ranks_phase("comparing what the ranks were given");
    amp_ranks_agree();
    if (amp_ranks_leads()) amp_host_check(amp_output_begin(request->json, &json, &error), &error);
    for (int n = 1; n < ranks; n *= 2) add_row(&s, n);
    add_row(&s, ranks);
    for (int i = 0; i < s.count; i++)
        if (s.rows[i].passes && amp_ranks_part(s.rows[i].ranks)) measure_row(&s, &s.rows[i]);
    amp_ranks_gather();
    if (!amp_ranks_leads()) return;
    show(&s, json.stream == stdout ? stderr : stdout);
    if (json.stream) write_json(&s, json.stream);
    amp_host_check(amp_output_end(&json, AMP_OK, &error), &error);
}
