/* Reads AMP's keys in [amp], [net] and the layers' sections into an amp_config: the table of keys, the parser
 * of their values, and the rules for which setting takes effect. */
#include "config.h"

#include <float.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "scaler.h"

/* ---- the keys ---- */

typedef enum amp_key {
    AMP_ON, DTYPE, LOSS_SCALE, INIT_SCALE, GROWTH_FACTOR, GROWTH_INTERVAL, BACKOFF_FACTOR, HYSTERESIS,
    MIN_SCALE, MAX_SCALE, CLIP_NORM, SPIKE_FACTOR, SPIKE, ADAMW, CHECKPOINT, MEMORY, WIRE, SYNC_BATCHNORM,
    GRAPHS, WINOGRAD, DEBUG,
    KEYS
} amp_key;

/* The types of values. DTYPE_NAME is stored as an amp_dtype, LOG_OR_SKIP as AMP_SPIKE_LOG or AMP_SPIKE_SKIP.
 * SCALE has the bounds that scale_problem checks. REAL_OR_0 is 0 or within its row's bounds. WHOLE_OR_WORD is
 * "off", "auto" or a whole number. BYTES is a number with the unit MB or GB. */
typedef enum key_type {
    FLAG, DTYPE_NAME, LOG_OR_SKIP, SCALE, SCALE_OR_DYNAMIC, WHOLE, REAL, REAL_OR_0, WHOLE_OR_WORD, BYTES
} key_type;

#define DYNAMIC 0.0 /* loss_scale=dynamic: 0 is not a valid static scale */

typedef struct key_row {
    const char *name;
    size_t field;      /* offset of the key's field in amp_config: a double for scales, REAL, REAL_OR_0 and
                          BYTES, else an int */
    key_type type;
    double fallback;   /* the default; for dtype and loss_scale see `settle` */
    double least, most;
    const char *below, *above; /* what an error message says about a number below `least`, or above `most` */
    const char *allowed, *help;
    const char *initial;       /* the default as text; NULL: use fallback as the text */
} key_row;

/* KEY(name) fills the first two members of a row whose key has the same name as its field in amp_config. */
#define KEY(name) #name, offsetof(amp_config, name)

/* docs/keys.md has the same table, in the same order; test_config compares the two. */
static const key_row rows[KEYS] = {
    [AMP_ON] = { "amp", offsetof(amp_config, enabled), FLAG, .allowed = "0, 1", .initial = "1",
                 .help = "0 turns AMP off: stock Darknet" },
    [DTYPE] = { KEY(dtype), DTYPE_NAME, .allowed = "fp16, bf16, fp32", .initial = "bf16; on a GPU fp16",
                .help = "fp16, bf16, or fp32: AMP's own code in full precision, the fair baseline" },
    [LOSS_SCALE] = { KEY(loss_scale), SCALE_OR_DYNAMIC, .initial = "dynamic if dtype or wire is fp16, else 1",
                     .allowed = "dynamic, or a number from 1.2e-38 to 8.5e37",
                     .help = "dynamic, or a fixed positive number" },
    [INIT_SCALE] = { KEY(init_scale), SCALE, 65536, .allowed = "a number from min_scale to max_scale",
                     .help = "the dynamic scale of the first step" },
    [GROWTH_FACTOR] = { KEY(growth_factor), REAL, 2, 1 + DBL_EPSILON, DBL_MAX, "not above 1", "not finite",
                        "a number above 1",
                        "multiply the scale by this after growth_interval consecutive good steps" },
    [GROWTH_INTERVAL] = { KEY(growth_interval), WHOLE, 2000, 1, INT_MAX, "below 1", "too large",
                          "a whole number from 1 to 2147483647",
                          "this many consecutive good steps raise the scale" },
    [BACKOFF_FACTOR] = { KEY(backoff_factor), REAL, 0.5, DBL_MIN, 1 - DBL_EPSILON / 2,
                         "not between 0 and 1", "not between 0 and 1", "a number above 0 and below 1",
                         "multiply the scale by this when a step is skipped" },
    /* The upper bound is the scaler's own limit on consecutive skipped steps; reaching it ends training. */
    [HYSTERESIS] = { KEY(hysteresis), WHOLE, 1, 1, AMP_SCALER_STUCK_LIMIT, "below 1", "too large",
                     "a whole number from 1 to 100",
                     "lower the scale after this many consecutive skipped steps" },
    [MIN_SCALE] = { KEY(min_scale), SCALE, 0x1p-14, .allowed = "a number from 1.2e-38 to init_scale",
                    .initial = "2^-14",
                    .help = "lower limit of the scale; below it, training ends and names the layer" },
    [MAX_SCALE] = { KEY(max_scale), SCALE, 0x1p126, .allowed = "a number from init_scale to 8.5e37",
                    .initial = "2^126", .help = "upper limit of the scale" },
    [CLIP_NORM] = { KEY(clip_norm), REAL, 0, 0, FLT_MAX, "negative", "out of fp32's range",
                    "0 (off), or a number up to 3.4e38", "upper bound of the gradient's L2 norm, averaged "
                    "over the batch and without the loss scale", "0 (off)" },
    [SPIKE_FACTOR] = { KEY(spike_factor), REAL_OR_0, 20, 1, DBL_MAX, "below 1", "not finite",
                       "0 (off), or a number of at least 1", "a step is a spike if its gradient's norm or "
                       "its loss exceeds this many times the median of the last 128 steps" },
    [SPIKE] = { KEY(spike), LOG_OR_SKIP, AMP_SPIKE_LOG, .allowed = "log, skip", .initial = "log",
                .help = "log: print the images of a spike; skip: also skip its update, in at most 1 % of the "
                "steps" },
    [ADAMW] = { KEY(adamw), FLAG, .allowed = "0, 1",
                .help = "1, with adam=1 in [net]: AdamW, as torch.optim.AdamW" },
    [CHECKPOINT] = { KEY(checkpoint), WHOLE_OR_WORD, AMP_CHECKPOINT_OFF, 1, 1000, "below 1", "too large",
                     "off, auto, or a number of segments from 1 to 1000", "activation checkpointing, which "
                     "saves memory and costs time: auto recomputes as little as makes the training fit, N "
                     "cuts the network into N segments", "off" },
    [MEMORY] = { KEY(memory), BYTES, 0, 0x1p20, 0x1p60, "below 1MB", "too large",
                 "a number of megabytes or gigabytes, such as 900MB or 8GB",
                 "the memory that checkpoint=auto may use, such as 8GB", "what is free" },
    [WIRE] = { KEY(wire), DTYPE_NAME, AMP_FP32, .allowed = "fp32, bf16, fp16", .initial = "fp32",
               .help = "the dtype in which ranks exchange gradients; 16 bits help on slow networks" },
    [SYNC_BATCHNORM] = { KEY(sync_batchnorm), FLAG, .allowed = "0, 1", .help = "1: batch norm uses the "
                         "images of all ranks, for mini-batches of 1 or 2 images" },
    [GRAPHS] = { KEY(graphs), FLAG, .allowed = "0, 1", .help = "1: run as CUDA graphs on a GPU if AMP "
                 "computes every layer; for small batches" },
    [WINOGRAD] = { KEY(winograd), FLAG, 1, .allowed = "0, 1",
                   .help = "0: no Winograd minimal filtering for 3x3 convolutions on a CPU" },
    [DEBUG] = { KEY(debug), FLAG, .allowed = "0, 1", .help = "1: name the first tensor of a step that is inf "
                "or NaN, and the images it came from" },
};

int amp_config_key(int k, amp_config_row *out)
{
    if (k < 0 || k >= KEYS) return 0;
    const key_row *row = &rows[k];
    *out = (amp_config_row){ .name = row->name, .allowed = row->allowed, .help = row->help };
    if (row->initial) snprintf(out->initial, sizeof out->initial, "%s", row->initial);
    else snprintf(out->initial, sizeof out->initial, "%g", row->fallback);
    return 1;
}

static amp_key find_key(const char *name)
{
    int key = 0;
    while (key < KEYS && strcmp(name, rows[key].name)) key++;
    return (amp_key)key;
}

int amp_config_is_key(const char *key) { return find_key(key) != KEYS; }
int amp_config_is_layer_key(const char *key)
{
    amp_key k = find_key(key);
    return k == AMP_ON || k == CHECKPOINT;
}

/* Returns NULL, or what is wrong with a scale. The scale is stored in fp32, and Darknet flushes subnormals to
 * 0: a subnormal inverse would turn every gradient into 0. */
static const char *scale_problem(double scale)
{
    if (!(scale > 0)) return "not positive";
    if (scale < FLT_MIN || scale > FLT_MAX) return "out of fp32's range";
    return scale > 0x1p126 ? "above 2^126: fp32 cannot hold its inverse" : NULL;
}

/* 1 GB is 2^30 bytes, as in the memory sizes of graphics cards. */
static const char *parse_bytes(const char *value, double *number)
{
    char digits[32];
    size_t length = strlen(value);
    double unit = length > 2 && !strcmp(value + length - 2, "GB") ? 0x1p30
        : length > 2 && !strcmp(value + length - 2, "MB") ? 0x1p20 : 0;
    if (unit == 0 || length - 2 >= sizeof digits) return "needs a unit, MB or GB";
    snprintf(digits, sizeof digits, "%.*s", (int)length - 2, value);
    const char *problem = cfg_parse_number(digits, number);
    *number *= unit;
    return problem;
}

/* Returns NULL and sets *number, or returns what is wrong with value. */
static const char *parse_value(const key_row *row, const char *value, double *number)
{
    if (!value || !*value) return "has no value";
    if (row->type == DTYPE_NAME) return (*number = amp_dtype_find(value)) < 0 ? "unknown dtype" : NULL;
    if (row->type == FLAG) {
        *number = *value == '1';
        return strcmp(value, "0") && strcmp(value, "1") ? "neither 0 nor 1" : NULL;
    }
    if (row->type == LOG_OR_SKIP) {
        *number = strcmp(value, "skip") ? AMP_SPIKE_LOG : AMP_SPIKE_SKIP;
        return strcmp(value, "log") && strcmp(value, "skip") ? "neither log nor skip" : NULL;
    }
    if (row->type == SCALE_OR_DYNAMIC && !strcmp(value, "dynamic")) {
        *number = DYNAMIC;
        return NULL;
    }
    if (row->type == WHOLE_OR_WORD && (!strcmp(value, "off") || !strcmp(value, "auto"))) {
        *number = *value == 'o' ? AMP_CHECKPOINT_OFF : AMP_CHECKPOINT_AUTO;
        return NULL;
    }
    const char *problem = row->type == BYTES ? parse_bytes(value, number) : cfg_parse_number(value, number);
    if (problem) return row->type == SCALE_OR_DYNAMIC ? "neither dynamic nor a decimal number" : problem;
    if (row->type == SCALE || row->type == SCALE_OR_DYNAMIC) return scale_problem(*number);
    if ((row->type == WHOLE || row->type == WHOLE_OR_WORD) && *number > 0
        && value[strspn(value, "+0123456789")])
        return "not a whole number";
    if (row->type == REAL_OR_0 && *number == 0) return NULL;
    return *number < row->least ? row->below : *number > row->most ? row->above : NULL;
}

/* ---- reading ---- */

/* The setting that takes effect for a key: the one in [amp] or, if [amp] does not set the key, in [net]. */
typedef struct setting {
    double number;
    char text[48];         /* the value as written, for error messages */
    unsigned long line;    /* 0: the key was not set */
    const char *section;   /* "[net]" or "[amp]" */
} setting;

typedef struct parse {
    const char *file;
    enum { IN_NOTHING, IN_NET, IN_AMP, IN_LAYER } kind;
    char section[48];      /* name of the current section, for errors */
    unsigned long net_line, amp_line; /* 0: the file has no such section */
    unsigned long layer_line[KEYS]; /* lines of the current layer's keys; 0: not given */
    setting set[KEYS];
    amp_layer_keys *layers;
    size_t layer_count, layer_room;
    int adam;              /* [net]'s first adam=, the one that Darknet uses; -1: not given */
    int mentioned;         /* 1: there is an [amp] section, an amp= in any section, or -amp */
} parse;

static cfg_place place_of(const parse *p, const cfg_item *item)
{
    cfg_place place = { .file = p->file, .line = item->line };
    if (p->kind != IN_NOTHING) place.section = p->section;
    if (item->kind == CFG_OPTION) {
        place.key = item->text;
        place.value = item->value;
    }
    return place;
}

static amp_status enter_amp(parse *p, const cfg_item *item, int first, amp_error *error)
{
    char problem[96];
    p->mentioned = 1;
    if (first)
        return cfg_fail(error, place_of(p, item), "cannot be the first section; put it after [net]",
                        "[net] first, then [amp]");
    if (p->amp_line) {
        snprintf(problem, sizeof problem, "a second [amp] section, the first is on line %lu", p->amp_line);
        return cfg_fail(error, place_of(p, item), problem, "one [amp] section");
    }
    p->amp_line = item->line;
    return AMP_OK;
}

static amp_status enter_section(parse *p, const cfg_item *item, amp_error *error)
{
    static const char *const ours = "[amp]";
    int first = p->kind == IN_NOTHING, is_amp = !strcmp(item->text, ours);
    char problem[128];
    snprintf(p->section, sizeof p->section, "%s", item->text);
    p->kind = is_amp ? IN_AMP : first ? IN_NET : IN_LAYER;
    if (is_amp) return enter_amp(p, item, first, error);
    if (first) {
        p->net_line = item->line;
        if (cfg_is_net(item->text)) return AMP_OK;
        return cfg_fail(error, place_of(p, item), "the first section is not [net]",
                        "[net] first, then the layers");
    }
    /* Reject a misspelt [amp], like "[AMP]", which Darknet would ignore. cfg_check checks the other names. */
    if (cfg_did_you_mean(problem, sizeof problem, "unknown section", item->text, &ours, 1))
        return cfg_fail(error, place_of(p, item), problem, CFG_SECTIONS_ALLOWED);
    memset(p->layer_line, 0, sizeof p->layer_line);
    p->layers = amp_grow(p->layers, p->layer_count, &p->layer_room, sizeof *p->layers);
    p->layers[p->layer_count++] = (amp_layer_keys){ .amp = 1 };
    return AMP_OK;
}

static amp_status refuse_key(const parse *p, const cfg_item *item, amp_error *error)
{
    const char *names[KEYS];
    char allowed[KEYS * 32] = "", problem[96];
    for (int key = 0; key < KEYS; key++) {
        names[key] = rows[key].name;
        if (key) strcat(allowed, ", ");
        strncat(allowed, names[key], 29);
    }
    cfg_did_you_mean(problem, sizeof problem, "unknown key", item->text, names, KEYS);
    return cfg_fail(error, place_of(p, item), problem, allowed);
}

/* Parses and checks the value of a key. before: the line on which this section already sets the key, or 0. */
static amp_status read_value(const parse *p, const cfg_item *item, amp_key key, unsigned long before,
                             double *number, amp_error *error)
{
    char twice[96];
    if (before) {
        snprintf(twice, sizeof twice, "set twice in this section, first on line %lu", before);
        return cfg_fail(error, place_of(p, item), twice, "each key once");
    }
    static const key_row flag = { .allowed = "0, 1", .type = FLAG };
    const key_row *row = p->kind == IN_LAYER ? &flag : &rows[key];
    const char *problem = parse_value(row, item->value, number);
    if (problem && item->value && strpbrk(item->value, "#;")) problem = "a comment needs a line of its own";
    return problem ? cfg_fail(error, place_of(p, item), problem, row->allowed) : AMP_OK;
}

static amp_status read_setting(parse *p, const cfg_item *item, amp_key key, amp_error *error)
{
    setting *to = &p->set[key];
    const char *section = p->kind == IN_AMP ? "[amp]" : "[net]";
    unsigned long before = to->line && to->section == section ? to->line : 0;
    AMP_TRY(read_value(p, item, key, before, &to->number, error));
    to->line = item->line;
    to->section = section;
    cfg_printable(to->text, sizeof to->text, item->value);
    p->mentioned |= key == AMP_ON;
    return AMP_OK;
}

static amp_status read_option(parse *p, const cfg_item *item, amp_error *error)
{
    amp_key key = find_key(item->text);
    if (p->kind == IN_NOTHING) {
        int marked = item->line == 1 && cfg_begins_with_mark(item->text);
        return cfg_fail(error, place_of(p, item),
                        marked ? "the file begins with a byte order mark"
                        : "comes before the first section: is this a .cfg file?",
                        marked ? "UTF-8 without one" : "[net] first, then its keys");
    }
    if (p->kind == IN_AMP && key == KEYS) return refuse_key(p, item, error);
    if (p->kind == IN_NET && p->adam < 0 && !strcmp(item->text, "adam"))
        p->adam = item->value && atoi(item->value) != 0;
    if (p->kind != IN_LAYER) return key == KEYS ? AMP_OK : read_setting(p, item, key, error);
    if (!amp_config_is_layer_key(item->text)) return AMP_OK;
    double on = 1;
    AMP_TRY(read_value(p, item, key, p->layer_line[key], &on, error));
    p->mentioned |= key == AMP_ON;
    p->layer_line[key] = item->line;
    amp_layer_keys *layer = &p->layers[p->layer_count - 1];
    *(key == AMP_ON ? &layer->amp : &layer->checkpoint) = (signed char)on;
    return AMP_OK;
}

static amp_status read_item(parse *p, const cfg_item *item, amp_error *error)
{
    if (item->kind == CFG_SECTION) return enter_section(p, item, error);
    if (item->kind == CFG_OPTION) return read_option(p, item, error);
    return item->fatal ? cfg_fail(error, place_of(p, item), item->text, "lines of text") : AMP_OK;
}

static amp_status check_layers(const parse *p, amp_error *error)
{
    if (p->layer_count) return AMP_OK;
    cfg_place place = { .file = p->file, .line = p->net_line, .section = p->net_line ? "[net]" : NULL };
    return cfg_fail(error, place, p->net_line ? "no layer follows" : "holds no section",
                    "[net] first, then the layers");
}

/* ---- which setting wins ---- */

static void fill(const parse *p, amp_config *config)
{
    for (int key = 0; key < KEYS; key++) {
        size_t length = strlen(config->given);
        if (p->set[key].line)
            snprintf(config->given + length, sizeof config->given - length, "%s%s=%s", length ? ", " : "",
                     rows[key].name, p->set[key].text);
        key_type type = rows[key].type;
        double value = p->set[key].line ? p->set[key].number : rows[key].fallback;
        void *field = (char *)config + rows[key].field;
        if (type == SCALE || type == SCALE_OR_DYNAMIC || type == REAL || type == REAL_OR_0 || type == BYTES)
            *(double *)field = value;
        else *(int *)field = (int)value;
    }
}

/* Reports a setting that is wrong in combination with other settings. */
static amp_status refuse_setting(const parse *p, amp_key key, const char *problem, const char *allowed,
                                 amp_error *error)
{
    const setting *set = &p->set[key];
    cfg_place place = { p->file, set->line, set->section, rows[key].name, set->text };
    return cfg_fail(error, place, problem, allowed);
}

/* Reports that init_scale is beyond `bound` (MIN_SCALE or MAX_SCALE), whose value is `value`. The message
 * names the line of init_scale if the .cfg sets it, else the line of `bound`. */
static amp_status refuse_scale(const parse *p, double init_scale, amp_key bound, double value,
                               amp_error *error)
{
    int init_is_set = p->set[INIT_SCALE].line != 0, init_is_below = bound == MIN_SCALE;
    amp_key key = init_is_set ? INIT_SCALE : bound, other = init_is_set ? bound : INIT_SCALE;
    char problem[96];
    snprintf(problem, sizeof problem, "%s %s, which is %g", init_is_set == init_is_below ? "below" : "above",
             rows[other].name, init_is_set ? value : init_scale);
    return refuse_setting(p, key, problem, rows[key].allowed, error);
}

/* AMP's keys under [net] have no effect while AMP is off. This is a note and not an error, because another
 * Darknet may have a key of the same name (loss_scale). */
static void note_idle_key(const parse *p, amp_config *config)
{
    int key = 0;
    while (key < KEYS && !p->set[key].line) key++;
    if (key == KEYS) return;
    amp_error note;
    refuse_setting(p, (amp_key)key, "has no effect, since AMP is off; amp = 1 turns it on", NULL, &note);
    snprintf(config->note, sizeof config->note, "%.511s", note.message);
}

/* Fills *c with the values that take effect. line_dtype: the dtype of -amp, or -1. off: 1 with "-amp off". */
static amp_status settle(const parse *p, int line_dtype, int off, amp_dtype default_dtype, amp_config *c,
                         amp_error *error)
{
    int in_cfg = p->set[AMP_ON].line ? p->set[AMP_ON].number == 1 : p->amp_line > 0;
    fill(p, c);
    c->enabled = line_dtype >= 0 || (!off && in_cfg);
    c->dtype = line_dtype >= 0 ? (amp_dtype)line_dtype
        : p->set[DTYPE].line ? (amp_dtype)p->set[DTYPE].number : default_dtype;
    int may_overflow = c->dtype == AMP_FP16 || c->wire == AMP_FP16; /* sums of gradients may exceed 65504 */
    c->loss_scale = p->set[LOSS_SCALE].line ? p->set[LOSS_SCALE].number : may_overflow ? DYNAMIC : 1;
    c->dynamic = c->loss_scale == DYNAMIC;
    if (c->dynamic) c->loss_scale = 1;
    if (!p->mentioned) note_idle_key(p, c);
    /* A scale that starts below its lower limit would end training at once. */
    if (c->init_scale < c->min_scale) return refuse_scale(p, c->init_scale, MIN_SCALE, c->min_scale, error);
    if (c->init_scale > c->max_scale) return refuse_scale(p, c->init_scale, MAX_SCALE, c->max_scale, error);
    if (c->enabled && c->spike == AMP_SPIKE_SKIP && c->spike_factor == 0)
        return refuse_setting(p, SPIKE, "has no effect with spike_factor=0, which turns spike detection off",
                              "with spike_factor above 0", error);
    if (c->enabled && c->adamw && p->adam < 1)
        return refuse_setting(p, ADAMW, "it is a form of Adam, but [net] does not set adam=1",
                              "with adam=1 in [net], where B1, B2 and eps are set too", error);
    return AMP_OK;
}

amp_status amp_config_read(const cfg_document *document, const char *command_line_amp,
                           amp_dtype default_dtype, amp_config **out, amp_error *error)
{
    int off = command_line_amp && !strcmp(command_line_amp, "off");
    int line_dtype = command_line_amp ? amp_dtype_find(command_line_amp) : -1;
    *out = NULL;
    if (command_line_amp && !off && line_dtype < 0) {
        char value[64];
        cfg_printable(value, sizeof value, command_line_amp);
        return amp_fail(error, AMP_BAD_CONFIG,
                        "command line: -amp %s: unknown dtype; allowed: off, fp32, fp16, bf16", value);
    }
    parse p = { .file = document->file, .adam = -1, .mentioned = command_line_amp != NULL };
    amp_status status = AMP_OK;
    for (size_t i = 0; i < document->count && status == AMP_OK; i++)
        status = read_item(&p, &document->items[i], error);
    if (status == AMP_OK) status = check_layers(&p, error);
    amp_config *config = amp_allocated(calloc(1, sizeof *config));
    if (status == AMP_OK) status = settle(&p, line_dtype, off, default_dtype, config, error);
    if (status != AMP_OK) {
        free(p.layers);
        free(config);
        return status;
    }
    config->layers = p.layers;
    config->layer_count = (int)p.layer_count;
    config->file = amp_allocated(strdup(document->file));
    *out = config;
    return AMP_OK;
}

void amp_config_free(amp_config *config)
{
    if (!config) return;
    free(config->layers);
    free(config->file);
    free(config);
}
