/* What comes of a benchmark's lines: medians, spreads, ratios, and what the verdicts rest on. */
#define _POSIX_C_SOURCE 200809L
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const amp_bench_phase_names[AMP_BENCH_PHASES] = { "forward", "backward", "update", "step" };

/* ---- lines ---- */

static amp_status grow(amp_bench_side *s, amp_error *error)
{
    if (s->steps < s->room) return AMP_OK;
    int room = s->room ? 2 * s->room : 256;
    for (int p = 0; p < AMP_BENCH_PHASES; p++) {
        double *grown = realloc(s->ms[p], (size_t)room * sizeof *grown);
        if (!grown) return amp_fail(error, AMP_NO_MEMORY, "out of memory");
        s->ms[p] = grown;
    }
    int *grown = realloc(s->turn, (size_t)room * sizeof *grown);
    if (!grown) return amp_fail(error, AMP_NO_MEMORY, "out of memory");
    s->turn = grown;
    s->room = room;
    return AMP_OK;
}

static amp_status add_step(const amp_bench *b, amp_bench_side *s, const char *text, amp_error *error)
{
    double f, k, u;
    if (sscanf(text, "%lf %lf %lf", &f, &k, &u) != 3) return AMP_IO_FAILED;
    AMP_TRY(grow(s, error));
    s->turn[s->steps] = b->turn;
    s->ms[AMP_BENCH_FORWARD][s->steps] = f;
    s->ms[AMP_BENCH_BACKWARD][s->steps] = k;
    s->ms[AMP_BENCH_UPDATE][s->steps] = u;
    s->ms[AMP_BENCH_STEP][s->steps++] = b->subdivisions * (f + k) + u;
    return AMP_OK;
}

static amp_status add_layer(amp_bench_side *s, const char *text, amp_error *error)
{
    amp_bench_layer l = { 0 };
    if (sscanf(text, "%d %23s %d %d %lf %lf %lf %lf %lf", &l.index, l.type, &l.in_half, &l.misaligned, &l.forward_ms, &l.backward_ms,
               &l.cast_ms, &l.operations, &l.bytes) != 9 || l.index != s->layer_count) return AMP_IO_FAILED;
    amp_bench_layer *grown = realloc(s->layers, ((size_t)s->layer_count + 1) * sizeof *grown);
    if (!grown) return amp_fail(error, AMP_NO_MEMORY, "out of memory");
    s->layers = grown;
    s->layers[s->layer_count++] = l;
    return AMP_OK;
}

static amp_status note_support(amp_bench_side *s, const char *text)
{
    int support, length = 0;
    if (sscanf(text, "%d %n", &support, &length) != 1) return AMP_IO_FAILED;
    s->support = (amp_support)support;
    snprintf(s->note, sizeof s->note, "%s", text + length);
    return AMP_OK;
}

static amp_status note_loss(amp_bench_side *s, const char *text, int skipped)
{
    float loss;
    if (sscanf(text, "%f", &loss) != 1) return AMP_IO_FAILED;
    if (!s->skipped && !s->warm++) s->first_loss = loss;
    s->skipped += skipped;
    return AMP_OK;
}

static amp_status hear(amp_bench *b, amp_bench_side *s, const char *name, const char *rest, amp_error *error)
{
    if (!strcmp(name, "step")) return add_step(b, s, rest, error);
    if (!strcmp(name, "warm")) return note_loss(s, rest, 0);
    if (!strcmp(name, "skipped")) return note_loss(s, rest, 1);
    if (!strcmp(name, "pass")) return AMP_OK;
    if (!strcmp(name, "layer")) return add_layer(s, rest, error);
    if (!strcmp(name, "support")) return note_support(s, rest);
    if (!strcmp(name, "memory")) return sscanf(rest, "%lf", &s->peak_memory_mb) == 1 ? AMP_OK : AMP_IO_FAILED;
    if (!strcmp(name, "shape"))
        return sscanf(rest, "%d %d %d %d %d", &b->width, &b->height, &b->channels, &b->batch,
                      &b->on_gpu) == 5 ? AMP_OK : AMP_IO_FAILED;
    if (!strcmp(name, "machine")) {
        snprintf(s->machine, sizeof s->machine, "%s", rest);
        return AMP_OK;
    }
    s->done = !strcmp(name, "done") && atol(rest) == s->steps;
    return s->done ? AMP_OK : AMP_IO_FAILED;
}

amp_status amp_bench_hear(amp_bench *b, amp_bench_side *s, const char *line, amp_error *error)
{
    char name[16] = "";
    size_t length = strcspn(line, " ");
    if (length < sizeof name) memcpy(name, line, length);
    int side = (int)(s - b->sides);
    b->turn += side < b->speaker;
    b->speaker = side;
    amp_status status = hear(b, s, name, line + length + (line[length] == ' '), error);
    if (status != AMP_IO_FAILED) return status;
    return amp_fail(error, AMP_IO_FAILED, "%s: its program said what is not understood: %s", s->dtype, line);
}

/* ---- numbers ---- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of sorted values, between two neighbours if need be. */
static double quantile(const double *values, int count, double q)
{
    double place = q * (count - 1);
    int below = (int)place;
    return below + 1 < count ? values[below] + (place - below) * (values[below + 1] - values[below]) : values[count - 1];
}

amp_bench_spread amp_bench_spread_of(double *values, int count)
{
    amp_bench_spread s = { .count = count };
    if (count < 1) return s;
    qsort(values, (size_t)count, sizeof *values, ascending);
    s.least = values[0];
    s.lower = quantile(values, count, .25);
    s.median = quantile(values, count, .5);
    s.upper = quantile(values, count, .75);
    s.most = values[count - 1];
    s.certain = 1.57 * (s.upper - s.lower) / sqrt(count);
    return s;
}

const amp_bench_side *amp_bench_side_of(const amp_bench *b, const char *dtype)
{
    for (int i = 0; i < b->count; i++)
        if (!strcmp(b->sides[i].dtype, dtype) && b->sides[i].steps && !b->sides[i].left_out) return &b->sides[i];
    return NULL;
}

double amp_bench_layer_ms(const amp_bench_layer *l) { return l->forward_ms + l->backward_ms; }

double amp_bench_layers_ms(const amp_bench_side *s)
{
    double sum = 0;
    for (int i = 0; i < s->layer_count; i++) sum += amp_bench_layer_ms(&s->layers[i]);
    return sum;
}

/* ---- ratios ---- */

/* Of the steps that were made in one round; 0 if none was. scratch has room for all of them. Before they are sorted. */
static double turn_median(const amp_bench_side *s, int turn, double *scratch)
{
    int count = 0;
    for (int i = 0; i < s->steps; i++) if (s->turn[i] == turn) scratch[count++] = s->ms[AMP_BENCH_STEP][i];
    return amp_bench_spread_of(scratch, count).median;
}

static amp_bench_ratio ratio_of_medians(const amp_bench_spread *reference, const amp_bench_spread *s)
{
    double faster = s->median - s->certain;
    amp_bench_ratio r = { .ratio = reference->median / s->median,
                          .least = (reference->median - reference->certain) / (s->median + s->certain),
                          .most = (reference->median + reference->certain) / (faster > 0 ? faster : s->median) };
    if (r.least < 0) r.least = 0;
    return r;
}

/* Of the rounds in which both worked; returns how many. scratch has room for the steps of either. */
static int ratios_of_rounds(const amp_bench_side *reference, const amp_bench_side *s, double *ratios, double *scratch)
{
    int pairs = 0;
    for (int i = 0; i < s->steps; i++) {
        if (i && s->turn[i] == s->turn[i - 1]) continue;
        double theirs = turn_median(reference, s->turn[i], scratch);
        if (theirs > 0) ratios[pairs++] = theirs / turn_median(s, s->turn[i], scratch);
    }
    return pairs;
}

static amp_bench_spread spread_of_steps(const amp_bench_side *s, double *scratch)
{
    memcpy(scratch, s->ms[AMP_BENCH_STEP], (size_t)s->steps * sizeof *scratch);
    return amp_bench_spread_of(scratch, s->steps);
}

/* ratios and scratch have room for the steps of the larger side. */
static amp_bench_ratio compare(const amp_bench_side *reference, const amp_bench_side *s, double *ratios, double *scratch)
{
    int pairs = ratios_of_rounds(reference, s, ratios, scratch);
    amp_bench_spread rounds = amp_bench_spread_of(ratios, pairs);
    if (pairs >= AMP_BENCH_PAIRS)
        return (amp_bench_ratio){ rounds.median, rounds.certain < rounds.median ? rounds.median - rounds.certain : 0,
                                  rounds.median + rounds.certain, pairs };
    amp_bench_spread theirs = spread_of_steps(reference, scratch), ours = spread_of_steps(s, scratch);
    amp_bench_ratio all = ratio_of_medians(&theirs, &ours);
    if (pairs < 2) {
        all.least = fmin(all.least, theirs.least / ours.most);
        all.most = fmax(all.most, theirs.most / ours.least);
        return all;
    }
    return (amp_bench_ratio){ rounds.median, fmin(rounds.least, all.least), fmax(rounds.most, all.most), pairs };
}

static amp_status compare_all(amp_bench *b, amp_error *error)
{
    const amp_bench_side *stock = amp_bench_side_of(b, "stock"), *fp32 = amp_bench_side_of(b, "fp32");
    int most = 1;
    for (int i = 0; i < b->count; i++) if (b->sides[i].steps > most) most = b->sides[i].steps;
    double *memory = calloc(2 * (size_t)most, sizeof *memory);
    if (!memory) return amp_fail(error, AMP_NO_MEMORY, "out of memory");
    for (int i = 0; i < b->count; i++) {
        amp_bench_side *s = &b->sides[i];
        if (s->left_out) continue;
        if (stock) s->over_stock = compare(stock, s, memory, memory + most);
        if (fp32) s->over_fp32 = compare(fp32, s, memory, memory + most);
    }
    free(memory);
    return AMP_OK;
}

/* ---- layers ---- */

/* Whether fewer than AMP_BENCH_TOP layers of this side take longer. */
static int is_top(const amp_bench_side *s, int layer)
{
    int longer = 0;
    if (layer >= s->layer_count) return 0;
    for (int i = 0; i < s->layer_count; i++) {
        double difference = amp_bench_layer_ms(&s->layers[i]) - amp_bench_layer_ms(&s->layers[layer]);
        longer += difference > 0 || (difference == 0 && i < layer);
    }
    return longer < AMP_BENCH_TOP;
}

int amp_bench_top_layers(const amp_bench *b, int *layers)
{
    int count = 0;
    const amp_bench_side *first = NULL;
    for (int k = 0; k < b->count && !first; k++) if (b->sides[k].layer_count) first = &b->sides[k];
    for (int i = 0; first && i < first->layer_count; i++) {
        int top = 0;
        for (int k = 0; k < b->count; k++) top |= is_top(&b->sides[k], i);
        if (!top) continue;
        int at = count++;
        for (; at > 0 && amp_bench_layer_ms(&first->layers[layers[at - 1]]) < amp_bench_layer_ms(&first->layers[i]); at--)
            layers[at] = layers[at - 1];
        layers[at] = i;
    }
    return count;
}

/* ---- the whole ---- */

/* Below so many operations a byte a layer waits for memory: a processor's fp32 does some ten for each byte that it can read, and
 * its half several times that. */
static const double operations_per_byte = 32;

static amp_bench_evidence evidence_of(const amp_bench_side *reference, const amp_bench_side *s)
{
    amp_bench_evidence e = { .dtype = s->dtype, .note = s->note, .native = s->support == AMP_SUPPORT_NATIVE,
        .reference_ms = reference->spread[AMP_BENCH_STEP].median, .ms = s->spread[AMP_BENCH_STEP].median,
        .speedup = s->over_fp32, .steps = s->steps < reference->steps ? s->steps : reference->steps,
        .reference_memory_mb = reference->peak_memory_mb, .memory_mb = s->peak_memory_mb,
        .update_share = s->spread[AMP_BENCH_UPDATE].median / s->spread[AMP_BENCH_STEP].median };
    double all = amp_bench_layers_ms(s);
    for (int i = 0; i < s->layer_count && all > 0; i++) {
        const amp_bench_layer *l = &s->layers[i];
        double share = amp_bench_layer_ms(l) / all;
        if (!l->in_half) e.fp32_share += share;
        else if (l->bytes > 0 && l->operations < operations_per_byte * l->bytes) e.moving_share += share;
        if (l->misaligned) e.misaligned_share += share;
    }
    if (s->layer_count) e.call_us = 1e3 * all / (2 * s->layer_count);
    return e;
}

static void judge_all(amp_bench *b)
{
    const amp_bench_side *fp32 = amp_bench_side_of(b, "fp32");
    b->verdict_count = 0;
    for (int i = 0; fp32 && i < b->count; i++) {
        const amp_bench_side *s = &b->sides[i];
        if (s->left_out || (strcmp(s->dtype, "bf16") && strcmp(s->dtype, "fp16"))) continue;
        amp_bench_evidence e = evidence_of(fp32, s);
        amp_bench_judge(&e, &b->verdicts[b->verdict_count++]);
    }
}

amp_status amp_bench_summarize(amp_bench *b, amp_error *error)
{
    for (int i = 0; i < b->count; i++)
        if (!b->sides[i].left_out && !b->sides[i].steps)
            return amp_fail(error, AMP_IO_FAILED, "%s: no step was measured", b->sides[i].dtype);
    AMP_TRY(compare_all(b, error)); /* while steps stand in their order */
    for (int i = 0; i < b->count; i++) {
        amp_bench_side *s = &b->sides[i];
        if (s->left_out) continue;
        for (int p = 0; p < AMP_BENCH_PHASES; p++) s->spread[p] = amp_bench_spread_of(s->ms[p], s->steps);
        s->images_per_second = 1e3 * b->batch * b->subdivisions / s->spread[AMP_BENCH_STEP].median;
    }
    judge_all(b);
    return AMP_OK;
}

void amp_bench_free(amp_bench *b)
{
    for (int i = 0; i < b->count; i++) {
        for (int p = 0; p < AMP_BENCH_PHASES; p++) free(b->sides[i].ms[p]);
        free(b->sides[i].turn);
        free(b->sides[i].layers);
    }
    b->count = 0;
}
