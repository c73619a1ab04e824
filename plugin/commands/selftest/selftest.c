/* `darknet amp selftest` tests whether AMP's results on this machine agree with those of Darknet's own code.
 * It makes the comparison of probe/probe_comparison.h on built-in networks, or on a user's .cfg. */
#include <stdlib.h>
#include <string.h>

#include "../../amp/cfg_check.h"
#include "../../host/program/failure.h"
#include "../arguments.h"
#include "../cfg_copy.h"
#include "../command.h"
#include "../probe/probe_comparison.h"

enum { SEED = 1 };

/* ---- the built-in networks, which together have every kind of layer that AMP computes itself ---- */

typedef struct builtin {
    const char *name;     /* lists the network's layers for the user; NULL ends the list */
    const char *section;  /* a section that Darknet must know, else the network is left out; NULL: none */
    const char *layers;   /* a .cfg, with blanks instead of line ends */
} builtin;

#define NET "[net] batch=2 subdivisions=1 channels=3 learning_rate=0.001 max_batches=10 "
#define YOLO "[yolo] anchors=4,5,8,8,12,14,14,12,20,20,28,30 classes=2 num=6 ignore_thresh=.7 truth_thresh=1 "

static const builtin builtins[] = {
    { "a detector: convolutional, maxpool, shortcut, dropout, route, upsample, yolo", NULL,
      NET "width=32 height=32 "
      "[convolutional] batch_normalize=1 filters=8 size=3 stride=1 pad=1 activation=leaky "
      "[maxpool] size=2 stride=2 "
      "[convolutional] batch_normalize=1 filters=12 size=3 stride=2 pad=1 activation=leaky "
      "[convolutional] batch_normalize=1 filters=20 size=1 stride=1 activation=leaky "
      "[convolutional] batch_normalize=1 filters=12 size=3 stride=1 pad=1 activation=leaky "
      "[shortcut] from=-3 activation=linear "
      "[dropout] probability=.2 "
      "[convolutional] batch_normalize=1 filters=24 size=3 stride=1 pad=1 activation=leaky "
      "[convolutional] filters=21 size=1 stride=1 activation=linear "
      YOLO "mask=3,4,5 "
      "[route] layers=-3 "
      "[convolutional] batch_normalize=1 filters=10 size=1 stride=1 activation=leaky "
      "[upsample] stride=2 "
      "[route] layers=-1,1 "
      "[convolutional] batch_normalize=1 filters=28 size=3 stride=1 pad=1 activation=leaky "
      "[convolutional] filters=21 size=1 stride=1 activation=linear "
      YOLO "mask=0,1,2 " },
    { "a classifier: groups, batchnorm, activation, reorg, connected, avgpool, softmax", NULL,
      NET "width=16 height=16 "
      "[convolutional] filters=8 size=5 stride=2 pad=1 activation=linear "
      "[batchnorm] "
      "[activation] activation=logistic "
      "[convolutional] batch_normalize=1 filters=16 groups=2 size=3 stride=1 pad=1 activation=tanh "
      "[reorg] stride=2 "
      "[convolutional] batch_normalize=1 filters=18 size=3 stride=1 pad=1 activation=relu "
      "[maxpool] size=3 stride=1 "
      "[avgpool] "
      "[connected] output=14 activation=leaky "
      "[connected] output=5 activation=linear "
      "[softmax] " },
    { "deconvolutional", "[deconvolutional]",
      NET "width=8 height=8 "
      "[convolutional] batch_normalize=1 filters=6 size=3 stride=1 pad=1 activation=leaky "
      "[deconvolutional] filters=5 size=4 stride=2 padding=1 activation=leaky "
      "[deconvolutional] batch_normalize=1 filters=7 size=3 stride=1 pad=1 activation=logistic "
      "[avgpool] "
      "[connected] output=4 activation=linear "
      "[softmax] " },
    { "scale_channels, sam, mish, swish", "[scale_channels]",
      NET "width=16 height=16 "
      "[convolutional] batch_normalize=1 filters=8 size=3 stride=1 pad=1 activation=mish "
      "[avgpool] "
      "[convolutional] filters=8 size=1 stride=1 activation=logistic "
      "[scale_channels] from=-3 activation=linear "
      "[convolutional] batch_normalize=1 filters=12 size=3 stride=2 pad=1 activation=swish "
      "[convolutional] filters=12 size=1 stride=1 activation=logistic "
      "[sam] from=-2 "
      "[convolutional] batch_normalize=1 filters=6 size=3 stride=1 pad=1 activation=mish "
      "[avgpool] "
      "[connected] output=4 activation=linear "
      "[softmax] " },
    { 0 } };

/* ---- testing ---- */

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

static const amp_dtype order[] = { AMP_FP32, AMP_BF16, AMP_FP16 };

/* What all comparisons found. */
typedef struct findings {
    char text[WRONG_TEXT]; /* the first fault: "fp32, layer 3 [convolutional], ..."; "" without faults */
    int plainly;           /* 1: the verdict on fp32 was AMP_PROBE_WRONG for some network */
    int missing[AMP_PROBE_DTYPES]; /* 1: the dtype was not compared in some network */
} findings;

/* Adds the faults of one comparison to *found, and returns their number. */
static int take_findings(const amp_probe_comparison *c, findings *found)
{
    char text[AMP_FAULT_TEXT];
    int faults = 0;
    found->plainly |= amp_probe_word_of(c, AMP_FP32) == AMP_PROBE_WRONG;
    for (int k = 0; k < AMP_PROBE_DTYPES; k++) {
        const amp_probe_run *r = &c->runs[order[k]];
        faults += r->fault_count;
        found->missing[order[k]] |= amp_probe_word_of(c, order[k]) == AMP_PROBE_NONE;
        if (r->fault_count && !*found->text)
            snprintf(found->text, WRONG_TEXT, "%s, %s", amp_dtype_name(order[k]),
                     amp_probe_fault_text(c, r->faults, text));
    }
    return faults;
}

static amp_status test(const char *name, const char *cfg, long images, findings *found, amp_error *error)
{
    /* A user's .cfg (images above 0) is compared without a training step, because the .cfg may set clip_norm,
     * and Darknet cannot clip gradients. */
    amp_probe_comparison c = { .cfg = cfg, .images = images, .tries_nothing = 1,
                               .source = { .seed = SEED, .stirs = 1, .steps = !images } };
    amp_status status = amp_probe_compare(&c, error);
    if (status == AMP_OK) {
        printf("\n%s\n", name);
        (take_findings(&c, found) ? amp_probe_print_comparison : amp_probe_print_verdict)(stdout, &c);
        if (!c.stock_runs)
            fprintf(stderr, "amp selftest: Darknet's own code cannot run this network: AMP's fp32 was not "
                    "compared\n");
    }
    amp_probe_comparison_free(&c);
    return status;
}

static amp_status test_all(findings *found, amp_error *error)
{
    char cfg[AMP_MEMORY_FILE];
    for (const builtin *n = builtins; n->name; n++) {
        if (!is_known(n->section)) continue;
        AMP_TRY(write_network(n->layers, cfg, error));
        AMP_TRY(test(n->name, cfg, 0, found, error));
    }
    return AMP_OK;
}

static void print_success(const findings *found)
{
    int count = 0;
    for (int k = 0; k < AMP_PROBE_DTYPES; k++) {
        if (!found->missing[order[k]]) continue;
        printf(count++ ? ", %s" : "\nAll results that were compared are correct. Not compared: %s",
               amp_dtype_name(order[k]));
    }
    printf(count ? "\n" : "\nAll layers compute correct results.\n");
}

/* Tests all GPUs, or only the one that -i names. The first GPU's description has been printed already. */
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
    print_success(&found);
    return AMP_OK;
}
