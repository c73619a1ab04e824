/* Reads all sections, checks each key against the fork's table, then calls each section's rule in order. */
#include "cfg_check.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"

typedef struct entry {
    const char *key, *value;  /* owned by the document; value is NULL if there is no '=' */
    unsigned long line;
    const cfg_key *known;     /* the key's row in the table; NULL: no row, an AMP key, or a repeated key */
    double *numbers;          /* the parsed value; NULL: not parsed */
    int count;
} entry;

typedef struct section {
    const char *name;         /* the document owns it */
    unsigned long line;
    const cfg_section_kind *kind;     /* NULL: unknown */
    int is_wrong;             /* 1: one of the section's keys has an error, so its rule is not called */
    entry *entries;
    size_t count, room;
} section;

struct cfg_check {
    const char *file;
    const cfg_fork *fork;
    cfg_listener listener;
    cfg_summary *summary;
    section *sections;        /* [net], then the layers */
    size_t count, room;
    section amp;              /* the final [amp] section of the file, without keys: config.c reads them */
    section *at;              /* the current section */
    cfg_shape *shapes;        /* shapes of all layers, at the .cfg's size or, in cfg_walk_again, another */
    int has_failed;           /* 1: the current section's rule or traits reported a failure */
};

/* ---- findings ---- */

/* The place of a finding. e = NULL: the whole section; s = NULL too: the whole file. */
static cfg_place place_of(const struct cfg_check *check, const section *s, const entry *e)
{
    cfg_place place = { .file = check->file };
    if (s) place = (cfg_place){ check->file, s->line, s->name, NULL, NULL };
    if (e) place = (cfg_place){ check->file, e->line, s->name, e->key, e->value };
    return place;
}

static void report_at(struct cfg_check *check, int is_error, cfg_place place, const char *problem,
                      const char *allowed)
{
    amp_error line;
    cfg_fail(&line, place, problem, allowed);
    if (is_error && !check->summary->errors++)
        snprintf(check->summary->first_error, sizeof check->summary->first_error, "%s", line.message);
    if (!is_error) check->summary->warnings++;
    if (check->listener.report) check->listener.report(check->listener.context, is_error, line.message);
}

static void warn_entry(struct cfg_check *check, const section *s, const entry *e, const char *problem)
{
    report_at(check, 0, place_of(check, s, e), problem, NULL);
}

static void fail_entry(struct cfg_check *check, section *s, const entry *e, const char *problem,
                       const char *allowed)
{
    s->is_wrong = 1;
    report_at(check, 1, place_of(check, s, e), problem, allowed);
}

/* Reports an error if the fork's parser is strict, else a warning. */
static void mind_entry(struct cfg_check *check, section *s, const entry *e, const char *problem)
{
    if (check->fork->strict) fail_entry(check, s, e, problem, NULL);
    else warn_entry(check, s, e, problem);
}

/* ---- reading ---- */

static const cfg_section_kind *find_kind(const cfg_fork *fork, const char *name)
{
    for (const cfg_section_kind *k = fork->kinds; k < fork->kinds + fork->count; k++)
        if (!strcmp(name, k->name) || (k->other && !strcmp(name, k->other))) return k;
    return NULL;
}

static void add_section(struct cfg_check *check, const cfg_item *item)
{
    if (!strcmp(item->text, "[amp]")) {
        check->at = &check->amp;
        check->amp.line = item->line;
        return;
    }
    check->sections = amp_grow(check->sections, check->count, &check->room, sizeof *check->sections);
    check->at = &check->sections[check->count++];
    *check->at = (section){ .name = item->text, .line = item->line,
                            .kind = find_kind(check->fork, item->text) };
}

static void add_entry(section *s, const cfg_item *item)
{
    s->entries = amp_grow(s->entries, s->count, &s->room, sizeof *s->entries);
    s->entries[s->count++] = (entry){ .key = item->text, .value = item->value, .line = item->line };
}

static void read_item(struct cfg_check *check, const cfg_item *item)
{
    section *s = check->at;
    if (item->kind == CFG_SECTION) add_section(check, item);
    else if (item->kind == CFG_BROKEN)
        report_at(check, 1, (cfg_place){ check->file, item->line, s ? s->name : NULL, NULL, NULL },
                  item->text, item->fatal ? "lines of text" : "lines of text of at most 65536 bytes");
    else if (item->kind == CFG_OPTION && s && s != &check->amp) add_entry(s, item);
}

static void free_sections(struct cfg_check *check)
{
    for (size_t i = 0; i < check->count; i++) {
        section *s = &check->sections[i];
        for (size_t k = 0; k < s->count; k++) free(s->entries[k].numbers);
        free(s->entries);
    }
    free(check->sections);
    free(check->shapes);
}

/* ---- one value ---- */

static int is_kept_in_int(const cfg_key *key)
{
    return key->type == CFG_WHOLE || key->type == CFG_FLAG || key->type == CFG_LAYER;
}

/* Describes the values that a key allows, for messages: "a whole number from 1 to 5", "linear, leaky". */
static const char *describe(const cfg_key *key, char text[256])
{
    int list = key->rules & CFG_LIST, is_whole = key->type == CFG_WHOLE, is_above = key->rules & CFG_ABOVE;
    char least[40] = "", most[48] = "";
    text[0] = 0;
    if (key->type == CFG_FLAG) return "0, 1";
    if (key->type == CFG_FILE) return "a file that can be read";
    if (key->type == CFG_LAYER)
        return list ? "layers before this one, separated by commas" : "a layer before this one";
    if (key->type == CFG_WORD) {
        size_t length = 0;
        for (const char *const *word = key->words; *word; word++)
            length += (size_t)snprintf(text + length, 256 - length, "%s%s", length ? ", " : "", *word);
        return text;
    }
    int has_least = key->least > -INT_MAX, has_most = key->most < INT_MAX;
    if (has_least) snprintf(least, sizeof least, " %s %.10g", is_above ? "above" : "from", key->least);
    if (has_most)
        snprintf(most, sizeof most, " %s %.10g", key->rules & CFG_BELOW ? "to below" : "to", key->most);
    else if (has_least && !is_above) strcpy(most, " up");
    if (key->least == key->most) snprintf(text, 256, "%.10g", key->least);
    else
        snprintf(text, 256, "a %s%s%s", is_whole ? "whole number" : "number", least, most);
    if (list) strcat(text, ", or several, separated by commas");
    return text;
}

/* Whether text is [+-]digits, optionally followed by '.' and zeros; atoi then reads it as the user meant. */
static int is_whole(const char *text)
{
    text += *text == '+' || *text == '-';
    size_t digits = strspn(text, "0123456789");
    text += digits;
    if (digits && *text == '.') text += 1 + strspn(text + 1, "0");
    return digits && !*text;
}

static const char *out_of_range(const cfg_key *key, double number, char problem[128])
{
    int too_small = key->rules & CFG_ABOVE ? number <= key->least : number < key->least;
    int too_large = key->rules & CFG_BELOW ? number >= key->most : number > key->most;
    if (too_small)
        snprintf(problem, 128, "%s %.10g", key->rules & CFG_ABOVE ? "not above" : "below", key->least);
    else if (too_large)
        snprintf(problem, 128, "%s %.10g", key->rules & CFG_BELOW ? "not below" : "above", key->most);
    else return NULL;
    return problem;
}

/* Returns NULL if `layer` exists and comes before layer `index`, else what is wrong. */
static const char *bad_layer(double layer, int index, char problem[128])
{
    if (index == 0) return "the first layer has no layer before it";
    if (layer < 0)
        snprintf(problem, 128, "layer %.0f does not exist: only %d layers are before this one", layer, index);
    else if (layer == index) snprintf(problem, 128, "this is layer %d itself", index);
    else if (layer > index)
        snprintf(problem, 128, "layer %.0f is not before this one, which is layer %d", layer, index);
    else return NULL;
    return problem;
}

/* Limits: characters per number, numbers per list, keys per section. */
enum { NUMBER_MOST = 128, LIST_MOST = 4096, KEYS_MOST = 1000 };

/* Parses one number of a value. Returns NULL, or a description of the problem. */
static const char *parse_number(const cfg_key *key, const char *text, double *number)
{
    if (strlen(text) >= NUMBER_MOST - 1) return "too many digits";
    if (!*text) return "a number in the list is missing";
    const char *wrong = cfg_parse_number(text, number);
    if (is_kept_in_int(key)) {
        if (wrong || !is_whole(text)) return "not a whole number";
        return fabs(*number) > INT_MAX ? "too large" : NULL;
    }
    if (wrong) return strchr(text, ',') ? "not a decimal number: the decimal point is a '.'" : wrong;
    return fabs(*number) <= 3.4028234663852886e38 ? NULL : "out of fp32's range";
}

/* Removes a comment that follows a number (Darknet reads "64#images" as 64). Returns 1 if there was one. */
static int cut_comment(char *text)
{
    size_t number = strspn(text, "+-.0123456789eE");
    if (!number || !text[number] || (!strchr("#;", text[number]) && strncmp(text + number, "//", 2)))
        return 0;
    text[number] = 0;
    return 1;
}

/* Parses e's value into e->numbers. Returns NULL, or what is wrong. index: the layer's index; -1: [net]. */
static const char *read_numbers(struct cfg_check *check, const section *s, entry *e, int index,
                                char problem[128])
{
    const cfg_key *key = e->known;
    char text[NUMBER_MOST];
    const char *from = e->value, *wrong = NULL;
    while (!wrong && from) {
        size_t length = key->rules & CFG_LIST ? strcspn(from, ",") : strlen(from);
        int kept = length < sizeof text ? (int)length : (int)sizeof text - 1; /* parse_number rejects a
                                                                                 truncated number */
        double *number = &e->numbers[e->count];
        if (e->count++ == LIST_MOST) return "too many numbers";
        snprintf(text, sizeof text, "%.*s", kept, from);
        if (!check->fork->strict && cut_comment(text))
            warn_entry(check, s, e,
                       "Darknet reads the number before the comment; a comment needs a line of its own");
        wrong = parse_number(key, text, number);
        if (!wrong && check->fork->strict && strpbrk(text, "eE+"))
            wrong = "expected a number without an exponent or a +";
        if (!wrong && key->type == CFG_FLAG && *number != 0 && *number != 1)
            warn_entry(check, s, e, "neither 0 nor 1; read as 1");
        if (key->type == CFG_LAYER && *number < 0) *number += index;
        if (!wrong && key->type == CFG_LAYER) wrong = bad_layer(*number, index, problem);
        else if (!wrong && key->type != CFG_FLAG) wrong = out_of_range(key, *number, problem);
        from = from[length] ? from + length + 1 : NULL;
    }
    return wrong;
}

static const char *read_word(entry *e, char problem[128])
{
    const char *const *words = e->known->words;
    int count = 0;
    for (; words[count]; count++) if (!strcmp(e->value, words[count])) e->numbers[e->count++] = count;
    if (e->count) return NULL;
    if (strpbrk(e->value, "#;")) return "a comment needs a line of its own";
    cfg_did_you_mean(problem, 128, "unknown word", e->value, words, (size_t)count);
    return problem;
}

static const char *check_file(const char *value)
{
    struct stat status;
    if (stat(value, &status) != 0) return strerror(errno);
    if (!S_ISREG(status.st_mode)) return "not a regular file";
    return access(value, R_OK) ? strerror(errno) : NULL;
}

/* Parses and checks e's value, and reports an error. e->known must be set. */
static void check_value(struct cfg_check *check, section *s, entry *e, int index)
{
    char problem[128], allowed[256];
    const char *wrong = NULL;
    size_t room = 1;
    for (const char *c = e->value ? e->value : ""; *c; c++) room += *c == ',';
    e->numbers = amp_allocated(calloc(room < LIST_MOST ? room : LIST_MOST + 1, sizeof *e->numbers));
    if (!e->value || !*e->value) wrong = "has no value";
    else if (e->known->type == CFG_FILE) wrong = check_file(e->value);
    else if (e->known->type == CFG_WORD) wrong = read_word(e, problem);
    else wrong = read_numbers(check, s, e, index, problem);
    if (wrong) fail_entry(check, s, e, wrong, describe(e->known, allowed));
}

/* ---- the keys of a section ---- */

/* Returns key number i, from 0, of the keys that a section of this kind may have; NULL: i is too large. */
static const cfg_key *key_at(const cfg_fork *fork, const cfg_section_kind *kind, int i)
{
    if (i < kind->count) return &kind->keys[i];
    i -= kind->count;
    return kind != fork->kinds && i < fork->layer_key_count ? &fork->layer_keys[i] : NULL;
}

static const cfg_key *find_key(const cfg_fork *fork, const cfg_section_kind *kind, const char *name)
{
    const cfg_key *key;
    for (int i = 0; (key = key_at(fork, kind, i)) && strcmp(name, key->name); i++) {}
    return key;
}

enum { NAMES_MOST = 256 };

static void mind_unknown(struct cfg_check *check, section *s, const entry *e)
{
    const char *names[NAMES_MOST];
    const cfg_key *key;
    char problem[160];
    int count = 0;
    for (; count < NAMES_MOST && (key = key_at(check->fork, s->kind, count)); count++)
        names[count] = key->name;
    cfg_did_you_mean(problem, sizeof problem, "unknown key, which Darknet does not read", e->key, names,
                     (size_t)count);
    mind_entry(check, s, e, problem);
}

/* Whether an earlier entry of the section sets the same key. (Darknet uses the first entry.) If so, and if
 * the values differ or the fork's parser is strict, reports it. */
static int is_repeated(struct cfg_check *check, section *s, const entry *e)
{
    char problem[96];
    const entry *before = s->entries;
    while (before < e && strcmp(before->key, e->key)) before++;
    if (before == e) return 0;
    if (before->value && e->value && !strcmp(before->value, e->value) && !check->fork->strict) return 1;
    snprintf(problem, sizeof problem, check->fork->strict ? "set twice in this section, first on line %lu"
             : "set twice in this section; Darknet takes the first, on line %lu", before->line);
    mind_entry(check, s, e, problem);
    return 1;
}

static int has_key(const section *s, const char *key)
{
    for (size_t k = 0; k < s->count; k++) if (!strcmp(s->entries[k].key, key)) return 1;
    return 0;
}

static void refuse_section(struct cfg_check *check, section *s)
{
    const char *names[NAMES_MOST];
    char problem[128];
    size_t count = 0;
    for (int i = 0; i < check->fork->count && count + 2 < NAMES_MOST; i++) {
        names[count++] = check->fork->kinds[i].name;
        if (check->fork->kinds[i].other) names[count++] = check->fork->kinds[i].other;
    }
    names[count++] = "[amp]";
    cfg_did_you_mean(problem, sizeof problem, "unknown section", s->name, names, count);
    if (strpbrk(s->name, "#;")) strcpy(problem, "a comment needs a line of its own");
    report_at(check, 1, place_of(check, s, NULL), problem, CFG_SECTIONS_ALLOWED);
}

static void check_section(struct cfg_check *check, section *s, int index)
{
    char allowed[256], problem[128];
    const cfg_fork *fork = check->fork;
    if (!s->kind) {
        refuse_section(check, s);
        return;
    }
    if ((s->kind == fork->kinds) != (index < 0)) {
        report_at(check, 1, place_of(check, s, NULL), index < 0 ? "the first section is not [net]"
                  : "only the first section can be [net]", "[net] first, then the layers");
        s->kind = NULL;
        return;
    }
    if (s->count > KEYS_MOST) {
        snprintf(problem, sizeof problem, "more than %d keys in a section", KEYS_MOST);
        fail_entry(check, s, NULL, problem, NULL);
        return;
    }
    for (entry *e = s->entries; e < s->entries + s->count; e++) {
        if (index < 0 ? amp_config_is_key(e->key) : amp_config_is_layer_key(e->key)) continue;
        if (is_repeated(check, s, e)) continue;
        e->known = find_key(fork, s->kind, e->key);
        if (!e->known) mind_unknown(check, s, e);
        else check_value(check, s, e, index);
    }
    for (const cfg_key *key = s->kind->keys; key < s->kind->keys + s->kind->count; key++) {
        if (!(key->rules & CFG_REQUIRED) || has_key(s, key->name)) continue;
        snprintf(problem, sizeof problem, "%s is missing", key->name);
        fail_entry(check, s, NULL, problem, describe(key, allowed));
    }
}

/* ---- what AMP cannot train ---- */

/* Whether r refuses entry e or, if e is NULL, the section as a whole. */
static int is_refused(const cfg_refusal *r, const section *s, const entry *e)
{
    if (r->section && strcmp(r->section, s->kind->name)) return 0;
    if (!e || !r->key) return !e && !r->key;
    if (!e->known || !e->count || strcmp(r->key, e->key)) return 0;
    return r->word ? !strcmp(r->word, e->value)
                   : e->known->type == CFG_LAYER || e->numbers[0] != e->known->fallback;
}

static void refuse_entry(struct cfg_check *check, section *s, const entry *e)
{
    char problem[256];
    for (int i = 0; i < check->fork->refusal_count; i++) {
        const cfg_refusal *r = &check->fork->refusals[i];
        if (!is_refused(r, s, e)) continue;
        snprintf(problem, sizeof problem, "not supported under AMP: %s", r->why);
        fail_entry(check, s, e, problem, e ? "without this key, or with -amp off" : "-amp off");
    }
}

/* Reports what AMP cannot train with. Call this after all rules: it marks the section as wrong, and the rule
 * of a wrong section is not called. */
static void refuse_under_amp(struct cfg_check *check, section *s)
{
    if (!s->kind) return;
    refuse_entry(check, s, NULL);
    for (size_t k = 0; k < s->count; k++) refuse_entry(check, s, &s->entries[k]);
}

/* ---- functions for rules ---- */

static const entry *find_entry(const cfg_walk *walk, const char *key)
{
    const section *s = walk->check->at;
    for (size_t i = 0; i < s->count; i++)
        if (s->entries[i].known && !strcmp(s->entries[i].key, key)) return &s->entries[i];
    return NULL;
}

int cfg_walk_given(const cfg_walk *walk, const char *key) { return find_entry(walk, key) != NULL; }

const char *cfg_walk_text(const cfg_walk *walk, const char *key)
{
    const entry *e = find_entry(walk, key);
    return e ? e->value : NULL;
}

double cfg_walk_at(const cfg_walk *walk, const char *key, int index)
{
    const entry *e = find_entry(walk, key);
    if (!e) {
        const cfg_key *known = find_key(walk->check->fork, walk->check->at->kind, key);
        return known ? known->fallback : 0;
    }
    return index < e->count ? e->numbers[index] : 0;
}

double cfg_walk_number(const cfg_walk *walk, const char *key) { return cfg_walk_at(walk, key, 0); }

int cfg_walk_numbers(const cfg_walk *walk, const char *key)
{
    const entry *e = find_entry(walk, key);
    return e ? e->count : 0;
}

static section *section_of(const cfg_walk *walk, int index) { return &walk->check->sections[index + 1]; }

void cfg_walk_enter(cfg_walk *walk, int index)
{
    walk->index = index;
    walk->check->at = section_of(walk, index);
}

int cfg_walk_traits(const cfg_walk *walk)
{
    const section *s = walk->check->at;
    return s->kind ? s->kind->traits : 0;
}

void cfg_walk_report(cfg_walk *walk, cfg_finding finding, const char *key, const char *allowed,
                     const char *problem, ...)
{
    char text[512];
    int length = 0;
    va_list args;
    const section *s = walk->check->at;
    if (walk->only_warns) finding = CFG_WARNS;
    if (finding == CFG_FAILS && walk->check->has_failed) return;
    if (finding == CFG_FAILS) walk->check->has_failed = 1;
    if (walk->resized)
        length = snprintf(text, sizeof text, "at the size %.0fx%.0f, which random=1 may choose: ",
                          walk->resized, walk->resized_h);
    va_start(args, problem);
    vsnprintf(text + length, sizeof text - (size_t)length, problem, args);
    va_end(args);
    report_at(walk->check, finding != CFG_WARNS, place_of(walk->check, s, key ? find_entry(walk, key) : NULL),
              text, allowed);
}

/* ---- the walk ---- */

void cfg_walk_count(cfg_walk *walk, double count, const char *what)
{
    if (count > INT_MAX)
        cfg_walk_fail(walk, NULL, NULL, "%.0f %s are more than Darknet can count (%d); use smaller sizes",
                      count, what, INT_MAX);
}

static void apply_traits(cfg_walk *walk, int traits)
{
    cfg_shape *out = walk->out;
    out->one_size = traits & CFG_ONE_SIZE;
    if (traits & (CFG_SAME_IMAGE | CFG_SAME_COUNT)) out->outputs = walk->in->outputs;
    if (traits & CFG_READS_TRUTH) out->reads = walk->in->outputs;
    if (!(traits & CFG_SAME_IMAGE)) return;
    out->w = walk->in->w;
    out->h = walk->in->h;
    out->c = walk->in->c;
}

static void need_image(cfg_walk *walk)
{
    const cfg_shape *in = walk->in;
    char before[80] = "the network's input";
    if (in->w && in->h && in->c) return;
    if (walk->index > 0)
        snprintf(before, sizeof before, "the output of layer %d %.40s", walk->index - 1,
                 section_of(walk, walk->index - 1)->name);
    cfg_walk_fail(walk, NULL, NULL, "needs an image with width, height and channels, but %s is not an "
                                    "image%s%s",
                  before, in->no_image ? ", since " : "", in->no_image ? in->no_image : "");
}

static void walk_section(cfg_walk *walk, int index)
{
    cfg_walk_enter(walk, index);
    const section *s = walk->check->at;
    cfg_shape *shapes = walk->check->shapes + (walk->resized ? walk->count : 0), *out;
    walk->in = index < 1 ? &walk->net : &shapes[index - 1];
    walk->out = out = index < 0 ? &walk->net : &shapes[index];
    walk->check->has_failed = 0;
    *out = (cfg_shape){ 0 };
    if (!s->kind || s->is_wrong || (index >= 0 && !walk->in->outputs)) return;
    if (s->kind->traits & CFG_NEEDS_IMAGE) need_image(walk);
    if (!walk->check->has_failed) {
        apply_traits(walk, s->kind->traits);
        if (s->kind->rule) s->kind->rule(walk);
    }
    cfg_walk_count(walk, out->weights, "weights");
    cfg_walk_count(walk, out->outputs * walk->batch, index < 0 ? "numbers of input for a batch"
                   : "outputs for a batch");
    cfg_walk_count(walk, fmax(out->truths, out->reads) * walk->batch, "numbers of truth for a batch");
    if (walk->check->has_failed) *out = (cfg_shape){ 0 };
}

void cfg_walk_again(cfg_walk *walk, double w, double h)
{
    walk->own = walk->layers;
    walk->own_net = walk->net;
    walk->layers += walk->count;
    walk->resized = w;
    walk->resized_h = h;
    for (int i = -1; i < walk->count; i++) walk_section(walk, i);
    walk->resized = 0;
    walk->layers = walk->own;
    walk->net = walk->own_net;
}

int cfg_walk_failed(const cfg_walk *walk) { return walk->check->summary->errors > 0; }

static void sum_up(cfg_walk *walk, cfg_summary *summary)
{
    const cfg_shape *last = &walk->layers[walk->count - 1];
    summary->layers = walk->count;
    summary->w = walk->net.w;
    summary->h = walk->net.h;
    summary->c = walk->net.c;
    summary->batch = walk->batch;
    summary->last = section_of(walk, walk->count - 1)->kind->name;
    summary->classes = last->classes;
    summary->boxes = last->boxes;
    summary->truths = last->truths ? last->truths : last->outputs;
    for (int i = 0; i < walk->count; i++) {
        summary->weights += walk->layers[i].weights;
        summary->outputs += walk->layers[i].outputs;
    }
}

static void check_all(struct cfg_check *check, cfg_use use)
{
    if (check->count < 2) {
        report_at(check, 1, place_of(check, check->count ? check->sections : NULL, NULL),
                  check->count ? "no layer follows" : "holds no section", "[net] first, then the layers");
        return;
    }
    cfg_walk walk = { .count = (int)check->count - 1, .use = use, .check = check };
    walk.layers = check->shapes = amp_allocated(calloc(2 * check->count, sizeof *check->shapes));
    for (int i = -1; i < walk.count; i++) check_section(check, section_of(&walk, i), i);
    for (int i = -1; i < walk.count; i++) walk_section(&walk, i);
    if (!check->summary->errors) {
        sum_up(&walk, check->summary);
        check->has_failed = 0;
        if (check->fork->finish) check->fork->finish(&walk);
    }
    for (size_t i = 0; i < check->count; i++) refuse_under_amp(check, &check->sections[i]);
}

void cfg_check(const cfg_document *document, const cfg_fork *fork, cfg_use use, const cfg_listener *listener,
               cfg_summary *summary)
{
    struct cfg_check check = { .file = document->file, .fork = fork, .summary = summary,
                               .amp = { .name = "[amp]" } };
    if (listener) check.listener = *listener;
    memset(summary, 0, sizeof *summary);
    for (size_t i = 0; i < document->count; i++) read_item(&check, &document->items[i]);
    check_all(&check, use);
    free_sections(&check);
}
