/* Comparisons made up for the tests of the report: trainings that never were, with losses that wander. */
#ifndef AMP_TESTS_REPORT_TESTING_H
#define AMP_TESTS_REPORT_TESTING_H

#include "commands/compare/comparison.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DTYPES = 5, MOST_SEEDS = 12 };

typedef struct made {
    amp_comparison c;
    const char *dtypes[MOST_DTYPES];
    amp_run runs[MOST_DTYPES * MOST_SEEDS];
    amp_dtype_summary summaries[MOST_DTYPES];
    char *advice[3];
} made;

static inline double wander(uint64_t *state) /* 0..1 */
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 33) / 2147483648.;
}

static inline void summarize(made *m)
{
    amp_compare_summarize(&m->c);
}

static inline void make_rows(amp_run *run, size_t steps, int dtype)
{
    uint64_t batches = 77 + run->seed, own = 1000u * run->seed + (uint64_t)dtype;
    int is_fp16 = !strcmp(run->dtype, "fp16");
    double drift = 0, average = -1;
    float scale = is_fp16 ? 65536 : 1;
    long counted = 0;
    run->rows = calloc(steps + 1, sizeof *run->rows);
    for (size_t i = 0; i < steps; i++) {
        amp_log_row *row = &run->rows[run->count++];
        drift = .98 * drift + .02 * (wander(&own) - .5);
        double loss = (.6 + 40 * exp(-6. * (double)i / (double)steps) +
                       300 * exp(-60. * (double)i / (double)steps))
                      * (.7 + .6 * wander(&batches)) * (1 + drift);
        row->found_inf = is_fp16 && (i < 3 || wander(&own) < 3. / (double)(steps + 1));
        run->skipped += row->found_inf;
        average = average < 0 ? loss : .9 * average + .1 * loss;
        row->iteration = counted += !row->found_inf;
        row->loss = (float)loss;
        row->avg_loss = (float)average;
        row->learning_rate = .001f;
        row->scale = scale;
        row->grad_norm = row->found_inf ? (double)NAN : 3 + drift;
        row->images_per_second = 100;
        row->peak_memory_mb = 70;
        if (row->found_inf) scale /= 2;
        else if (is_fp16 && counted % (long)(steps / 4 + 2) == 0) scale *= 2;
    }
}

/* All done. steps 0: without rows. */
static inline made *make_comparison(int dtypes, int seeds, size_t steps)
{
    static const char *const names[MOST_DTYPES] = { "stock", "fp32", "bf16", "fp16", "fp8" };
    static const double speed[] = { 251, 373, 521, 361, 200 }, memory[] = { 72, 72.4, 51, 54, 40 };
    made *m = calloc(1, sizeof *m);
    int first = dtypes < 4; /* without stock */
    m->c = (amp_comparison){ .kind = AMP_COMPARED_DETECTOR, .title = "bccd.cfg on bccd.data",
        .data = "bccd.data", .cfg = "cfg/bccd.cfg",
        .machine = "AMD EPYC 9R14 (2 threads of 2), AVX512_BF16; oneDNN 2.6",
        .version = "1.0 (61c9d02e)", .date = "2026-11-20T19:30:00Z", .iterations = (long)steps, .batch = 8,
        .width = 160, .height = 128, .classes = 3, .train_images = 291, .valid_images = 73,
        .dtype_count = dtypes, .seed_count = seeds, .dtypes = m->dtypes, .runs = m->runs,
        .summaries = m->summaries, .points_allowed = 1, .alpha = .05,
        .advice = { m->advice, 3, 3 }, .reference = dtypes > 1 && !first ? 1 : 0 };
    for (int d = 0; d < dtypes; d++) m->dtypes[d] = names[d + first];
    for (int r = 0; r < dtypes * seeds; r++) {
        amp_run *run = &m->runs[r];
        int d = r / seeds, s = r % seeds;
        uint64_t state = 31 + 7u * (unsigned)r;
        *run = (amp_run){ .dtype = m->dtypes[d], .seed = (unsigned)s + 1, .state = AMP_RUN_DONE,
            .images_per_second = speed[d + first] * (.97 + .05 * wander(&state)),
            .compute_images_per_second = 1.2 * speed[d + first] * (.98 + .03 * wander(&state)),
            .peak_memory_mb = memory[d + first] };
        run->score[0] = .955 + .02 * wander(&state) - .004 * d;
        run->score[1] = run->score[0] - .3 - .01 * wander(&state);
        make_rows(run, steps, d);
    }
    summarize(m);
    for (int d = 0; d < dtypes; d++)
        if (d != m->c.reference) m->summaries[d].speed = d % 2 ? AMP_SPEED_FASTER : AMP_SPEED_NOT_WORTH_IT;
    m->advice[0] = "bf16: about 23 more seeds are needed to judge its accuracy: give -seeds 26, or -until 1.";
    m->advice[1] = "fp16: this machine stores it, and computes in fp32.";
    m->advice[2] = "Speeds: not all dtypes of a seed trained at the same time, so the machine may have been "
        "busier for one than for another.";
    return m;
}

static inline void free_comparison(made *m)
{
    for (int r = 0; r < m->c.dtype_count * m->c.seed_count; r++) free(m->runs[r].rows);
    free(m);
}

/* ---- cases that a report must survive ---- */

typedef struct report_case { const char *name; made *(*make)(void); } report_case;

static inline made *typical(void) { return make_comparison(3, 3, 1200); }
static inline made *all_dtypes(void) { return make_comparison(4, 3, 500); }
static inline made *many_runs(void) { return make_comparison(4, 10, 300); }
static inline made *alone(void) { return make_comparison(1, 1, 200); }
static inline made *one_seed(void) { return make_comparison(3, 1, 200); }
static inline made *one_step(void) { return make_comparison(3, 2, 1); }
static inline made *long_training(void) { return make_comparison(3, 1, 500000); }

static inline made *classifier(void)
{
    made *m = make_comparison(4, 3, 2000);
    m->c.kind = AMP_COMPARED_CLASSIFIER;
    m->c.cfg = m->c.title = "fmnist.cfg";
    m->c.weights = "backup/fmnist.weights";
    return m;
}

static inline void set_states(made *m, amp_training_state state)
{
    for (int r = 0; r < m->c.dtype_count * m->c.seed_count; r++) m->runs[r].state = state;
    summarize(m);
}

static inline made *not_begun(void)
{
    made *m = make_comparison(3, 3, 0);
    for (int r = 0; r < 9; r++) {
        amp_run *run = &m->runs[r];
        run->images_per_second = run->compute_images_per_second = run->peak_memory_mb = 0;
    }
    set_states(m, AMP_RUN_WAITING);
    m->c.advice.count = 0;
    m->c.interrupted = 1;
    return m;
}

static inline made *interrupted(void)
{
    made *m = make_comparison(3, 3, 600);
    for (int r = 0; r < 9; r++) {
        if (r % 3 == 0) continue;
        m->runs[r].state = r % 3 == 1 ? AMP_RUN_TRAINING : AMP_RUN_WAITING;
        m->runs[r].count = r % 3 == 1 ? 240 : 0;
        m->runs[r].skipped = 0;
        for (size_t i = 0; i < m->runs[r].count; i++) m->runs[r].skipped += m->runs[r].rows[i].found_inf;
        if (r % 3 == 2)
            m->runs[r].images_per_second = m->runs[r].compute_images_per_second =
                m->runs[r].peak_memory_mb = 0;
    }
    summarize(m);
    m->c.interrupted = 1;
    return m;
}

static inline made *all_failed(void)
{
    made *m = make_comparison(3, 2, 50);
    set_states(m, AMP_RUN_FAILED);
    for (int r = 0; r < 6; r++)
        snprintf(m->runs[r].failure, sizeof m->runs[r].failure,
                 "amp: step %d: every gradient is inf <or> \"NaN\" & so on; try a lower learning_rate", r);
    return m;
}

/* One dtype of three ends in inf and NaN. */
static inline made *diverging(void)
{
    made *m = make_comparison(3, 3, 400);
    for (int r = 6; r < 9; r++) {
        for (size_t i = 120; i < 400; i++)
            m->runs[r].rows[i].loss = i < 160 ? 1e30f * (float)(i - 119) : i % 2 ? INFINITY : NAN;
        m->runs[r].rows[399].avg_loss = NAN;
        m->runs[r].state = AMP_RUN_FAILED;
        strcpy(m->runs[r].failure, "amp: weights are inf");
    }
    summarize(m);
    return m;
}

static inline made *no_finite_loss(void)
{
    made *m = make_comparison(2, 2, 80);
    for (int r = 0; r < 4; r++)
        for (size_t i = 0; i < 80; i++) {
            m->runs[r].rows[i].loss = i % 2 ? -INFINITY : NAN;
            m->runs[r].rows[i].scale = i % 2 ? INFINITY : 0;
            m->runs[r].rows[i].avg_loss = NAN;
        }
    for (int r = 0; r < 4; r++) m->runs[r].score[0] = m->runs[r].score[1] = (double)NAN;
    summarize(m);
    return m;
}

static inline made *constant(void)
{
    made *m = make_comparison(3, 3, 100);
    for (int r = 0; r < 9; r++) {
        for (size_t i = 0; i < 100; i++) m->runs[r].rows[i].loss = m->runs[r].rows[i].avg_loss = 2.5f;
        m->runs[r].score[0] = 0;
        m->runs[r].score[1] = 1;
        m->runs[r].images_per_second = m->runs[r].compute_images_per_second = 100;
    }
    summarize(m);
    return m;
}

static inline made *negative(void)
{
    made *m = make_comparison(3, 2, 100);
    for (int r = 0; r < 6; r++)
        for (size_t i = 0; i < 100; i++) m->runs[r].rows[i].loss -= 50;
    return m;
}

/* Losses and scales at the ends of what a float holds. */
static inline made *extreme(void)
{
    made *m = make_comparison(3, 2, 100);
    for (int r = 0; r < 6; r++) {
        for (size_t i = 0; i < 100; i++) {
            m->runs[r].rows[i].loss = i < 50 ? 3.4e38f : 1e-36f;
            m->runs[r].rows[i].scale = i < 50 ? 8.5e37f : 6.1e-5f;
            m->runs[r].rows[i].found_inf = 1;
        }
        m->runs[r].skipped = 100;
        m->runs[r].images_per_second = 1234567;
        m->runs[r].compute_images_per_second = 12345678;
        m->runs[r].peak_memory_mb = 142336;
    }
    summarize(m);
    return m;
}

#define UNPLEASANT "a<b>&\"c'\xff\xc3(\x01 </title><script>bad()</script> ü \xe4\xb8\xad" \
                   "folder/with/a/name/that/is/longer/than/any/phone/is/wide/and/has/no/space/" \
                   "in/it/at/all.cfg"

static inline made *unpleasant_names(void)
{
    made *m = typical();
    m->c.data = m->c.cfg = m->c.weights = m->c.version = m->c.title = m->c.machine = UNPLEASANT;
    m->advice[0] = UNPLEASANT;
    m->runs[4].state = AMP_RUN_FAILED;
    strcpy(m->runs[4].failure, UNPLEASANT ", \"quoted\"\nsecond line");
    summarize(m);
    return m;
}

static const report_case report_cases[] = {
    { "typical", typical }, { "all_dtypes", all_dtypes }, { "many_runs", many_runs }, { "alone", alone },
    { "one_seed", one_seed },
    { "one_step", one_step }, { "long_training", long_training }, { "classifier", classifier },
    { "not_begun", not_begun },
    { "interrupted", interrupted }, { "all_failed", all_failed }, { "diverging", diverging },
    { "no_finite_loss", no_finite_loss },
    { "constant", constant }, { "negative", negative }, { "extreme", extreme },
    { "unpleasant_names", unpleasant_names } };
enum { REPORT_CASES = sizeof report_cases / sizeof *report_cases };

#endif
