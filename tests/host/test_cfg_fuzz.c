/* What the check of a .cfg lets through, Darknet makes and trains: mutants of tests/cfg by the table of keys,
 * each refused in one printable line, or made, run forward, backward and updated in a program of its own,
 * which may end by a line as well, but by no signal, sanitizer or clock. AMP_FUZZ_SEED=N begins at the mutant
 * N that a failure names, AMP_FUZZ_RUNS=N makes more, AMP_FUZZ_DTYPES=3 trains each in every dtype instead of
 * in one; the last mutant and what its program said stay behind a failure. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "testing.h"

#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "documents.h"
#include "engine_testing.h"
#include "random_numbers.h"

enum { LINES = 400, LINE = 128 };
enum { HANGS_AFTER = 100 }; /* seconds of the processor, under a sanitizer */

/* A sanitizer's end differs from the 1 of a program that ends by a line. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "exitcode=99"; }

/* ---- lines of a .cfg ---- */

typedef struct text { char line[LINES][LINE]; int count; } text;

static text seeds[100];
static int seed_count;

static void read_seeds(void)
{
    glob_t found;
    assert_int_equal(glob("*.cfg", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc && seed_count < (int)COUNT(seeds); i++) {
        text *t = &seeds[seed_count++];
        FILE *file = fopen(found.gl_pathv[i], "r");
        assert_non_null(file);
        while (t->count < LINES / 2 && fgets(t->line[t->count], LINE, file)) {
            t->line[t->count][strcspn(t->line[t->count], "\n")] = 0;
            if (*t->line[t->count] && *t->line[t->count] != '#') t->count++;
        }
        fclose(file);
    }
    globfree(&found);
    assert_true(seed_count > 50);
}

static void insert(text *t, int at, const char *line)
{
    if (t->count == LINES) return;
    memmove(t->line[at + 1], t->line[at], (size_t)(t->count++ - at) * LINE);
    snprintf(t->line[at], LINE, "%s", line);
}

static void drop(text *t, int at, int count)
{
    memmove(t->line[at], t->line[at + count], (size_t)(t->count - at - count) * LINE);
    t->count -= count;
}

static int is_section(const text *t, int at) { return t->line[at][0] == '['; }

static int start_of(const text *t, int at)
{
    while (at > 0 && !is_section(t, at)) at--;
    return at;
}

static int end_of(const text *t, int at)
{
    do at++; while (at < t->count && !is_section(t, at));
    return at;
}

static const cfg_section_kind *kind_of(const char *name)
{
    for (int i = 0; i < amp_cfg_fork.count; i++)
        if (!strcmp(name, amp_cfg_fork.kinds[i].name)) return &amp_cfg_fork.kinds[i];
    return NULL;
}

/* ---- mutants ---- */

static void odd_value(char *value)
{
    static const char *const odd[] = {
        "0", "-1", "1", "2", "3", "4", "5", "7", "8", "9", "16", "33", "64", "255", "-2", "-7", "1000",
        "46341", "65536", "2147483647", "-2147483648", "4294967297", "99999999999999999999", "1e3", "1e-3",
        "0.5", "-.5", "1.5", "nan", "inf", "-inf", "1e400", "abc", "", ",", "1,", ",1", "1,2", "1,,2",
        "-1,-2", "-1,0", "0,1", "-1,-1,-1", "0,001", "2#x", "leaky", "linear", "steps", "poly", "small.tree",
        "/dev/null", "nowhere", "%s%n", "0x10", "1 000", "++1",
    };
    strcpy(value, odd[below((int)COUNT(odd))]);
}

/* Mostly within the key's bounds. */
static void value_of(const cfg_key *key, char *value)
{
    int count = key->rules & CFG_LIST ? 1 + below(4) : 1, words = 0;
    double least = key->least > -1000 ? key->least : -3;
    double most = key->most < least + 40 ? key->most : least + 40;
    *value = 0;
    if (key->type == CFG_FILE || below(6) == 0) {
        odd_value(value);
        return;
    }
    if (key->type == CFG_WORD) {
        while (key->words[words]) words++;
        strcpy(value, key->words[below(words)]);
        return;
    }
    for (int i = 0; i < count; i++) {
        double number = least + (most - least) * below(1000) / 999;
        if (key->type == CFG_LAYER) number = below(3) ? -1 - below(4) : below(12);
        else if (key->type != CFG_REAL) number = (int)(below(3) ? least + below(5) : number);
        sprintf(value + strlen(value), "%s%g", i ? "," : "", number);
    }
}

static void change_line(text *t, int at)
{
    char *equals = strchr(t->line[at], '='), value[LINE];
    if (!equals) return;
    *equals = 0;
    const cfg_section_kind *kind = kind_of(t->line[start_of(t, at)]);
    const cfg_key *key = NULL;
    for (int i = 0; kind && i < kind->count; i++)
        if (!strcmp(kind->keys[i].name, t->line[at])) key = &kind->keys[i];
    *equals = '=';
    double number = atof(equals + 1);
    switch (below(4)) {
    case 0: sprintf(value, "%g", number + below(3) - 1); break;
    case 1: sprintf(value, "%g", below(2) ? number * 2 : number / 2); break;
    case 2: if (key) { value_of(key, value); break; } /* falls through */
    default: odd_value(value);
    }
    snprintf(equals + 1, LINE - (size_t)(equals + 1 - t->line[at]), "%.40s", value);
}

static void add_key(text *t, int at)
{
    char line[LINE], value[LINE];
    const cfg_section_kind *kind = kind_of(t->line[start_of(t, at)]);
    if (!kind) return;
    int own = below(4) && kind->count;
    const cfg_key *key = own ? &kind->keys[below(kind->count)]
                             : &amp_cfg_fork.layer_keys[below(amp_cfg_fork.layer_key_count)];
    value_of(key, value);
    snprintf(line, sizeof line, "%.40s=%.60s", key->name, value);
    insert(t, start_of(t, at) + 1, line);
}

/* A section of any seed, or an empty one of any kind. */
static void add_section(text *t, int at)
{
    int place = end_of(t, start_of(t, at));
    if (below(3) == 0) {
        insert(t, place, amp_cfg_fork.kinds[below(amp_cfg_fork.count)].name);
        return;
    }
    const text *from = &seeds[below(seed_count)];
    int first = start_of(from, below(from->count)), last = end_of(from, first);
    if (t->count + last - first > LINES) return;
    for (int i = first; i < last; i++) insert(t, place + i - first, from->line[i]);
}

static void mutate(text *t)
{
    int at = below(t->count), section = start_of(t, at);
    switch (below(12)) {
    case 0: drop(t, at, 1); break;
    case 1: case 2: add_key(t, at); break;
    case 3: case 4: add_section(t, at); break;
    case 5: if (section) drop(t, section, end_of(t, section) - section); break;
    case 6: strcpy(t->line[section], amp_cfg_fork.kinds[below(amp_cfg_fork.count)].name); break;
    case 7: if (*t->line[at]) t->line[at][below((int)strlen(t->line[at]))] = (char)(33 + below(94)); break;
    case 8: snprintf(t->line[at], LINE, "%s", seeds[below(seed_count)].line[0]); break;
    default: change_line(t, at);
    }
    if (!t->count) insert(t, 0, "[net]");
}

/* ---- one mutant ---- */

static char folder[] = "/tmp/amp_test_cfg_fuzz_XXXXXX", path[64], said[64];

static void write_mutant(const text *t)
{
    unlink(path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < t->count; i++) fprintf(file, "%s\n", t->line[i]);
    assert_int_equal(fclose(file), 0);
}

static _Noreturn void make_and_train(const char *dtype, cfg_use use)
{
    char *argv[] = { "darknet", "-amp", (char *)dtype, NULL };
    int log = open(said, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    for (int signal_number = 1; signal_number < 32; signal_number++) signal(signal_number, SIG_DFL);
    setrlimit(RLIMIT_CPU, &(struct rlimit){ HANGS_AFTER, HANGS_AFTER });
    darknet_amp_start(3, argv);
    srand(5);
    network *net = parse_network_cfg(path);
    int subdivisions = net->subdivisions < 4 ? net->subdivisions : 4;
    for (int pass = 0; pass < 2; pass++) {
        for (int s = 0; s < subdivisions; s++) {
            feed(net, (unsigned)(pass * 10 + s));
            train_network_datum(net);
        }
        const layer *last = &net->layers[net->n - 1];
        int finds_boxes = last->type == YOLO || last->type == REGION;
        int random = use == CFG_TRAINS_BOXES && finds_boxes && last->random;
        if (use == CFG_TRAINS_CLASSIFIER) random = net->random;
        if (!random || pass || net->batch > 4) continue;
        int size = use == CFG_TRAINS_CLASSIFIER ? 128 : 320;
        resize_network(net, size, size);
    }
    release(net);
    _exit(0);
}

static void check_line(const char *line, unsigned long long run)
{
    int printable = strlen(line) > strlen(path) && !strncmp(line, path, strlen(path));
    for (const char *c = line; *c; c++) printable &= (unsigned char)*c >= 0x20 && *c != 0x7f;
    if (!printable) fail_msg("AMP_FUZZ_SEED=%llu: %s", run, line);
}

TEST(mutants_are_refused_or_trained)
{
    static text t;
    static const cfg_use uses[] = { CFG_FOR_ANYTHING, CFG_TRAINS_BOXES, CFG_TRAINS_CLASSIFIER };
    const char *first = getenv("AMP_FUZZ_SEED"), *runs = getenv("AMP_FUZZ_RUNS");
    const int each = getenv("AMP_FUZZ_DTYPES") ? 3 : 1;
    unsigned long long run = first ? strtoull(first, NULL, 10) : 1;
    unsigned long long end = run + (runs ? strtoull(runs, NULL, 10) : 300);
    long refused = 0, trained = 0, large = 0, ended = 0;
    read_seeds();
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/x.cfg", folder);
    snprintf(said, sizeof said, "%s/said", folder);
    for (; run < end; run++) {
        random_state = run * 0x9e3779b97f4a7c15u;
        t = seeds[below(seed_count)];
        for (int edits = 1 + below(4); edits; edits--) mutate(&t);
        write_mutant(&t);
        const cfg_use use = uses[below(3)];
        amp_error error;
        amp_config *config;
        cfg_summary summary;
        amp_status status = config_of(path, amp_cfg_fork.cfg_syntax, "fp32", AMP_FP32, &config, &error);
        if (status == AMP_OK) {
            amp_config_free(config);
            check_file(path, &amp_cfg_fork, use, NULL, &summary);
            if (summary.errors) {
                status = AMP_BAD_CONFIG;
                strcpy(error.message, summary.first_error);
            }
        }
        if (status != AMP_OK) {
            check_line(error.message, run);
            refused++;
            continue;
        }
        if (summary.weights > 1e6 || summary.outputs * summary.batch > 1e6 ||
            summary.w * summary.h * summary.c * summary.batch > 1e6) {
            large++;
            continue;
        }
        int code = 0, dtype = below(3), tried = 0;
        do {
            pid_t child = fork();
            if (!child) make_and_train(dtype_names[(dtype + tried) % 3], use);
            assert_int_equal(waitpid(child, &code, 0), child);
            if (!WIFEXITED(code) || WEXITSTATUS(code) > 1)
                fail_msg("AMP_FUZZ_SEED=%llu: %s: status %x, see %s and %s", run,
                         dtype_names[(dtype + tried) % 3], (unsigned)code, path, said);
        } while (!code && ++tried < each);
        if (code) ended++;
        else trained++;
    }
    unlink(path);
    unlink(said);
    rmdir(folder);
    print_message("%ld refused, %ld trained, %ld ended by a line while they trained, %ld too large to try\n",
                  refused, trained, ended, large);
    if (!runs) assert_true(refused > 100 && trained > 40);
}

int main(void)
{
    if (chdir(networks_folder())) return 1;
    return run_listed_tests("mutants of .cfg files", NULL, NULL);
}
