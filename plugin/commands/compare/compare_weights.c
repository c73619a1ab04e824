/* How far the weights of two trainings lie apart. */
#include "compare.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../host/fork_commands.h"
#include "../../host/common/state.h"

/* ---- files ---- */

/* Opens a .weights file behind its header (load_weights_upto in parser.c); NULL if it is none. */
static FILE *open_weights(const char *name)
{
    FILE *file = fopen(name, "rb");
    int version[3];
    if (!file) return NULL;
    if (fread(version, sizeof version, 1, file) == 1) {
        int wide = version[0] * 10 + version[1] >= 2 && version[0] < 1000 && version[1] < 1000;
        if (!fseek(file, wide ? (long)sizeof(size_t) : (long)sizeof(int), SEEK_CUR)) return file;
    }
    fclose(file);
    return NULL;
}

enum { WEIGHTS_CHUNK = 4096 };

/* Which floats of a file are learnt, from its first on. Without runs: all. */
typedef struct place { const amp_weights_run *runs; size_t count, at, passed; } place;

static int next_is_learnt(place *p)
{
    while (p->at < p->count && p->passed == p->runs[p->at].learnt + p->runs[p->at].statistics) {
        p->at++;
        p->passed = 0;
    }
    return p->at == p->count || p->passed++ < p->runs[p->at].learnt;
}

/* 0 unless both hold the same number of floats. */
static int compare_weights(FILE *a, FILE *b, place where, double *largest, double *difference, double *size)
{
    float x[WEIGHTS_CHUNK], y[WEIGHTS_CHUNK];
    *largest = *difference = *size = 0;
    for (;;) {
        size_t n = fread(x, sizeof *x, WEIGHTS_CHUNK, a), m = fread(y, sizeof *y, WEIGHTS_CHUNK, b);
        if (n != m) return 0;
        for (size_t i = 0; i < n; ++i) {
            double d = (double)x[i] - (double)y[i];
            if (!next_is_learnt(&where)) continue;
            if (fabs(d) > *largest || !amp_is_number(d)) *largest = fabs(d); /* NaN, once it is, stays */
            *difference += d * d;
            *size += (double)y[i] * (double)y[i];
        }
        if (n < WEIGHTS_CHUNK) return !ferror(a) && !ferror(b);
    }
}

void amp_weights_difference(const char *weights, const char *reference, const amp_weights_run *runs, size_t count,
                            double *largest, double *relative)
{
    FILE *a = open_weights(weights), *b = open_weights(reference);
    double difference, size;
    *relative = NAN;
    if (a && b && compare_weights(a, b, (place){ runs, count, 0, 0 }, largest, &difference, &size))
        *relative = difference <= 0 ? 0 : sqrt(difference / size);
    else *largest = NAN;
    if (a) fclose(a);
    if (b) fclose(b);
}

/* ---- what a network's file holds ---- */

/* Darknet's parser prints its layers on stderr, which were told when the training began. */
static struct network *make_quietly(const char *cfg)
{
    int told = dup(STDERR_FILENO), nothing = open("/dev/null", O_WRONLY);
    const char *wished = amp_host_wished_dtype();
    fflush(stderr);
    if (told >= 0 && nothing >= 0) dup2(nothing, STDERR_FILENO);
    amp_host_wish_dtype("off");
    struct network *net = amp_fork_make_network(cfg, cfg, 0);
    amp_host_wish_dtype(wished);
    fflush(stderr);
    if (told >= 0) dup2(told, STDERR_FILENO);
    if (told >= 0) close(told);
    if (nothing >= 0) close(nothing);
    return net;
}

amp_status amp_compare_weights_runs(const char *cfg, amp_weights_run **runs, size_t *count, amp_error *error)
{
    struct network *net = make_quietly(cfg);
    int layers = amp_fork_view(net).layers;
    *count = 0;
    *runs = calloc((size_t)layers * AMP_WEIGHTS_RUNS + 1, sizeof **runs);
    for (int i = 0; *runs && i < layers; ++i) *count += (size_t)amp_fork_weights_runs(net, i, *runs + *count);
    amp_fork_free_network(net);
    return *runs ? AMP_OK : amp_fail(error, AMP_NO_MEMORY, "%s: out of memory", cfg);
}
