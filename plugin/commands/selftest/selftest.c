/* The verb, see selftest.h. */
#include "selftest.h"

#include <stdlib.h>
#include <string.h>

#include "../../amp/cfg_check.h"
#include "../../host/program/failure.h"
#include "../arguments.h"
#include "../cfg_copy.h"
#include "../command.h"
#include "../probe/probe_compare.h"

enum { SEED = 1 };

static int is_known(const char *section)
{
    for (int i = 0; section && i < amp_cfg_fork.count; i++)
        if (!strcmp(amp_cfg_fork.kinds[i].name, section)) return 1;
    return !section;
}

static amp_status write_network(const char *layers, char name[AMP_MEMORY_FILE], amp_error *error)
{
    FILE *out = amp_memory_file(name);
    for (; *layers; layers++) putc(*layers == ' ' ? '\n' : *layers, out);
    return fflush(out) ? amp_fail(error, AMP_IO_FAILED, "cannot write a .cfg into memory") : AMP_OK;
}

/* One line for a dtype: what came nearest to its limit, or what is beyond it. */
static void print_run(const amp_probe_comparison *c, amp_dtype dtype)
{
    char text[AMP_FAULT_TEXT];
    const amp_probe_run *r = &c->runs[dtype];
    const char *against = dtype == AMP_FP32 ? "Darknet's own code" : "fp32";
    if (!r->ran) printf("  %s  not on this device: %s\n", amp_dtype_name(dtype), c->machine.note[dtype]);
    else if (r->nearest.layer < 0)
        printf("  %s  nothing could be compared with %s: see below\n", amp_dtype_name(dtype), against);
    else printf("  %s  %s against %s; %s %s\n", amp_dtype_name(dtype), r->fault_count ? "WRONG" : "good",
                against, r->fault_count ? "first" : "nearest to a limit:",
                amp_probe_fault_text(c, r->fault_count ? r->faults : &r->nearest, text));
}

enum { WRONG_TEXT = AMP_FAULT_TEXT + 32 };

/* The faults of all that was compared. */
typedef struct findings {
    char text[WRONG_TEXT]; /* the first: "fp32, layer 3 [convolutional], ..."; empty: there is none */
    int plainly;           /* fp32 is not finite, or off by more than a hundredth */
} findings;

#define PLAIN .01

static amp_status test(const char *name, const char *cfg, long images, findings *found, amp_error *error)
{
    static const amp_dtype order[] = { AMP_FP32, AMP_BF16, AMP_FP16 };
    char text[AMP_FAULT_TEXT];
    amp_probe_comparison c = { .cfg = cfg, .images = images, .seed = SEED, .stirs = 1,
                               .steps = !images, /* a user's .cfg may clip gradients, and Darknet does not */
                               .tries_nothing = 1 };
    amp_status status = amp_probe_compare(&c, error);
    int faults = 0;
    if (status == AMP_OK) printf("\n%s\n", name);
    for (int k = 0; k < AMP_PROBE_DTYPES && status == AMP_OK; k++) {
        const amp_probe_run *r = &c.runs[order[k]];
        print_run(&c, order[k]);
        faults += r->fault_count;
        for (int f = 0; f < r->fault_count; f++)
            found->plainly |= order[k] == AMP_FP32 && !(r->faults[f].error <= PLAIN);
        if (r->fault_count && !*found->text)
            snprintf(found->text, WRONG_TEXT, "%s, %s", amp_dtype_name(order[k]),
                     amp_probe_fault_text(&c, r->faults, text));
    }
    for (size_t k = 0; k < c.stock_faults.count; k++)
        amp_print_wrapped(stdout, 2, "%s", c.stock_faults.line[k]);
    if (status == AMP_OK && !c.stock_runs)
        fprintf(stderr, "amp selftest: Darknet's own code cannot run this network: AMP's fp32 was compared "
                "with nothing\n");
    if (faults) amp_probe_print_comparison(&c, stdout);
    amp_probe_comparison_free(&c);
    return status;
}

static amp_status test_all(findings *found, amp_error *error)
{
    char cfg[AMP_MEMORY_FILE];
    for (const amp_selftest_network *n = amp_selftest_networks; n->name; n++) {
        if (!is_known(n->section)) continue;
        AMP_TRY(write_network(n->layers, cfg, error));
        AMP_TRY(test(n->name, cfg, 0, found, error));
    }
    return AMP_OK;
}

/* The first GPU, whose line is printed already, and each further one. (-i names a single one that is not the
 * first.) */
static amp_status test_all_gpus(findings *found, amp_error *error)
{
    int first = amp_fork_device() == 0;
    AMP_TRY(test_all(found, error));
    for (int gpu = 1; first && amp_fork_choose_gpu(gpu); gpu++) {
        putchar('\n');
        AMP_TRY(amp_print_version(stdout, error));
        AMP_TRY(test_all(found, error));
    }
    return AMP_OK;
}

amp_status amp_command_selftest(int argc, char **argv, amp_error *error)
{
    findings found = { .plainly = 0 };
    const char *cfg = NULL;
    const amp_argument arguments[] = {
        { .name = "CFG", .text = &cfg, .optional = 1,
          .about = "this network instead of the built-in ones, on an image of random numbers" },
        { 0 } };
    AMP_TRY(amp_arguments_read("amp selftest", argc - 3, argv + 3, arguments, error));
    AMP_TRY(amp_print_version(stdout, error));
    AMP_TRY(cfg ? test(cfg, cfg, 1, &found, error) : test_all_gpus(&found, error));
    if (*found.text) {
        if (!cfg)
            return amp_fail(error, AMP_DIVERGED, "%s; please report it with what is printed above",
                            found.text);
        fflush(stdout);
        fprintf(stderr, "amp selftest: %s\n", found.text);
        exit(found.plainly ? AMP_SELFTEST_WRONG : AMP_SELFTEST_OFF);
    }
    printf("\nAll layers compute what they must.\n");
    return AMP_OK;
}
