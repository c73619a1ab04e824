/* `darknet amp bench CFG`: how fast a training step of this network is in each dtype, and whether half precision is worth it
 * here.
 *
 * Each dtype has a program of its own (bench_child.c). They take turns of a tenth of a second or a step, so that a busy minute of
 * the machine meets all alike; their networks are in memory at the same time. Stock Darknet is measured if it is asked for,
 * and by default on a GPU; on a CPU one step of it takes as long as some twenty of AMP's fp32. */
#define _DEFAULT_SOURCE /* _SC_NPROCESSORS_ONLN */
#include "bench.h"

#include "../arguments.h"
#include "bench_run.h"
#include "../cfg_copy.h"
#include "../command.h"
#include "../json.h"

#include "../../amp/config.h"
#include "../../host/common/state.h"
#include "../../host/common/random.h"
#include "../../host/training/turns.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char all_dtypes[] = "stock,fp32,bf16,fp16";

/* ---- what is asked for ---- */

static amp_status read_request(int argc, char **argv, amp_bench_request *r, amp_error *error)
{
    const amp_argument arguments[] = {
        { .name = "CFG", .text = &r->cfg, .about = "the network's .cfg" },
        { .name = "-dtypes", .value = "A,B,...", .text = &r->dtypes,
          .about = "some of stock, fp32, bf16, fp16 (those that this machine has)" },
        { .name = "-iters", .number = &r->iters, .least = 1, .most = 100000,
          .about = "measured steps of each dtype (as many as take about 8 seconds)" },
        { .name = "-warmup", .number = &r->warmup, .least = 0, .most = 100000,
          .about = "steps before those that are measured" },
        { .name = "-batch", .number = &r->batch, .least = 1, .most = 65536,
          .about = "images of a pass, with an update after each (the .cfg's batch and subdivisions)" },
        { .name = "-size", .number = &r->size, .least = 1, .most = 65536,
          .about = "width and height of the images (the .cfg's)" },
        { .name = "-json", .value = "FILE", .text = &r->json,
          .about = "also writes everything as JSON; - is standard output" },
        /* our own programs */
        { .name = amp_turns_taken() ? "-only" : NULL, .text = &r->only, .choices = "stock|fp32|bf16|fp16",
         .about = "" },
        { 0 } };
    r->warmup = -1;
    return amp_arguments_read("amp bench", argc - 3, argv + 3, arguments, error);
}

static int is_dtype(const char *name)
{
    size_t length = strlen(name);
    for (const char *d = all_dtypes; *d; d += strcspn(d, ","), d += *d == ',')
        if (strcspn(d, ",") == length && !strncmp(d, name, length)) return 1;
    return 0;
}

/* The sides' dtypes point into list. */
static amp_status choose_sides(const amp_bench_request *r, amp_text_list *list, amp_bench *b, amp_error *error)
{
    const char *usual = amp_fork_device() >= 0 ? all_dtypes : "fp32,bf16,fp16";
    AMP_TRY(amp_text_list_split("-dtypes", r->dtypes ? r->dtypes : usual, list, error));
    for (int i = 0; i < list->count; i++) {
        if (!is_dtype(list->part[i]))
            return amp_fail(error, AMP_BAD_CONFIG, "-dtypes %s: there is no dtype %s; allowed: %s", r->dtypes,
                            list->part[i], all_dtypes);
        b->sides[b->count++] = (amp_bench_side){ .dtype = list->part[i], .support = AMP_SUPPORT_NATIVE };
    }
    return AMP_OK;
}

/* What Darknet would stumble over in each program is found once, with the line of the user's own file. */
static amp_status check_cfg(amp_bench_request *r, amp_bench *b, amp_error *error)
{
    amp_config *config;
    double batch, subdivisions;
    AMP_TRY(amp_config_read(r->cfg, "fp32", AMP_FP32, &config, error));
    amp_config_free(config);
    AMP_TRY(amp_host_check_cfg(r->cfg, CFG_FOR_ANYTHING, error));
    AMP_TRY(amp_cfg_number(r->cfg, "batch", 1, &batch, error));
    AMP_TRY(amp_cfg_number(r->cfg, "subdivisions", 1, &subdivisions, error));
    if (r->batch) {
        b->subdivisions = 1;
        return AMP_OK;
    }
    r->batch = (long)batch / (long)subdivisions;
    b->subdivisions = (int)subdivisions;
    return AMP_OK;
}

static void note_machine(amp_bench *b)
{
    const char *threads = getenv("OMP_NUM_THREADS");
    b->processors = (int)sysconf(_SC_NPROCESSORS_ONLN);
    b->threads = threads ? atoi(threads) : 0;
    if (b->threads < 1) b->threads = b->processors;
}

/* ---- the verb ---- */

static amp_status bench(amp_bench_request *r, amp_bench *b, amp_error *error)
{
    struct amp_output *output = NULL;
    FILE *json = NULL;
    AMP_TRY(check_cfg(r, b, error));
    if (r->json) AMP_TRY(amp_output_begin(r->json, &output, &json, error));
    amp_status status = amp_bench_run(r, b, error);
    if (status == AMP_OK) status = amp_bench_summarize(b, error);
    if (status != AMP_OK) {
        amp_output_abandon(output);
        return status;
    }
    amp_bench_print(b, json == stdout ? stderr : stdout);
    if (!json) return AMP_OK;
    amp_bench_write_json(b, json);
    return amp_output_end(output, error);
}

amp_status amp_command_bench(int argc, char **argv, amp_error *error)
{
    amp_bench_request request = { 0 };
    amp_bench b = { 0 };
    amp_text_list dtypes = { 0 };
    AMP_TRY(read_request(argc, argv, &request, error));
    if (request.only) return amp_bench_child(&request, error);
    b.cfg = request.cfg;
    note_machine(&b);
    if (!amp_random_seed(&b.seed)) b.seed = 1;
    amp_status status = choose_sides(&request, &dtypes, &b, error);
    if (status == AMP_OK) status = bench(&request, &b, error);
    amp_bench_free(&b);
    amp_text_list_free(&dtypes);
    return status;
}
