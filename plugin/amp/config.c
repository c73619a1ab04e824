/* Reads [amp], [net] and the layers' amp= into an amp_config: which section a line belongs to, which mistakes
 * count, and who wins. Lines come from cfg_reader.c, the keys' own rules from config_keys.c. */
#include "config.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_reader.h"
#include "config_keys.h"

/* The sections of pjreddie's Darknet (string_to_layer_type in its parser.c). Of any other it says "Type not
 * recognized", makes an empty layer and crashes when that runs. */
static const char *const known_sections[] = {
    "[net]", "[network]", "[amp]", "[shortcut]", "[crop]", "[cost]", "[detection]", "[region]", "[yolo]",
        "[iseg]",
    "[local]", "[conv]", "[convolutional]", "[deconv]", "[deconvolutional]", "[activation]", "[logistic]",
        "[l2norm]",
    "[crnn]", "[gru]", "[lstm]", "[rnn]", "[conn]", "[connected]", "[max]", "[maxpool]", "[reorg]", "[avg]",
    "[avgpool]", "[dropout]", "[lrn]", "[normalization]", "[batchnorm]", "[soft]", "[softmax]", "[route]",
        "[upsample]",
};
enum { KNOWN_SECTIONS = sizeof known_sections / sizeof *known_sections };

typedef enum section_kind { IN_NOTHING, IN_NET, IN_AMP, IN_LAYER } section_kind;

/* What one section sets. line[k] is 0 where key k is not set. */
typedef struct settings {
    double number[AMP_KEYS];
    char text[AMP_KEYS][48]; /* as written, for errors that come up later */
    unsigned long line[AMP_KEYS];
} settings;

typedef struct parse {
    const char *file;
    section_kind kind;
    char section[48]; /* where we are, for errors */
    unsigned long section_line, net_line, amp_line;
    unsigned long layer_amp_line; /* of the present layer's amp=, 0 without */
    settings net, amp;
    signed char *layer_amp;
    int layer_count, layer_capacity;
    int mentioned;       /* an [amp] section, an amp= anywhere, or -amp: the .cfg is held to AMP's standard */
    int has_mistake;       /* a line is wrong by that standard, yet Darknet's business while AMP is not
                            mentioned */
    amp_error mistake;
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

/* Keeps the first mistake of a line that counts only under AMP, which is known at the end of the file. */
static void note_mistake(parse *p, cfg_place place, const char *problem, const char *allowed)
{
    if (p->has_mistake) return;
    p->has_mistake = 1;
    cfg_fail(&p->mistake, place, problem, allowed);
}

/* -- Sections -- */

static int is_net(const char *section)
{
    return strcmp(section, "[net]") == 0 || strcmp(section, "[network]") == 0;
}

static amp_status add_layer(parse *p, amp_error *error)
{
    if (p->layer_count == p->layer_capacity) {
        int capacity = p->layer_capacity ? p->layer_capacity * 2 : 128;
        signed char *grown = p->layer_capacity > INT_MAX / 2 ? NULL : realloc(p->layer_amp, (size_t)capacity);
        if (!grown) return amp_fail(error, AMP_NO_MEMORY, "no memory for %d layers", p->layer_count);
        p->layer_amp = grown;
        p->layer_capacity = capacity;
    }
    p->layer_amp[p->layer_count++] = 1;
    return AMP_OK;
}

static void check_section_name(parse *p, const cfg_item *item)
{
    for (int i = 0; i < KNOWN_SECTIONS; i++)
        if (strcmp(item->text, known_sections[i]) == 0) return;

    char problem[128];
    const char *meant = amp_did_you_mean(problem, sizeof problem, "unknown section", item->text,
                                         known_sections, KNOWN_SECTIONS);
    if (strpbrk(item->text, "#;")) snprintf(problem, sizeof problem, "a comment needs a line of its own");
    note_mistake(p, place_of(p, item), problem, "the layers of Darknet, [net] first, and [amp]");
    /* [AMP] or [amp without its bracket was surely meant for us: do not leave it to Darknet. */
    if (meant && strcmp(meant, "[amp]") == 0) p->mentioned = 1;
}

static amp_status enter_section(parse *p, const cfg_item *item, amp_error *error)
{
    int first = p->kind == IN_NOTHING;
    snprintf(p->section, sizeof p->section, "%s", item->text);
    p->section_line = item->line;
    if (strcmp(item->text, "[amp]") == 0) {
        char problem[96];
        p->mentioned = 1;
        p->kind = IN_AMP;
        if (first)
            return cfg_fail(error, place_of(p, item), "the first section; put it after [net]",
                            "[net] first, then [amp]");
        if (p->amp_line) {
            snprintf(problem, sizeof problem, "a second [amp] section, the first is on line %lu",
                     p->amp_line);
            return cfg_fail(error, place_of(p, item), problem, "one [amp] section");
        }
        p->amp_line = item->line;
        return AMP_OK;
    }
    p->kind = first ? IN_NET : IN_LAYER;
    if (first) {
        p->net_line = item->line;
        if (is_net(item->text)) return AMP_OK;
        return cfg_fail(error, place_of(p, item), "the first section is not [net]",
                        "[net] first, then the layers");
    }
    if (is_net(item->text))
        note_mistake(p, place_of(p, item), "only the first section can be [net]", "one [net] section");
    check_section_name(p, item);
    p->layer_amp_line = 0;
    return add_layer(p, error);
}

/* -- Keys -- */

static amp_status refuse_duplicate(const parse *p, const cfg_item *item, unsigned long line, amp_error *error)
{
    char problem[96];
    snprintf(problem, sizeof problem, "set twice in this section, first on line %lu", line);
    return cfg_fail(error, place_of(p, item), problem, "each key once");
}

/* Parses item's value as key's. */
static amp_status read_value(const parse *p, const cfg_item *item, amp_key key, double *number,
                             amp_error *error)
{
    const char *problem = item->value && *item->value ? amp_key_parse(key, item->value, number)
        : "has no value";
    if (problem && item->value && strpbrk(item->value, "#;")) problem = "a comment needs a line of its own";
    return problem ? cfg_fail(error, place_of(p, item), problem, amp_key_allowed(key)) : AMP_OK;
}

static amp_status read_setting(parse *p, settings *to, const cfg_item *item, amp_key key, amp_error *error)
{
    if (to->line[key]) return refuse_duplicate(p, item, to->line[key], error);
    AMP_TRY(read_value(p, item, key, &to->number[key], error));
    to->line[key] = item->line;
    cfg_printable(to->text[key], sizeof to->text[key], item->value);
    if (key == AMP_KEY_AMP) p->mentioned = 1;
    return AMP_OK;
}

static amp_status refuse_key(const parse *p, const cfg_item *item, amp_error *error)
{
    const char *names[AMP_KEYS];
    char allowed[192] = "", problem[96];
    for (int key = 0; key < AMP_KEYS; key++) {
        names[key] = amp_key_name((amp_key)key);
        if (key) strcat(allowed, ", ");
        strcat(allowed, names[key]);
    }
    amp_did_you_mean(problem, sizeof problem, "unknown key", item->text, names, AMP_KEYS);
    return cfg_fail(error, place_of(p, item), problem, allowed);
}

static amp_status read_option(parse *p, const cfg_item *item, amp_error *error)
{
    amp_key key = amp_key_find(item->text);
    switch (p->kind) {
    case IN_NOTHING: {
        static const char mark[] = "\xef\xbb\xbf"; /* which some editors put before the text */
        int marked = item->line == 1 && strncmp(item->text, mark, 3) == 0;
        return cfg_fail(error, place_of(p, item),
                        marked ? "the file begins with a byte order mark" : "stands before the first section",
                        marked ? "UTF-8 without one" : "[net] first, then its keys");
    }
    case IN_NET:
        return key == AMP_KEYS ? AMP_OK : read_setting(p, &p->net, item, key, error);
    case IN_AMP:
        return key == AMP_KEYS ? refuse_key(p, item, error) : read_setting(p, &p->amp, item, key, error);
    case IN_LAYER:
        break;
    }
    if (key != AMP_KEY_AMP) return AMP_OK;
    double on = 1;
    if (p->layer_amp_line) return refuse_duplicate(p, item, p->layer_amp_line, error);
    AMP_TRY(read_value(p, item, key, &on, error));
    p->mentioned = 1;
    p->layer_amp_line = item->line;
    p->layer_amp[p->layer_count - 1] = (signed char)on;
    return AMP_OK;
}

static amp_status read_items(parse *p, cfg_reader *reader, amp_error *error)
{
    cfg_item item;
    for (;;) {
        AMP_TRY(cfg_reader_next(reader, &item, error));
        switch (item.kind) {
        case CFG_SECTION:
            AMP_TRY(enter_section(p, &item, error));
            break;
        case CFG_OPTION:
            AMP_TRY(read_option(p, &item, error));
            break;
        case CFG_BROKEN:
            if (item.fatal) return cfg_fail(error, place_of(p, &item), item.text, "lines of text");
            note_mistake(p, place_of(p, &item), item.text, "lines of text of at most 65536 bytes");
            break;
        case CFG_END:
            item.line = p->net_line; /* where a layer would have to follow */
            if (p->kind == IN_NOTHING)
                return cfg_fail(error, place_of(p, &item), "holds no section",
                                "[net] first, then the layers");
            snprintf(p->section, sizeof p->section, "[net]");
            if (p->layer_count == 0)
                return cfg_fail(error, place_of(p, &item), "no layer follows",
                                "[net] first, then the layers");
            return AMP_OK;
        }
    }
}

/* Reads the whole file. Of several mistakes that count the first is reported. */
static amp_status read_file(parse *p, amp_error *error)
{
    cfg_reader *reader;
    AMP_TRY(cfg_reader_open(p->file, &reader, error));
    amp_status status = read_items(p, reader, error);
    cfg_reader_close(reader);
    if (status != AMP_NO_MEMORY && p->mentioned && p->has_mistake)
        return amp_fail(error, p->mistake.status, "%s", p->mistake.message);
    return status;
}

/* -- Who wins -- */

/* The setting of key that counts, and where it was made: NULL if nowhere. */
static const settings *winner(const parse *p, amp_key key)
{
    return p->amp.line[key] ? &p->amp : p->net.line[key] ? &p->net : NULL;
}

static double value_of(const parse *p, amp_key key, double otherwise)
{
    const settings *set = winner(p, key);
    return set ? set->number[key] : otherwise;
}

/* init_scale lies beyond bound, which is value: complains of init_scale if that was set, else of bound. */
static amp_status refuse_scale(const parse *p, double init_scale, amp_key bound, double value,
                               amp_error *error)
{
    int blame_init = winner(p, AMP_KEY_INIT_SCALE) != NULL, init_is_below = bound == AMP_KEY_MIN_SCALE;
    amp_key key = blame_init ? AMP_KEY_INIT_SCALE : bound, other = blame_init ? bound : AMP_KEY_INIT_SCALE;
    const settings *set = winner(p, key);
    char problem[96];
    snprintf(problem, sizeof problem, "%s %s, which is %g", blame_init == init_is_below ? "below" : "above",
             amp_key_name(other), blame_init ? value : init_scale);
    return cfg_fail(error, (cfg_place){ p->file, set->line[key], set == &p->amp ? "[amp]" : "[net]",
                    amp_key_name(key), set->text[key] }, problem, amp_key_allowed(key));
}

/* Each is right for itself, but a scale that starts below its own floor would end training at its first
 * backoff. */
static amp_status check_scales(const parse *p, const amp_config *config, amp_error *error)
{
    if (config->init_scale < config->min_scale)
        return refuse_scale(p, config->init_scale, AMP_KEY_MIN_SCALE, config->min_scale, error);
    if (config->init_scale > config->max_scale)
        return refuse_scale(p, config->init_scale, AMP_KEY_MAX_SCALE, config->max_scale, error);
    return AMP_OK;
}

/* Keys under [net] that do nothing for want of amp=1 are no error, since another Darknet's .cfg may hold one
 * (loss_scale), but nobody should believe that AMP runs. */
static void note_idle_key(const parse *p, amp_config *config)
{
    for (int key = 0; key < AMP_KEYS; key++) {
        if (!p->net.line[key]) continue;
        amp_error note;
        cfg_fail(&note, (cfg_place){ p->file, p->net.line[key], "[net]", amp_key_name((amp_key)key),
                                     p->net.text[key] },
                 "has no effect, since AMP is off; amp = 1 turns it on", NULL);
        snprintf(config->note, sizeof config->note, "%.511s", note.message);
        return;
    }
}

/* p's findings in their types, with defaults and precedence. line_dtype: the dtype of -amp, or -1; off: -amp
 * off. */
static amp_status settle(const parse *p, int line_dtype, int off, amp_dtype default_dtype, amp_config *config,
                         amp_error *error)
{
    config->enabled = line_dtype >= 0 || (!off && value_of(p, AMP_KEY_AMP, p->amp_line > 0) == 1);
    config->dtype = line_dtype >= 0 ? (amp_dtype)line_dtype : (amp_dtype)value_of(p, AMP_KEY_DTYPE,
            default_dtype);

    double loss_scale = value_of(p, AMP_KEY_LOSS_SCALE, config->dtype == AMP_FP16 ? AMP_LOSS_SCALE_DYNAMIC
                                 : 1);
    config->dynamic = loss_scale == AMP_LOSS_SCALE_DYNAMIC;
    config->loss_scale = config->dynamic ? 1 : loss_scale;
    config->init_scale = value_of(p, AMP_KEY_INIT_SCALE, 65536);
    config->growth_factor = value_of(p, AMP_KEY_GROWTH_FACTOR, 2);
    config->backoff_factor = value_of(p, AMP_KEY_BACKOFF_FACTOR, 0.5);
    config->growth_interval = (int)value_of(p, AMP_KEY_GROWTH_INTERVAL, 2000);
    config->min_scale = value_of(p, AMP_KEY_MIN_SCALE, 0x1p-14);
    config->max_scale = value_of(p, AMP_KEY_MAX_SCALE, 0x1p126);
    config->hysteresis = (int)value_of(p, AMP_KEY_HYSTERESIS, 1);
    config->clip_norm = value_of(p, AMP_KEY_CLIP_NORM, 0);
    config->debug = (int)value_of(p, AMP_KEY_DEBUG, 0);
    if (!p->mentioned) note_idle_key(p, config);
    return check_scales(p, config, error);
}

/* -- The interface -- */

amp_status amp_config_read(const char *cfg_file, const char *command_line_amp, amp_dtype default_dtype,
                           amp_config **out, amp_error *error)
{
    *out = NULL;
    int off = 0, line_dtype = -1;
    if (command_line_amp) {
        off = strcmp(command_line_amp, "off") == 0;
        line_dtype = amp_dtype_find(command_line_amp);
        if (!off && line_dtype < 0) {
            char value[64];
            cfg_printable(value, sizeof value, command_line_amp);
            return amp_fail(error, AMP_BAD_CONFIG,
                            "command line: -amp %s: unknown dtype; allowed: off, fp32, fp16, bf16", value);
        }
    }

    parse *p = calloc(1, sizeof *p);
    amp_config *config = calloc(1, sizeof *config);
    amp_status status = AMP_OK;
    if (!p || !config) {
        status = amp_fail(error, AMP_NO_MEMORY, "no memory to read the .cfg");
        goto done;
    }
    p->file = cfg_file;
    p->mentioned = command_line_amp != NULL;
    if ((status = read_file(p, error)) != AMP_OK) goto done;
    if ((status = settle(p, line_dtype, off, default_dtype, config, error)) != AMP_OK) goto done;
    config->layer_amp = p->layer_amp;
    config->layer_count = p->layer_count;
    p->layer_amp = NULL;
    *out = config;
    config = NULL;
done:
    amp_config_free(config);
    if (p) free(p->layer_amp);
    free(p);
    return status;
}

void amp_config_free(amp_config *config)
{
    if (!config) return;
    free(config->layer_amp);
    free(config);
}

int amp_config_is_key(const char *key) { return amp_key_find(key) != AMP_KEYS; }
