/* The verb, see selftest.h. */
#include "selftest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../amp/cfg_check.h"
#include "../../host/common/failure.h"
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
    else printf("  %s  %s against %s; %s %s\n", amp_dtype_name(dtype), r->fault_count ? "WRONG" : "good",
                against, r->fault_count ? "first" : "nearest to a limit:",
                amp_probe_fault_text(c, r->fault_count ? r->faults : &r->nearest, text));
}

/* *wrong: "fp32, layer 3 [convolutional], ...", if a dtype has a fault and nothing was wrong before. */
static amp_status test(const char *name, const char *cfg, char wrong[AMP_FAULT_TEXT + 32], amp_error *error)
{
    static const amp_dtype order[] = { AMP_FP32, AMP_BF16, AMP_FP16 };
    char text[AMP_FAULT_TEXT];
    amp_probe_comparison c = { .cfg = cfg, .seed = SEED, .stirs = 1, .tries_no_pins = 1 };
    amp_status status = amp_probe_compare(&c, error);
    if (status == AMP_OK) printf("\n%s\n", name);
    for (int k = 0; k < AMP_PROBE_DTYPES && status == AMP_OK; k++) {
        const amp_probe_run *r = &c.runs[order[k]];
        print_run(&c, order[k]);
        if (r->fault_count && !*wrong)
            snprintf(wrong, AMP_FAULT_TEXT + 32, "%s, %s", amp_dtype_name(order[k]),
                     amp_probe_fault_text(&c, r->faults, text));
    }
    if (*wrong && status == AMP_OK) amp_probe_print_comparison(&c, stdout);
    amp_probe_comparison_free(&c);
    return status;
}

static amp_status test_all(char wrong[AMP_FAULT_TEXT + 32], amp_error *error)
{
    char cfg[AMP_MEMORY_FILE];
    for (const amp_selftest_network *n = amp_selftest_networks; n->name; n++) {
        if (!is_known(n->section)) continue;
        AMP_TRY(write_network(n->layers, cfg, error));
        AMP_TRY(test(n->name, cfg, wrong, error));
    }
    return AMP_OK;
}

amp_status amp_command_selftest(int argc, char **argv, amp_error *error)
{
    char wrong[AMP_FAULT_TEXT + 32] = "";
    static const amp_argument none[] = { { 0 } };
    AMP_TRY(amp_arguments_read("amp selftest", argc - 3, argv + 3, none, error));
    AMP_TRY(amp_print_version(stdout, error));
    AMP_TRY(test_all(wrong, error));
    if (*wrong)
        return amp_fail(error, AMP_DIVERGED, "%s; please report it with what is printed above", wrong);
    printf("\nAll layers compute what they must.\n");
    return AMP_OK;
}
