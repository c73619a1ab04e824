/* `darknet amp compare`: trains one network in several dtypes from the same weights on the same batches.
 * Reports how much accuracy is lost, and how much time and memory is saved. */
#include "comparison.h"

#include <time.h>
#include <unistd.h>

#include "../cfg_copy.h"
#include "../command.h"
#include "../data_scan.h"
#include "../../files/safe_file.h"
#include "../../host/program/program.h"
#include "../../host/program/version.h"

enum { INTERRUPTED = 130, USUAL_SEEDS = 3, FIRST_LOOK = 3, USUAL_MOST_SEEDS = 24 };

/* ---- the command line ---- */

/* -until looks at the scores after 3, 6, 12, ... and `most` seeds. Returns the first of these numbers that is
 * above `seeds`. */
static int next_look(int seeds, int most)
{
    int next = seeds ? 2 * seeds : FIRST_LOOK;
    return next < most ? next : most;
}

/* The significance level of one look (interim analysis): 5 % divided by the number of looks (Bonferroni's
 * correction), so that the intervals of all looks together hold with a probability of 95 %. */
static double alpha_of_a_look(int most)
{
    int looks = 0;
    for (int seeds = 0; seeds < most; seeds = next_look(seeds, most)) ++looks;
    return AMP_COMPARE_ALPHA / looks;
}

/* Makes room for the runs of the first `count` seeds, and keeps the runs that exist. */
static void set_seed_count(amp_comparison *c, int count)
{
    amp_run *runs = amp_allocated(calloc((size_t)c->dtype_count * (size_t)count, sizeof *runs));
    for (int d = 0; d < c->dtype_count; d++)
        for (int s = 0; s < count; s++)
            runs[d * count + s] = s < c->seed_count ? *amp_comparison_run(c, d, s)
                                : (amp_run){ .dtype = c->dtypes[d], .seed = (unsigned)s + 1 };
    free(c->runs);
    c->runs = runs;
    c->seed_count = count;
}

/* The index of the reference: fp32, else stock, else the first dtype. */
static int reference_of(const amp_comparison *c)
{
    static const char *const preferred[] = { "fp32", "stock" };
    for (int k = 0; k < 2; k++)
        for (int d = 0; d < c->dtype_count; d++) if (!strcmp(c->dtypes[d], preferred[k])) return d;
    return 0;
}

/* Returns the name of the report's folder: the DIR of -report without trailing slashes. Without -report it is
 * NAME-compare in the current folder, if the .cfg is NAME.cfg. The caller frees the name. */
static char *folder_of(const char *given, const char *cfg)
{
    const char *base = amp_file_name(cfg);
    char name[300];
    snprintf(name, sizeof name, "%.*s-compare", (int)strcspn(base, ".") < 200 ? (int)strcspn(base, ".") : 200,
             base);
    char *folder = amp_allocated(strdup(given ? given : name));
    for (size_t length = strlen(folder); length > 1 && folder[length - 1] == '/';
         folder[--length] = 0) {}
    return folder;
}

/* The default of -dtypes: fp32 and the machine's half precisions. Stock is left out because it takes many
 * times as long. */
static const char *usual_dtypes(const amp_machine *machine)
{
    static const char *const lists[2][2] = { { "fp32", "fp32,fp16" }, { "fp32,bf16", "fp32,bf16,fp16" } };
    int bf16 = machine->support[AMP_BF16] != AMP_SUPPORT_NONE;
    int fp16 = machine->support[AMP_FP16] != AMP_SUPPORT_NONE;
    return lists[bf16][fp16];
}

static amp_status read_command(int argc, char **argv, amp_compare *compare, amp_error *error)
{
    amp_comparison *c = &compare->result;
    const char *dtypes = NULL, *folder = NULL;
    long seeds = 0;
    const amp_argument arguments[] = {
        { .name = "DATA", .text = &c->data, .about = "the .data file of the training" },
        { .name = "CFG", .text = &c->cfg, .about = "the network's .cfg" },
        { .name = "WEIGHTS", .text = &c->weights, .optional = 1,
          .about = "the weights that all trainings start from (random weights)" },
        { .name = "-dtypes", .value = "A,B,...", .text = &dtypes,
          .about = "some of stock, fp32, bf16, fp16 (those that this machine has)" },
        { .name = "-iters", .number = &c->iterations, .least = 1, .most = 1 << 30,
          .about = "steps of each training (the .cfg's max_batches)" },
        { .name = "-seeds", .number = &seeds, .least = 1, .most = AMP_COMPARE_MOST_SEEDS,
          .about = "number of trainings of each dtype, with seeds 1 to N (3; with -until, up to 24)" },
        { .name = "-until", .value = "POINTS", .real = &c->points_allowed, .least = .01, .most = 100,
          .about = "adds seeds until an accuracy loss of this many points is ruled out or shown" },
        { .name = "-report", .value = "DIR", .text = &folder,
          .about = "folder for the report and all trainings (the .cfg's name and -compare)" },
        { .name = "-sequential", .flag = &compare->sequential,
          .about = "one training after the other: takes less memory" },
        { 0 } };
    AMP_TRY(amp_arguments_read("amp compare", argc - 3, argv + 3, arguments, error));
    AMP_TRY(amp_machine_read(&compare->hardware, error));
    AMP_TRY(amp_dtypes_read(dtypes, usual_dtypes(&compare->hardware), &compare->hardware, &compare->dtypes,
                            error));
    c->dtypes = (const char **)compare->dtypes.line;
    c->dtype_count = (int)compare->dtypes.count;
    c->reference = reference_of(c);
    compare->until = c->points_allowed > 0;
    compare->most_seeds = seeds ? (int)seeds : compare->until ? USUAL_MOST_SEEDS : USUAL_SEEDS;
    c->alpha = compare->until ? alpha_of_a_look(compare->most_seeds) : AMP_COMPARE_ALPHA;
    c->version = AMP_VERSION;
    compare->folder = folder_of(folder, c->cfg);
    set_seed_count(c, compare->until ? next_look(0, compare->most_seeds) : compare->most_seeds);
    return AMP_OK;
}

static void free_compare(amp_compare *compare)
{
    amp_comparison *c = &compare->result;
    if (compare->lock >= 0) close(compare->lock);
    for (int i = 0; c->runs && i < c->dtype_count * c->seed_count; i++) free(c->runs[i].rows);
    free(compare->base);
    free(compare->folder);
    amp_lines_free(&c->advice);
    free(c->runs);
    free(c->summaries);
    amp_lines_free(&compare->dtypes);
}

/* ---- the input, checked before any file is made and any training begins ---- */

/* section: the network's last section */
static amp_status find_kind(amp_comparison *c, const char *section, amp_error *error)
{
    static const struct { const char *section; amp_compared_kind kind; } known[] = {
        { "[yolo]", AMP_COMPARED_DETECTOR }, { "[region]", AMP_COMPARED_DETECTOR },
        { "[softmax]", AMP_COMPARED_CLASSIFIER }, { "[cost]", AMP_COMPARED_CLASSIFIER },
        { "[logistic]", AMP_COMPARED_CLASSIFIER } };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        c->kind = known[k].kind;
        if (!strcmp(section, known[k].section)) return AMP_OK;
    }
    return amp_fail(error, AMP_BAD_CONFIG, "%s: the last section is %s, but `amp compare` knows only "
                    "detectors that end in [yolo] or [region], and classifiers that end in [softmax], [cost] "
                    "or [logistic]", c->cfg, section);
}

/* Checks the .cfg as a training would, before a folder is made. Fills *c with the .cfg's values. */
static amp_status look_at_cfg(amp_comparison *c, amp_error *error)
{
    amp_cfg_facts facts;
    const cfg_summary *s = &facts.summary;
    AMP_TRY(amp_cfg_look(c->cfg, "fp32", CFG_TRAINS_DATA, &facts, error));
    AMP_TRY(find_kind(c, s->last, error));
    c->batch = facts.batch;
    c->width = (int)s->w;
    c->height = (int)s->h;
    c->boxes = (int)s->boxes;
    c->classes = (int)(c->kind == AMP_COMPARED_CLASSIFIER ? s->truths : s->classes);
    if (!c->iterations) c->iterations = facts.max_batches;
    if (c->iterations > 0) return AMP_OK;
    return amp_fail(error, AMP_BAD_CONFIG, "%s: no max_batches= under [net]; set the number of iterations "
                                           "with -iters", c->cfg);
}

/* Scans all labels, because a short training reads only some, and a long one reads some only after hours. */
static amp_status look_at_data(amp_comparison *c, amp_error *error)
{
    amp_data_scan scan = { .data_file = c->data, .classifier = c->kind == AMP_COMPARED_CLASSIFIER,
                           .classes = c->classes, .w = c->width, .h = c->height, .boxes = c->boxes,
                           .measures = 1 };
    AMP_TRY(amp_scan_data(&scan, error));
    amp_scan_print(&scan);
    c->train_images = scan.train.images;
    c->valid_images = scan.valid.images;
    return AMP_OK;
}

/* Fills compare->result with kind, size, classes, numbers of images and the machine. If the number of
 * iterations is 0, takes it from the .cfg. AMP_BAD_CONFIG: a training could not begin with this input. */
static amp_status inspect(amp_compare *compare, amp_error *error)
{
    amp_comparison *c = &compare->result;
    char processor[256];
    time_t now = time(NULL);
    struct tm utc;
    AMP_TRY(look_at_cfg(c, error));
    AMP_TRY(look_at_data(c, error));
    if (c->weights) AMP_TRY(amp_readable(c->weights, "the weights", error)); /* trainings check its format */
    amp_machine_processor(processor, sizeof processor);
    snprintf(compare->machine, sizeof compare->machine, "%s%s%s", processor, processor[0] ? "; " : "",
             compare->hardware.description);
    snprintf(compare->title, sizeof compare->title, "%.250s on %.250s", amp_file_name(c->cfg),
             amp_file_name(c->data));
    strftime(compare->date, sizeof compare->date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    c->machine = compare->machine;
    c->title = compare->title;
    c->date = compare->date;
    compare->base = amp_allocated(amp_fork_base_name(c->cfg));
    return AMP_OK;
}

/* ---- training and validating ---- */

static amp_status validate_seed(amp_compare *compare, int s, amp_error *error)
{
    amp_comparison *c = &compare->result;
    for (int d = 0; d < c->dtype_count && !amp_turns_interrupted(); d++) {
        amp_run *run = amp_comparison_run(c, d, s);
        if (run->state != AMP_RUN_TRAINED) continue;
        fprintf(stderr, "amp: %s, seed %u: validating; images: %ld\n", run->dtype, run->seed,
                c->valid_images);
        AMP_TRY(amp_compare_validate(compare, run, error));
    }
    return AMP_OK;
}

static amp_status train_seed(amp_compare *compare, int s, amp_error *error)
{
    amp_comparison *c = &compare->result;
    amp_run *runs[c->dtype_count];
    int count = 0;
    for (int d = 0; d < c->dtype_count; d++) {
        amp_run *run = amp_comparison_run(c, d, s);
        if (!amp_run_is_trained(run)) runs[count++] = run;
    }
    int together = compare->sequential ? 1 : count;
    for (int k = 0; k < count && !amp_turns_interrupted(); k += together)
        AMP_TRY(amp_compare_train(compare, runs + k, together, error));
    return validate_seed(compare, s, error);
}

/* Trains all seeds; with -until, look by look, until the scores are settled or most_seeds is reached. */
static amp_status train_all(amp_compare *compare, amp_error *error)
{
    amp_comparison *c = &compare->result;
    for (int before = 0;;) {
        for (int s = before; s < c->seed_count && !amp_turns_interrupted(); s++)
            AMP_TRY(train_seed(compare, s, error));
        if (!compare->until || amp_turns_interrupted() || c->seed_count >= compare->most_seeds) return AMP_OK;
        amp_compare_statistics(c);
        if (amp_compare_is_settled(c)) return AMP_OK;
        before = c->seed_count;
        set_seed_count(c, next_look(before, compare->most_seeds));
        AMP_TRY(amp_runs_read(compare, before, error));
        fprintf(stderr, "amp: the result is inconclusive after %d seeds (-until %g); adding seeds, to a "
                        "total of %d (limit: %d)\n",
                before, c->points_allowed, c->seed_count, compare->most_seeds);
    }
}

/* ---- the results ---- */

static void judge_results(amp_compare *compare)
{
    amp_comparison *c = &compare->result;
    const char *notes[c->dtype_count];
    amp_compare_statistics(c);
    for (int d = 0; d < c->dtype_count; d++) {
        int k = amp_dtype_find(c->dtypes[d]);
        notes[d] = k >= 0 && compare->hardware.note[k][0] ? compare->hardware.note[k] : NULL;
    }
    amp_compare_verdict(c, notes);
}

static amp_status write_reports(const amp_compare *compare, amp_error *error)
{
    static const struct { const char *name; amp_output_writer *write; } forms[] = {
        { "html", amp_report_html }, { "json", amp_report_json }, { "csv", amp_report_csv } };
    char file[AMP_COMPARE_PATH];
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        snprintf(file, sizeof file, "%s/report.%s", compare->folder, forms[k].name);
        AMP_TRY(amp_output_write(file, forms[k].write, &compare->result, error));
    }
    return AMP_OK;
}

static amp_status report(amp_compare *compare, amp_error *error)
{
    judge_results(compare);
    AMP_TRY(write_reports(compare, error));
    amp_report_table(stdout, &compare->result);
    printf("\nreport: %s/report.html (report.json, report.csv; steps, logs and weights in runs/)\n",
           compare->folder);
    fflush(stdout);
    return AMP_OK;
}

/* If a run failed, returns AMP_DIVERGED, with the first failed run in the message. */
static amp_status name_failures(const amp_compare *compare, amp_error *error)
{
    const amp_comparison *c = &compare->result;
    const amp_run *first = NULL;
    int failed = 0, all = c->dtype_count * c->seed_count;
    for (int i = 0; i < all; i++) {
        if (c->runs[i].state != AMP_RUN_FAILED) continue;
        if (!failed++) first = &c->runs[i];
    }
    if (!failed) return AMP_OK;
    return amp_fail(error, AMP_DIVERGED, "%d of %d trainings failed; the first was %s, seed %u: %s", failed,
                    all, first->dtype, first->seed, first->failure);
}

/* ---- the verb ---- */

static void announce(const amp_compare *compare)
{
    const amp_comparison *c = &compare->result;
    int kept = 0, all = c->dtype_count * c->seed_count;
    for (int i = 0; i < all; i++) kept += amp_run_is_trained(&c->runs[i]);
    fprintf(stderr, "amp: %s: trainings: %d of %ld iterations (dtypes: %d, seeds: %d), in %s", c->title, all,
            c->iterations, c->dtype_count, c->seed_count, compare->folder);
    if (kept) fprintf(stderr, "; already trained: %d", kept);
    fprintf(stderr, "\n");
}

static amp_status compare_all(amp_compare *compare, amp_error *error)
{
    amp_comparison *c = &compare->result;
    AMP_TRY(inspect(compare, error));
    if (!compare->until)
        c->points_allowed = c->kind == AMP_COMPARED_CLASSIFIER ? AMP_CLASSIFIER_POINTS : AMP_DETECTOR_POINTS;
    amp_status status = amp_compare_open(compare, error);
    if (status == AMP_OK) status = amp_runs_read(compare, 0, error);
    if (status == AMP_OK) {
        announce(compare);
        amp_turns_watch_signals();
        status = train_all(compare, error);
    }
    if (status != AMP_OK) {
        if (!compare->steps_seen) amp_compare_undo(compare);
        return status;
    }
    c->interrupted = amp_turns_interrupted() != 0;
    AMP_TRY(report(compare, error));
    return c->interrupted ? AMP_OK : name_failures(compare, error);
}

amp_status amp_command_compare(int argc, char **argv, amp_error *error)
{
    amp_compare compare = { .lock = -1 };
    amp_status status = read_command(argc, argv, &compare, error);
    if (status == AMP_OK && amp_this_program()->dtype)
        status = amp_fail(error, AMP_BAD_CONFIG, "-amp: choose the dtypes that are compared with -dtypes");
    if (status == AMP_OK) status = compare_all(&compare, error);
    int is_interrupted = status == AMP_OK && compare.result.interrupted;
    if (is_interrupted)
        fprintf(stderr, "amp compare: interrupted; to continue, call it again with -report %s\n",
                compare.folder);
    free_compare(&compare);
    if (is_interrupted) exit(INTERRUPTED);
    return status;
}
