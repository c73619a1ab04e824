/* The check of cfg_check.h: reads all sections, holds each key against the fork's table, then walks the
 * layers. */
#include "cfg_check.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cfg_reader.h"
#include "config.h"
#include "config_keys.h"

typedef struct entry {
    char *key, *value;        /* one allocation; value is NULL without a '=' */
    unsigned long line;
    const cfg_key *known;     /* NULL: not in the table, AMP's, or given before in the section */
} entry;

typedef struct section {
    char *name;
    unsigned long line;
    const cfg_section_kind *kind;     /* NULL: unknown */
    int is_wrong;             /* a key has an error: no rule is to see it */
    entry *entries;
    size_t count, capacity;
} section;

struct cfg_check {
    const char *file;
    const cfg_fork *fork;
    cfg_listener listener;
    cfg_summary *summary;
    section *sections;        /* [net], then the layers: [amp] is left out */
    size_t count, capacity;
    section *at;              /* the present one */
    cfg_shape *shapes;        /* of the layers; behind them, as many for another size of the network */
    int has_failed;           /* the present rule */
};

/* ---- findings ---- */

static void tell(struct cfg_check *check, int is_error, cfg_place place, const char *problem,
                 const char *allowed)
{
    amp_error line;
    cfg_fail(&line, place, problem, allowed);
    if (is_error && !check->summary->errors++)
        snprintf(check->summary->first_error, sizeof check->summary->first_error, "%s", line.message);
    if (!is_error) check->summary->warnings++;
    if (check->listener.tell) check->listener.tell(check->listener.context, is_error, line.message);
}

static cfg_place place_of(const struct cfg_check *check, const section *s, const entry *e)
{
    cfg_place place = { .file = check->file };
    if (s) {
        place.line = s->line;
        place.section = s->name;
    }
    if (e) {
        place.line = e->line;
        place.key = e->key;
        place.value = e->value;
    }
    return place;
}

static void fail_entry(struct cfg_check *check, section *s, const entry *e, const char *problem,
                       const char *allowed)
{
    s->is_wrong = 1;
    tell(check, 1, place_of(check, s, e), problem, allowed);
}

/* ---- reading ---- */

static amp_status no_memory(const struct cfg_check *check, amp_error *error)
{
    return amp_fail(error, AMP_NO_MEMORY, "no memory to read %.300s", check->file);
}

/* Makes room for one more in an array. */
static void *grown(void *array, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity) return array;
    size_t more = *capacity ? *capacity * 2 : 16;
    void *larger = realloc(array, more * size);
    if (larger) *capacity = more;
    return larger;
}

static const cfg_section_kind *find_kind(const cfg_fork *fork, const char *name)
{
    for (int i = 0; i < fork->count; i++)
        if (!strcmp(name, fork->kinds[i].name) ||
            (fork->kinds[i].other && !strcmp(name, fork->kinds[i].other)))
            return &fork->kinds[i];
    return NULL;
}

static amp_status add_section(struct cfg_check *check, const cfg_item *item, amp_error *error)
{
    section *sections = grown(check->sections, check->count, &check->capacity, sizeof *sections);
    if (!sections) return no_memory(check, error);
    check->sections = sections;
    char *name = strdup(item->text);
    if (!name) return no_memory(check, error);
    check->at = &sections[check->count++];
    *check->at = (section){ .name = name, .line = item->line, .kind = find_kind(check->fork, name) };
    return AMP_OK;
}

static amp_status add_entry(struct cfg_check *check, const cfg_item *item, amp_error *error)
{
    section *s = check->at;
    if (!s) return AMP_OK; /* of [amp] */
    entry *entries = grown(s->entries, s->count, &s->capacity, sizeof *entries);
    if (!entries) return no_memory(check, error);
    s->entries = entries;
    size_t key = strlen(item->text) + 1, value = item->value ? strlen(item->value) + 1 : 0;
    char *text = malloc(key + value);
    if (!text) return no_memory(check, error);
    memcpy(text, item->text, key);
    if (item->value) memcpy(text + key, item->value, value);
    entries[s->count++] =
        (entry){ .key = text, .value = item->value ? text + key : NULL, .line = item->line };
    return AMP_OK;
}

static amp_status read_sections(struct cfg_check *check, cfg_reader *reader, amp_error *error)
{
    cfg_item item;
    for (;;) {
        AMP_TRY(cfg_reader_next(reader, &item, error));
        switch (item.kind) {
        case CFG_END:
            return AMP_OK;
        case CFG_SECTION:
            check->at = NULL;
            if (strcmp(item.text, "[amp]")) AMP_TRY(add_section(check, &item, error));
            break;
        case CFG_OPTION:
            AMP_TRY(add_entry(check, &item, error));
            break;
        case CFG_BROKEN:
            tell(check, 1, (cfg_place){ .file = check->file, .line = item.line }, item.text, "lines of text");
            if (item.fatal) return AMP_OK;
            break;
        }
    }
}

static void free_sections(struct cfg_check *check)
{
    for (size_t i = 0; i < check->count; i++) {
        for (size_t k = 0; k < check->sections[i].count; k++) free(check->sections[i].entries[k].key);
        free(check->sections[i].entries);
        free(check->sections[i].name);
    }
    free(check->sections);
    free(check->shapes);
}

/* ---- one value ---- */

static int is_kept_in_int(const cfg_key *key)
{
    return key->type == CFG_WHOLE || key->type == CFG_FLAG || key->type == CFG_LAYER;
}

/* "a whole number from 1 to 5", "numbers above 0, separated by commas", "linear, leaky" */
static const char *describe(const cfg_key *key, char text[256])
{
    size_t length = 0;
    int list = key->rules & CFG_LIST;
    text[0] = 0;
    if (key->type == CFG_FLAG) return "0, 1";
    if (key->type == CFG_FILE) return "a file that can be read";
    if (key->type == CFG_LAYER)
        return list ? "layers before this one, separated by commas" : "a layer before this one";
    if (key->type == CFG_WORD) {
        for (const char *const *word = key->words; *word; word++)
            length += (size_t)snprintf(text + length, 256 - length, "%s%s", length ? ", " : "", *word);
        return text;
    }
    const char *one = key->type == CFG_WHOLE ? "a whole number" : "a number";
    const char *several = key->type == CFG_WHOLE ? "whole numbers" : "numbers";
    if (key->least == key->most) {
        snprintf(text, 256, "%.10g", key->least);
        return text;
    }
    int has_least = key->least > -INT_MAX, has_most = key->most < INT_MAX, is_above = key->rules & CFG_ABOVE;
    length = (size_t)snprintf(text, 256, "%s", list ? several : one);
    if (has_least)
        length += (size_t)snprintf(text + length, 256 - length, " %s %.10g", is_above ? "above" : "from",
                                   key->least);
    if (has_most)
        length += (size_t)snprintf(text + length, 256 - length, " %s %.10g",
                                   key->rules & CFG_BELOW ? "to below" : "to", key->most);
    else if (has_least && !is_above)
        length += (size_t)snprintf(text + length, 256 - length, " up");
    if (list) snprintf(text + length, 256 - length, ", separated by commas");
    return text;
}

/* [+-]digits, or such with .0 behind it: what atoi and a reader both understand. */
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
    if (key->rules & CFG_ABOVE && number <= key->least) snprintf(problem, 128, "not above %.10g", key->least);
    else if (key->rules & CFG_BELOW && number >= key->most)
        snprintf(problem, 128, "not below %.10g", key->most);
    else if (number < key->least) snprintf(problem, 128, "below %.10g", key->least);
    else if (number > key->most) snprintf(problem, 128, "above %.10g", key->most);
    else return NULL;
    return problem;
}

/* Where layer `index` names itself, one behind it, or none. */
static const char *bad_layer(double number, int index, char problem[128])
{
    double layer = number < 0 ? index + number : number;
    if (index == 0) return "the first layer has none before it";
    if (layer < 0)
        snprintf(problem, 128, "there is no layer %.0f: only %d layers are before this one", layer, index);
    else if (layer == index) snprintf(problem, 128, "this is layer %d itself", index);
    else if (layer > index)
        snprintf(problem, 128, "layer %.0f is not before this one, which is layer %d", layer, index);
    else return NULL;
    return problem;
}

/* Digits; numbers of a list; lines of a section. */
enum { NUMBER_MOST = 128, LIST_MOST = 4096, KEYS_MOST = 1000 };

/* One number of a value: NULL, or what is wrong with it. */
static const char *parse_number(const cfg_key *key, const char *text, double *number)
{
    if (strlen(text) >= NUMBER_MOST - 1) return "too many digits";
    if (!*text) return key->rules & CFG_LIST ? "a number of the list is missing" : "has no value";
    const char *wrong = amp_decimal_parse(text, number);
    if (wrong && is_kept_in_int(key)) return "not a whole number";
    if (wrong) return strchr(text, ',') ? "not a decimal number: its point is a '.'" : wrong;
    if (is_kept_in_int(key)) {
        if (!is_whole(text)) return "not a whole number";
        if (*number > INT_MAX || *number < -INT_MAX) return "too large";
    } else if (!(fabs(*number) <= 3.4028234663852886e38)) {
        return "out of fp32's range";
    }
    return NULL;
}

/* Copies number `index` of a list (of no list: all of it) to text; 0 where the list is shorter. */
static int nth(const entry *e, int index, char *text, size_t size)
{
    const char *from = e->value;
    int list = e->known->rules & CFG_LIST;
    for (; list && index > 0; index--) {
        from = strchr(from, ',');
        if (!from) return 0;
        from++;
    }
    size_t length = list ? strcspn(from, ",") : strlen(from);
    if (length >= size) length = size - 1; /* too long for any number */
    memcpy(text, from, length);
    text[length] = 0;
    return 1;
}

/* "64#images" is 64 to Darknet. Cuts the comment off; 0 where there is none. */
static int cut_comment(char *text)
{
    size_t number = strspn(text, "+-.0123456789eE");
    if (!number || (!strchr("#;", text[number]) && strncmp(text + number, "//", 2)) || !text[number])
        return 0;
    text[number] = 0;
    return 1;
}

static const char *check_word(const cfg_key *key, const char *value, char problem[128])
{
    size_t count = 0;
    for (; key->words[count]; count++)
        if (!strcmp(value, key->words[count])) return NULL;
    if (strpbrk(value, "#;")) return "a comment needs a line of its own";
    amp_did_you_mean(problem, 128, "unknown word", value, key->words, count);
    return problem;
}

static const char *check_file(const char *value)
{
    struct stat status;
    if (stat(value, &status) != 0) return strerror(errno);
    if (!S_ISREG(status.st_mode)) return "not a regular file";
    return access(value, R_OK) ? strerror(errno) : NULL;
}

/* e->known is set, and e has a value. index: of the layer, -1 in [net]. */
static void check_value(struct cfg_check *check, section *s, const entry *e, int index)
{
    const cfg_key *key = e->known;
    char problem[128], allowed[256], text[NUMBER_MOST];
    const char *wrong = NULL;
    double number;
    if (key->type == CFG_WORD) wrong = check_word(key, e->value, problem);
    else if (key->type == CFG_FILE) wrong = check_file(e->value);
    else for (int k = 0; !wrong && (k == 0 || key->rules & CFG_LIST) && nth(e, k, text, sizeof text); k++) {
        if (cut_comment(text))
            tell(check, 0, place_of(check, s, e),
                 "Darknet reads the number before the comment; a comment needs a line of its own", NULL);
        wrong = k < LIST_MOST ? parse_number(key, text, &number) : "too many numbers";
        if (wrong) break;
        if (key->type == CFG_LAYER) wrong = bad_layer(number, index, problem);
        else if (key->type == CFG_FLAG && number != 0 && number != 1)
            tell(check, 0, place_of(check, s, e), "neither 0 nor 1; taken as 1", NULL);
        else if (key->type != CFG_FLAG) wrong = out_of_range(key, number, problem);
    }
    if (wrong) fail_entry(check, s, e, wrong, describe(key, allowed));
}

/* ---- the keys of a section ---- */

enum { MOST_KEYS = 64 };

static const cfg_key *find_key(const cfg_fork *fork, const section *s, const char *name)
{
    for (int i = 0; i < s->kind->count; i++)
        if (!strcmp(name, s->kind->keys[i].name)) return &s->kind->keys[i];
    for (int i = 0; s->kind != fork->kinds && i < fork->layer_key_count; i++)
        if (!strcmp(name, fork->layer_keys[i].name)) return &fork->layer_keys[i];
    return NULL;
}

static void warn_unknown(struct cfg_check *check, const section *s, const entry *e)
{
    const char *names[MOST_KEYS];
    char problem[160];
    size_t count = 0;
    for (int i = 0; i < s->kind->count && count < MOST_KEYS; i++) names[count++] = s->kind->keys[i].name;
    int more = s->kind == check->fork->kinds ? 0 : check->fork->layer_key_count;
    for (int i = 0; i < more && count < MOST_KEYS; i++) names[count++] = check->fork->layer_keys[i].name;
    amp_did_you_mean(problem, sizeof problem, "unknown key, which Darknet does not read", e->key, names,
                     count);
    tell(check, 0, place_of(check, s, e), problem, NULL);
}

/* Of two, Darknet takes the first. */
static int is_repeated(struct cfg_check *check, const section *s, const entry *e)
{
    char problem[96];
    for (const entry *before = s->entries; before < e; before++) {
        if (strcmp(before->key, e->key)) continue;
        if (before->value && e->value && !strcmp(before->value, e->value)) return 1;
        snprintf(problem, sizeof problem, "set twice in this section; Darknet takes the first, on line %lu",
                 before->line);
        tell(check, 0, place_of(check, s, e), problem, NULL);
        return 1;
    }
    return 0;
}

static void check_section(struct cfg_check *check, section *s, int index)
{
    char allowed[256], problem[128];
    const cfg_fork *fork = check->fork;
    if (!s->kind) {
        const char *names[2 * MOST_KEYS];
        size_t count = 0;
        for (int i = 0; i < fork->count; i++) {
            names[count++] = fork->kinds[i].name;
            if (fork->kinds[i].other) names[count++] = fork->kinds[i].other;
        }
        amp_did_you_mean(problem, sizeof problem, "unknown section", s->name, names, count);
        tell(check, 1, place_of(check, s, NULL), problem, "the layers of Darknet, [net] first, and [amp]");
        return;
    }
    if ((s->kind == fork->kinds) != (index < 0)) {
        tell(check, 1, place_of(check, s, NULL), index < 0 ? "the first section is not [net]"
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
        if (index < 0 ? amp_config_is_key(e->key) : !strcmp(e->key, "amp")) continue;
        if (is_repeated(check, s, e)) continue;
        e->known = find_key(fork, s, e->key);
        if (!e->known) warn_unknown(check, s, e);
        else if (!e->value || !*e->value)
            fail_entry(check, s, e, "has no value", describe(e->known, allowed));
        else check_value(check, s, e, index);
    }
    for (int i = 0; i < s->kind->count; i++) {
        const cfg_key *key = &s->kind->keys[i];
        int found = 0;
        for (size_t k = 0; k < s->count; k++) found |= !strcmp(s->entries[k].key, key->name);
        if (found || !(key->rules & CFG_REQUIRED)) continue;
        snprintf(problem, sizeof problem, "%s is missing", key->name);
        s->is_wrong = 1;
        tell(check, 1, place_of(check, s, NULL), problem, describe(key, allowed));
    }
}

/* ---- what rules call ---- */

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
    char text[NUMBER_MOST];
    double number = 0;
    if (!e) return find_key(walk->check->fork, walk->check->at, key)->fallback;
    if (e->known->type == CFG_WORD) {
        int word = 0;
        while (strcmp(e->value, e->known->words[word])) word++;
        return word;
    }
    if (!nth(e, index, text, sizeof text)) return 0;
    cut_comment(text);
    parse_number(e->known, text, &number);
    return e->known->type == CFG_LAYER && number < 0 ? walk->index + number : number;
}

double cfg_walk_number(const cfg_walk *walk, const char *key) { return cfg_walk_at(walk, key, 0); }

int cfg_walk_numbers(const cfg_walk *walk, const char *key)
{
    const entry *e = find_entry(walk, key);
    int count = e != NULL;
    for (const char *c = e ? e->value : ""; *c; c++) count += *c == ',';
    return count;
}

static section *section_of(const cfg_walk *walk, int index) { return &walk->check->sections[index + 1]; }

void cfg_walk_enter(cfg_walk *walk, int index)
{
    walk->index = index;
    walk->check->at = section_of(walk, index);
}

static void report(cfg_walk *walk, int is_error, const char *key, const char *allowed, const char *problem,
                   va_list args)
{
    char text[512];
    int length = 0;
    const entry *e = key ? find_entry(walk, key) : NULL;
    if (walk->resized)
        length =
            snprintf(text, sizeof text, "resized to %.0fx%.0f (random=1): ", walk->resized, walk->resized);
    vsnprintf(text + length, sizeof text - (size_t)length, problem, args);
    tell(walk->check, is_error, place_of(walk->check, walk->check->at, e), text, allowed);
}

void cfg_walk_fail(cfg_walk *walk, const char *key, const char *allowed, const char *problem, ...)
{
    va_list args;
    va_start(args, problem);
    if (!walk->check->has_failed) report(walk, 1, key, allowed, problem, args);
    va_end(args);
    walk->check->has_failed = 1;
}

void cfg_walk_warn(cfg_walk *walk, const char *key, const char *allowed, const char *problem, ...)
{
    va_list args;
    va_start(args, problem);
    report(walk, 0, key, allowed, problem, args);
    va_end(args);
}

/* ---- the walk ---- */

/* What Darknet counts in int: values of a batch, and weights. */
static void check_size(cfg_walk *walk, const cfg_shape *shape)
{
    double truths = shape->truths > shape->reads ? shape->truths : shape->reads;
    const char *outputs = walk->index < 0 ? "numbers of input for a batch" : "outputs for a batch";
    const struct { const char *what; double count; } sizes[] = {
        { "weights", shape->weights }, { outputs, shape->outputs * walk->batch },
        { "numbers of truth for a batch", truths * walk->batch } };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].count > INT_MAX)
            cfg_walk_fail(walk, NULL, NULL, "%.0f %s, and Darknet counts to %d; make it smaller",
                          sizes[i].count, sizes[i].what, INT_MAX);
}

static void name_layer(const cfg_walk *walk, int index, char text[64])
{
    if (index < 0) snprintf(text, 64, "the network's input");
    else snprintf(text, 64, "layer %d %.40s", index, section_of(walk, index)->name);
}

static void walk_section(cfg_walk *walk, int index)
{
    char before[64];
    cfg_walk_enter(walk, index);
    const section *s = walk->check->at;
    cfg_shape *shapes = walk->check->shapes + (walk->resized ? walk->count : 0);
    walk->in = index < 1 ? &walk->net : &shapes[index - 1];
    walk->out = index < 0 ? &walk->net : &shapes[index];
    *walk->out = (cfg_shape){ 0 };
    walk->check->has_failed = 0;
    if (!s->kind || s->is_wrong || (index >= 0 && !walk->in->outputs)) return;
    if (s->kind->wants_image && !(walk->in->w && walk->in->h && walk->in->c)) {
        name_layer(walk, index - 1, before);
        cfg_walk_fail(walk, NULL, NULL,
                      "needs an image with width, height and channels, and %s gives none%s%s", before,
                      walk->in->no_image ? ", since " : "", walk->in->no_image ? walk->in->no_image : "");
    } else if (s->kind->rule) {
        s->kind->rule(walk);
    }
    if (!walk->check->has_failed) check_size(walk, walk->out);
    if (walk->check->has_failed) *walk->out = (cfg_shape){ 0 };
}

void cfg_walk_again(cfg_walk *walk, double size)
{
    walk->own = walk->layers;
    walk->own_net = walk->net;
    walk->layers += walk->count;
    walk->resized = size;
    for (int i = -1; i < walk->count; i++) walk_section(walk, i);
    walk->resized = 0;
    walk->layers = walk->own;
    walk->net = walk->own_net;
}

int cfg_walk_failed(const cfg_walk *walk) { return walk->check->summary->errors > 0; }

static void sum_up(cfg_walk *walk, cfg_summary *summary)
{
    const cfg_shape *last = &walk->check->shapes[walk->count - 1];
    summary->layers = walk->count;
    summary->w = walk->net.w;
    summary->h = walk->net.h;
    summary->c = walk->net.c;
    summary->batch = walk->batch;
    summary->classes = last->classes;
    summary->last_outputs = last->outputs;
    for (int i = 0; i < walk->count; i++) {
        summary->weights += walk->check->shapes[i].weights;
        summary->outputs += walk->check->shapes[i].outputs;
    }
}

static amp_status check_all(struct cfg_check *check, cfg_use use, amp_error *error)
{
    if (check->count < 2) {
        tell(check, 1, place_of(check, check->count ? check->sections : NULL, NULL),
             check->count ? "no layer follows" : "holds no section", "[net] first, then the layers");
        return AMP_OK;
    }
    if (check->count > INT_MAX / 2)
        return amp_fail(error, AMP_BAD_CONFIG, "%.300s: too many sections", check->file);
    cfg_walk walk = { .count = (int)check->count - 1, .use = use, .check = check };
    walk.layers = check->shapes = calloc(2 * check->count, sizeof *check->shapes);
    if (!check->shapes) return no_memory(check, error);
    for (int i = -1; i < walk.count; i++) check_section(check, section_of(&walk, i), i);
    for (int i = -1; i < walk.count; i++) walk_section(&walk, i);
    if (check->summary->errors) return AMP_OK;
    sum_up(&walk, check->summary);
    check->has_failed = 0;
    if (check->fork->finish) check->fork->finish(&walk);
    return AMP_OK;
}

amp_status cfg_check(const char *file, const cfg_fork *fork, cfg_use use, const cfg_listener *listener,
                     cfg_summary *summary, amp_error *error)
{
    struct cfg_check check = { .file = file, .fork = fork, .summary = summary };
    cfg_reader *reader;
    if (listener) check.listener = *listener;
    memset(summary, 0, sizeof *summary);
    AMP_TRY(cfg_reader_open(file, &reader, error));
    amp_status status = read_sections(&check, reader, error);
    cfg_reader_close(reader);
    if (status == AMP_OK) status = check_all(&check, use, error);
    free_sections(&check);
    return status;
}
