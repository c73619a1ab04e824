/* Checks what a comparison is given, before anything is made or trained. */
#include "comparison.h"

#include "../../files/safe_file.h"
#include "../../host/network/state.h"
#include "../cfg_copy.h"
#include "../data_scan.h"

#include <time.h>

/* ---- the .cfg ---- */

/* Whether it is a detector or a classifier, by its last section. */
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
    return amp_fail(error, AMP_BAD_CONFIG, "%s: it ends in %s; compare knows detectors that end in [yolo] or "
                    "[region], and classifiers that end in [softmax], [cost] or [logistic]", c->cfg, section);
}

/* Checks what the trainings check too, before a folder is made. */
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

/* ---- the data ---- */

/* Scans all labels: a short training would not read all of them, and a long one some of them only after
 * hours. */
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

/* ---- all of it ---- */

amp_status amp_compare_inspect(amp_compare *compare, amp_error *error)
{
    amp_comparison *c = &compare->result;
    char processor[256], machine[700], title[600], date[32];
    time_t now = time(NULL);
    struct tm utc;
    AMP_TRY(look_at_cfg(c, error));
    AMP_TRY(look_at_data(c, error));
    if (c->weights) AMP_TRY(amp_readable(c->weights, "the weights", error)); /* the trainings check further */
    amp_machine_processor(processor, sizeof processor);
    snprintf(machine, sizeof machine, "%s%s%s", processor, processor[0] ? "; " : "",
             compare->hardware.description);
    snprintf(title, sizeof title, "%.250s on %.250s", amp_file_name(c->cfg), amp_file_name(c->data));
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    c->machine = amp_allocated(strdup(machine));
    c->title = amp_allocated(strdup(title));
    c->date = amp_allocated(strdup(date));
    compare->base = amp_allocated(amp_fork_base_name(c->cfg));
    return AMP_OK;
}
