/* See selftest.h. */
#include "selftest.h"

#include <stdlib.h>
#include <string.h>

#include "../../amp/cfg_check.h"
#include "../../host/program/failure.h"
#include "../arguments.h"
#include "../cfg_copy.h"
#include "../command.h"
#include "../probe/probe_comparison.h"

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

enum { WRONG_TEXT = AMP_FAULT_TEXT + 32 };

/* The faults found in all comparisons. */
typedef struct findings {
    char text[WRONG_TEXT]; /* the first: "fp32, layer 3 [convolutional], ..."; empty if there is none */
    int plainly;           /* AMP_PROBE_WRONG */
} findings;

/* Adds the faults of one comparison. Returns how many it has. */
static int take_findings(const amp_probe_comparison *c, findings *found)
{
    static const amp_dtype order[] = { AMP_FP32, AMP_BF16, AMP_FP16 };
    char text[AMP_FAULT_TEXT];
    int faults = 0;
    found->plainly |= amp_probe_word_of(c, AMP_FP32) == AMP_PROBE_WRONG;
    for (int k = 0; k < AMP_PROBE_DTYPES; k++) {
        const amp_probe_run *r = &c->runs[order[k]];
        faults += r->fault_count;
        if (r->fault_count && !*found->text)
            snprintf(found->text, WRONG_TEXT, "%s, %s", amp_dtype_name(order[k]),
                     amp_probe_fault_text(c, r->faults, text));
    }
    return faults;
}

static amp_status test(const char *name, const char *cfg, long images, findings *found, amp_error *error)
{
    amp_probe_comparison c = { .cfg = cfg, .images = images, .seed = SEED, .stirs = 1,
                               /* a user's .cfg may clip gradients, which Darknet does not do */
                               .steps = !images,
                               .tries_nothing = 1 };
    amp_status status = amp_probe_compare(&c, error);
    if (status == AMP_OK) {
        printf("\n%s\n", name);
        (take_findings(&c, found) ? amp_probe_print_comparison : amp_probe_print_verdict)(&c, stdout);
        if (!c.stock_runs)
            fprintf(stderr, "amp selftest: Darknet's own code cannot run this network: AMP's fp32 was "
                    "compared with nothing\n");
    }
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

/* Tests the first GPU, whose line has been printed, and each further one. If -i names another GPU than the
 * first, only that one. */
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
            return amp_fail(error, AMP_DIVERGED, "%s; please report it with the output above",
                            found.text);
        fflush(stdout);
        fprintf(stderr, "amp selftest: %s\n", found.text);
        exit(found.plainly ? AMP_SELFTEST_WRONG : AMP_SELFTEST_OFF);
    }
    printf("\nAll layers compute correct results.\n");
    return AMP_OK;
}
