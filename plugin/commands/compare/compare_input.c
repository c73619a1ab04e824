/* What a comparison is given, looked at before anything is made or trained. */
#include "compare.h"

#include "../../amp/cfg_reader.h"
#include "../../amp/config.h"
#include "../../host/data/data_files.h"
#include "../../host/common/state.h"
#include "../cfg_copy.h"
#include "../data_check.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* ---- the .cfg ---- */

typedef struct cfg_end { char section[64]; int classes; } cfg_end;

/* Its last section but [amp], and that one's classes=. */
static amp_status read_end(const char *cfg, cfg_end *end, amp_error *error)
{
    cfg_reader *reader;
    cfg_item item = { 0 };
    amp_status status;
    int in_layer = 0;
    *end = (cfg_end){ .classes = 0 };
    AMP_TRY(cfg_reader_open(cfg, &reader, error));
    while ((status = cfg_reader_next(reader, &item, error)) == AMP_OK && item.kind != CFG_END) {
        if (item.kind == CFG_SECTION) in_layer = strcmp(item.text, "[amp]") != 0;
        if (item.kind == CFG_SECTION && in_layer) {
            cfg_printable(end->section, sizeof end->section, item.text);
            end->classes = 0;
        }
        if (item.kind == CFG_OPTION && in_layer && item.value && !strcmp(item.text, "classes")) end->classes = atoi(item.value);
    }
    cfg_reader_close(reader);
    return status;
}

static int is_one_of(const char *text, const char *const *names)
{
    for (; *names; ++names) if (!strcmp(text, *names)) return 1;
    return 0;
}

static amp_status look_at_end(amp_comparison *c, amp_error *error)
{
    static const char *const detectors[] = { "[yolo]", "[region]", NULL };
    static const char *const classifiers[] = { "[softmax]", "[soft]", "[cost]", "[logistic]", NULL };
    cfg_end end;
    AMP_TRY(read_end(c->cfg, &end, error));
    c->classes = end.classes ? end.classes : 20; /* what parse_yolo and parse_region take */
    c->kind = is_one_of(end.section, classifiers) ? AMP_COMPARED_CLASSIFIER : AMP_COMPARED_DETECTOR;
    if (c->kind == AMP_COMPARED_CLASSIFIER || is_one_of(end.section, detectors)) return AMP_OK;
    if (!strcmp(end.section, "[detection]"))
        return amp_fail(error, AMP_BAD_CONFIG, "%s: it ends in [detection] (YOLO v1), which `darknet yolo train` trains; compare "
                        "knows detectors that end in [yolo] or [region], and classifiers", c->cfg);
    return amp_fail(error, AMP_BAD_CONFIG, "%s: it ends in %s; compare knows detectors that end in [yolo] or [region], "
                    "and classifiers that end in [softmax], [cost] or [logistic]", c->cfg,
                    end.section[0] ? end.section : "no section");
}

static amp_status whole_number(const char *cfg, const char *key, double fallback, double least, double most, double *value,
                               amp_error *error)
{
    AMP_TRY(amp_cfg_number(cfg, key, fallback, value, error));
    if (*value >= least && *value <= most && *value == floor(*value)) return AMP_OK;
    return amp_fail(error, AMP_BAD_CONFIG, "%s: %s=%g under [net]; expected a whole number from %.10g to %.10g", cfg, key,
                    *value, least, most);
}

/* Keys of [amp] are checked by whoever trains, and so is the rest; but before a folder is made is better. */
static amp_status check_amp(const amp_comparison *c, amp_error *error)
{
    amp_config *config;
    AMP_TRY(amp_config_read(c->cfg, "fp32", AMP_FP32, &config, error));
    amp_config_free(config);
    return amp_host_check_cfg(c->cfg, CFG_TRAINS_DATA, error);
}

static amp_status look_at_cfg(amp_comparison *c, amp_error *error)
{
    double batch, width, height, iterations;
    AMP_TRY(look_at_end(c, error));
    AMP_TRY(check_amp(c, error));
    AMP_TRY(whole_number(c->cfg, "batch", 1, 1, 1 << 24, &batch, error));
    AMP_TRY(whole_number(c->cfg, "width", 0, 1, 1 << 16, &width, error));
    AMP_TRY(whole_number(c->cfg, "height", 0, 1, 1 << 16, &height, error));
    AMP_TRY(whole_number(c->cfg, "max_batches", 0, 0, 1 << 30, &iterations, error));
    c->batch = (int)batch;
    c->width = (int)width;
    c->height = (int)height;
    if (!c->iterations) c->iterations = (long)iterations;
    if (c->iterations) return AMP_OK;
    return amp_fail(error, AMP_BAD_CONFIG, "%s: no max_batches= under [net]; say with -iters how many iterations to "
                    "train", c->cfg);
}

/* ---- the data ---- */

/* What says which class a picture is of; a detector's classes are its .cfg's. */
static amp_status look_at_labels(amp_comparison *c, amp_error *error)
{
    amp_data_file data;
    amp_status status = amp_data_file_read(c->data, &data, error);
    if (status == AMP_OK && !data.labels)
        status = amp_fail(error, AMP_BAD_CONFIG, "%s: no `labels = FILE`, which names the classes", c->data);
    c->classes = data.classes ? data.classes : 2; /* what train_classifier takes */
    amp_data_file_free(&data);
    return status;
}

/* All of it: a short training would not meet every label, a long one not before hours are gone. */
static amp_status look_at_data(amp_comparison *c, amp_error *error)
{
    int classifier = c->kind == AMP_COMPARED_CLASSIFIER;
    amp_data_counts counts;
    if (classifier) AMP_TRY(look_at_labels(c, error));
    AMP_TRY(amp_check_data(c->data, classifier, c->classes, AMP_CHECK_TRAIN | AMP_CHECK_VALID, &counts, error));
    amp_data_counts_print(&counts);
    c->train_images = counts.train.images;
    c->valid_images = counts.valid.images;
    return AMP_OK;
}

/* Further checks are the training's own. */
static amp_status look_at_weights(const amp_comparison *c, amp_error *error)
{
    if (!c->weights) return AMP_OK;
    if (amp_is_device(c->weights))
        return amp_fail(error, AMP_BAD_CONFIG, "%s: cannot read these weights: not a regular file", c->weights);
    FILE *file = fopen(c->weights, "rb");
    int version[3];
    int whole = file && fread(version, sizeof version, 1, file) == 1;
    if (file) fclose(file);
    if (whole) return AMP_OK;
    return amp_fail(error, AMP_BAD_CONFIG, file ? "%s: no .weights file" : "%s: cannot read the weights", c->weights);
}

/* ---- the machine ---- */

static amp_status look_at_dtypes(amp_compare *compare, amp_error *error)
{
    amp_comparison *c = &compare->result;
    for (int d = 0; d < c->dtype_count; ++d) {
        int k = amp_dtype_find(c->dtypes[d]);
        if (!strcmp(c->dtypes[d], "stock")) continue;
        if (k < 0)
            return amp_fail(error, AMP_BAD_CONFIG, "-dtypes %s: there is none of that name; known: stock, fp32, bf16, fp16",
                            c->dtypes[d]);
        if (compare->hardware.support[k] == AMP_SUPPORT_NONE)
            return amp_fail(error, AMP_UNSUPPORTED, "-dtypes %s: this machine cannot run it: %s", c->dtypes[d],
                            compare->hardware.note[k]);
    }
    return AMP_OK;
}

/* "model name	: AMD EPYC ..." of /proc/cpuinfo; empty where there is none. */
static void processor_name(char *name, size_t size)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    name[0] = 0;
    while (file && !name[0] && fgets(line, sizeof line, file)) {
        char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !value) continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(name, size, "%s; ", value + 1 + strspn(value + 1, " "));
    }
    if (file) fclose(file);
}

static void name_machine(amp_compare *compare)
{
    char processor[256], text[700];
    processor_name(processor, sizeof processor);
    snprintf(text, sizeof text, "%s%s", processor, compare->hardware.description);
    compare->result.machine = strdup(text);
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void name_itself(amp_comparison *c)
{
    char title[600], date[32];
    time_t now = time(NULL);
    struct tm utc;
    snprintf(title, sizeof title, "%.250s on %.250s", last_part(c->cfg), last_part(c->data));
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    c->title = strdup(title);
    c->date = strdup(date);
}

amp_status amp_compare_look(amp_compare *compare, amp_error *error)
{
    amp_comparison *c = &compare->result;
    AMP_TRY(look_at_dtypes(compare, error));
    AMP_TRY(look_at_cfg(c, error));
    AMP_TRY(look_at_data(c, error));
    AMP_TRY(look_at_weights(c, error));
    name_machine(compare);
    name_itself(c);
    compare->base = amp_fork_base_name(c->cfg);
    if (!c->machine || !c->title || !c->date || !compare->base) return amp_fail(error, AMP_NO_MEMORY, "out of memory");
    return AMP_OK;
}
